//! Boots, crashes and compares: one workflow, many fates.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    digest::Digest,
    event::{Event, Mode, Record, RunOpened},
    evidence::Outcome,
    journal::{FORMAT, encode},
    plan::Status,
    policy::Choices,
    state::State,
    time::Timestamp,
    workflow::{self, model::Workflow},
};
use onward_engine::{
    drive::{Options, Resume},
    load::journal::{JOURNAL, load},
    resume::{ResumeError, open},
    world::{At, Stop, World, files::write_durably},
};

use crate::{
    crash::{Crash, Window, readable},
    world::SimWorld,
};

/// A workflow, and how it ends when nobody disturbs it.
pub(crate) struct Case {
    workflow: Workflow,
    text: String,
    calls: u64,
    undisturbed: Ending,
}

/// What must come out the same whatever happens in between.
#[derive(Debug, PartialEq)]
struct Ending {
    files: BTreeMap<String, Digest>,
    steps: BTreeMap<String, (String, Option<String>, Digest)>,
    effects: BTreeMap<String, u32>,
}

/// What a test has been through.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) crashes: u64,
    pub(crate) windows: BTreeSet<Window>,
}

impl Tally {
    /// A test that explores nothing proves nothing.
    #[track_caller]
    pub(crate) fn require(&self, crashes: u64) {
        assert!(self.crashes >= crashes, "only {} crashes were explored", self.crashes);
    }
}

impl Case {
    pub(crate) fn new(text: &str) -> Self {
        let mut nothing = |path: &str| Err(format!("{path} is not there"));
        let loaded = workflow::load("sim.yaml", text.as_bytes(), &mut nothing)
            .unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
        let mut world = SimWorld::new(0);
        let status = boot(&mut world, &loaded.workflow).unwrap();
        assert_eq!(status, Status::Completed, "{text}");
        let (calls, undisturbed) = (world.calls, ending(&world));
        Self { workflow: loaded.workflow, text: text.to_owned(), calls, undisturbed }
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

    pub(crate) fn crash_twice_in_every_way(&self, stride: usize) -> Tally {
        let mut tally = Tally::default();
        for first in Crash::ALL {
            for second in Crash::ALL {
                self.crash_twice_everywhere(first, second, stride, &mut tally);
            }
        }
        tally
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

    /// Whether every crash came before the run was over.
    fn live_through(&self, crashes: &[(u64, Crash)], seed: u64, tally: &mut Tally) -> bool {
        let mut world = SimWorld::new(seed);
        let story = || format!("crashes {crashes:?}, seed {seed}, workflow:{}", self.text);
        world.story = story();
        world.fuses = crashes.iter().copied().collect();
        let status = loop {
            match boot(&mut world, &self.workflow) {
                Err(Stop::Dark) => {}
                Err(stop) => panic!("{stop}: {}", story()),
                Ok(status) => break status,
            }
        };
        assert_eq!(status, Status::Completed, "{}", story());
        let burnt = crashes.len() - world.fuses.len();
        tally.crashes += u64::try_from(burnt).unwrap();
        tally.windows.extend(&world.windows);
        world.fuses.clear();
        // Whoever comes back to a finished run leaves it alone.
        let again = boot(&mut world, &self.workflow).unwrap_or_else(|stop| {
            panic!("{stop}: {}", story());
        });
        assert_eq!(again, Status::Completed, "{}", story());
        assert_eq!(ending(&world), self.undisturbed, "{}", story());
        check_journal(&world, &story);
        burnt == crashes.len()
    }
}

/// Starts on whatever is on the disk, as a person would: run when there is nothing, else resume.
fn boot(world: &mut SimWorld, workflow: &Workflow) -> Result<Status, Stop> {
    if world.read(At::Run(JOURNAL))?.is_none() {
        create(world)?;
    }
    let options = Options { attended: true, ..Options::default() };
    let (mode, choices, edited) = (Mode::Autopilot, Choices::default(), None);
    let how = Resume { mode, choices, options, edited, native: None };
    let story = world.story.clone();
    match open(world, workflow, &how) {
        Ok(mut driver) => onward_engine::resume::drive(&mut driver),
        Err(ResumeError::Complete) => Ok(Status::Completed),
        Err(ResumeError::Stop(stop)) => Err(stop),
        Err(error) => panic!("a crash must not keep a run from going on: {error:?}: {story}"),
    }
}

fn create(world: &mut SimWorld) -> Result<(), Stop> {
    let opened = RunOpened {
        format: FORMAT,
        run: "sim-20270115-aaaa".parse().unwrap(),
        workflow: "sim".to_owned(),
        workflow_hash: Digest::of(b"sim"),
        file: None,
        inputs: BTreeMap::new(),
        git: None,
        engine: "sim".to_owned(),
        boot_id: world.boot_id(),
        mode: Mode::Autopilot,
    };
    let event = Event::RunOpened(Box::new(opened));
    let record = Record { seq: 0, at: Timestamp::default(), epoch: 1, batch: 1, event };
    let mut line = Vec::new();
    encode(&record, &mut line).unwrap();
    write_durably(world, At::Run(JOURNAL), &line)
}

fn ending(world: &SimWorld) -> Ending {
    let state = state(world);
    let project = world.disk.names().filter(|name| name.starts_with("project/"));
    Ending {
        files: project
            .map(|name| (name.clone(), Digest::of(world.disk.read(name).unwrap())))
            .collect(),
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

fn state(world: &SimWorld) -> State {
    load(world.disk.read("run/journal.jsonl").unwrap()).unwrap().state
}

/// What the journal itself must show: each step finished once, everything on disk folded.
fn check_journal(world: &SimWorld, story: &dyn Fn() -> String) {
    let mut finished = BTreeMap::new();
    for event in readable(world.disk.read("run/journal.jsonl").unwrap()) {
        match event {
            Event::AttemptFinished(it) if it.outcome == Outcome::Done => {
                *finished.entry(it.step).or_insert(0) += 1;
            }
            Event::AttemptAdopted(it) => *finished.entry(it.step).or_insert(0) += 1,
            _ => {}
        }
    }
    for (step, times) in finished {
        assert_eq!(times, 1, "{step} is finished {times} times: {}", story());
    }
    for (effect, times) in &world.effects {
        assert_eq!(*times, 1, "effect {effect} happened {times} times: {}", story());
    }
    for (attempt, times) in &world.spawns {
        assert_eq!(*times, 1, "{attempt:?} was spawned {times} times: {}", story());
    }
}
