//! Killed at every event, a run ends with the same files.

use serde_json::Value;

use crate::{
    bench::{Bench, kill_all, watched},
    desk::{Desk, RUN},
    support::boundaries::{At, Dies, Scene, killed_at_every_boundary},
};

#[track_caller]
fn finishes_each_step_once(desk: &Desk) {
    let mut finished = watched(&desk.run_dir()).finished();
    let count = finished.len();
    finished.sort();
    finished.dedup_by(|one, other| one.0 == other.0);
    assert_eq!(finished.len(), count, "a step was finished twice");
}

/// A task has three attempts, and T003 needs two of them: it dies in its first alone.
fn is_further(event: &Value) -> bool {
    let attempt = event["details"]["attempt"].as_u64();
    event["event_type"] == "task-claimed" && attempt > Some(1)
}

/// As if the machine had stopped, in the middle of a call that writes native files.
#[test]
fn a_run_whose_every_process_is_killed_at_every_event_ends_with_the_same_files() {
    let desk = Desk::new();
    let mut engine = desk.leash(&format!("run agent-memory --no-input --input dir={RUN}"));
    let (mut seen, mut kills, mut approved) = (0, 0, false);
    loop {
        if engine.until(|| desk.events().iter().skip(seen).any(|it| !is_further(it))) {
            engine.kill();
            kill_all(&desk.run_dir());
            kills += 1;
            seen = desk.events().len();
        } else {
            let code = engine.exits();
            if code == Some(11) && !approved {
                desk.bench.exits("approve", 0);
                approved = true;
            } else {
                assert_eq!(code, Some(0), "{}", engine.last);
                break;
            }
        }
        engine = desk.leash("resume --no-input --yes");
    }
    let reference = Desk::new();
    reference.approved();
    reference.bench.exits("resume --no-input --yes", 0);
    let (left, wanted) = (desk.left(), reference.left());
    for (name, text) in &wanted {
        assert_eq!(left.get(name), Some(text), "{name} after {kills} kills");
    }
    assert_eq!(left.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    // One step runs at a time, and between two kills no second one ends.
    assert!(kills * 4 >= seen, "{kills} kills for {seen} events");
    finishes_each_step_once(&desk);
}

impl Scene for Desk {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn answer(&self) {
        self.bench.exits("approve", 0);
    }

    /// Every event can be read, and so can the task graph.
    fn holds(&self) {
        self.events();
        let graph = self.text("task-graph.json");
        assert!(graph.is_empty() || serde_json::from_str::<Value>(&graph).is_ok());
    }
}

#[track_caller]
fn dies_at_every_boundary(who: Dies, of: fn(&str) -> bool) {
    let reference = Desk::new();
    reference.approved();
    reference.bench.exits("resume --no-input --yes", 0);
    let desk = Desk::new();
    let run = format!("run agent-memory --no-input --input dir={RUN}");
    let kills = killed_at_every_boundary(&desk, &run, (who, At::Records), of);
    let mut missed = kills.missed(&reference.run_dir());
    // After a kill the files say that every task is done, and the rework ends without another look.
    missed.retain(|it| !it.contains("rework[4]") && it != "loop.turned rework 4");
    assert!(missed.is_empty(), "{missed:?}");
    assert_eq!(desk.left(), reference.left());
    let is_again = |it: &Value| !it["details"]["cut_off"].is_null();
    // What an engine started goes on without it, and is one attempt.
    assert!(who == Dies::Everything || !desk.log().iter().any(is_again), "{:#?}", desk.log());
    finishes_each_step_once(&desk);
}

/// In the first pass over all tasks.
fn is_of_task(step: &str) -> bool {
    step.starts_with("execute[")
}

/// From the first look at what is left on.
fn is_late(step: &str) -> bool {
    let late = ["rework", "finished", "cleanup", "pr", "prepared", "consolidate", "close"];
    late.contains(&step.split(['/', '[']).next().unwrap_or_default())
}

fn is_early(step: &str) -> bool {
    !is_of_task(step) && !is_late(step)
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_of_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, is_of_task);
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_before_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, is_early);
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_after_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, is_late);
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_of_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, is_of_task);
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_before_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, is_early);
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_after_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, is_late);
}
