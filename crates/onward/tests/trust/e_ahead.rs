//! What is announced ahead of a free slot is told as what it is: to come.

use std::{fmt::Write as _, fs};

use onward_core::state::State;
use onward_engine::care::harness::until;

use crate::bench::{Bench, signal, watched};

/// Steps that end at once, so that the next ones are announced ahead, and behind them slow ones.
const QUICK: usize = 100;
const SLOW: usize = 12;

fn in_one_slot(slow: &str) -> Bench {
    let bench = Bench::new("");
    let mut steps = String::new();
    for number in 0..QUICK + SLOW {
        let slow = if number < QUICK { "" } else { slow };
        let run = format!("echo s{number} >> ran{slow}");
        writeln!(steps, "  - {{ id: s{number}, needs: [], run: '{run}' }}").unwrap();
    }
    bench.workflow("w.yaml", "limits: { parallel: 1 }\nsteps:", &steps);
    bench
}

fn ran(bench: &Bench) -> usize {
    fs::read_to_string(bench.path("ran")).unwrap_or_default().lines().count()
}

#[test]
fn e24_a_step_that_was_announced_and_never_began_is_not_said_to_run_again() {
    let bench = in_one_slot("; sleep 0.5");
    let (mut engine, run) = bench.start_run();
    until("a slow step to begin", || Ok((ran(&bench) > QUICK).then_some(()))).unwrap();
    signal(engine.pid(), "-INT");
    engine.wait().unwrap();
    let begun = ran(&bench);
    assert!(begun < QUICK + SLOW, "nothing new begins after Ctrl-C");
    let plan = bench.plan(&run);
    let counts = &plan["counts"];
    assert_eq!(counts["keep"], begun, "{counts}");
    assert_eq!(counts["run"], QUICK + SLOW - begun, "{counts}");
    let status = bench.exits("status --cost", 0).out;
    assert!(!status.contains("lost "), "{status}");
    let bill = bench.exits("status --cost --json", 0).json();
    assert_eq!(bill["bill"]["repeated"]["attempts"], 0, "{bill:#}");
    let resumed = bench.exits("resume --no-input", 0);
    let said = resumed.out + &resumed.err;
    assert!(!said.contains("again") && !said.contains("(attempt "), "{said}");
    assert_eq!(ran(&bench), QUICK + SLOW, "each ran once");
}

#[test]
fn e25_the_time_that_a_step_waited_for_a_slot_is_not_its_own() {
    let bench = in_one_slot("; sleep 0.1");
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let records = watched(&run).records;
    let (first, last) = (records.first().unwrap().at, records.last().unwrap().at);
    let took = last.ms_since(first);
    let mut state = State::default();
    for record in records {
        state.after(record).unwrap();
    }
    let slow = state.steps.values().skip(QUICK);
    let worked: u64 = slow.map(|it| it.ended_at.ms_since(it.started_at)).sum();
    assert!(worked <= took, "{worked} ms of work in one slot within {took} ms");
}
