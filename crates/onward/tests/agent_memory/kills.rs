//! Killed at every event, a run ends with the same files.

use crate::{
    bench::{kill_all, watched},
    desk::{Desk, RUN},
    support::boundary::{Boundaries, Dies},
};

#[track_caller]
fn finishes_each_step_once(desk: &Desk) {
    let mut finished = watched(&desk.run_dir()).finished();
    let count = finished.len();
    finished.sort();
    finished.dedup_by(|one, other| one.0 == other.0);
    assert_eq!(finished.len(), count, "a step was finished twice");
}

/// As if the machine had stopped, in the middle of a call that writes native files.
#[test]
fn a_run_whose_every_process_is_killed_at_every_event_ends_with_the_same_files() {
    let desk = Desk::new();
    let mut engine = desk.leash(&format!("run agent-memory --no-input --input dir={RUN}"));
    let (mut seen, mut kills, mut approved) = (0, 0, false);
    loop {
        if engine.until(|| desk.events().len() > seen) {
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

#[track_caller]
fn dies_at_every_boundary(who: Dies, of: fn(&str) -> bool) {
    let reference = Desk::new();
    reference.approved();
    reference.bench.exits("resume --no-input --yes", 0);
    let desk = Desk::new();
    let resume = || "resume --no-input --yes".to_owned();
    let mut all = Boundaries::new(&desk.bench, who, &resume, of);
    let answers = || drop(desk.bench.exits("approve", 0));
    let holds = || {
        desk.events();
        let graph = desk.text("task-graph.json");
        assert!(graph.is_empty() || serde_json::from_str::<serde_json::Value>(&graph).is_ok());
    };
    all.all(&format!("run agent-memory --no-input --input dir={RUN}"), answers, holds);
    let mut missed = all.missed(&reference.run_dir());
    // After a kill the files say that every task is done, and the rework ends without another look.
    missed.retain(|it| !it.contains("rework[4]") && it != "loop.turned rework 4");
    assert!(missed.is_empty(), "{missed:?}");
    assert_eq!(desk.left(), reference.left());
    finishes_each_step_once(&desk);
}

fn is_of_task(boundary: &str) -> bool {
    boundary.contains("execute[")
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, |_| true);
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_of_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, is_of_task);
}

#[test]
fn a_run_whose_every_process_dies_at_every_other_boundary_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, |it| !is_of_task(it));
}
