//! What `status` and `list` count is what the plan does, and an edit is told as what it is.

use std::{fs, path::PathBuf};

use onward_engine::care::harness::until;
use serde_json::{Value, json};

use crate::bench::{Bench, kill_all, sees};

const CHAIN: &str = "  - { id: a, run: 'LOG; cat in > a.txt', reads: [in], writes: [a.txt] }\n\
    \x20 - { id: b, run: 'LOG; cat a.txt > b.txt', reads: [a.txt], writes: [b.txt] }\n\
    \x20 - { id: c, run: 'LOG; test -e ok' }\n";

fn chain() -> Bench {
    let bench = Bench::new(CHAIN);
    bench.write("in", "1\n");
    bench.exits("run w.yaml", 10);
    bench
}

fn only_run(bench: &Bench) -> PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

fn row<'p>(plan: &'p Value, step: &str) -> &'p str {
    let rows = plan["steps"].as_array().unwrap();
    rows.iter().find(|it| it["step"] == step).map_or("", |it| it["verdict"].as_str().unwrap())
}

fn state<'s>(status: &'s Value, step: &str) -> &'s str {
    let steps = status["steps"].as_array().unwrap();
    steps.iter().find(|it| it["step"] == step).map_or("", |it| it["state"].as_str().unwrap())
}

/// The status, when it, the list and the plan agree on these numbers.
#[track_caller]
fn agree(bench: &Bench, done: u64, total: u64, next: &[&str]) -> Value {
    let plan = bench.exits("plan --json", 0).json();
    let status = bench.exits("status --json", 0).json();
    let list = bench.exits("list --json", 0).json();
    let rows = plan["steps"].as_array().unwrap().iter();
    let stays = |row: &&Value| ["keep", "skip", "adopt"].map(Value::from).contains(&row["verdict"]);
    assert_eq!(rows.filter(stays).count() as u64, done, "{plan:#}");
    let counts = json!({ "done": done, "total": total });
    assert_eq!(status["counts"], counts, "{status:#}\n{plan:#}");
    assert_eq!(list["runs"][0]["counts"], counts, "{list:#}");
    assert_eq!(list["runs"][0]["phase"], status["phase"], "{list:#}");
    assert_eq!(status["next"], json!(next), "{status:#}");
    assert_eq!(plan["recovery_point"]["steps"], status["next"], "{plan:#}");
    let words = bench.exits("status", 0).out;
    assert!(words.contains(&format!("{done} of {total} done")), "{words}");
    status
}

#[test]
fn e12_outputs_that_are_gone_are_not_done() {
    let bench = chain();
    agree(&bench, 2, 3, &["c"]);
    fs::remove_file(bench.path("a.txt")).unwrap();
    fs::remove_file(bench.path("b.txt")).unwrap();
    let status = agree(&bench, 0, 3, &["a"]);
    assert_eq!((state(&status, "a"), state(&status, "b")), ("stale", "stale"), "{status:#}");
    assert_eq!((&status["phase"], &status["last_completed"]), (&json!("a"), &Value::Null));
    bench.write("ok", "");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1, 2], vec![1, 2]));
}

#[test]
fn e12_what_an_edit_or_a_changed_input_touches_is_not_done() {
    let bench = chain();
    bench.write("in", "2\n");
    let status = agree(&bench, 0, 3, &["a"]);
    assert_eq!((state(&status, "a"), state(&status, "b")), ("stale", "stale"), "{status:#}");
    bench.write("in", "1\n");
    let text = bench.text("w.yaml");
    bench.write("w.yaml", &text.replace("cat a.txt >", "cat a.txt a.txt >"));
    let status = agree(&bench, 1, 3, &["b"]);
    assert_eq!((state(&status, "a"), state(&status, "b")), ("done", "stale"), "{status:#}");
    assert_eq!(status["last_completed"]["step"], "a", "{status:#}");
}

#[test]
fn e12_new_items_are_in_the_total() {
    let bench = Bench::new(
        "  - { id: m, each: [x, y], run: 'LOG' }\n  - { id: c, run: 'LOG; test -e ok' }\n",
    );
    bench.exits("run w.yaml", 10);
    agree(&bench, 2, 3, &["c"]);
    let text = bench.text("w.yaml");
    bench.write("w.yaml", &text.replace("[x, y]", "[x, y, z]"));
    let status = agree(&bench, 2, 4, &["m[z]"]);
    assert_eq!(state(&status, "m[z]"), "pending", "{status:#}");
}

#[test]
fn e12_what_ended_while_no_driver_lived_is_not_lost() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; touch begun; while ! test -e go; do sleep 0.05; done' }\n\
         \x20 - { id: b, run: 'LOG' }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    bench.write("go", "");
    until("a seal", || {
        let seals = fs::read_to_string(run.join("exits.jsonl")).unwrap_or_default();
        Ok(seals.contains("exited").then_some(()))
    })
    .unwrap();
    let status = agree(&bench, 1, 2, &["b"]);
    assert_eq!(state(&status, "a"), "done", "{status:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.ran("a"), [1]);
}

/// What the plan says about the edit that makes `is` of `was`, when `b` and what follows it ran.
fn edited(was: &str, is: &str) -> (Bench, Value, String) {
    let end = "  - { id: d, run: 'LOG; test -e ok' }\n";
    let bench = Bench::new(&format!("{was}{end}"));
    bench.write("f", "1\n");
    bench.exits("run w.yaml", 10);
    bench.workflow("w.yaml", "steps:", &format!("{is}{end}"));
    let plan = bench.exits("plan --json", 0).json();
    let findings = plan["findings"].as_array().unwrap();
    let told = findings.iter().find(|it| it["code"] == "workflow-changed").unwrap();
    let told = told["message"].as_str().unwrap().to_owned();
    (bench, plan, told)
}

const DONE: &str = "  - { id: b, run: LOG }\n";

#[test]
fn e22_an_edit_says_what_it_meets() {
    for (is, told_as, verdict) in [
        ("  - { id: b, run: LOG, when: '{{ true }}' }\n", "what is done of it is kept", "keep"),
        ("  - { id: b, run: LOG, effect: outside }\n", "what is done of it is kept", "keep"),
        ("  - { id: b, run: LOG, timeout: 1h }\n", "labels only", "keep"),
        ("  - { id: b, run: LOG, each: [x, y] }\n", "touching finished work", "rerun"),
        ("  - { id: b, run: LOG, writes: [f] }\n", "touching finished work", "rerun"),
        ("  - { id: e, run: LOG }\n", "no longer there; what it did stays", ""),
    ] {
        let (bench, plan, told) = edited(DONE, is);
        assert!(told.contains(&format!("b ({told_as})")), "{is} {told}");
        assert!(!told.contains("b (not yet run)"), "{is} {told}");
        assert_eq!(row(&plan, "b"), verdict, "{is} {plan:#}");
        bench.write("ok", "");
        bench.exits("resume --no-input --yes", 0);
        let again = usize::from(verdict == "rerun" && !is.contains("each"));
        assert_eq!(bench.ran("b").len(), 1 + again, "{is}");
    }
    // What waits behind a step that was renamed has run, and did not finish.
    let (_bench, _, told) = edited(DONE, "  - { id: e, run: LOG }\n");
    assert!(told.contains("e (not yet run)") && told.contains("d (not finished)"), "{told}");
}

#[test]
fn e4_a_loop_that_may_turn_more_often_turns_again() {
    let once = "  - { id: b, run: LOG, repeat: { max: 1 } }\n";
    let thrice = "  - { id: b, run: LOG, repeat: { max: 3 } }\n";
    let (bench, plan, told) = edited(once, thrice);
    assert!(told.contains("b (touching finished work)"), "{told}");
    assert_eq!((row(&plan, "b[2]"), row(&plan, "b[1]")), ("run", "keep"), "{plan:#}");
    assert_eq!(agree(&bench, 1, 3, &["b[2]"])["phase"], "b");
    bench.write("ok", "");
    bench.exits("resume --no-input --yes", 0);
    let ran = ["b[1]", "b[2]", "b[3]"].map(|it| bench.ran(it).len());
    assert_eq!(ran, [1, 1, 1]);
    bench.is_proved(&only_run(&bench));
    let (bench, ..) = edited(once, thrice);
    bench.write("ok", "");
    bench.exits("resume --no-input --yes --keep b", 0);
    assert_eq!(bench.ran("b[2]"), [0; 0], "kept, as asked");
    // Fewer turns than were taken change nothing.
    let (_bench, plan, told) = edited(thrice, once);
    assert!(told.contains("b (what is done of it is kept)"), "{told}");
    assert_eq!((row(&plan, "b"), row(&plan, "b[3]")), ("", "keep"), "{plan:#}");
}

#[test]
fn e4_a_file_that_a_done_step_is_now_said_to_read_makes_it_run_again() {
    let reads = "  - { id: b, run: LOG, reads: [f] }\n";
    let (bench, plan, told) = edited(DONE, reads);
    assert!(told.contains("b (touching finished work)"), "{told}");
    assert_eq!(row(&plan, "b"), "rerun", "{plan:#}");
    agree(&bench, 0, 2, &["b"]);
    bench.write("ok", "");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.ran("b"), [1, 2]);
    // Kept, it counts as made from the file as it is, and a later change is noticed.
    let (bench, ..) = edited(DONE, reads);
    bench.exits("resume --no-input --yes --keep b", 10);
    assert_eq!(bench.ran("b"), [1]);
    bench.exits("plan", 0);
    bench.write("f", "2\n");
    assert_eq!(row(&bench.exits("plan --json", 0).json(), "b"), "rerun");
}

#[test]
fn e4_a_file_that_a_done_step_is_no_longer_said_to_read_may_change() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; cat f g', reads: [f, g] }\n\
         \x20 - { id: b, run: 'LOG; echo {{ read_text(\"t\") }}' }\n\
         \x20 - { id: c, run: 'test -e ok' }\n",
    );
    for name in ["f", "g", "t"] {
        bench.write(name, "1\n");
    }
    bench.exits("run w.yaml", 10);
    let edited = bench.text("w.yaml").replace("reads: [f, g]", "reads: [f]");
    bench.write("w.yaml", &edited);
    for name in ["g", "t"] {
        bench.write(name, "2\n");
    }
    let plan = bench.exits("plan --json", 0).json();
    assert_eq!((row(&plan, "a"), row(&plan, "b")), ("keep", "rerun"), "{plan:#}");
    bench.write("ok", "");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![1, 2]));
}

#[test]
fn e21_the_bill_of_a_dead_run_has_the_work_that_died() {
    let bench = Bench::new("  - { id: a, run: 'LOG; touch begun; exec sleep 1000' }\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let bill = |what: &str| {
        let status = bench.exits("status --cost --json", 0).json();
        status["bill"][what]["attempts"].as_u64().unwrap()
    };
    assert_eq!((bill("under_way"), bill("repeated")), (1, 0));
    engine.kill().unwrap();
    kill_all(&run);
    assert_eq!((bill("under_way"), bill("repeated")), (0, 1));
}
