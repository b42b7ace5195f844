//! Attempts that wait for a slot.

use onward_core::{address::Address, launch::Launch};
use onward_engine::world::supervisor::{HandsEvent, seals::Line};

use crate::bench::{Bench, Engine, TERM, argv, exited, hear, say, shell};

/// Steps of which the log has that they were about to be spawned, in order.
fn spawned(bench: &Bench) -> Vec<String> {
    let lines = bench.seals().lines.into_iter();
    let steps = lines.filter_map(|line| match line {
        Line::Spawning(it) => Some(it.step.to_string()),
        Line::Opened(_)
        | Line::Spawned(_)
        | Line::Exited(_)
        | Line::Snapshot(_)
        | Line::OutputLost(_)
        | Line::Grouped(_)
        | Line::Stray(_)
        | Line::Unknown(_) => None,
    });
    steps.collect()
}

fn trues(steps: &[&str]) -> Vec<Launch> {
    steps.iter().map(|step| argv(step, &["true"])).collect()
}

/// The steps that are given back, the last event of which is the last of `count`.
fn given_back(engine: &Engine, count: usize) -> Vec<String> {
    let mut steps = Vec::new();
    while steps.len() < count {
        match engine.next() {
            HandsEvent::Withdrawn { step, attempt: 1 } => steps.push(step.to_string()),
            HandsEvent::Spawned(_) => {}
            other @ (HandsEvent::Withdrawn { .. }
            | HandsEvent::Sealed(_)
            | HandsEvent::Gone { .. }) => panic!("{other:?}"),
        }
    }
    steps
}

#[test]
fn what_waits_begins_in_order_and_never_more_at_once_than_there_are_slots() {
    let bench = Bench::new("slots");
    let mut engine = bench.connect(1);
    // Each fails if another one is at work; with one slot none is.
    let alone = "mkdir busy || exit 1; rmdir busy";
    let all: Vec<Launch> = ["e", "a", "d", "b", "c"].map(|step| shell(step, alone)).into();
    engine.hands.queue(&all[..3], Some(1)).unwrap();
    engine.hands.queue(&all[3..], Some(1)).unwrap();
    let sealed: Vec<_> = all.iter().map(|_| engine.next_seal()).collect();
    assert!(sealed.iter().all(|seal| seal.ending == exited(0)), "{sealed:?}");
    assert_eq!(spawned(&bench), ["e", "a", "d", "b", "c"]);
    engine.leave();
}

#[test]
fn what_could_not_start_leaves_its_slot_to_the_next() {
    let bench = Bench::new("absent");
    let mut engine = bench.connect(1);
    let all = [argv("a", &["no-such-program"]), argv("b", &["true"])];
    engine.hands.queue(&all, Some(1)).unwrap();
    assert_eq!(engine.next_seal().step.as_str(), "a");
    assert_eq!(engine.next_seal().ending, exited(0));
    engine.leave();
}

#[test]
fn what_waits_is_given_back_when_it_is_withdrawn_and_what_runs_goes_on() {
    let bench = Bench::new("withdrawn");
    let (up, go) = (bench.fifo("up"), bench.fifo("go"));
    let mut engine = bench.connect(1);
    engine.hands.queue(&[shell("a", "echo > up; cat go; exit 6")], Some(1)).unwrap();
    engine.hands.queue(&trues(&["b", "c"]), Some(1)).unwrap();
    hear(up);
    engine.hands.withdraw().unwrap();
    assert_eq!(given_back(&engine, 2), ["b", "c"]);
    say(go);
    assert_eq!(engine.next_seal().ending, exited(6));
    assert_eq!(spawned(&bench), ["a"]);
    engine.leave();
}

#[test]
fn a_stop_gives_back_what_waits() {
    let bench = Bench::new("stopped");
    let up = bench.fifo("up");
    let mut engine = bench.connect(1);
    engine.hands.queue(&[shell("a", "echo > up; exec sleep 1000")], Some(1)).unwrap();
    engine.hands.queue(&trues(&["b", "c", "d"]), Some(1)).unwrap();
    hear(up);
    engine.hands.stop(&Address::from_text("c"), 1, TERM).unwrap();
    assert_eq!(given_back(&engine, 1), ["c"]);
    engine.hands.stop_all(TERM).unwrap();
    assert_eq!(given_back(&engine, 2), ["b", "d"]);
    assert_eq!(engine.next_seal().step.as_str(), "a");
    assert_eq!(spawned(&bench), ["a"]);
    engine.leave();
}

#[test]
fn what_waits_for_an_engine_that_is_gone_never_begins() {
    let bench = Bench::new("forsaken");
    let (up, go) = (bench.fifo("up"), bench.fifo("go"));
    let mut first = bench.connect(1);
    first.hands.queue(&[shell("a", "echo > up; cat go; exit 6")], Some(1)).unwrap();
    first.hands.queue(&trues(&["b", "c"]), Some(1)).unwrap();
    hear(up);
    drop(first);
    let mut second = bench.connect(2);
    let alive: Vec<&str> = second.welcome.alive.iter().map(|it| it.step.as_str()).collect();
    assert_eq!(alive, ["a"]);
    say(go);
    assert_eq!(second.next_seal().ending, exited(6));
    assert_eq!(spawned(&bench), ["a"], "the next engine decides what becomes of them");
    second.hands.queue(&trues(&["b"]), Some(1)).unwrap();
    assert_eq!(second.next_seal().ending, exited(0));
    second.leave();
}
