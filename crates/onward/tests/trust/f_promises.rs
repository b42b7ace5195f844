//! Promises that the built program did not keep when it was attacked a third time.

use std::{fs, path::PathBuf};

use onward_engine::{care::harness::until, revert::rescue};
use serde_json::Value;

use crate::{
    bench::{Bench, codes, id, kill_all, sees, signal},
    support::repo::git,
};

fn row<'p>(plan: &'p Value, step: &str) -> &'p Value {
    let rows = plan["steps"].as_array().unwrap();
    rows.iter().find(|row| row["step"] == step).unwrap_or(&Value::Null)
}

fn only_run(bench: &Bench) -> PathBuf {
    let runs = bench.project().runs().unwrap();
    assert_eq!(runs.len(), 1);
    runs[0].dir.clone()
}

fn in_git(steps: &str) -> Bench {
    let bench = Bench::new(steps);
    git(&bench, "init -q -b main");
    bench.write(".gitignore", "ledger.txt\nsaid\nbegun\ngo*\nw.yaml\n");
    bench.write("base.txt", "base\n");
    git(&bench, "add -A");
    git(&bench, "commit -q -m one");
    bench
}

/// What the rescues of the run hold of a path.
fn rescued(bench: &Bench, path: &str) -> Vec<String> {
    let kept = rescue::list(&only_run(bench)).unwrap().rescues;
    let texts = kept.iter().map(|it| fs::read_to_string(it.dir.join("files").join(path)));
    texts.filter_map(Result::ok).collect()
}

/// The plan says that the person's version of `x.md` is replaced by `by`, and asks.
#[track_caller]
fn asks_about(bench: &Bench, by: &str) {
    let plan = bench.plan(&only_run(bench));
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    let revert = &plan["reverts"][0];
    assert_eq!((&revert["path"], &revert["kind"]), (&"x.md".into(), &"replace-file".into()));
    let needs = plan["needs"].as_array().unwrap();
    let told = format!("be replaced by {by}, saved as rescue");
    assert!(needs.iter().any(|it| it.as_str().unwrap().contains(&told)), "{plan:#}");
    bench.exits("resume --no-input --yes", 16);
    assert_eq!(bench.text("x.md"), "by hand\n", "a refused resume does nothing");
    assert_eq!(rescued(bench, "x.md"), [""; 0]);
}

#[test]
fn a1_a_change_of_a_file_that_a_later_step_writes_is_kept_and_asked_about() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; echo 1 > x.md', writes: [x.md] }\n  \
         - { id: stop, run: 'LOG; test -e go' }\n  \
         - { id: two, run: 'LOG; echo 2 > x.md', writes: ['x.*'] }\n",
    );
    bench.exits("run w.yaml", 10);
    bench.write("x.md", "by hand\n");
    asks_about(&bench, "two");
    bench.write("go", "");
    bench.exits("resume --no-input --accept artifact-changed", 0);
    assert_eq!(bench.text("x.md"), "2\n");
    assert_eq!(rescued(&bench, "x.md"), ["by hand\n"]);
    assert_eq!(bench.ran("one"), [1], "the change is kept until then");
}

#[test]
fn a1_a_change_of_a_file_that_a_later_turn_writes_is_kept_and_asked_about() {
    let bench = Bench::new(
        "  - id: r\n    repeat: { max: 2 }\n    steps:\n      \
         - { id: w, run: 'LOG; echo {{ r }} > x.md', writes: [x.md] }\n      \
         - { id: t, run: 'LOG; test -e go' }\n",
    );
    bench.exits("run w.yaml", 10);
    bench.write("x.md", "by hand\n");
    asks_about(&bench, "r");
    bench.write("go", "");
    bench.exits("resume --no-input --accept artifact-changed", 0);
    assert_eq!(bench.text("x.md"), "2\n");
    assert_eq!(rescued(&bench, "x.md"), ["by hand\n"]);
}

/// Which files the items will write is not known yet: what may be replaced is kept in any case, and
/// only what is known to be is asked about.
#[test]
fn a1_a_change_of_a_file_that_items_to_come_may_write_is_kept() {
    let bench = Bench::new(
        "  - { id: list, run: 'LOG; echo a > x.md', writes: [x.md] }\n  \
         - { id: stop, run: 'LOG; test -e go && echo x', result: { schema: any.json } }\n  \
         - id: each\n    each: \"{{ [steps.stop.result] }}\"\n    \
         run: 'LOG; echo item > \"{{ item }}.md\"'\n    writes: ['{{ item }}.md']\n",
    );
    bench.write("any.json", "{}");
    let text = bench.text("w.yaml").replace("&& echo x", "&& echo \"x\" > \"$ONWARD_RESULT\"");
    bench.write("w.yaml", &text.replace("echo \"x\" >", "printf \"%s\" \"\\\"x\\\"\" >"));
    bench.exits("run w.yaml", 10);
    bench.write("x.md", "by hand\n");
    let plan = bench.plan(&only_run(&bench));
    assert_eq!(plan["reverts"][0]["path"], "x.md", "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.text("x.md"), "item\n");
    assert_eq!(rescued(&bench, "x.md"), ["by hand\n"]);
}

#[test]
fn a1_a_change_of_a_file_that_no_step_made_yet_is_kept_before_a_step_replaces_it() {
    let bench = in_git(
        "  - { id: e, edits: true, run: 'LOG; echo e > e.txt' }\n  \
         - { id: stop, run: 'LOG; test -e go' }\n  \
         - { id: two, run: 'LOG; echo 2 > x.md', writes: [x.md] }\n",
    );
    bench.exits("run w.yaml", 10);
    bench.write("x.md", "by hand\n");
    bench.write("y.md", "by hand\n");
    asks_about(&bench, "two");
    let plan = bench.plan(&only_run(&bench));
    assert!(!format!("{plan}").contains("these changes stay as they are"), "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input --accept artifact-changed --accept dirty-tree", 0);
    assert_eq!((bench.text("x.md"), bench.text("y.md")), ("2\n".into(), "by hand\n".into()));
    assert_eq!(rescued(&bench, "x.md"), ["by hand\n"]);
    assert_eq!(rescued(&bench, "y.md"), [""; 0]);
}

#[test]
fn a5_a_loop_between_two_turns_names_the_turn_that_comes() {
    let bench = Bench::new(
        "  - id: r\n    repeat: { max: 2 }\n    steps:\n      \
         - { id: w, run: 'LOG; touch begun; until test -e go; do sleep 0.02; done' }\n  \
         - { id: last, run: LOG }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    bench.exits("pause", 0);
    onward_engine::care::harness::until("the driver to take the request", || {
        Ok(fs::read_dir(run.join("inbox")).unwrap().next().is_none().then_some(()))
    })
    .unwrap();
    bench.write("go", "");
    engine.wait().unwrap();
    let plan = bench.plan(&run);
    assert_eq!(row(&plan, "r[1]/w")["verdict"], "keep", "{plan:#}");
    assert_eq!(row(&plan, "r[2]/w")["verdict"], "run", "{plan:#}");
    assert_eq!(plan["recovery_point"]["steps"], serde_json::json!(["r[2]/w"]), "{plan:#}");
    let status = bench.onward(&format!("status --json {}", id(&run))).json();
    assert_eq!(status["next"], serde_json::json!(["r[2]/w"]), "{status:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("r[2]/w"), bench.ran("last")), (vec![1], vec![1]));
}

#[test]
fn a23_an_effect_whose_needs_changed_is_not_said_to_count_as_done() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > a.txt', writes: [a.txt] }\n  \
         - { id: e, effect: outside, probe: { run: test -e sent }, \
            run: 'LOG; touch sent begun; test -e go || sleep 1000' }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    bench.write("a.txt", "by hand\n");
    let plan = bench.plan(&run);
    let said = row(&plan, "e").to_string();
    assert!(said.contains("it is made again all the same, because this changed"), "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.ran("e"), [1, 2], "as the row says");
}

#[test]
fn a25_a_step_that_failed_while_the_engine_was_down_is_not_passed_over_in_the_headline() {
    for (retry, verdict, ran) in [("", "adopt", 1), (", retry: { max: 1 }", "rerun", 2)] {
        let bench = Bench::new(&format!(
            "  - {{ id: a, run: 'LOG; test -e begun && exit 0; echo $$ > pid; touch begun; \
             exec sleep 1000'{retry} }}\n  - {{ id: b, run: LOG }}\n"
        ));
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("begun"));
        engine.kill().unwrap();
        signal(bench.text("pid").trim().parse().unwrap(), "-TERM");
        onward_engine::care::harness::until("a seal", || {
            let seals = fs::read(run.join("exits.jsonl")).unwrap_or_default();
            Ok(String::from_utf8_lossy(&seals).contains("signalled").then_some(()))
        })
        .unwrap();
        let plan = bench.plan(&run);
        assert_eq!(row(&plan, "a")["verdict"], verdict, "{plan:#}");
        let summary = plan["recovery_point"]["summary"].as_str().unwrap();
        let is_over = retry.is_empty();
        assert_eq!(summary.contains("a failed while the engine was down"), is_over, "{summary}");
        assert_eq!(row(&plan, "b")["verdict"] == "run", !is_over, "{plan:#}");
        bench.exits("resume --no-input", if is_over { 10 } else { 0 });
        assert_eq!(bench.ran("a").len(), ran);
        assert_eq!(bench.ran("b").is_empty(), is_over);
    }
}

#[test]
fn b2_a_copy_of_the_workflow_that_is_not_what_the_journal_names_is_damage() {
    for text in ["", "onward: 1\nname: story\nsteps:\n  - { id: a, run: touch evil }\n"] {
        let bench = Bench::new("  - { id: a, run: 'LOG; test -e go' }\n");
        bench.exits("run w.yaml", 10);
        let run = only_run(&bench);
        fs::write(run.join("workflow.yaml"), text).unwrap();
        // The file of the project has it still.
        let plan = bench.plan(&run);
        assert_eq!(row(&plan, "a")["verdict"], "rerun", "{plan:#}");
        bench.exits("resume --no-input --pinned", 10);
        assert_eq!(bench.ran("a"), [1, 2]);
        let before = bench.text("w.yaml");
        bench.write("w.yaml", &before.replace("test -e go", "true"));
        for command in ["plan", "status", "resume --no-input", "resume --no-input --pinned"] {
            let said = bench.exits(&format!("{command} {}", id(&run)), 15);
            assert!(said.err.contains("not the one that its journal names"), "{said:?}");
            assert!(said.err.contains("bring w.yaml back"), "{said:?}");
        }
        let doctor = bench.onward("doctor");
        assert!(doctor.out.contains("workflow-damaged"), "{doctor:?}");
        let list = bench.onward("list");
        assert!(list.out.contains("not the one that its journal names"), "{list:?}");
        assert_eq!(bench.ran("a"), [1, 2]);
        assert!(!bench.path("evil").exists());
        // As the hint says.
        bench.write("w.yaml", &before);
        bench.write("go", "");
        bench.exits("resume --no-input", 0);
        assert_eq!(bench.ran("a"), [1, 2, 3]);
    }
}

#[test]
fn b2_a_supervisor_file_that_cannot_be_read_hinders_no_other_run() {
    let bench = Bench::new("  - { id: a, run: 'LOG; test -e go' }\n");
    bench.exits("run w.yaml", 10);
    let bad = only_run(&bench);
    bench.exits("run w.yaml", 10);
    let _ = fs::remove_file(bad.join("supervisor"));
    fs::create_dir(bad.join("supervisor")).unwrap();
    let all = bench.project().runs().unwrap();
    for run in &all {
        bench.plan(&run.dir);
    }
    bench.exits("plan", 0);
    bench.exits("doctor", 0);
    bench.write("go", "");
    bench.onward("resume --no-input --all");
    let other = all.iter().find(|it| it.dir != bad).unwrap();
    let status = bench.onward(&format!("status --json {}", id(&other.dir))).json();
    assert_eq!(status["run"]["status"], "completed", "{status:#}");
}

/// One log that is no file is a problem of its run alone.
#[test]
fn b2_a_log_that_cannot_be_read_hinders_no_other_run() {
    let bench = Bench::new("  - { id: a, run: 'LOG; test -e go' }\n");
    bench.exits("run w.yaml", 10);
    let bad = only_run(&bench);
    bench.exits("run w.yaml", 10);
    fs::remove_file(bad.join("exits.jsonl")).unwrap();
    fs::create_dir(bad.join("exits.jsonl")).unwrap();
    let doctor = bench.exits("doctor", 16);
    assert!(doctor.out.contains(&id(&bad)), "{doctor:?}");
    bench.write("go", "");
    let said = bench.exits("resume --no-input --all", 1);
    assert!(said.err.contains("exits.jsonl"), "{said:?}");
    let all = bench.project().runs().unwrap();
    let other = all.iter().find(|it| it.dir != bad).unwrap();
    let status = bench.onward(&format!("status --json {}", id(&other.dir))).json();
    assert_eq!(status["run"]["status"], "completed", "{status:#}");
}

#[test]
fn b5_what_is_half_done_when_a_driven_run_is_cancelled_is_undone_and_kept() {
    let bench = in_git(
        "  - { id: a, edits: true, run: 'LOG; echo half > base.txt; echo new > new.txt; \
         touch begun; sleep 1000' }\n  - { id: b, run: LOG }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    bench.exits("cancel", 0);
    engine.wait().unwrap();
    let status = bench.onward(&format!("status --json {}", id(&run))).json();
    assert_eq!(status["run"]["status"], "cancelled", "{status:#}");
    assert_eq!(bench.text("base.txt"), "base\n");
    assert!(!bench.path("new.txt").exists());
    assert_eq!(rescued(&bench, "base.txt"), ["half\n"]);
    assert_eq!(rescued(&bench, "new.txt"), ["new\n"]);
    let said = bench.text("said");
    assert!(said.contains("base.txt") && said.contains("onward undo"), "{said}");
    assert_eq!(codes(&bench.plan(&run)), [""; 0], "what was undone is no stranger's change");
    bench.exits(&format!("undo {} 1 --yes", id(&run)), 0);
    assert_eq!((bench.text("base.txt"), bench.text("new.txt")), ("half\n".into(), "new\n".into()));
}

#[test]
fn b5_what_is_half_done_when_an_answer_ends_the_run_is_undone_and_kept() {
    let bench = in_git(
        "  - { id: ok, needs: [], gate: go on? }\n  \
         - { id: a, needs: [], edits: true, run: 'LOG; echo half > base.txt; touch begun; \
         sleep 1000' }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    bench.exits("reject", 0);
    engine.wait().unwrap();
    let status = bench.onward(&format!("status --json {}", id(&run))).json();
    assert_eq!(status["run"]["status"], "cancelled", "{status:#}");
    assert_eq!(bench.text("base.txt"), "base\n");
    assert_eq!(rescued(&bench, "base.txt"), ["half\n"]);
}

/// Its result proves it done; what it had printed until it was killed proves nothing.
#[test]
fn a12_a_killed_step_whose_output_another_looks_at_runs_again() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo hi; echo 1 > $ONWARD_RESULT; touch begun; \
         test $ONWARD_ATTEMPT = 2 || sleep 1000', result: { schema: s.json } }\n  \
         - { id: b, run: 'LOG; echo {{ steps.a.stdout }} > b.o' }\n",
    );
    bench.write("s.json", "{}");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    assert_eq!(row(&bench.plan(&run), "a")["verdict"], "rerun");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("a"), bench.text("b.o").trim()), (vec![1, 2], "hi"));
}

/// What the plan found before a person answered a gate, it finds after it.
#[test]
fn a4_an_answer_without_a_driver_hides_no_change() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; cat d/*.txt > a.o', reads: ['d/*.txt'], writes: [a.o] }\n  \
         - { id: g, gate: go? }\n  \
         - { id: end, run: LOG }\n",
    );
    fs::create_dir(bench.path("d")).unwrap();
    bench.write("d/1.txt", "1\n");
    bench.onward("run w.yaml --no-input");
    let run = only_run(&bench);
    // A file system whose clock only ticks now and then shows it a little later.
    until("the new file to be seen", || {
        bench.write("d/2.txt", "2\n");
        Ok((row(&bench.plan(&run), "a")["verdict"] == "rerun").then_some(()))
    })
    .unwrap();
    bench.exits(&format!("approve {}", id(&run)), 0);
    let plan = bench.plan(&run);
    assert_eq!(row(&plan, "a")["verdict"], "rerun", "{plan:#}");
    bench.onward("resume --no-input");
    assert_eq!(bench.ran("a"), [1, 2]);
    assert_eq!(bench.text("a.o"), "1\n2\n");
}
