//! Engines come and go, and so may the supervisor itself; attempts are not lost.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
};

use onward_core::{address::Address, launch::Launch};
use onward_engine::world::supervisor::{
    HandsError, HandsEvent, Whereabouts, boot_id,
    orphans::{clear_orphans, end_orphans, sweep},
    seals::{Line, read_seals},
};
use rustix::process::Signal;

use crate::bench::{
    Bench, TERM, argv, await_death, engine_process, exited, freeze, hear, is_living, kill, say,
    shell, signal,
};

#[test]
fn a_child_outlives_its_engine_and_its_seal_waits_for_the_next() {
    let bench = Bench::new("outlives");
    let (up, go) = (bench.fifo("up"), bench.fifo("go"));
    let mut engine = engine_process(&bench, "echo > up; read word < go; echo later; exit 6");
    hear(up);
    engine.kill().unwrap();
    engine.wait().unwrap();
    assert_eq!(bench.tagged().len(), 1, "the child goes on without it");
    say(go);
    // The next engine comes when all is over, or just before: either way it learns of it once.
    let next = bench.connect(2);
    assert!(!next.welcome.is_new);
    let log = read_seals(&bench.place.seals(), Some(next.welcome.log_bytes)).unwrap();
    let waiting: Vec<_> = log.seals().cloned().collect();
    let seal = match &waiting[..] {
        [] => {
            assert_eq!(next.welcome.alive.len(), 1);
            next.next_seal()
        }
        [seal] => seal.clone(),
        more => panic!("{more:?}"),
    };
    assert_eq!((seal.step.as_str(), seal.attempt, seal.ending), ("a", 1, exited(6)));
    assert_eq!(bench.output("a.1.out").as_deref(), Some("later\n"));
    next.leave();
}

#[test]
fn a_seal_nobody_was_told_is_on_disk_and_the_supervisor_leaves_by_itself() {
    let mut bench = Bench::new("alone");
    bench.linger_ms = 0;
    let (up, go) = (bench.fifo("up"), bench.fifo("go"));
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[shell("a", "echo > up; cat go; exit 6")]).unwrap();
    hear(up);
    let supervisor = bench.supervisor().unwrap();
    drop(engine);
    say(go);
    await_death(supervisor.pid);
    let sealed: Vec<_> = bench.seals().seals().map(|seal| seal.ending.clone()).collect();
    assert_eq!(sealed, [exited(6)]);
    assert_eq!(bench.supervisor(), None, "it took its file away");
    assert!(!bench.place.complaints().exists(), "and the log in which it said nothing");
    let sockets = std::fs::read_dir(&bench.place.socket_dir).unwrap().count();
    assert_eq!(sockets, 0, "and its socket");
    let next = bench.connect(2);
    assert!(next.welcome.is_new);
    next.leave();
}

#[test]
fn a_new_engine_takes_over_a_living_child_and_hears_its_end() {
    let bench = Bench::new("reattach");
    let go = bench.fifo("go");
    let mut first = bench.connect(1);
    first.hands.spawn(&[shell("a", "cat go; exit 7")]).unwrap();
    let alive = first.next_spawned();
    first.hands.spawn(&[argv("b", &["true"])]).unwrap();
    assert_eq!(first.next_seal().step.as_str(), "b");
    drop(first);
    let second = bench.connect(2);
    assert_eq!(second.welcome.alive, [alive]);
    let log = read_seals(&bench.place.seals(), Some(second.welcome.log_bytes)).unwrap();
    assert_eq!(log.seals().count(), 1, "what came before is in the log");
    say(go);
    assert_eq!(second.next_seal().ending, exited(7));
    second.leave();
}

#[test]
fn the_newest_engine_alone_is_listened_to() {
    let bench = Bench::new("epochs");
    let first = bench.connect(5);
    let refused = bench.try_connect(4).unwrap_err();
    assert!(matches!(refused, HandsError::TakenOver { epoch: 5 }), "{refused}");
    let second = bench.connect(6);
    assert_eq!(first.next(), HandsEvent::Gone { why: None });
    // One that wrote nothing leaves its epoch to the next.
    let third = bench.connect(6);
    assert_eq!(second.next(), HandsEvent::Gone { why: None });
    drop((first, second, third));
    let refused = bench.try_connect(5).unwrap_err();
    assert!(matches!(refused, HandsError::TakenOver { epoch: 6 }), "remembered when it is gone");
    bench.connect(7).leave();
}

/// Both speak while the supervisor cannot hear: the older one's wish is then never fulfilled.
#[test]
fn what_an_older_engine_still_wanted_is_dropped() {
    let bench = Bench::new("unread");
    let mut old = bench.connect(1);
    let here = Whereabouts::read(&bench.place).unwrap();
    freeze(here.pid);
    old.hands.spawn(&[argv("late", &["true"])]).unwrap();
    let mut new = UnixStream::connect(&here.socket).unwrap();
    let hello = r#"{"ask":"hello","version":1,"epoch":2,"run":"unread","env":[]}"#;
    new.write_all(format!("{hello}\n{{\"ask\":\"shutdown\"}}\n").as_bytes()).unwrap();
    signal(here.pid, Signal::CONT);
    let mut answer = String::new();
    new.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with(r#"{"say":"welcome","alive":[],"log_bytes":"#), "{answer}");
    assert_eq!(old.next(), HandsEvent::Gone { why: None });
    await_death(here.pid);
    let lines = bench.seals().lines;
    assert!(matches!(lines[..], [Line::Opened(_)]), "{lines:?}");
}

#[test]
fn a_foreign_run_or_version_is_refused_and_noise_is_hung_up_on() {
    let bench = Bench::new("foreign");
    let engine = bench.connect(1);
    let here = Whereabouts::read(&bench.place).unwrap();
    let ask = |hello: &str| {
        let mut stream = UnixStream::connect(&here.socket).unwrap();
        stream.write_all(format!("{hello}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let version = ask(r#"{"ask":"hello","version":99,"epoch":9,"run":"foreign","env":[]}"#);
    assert_eq!(version, "{\"say\":\"refused\",\"why\":\"version\",\"version\":1}\n");
    let run = ask(r#"{"ask":"hello","version":1,"epoch":9,"run":"other","env":[]}"#);
    assert_eq!(run, "{\"say\":\"refused\",\"why\":\"run\",\"run\":\"foreign\"}\n");
    assert_eq!(ask("noise"), "");
    assert_eq!(ask(r#"{"ask":"shutdown"}"#), "", "a stranger cannot end it");
    engine.leave();
}

#[test]
fn after_the_supervisors_death_its_orphans_are_found_and_ended() {
    let bench = Bench::new("orphans");
    let (up, other) = (bench.fifo("up"), bench.fifo("other"));
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > other; exec sleep 1000' & \
        env -i setsid sleep 1000 & echo $$ > up; wait";
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[shell("x/a", script)]).unwrap();
    assert_eq!(engine.next_spawned().step.as_str(), "x/a");
    let main: i32 = hear(up).parse().unwrap();
    let other: i32 = hear(other).parse().unwrap();
    kill(bench.supervisor().unwrap());
    while engine.next() != (HandsEvent::Gone { why: None }) {}
    let seals = bench.seals();
    let (spawned, _) = seals.kin_since_boot(&boot_id().unwrap(), &bench.place.run_dir);
    assert_eq!(spawned.iter().map(|it| it.pid).collect::<Vec<_>>(), [main]);
    let found = sweep(&bench.place, &seals).unwrap();
    let find = |pid| found.iter().find(|orphan| orphan.identity.pid == pid);
    assert_eq!(found.len(), 3, "also the one without a tag: {found:?}");
    assert_eq!(find(main).unwrap().step, Some(Address::from_text("x/a")));
    assert_eq!(find(other).unwrap().attempt, Some(1));
    let stop = onward_engine::world::supervisor::Stop { grace_ms: 100, ..TERM };
    let (ended, left) = clear_orphans(&bench.place, &seals, stop).unwrap();
    assert_eq!((ended.len(), left.len()), (3, 0));
    assert!(!is_living(main) && !is_living(other));
    let next = bench.connect(2);
    assert!(next.welcome.is_new && next.welcome.alive.is_empty());
    next.leave();
    let opened = |line: &&Line| matches!(line, Line::Opened(_));
    assert_eq!(bench.seals().lines.iter().filter(opened).count(), 2);
}

#[test]
fn an_orphan_whose_pid_was_used_again_is_spared() {
    let bench = Bench::new("recycled");
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[argv("a", &["sleep", "1000"])]).unwrap();
    let alive = engine.next_spawned();
    let found = sweep(&bench.place, &bench.seals()).unwrap();
    let [orphan] = &found[..] else { panic!("{found:?}") };
    assert_eq!(orphan.identity, alive.identity());
    let mut earlier = orphan.clone();
    earlier.identity.start_time -= 1;
    let left = end_orphans(&[earlier], onward_engine::world::supervisor::Stop::default()).unwrap();
    assert_eq!(left, []);
    assert!(is_living(alive.pid));
    engine.hands.stop_all(TERM).unwrap();
    engine.next_seal();
    engine.leave();
}

#[test]
fn a_run_has_one_supervisor() {
    let bench = Bench::new("one");
    let engine = bench.connect(1);
    let config = bench.config(2);
    let second =
        std::process::Command::new(&config.exec[0]).args(&config.exec[1..]).output().unwrap();
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("AlreadyRunning"), "{said}");
    engine.leave();
}

#[test]
fn a_supervisor_that_cannot_start_is_an_error_that_says_where_to_look() {
    let bench = Bench::new("cannot");
    let mut config = bench.config(1);
    config.exec = ["sh", "-c", "echo no luck >&2; exit 9"].map(Into::into).to_vec();
    let error = onward_engine::world::supervisor::Hands::connect_or_start(&config).unwrap_err();
    assert!(matches!(&error, HandsError::DidNotStart { status, .. } if status.code() == Some(9)));
    assert!(error.hint().unwrap().contains("supervisor.log"));
    let said = std::fs::read_to_string(bench.place.complaints()).unwrap();
    assert!(said.starts_with("no luck\n"));
}

#[test]
fn a_repeated_request_for_a_running_attempt_starts_nothing() {
    let bench = Bench::new("repeated");
    let mut engine = bench.connect(1);
    let launch: Launch = argv("a", &["sleep", "1000"]);
    engine.hands.spawn(&[launch.clone(), launch]).unwrap();
    assert_eq!(engine.next_spawned(), engine.next_spawned());
    assert_eq!(bench.tagged().len(), 1);
    engine.hands.stop_all(TERM).unwrap();
    engine.next_seal();
    engine.leave();
    assert_eq!(bench.seals().seals().count(), 1);
}

#[test]
fn the_heart_beats_while_a_child_runs() {
    let bench = Bench::new("heart");
    let beat = || std::fs::metadata(bench.place.heartbeat()).unwrap().modified().unwrap();
    let mut engine = bench.connect(1);
    assert!(!bench.place.heartbeat().exists());
    // Sealed attempts tell the time: between these two seals lies at least one beat.
    let pause = |step: &str| shell(step, "sleep 1.3");
    engine.hands.spawn(&[pause("a")]).unwrap();
    engine.next_seal();
    let first = beat();
    engine.hands.spawn(&[pause("b")]).unwrap();
    engine.next_seal();
    assert!(beat() > first);
    engine.leave();
}
