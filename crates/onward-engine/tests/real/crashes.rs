//! Kill -9 in the middle: nothing finished runs twice, nothing started is lost.

use onward_core::plan::{Status, Verdict};

use crate::bench::{Bench, picture, state};

/// Step `two` says that it has begun, and waits to be let go.
const STEPS: &str = "  - { id: one, run: echo 1 >> one, writes: [one] }\n\
    \x20 - { id: two, run: echo 2 >> two; echo > begun; cat go, writes: [two] }\n\
    \x20 - { id: three, run: echo 3 >> three }\n";

fn verdict(bench: &Bench, run: &std::path::Path, step: &str) -> Verdict {
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
    let before = picture(&run);
    let plan = bench.plan(&run);
    assert_eq!(plan.run.status, Status::Interrupted);
    assert!(plan.can_resume, "{plan:?}");
    assert_eq!(verdict(&bench, &run, "one"), Verdict::Keep);
    assert_eq!(verdict(&bench, &run, "two"), Verdict::Reattach);
    assert_eq!(picture(&run), before, "a plan changes nothing");
    std::fs::write(&go, "").unwrap();
    let outcome = bench.resume(&run).unwrap();
    assert_eq!(outcome.status, Status::Completed);
    assert_eq!([bench.text("one"), bench.text("two"), bench.text("three")], ["1\n", "2\n", "3\n"]);
}

#[test]
fn after_the_supervisor_died_too_its_orphans_are_ended_and_the_attempt_is_made_again() {
    let bench = Bench::new();
    let run = bench.new_run(STEPS);
    let (begun, go) = (bench.fifo("begun"), bench.fifo("go"));
    let mut engine = bench.engine_process(&run);
    std::fs::read(&begun).unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();
    bench.kill_supervisor(&run);
    let plan = bench.plan(&run);
    let codes: Vec<&str> = plan.findings.iter().map(|it| it.code.as_str()).collect();
    assert_eq!(codes, ["orphan-process"]);
    assert_eq!(verdict(&bench, &run, "two"), Verdict::Rerun);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::fs::read(&begun).unwrap();
            std::fs::write(&go, "").unwrap();
        });
        assert_eq!(bench.resume(&run).unwrap().status, Status::Completed);
    });
    assert_eq!([bench.text("one"), bench.text("three")], ["1\n", "3\n"]);
    assert_eq!(bench.text("two"), "2\n", "what the lost attempt wrote was undone first");
    let state = state(&run);
    assert_eq!(state.steps.values().map(|it| it.attempts).collect::<Vec<_>>(), [1, 2, 1]);
    bench.see_supervisor_leave(&run);
}
