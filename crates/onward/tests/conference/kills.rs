//! Killed at every event of the native log, a conference ends with the same files.

use std::{path::Path, process::Child};

use crate::{
    bench::{id, kill_all, watched},
    hall::Hall,
};

/// The engine alone: what it started goes on without it.
fn kill_engine(engine: &mut Child, _run: &Path) {
    engine.kill().unwrap();
    engine.wait().unwrap();
}

/// As if the machine had stopped: the engine, the supervisor, the call or agent in mid-write.
fn kill_everything(engine: &mut Child, run: &Path) {
    kill_engine(engine, run);
    kill_all(run);
}

fn undisturbed() -> Hall {
    let hall = Hall::new(|text| text);
    hall.bench.exits("run conference --no-input", 11);
    hall.close("keep");
    hall
}

#[track_caller]
fn killed_at_every_event(kill: fn(&mut Child, &Path)) {
    let hall = Hall::new(|text| text);
    let mut engine = hall.start("run conference --no-input");
    let mut seen = 0;
    let mut kills = 0;
    while hall.sees_more(&mut engine, seen) {
        kill(&mut engine, &hall.run_dir());
        kills += 1;
        seen = hall.events().len();
        engine = hall.start("resume --no-input --yes");
    }
    assert_eq!(engine.wait().unwrap().code(), Some(11), "{}", hall.bench.text("said"));
    hall.close("keep");
    // Some events come so close to each other that one kill is for several.
    assert!(kills >= 12, "{kills}");
    let reference = undisturbed();
    let (left, wanted) = (hall.left(), reference.left());
    for (name, text) in &wanted {
        assert_eq!(left.get(name), Some(text), "{name} after {kills} kills");
    }
    assert_eq!(left.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    assert_eq!(hall.names().iter().filter(|it| *it == "researcher.iteration").count(), 27);
    let run = hall.run_dir();
    let finished = watched(&run).finished();
    let mut steps: Vec<&String> = finished.iter().map(|(step, _)| step).collect();
    steps.sort();
    let count = steps.len();
    steps.dedup();
    assert_eq!(steps.len(), count, "a step of {} was finished twice", id(&run));
}

#[test]
fn a_conference_whose_engine_is_killed_at_every_event_ends_with_the_same_files() {
    killed_at_every_event(kill_engine);
}

#[test]
fn a_conference_whose_every_process_is_killed_at_every_event_ends_with_the_same_files() {
    killed_at_every_event(kill_everything);
}
