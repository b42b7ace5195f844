//! Runs of the real systems, adopted through their own dialects and gone on with by the built-in
//! workflows, killed at every call.
//!
//! The engine, the dialects and the built-in functions are the real ones; the disk, the engine's
//! clock, the supervisor, the agents and git are simulated. A call that writes several files can be
//! cut off between any two of them.

pub(crate) mod agents;
mod end;
pub(crate) mod stage;
mod starts;
pub(crate) mod system;

use std::{collections::BTreeMap, rc::Rc, sync::OnceLock};

use onward_core::{plan::Status, policy::Choices, time::Timestamp, workflow::model::Workflow};
use onward_engine::{foreign::Foreign, world::real::wall_clock};

use crate::{
    crash::Crash,
    forks::Fork,
    harness::{Booted, Tally, boot, check_journal},
    world::SimWorld,
};
use stage::Stage;
use starts::{Start, starts};
use system::{System, foreign, workflow_of};

/// So many calls lie between two of those at which the engine is stopped twice.
const AGAIN: u64 = 13;
/// The second time it makes fewer calls before.
const SOON: u64 = 59;

/// The engine's clock goes ahead of the calls', which have the real one: nothing that they write is
/// in the future.
fn now() -> Timestamp {
    static NOW: OnceLock<Timestamp> = OnceLock::new();
    *NOW.get_or_init(|| wall_clock().plus_ms(3_600_000))
}

/// A run of a real system, and how it ends undisturbed.
struct Play {
    stage: Rc<Stage>,
    start: Start,
    foreign: Foreign,
    workflow: Workflow,
    calls: u64,
    /// At each call of the undisturbed life.
    forks: Vec<Fork>,
    undisturbed: BTreeMap<String, String>,
}

impl Play {
    fn new(stage: &Rc<Stage>, start: Start) -> Self {
        let foreign = foreign(stage, &start.files);
        let workflow = workflow_of(foreign.site.workflow);
        let (stage, undisturbed, forks) = (Rc::clone(stage), BTreeMap::new(), Vec::new());
        let mut play = Self { stage, start, foreign, workflow, calls: 0, forks, undisturbed };
        let mut world = play.world(0, &[]);
        let told = play.foreign.parse(world.site_files(&play.foreign.site)).unwrap().told.unwrap();
        assert_eq!(told.standing(now()).point.code, play.start.code, "{}", play.start.name);
        world.keep_forks();
        boot(&mut world, &play.workflow, &Choices::default(), Some(&play.foreign));
        play.forks = world.take_forks();
        (play.calls, play.undisturbed) = play.live(0, &[], &mut Tally::default());
        play
    }

    fn world(&self, seed: u64, crashes: &[(u64, Crash)]) -> SimWorld {
        let mut world = SimWorld::new(seed);
        world.now_us = now().as_micros();
        world.begin_repository();
        for (path, bytes) in &self.start.files {
            world.disk.write_durably(
                &format!("project/{path}"),
                bytes,
                world.now_us - 1_800_000_000,
            );
        }
        world.story = self.story(crashes, seed);
        world.stage = Some(Rc::clone(&self.stage));
        world.fuses = crashes.iter().copied().collect();
        world
    }

    fn story(&self, crashes: &[(u64, Crash)], seed: u64) -> String {
        format!("{:?}, {}, {crashes:?}, seed {seed}", self.stage.system, self.start.name)
    }

    /// The world after the first crash, if the engine need not be driven to it.
    fn forked(&self, crashes: &[(u64, Crash)], seed: u64) -> Option<SimWorld> {
        let at = usize::try_from(crashes.first()?.0).unwrap();
        self.forks.get(at)?.crash(crashes, seed, self.story(crashes, seed))
    }

    /// How many calls it took, and what it left.
    #[expect(clippy::print_stdout, reason = "a test's output says what it explored")]
    fn live(
        &self,
        seed: u64,
        crashes: &[(u64, Crash)],
        tally: &mut Tally,
    ) -> (u64, BTreeMap<String, String>) {
        let forked = self.forked(crashes, seed);
        let mut is_dark = forked.is_some();
        let mut world = forked.unwrap_or_else(|| self.world(seed, crashes));
        let mut choices = Choices::default();
        for lives in 0.. {
            assert!(lives < crashes.len() + 6, "it does not come to an end: {}", world.story);
            let booted = if std::mem::take(&mut is_dark) {
                Booted::Dark
            } else {
                boot(&mut world, &self.workflow, &choices, Some(&self.foreign))
            };
            match booted {
                Booted::With(Status::Completed) => break,
                Booted::With(status) => panic!("{status:?}: {}", world.story),
                Booted::Dark | Booted::InUse => end::check_that_files_parse(&world),
                Booted::Refused { findings, .. } => {
                    assert!(!crashes.is_empty(), "{findings:#?}: {}", world.story);
                    let why: Vec<&str> = findings.iter().map(|it| it.message.as_str()).collect();
                    println!("refused after {crashes:?}: {}", why.join("; "));
                    tally.refused += 1;
                    choices = Choices::default();
                    choices.accept_all(&findings);
                    continue;
                }
            }
            choices = Choices::default();
        }
        let calls = world.calls;
        tally.crashes += u64::try_from(crashes.len() - world.fuses.len()).unwrap();
        world.fuses.clear();
        let again = boot(&mut world, &self.workflow, &Choices::default(), Some(&self.foreign));
        assert!(matches!(again, Booted::With(Status::Completed)), "{}", world.story);
        let told = self.foreign.parse(world.site_files(&self.foreign.site)).unwrap().told.unwrap();
        assert_eq!(told.standing(now()).point.code, "complete", "{}", world.story);
        check_journal(&world, &|| world.story.clone());
        (calls, end::left(&world))
    }

    fn crash(&self, crashes: &[(u64, Crash)], seed: u64, tally: &mut Tally) {
        let (_, left) = self.live(seed, crashes, tally);
        let paths: Vec<&String> = left.keys().collect();
        let expected: Vec<&String> = self.undisturbed.keys().collect();
        let story = self.story(crashes, seed);
        assert_eq!(paths, expected, "{story}");
        for (path, text) in &left {
            assert_eq!(*text, self.undisturbed[path], "{path}: {story}");
        }
    }
}

/// Every `step`th start of a system, killed at every call, in the four ways by turns.
#[track_caller]
#[expect(clippy::print_stdout, reason = "a test's output says what it explored")]
fn survives(system: System, (from, step): (usize, usize), crashes: u64) {
    let stage = Rc::new(Stage::new(system));
    let mut tally = Tally::default();
    for start in starts(&stage, now()).into_iter().skip(from).step_by(step) {
        let play = Play::new(&stage, start);
        let ways = Crash::ALL.into_iter().cycle();
        for ((fuse, first), second) in (0..play.calls).zip(ways.clone()).zip(ways.skip(1)) {
            play.crash(&[(fuse, first)], fuse, &mut tally);
            // And now and then another one while it recovers.
            if fuse % AGAIN == 0 {
                play.crash(&[(fuse, first), (fuse % SOON, second)], fuse, &mut tally);
            }
        }
        println!("{}: {} calls of the engine", play.start.name, play.calls);
    }
    println!("{} different built-in calls", stage.calls());
    tally.require(crashes);
}

/// The starts by turns, so that each test takes a part of the time.
macro_rules! in_halves {
    ($name:ident, $system:expr, $first:expr, $second:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn from_every_second_start() {
                survives($system, (0, 2), $first);
            }

            #[test]
            fn from_the_other_starts() {
                survives($system, (1, 2), $second);
            }
        }
    };
}

in_halves!(a_run_of_agent_memory_survives_a_crash_at_every_call, System::AgentMemory, 650, 320);
in_halves!(a_run_of_dotagent_survives_a_crash_at_every_call, System::Dotagent, 350, 340);
in_halves!(a_pipeline_survives_a_crash_at_every_call, System::Pipeline, 340, 360);
in_halves!(stories_loops_and_specs_survive_a_crash_at_every_call, System::Sdlc, 250, 230);
