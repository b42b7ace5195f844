//! Boots, crashes and compares: one workflow, many fates.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{EndStatus, Event, Mode, Record, RunOpened, SourceFile},
    evidence::Outcome,
    finding::Finding,
    journal::{FORMAT, encode},
    plan::Status,
    policy::Choices,
    said::{Said, Spent},
    state::{RunStatus, State},
    time::Timestamp,
    workflow::{self, model::Workflow},
};
use onward_dialects::File;
use onward_engine::{
    agents::{Adapter as _, Stream, lines::Lines},
    drive::{Ahead, Options, Resume},
    foreign::Foreign,
    load::{
        checkpoint,
        journal::{JOURNAL, load},
    },
    resume::{ResumeError, open},
    world::{At, Stop, World, files::write_durably, out_name, seen::Seen},
};

use serde_json::Value;

use crate::{
    breaks::{Break, is_of_person},
    crash::{Crash, Window, readable},
    forks::Fork,
    refused::Before,
    repo::tip_of,
    trees::{Files, files_of},
    world::SimWorld,
};

/// The run's id.
pub(crate) const RUN: &str = "sim-20270115-aaaa";

/// A workflow, and how it ends undisturbed.
pub(crate) struct Case {
    workflow: Workflow,
    text: String,
    /// Makes the world ready.
    begin: fn(&mut SimWorld),
    calls: u64,
    /// At each call of the first life.
    forks: Vec<Fork>,
    undisturbed: Ending,
}

/// What must come out the same whatever happens in between.
#[derive(Debug, PartialEq)]
struct Ending {
    files: BTreeMap<String, Digest>,
    /// What the branch of each worktree has; nothing when it is gone.
    branches: BTreeMap<String, Option<BTreeMap<String, Digest>>>,
    steps: BTreeMap<String, (String, Option<String>, Digest)>,
    effects: BTreeMap<String, u32>,
}

/// What a test has been through.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) crashes: u64,
    pub(crate) windows: BTreeSet<Window>,
    /// Lives in which a person broke worktrees.
    pub(crate) broken: u64,
    /// Resumes that were refused.
    pub(crate) refused: u64,
}

/// What one life goes through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate<'f> {
    /// Calls until each crash, counted from the one before it.
    pub(crate) crashes: &'f [(u64, Crash)],
    /// What a person does to worktrees after the first crash that leaves one.
    pub(crate) breaks: Option<Break>,
    pub(crate) seed: u64,
}

/// How one life of the engine ended.
pub(crate) enum Booted {
    With(Status),
    Dark,
    /// At its start, or in the middle after the supervisor's death.
    Refused {
        findings: Vec<Finding>,
        at_start: bool,
    },
    /// The other system is at work on its files.
    InUse,
}

impl Tally {
    /// A test that explores nothing proves nothing.
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "a test's output says what it explored")]
    pub(crate) fn require(&self, crashes: u64) {
        let Self { crashes: seen, broken, refused, .. } = self;
        println!("{seen} crashes, {broken} times broken worktrees, {refused} resumes refused");
        assert!(*seen >= crashes, "only {seen} crashes were explored");
    }
}

impl Case {
    pub(crate) fn new(text: &str) -> Self {
        Self::with(text, |_| {})
    }

    /// With drivers that announce ahead from the first step on.
    pub(crate) fn eager(text: &str) -> Self {
        Self::with(text, |world| world.eager = true)
    }

    /// In a repository, so that steps can have worktrees.
    pub(crate) fn in_repository(text: &str) -> Self {
        Self::with(text, SimWorld::begin_repository)
    }

    /// With steps that sync nothing.
    pub(crate) fn lazy(text: &str) -> Self {
        Self::with(text, |world| world.lazy = true)
    }

    fn with(text: &str, begin: fn(&mut SimWorld)) -> Self {
        let (mut world, workflow) = (SimWorld::new(0), parse(text));
        begin(&mut world);
        world.keep_forks();
        let mut forks = Vec::new();
        loop {
            let booted = boot(&mut world, &workflow, &Choices::default(), None);
            forks.extend(world.take_forks());
            match booted {
                Booted::With(Status::Completed) => break,
                Booted::With(Status::Parked) => wait_for_reset(&mut world),
                Booted::With(status) => panic!("{status:?}: {text}"),
                Booted::Refused { findings, .. } => panic!("{findings:#?}: {text}"),
                Booted::Dark | Booted::InUse => panic!("there was no fuse: {text}"),
            }
        }
        assert_eq!(state(&world).status, COMPLETED, "{text}");
        let (calls, undisturbed) = (world.calls, ending(&world));
        Self { workflow, text: text.to_owned(), begin, calls, forks, undisturbed }
    }

    fn world(&self, seed: u64) -> SimWorld {
        let mut world = SimWorld::new(seed);
        (self.begin)(&mut world);
        world
    }

    /// The world after a life without a crash.
    pub(crate) fn undisturbed_world(&self) -> SimWorld {
        let mut world = self.world(0);
        let booted = boot(&mut world, &self.workflow, &Choices::default(), None);
        assert!(matches!(booted, Booted::With(Status::Completed)), "{}", self.text);
        world
    }

    /// The world after the first crash, if the engine need not be driven to it.
    fn forked(&self, crashes: &[(u64, Crash)], seed: u64, story: String) -> Option<SimWorld> {
        let at = usize::try_from(crashes.first()?.0).unwrap();
        self.forks.get(at)?.crash(crashes, seed, story)
    }

    /// Every fork is the world of a life that came to this crash by itself.
    pub(crate) fn check_forks(&self, crash: Crash, seed: u64, tally: &mut Tally) {
        for fuse in 0..self.calls {
            let crashes = [(fuse, crash), (3, Crash::Engine)];
            let Some(forked) = self.forked(&crashes, seed + fuse, String::new()) else { continue };
            let mut world = self.world(seed + fuse);
            world.fuses = crashes.into();
            let booted = boot(&mut world, &self.workflow, &Choices::default(), None);
            assert!(matches!(booted, Booted::Dark), "{crash:?} at {fuse}: {}", self.text);
            assert_eq!(format!("{world:?}"), format!("{forked:?}"), "{crash:?} at {fuse}");
            tally.crashes += 1;
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    pub(crate) fn crash_once_everywhere(&self, crash: Crash, seed: u64, tally: &mut Tally) {
        for fuse in 0..self.calls {
            self.live_through(&[(fuse, crash)], seed.wrapping_mul(1 << 32) + fuse, tally);
        }
    }

    /// A crash at every call, and for each one another at every call of what comes after it.
    /// `stride` thins out the second crash only; 1 tries every call.
    pub(crate) fn crash_twice_everywhere(
        &self,
        first: Crash,
        second: Crash,
        stride: usize,
        tally: &mut Tally,
    ) {
        for one in 0..self.calls {
            // What a power cut leaves differs from life to life, and so does what is left to do.
            let mut outlived = 0;
            for two in (0..).step_by(stride) {
                let crashes = [(one, first), (two, second)];
                let is_hit = self.live_through(&crashes, one * 7919 + two, tally);
                outlived = if is_hit { 0 } else { outlived + 1 };
                if outlived == 3 {
                    break;
                }
            }
        }
    }

    /// The first crash in one way, the second in each.
    pub(crate) fn crash_twice_after(&self, first: Crash, stride: usize, tally: &mut Tally) {
        for second in Crash::ALL {
            self.crash_twice_everywhere(first, second, stride, tally);
        }
    }

    pub(crate) fn crash_at_random(&self, seed: u64, lives: u64, tally: &mut Tally) {
        let mut chance = crate::chance::Chance::new(seed);
        for life in 0..lives {
            let calls = usize::try_from(self.calls).unwrap();
            let crashes: Vec<(u64, Crash)> = (0..=chance.below(4))
                .map(|_| {
                    let fuse = u64::try_from(chance.below(calls)).unwrap();
                    (fuse, Crash::ALL[chance.below(4)])
                })
                .collect();
            self.live_through(&crashes, seed * 1000 + life, tally);
        }
    }

    /// What was kept of a journal, at any record of it, and the rest of it fold as the whole, after
    /// a crash at every call. What was kept before a power cut may tell of more than is left.
    pub(crate) fn fold_from_records(&self, crash: Crash, seed: u64, tally: &mut Tally) {
        for fuse in 0..self.calls {
            let mut world = self.world(seed.wrapping_mul(1 << 32) + fuse);
            world.story = format!("{crash:?} at {fuse}, workflow:{}", self.text);
            world.fuses = [(fuse, crash)].into_iter().collect();
            let mut before = Vec::new();
            for _ in 0..10 {
                let booted = boot(&mut world, &self.workflow, &Choices::default(), None);
                match booted {
                    Booted::With(Status::Completed) => break,
                    Booted::With(Status::Parked) => wait_for_reset(&mut world),
                    Booted::Dark => tally.crashes += 1,
                    Booted::With(_) | Booted::Refused { .. } | Booted::InUse => {
                        panic!("{}", world.story)
                    }
                }
                fold_from_records(&world, fuse, &mut before);
            }
            fold_from_records(&world, fuse, &mut before);
        }
    }

    /// Whether every crash came before the run was over.
    fn live_through(&self, crashes: &[(u64, Crash)], seed: u64, tally: &mut Tally) -> bool {
        self.live(&Fate { crashes, breaks: None, seed }, tally)
    }

    /// Whether every crash came before the run was over.
    pub(crate) fn live(&self, fate: &Fate<'_>, tally: &mut Tally) -> bool {
        let Fate { crashes, mut breaks, seed } = *fate;
        let story = || format!("{fate:?}, workflow:{}", self.text);
        let forked = self.forked(crashes, seed, story());
        let mut is_dark = forked.is_some();
        let mut world = forked.unwrap_or_else(|| {
            let mut world = self.world(seed);
            world.story = story();
            world.fuses = crashes.iter().copied().collect();
            world
        });
        let mut choices = Choices::default();
        // The first resume after a limit comes too early, and must leave everything as it is.
        let mut too_early = true;
        for lives in 0.. {
            // A person who broke things may have to come back, but not for ever.
            assert!(lives < crashes.len() + 10, "it does not come to an end: {}", story());
            let before = fate.breaks.map(|_| Before::look(&world));
            let booted = if std::mem::take(&mut is_dark) {
                Booted::Dark
            } else {
                boot(&mut world, &self.workflow, &choices, None)
            };
            choices = Choices::default();
            match booted {
                Booted::With(Status::Completed) => break,
                Booted::With(Status::Parked) if std::mem::take(&mut too_early) => {}
                Booted::With(Status::Parked) => wait_for_reset(&mut world),
                Booted::With(_) if fate.breaks.is_some() => {}
                Booted::With(status) => panic!("{status:?}: {}", story()),
                Booted::Dark => {
                    if let Some(how) = breaks
                        && world.break_worktrees(how)
                    {
                        tally.broken += 1;
                        breaks = None;
                    }
                }
                Booted::InUse => panic!("no other system is here: {}", story()),
                Booted::Refused { findings, at_start } => {
                    assert!(fate.breaks.is_some(), "{findings:#?}: {}", story());
                    if let Some(before) = before.filter(|_| at_start) {
                        tally.refused += 1;
                        before.check(&world, &story);
                    }
                    choices = world.answer(&findings);
                }
            }
        }
        let burnt = crashes.len() - world.fuses.len();
        tally.crashes += u64::try_from(burnt).unwrap();
        tally.windows.extend(&world.windows);
        world.fuses.clear();
        // A driver that comes back to a finished run leaves it alone.
        let again = boot(&mut world, &self.workflow, &Choices::default(), None);
        assert!(matches!(again, Booted::With(Status::Completed)), "{}", story());
        self.check_ending(&world, &story);
        check_journal(&world, &story);
        world.check_person(&story);
        burnt == crashes.len()
    }

    fn check_ending(&self, world: &SimWorld, story: &dyn Fn() -> String) {
        let mut ending = ending(world);
        if world.taken.commits {
            // What a person cleared away when all was done in it stays away. A branch that begins
            // again begins with the project as it is by then.
            let Ending { files: project, branches, .. } = &self.undisturbed;
            for (name, files) in &mut ending.branches {
                let usual = &branches[name];
                match (files.as_mut(), usual) {
                    (Some(files), Some(usual)) => {
                        let is_usual = |path: &String| usual.contains_key(path);
                        files.retain(|path, _| is_usual(path) || !project.contains_key(path));
                    }
                    (None, _) | (Some(_), None) => files.clone_from(usual),
                }
            }
        }
        assert_eq!(ending, self.undisturbed, "{}", story());
    }
}

pub(crate) fn parse(text: &str) -> Workflow {
    let mut nothing = |path: &str| Err(format!("{path} is not there"));
    let loaded = workflow::load("sim.yaml", text.as_bytes(), &mut nothing);
    loaded.unwrap_or_else(|problems| panic!("{problems:#?}\n{text}")).workflow
}

/// Starts on whatever is on the disk, as a person would: run when there is nothing, else resume.
pub(crate) fn boot(
    world: &mut SimWorld,
    workflow: &Workflow,
    choices: &Choices,
    foreign: Option<&Foreign>,
) -> Booted {
    let story = world.story.clone();
    world.site = foreign.map(|it| it.site.clone());
    let stopped = |stop: Stop| match stop {
        // The engine gives up on supervisors that die in a row; a person resumes.
        Stop::Dark | Stop::Hands(_) => Booted::Dark,
        Stop::Conflicts(findings) => Booted::Refused { findings, at_start: false },
        Stop::Unready { .. } if foreign.is_some() => Booted::InUse,
        stop => panic!("{stop}: {story}"),
    };
    let begun = world.read(At::Run(JOURNAL)).and_then(|journal| match journal {
        Some(_) => Ok(()),
        None => create(world, workflow, foreign),
    });
    if let Err(stop) = begun {
        return stopped(stop);
    }
    (world.foreign_reads, world.foreign_reads_at_spawn) = (0, None);
    let mut how = how(choices, foreign);
    if world.eager {
        how.options.ahead = Ahead { after: 0, lead_ms: 0, most: 3 };
    }
    world.parallel = usize::try_from(workflow.limits.parallel).unwrap();
    match open(world, workflow, &how) {
        Ok(mut driver) => {
            onward_engine::resume::drive(&mut driver).map_or_else(stopped, Booted::With)
        }
        Err(ResumeError::Complete) => Booted::With(Status::Completed),
        Err(ResumeError::Parked { .. }) => Booted::With(Status::Parked),
        Err(ResumeError::Conflicts(findings)) => Booted::Refused { findings, at_start: true },
        Err(ResumeError::Stop(stop)) => stopped(stop),
        Err(error) => panic!("a crash must not keep a run from going on: {error:?}: {story}"),
    }
}

const COMPLETED: RunStatus = RunStatus::Ended { status: EndStatus::Completed };

/// A person comes back when the limit is lifted.
fn wait_for_reset(world: &mut SimWorld) {
    let RunStatus::Paused { until: Some(until), .. } = state(world).status else {
        panic!("a parked run says until when: {}", world.story);
    };
    world.wait_for(until);
}

/// As a person would at a terminal, in autopilot.
pub(crate) fn how(choices: &Choices, foreign: Option<&Foreign>) -> Resume {
    Resume {
        mode: Mode::Autopilot,
        choices: choices.clone(),
        options: Options { attended: true, ..Options::default() },
        edited: None,
        foreign: foreign.cloned(),
        theirs: foreign.map(Foreign::theirs).unwrap_or_default(),
        seen: Seen::default(),
        lacking: None,
    }
}

fn create(
    world: &mut SimWorld,
    workflow: &Workflow,
    foreign: Option<&Foreign>,
) -> Result<(), Stop> {
    let git = world.head("")?;
    let mut inputs: BTreeMap<String, Value> =
        foreign.map(|it| it.site.inputs.clone()).unwrap_or_default();
    for (name, input) in &workflow.inputs {
        if let Some(default) = input.default.clone() {
            inputs.entry(name.clone()).or_insert(default);
        }
    }
    let opened = RunOpened {
        format: FORMAT,
        run: RUN.parse().unwrap(),
        workflow: "sim".to_owned(),
        workflow_hash: Digest::of(b"sim"),
        file: None,
        inputs,
        git,
        engine: "sim".to_owned(),
        boot_id: world.boot_id(),
        mode: Mode::Autopilot,
    };
    let opened = Event::RunOpened(Box::new(opened));
    let adopted = foreign.map(|it| adopted(world, it));
    let mut lines = Vec::new();
    for (seq, event) in (0..).zip([opened].into_iter().chain(adopted)) {
        let record = Record { seq, at: Timestamp::default(), epoch: 1, batch: 1, event };
        encode(&record, &mut lines).unwrap();
    }
    write_durably(world, At::Run(JOURNAL), &lines)
}

/// `run.adopted`, or how a run says that it begins the other system's files itself.
pub(crate) fn adopted(world: &SimWorld, foreign: &Foreign) -> Event {
    let site = &foreign.site;
    let files = world.site_files(site);
    let file = |(path, file): (&str, &File)| SourceFile {
        path: path.to_owned(),
        hash: Digest::of(&file.bytes),
    };
    let files = files.iter().filter(|_| !foreign.begins).map(file).collect();
    let (dialect, source) = (site.dialect.to_owned(), site.dir().to_owned());
    Event::RunAdopted { dialect, source, files }
}

fn ending(world: &SimWorld) -> Ending {
    let state = state(world);
    let branch = |branch: &str| {
        let tip = tip_of(&world.disk, branch)?;
        Some(digests(world.repo.files(Some(&tip))))
    };
    let places = world.worktrees().into_iter();
    Ending {
        files: digests(&files_of(&world.disk, "")),
        branches: places.map(|it| (it.name().to_owned(), branch(&it.branch))).collect(),
        steps: state
            .steps
            .iter()
            .map(|(address, step)| {
                let files: Vec<_> =
                    step.evidence.files.iter().map(|file| (&file.path, file.hash)).collect();
                let evidence = Digest::of(format!("{files:?}").as_bytes());
                let result = step.result.as_ref().map(ToString::to_string);
                (address.to_string(), (step.phase.as_str().to_owned(), result, evidence))
            })
            .collect(),
        effects: world.effects.clone(),
    }
}

/// Of what is not a person's.
fn digests(files: &Files) -> BTreeMap<String, Digest> {
    let ours = files.iter().filter(|(path, _)| !is_of_person(path));
    ours.map(|(path, bytes)| (path.clone(), Digest::of(bytes))).collect()
}

pub(crate) fn state(world: &SimWorld) -> State {
    load(world.disk.read("run/journal.jsonl").unwrap()).unwrap().state
}

/// At the last record of the journal, and at one that `which` chooses. `before` is what was kept at
/// the last look.
fn fold_from_records(world: &SimWorld, which: u64, before: &mut Vec<Vec<u8>>) {
    let Some(journal) = world.disk.read("run/journal.jsonl") else { return };
    let newlines = journal.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let ends: Vec<usize> = newlines.map(|(at, _)| at + 1).collect();
    let one = usize::try_from(which).unwrap() % ends.len();
    let now = [ends[one], ends[ends.len() - 1]].map(|end| checkpoint::of(&journal[..end]).unwrap());
    let whole = load(journal).unwrap();
    for kept in before.iter().chain(&now) {
        let loaded = checkpoint::load_from(journal, Some(kept)).unwrap();
        assert_eq!((&loaded.state, &loaded.tail), (&whole.state, &whole.tail), "{}", world.story);
    }
    *before = now.into();
}

/// What the journal itself must show: each step finished once, everything on disk folded.
pub(crate) fn check_journal(world: &SimWorld, story: &dyn Fn() -> String) {
    let mut finished = BTreeMap::new();
    for event in readable(world.disk.read("run/journal.jsonl").unwrap()) {
        match event {
            Event::AttemptFinished(it) if it.outcome == Outcome::Done || it.tolerated => {
                *finished.entry(it.step).or_insert(0) += 1;
            }
            Event::AttemptAdopted(it) => *finished.entry(it.step).or_insert(0) += 1,
            _ => {}
        }
    }
    let counts = |step: &Address| !world.taken.commits && !world.may_have_lost(step);
    for (step, times) in finished.into_iter().filter(|(step, _)| counts(step)) {
        assert_eq!(times, 1, "{step} is finished {times} times: {}", story());
    }
    check_bill(world, story);
    for (effect, times) in &world.effects {
        assert_eq!(*times, 1, "effect {effect} happened {times} times: {}", story());
    }
    for (attempt, times) in &world.spawns {
        assert_eq!(*times, 1, "{attempt:?} was spawned {times} times: {}", story());
    }
}

/// What agents said they spent is in the journal once, all of it; and their sessions once.
fn check_bill(world: &SimWorld, story: &dyn Fn() -> String) {
    let mut billed: BTreeMap<(Address, u32), Spent> = BTreeMap::new();
    let mut sessions = BTreeMap::new();
    let mut talkers = BTreeSet::new();
    for event in readable(world.disk.read("run/journal.jsonl").unwrap()) {
        match event {
            Event::AttemptStarted(it) if it.agent.as_deref() == Some("talker") => {
                talkers.insert((it.step.clone(), it.attempt));
            }
            Event::AttemptSpent { step, attempt, spent } => {
                let sum = billed.entry((step, attempt)).or_default();
                *sum = sum.plus(spent);
            }
            Event::AttemptSession { step, attempt, .. } => {
                *sessions.entry((step, attempt)).or_insert(0) += 1;
            }
            _ => {}
        }
    }
    assert!(sessions.values().all(|times| *times == 1), "{sessions:?}: {}", story());
    for key in talkers {
        let mut said = Said::default();
        let out = format!("run/{}", out_name(&key.0, key.1, "out"));
        Lines.read(Stream::Out, world.disk.read(&out).unwrap_or_default(), &mut said);
        let billed = billed.remove(&key).unwrap_or_default();
        assert_eq!(billed, said.spent, "the bill of {key:?}: {}", story());
    }
    assert!(billed.is_empty(), "{billed:?}: {}", story());
}
