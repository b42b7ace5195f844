//! Rows that did not say what the resume then did: sealed and living steps, fan-outs behind changed
//! outputs, conditions that read files, items that are no longer listed, headlines beside effects.

use std::{fs, path::PathBuf, time::Duration};

use serde_json::Value;

use crate::{
    a_plan::waits_for_seal,
    bench::{Bench, codes, kill_all, sees},
};

/// The verdicts of some rows, in this order.
fn verdicts<'p>(plan: &'p Value, steps: &[&str]) -> Vec<&'p str> {
    let rows = plan["steps"].as_array().unwrap();
    let verdict = |step: &&str| {
        let row = rows.iter().find(|row| row["step"] == *step);
        row.map_or("no row", |row| row["verdict"].as_str().unwrap())
    };
    steps.iter().map(verdict).collect()
}

/// The causes of a row.
fn causes(plan: &Value, step: &str) -> Vec<String> {
    let row = plan["steps"].as_array().unwrap().iter().find(|row| row["step"] == step).unwrap();
    let whys = row["why"].as_array().unwrap().iter();
    whys.map(|why| why["cause"].as_str().unwrap().to_owned()).collect()
}

fn summary(plan: &Value) -> &str {
    plan["recovery_point"]["summary"].as_str().unwrap()
}

/// Waits as long as `wait.o` is there.
pub(crate) const WAITS: &str = "touch began.o; while test -e wait.o; do sleep 0.02; done";

/// Runs until the step that waits has begun, and kills the engine.
fn begun(bench: &Bench) -> PathBuf {
    bench.write("wait.o", "");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began.o"));
    engine.kill().unwrap();
    run
}

/// The same, and lets the step end.
pub(crate) fn ended(bench: &Bench, step: &str) -> PathBuf {
    let run = begun(bench);
    fs::remove_file(bench.path("wait.o")).unwrap();
    waits_for_seal(&run, step);
    run
}

fn chain(effect: &str) -> Bench {
    Bench::new(&format!(
        "  - {{ id: a, run: 'LOG; echo 1 > a.txt', writes: [a.txt] }}\n  \
         - {{ id: b, run: 'LOG; cat a.txt > b.txt; {WAITS}', writes: [b.txt]{effect} }}\n  \
         - {{ id: c, run: 'LOG; cat b.txt > c.txt', reads: [b.txt], writes: [c.txt] }}\n"
    ))
}

#[test]
fn g1_a_step_that_ended_meanwhile_and_whose_output_is_gone_runs_again() {
    for effect in ["", ", effect: outside"] {
        let bench = chain(effect);
        let run = ended(&bench, "b");
        fs::remove_file(bench.path("b.txt")).unwrap();
        let plan = bench.plan(&run);
        assert_eq!(verdicts(&plan, &["a", "b", "c"]), ["keep", "rerun", "run"], "{plan:#}");
        assert!(causes(&plan, "b").contains(&"missing-artifact".to_owned()), "{plan:#}");
        assert!(codes(&plan).contains(&"missing-artifact"), "{plan:#}");
        assert!(summary(&plan).contains("continues at b"), "{plan:#}");
        bench.exits("resume --no-input", 0);
        assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![1, 2]), "{effect}");
        assert_eq!(bench.text("c.txt"), "1\n");
    }
}

#[test]
fn g1_an_end_that_the_resume_will_not_take_is_told_as_failed() {
    let bench = Bench::new(&format!(
        "  - {{ id: b, run: 'LOG; {WAITS}', check: 'test -e good' }}\n  \
         - {{ id: c, run: LOG }}\n"
    ));
    let run = ended(&bench, "b");
    // The check runs with the step, and says no.
    let plan = bench.plan(&run);
    assert!(causes(&plan, "b").contains(&"failed".to_owned()), "{plan:#}");
    assert!(summary(&plan).contains("b failed while the engine was down"), "{plan:#}");
    bench.exits("resume --no-input", 10);
    assert_eq!(bench.ran("c"), [0; 0]);
}

#[test]
fn g1_what_a_step_that_ended_meanwhile_read_is_compared_too() {
    let bench = Bench::new(&format!(
        "  - {{ id: b, run: 'LOG; cat in.txt > b.txt; {WAITS}', \
            reads: [in.txt], writes: [b.txt] }}\n"
    ));
    bench.write("in.txt", "1\n");
    let run = ended(&bench, "b");
    bench.write("in.txt", "2\n");
    // A file system's clock may be a few milliseconds behind.
    let file = fs::File::options().append(true).open(bench.path("in.txt")).unwrap();
    let later = file.metadata().unwrap().modified().unwrap() + Duration::from_secs(1);
    file.set_modified(later).unwrap();
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["b"]), ["rerun"], "{plan:#}");
    assert!(causes(&plan, "b").contains(&"reads.in.txt".to_owned()), "{plan:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("b"), bench.text("b.txt")), (vec![1, 2], "2\n".to_owned()));
}

#[test]
fn g2_items_behind_a_changed_output_are_told_to_run() {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: 'LOG; echo 1 > a.txt', writes: [a.txt] }}\n  \
         - {{ id: f, each: [x, y], run: 'LOG; cat a.txt > {{{{ item }}}}.txt', \
            writes: ['{{{{ item }}}}.txt'] }}\n  \
         - {{ id: b, run: 'LOG; {WAITS}' }}\n"
    ));
    let run = ended(&bench, "b");
    bench.write("a.txt", "2\n");
    let plan = bench.plan(&run);
    let rows = ["a", "f[x]", "f[y]", "b"];
    assert_eq!(verdicts(&plan, &rows), ["keep", "rerun", "rerun", "rerun"], "{plan:#}");
    assert_eq!(causes(&plan, "f[x]"), ["needs.a"], "{plan:#}");
    assert!(summary(&plan).contains("continues at f[x]"), "{plan:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("f[x]"), bench.ran("f[y]")), (vec![1, 2], vec![1, 2]));
    assert_eq!(bench.text("x.txt"), "2\n");
}

const FLAGGED: &str = "  \
    - { id: yes, when: \"{{ read_text('flag') | trim == 'yes' }}\", run: LOG }\n  \
    - { id: no, needs: [], when: \"{{ read_text('flag') | trim == 'no' }}\", run: LOG }\n  \
    - id: group\n    needs: []\n    when: \"{{ read_text('flag') | trim == 'yes' }}\"\n    \
      steps: [ { id: inner, run: LOG } ]\n  \
    - { id: last, run: 'LOG; test -e go' }\n";

#[test]
fn g3_a_condition_that_reads_a_file_is_asked_again_when_the_file_changed() {
    let bench = Bench::new(FLAGGED);
    bench.write("flag", "no\n");
    bench.exits("run w.yaml", 10);
    let runs = bench.project().runs().unwrap();
    let run = &runs[0].dir;
    let rows = ["yes", "no", "group/inner", "group"];
    let plan = bench.plan(run);
    assert_eq!(verdicts(&plan, &rows), ["skip", "keep", "no row", "skip"], "{plan:#}");
    // Another text that leads to the same is no change.
    bench.write("flag", "no \n");
    let plan = bench.plan(run);
    assert_eq!(verdicts(&plan, &rows), ["skip", "keep", "no row", "skip"], "{plan:#}");
    bench.write("flag", "yes\n");
    let plan = bench.plan(run);
    assert_eq!(verdicts(&plan, &rows), ["run", "skip", "run", "no row"], "{plan:#}");
    assert!(causes(&plan, "no").contains(&"reads.flag".to_owned()), "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("yes"), bench.ran("no")), (vec![1], vec![1]));
    assert_eq!(bench.ran("group/inner"), [1]);
}

#[test]
fn g3_what_a_condition_decided_stays_where_a_person_keeps_it() {
    let bench = Bench::new(FLAGGED);
    bench.write("flag", "no\n");
    bench.exits("run w.yaml", 10);
    bench.write("flag", "yes\n");
    bench.write("go", "");
    bench.exits("resume --no-input --keep yes --keep no --keep group", 0);
    assert_eq!((bench.ran("yes"), bench.ran("no")), (vec![], vec![1]));
    assert_eq!(bench.ran("group/inner"), [0; 0]);
}

#[test]
fn g4_an_edited_step_that_ended_or_lives_runs_as_it_is_asked_for_now() {
    for lives in [false, true] {
        for effect in ["", ", effect: outside"] {
            let bench = chain(effect);
            let run = if lives { begun(&bench) } else { ended(&bench, "b") };
            let text = bench.text("w.yaml").replace("cat a.txt > b.txt", "echo new > b.txt");
            bench.write("w.yaml", &text);
            let plan = bench.plan(&run);
            assert_eq!(verdicts(&plan, &["a", "b", "c"]), ["keep", "rerun", "run"], "{plan:#}");
            assert!(causes(&plan, "b").contains(&"definition.run".to_owned()), "{plan:#}");
            assert!(codes(&plan).contains(&"definition-touches-done"), "{plan:#}");
            let _ = fs::remove_file(bench.path("wait.o"));
            bench.exits("resume --no-input", 0);
            assert_eq!(bench.ran("b"), [1, 2], "{effect} {lives}");
            assert_eq!(bench.text("c.txt"), "new\n");
        }
    }
}

#[test]
fn g4_a_person_keeps_what_ended_under_its_old_definition() {
    let bench = chain("");
    ended(&bench, "b");
    let text = bench.text("w.yaml").replace("cat a.txt > b.txt", "echo new > b.txt");
    bench.write("w.yaml", &text);
    bench.exits("resume --no-input --keep b", 0);
    assert_eq!((bench.ran("b"), bench.text("c.txt")), (vec![1], "1\n".to_owned()));
}

#[test]
fn g5_an_item_that_is_no_longer_listed_stays_as_it_is_whatever_else_changed() {
    let bench = Bench::new(
        "  - { id: f, each: [x, y], run: 'LOG; echo {{ item }} > {{ item }}.txt', \
            writes: ['{{ item }}.txt'] }\n  \
         - { id: last, run: 'LOG; test -e go' }\n",
    );
    bench.exits("run w.yaml", 10);
    let runs = bench.project().runs().unwrap();
    let text = bench.text("w.yaml").replace("[x, y]", "[y]").replace("echo {{", "echo  {{");
    bench.write("w.yaml", &text);
    fs::remove_file(bench.path("x.txt")).unwrap();
    let plan = bench.plan(&runs[0].dir);
    assert_eq!(verdicts(&plan, &["f[x]", "f[y]"]), ["keep", "rerun"], "{plan:#}");
    let about_x = |it: &&Value| it["step"] == "f[x]";
    assert_eq!(plan["findings"].as_array().unwrap().iter().find(about_x), None, "{plan:#}");
    bench.write("go", "");
    let said = bench.exits("resume --no-input", 0);
    assert!(!said.err.contains("stale f[x]"), "{said:?}");
    assert_eq!((bench.ran("f[x]"), bench.ran("f[y]")), (vec![1], vec![1, 2]));
}

/// Whether it was edited while the item was away or when it comes back.
#[test]
fn g5_an_item_that_is_listed_again_runs_again_if_it_is_asked_for_differently() {
    for (away, back) in [("echo 1", "echo 2"), ("echo 2", "echo 2"), ("echo 1", "echo 1")] {
        let bench = Bench::new(
            "  - { id: f, each: [x, y], run: 'LOG; echo 1 > {{ item }}.txt', \
                writes: ['{{ item }}.txt'] }\n  \
             - { id: g, gate: 'ok?' }\n",
        );
        bench.exits("run w.yaml --no-input", 11);
        let runs = bench.project().runs().unwrap();
        let listed = |items: &str, run: &str| {
            let text = bench.text("w.yaml").replace("[x, y]", "[x]").replace("[x]", items);
            bench.write("w.yaml", &text.replace("echo 1", "echo 2").replace("echo 2", run));
        };
        listed("[x]", away);
        bench.exits("resume --no-input", 11);
        listed("[x, y]", back);
        let plan = bench.plan(&runs[0].dir);
        let wanted = if back == "echo 1" { "keep" } else { "rerun" };
        assert_eq!(verdicts(&plan, &["f[y]"]), [wanted], "{plan:#}");
        bench.exits("resume --no-input", 11);
        assert_eq!(bench.text("y.txt").trim(), back.trim_start_matches("echo "));
    }
}

#[test]
fn g6_the_headline_says_what_is_asked_before_anything_starts() {
    let bench = Bench::new(&format!(
        "  - {{ id: e, run: 'LOG; touch happened; {WAITS}', effect: outside, \
            probe: {{ run: test -e happened, absent: 1 }} }}\n  \
         - {{ id: f, run: LOG }}\n"
    ));
    let run = begun(&bench);
    kill_all(&run);
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["e", "f"]), ["verify", "run"], "{plan:#}");
    let says = "the probe of e is asked first; continues at f if it happened, else at e";
    assert!(summary(&plan).contains(says), "{plan:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("e"), bench.ran("f")), (vec![1], vec![1]));
}
