//! Killed at every event, a run ends with the same files.

use std::path::Path;

use crate::{
    bench::{kill_all, watched},
    desk::{Desk, RUN},
    leash::Leash,
};

/// The engine alone: what it started goes on without it.
fn kill_engine(engine: &mut Leash, _run: &Path) {
    engine.kill();
}

/// As if the machine had stopped: the engine, the supervisor, the call or agent in mid-write.
fn kill_everything(engine: &mut Leash, run: &Path) {
    kill_engine(engine, run);
    kill_all(run);
}

#[track_caller]
fn killed_at_every_event(kill: fn(&mut Leash, &Path)) {
    let desk = Desk::new();
    let mut engine = desk.leash(&format!("run agent-memory --no-input --input dir={RUN}"));
    let (mut seen, mut kills, mut approved) = (0, 0, false);
    loop {
        if engine.until(|| desk.events().len() > seen) {
            kill(&mut engine, &desk.run_dir());
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
    let finished = watched(&desk.run_dir()).finished();
    let mut steps: Vec<&String> = finished.iter().map(|(step, _)| step).collect();
    let count = steps.len();
    steps.sort();
    steps.dedup();
    assert_eq!(steps.len(), count, "a step was finished twice");
}

#[test]
fn a_run_whose_engine_is_killed_at_every_event_ends_with_the_same_files() {
    killed_at_every_event(kill_engine);
}

#[test]
fn a_run_whose_every_process_is_killed_at_every_event_ends_with_the_same_files() {
    killed_at_every_event(kill_everything);
}
