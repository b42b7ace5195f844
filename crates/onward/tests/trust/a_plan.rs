//! What the plan says is what the resume does.

use std::{fs, path::Path};

use onward_engine::{care::harness::until, revert::rescue};
use serde_json::Value;

use crate::{
    bench::{Bench, codes, id, journal, kill_all, processes, sees, signal},
    support::repo::{git, repo},
};

/// The verdict of a row.
fn verdict<'p>(plan: &'p Value, step: &str) -> &'p str {
    let rows = plan["steps"].as_array().unwrap();
    let row = rows.iter().find(|row| row["step"] == step);
    row.map_or("no row", |row| row["verdict"].as_str().unwrap())
}

fn paths_of(plan: &Value) -> Vec<&str> {
    let reverts = plan["reverts"].as_array().unwrap();
    reverts.iter().map(|it| it["path"].as_str().unwrap()).collect()
}

fn summary(plan: &Value) -> &str {
    plan["recovery_point"]["summary"].as_str().unwrap()
}

/// The only run of the project.
fn only_run(bench: &Bench) -> std::path::PathBuf {
    let runs = bench.project().runs().unwrap();
    assert_eq!(runs.len(), 1);
    runs[0].dir.clone()
}

/// Waits until everything of the run but its supervisor has ended.
pub(crate) fn waits_for_seal(run: &Path, step: &str) {
    until("a seal", || {
        let seals = fs::read_to_string(run.join("exits.jsonl")).unwrap_or_default();
        let seals = seals.trim_matches('\0');
        let is_it =
            |line: &str| line.contains(&format!("\"step\":\"{step}\"")) && line.contains("exited");
        Ok(seals.lines().any(is_it).then_some(()))
    })
    .unwrap();
}

const EDITED: &str = "  - { id: write, run: 'LOG; echo v1 > x.md', writes: [x.md] }\n  \
    - { id: last, run: 'LOG; test -e go' }\n";

#[test]
fn a1_what_a_person_made_of_an_output_is_kept_before_its_step_runs_again() {
    let bench = Bench::new(EDITED);
    bench.exits("run w.yaml", 10);
    let run = only_run(&bench);
    bench.write("x.md", "v1\nby hand\n");
    let text = bench.text("w.yaml").replace("echo v1", "echo v2");
    bench.write("w.yaml", &text);
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "write"), "rerun", "{plan:#}");
    let revert = &plan["reverts"][0];
    assert_eq!((&revert["path"], &revert["kind"]), (&"x.md".into(), &"replace-file".into()));
    assert_eq!(revert["rescue"], "rescue/1-write", "{plan:#}");
    assert_eq!(plan["can_resume"], false);
    assert!(plan["needs"][0].as_str().unwrap().contains("saved as rescue 1"), "{plan:#}");
    assert!(!format!("{plan}").contains("kept as it is"), "{plan:#}");
    bench.exits("resume --no-input", 16);
    bench.exits("resume --no-input --yes", 16);
    assert_eq!(bench.text("x.md"), "v1\nby hand\n");
    bench.write("go", "");
    bench.exits("resume --no-input --accept artifact-changed", 0);
    assert_eq!(bench.text("x.md"), "v2\n");
    let kept = rescue::list(&run).unwrap().rescues;
    assert_eq!(kept.len(), 1);
    let kept = fs::read_to_string(kept[0].dir.join("files/x.md")).unwrap();
    assert_eq!(kept, "v1\nby hand\n");
    let listed = bench.exits("rescue list", 0);
    assert!(listed.out.contains("x.md"), "{listed:?}");
}

#[test]
fn a1_a_change_that_was_kept_once_is_not_lost_to_a_later_cause() {
    let bench = Bench::new(EDITED);
    bench.exits("run w.yaml", 10);
    let run = only_run(&bench);
    bench.write("x.md", "by hand\n");
    // The change is kept and counts from now on.
    bench.exits("resume --no-input --yes", 10);
    assert_eq!(bench.text("x.md"), "by hand\n");
    bench.exits("resume --no-input --redo write", 16);
    bench.exits("resume --no-input --redo write --accept artifact-changed", 10);
    assert_eq!(bench.text("x.md"), "v1\n");
    let kept = rescue::list(&run).unwrap().rescues;
    assert_eq!(kept[0].note.paths[0].path, "x.md", "{kept:?}");
}

#[test]
fn a1_a_change_behind_a_step_that_runs_again_is_asked_about_too() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; cp in.txt a.txt', reads: [in.txt], writes: [a.txt] }\n  \
         - { id: b, run: 'LOG; cp a.txt b.txt', reads: [a.txt], writes: [b.txt] }\n  \
         - { id: last, run: 'LOG; exit 1' }\n",
    );
    bench.write("in.txt", "1\n");
    bench.exits("run w.yaml", 10);
    bench.write("in.txt", "2\n");
    bench.write("b.txt", "by hand\n");
    let plan = bench.plan(&only_run(&bench));
    assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("rerun", "verify"), "{plan:#}");
    assert_eq!(paths_of(&plan), ["b.txt"]);
    bench.exits("resume --no-input --yes", 16);
    bench.exits("resume --no-input --yes --accept artifact-changed", 10);
    assert_eq!(bench.text("b.txt"), "2\n");
    let kept = rescue::list(&only_run(&bench)).unwrap().rescues;
    assert_eq!(fs::read_to_string(kept[0].dir.join("files/b.txt")).unwrap(), "by hand\n");
}

#[test]
fn a2_a_lost_merge_is_found_and_nothing_is_pushed_without_it() {
    let steps = "  - { id: feature, worktree: true, run: 'LOG; echo f > f.txt' }\n  \
        - { id: merge, run: 'LOG; git -c user.name=a -c user.email=a@b \
            merge -q --no-ff -m merged {{ steps.feature.branch }}', \
            check: test -e f.txt }\n  \
        - { id: ok, gate: push? }\n  \
        - { id: push, run: 'LOG; git log --format=%s > pushed.o', effect: outside }\n";
    let bench = repo("", steps);
    git(&bench, "add -A");
    git(&bench, "commit -q -m two");
    bench.exits("run w.yaml", 11);
    let run = only_run(&bench);
    git(&bench, "reset -q --hard HEAD~1");
    assert!(!bench.path("f.txt").exists());
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"missing-commits"), "{plan:#}");
    assert_eq!(verdict(&plan, "merge"), "rerun", "{plan:#}");
    // A person says yes to all, and answers whatever is asked.
    for _ in 0..4 {
        let said = bench.onward("resume --no-input --yes");
        if said.code == 0 {
            break;
        }
        assert_eq!(said.code, 11, "{said:?}");
        bench.exits("approve", 0);
    }
    assert!(bench.text("pushed.o").contains("merged"), "{}", bench.text("pushed.o"));
    assert!(bench.path("f.txt").exists());
}

#[test]
fn a2_checks_of_kept_steps_run_before_an_effect_that_rests_on_them() {
    let bench = Bench::new(
        "  - { id: make, run: 'LOG; echo 1 > made', check: test -e made }\n  \
         - { id: ok, gate: send? }\n  \
         - { id: send, run: 'LOG; cp made sent', effect: outside }\n",
    );
    bench.exits("run w.yaml", 11);
    // Not declared, so that nothing but the check knows of it.
    fs::remove_file(bench.path("made")).unwrap();
    bench.exits("approve", 0);
    let plan = bench.plan(&only_run(&bench));
    assert_eq!(verdict(&plan, "make"), "keep");
    assert!(plan.to_string().contains("its check runs again before send"), "{plan:#}");
    for _ in 0..2 {
        let said = bench.onward("resume --no-input");
        if said.code == 11 {
            assert!(!bench.path("sent").exists());
            bench.exits("approve", 0);
        }
    }
    assert_eq!(bench.ran("make"), [1, 2]);
    assert_eq!((bench.text("sent").as_str(), bench.ran("send")), ("1\n", vec![1]));
}

pub(crate) const FAN: &str = "  - { id: fan, each: [a, b], run: 'LOG; true {{ fan }}' }\n  \
    - { id: end, run: 'LOG; test -e go' }\n";

#[test]
fn a10_an_edited_list_runs_its_new_items_and_reports_those_no_longer_listed() {
    let bench = Bench::new(&FAN.replace("{{ fan }}", ""));
    bench.exits("run w.yaml", 10);
    let run = only_run(&bench);
    let text = bench.text("w.yaml").replace("[a, b]", "[b, c]");
    bench.write("w.yaml", &text);
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "fan[a]"), "keep", "{plan:#}");
    assert_eq!(verdict(&plan, "fan[b]"), "keep");
    assert_eq!(verdict(&plan, "fan[c]"), "run");
    let findings = plan["findings"].to_string();
    assert!(findings.contains("a: no longer listed"), "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    let ran = |item: &str| bench.ran(&format!("fan[{item}]"));
    assert_eq!((ran("a"), ran("b"), ran("c")), (vec![1], vec![1], vec![1]));
}

#[test]
fn a11_a_list_file_that_changed_asks_and_then_counts() {
    let steps = "  - { id: fan, each: \"{{ lines('items') }}\", run: 'LOG' }\n  \
        - { id: end, run: 'LOG; test -e go' }\n";
    let bench = Bench::new(steps);
    bench.write("items", "a\nb\n");
    bench.exits("run w.yaml", 10);
    let run = only_run(&bench);
    bench.write("items", "b\nc\n");
    let plan = bench.plan(&run);
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    assert!(plan["needs"].to_string().contains("items changed"), "{plan:#}");
    assert_eq!(verdict(&plan, "fan[c]"), "run");
    bench.write("go", "");
    bench.exits("resume --no-input", 16);
    assert_eq!(bench.ran("fan[c]"), [0; 0]);
    bench.exits("resume --no-input --accept artifact-changed", 0);
    assert_eq!((bench.ran("fan[b]"), bench.ran("fan[c]")), (vec![1], vec![1]));
}

#[test]
fn a11_the_old_list_may_be_kept() {
    let steps = "  - { id: fan, each: \"{{ lines('items') }}\", run: 'LOG' }\n  \
        - { id: end, run: 'LOG; test -e go' }\n";
    let bench = Bench::new(steps);
    bench.write("items", "a\nb\n");
    bench.exits("run w.yaml", 10);
    bench.write("items", "c\n");
    bench.write("go", "");
    bench.exits("resume --no-input --keep fan", 0);
    assert_eq!(bench.ran("fan[c]"), [0; 0]);
}

/// `a` reads in.txt, `b` reads a.txt and takes as long as `wait` is there.
const CHAIN: &str = "  \
    - { id: a, run: 'LOG; cp in.txt a.txt', reads: [in.txt], writes: [a.txt] }\n  \
    - { id: b, run: 'LOG; cat a.txt > b.txt; touch began; \
        while test -e wait; do sleep 0.02; done', \
        reads: [a.txt], writes: [b.txt] }\n";

#[test]
fn a20_a_result_that_cannot_count_is_neither_waited_for_nor_taken() {
    for ends in [true, false] {
        let bench = Bench::new(CHAIN);
        bench.write("in.txt", "1\n");
        bench.write("wait", "");
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("began"));
        engine.kill().unwrap();
        if ends {
            fs::remove_file(bench.path("wait")).unwrap();
            waits_for_seal(&run, "b");
        }
        bench.write("in.txt", "2\n");
        let plan = bench.plan(&run);
        assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("rerun", "rerun"), "{plan:#}");
        assert_eq!(paths_of(&plan), ["b.txt"], "{plan:#}");
        // The second attempt does not wait; the first one would wait for ever.
        if !ends {
            let text = bench.text("w.yaml");
            let text = text.replace("test -e wait", "test -e wait && test $ONWARD_ATTEMPT = 1");
            assert_ne!(text, bench.text("w.yaml"));
            bench.write("w.yaml", &text);
        }
        bench.exits("resume --no-input", 0);
        assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1, 2], vec![1, 2]));
        assert_eq!(bench.text("b.txt"), "2\n");
        // What b is asked for was edited, too, in the second case, and is the nearer cause.
        let rung = if ends { "superseded" } else { "outdated" };
        assert!(journal(&run).contains(rung));
    }
}

#[test]
fn a21_the_snapshot_of_the_seal_tells_whose_deletion_it_is() {
    let steps = "  - { id: a, run: 'LOG; echo 1 > made.txt', writes: [made.txt] }\n  \
        - { id: b, edits: true, run: 'LOG; echo b > other.txt; touch .git/began; \
            while test -e .git/wait; do sleep 0.02; done' }\n  \
        - { id: u, run: 'LOG; cat made.txt', reads: [made.txt] }\n";
    let bench = repo("", steps);
    bench.write(".git/wait", "");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/began"));
    engine.kill().unwrap();
    fs::remove_file(bench.path(".git/wait")).unwrap();
    waits_for_seal(&run, "b");
    until("the snapshot after it", || {
        let seals = fs::read_to_string(run.join("exits.jsonl")).unwrap_or_default();
        Ok(seals.contains("snapshot").then_some(()))
    })
    .unwrap();
    fs::remove_file(bench.path("made.txt")).unwrap();
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "a"), "rerun", "{plan:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.text("made.txt"), "1\n");
    assert_eq!(bench.text("other.txt"), "b\n");
    assert_eq!((bench.ran("a"), bench.ran("u")), (vec![1, 2], vec![1]));
}

#[test]
fn a22_outputs_of_the_runs_own_steps_are_known() {
    let steps = "  - { id: a, edits: true, run: 'LOG; echo a > by-a.txt' }\n  \
        - { id: b, run: 'LOG; echo b > by-b.txt', writes: [by-b.txt] }\n  \
        - { id: c, run: 'LOG; touch .git/began; exec sleep 100' }\n";
    let bench = repo("", steps);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/began"));
    engine.kill().unwrap();
    let plan = bench.plan(&run);
    assert!(!codes(&plan).contains(&"dirty-tree"), "{plan:#}");
    kill_all(&run);
    let plan = bench.plan(&run);
    assert!(!codes(&plan).contains(&"dirty-tree"), "{plan:#}");
}

#[test]
fn a23_a_verify_row_says_what_either_answer_leads_to() {
    let steps = "  - { id: send, run: 'LOG; echo half > a.txt; touch began; \
        test $ONWARD_ATTEMPT = 2 || exec sleep 100; echo sent > sent', effect: outside, \
        probe: { run: test -e sent, absent: 1 }, writes: [a.txt] }\n";
    let bench = Bench::new(steps);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    engine.kill().unwrap();
    kill_all(&run);
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "send"), "verify", "{plan:#}");
    let why = plan["steps"][0]["why"][0]["detail"].as_str().unwrap();
    assert!(why.contains("counts as done") && why.contains("a.txt is undone"), "{plan:#}");
    let revert = &plan["reverts"][0];
    assert_eq!(revert["path"], "a.txt", "{plan:#}");
    assert_eq!(revert["only_if"], "the probe says that it did not happen");
    assert!(summary(&plan).contains("send"), "{plan:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!(rescue::list(&run).unwrap().rescues[0].note.paths[0].path, "a.txt");
}

#[test]
fn a12_a_check_decides_about_a_commit_that_was_not_recorded() {
    for agrees in [true, false] {
        let check = if agrees { "test -e made.txt" } else { "test -e never" };
        let steps = format!(
            "  - {{ id: a, edits: true, check: {check}, run: 'LOG; echo 1 > made.txt; \
             git add made.txt; git -c user.name=a -c user.email=a@b commit -q -m made; \
             touch .git/began; test $ONWARD_ATTEMPT = 2 || exec sleep 100' }}\n"
        );
        let bench = repo("", &steps);
        let (mut engine, run) = bench.start_run();
        sees(&bench.path(".git/began"));
        engine.kill().unwrap();
        kill_all(&run);
        let plan = bench.plan(&run);
        assert_eq!(verdict(&plan, "a"), "verify", "{plan:#}");
        bench.onward("resume --no-input");
        let ran: &[u32] = if agrees { &[1] } else { &[1, 2] };
        assert_eq!(bench.ran("a"), ran, "{}", journal(&run));
    }
}

#[test]
fn a8_a_refused_resume_makes_no_worktree_again() {
    let steps = "  - { id: w, worktree: side, run: 'LOG; echo 1 > one.txt' }\n  \
        - { id: v, worktree: side, run: 'LOG; test -e ../../../go' }\n";
    let bench = repo("", steps);
    bench.exits("run w.yaml", 10);
    let run = only_run(&bench);
    let worktrees = git(&bench, "worktree list --porcelain");
    let place = worktrees.lines().filter_map(|it| it.strip_prefix("worktree ")).nth(1).unwrap();
    fs::remove_dir_all(place).unwrap();
    // Another branch is a question that blocks.
    git(&bench, "switch -q -c elsewhere");
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"worktree-missing"), "{plan:#}");
    bench.exits("resume --no-input", 16);
    assert!(!Path::new(place).exists());
}

#[test]
fn a24_each_known_instance_has_a_row() {
    let steps = "  - id: r\n    repeat: { max: 2 }\n    steps:\n      \
        - { id: w, run: 'LOG; echo {{ r }} > out-{{ r }}', writes: ['out-{{ r }}'] }\n  \
        - { id: last, run: 'LOG; exit 1' }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml", 10);
    let run = only_run(&bench);
    fs::remove_file(bench.path("out-1")).unwrap();
    let plan = bench.plan(&run);
    let status = bench.exits(&format!("status --json {}", id(&run)), 0).json();
    for step in status["steps"].as_array().unwrap() {
        let step = step["step"].as_str().unwrap();
        assert_ne!(verdict(&plan, step), "no row", "{step}: {plan:#}");
    }
    assert_eq!(verdict(&plan, "r[2]/w"), "verify");
}

#[test]
fn a5_a25_the_headline_follows_from_the_rows() {
    // A prompt edited while a gate is open: the gate is not what comes first.
    let bench = Bench::new(
        "  - { id: draft, run: 'LOG; echo v1 > d.txt', writes: [d.txt] }\n  \
         - { id: ok, gate: fine?, shows: [d.txt] }\n",
    );
    bench.exits("run w.yaml", 11);
    let text = bench.text("w.yaml").replace("echo v1", "echo v2");
    bench.write("w.yaml", &text);
    let plan = bench.plan(&only_run(&bench));
    assert!(summary(&plan).contains("continues at draft"), "{plan:#}");
    assert!(!summary(&plan).contains("waits for your answer"), "{plan:#}");
    // A done step that was edited while another failed.
    let bench = Bench::new(
        "  - { id: write, run: 'LOG; echo v1 > d.txt', writes: [d.txt] }\n  \
         - { id: bad, run: exit 1 }\n",
    );
    bench.exits("run w.yaml", 10);
    let plan = bench.plan(&only_run(&bench));
    assert!(summary(&plan).contains("continues at bad, which failed"), "{plan:#}");
    let text = bench.text("w.yaml").replace("echo v1", "echo v2");
    bench.write("w.yaml", &text);
    let plan = bench.plan(&only_run(&bench));
    assert!(summary(&plan).contains("continues at write"), "{plan:#}");
    assert!(!summary(&plan).contains("failed"), "{plan:#}");
}

#[test]
fn a5_a_loop_that_was_interrupted_goes_on() {
    let steps = "  - id: r\n    repeat: { max: 3 }\n    steps:\n      \
        - { id: w, run: 'LOG; touch began; test -e go || exec sleep 100' }\n";
    let bench = Bench::new(steps);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    signal(engine.pid(), "-INT");
    signal(engine.pid(), "-INT");
    engine.wait().unwrap();
    let plan = bench.plan(&run);
    assert!(summary(&plan).contains("r[1]/w"), "{plan:#}");
    assert_eq!(plan["recovery_point"]["steps"][0], "r[1]/w", "{plan:#}");
}

#[test]
fn a27_rows_that_run_are_in_the_headline() {
    let steps = "  - { id: first, run: 'LOG; echo 1 > one', writes: [one] }\n  \
        - id: fan\n    each: [x, y]\n    reads: [one]\n    steps:\n      \
        - id: r\n        repeat: { max: 2 }\n        steps:\n          \
        - { id: w, run: 'LOG; cat one; touch began; test -e go || exec sleep 0.3', \
            reads: [one] }\n";
    let steps = steps.replace("    reads: [one]\n    steps", "    steps");
    let bench = Bench::new(&steps);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    engine.kill().unwrap();
    until("the steps to end", || {
        let left = processes(&run);
        Ok((left.len() <= 1).then_some(()))
    })
    .unwrap();
    bench.write("one", "by hand\n");
    let plan = bench.plan(&run);
    let acts = |row: &&Value| {
        ["run", "rerun", "ask", "continue", "reattach"].contains(&row["verdict"].as_str().unwrap())
    };
    let acting = plan["steps"].as_array().unwrap().iter().filter(acts).count();
    let named = plan["recovery_point"]["steps"].as_array().unwrap().len();
    assert_eq!(acting == 0, named == 0, "{plan:#}");
    assert!(acting > 0 && !summary(&plan).contains("all steps are done"), "{plan:#}");
    kill_all(&run);
}

#[test]
fn a16_a_plan_cuts_nothing_and_says_so() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: b, run: 'LOG; exit 1' }\n");
    bench.exits("run w.yaml", 10);
    let run = only_run(&bench);
    let path = run.join("journal.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap();
    bytes.truncate(end - 20);
    fs::write(&path, &bytes).unwrap();
    let plan = bench.plan(&run);
    let torn = plan["findings"].as_array().unwrap().iter().find(|it| it["code"] == "torn-tail");
    let torn = torn.unwrap().to_string();
    assert!(torn.contains("a resume cuts it off") && !torn.contains("was cut off"), "{torn}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_approval_is_asked_for_again_when_what_it_was_given_for_is_made_again() {
    let steps = "  - { id: write, run: cp seed notes.md, reads: [seed], writes: [notes.md] }\n  \
        - { id: ok, gate: Publish?, shows: [notes.md] }\n  \
        - { id: end, run: test -e go && cp notes.md pub.md, writes: [pub.md] }\n";
    let bench = Bench::new(steps);
    bench.write("seed", "1");
    bench.exits("run w.yaml --no-input", 11);
    bench.exits("approve ok", 0);
    bench.exits("resume --no-input", 10);
    bench.write("seed", "2");
    bench.write("go", "");
    bench.exits("resume --no-input --yes", 11);
    assert!(!bench.path("pub.md").exists());
    bench.exits("approve ok", 0);
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.text("pub.md"), "2");
}

/// A finished run that failed at its last step, gone on with an edited file.
fn edited(was: &str, is: &str) -> Bench {
    let last = "  - { id: d, run: 'echo d >> ran; test -e ok' }\n";
    let bench = Bench::new(&format!("{was}{last}"));
    let first = bench.onward("run w.yaml --no-input");
    if first.code == 11 {
        bench.exits("approve", 0);
        bench.exits("resume --no-input", 10);
    }
    bench.write("ok", "");
    bench.workflow("w.yaml", "steps:", &format!("{is}{last}"));
    bench
}

#[test]
fn a_step_that_is_of_another_kind_now_is_done_again() {
    let run = "  - { id: b, run: 'echo b >> ran' }\n";
    let gate = "  - { id: b, gate: 'really?' }\n";
    let bench = edited(run, gate);
    let plan = bench.exits("plan", 0);
    assert!(plan.out.contains("definition-touches-done"), "{plan:?}");
    bench.exits("resume --no-input --yes", 11);
    bench.exits("approve", 0);
    bench.exits("resume --no-input", 0);
    let bench = edited(gate, run);
    bench.exits("resume --no-input --yes", 0);
    assert!(bench.text("ran").contains('b'), "{}", bench.text("ran"));
}

#[test]
fn a_skipped_step_whose_condition_is_gone_runs() {
    let bench = edited(
        "  - { id: b, when: '{{ false }}', run: 'echo b >> ran' }\n",
        "  - { id: b, run: 'echo b >> ran' }\n",
    );
    bench.exits("resume --no-input --yes", 0);
    assert!(bench.text("ran").contains('b'), "{}", bench.text("ran"));
}

#[test]
fn an_effect_that_was_cut_off_is_asked_about_and_probed() {
    let step = |probe: &str| {
        format!(
            "  - {{ id: a, effect: outside, timeout: 1s, \
             run: 'echo sent >> sent; [ -e stop ] || sleep 300'{probe} }}\n"
        )
    };
    let bench = Bench::new(&step(""));
    bench.exits("run w.yaml", 10);
    bench.write("stop", "");
    let said = bench.exits("resume --no-input", 16);
    assert!(said.err.contains("effect-unknown"), "{said:?}");
    bench.exits("resume --no-input --accept effect-unknown", 0);
    assert_eq!(bench.text("sent").lines().count(), 2);
    let bench = Bench::new(&step(", probe: { run: 'test -e sent' }"));
    bench.exits("run w.yaml", 10);
    let said = bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.text("sent").lines().count(), 1, "{said:?}");
}

#[test]
fn a_retry_does_not_repeat_an_effect_that_was_cut_off() {
    let bench = Bench::new(
        "  - { id: a, effect: outside, timeout: 1s, retry: { max: 2, backoff: 0s, on: [timeout] }, \
         run: 'echo sent >> sent; sleep 300' }\n",
    );
    bench.exits("run w.yaml", 10);
    assert_eq!(bench.text("sent").lines().count(), 1);
}

#[test]
fn a_worktree_with_ignored_files_stays_when_its_run_is_archived() {
    let bench = Bench::new("  - { id: t, worktree: true, run: 'echo t > t.txt' }\n");
    git(&bench, "init -q");
    bench.write(".gitignore", "*.env\n");
    git(&bench, "add -A");
    git(&bench, "-c user.name=n -c user.email=e@x commit -qm x");
    bench.exits("run w.yaml", 0);
    let run = id(&only_run(&bench));
    let mine = format!(".onward/worktrees/{run}/t/my.env");
    bench.write(&mine, "hours of work");
    bench.exits("archive", 0);
    assert_eq!(bench.text(&mine), "hours of work");
}
