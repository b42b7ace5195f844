//! Runs of another system, adopted and gone on with, killed at every call and again while they
//! recover, also when the other system goes on with them in between.

pub(crate) mod start;
pub(crate) mod system;

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    digest::Digest,
    event::{Event, Revert},
    plan::Status,
    policy::Choices,
    state::Phase,
    workflow::model::Workflow,
};
use onward_engine::foreign::Foreign;

use crate::{
    FIRST,
    crash::{Crash, readable},
    forks::Fork,
    harness::{Booted, Tally, boot, check_journal, parse, state},
    refused::Before,
    world::SimWorld,
};
use start::{STARTS, Start, UNTOUCHED, others_go_on};
use system::{CARD, STEPS, WORKFLOW, foreign, lines, locked};

/// How many crashes each test has to go through.
const ONCE: u64 = 5_000;
const ONCE_WITH_OTHERS: u64 = 3_000;
const TWICE: u64 = 5_000;

/// A run of the toy system that onward goes on with.
pub(crate) struct Toy {
    workflow: Workflow,
    start: &'static Start,
    foreign: Foreign,
    calls: u64,
    /// At each call of the undisturbed life.
    forks: Vec<Fork>,
}

/// What one life goes through.
#[derive(Clone, Copy, Debug)]
struct Fate<'f> {
    crashes: &'f [(u64, Crash)],
    /// After a crash that leaves no agent, the other system goes on for a while.
    others: bool,
    /// So often it goes on while we wait for its lock.
    at_lock: u32,
    seed: u64,
}

impl Toy {
    fn new(start: &'static Start) -> Self {
        Self::of(start, foreign(start.begins()))
    }

    fn of(start: &'static Start, foreign: Foreign) -> Self {
        let (workflow, forks) = (parse(WORKFLOW), Vec::new());
        let mut toy = Self { workflow, start, foreign, calls: 0, forks };
        let mut world = toy.world(0);
        world.keep_forks();
        boot(&mut world, &toy.workflow, &Choices::default(), Some(&toy.foreign));
        toy.forks = world.take_forks();
        let fate = Fate { crashes: &[], others: false, at_lock: 0, seed: 0 };
        toy.calls = toy.live(&fate, &mut Tally::default()).0;
        toy
    }

    fn world(&self, seed: u64) -> SimWorld {
        let mut world = SimWorld::new(seed);
        self.start.lay(&mut world);
        world
    }

    /// The world after the first crash, if the engine need not be driven to it. Where the other
    /// system goes on before it, the seed decides how.
    fn forked(&self, fate: &Fate<'_>, story: String) -> Option<SimWorld> {
        let at = usize::try_from(fate.crashes.first()?.0).unwrap();
        let fork = self.forks.get(at).filter(|_| fate.at_lock == 0);
        fork?.crash(fate.crashes, fate.seed, story)
    }

    fn once_everywhere(&self, others: bool, seed: u64, tally: &mut Tally) {
        for crash in Crash::ALL {
            for fuse in 0..self.calls {
                let seed = seed.wrapping_mul(1 << 32) + fuse;
                let crashes = &[(fuse, crash)];
                self.live(&Fate { crashes, others, at_lock: 0, seed }, tally);
            }
        }
    }

    /// `stride` thins out the second crash only.
    fn twice_after(&self, first: Crash, stride: usize, tally: &mut Tally) {
        let number = Crash::ALL.iter().take_while(|it| **it != first).count() as u64;
        for second in Crash::ALL {
            for one in 0..self.calls {
                let mut outlived = 0;
                // Another first call for each, so that every call has its turn.
                for two in ((one + number) % stride as u64..).step_by(stride) {
                    let crashes = &[(one, first), (two, second)];
                    let seed = one * 7919 + two;
                    let fate = Fate { crashes, others: false, at_lock: 0, seed };
                    let (_, is_hit) = self.live(&fate, tally);
                    outlived = if is_hit { 0 } else { outlived + 1 };
                    if outlived == 2 {
                        break;
                    }
                }
            }
        }
    }

    /// How many calls it took, and whether every crash came before the run was over.
    fn live(&self, fate: &Fate<'_>, tally: &mut Tally) -> (u64, bool) {
        let Fate { crashes, others, at_lock, seed } = *fate;
        let story = || format!("{fate:?}, {:?}", self.start);
        let forked = self.forked(fate, story());
        let mut is_dark = forked.is_some();
        let mut world = forked.unwrap_or_else(|| {
            let mut world = self.world(seed);
            world.story = story();
            world.fuses = crashes.iter().copied().collect();
            world.meanwhile.others_at_lock = at_lock;
            world
        });
        let mut choices = Choices::default();
        // Steps that the other system did, and how often they had been spawned by then.
        let mut done_elsewhere: BTreeMap<&str, usize> =
            self.start.done().into_iter().map(|step| (step, 0)).collect();
        for lives in 0.. {
            assert!(
                lives < crashes.len() + 6 + at_lock as usize,
                "it does not come to an end: {}",
                world.story
            );
            let before = Before::look(&world);
            let (is_quiet, known) = (is_quiet(&world), journal(&world).len());
            let left = world.meanwhile.others_at_lock;
            let booted = if std::mem::take(&mut is_dark) {
                // How often it read by then was checked in the undisturbed life.
                Booted::Dark
            } else {
                let booted = boot(&mut world, &self.workflow, &choices, Some(&self.foreign));
                check_reads(&world, (is_quiet, at_lock), known);
                booted
            };
            let is_alone = world.meanwhile.others_at_lock == left;
            done_elsewhere.extend(std::mem::take(&mut world.meanwhile.others_did));
            choices = Choices::default();
            match booted {
                Booted::InUse => {
                    // A run that was just made says so in two records.
                    let written = journal(&world).len() - known.max(2);
                    assert_eq!(written, 0, "nothing is recorded: {}", world.story);
                    assert!(self.foreign.dialect.card().lock.is_none(), "{}", world.story);
                    tally.refused += 1;
                }
                Booted::With(Status::Completed) => break,
                Booted::With(status) => panic!("{status:?}: {}", world.story),
                Booted::Dark => {
                    if others && world.supervisor.is_idle() {
                        let did = others_go_on(&mut world);
                        let spawned = |step: &str| spawns(&world, step);
                        done_elsewhere.extend(did.iter().map(|step| (*step, spawned(step))));
                    }
                }
                Booted::Refused { findings, at_start } => {
                    if at_start && is_alone {
                        before.check(&world, &|| world.story.clone());
                    }
                    tally.refused += 1;
                    choices.accept_all(&findings);
                }
            }
        }
        let calls = world.calls;
        let burnt = crashes.len() - world.fuses.len();
        tally.crashes += u64::try_from(burnt).unwrap();
        tally.windows.extend(&world.windows);
        world.fuses.clear();
        let again = boot(&mut world, &self.workflow, &choices, Some(&self.foreign));
        assert!(matches!(again, Booted::With(Status::Completed)), "{}", world.story);
        self.check(&world, &done_elsewhere);
        (calls, burnt == crashes.len())
    }

    fn check(&self, world: &SimWorld, done_elsewhere: &BTreeMap<&str, usize>) {
        let story = &world.story;
        let read = |name: &str| world.disk.read(&format!("project/{name}")).unwrap_or_default();
        let journal = String::from_utf8_lossy(world.disk.read("run/journal.jsonl").unwrap());
        let (log, rows) = (lines(read("toy/toy.log")), lines(read("toy/rows.txt")));
        for step in STEPS {
            let told = log.iter().filter(|line| **line == format!("done {step}")).count();
            let is_inferred = self.start.inferred() == Some(step);
            assert_eq!(told, usize::from(!is_inferred), "{step} in {log:?}: {story}\n{journal}");
            let has = rows.iter().filter(|row| **row == format!("row {step}")).count();
            assert_eq!(has, 1, "{step} in {rows:?}: {story}\n{journal}");
        }
        for (step, before) in done_elsewhere {
            assert_eq!(spawns(world, step), *before, "{step} was done: {story}\n{journal}");
        }
        assert_eq!(read("note.txt"), b"noted", "{story}");
        for (name, text) in UNTOUCHED {
            assert_eq!(read(name), text.as_bytes(), "{name}: {story}");
        }
        check_rescues(world);
        check_journal(world, &|| format!("{story}\n{journal}"));
        let exported = state(world).exported;
        let exported = exported.iter().map(|file| (file.path.as_str(), file.hash));
        let files = CARD.reads.iter().map(|name| (*name, Digest::of(read(&format!("toy/{name}")))));
        let files: BTreeMap<&str, Digest> = files.collect();
        assert_eq!(exported.collect::<BTreeMap<_, _>>(), files, "{story}\n{journal}");
    }
}

pub(crate) fn journal(world: &SimWorld) -> Vec<Event> {
    readable(world.disk.read("run/journal.jsonl").unwrap_or_default())
}

fn spawns(world: &SimWorld, step: &str) -> usize {
    world.spawns.keys().filter(|(it, _)| it.as_str() == step).count()
}

/// Nothing was under way, and no undo either: what is seen at first cannot have changed.
fn is_quiet(world: &SimWorld) -> bool {
    world.disk.read("run/journal.jsonl").is_none_or(|_| {
        let state = state(world);
        let is_running = state.steps.values().any(|entry| entry.phase == Phase::Running);
        !is_running && state.pending_reverts().is_empty()
    })
}

/// The other system's files are read once in the examination, and once under their lock before they
/// are written.
fn check_reads(world: &SimWorld, (is_quiet, at_lock): (bool, u32), known: usize) {
    let Some(reads) = world.foreign_reads_at_spawn else { return };
    let events = journal(world);
    // What ended meanwhile is judged first, and what its files are then is noted.
    let ended = events.iter().skip(known).take_while(|it| !matches!(it, Event::AttemptStarted(_)));
    let ended = ended.filter(|it| matches!(it, Event::AttemptFinished(_))).count();
    // What changed while it was looked at is looked at again.
    let again = usize::from(!is_quiet) + at_lock as usize;
    let most = 2 + again + ended;
    assert!(reads as usize <= most, "read {reads} times, not {most}: {}", world.story);
}

/// Everything that was undone is in the rescue, as it was left.
fn check_rescues(world: &SimWorld) {
    let events = journal(world);
    let reverts: Vec<&Revert> = events.iter().flat_map(reverts).collect();
    for Revert { path, left, rescue, .. } in reverts {
        let kept = world.disk.synced(&format!("run/{rescue}/files/{path}"));
        assert_eq!(kept.map(Digest::of), *left, "{path} in {rescue}: {}", world.story);
    }
}

fn reverts(event: &Event) -> &[Revert] {
    match event {
        Event::RunResumed(it) => &it.reverts,
        Event::AttemptStarted(it) => &it.reverts,
        _ => &[],
    }
}

#[test]
fn what_another_system_did_is_adopted_whatever_crash_comes_at_any_call() {
    let mut tally = Tally::default();
    for start in &STARTS {
        let toy = Toy::new(start);
        toy.once_everywhere(false, 1, &mut tally);
        toy.once_everywhere(false, 2, &mut tally);
    }
    tally.require(ONCE);
    assert!(tally.refused > 0, "a refusal was seen");
}

#[test]
fn what_the_other_system_does_between_a_crash_and_the_resume_counts() {
    let mut tally = Tally::default();
    for start in &STARTS {
        Toy::new(start).once_everywhere(true, 3, &mut tally);
    }
    tally.require(ONCE_WITH_OTHERS);
}

/// Between the examination and the lock: what was examined is not what is there, so it is examined
/// again; and where that happens twice, the resume is refused and has written nothing.
#[test]
fn what_the_other_system_does_until_we_have_its_lock_is_examined_again() {
    let mut tally = Tally::default();
    for start in &STARTS[1..] {
        let toy = Toy::new(start);
        for seed in 0..40 {
            for at_lock in 1..=3 {
                let fate = Fate { crashes: &[], others: false, at_lock, seed };
                toy.live(&fate, &mut tally);
                let crashes = &[(30 + seed, Crash::Engine)];
                toy.live(&Fate { crashes, others: true, at_lock, seed }, &mut tally);
            }
        }
    }
    assert!(tally.refused > 0, "one was refused because the other system was at work");
}

/// The same where its programs keep out while its lock is held: what goes on changing is examined
/// for the last time then, and nothing is refused because of it.
#[test]
fn what_goes_on_changing_is_examined_while_its_own_lock_is_held() {
    let mut tally = Tally::default();
    for start in &STARTS[1..] {
        let toy = Toy::of(start, locked(start.begins()));
        for seed in 0..10 {
            for at_lock in 1..=3 {
                let fate = Fate { crashes: &[], others: false, at_lock, seed };
                toy.live(&fate, &mut tally);
                let crashes = &[(30 + seed, Crash::Engine)];
                toy.live(&Fate { crashes, others: true, at_lock, seed }, &mut tally);
            }
        }
    }
}

/// Every second start, from the first or from the second on.
fn adopted_twice(first: Crash, from: usize) {
    let mut tally = Tally::default();
    let strides = [151, 157, 163].into_iter().cycle();
    for (start, stride) in STARTS.iter().zip(strides).skip(from).step_by(2) {
        Toy::new(start).twice_after(first, stride, &mut tally);
    }
    tally.require(TWICE / (2 * FIRST));
}

for_each_first_crash!(
    adoption_survives_a_crash_at_every_call_and_another_while_it_recovers,
    |first| adopted_twice(first, 0)
);

for_each_first_crash!(
    adoption_at_other_starts_survives_a_crash_at_every_call_and_another_while_it_recovers,
    |first| adopted_twice(first, 1)
);

/// The other system goes on between a crash and the resume, while an undo of ours is announced:
/// what it has proved by then stays.
#[test]
fn a_row_that_the_other_system_proves_while_an_undo_is_announced_stays() {
    let mut tally = Tally::default();
    // Its log is begun, and a row is there that nothing proves yet.
    for start in &STARTS[1..3] {
        let toy = Toy::new(start);
        for fuse in 20..45 {
            let crashes = &[(fuse, Crash::Engine)];
            let seed = 8_589_934_622;
            toy.live(&Fate { crashes, others: true, at_lock: 0, seed }, &mut tally);
        }
    }
    assert!(tally.crashes > 0);
}

#[test]
fn half_done_work_of_every_start_is_undone_and_kept() {
    let half = STARTS.iter().filter(|it| !it.half_done().is_empty());
    assert!(half.count() >= 3);
    let all: BTreeSet<&str> = STARTS.iter().flat_map(start::Start::done).collect();
    assert_eq!(all.len(), STEPS.len(), "each step was done elsewhere in some start");
}
