//! Work in flight that rests on what a person changed, and work that is only half done: the plan
//! says what becomes of it in the end.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    a_plan::waits_for_seal,
    bench::{Bench, kill_all, sees},
};

fn row<'p>(plan: &'p Value, step: &str) -> &'p Value {
    plan["steps"].as_array().unwrap().iter().find(|it| it["step"] == step).unwrap()
}

/// What becomes of the driver, and of what it started.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The step ends while no driver lives.
    Sealed,
    /// It still runs.
    Alive,
    /// It is killed with its driver and its supervisor.
    Killed,
}

/// A step after `a`, interrupted; then a person changes what it was made from.
fn interrupted(step: &str, end: End, changed: &str) -> (Bench, PathBuf) {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: 'LOG; echo 1 > a.txt', writes: [a.txt] }}\n  - {step}\n"
    ));
    bench.write("in.txt", "1\n");
    bench.write("any.json", "{}");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    match end {
        End::Sealed => {
            bench.write("go", "");
            waits_for_seal(&run, "e");
        }
        End::Alive => {}
        End::Killed => kill_all(&run),
    }
    bench.write(changed, "by hand\n");
    // What changes in the moment of an end may have been read by the attempt.
    let file = std::fs::File::options().append(true).open(bench.path(changed)).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now + std::time::Duration::from_secs(10)).unwrap();
    (bench, run)
}

const WAITS: &str = "LOG; touch sent begun; while ! test -e go; do sleep 0.02; done";
const PROBE: &str = "probe: { run: test -e sent }, ";

#[test]
fn i4_an_effect_that_is_made_again_is_planned_so_however_it_was_interrupted() {
    for (end, more, changed, verdict) in [
        (End::Sealed, "", "a.txt", "rerun"),
        (End::Alive, "", "a.txt", "rerun"),
        (End::Killed, PROBE, "a.txt", "verify"),
        (End::Sealed, "reads: [in.txt], ", "in.txt", "rerun"),
        (End::Killed, "probe: { run: test -e sent }, reads: [in.txt], ", "in.txt", "verify"),
    ] {
        let case = format!("{end:?} {more}{changed}");
        let step = format!("{{ id: e, effect: outside, {more}run: '{WAITS}' }}");
        let (bench, run) = interrupted(&step, end, changed);
        let plan = bench.plan(&run);
        let said = row(&plan, "e").to_string();
        assert_eq!(row(&plan, "e")["verdict"], verdict, "{case}: {plan:#}");
        assert!(said.contains("made again all the same, because this changed"), "{case}: {said}");
        assert!(!said.contains("counts as done"), "{case}: {said}");
        let summary = plan["recovery_point"]["summary"].as_str().unwrap();
        assert!(summary.contains(" e") && !summary.contains("closing record"), "{case}: {summary}");
        assert_eq!(plan["findings"][0]["code"], "artifact-changed", "{case}: {plan:#}");
        bench.write("go", "");
        bench.exits("resume --no-input", 0);
        assert_eq!(bench.ran("e"), [1, 2], "{case}");
    }
}

#[test]
fn i4_work_that_proves_itself_and_rests_on_what_changed_is_planned_to_run_again() {
    let step = "{ id: e, result: { schema: any.json }, \
        run: 'LOG; echo 1 > $ONWARD_RESULT; touch begun; test -e go || sleep 1000' }";
    let (bench, run) = interrupted(step, End::Killed, "a.txt");
    let plan = bench.plan(&run);
    assert_eq!(row(&plan, "e")["verdict"], "rerun", "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.ran("e"), [1, 2]);
}

#[test]
fn i4_a_step_whose_need_was_only_edited_is_not_said_to_follow_one_that_runs_again() {
    let (bench, run) = interrupted(&format!("{{ id: e, run: '{WAITS}' }}"), End::Sealed, "a.txt");
    let plan = bench.plan(&run);
    let said = row(&plan, "e").to_string();
    assert_eq!(
        (&row(&plan, "a")["verdict"], &row(&plan, "e")["verdict"]),
        (&"keep".into(), &"rerun".into())
    );
    assert!(said.contains("what it was made from changed"), "{said}");
    assert!(!said.contains("runs again"), "{said}");
}

/// Killed with a result that fits its schema, which is not the last thing that it did.
#[test]
fn i5_a_result_that_is_written_early_proves_nothing() {
    let bench = Bench::new(
        "  - { id: a, writes: [out.txt], result: { schema: any.json }, \
         run: 'LOG; echo 1 > $ONWARD_RESULT; sleep 0.1; echo half > out.txt; touch begun; \
         test -e go || sleep 1000; echo full > out.txt' }\n  \
         - { id: b, run: 'LOG; cp out.txt b.txt', reads: [out.txt] }\n",
    );
    bench.write("any.json", "{}");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    let plan = bench.plan(&run);
    assert_eq!(row(&plan, "a")["verdict"], "rerun", "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("a"), bench.text("b.txt")), (vec![1, 2], "full\n".into()));
}

#[test]
fn i5_a_result_that_is_written_last_proves_its_step() {
    let bench = Bench::new(
        "  - { id: a, writes: [out.txt], result: { schema: any.json }, \
         run: 'LOG; echo full > out.txt; echo 1 > $ONWARD_RESULT; touch begun; sleep 1000' }\n",
    );
    bench.write("any.json", "{}");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    let plan = bench.plan(&run);
    assert_eq!(row(&plan, "a")["verdict"], "adopt", "{plan:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.ran("a"), [1]);
}

#[test]
fn i6_an_effect_without_a_probe_is_asked_about_and_names_its_undo() {
    for is_killed in [true, false] {
        let timeout = if is_killed { "" } else { "timeout: 1s, " };
        let bench = Bench::new(&format!(
            "  - {{ id: e, effect: outside, {timeout}writes: [x.md], \
             run: 'LOG; echo half > x.md; touch begun; test -e go || sleep 1000' }}\n  \
             - {{ id: z, run: LOG }}\n"
        ));
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("begun"));
        if is_killed {
            engine.kill().unwrap();
            kill_all(&run);
        } else {
            engine.wait().unwrap();
        }
        let plan = bench.plan(&run);
        assert_eq!(row(&plan, "e")["verdict"], "ask", "{plan:#}");
        assert_eq!(plan["can_resume"], false, "{plan:#}");
        assert!(!plan.to_string().contains("probe of e"), "{plan:#}");
        assert_eq!(plan["reverts"][0]["path"], "x.md", "{plan:#}");
        assert_eq!(plan["reverts"][0]["only_if"], "it is accepted that it may be tried again");
        assert!(row(&plan, "e").to_string().contains("accepted, x.md is undone"), "{plan:#}");
        bench.exits("resume --no-input", 16);
        bench.write("go", "");
        bench.exits("resume --no-input --accept effect-unknown", 0);
        assert_eq!(bench.ran("e"), [1, 2]);
        let said = bench.exits("rescue list", 0);
        assert!(said.out.contains("x.md"), "{said:?}");
    }
}
