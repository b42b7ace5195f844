//! Kill -9 in the middle: nothing finished runs twice, nothing started is lost.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use onward_core::plan::{Status, Verdict};
use onward_engine::{
    care::harness::until,
    world::supervisor::{orphans::sweep, seals::read_seals},
};

use crate::bench::{Bench, changed, picture, state};

/// Step `two` says that it has begun, and waits to be let go.
const STEPS: &str = "  - { id: one, run: echo 1 >> one, writes: [one] }\n\
    \x20 - { id: two, run: echo 2 >> two; echo > begun; head -c1 go, writes: [two] }\n\
    \x20 - { id: three, run: echo 3 >> three }\n";

/// Lets every reader of the pipe go on, for as long as it is held.
fn release(pipe: &Path) -> File {
    let mut file = File::options().read(true).write(true).open(pipe).unwrap();
    file.write_all(b"letters for all who wait").unwrap();
    file
}

fn verdict(bench: &Bench, run: &Path, step: &str) -> Verdict {
    let plan = bench.plan(run);
    plan.steps.iter().find(|it| it.step == step).unwrap().verdict
}

#[test]
fn a_killed_engine_loses_nothing_and_its_attempt_goes_on() {
    let bench = Bench::new();
    let run = bench.new_run(STEPS);
    let (begun, go) = (bench.fifo("begun"), bench.fifo("go"));
    let mut engine = bench.engine_process(&run);
    std::fs::read(&begun).unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();
    // The step may be quicker than the line that says it was spawned.
    let log = bench.place(&run).seals();
    until("the spawn to be written down", || {
        let text = std::fs::read_to_string(&log).unwrap();
        let spawned = |line: &str| line.contains(r#""spawned","step":"two""#);
        Ok(text.lines().any(spawned).then_some(()))
    })
    .unwrap();
    let before = picture(&run);
    let plan = bench.plan(&run);
    assert_eq!(plan.run.status, Status::Interrupted);
    assert!(plan.can_resume, "{plan:?}");
    assert_eq!(verdict(&bench, &run, "one"), Verdict::Keep);
    assert_eq!(verdict(&bench, &run, "two"), Verdict::Reattach);
    let changed = changed(&before, &picture(&run));
    assert_eq!(changed, Vec::<PathBuf>::new(), "a plan changes nothing");
    let _go = release(&go);
    let outcome = bench.resume(&run).unwrap();
    assert_eq!(outcome.status, Status::Completed);
    assert_eq!([bench.text("one"), bench.text("two"), bench.text("three")], ["1\n", "2\n", "3\n"]);
}

/// What happens between the death of everything and the resume.
type Meanwhile = fn(&Bench, &Path);

#[test]
fn after_the_supervisor_died_too_its_orphans_are_ended_and_the_attempt_is_made_again() {
    orphans_are_ended_after(|_, _| {});
}

#[test]
fn orphans_are_ended_also_by_the_engine_after_one_that_died_beside_its_new_supervisor() {
    orphans_are_ended_after(|bench, run| bench.start_supervisor(run, 3));
}

#[track_caller]
fn orphans_are_ended_after(meanwhile: Meanwhile) {
    let bench = Bench::new();
    let run = bench.new_run(STEPS);
    let (begun, go) = (bench.fifo("begun"), bench.fifo("go"));
    let mut engine = bench.engine_process(&run);
    std::fs::read(&begun).unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();
    bench.kill_supervisor(&run);
    meanwhile(&bench, &run);
    let plan = bench.plan(&run);
    let codes: Vec<&str> = plan.findings.iter().map(|it| it.code.as_str()).collect();
    assert_eq!(codes, ["orphan-process"]);
    assert_eq!(verdict(&bench, &run, "two"), Verdict::Rerun);
    let place = bench.place(&run);
    let orphans = sweep(&place, &read_seals(&place.seals(), None).unwrap()).unwrap();
    assert!(!orphans.is_empty());
    let (outcome, survivors) = std::thread::scope(|scope| {
        let survivors = scope.spawn(|| {
            std::fs::read(&begun).unwrap();
            let alive = orphans.iter().filter(|it| it.identity.is_alive()).count();
            (alive, release(&go))
        });
        (bench.resume(&run), survivors.join().unwrap())
    });
    assert_eq!(survivors.0, 0, "none of the lost attempt lives when the next one begins");
    assert_eq!(outcome.unwrap().status, Status::Completed);
    assert_eq!([bench.text("one"), bench.text("three")], ["1\n", "3\n"]);
    assert_eq!(bench.text("two"), "2\n", "what the lost attempt wrote was undone first");
    let state = state(&run);
    assert_eq!(state.steps.values().map(|it| it.attempts).collect::<Vec<_>>(), [1, 2, 1]);
    bench.see_supervisor_leave(&run);
}
