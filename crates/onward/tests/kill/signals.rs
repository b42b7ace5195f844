//! SIGINT once and twice, SIGHUP and SIGTERM.

use std::process::Command;

use onward_engine::care::harness::{EngineProcess, until};

use crate::bench::{Bench, Said, id, journal, sees, sees_nobody_left, signal, watched};

/// The first attempt of `two` does not end by itself.
const STEPS: &str = "  - { id: one, run: LOG }\n\
    \x20 - { id: two, run: 'LOG; [ $ONWARD_ATTEMPT = 2 ] || { echo > begun; sleep 1000; }' }\n\
    \x20 - { id: three, run: LOG }\n";

fn ends_with(bench: &Bench, engine: &mut EngineProcess, code: i32) {
    let status = engine.wait().unwrap();
    assert_eq!(status.code(), Some(code), "{}", bench.text("said"));
}

#[test]
fn the_last_line_after_an_interrupt_is_a_command_that_resumes() {
    let bench = Bench::new(STEPS);
    let mut engine = bench.start("run w.yaml --grace 1");
    sees(&bench.path("begun"));
    signal(engine.pid(), "-INT");
    ends_with(&bench, &mut engine, 130);
    let said = bench.text("said");
    let last = said.lines().last().unwrap().to_owned();
    assert!(last.starts_with("onward resume "), "{said}");
    let mut shell = Command::new("sh");
    let envs = bench.command("version");
    shell.arg("-c").arg(last).current_dir(&bench.root).env_clear();
    shell.envs(envs.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let pasted = Said::of(&shell.output().unwrap());
    assert_eq!(pasted.code, 0, "{pasted:?}");
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.is_proved(&run);
    assert_eq!(bench.ran("two"), [1, 2]);
    sees_nobody_left(&run);
}

/// Waits until the engine says how long what runs may go on.
fn sees_grace(bench: &Bench, grace: &str) {
    let run = bench.project().runs().unwrap().remove(0).dir;
    let said = format!("interrupted: what runs gets {grace} to finish");
    until("the signal to be taken", || Ok(journal(&run).contains(&said).then_some(()))).unwrap();
}

#[test]
fn a_step_that_ends_within_its_grace_counts_and_nothing_new_begins() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; echo > begun; cat go' }\n  - { id: two, run: LOG }\n",
    );
    let go = bench.fifo("go");
    let mut engine = bench.start("run w.yaml --grace 100");
    sees(&bench.path("begun"));
    signal(engine.pid(), "-INT");
    sees_grace(&bench, "100 s");
    std::fs::write(go, "").unwrap();
    ends_with(&bench, &mut engine, 130);
    let run = bench.project().runs().unwrap().remove(0).dir;
    assert_eq!(watched(&run).finished(), [("one".to_owned(), 1)]);
    bench.exits("resume", 0);
    bench.is_proved(&run);
    assert_eq!(bench.ran("one"), [1]);
}

#[test]
fn a_last_step_that_ends_within_its_grace_completes_the_run() {
    let bench = Bench::new("  - { id: one, run: 'LOG; echo > begun; cat go' }\n");
    let go = bench.fifo("go");
    let mut engine = bench.start("run w.yaml --grace 100");
    sees(&bench.path("begun"));
    signal(engine.pid(), "-INT");
    sees_grace(&bench, "100 s");
    std::fs::write(go, "").unwrap();
    ends_with(&bench, &mut engine, 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.is_proved(&run);
}

#[test]
fn interrupted_again_the_grace_is_over_at_once() {
    let bench = Bench::new(STEPS);
    let mut engine = bench.start("run w.yaml --grace 100000");
    sees(&bench.path("begun"));
    signal(engine.pid(), "-INT");
    // Two that come at the same moment are one to the kernel.
    sees_grace(&bench, "100000 s");
    signal(engine.pid(), "-INT");
    ends_with(&bench, &mut engine, 130);
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.exits("resume", 0);
    bench.is_proved(&run);
    sees_nobody_left(&run);
}

#[test]
fn a_polite_end_loses_nothing() {
    let bench = Bench::new(STEPS);
    let mut engine = bench.start("run w.yaml --grace 0");
    sees(&bench.path("begun"));
    signal(engine.pid(), "-TERM");
    ends_with(&bench, &mut engine, 130);
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.exits(&format!("resume {}", id(&run)), 0);
    bench.is_proved(&run);
    assert_eq!(bench.ran("one"), [1]);
    sees_nobody_left(&run);
}

/// A closed terminal hangs up more than once. The run goes on, and Ctrl-C after that is the first.
#[test]
fn a_closed_terminal_ends_nothing_and_counts_as_no_interrupt() {
    let steps = "  - { id: one, run: 'LOG; echo > begun; cat go' }\n  - { id: two, run: LOG }\n";
    let bench = Bench::new(steps);
    let go = bench.fifo("go");
    let mut engine = bench.start("run w.yaml --grace 100000");
    sees(&bench.path("begun"));
    signal(engine.pid(), "-HUP");
    signal(engine.pid(), "-HUP");
    signal(engine.pid(), "-INT");
    sees_grace(&bench, "100000 s");
    std::fs::write(&go, "").unwrap();
    ends_with(&bench, &mut engine, 130);
    let run = bench.project().runs().unwrap().remove(0).dir;
    assert_eq!(watched(&run).finished(), [("one".to_owned(), 1)]);

    let mut engine = bench.start("run w.yaml");
    until("the second run to wait", || Ok((bench.ran("one").len() == 2).then_some(()))).unwrap();
    signal(engine.pid(), "-HUP");
    std::fs::write(&go, "").unwrap();
    ends_with(&bench, &mut engine, 0);
}
