//! Steps that are announced before there is a slot for them.

use std::{fs::File, io::Write as _, path::Path, thread};

use onward_core::{address::Address, plan::Status, state::Phase};
use onward_engine::{
    care::harness::until,
    engine::resume_run,
    world::{Request, inbox, real::wall_clock},
};

use crate::bench::{Bench, eager, state};

/// Two take the slots, say so, and wait to be let go; three wait for them.
const STEPS: &str = "  - { id: a, needs: [], run: echo > up-a; head -c1 go; echo 1 >> a }\n\
    \x20 - { id: b, needs: [], run: echo > up-b; head -c1 go; echo 1 >> b }\n\
    \x20 - { id: c, needs: [], run: echo 1 >> c }\n\
    \x20 - { id: d, needs: [], run: echo 1 >> d }\n\
    \x20 - { id: e, needs: [], run: echo 1 >> e }\n\
    limits: { parallel: 2 }\n";

/// Lets every reader of the pipe go on, for as long as it is held.
fn release(pipe: &Path) -> File {
    let mut file = File::options().read(true).write(true).open(pipe).unwrap();
    file.write_all(b"letters for all who wait").unwrap();
    file
}

fn attempts(run: &Path, step: &str) -> u32 {
    state(run).step(&Address::from_text(step)).map_or(0, |it| it.attempts)
}

fn check_that_all_ran_once(bench: &Bench) {
    for step in ["a", "b", "c", "d", "e"] {
        assert_eq!(bench.text(step), "1\n", "{step}");
    }
}

#[test]
fn a_killed_engine_leaves_what_waited_to_the_next_which_runs_it_once() {
    let bench = Bench::new();
    let run = bench.new_run(STEPS);
    let (ups, go) = (["up-a", "up-b"].map(|it| bench.fifo(it)), bench.fifo("go"));
    let mut engine = bench.eager_process(&run);
    for up in &ups {
        std::fs::read(up).unwrap();
    }
    engine.kill().unwrap();
    engine.wait().unwrap();
    assert_eq!(attempts(&run, "e"), 1, "it was announced with those that began");
    let plan = bench.plan(&run);
    assert!(plan.can_resume, "{plan:?}");
    let _go = release(&go);
    assert_eq!(bench.resume(&run).unwrap().status, Status::Completed);
    check_that_all_ran_once(&bench);
}

#[test]
fn a_pause_takes_back_what_waits_and_the_resume_after_it_runs_it_once() {
    let bench = Bench::new();
    let run = bench.new_run(STEPS);
    let (ups, go) = (["up-a", "up-b"].map(|it| bench.fifo(it)), bench.fifo("go"));
    let outcome = thread::scope(|scope| {
        let driver = scope.spawn(|| resume_run(&run, &bench.machine, &eager(), None).unwrap());
        for up in &ups {
            std::fs::read(up).unwrap();
        }
        inbox::write_request(&run, &Request::Pause, wall_clock()).unwrap();
        until("the pause to be heard and what waits to be taken back", || {
            let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
            let is_back = journal.matches("\"attempt.lost\"").count() == 3;
            Ok((journal.contains("pausing") && is_back).then_some(()))
        })
        .unwrap();
        let _go = release(&go);
        driver.join().unwrap()
    });
    assert_eq!(outcome.status, Status::Interrupted);
    let phase = |step: &str| state(&run).phase(&Address::from_text(step));
    assert_eq!(["a", "b"].map(phase), [Phase::Done, Phase::Done]);
    assert_eq!(["c", "d", "e"].map(|it| bench.text(it)), ["", "", ""], "nothing new began");
    assert_eq!(bench.resume(&run).unwrap().status, Status::Completed);
    check_that_all_ran_once(&bench);
}

#[test]
fn a_hundred_quick_steps_run_once_each_and_never_more_at_once_than_there_are_slots() {
    let bench = Bench::new();
    // The directory of each of the two slots can be made by one step at a time.
    let step = |id: u32| {
        let slot = "mkdir one 2>/dev/null && s=one || { mkdir two && s=two; } || exit 9";
        format!("  - {{ id: s{id}, needs: [], run: '{slot}; echo 1 >> s{id}; rmdir $s' }}\n")
    };
    let steps: String = (0..100).map(step).collect();
    let run = bench.new_run(&format!("{steps}limits: {{ parallel: 2 }}\n"));
    let outcome = resume_run(&run, &bench.machine, &eager(), None).unwrap();
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.failed);
    let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    for id in 0..100 {
        assert_eq!(bench.text(&format!("s{id}")), "1\n");
    }
    let (mut running, mut most) = (0, 0);
    for line in journal.lines() {
        running += i32::from(line.contains("\"attempt.started\""));
        running -= i32::from(line.contains("\"attempt.finished\""));
        running -= i32::from(line.contains("\"attempt.lost\""));
        most = most.max(running);
    }
    assert!(most > 2, "none waited for a slot");
}
