//! Killed at every event of the native log, a conference ends with the same files.

use std::path::Path;

use onward_core::address::Address;
use onward_engine::world::out_name;

use crate::{
    bench::{id, kill_all, watched},
    hall::Hall,
    leash::{Leash, Share},
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

fn undisturbed() -> Hall {
    let hall = Hall::new(|text| text);
    hall.bench.exits("run conference --no-input", 11);
    hall.close("keep");
    hall
}

#[track_caller]
fn killed_at_each(kill: fn(&mut Leash, &Path), share: Share) {
    let hall = Hall::new(|text| text);
    let mut engine = hall.leash("run conference --no-input");
    let (mut seen, mut kills) = (0, 0);
    while engine.until(|| hall.events().len() > seen) {
        seen = hall.events().len();
        if share.takes(seen) {
            kill(&mut engine, &hall.run_dir());
            kills += 1;
            seen = hall.events().len();
            engine = hall.leash("resume --no-input --yes");
        }
    }
    assert_eq!(engine.exits(), Some(11), "{}", engine.last);
    hall.close("keep");
    // Half of the events, and of those not all are seen: steps that follow each other are seen one
    // by one; up to three researchers work side by side.
    assert!(kills * 2 * 4 >= seen, "{kills} kills for {seen} events");
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
fn a_conference_whose_engine_is_killed_at_every_odd_event_ends_with_the_same_files() {
    killed_at_each(kill_engine, Share::Odd);
}

#[test]
fn a_conference_whose_engine_is_killed_at_every_even_event_ends_with_the_same_files() {
    killed_at_each(kill_engine, Share::Even);
}

#[test]
fn a_conference_whose_every_process_is_killed_at_every_odd_event_ends_with_the_same_files() {
    killed_at_each(kill_everything, Share::Odd);
}

#[test]
fn a_conference_whose_every_process_is_killed_at_every_even_event_ends_with_the_same_files() {
    killed_at_each(kill_everything, Share::Even);
}

/// The built-in function behind a step that writes native files.
fn function(step: &str) -> Option<&'static str> {
    let writers = [
        ("start", "conference.start"),
        ("/begin", "conference.begin"),
        ("/settle", "conference.settle"),
        ("/roll", "conference.roll"),
        ("poster/publish", "conference.poster"),
        ("review/publish", "conference.review"),
        ("/transfer", "conference.transfer"),
        ("/converge", "conference.converge"),
        ("synthesis/publish", "conference.synthesis"),
        ("close", "conference.close"),
    ];
    writers.into_iter().find(|(end, _)| step.ends_with(end)).map(|(_, name)| name)
}

#[test]
fn a_call_that_is_made_again_changes_no_file() {
    let hall = undisturbed();
    let before = hall.left();
    let run = hall.run_dir();
    let mut calls = 0;
    for (step, attempt) in watched(&run).finished() {
        let Some(name) = function(&step) else { continue };
        let with = out_name(&Address::from_text(&step), attempt, "with");
        let mut command = hall.bench.command(&format!("call {name}"));
        command.env("ONWARD_WITH", run.join(with)).env("ONWARD_STEP", &step);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{step}: {output:?}");
        calls += 1;
    }
    assert_eq!(calls, 2 + 1 + 3 * (6 + 9), "start, synthesis, close, and fifteen in each round");
    assert_eq!(hall.left(), before);
}
