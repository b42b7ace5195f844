//! Descendants: none survives its attempt, and none is touched before.

use onward_core::{evidence::Ending, launch::Launch};
use onward_engine::world::supervisor::{Stop, StopSignal};

use crate::bench::{Bench, TERM, argv, await_death, exited, hear, is_living, say, shell};

/// In a session of its own, deaf to polite requests.
const STUBBORN: &str = "setsid sh -c 'trap \"\" TERM INT; echo up; exec sleep 1000'";

#[test]
fn an_idle_time_out_ends_grandchildren_in_other_sessions() {
    let bench = Bench::new("idle-family");
    let script = format!("{STUBBORN} & sleep 1000");
    let seals = bench.run(&[Launch { idle_ms: Some(2_000), ..shell("a", &script) }]);
    assert_eq!(seals[0].ending, Ending::TimedOut { idle: true });
    assert_eq!(bench.output("a.1.out").as_deref(), Some("up\n"), "the grandchild was there");
    assert_eq!(bench.tagged(), [0_i32; 0]);
}

#[test]
fn a_wall_time_out_ends_grandchildren_in_other_sessions() {
    let bench = Bench::new("wall-family");
    let script = format!("{STUBBORN} & while :; do sleep 0.1; echo; done");
    let seals = bench.run(&[Launch { timeout_ms: Some(2_000), ..shell("a", &script) }]);
    assert_eq!(seals[0].ending, Ending::TimedOut { idle: false });
    assert!(bench.output("a.1.out").unwrap().contains("up\n"), "the grandchild was there");
    assert_eq!(bench.tagged(), [0_i32; 0]);
}

#[test]
fn what_a_finished_command_leaves_behind_is_gone_before_its_seal() {
    let bench = Bench::new("leftovers");
    bench.fifo("up");
    // A group member, one in another session, and a daemon that dropped its whole environment.
    let script = "sleep 1000 & \
        setsid sleep 1000 & \
        env -i setsid sh -c 'sleep 1000 & echo $! $$ > up; wait' & \
        cat up > pids";
    let seals = bench.run(&[shell("a", script)]);
    assert_eq!(seals[0].ending, exited(0));
    assert_eq!(bench.tagged(), [0_i32; 0]);
    let pids = std::fs::read_to_string(bench.place.project_dir.join("pids")).unwrap();
    let pids: Vec<i32> = pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2);
    assert!(!pids.into_iter().any(is_living));
}

#[test]
fn leftovers_are_asked_first_and_killed_only_after_the_grace() {
    let mut bench = Bench::new("asked");
    bench.grace_ms = 60_000;
    let up = bench.fifo("up");
    let polite =
        "setsid sh -c 'trap \"echo bye; exit\" TERM; echo > up; while :; do sleep 0.1; done'";
    let script = format!("{polite} & cat up");
    let seals = bench.run(&[shell("a", &script)]);
    drop(up);
    assert_eq!(seals[0].ending, exited(0));
    assert_eq!(bench.output("a.1.out").as_deref(), Some("\nbye\n"), "its last words are kept");
}

#[test]
fn a_daemon_of_a_running_attempt_outlives_its_neighbours() {
    let bench = Bench::new("neighbours");
    let (up, go) = (bench.fifo("up"), bench.fifo("go"));
    // The daemon's parent ends at once, so it is an orphan in our hands while `a` runs.
    let script = "(setsid sh -c 'echo $$ > up; exec sleep 1000' &) ; cat go";
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[shell("a", script)]).unwrap();
    let daemon: i32 = hear(up).parse().unwrap();
    for number in 0..3 {
        let left = format!("b{number}");
        engine.hands.spawn(&[shell(&left, "setsid sleep 1000 & exit 5")]).unwrap();
        let seal = engine.next_seal();
        assert_eq!((seal.step.as_str(), &seal.ending), (left.as_str(), &exited(5)));
        assert!(is_living(daemon));
    }
    say(go);
    let seal = engine.next_seal();
    assert_eq!((seal.step.as_str(), seal.ending), ("a", exited(0)));
    assert!(!is_living(daemon));
    assert_eq!(bench.tagged(), [0_i32; 0]);
    engine.leave();
}

#[test]
fn a_stop_reaches_every_session_and_is_no_success_even_with_exit_0() {
    let bench = Bench::new("stop");
    let (up, other) = (bench.fifo("up"), bench.fifo("other"));
    // A shell's background child ignores INT; once the program is gone, it is asked with TERM.
    let script = "trap 'echo bye; exit 0' INT; \
        setsid sh -c 'echo $$ > other; exec sleep 1000' & \
        echo > up; while :; do sleep 0.1; done";
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[shell("a", script), argv("b", &["sleep", "1000"])]).unwrap();
    hear(up);
    let other: i32 = hear(other).parse().unwrap();
    let how = Stop { signal: StopSignal::Int, grace_ms: 60_000 };
    engine.hands.stop(&"a".into_address(), 1, how).unwrap();
    let seal = engine.next_seal();
    assert_eq!((seal.step.as_str(), seal.ending), ("a", Ending::Stopped));
    assert!(!is_living(other));
    assert_eq!(bench.output("a.1.out").as_deref(), Some("bye\n"));
    assert_eq!(bench.tagged().len(), 1, "the other attempt goes on");
    engine.hands.stop_all(TERM).unwrap();
    let seal = engine.next_seal();
    assert_eq!((seal.step.as_str(), seal.ending), ("b", Ending::Stopped));
    engine.leave();
}

#[test]
fn an_agent_is_ended_with_the_signal_of_its_own() {
    let bench = Bench::new("own-signal");
    let up = bench.fifo("up");
    let script = "trap 'echo int; exit 0' INT; trap 'echo term; exit 0' TERM; \
        echo > up; while :; do sleep 0.1; done";
    let mut engine = bench.connect(1);
    let launch = Launch { stop: Some(StopSignal::Int), ..shell("a", script) };
    engine.hands.spawn(&[launch]).unwrap();
    hear(up);
    engine.hands.stop_all(TERM).unwrap();
    assert_eq!(engine.next_seal().ending, Ending::Stopped);
    assert_eq!(bench.output("a.1.out").as_deref(), Some("int\n"));
    engine.leave();
}

#[test]
fn a_program_that_ignores_the_request_is_killed_with_its_family() {
    let bench = Bench::new("stubborn");
    let up = bench.fifo("up");
    let script = format!("trap '' TERM; {STUBBORN} & echo > up; while :; do sleep 0.1; done");
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[shell("a", &script)]).unwrap();
    hear(up);
    engine.hands.stop(&"a".into_address(), 1, Stop { grace_ms: 100, ..TERM }).unwrap();
    assert_eq!(engine.next_seal().ending, Ending::Stopped);
    assert_eq!(bench.tagged(), [0_i32; 0]);
    engine.leave();
}

#[test]
fn a_family_that_breeds_while_it_is_killed_ends_too() {
    let bench = Bench::new("breeding");
    let up = bench.fifo("up");
    // Each one starts its successor in a new session and goes.
    let script = "breed() { while :; do setsid sh -c 'sleep 0.05' & sleep 0.01; done; }; \
        breed & echo > up; breed";
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[shell("a", script)]).unwrap();
    hear(up);
    engine.hands.stop_all(Stop { grace_ms: 0, ..TERM }).unwrap();
    assert_eq!(engine.next_seal().ending, Ending::Stopped);
    assert_eq!(bench.tagged(), [0_i32; 0]);
    engine.leave();
}

#[test]
fn a_terminated_supervisor_ends_its_attempts_seals_them_and_leaves() {
    let bench = Bench::new("terminated");
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[argv("a", &["sleep", "1000"])]).unwrap();
    engine.next_spawned();
    let supervisor = bench.supervisor().unwrap().pid;
    for harmless in [rustix::process::Signal::INT, rustix::process::Signal::HUP] {
        crate::bench::signal(supervisor, harmless);
    }
    crate::bench::signal(supervisor, rustix::process::Signal::TERM);
    assert_eq!(engine.next_seal().ending, Ending::Stopped);
    await_death(supervisor);
    assert_eq!(bench.supervisor(), None);
    assert_eq!(bench.tagged(), [0_i32; 0]);
}

trait IntoAddress {
    fn into_address(self) -> onward_core::address::Address;
}

impl IntoAddress for &str {
    fn into_address(self) -> onward_core::address::Address {
        onward_core::address::Address::from_text(self)
    }
}
