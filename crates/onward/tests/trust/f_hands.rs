//! What people edit between an interruption and the resume: it stays, or it is in a numbered rescue
//! that the plan and the closing words name, and `undo` brings it back.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use onward_core::event::Event;
use onward_engine::revert::rescue;
use serde_json::Value;

use crate::{
    bench::{Bench, codes, id, kill_all, sees, sees_nobody_left, watched},
    support::repo::git,
};

pub(crate) const MINE: &str = "by hand\n";

/// An edit of a moment after the afterglow of an attempt.
pub(crate) fn edit(bench: &Bench, path: &str) {
    bench.write(path, MINE);
    later(&bench.path(path));
}

pub(crate) fn later(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now + Duration::from_mins(1)).unwrap();
}

pub(crate) fn only_run(bench: &Bench) -> PathBuf {
    bench.project().last_run().unwrap().dir
}

/// Starts it, waits for its step to be in the midst of its work, and kills everything.
pub(crate) fn killed(bench: &Bench) -> PathBuf {
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    run
}

/// Starts it and kills the engine alone; the step ends and is sealed.
pub(crate) fn sealed(bench: &Bench) -> PathBuf {
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    bench.write("go", "");
    sees_nobody_left(&run);
    run
}

/// What a rescue has of a path, by its number.
pub(crate) fn in_rescue(bench: &Bench, number: u32, path: &str) -> String {
    let all = rescue::list(&only_run(bench)).unwrap().rescues;
    let found = all.iter().find(|it| it.number == number).unwrap();
    fs::read_to_string(found.dir.join("files").join(path)).unwrap_or_default()
}

/// The plan asks under this code and names rescue 1; a refused resume does nothing; an accepted one
/// runs to its end, says where the person's version is, and the command that it prints brings it
/// back.
#[track_caller]
fn asks_and_keeps(bench: &Bench, code: &str, flags: &str) {
    let run = only_run(bench);
    let plan = bench.exits(&format!("plan --json {}", id(&run)), 0).json();
    if flags.is_empty() {
        assert_eq!(plan["can_resume"], false, "{plan:#}");
        assert!(codes(&plan).contains(&code), "{plan:#}");
        let reverts = plan["reverts"].as_array().unwrap();
        let names = |it: &Value| it["path"] == "x.md" && it["kind"] == "replace-file";
        assert!(reverts.iter().any(names), "{plan:#}");
    }
    let refused = bench.exits(&format!("resume --no-input --yes {flags}"), 16);
    assert!(refused.err.contains(code), "{refused:?}");
    assert_eq!(bench.text("x.md"), MINE, "a refused resume does nothing");
    bench.write("go", "");
    let accepted = "--accept dirty-tree --accept artifact-changed --accept effect-unknown";
    let said = bench.exits(&format!("resume --no-input --yes {flags} {accepted}"), 0);
    assert_eq!(bench.text("x.md"), "new\n");
    assert_eq!(in_rescue(bench, 1, "x.md"), MINE);
    let command = format!("undo {} 1 --replace x.md", id(&run));
    let told = said.err.lines().filter(|it| it.contains(&format!("onward {command}")));
    assert_eq!(told.count(), 2, "at the resume, and in the closing words: {}", said.err);
    assert!(bench.exits("status", 0).out.contains(&command));
    assert!(bench.exits("log", 0).out.contains(&command));
    bench.exits(&format!("{command} --yes"), 0);
    assert_eq!(bench.text("x.md"), MINE);
}

/// Half of the work, until there is a file `go`.
pub(crate) const HALF: &str =
    "echo half > x.md; touch begun; test -e go || exec sleep 1000; echo new > x.md";
const FAILS: &str = "echo half > x.md; test -e go && echo new > x.md";

fn one(attributes: &str, run: &str) -> Bench {
    Bench::new(&format!("  - {{ id: a, writes: [x.md], run: 'LOG; {run}'{attributes} }}\n"))
}

#[test]
fn a1_an_edit_of_what_an_interrupted_effect_writes_is_asked_about_and_kept() {
    for probe in [", probe: { run: 'exit 1', absent: 1 }", ""] {
        let bench = one(&format!(", effect: outside{probe}"), HALF);
        killed(&bench);
        edit(&bench, "x.md");
        asks_and_keeps(&bench, "dirty-tree", "");
        assert_eq!(bench.ran("a"), [1, 2]);
    }
}

#[test]
fn a1_an_edit_of_what_an_effect_that_ran_out_of_time_writes_is_asked_about_and_kept() {
    let probe = "probe: { run: 'exit 1', absent: 1 }";
    let bench = one(&format!(", timeout: 1s, effect: outside, {probe}"), HALF);
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "dirty-tree", "");
}

/// It counts as done, so that what it wrote is not half done.
#[test]
fn a23_what_an_effect_that_happened_in_the_end_wrote_is_not_undone() {
    let probe = "probe: { run: 'exit 0', absent: 1 }";
    let bench = one(&format!(", timeout: 1s, effect: outside, {probe}"), HALF);
    bench.exits("run w.yaml", 10);
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.text("x.md"), "half\n");
    assert_eq!(bench.ran("a"), [1]);
}

#[test]
fn a1_an_accepted_edit_of_a_declared_output_is_kept_first() {
    let bench = one("", HALF);
    killed(&bench);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "dirty-tree", "");
    let bench = one("", FAILS);
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "dirty-tree", "");
}

#[test]
fn a1_an_edit_of_what_a_failed_step_keeps_is_asked_about_and_kept() {
    let bench = one(", keep: true", FAILS);
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "artifact-changed", "");
}

#[test]
fn a1_an_edit_of_what_a_step_that_edits_keeps_is_asked_about_and_kept() {
    let bench =
        Bench::new(&format!("  - {{ id: a, edits: true, keep: true, run: 'LOG; {FAILS}' }}\n"));
    git(&bench, "init -q -b main");
    bench.write(".gitignore", "ledger.txt\nsaid\nbegun\ngo*\nw.yaml\n");
    git(&bench, "add -A");
    git(&bench, "commit -q -m one");
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "artifact-changed", "");
}

#[test]
fn a1_an_edit_of_what_is_left_as_asked_is_asked_about_and_kept() {
    let bench = one("", FAILS);
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "artifact-changed", "--leave a");
    // However it ended: nothing is undone, so it is not about what would be.
    let bench = one("", HALF);
    killed(&bench);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "artifact-changed", "--leave a");
}

#[test]
fn a1_an_edit_of_what_a_killed_step_that_edits_leaves_as_asked_is_asked_about_and_kept() {
    let bench = Bench::new(&format!("  - {{ id: a, edits: true, run: 'LOG; {HALF}' }}\n"));
    git(&bench, "init -q -b main");
    bench.write(".gitignore", "ledger.txt\nsaid\nbegun\ngo*\nw.yaml\n");
    git(&bench, "add -A");
    git(&bench, "commit -q -m one");
    killed(&bench);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "artifact-changed", "--leave a");
}

#[test]
fn a1_an_edit_of_what_a_tolerated_failure_left_is_asked_about_and_kept() {
    let last = "  - { id: z, run: 'LOG; test -e go' }\n";
    let a = format!("  - {{ id: a, writes: [x.md], on_failure: continue, run: 'LOG; {FAILS}' }}\n");
    let bench = Bench::new(&(a + last));
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "artifact-changed", "--redo a");
    assert_eq!(bench.ran("a"), [1, 2]);
}

/// No snapshot tells it, and no step of the run made it.
#[test]
fn a1_an_edit_of_what_a_step_to_come_writes_is_asked_about_without_git_too() {
    let bench = Bench::new(
        "  - { id: s, run: 'LOG; test -e go' }\n  \
         - { id: a, needs: [s], run: 'LOG; echo new > x.md', writes: [x.md] }\n",
    );
    bench.write("x.md", "before\n");
    bench.exits("run w.yaml", 10);
    let before = bench.plan(&only_run(&bench));
    assert_eq!(before["needs"].as_array().unwrap().len(), 0, "it is as it was: {before:#}");
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "artifact-changed", "");
}

/// A step that writes to a link writes to the file that it leads to.
#[test]
fn a1_a_file_behind_a_link_in_the_place_of_an_output_is_kept() {
    let bench = one("", FAILS);
    bench.exits("run w.yaml", 10);
    fs::remove_file(bench.path("x.md")).unwrap();
    edit(&bench, "mine.txt");
    std::os::unix::fs::symlink("mine.txt", bench.path("x.md")).unwrap();
    let mut touch = Command::new("touch");
    assert!(
        touch.args(["-h", "-d", "1 minute"]).arg(bench.path("x.md")).status().unwrap().success()
    );
    bench.exits("resume --no-input --yes", 16);
    bench.write("go", "");
    bench.exits("resume --no-input --accept dirty-tree", 0);
    assert_eq!(bench.text("mine.txt"), "new\n");
    assert_eq!(in_rescue(&bench, 1, "mine.txt"), MINE);
    bench.exits("undo 1 --yes --replace mine.txt", 0);
    assert_eq!(bench.text("mine.txt"), MINE);
    assert!(fs::symlink_metadata(bench.path("x.md")).unwrap().is_symlink());
}

const SEALED: &str =
    "echo mine > x.md; touch begun; until test -e go; do sleep 0.02; done; echo new > x.md";

/// The person's version counts, is told, and is no work of the step.
#[test]
fn a1_an_edit_after_a_sealed_end_is_not_the_step_s_own_work() {
    let last = "  - { id: z, needs: [a], reads: [x.md], run: 'cat x.md > z.md; test -e go2' }\n";
    let a = format!("  - {{ id: a, writes: [x.md], run: 'LOG; {SEALED}' }}\n");
    let bench = Bench::new(&(a + last));
    let run = sealed(&bench);
    edit(&bench, "x.md");
    let plan = bench.plan(&run);
    assert_eq!(codes(&plan), ["artifact-changed"], "{plan:#}");
    assert_eq!(plan["steps"][0]["verdict"], "adopt", "{plan:#}");
    bench.exits("resume --no-input", 10);
    assert_eq!((bench.text("x.md"), bench.text("z.md")), (MINE.into(), MINE.into()));
    let is_verified =
        |event: &Event| matches!(event, Event::AttemptVerified(it) if it.evidence.is_some());
    let told = watched(&run).records;
    assert!(told.iter().any(|it| is_verified(&it.event)), "it is recorded as changed by hand");
    // And so it is asked about when the step runs again.
    bench.write("go2", "");
    let said = bench.exits("resume --no-input --yes --redo a", 16);
    assert!(said.err.contains("x.md of a, which a person changed, will be replaced"), "{said:?}");
    bench.exits("resume --no-input --yes --redo a --accept artifact-changed", 0);
    assert_eq!(in_rescue(&bench, 1, "x.md"), MINE);
}

#[test]
fn a1_an_edit_after_a_sealed_end_is_kept_before_a_later_step_replaces_it() {
    let last = "  - { id: z, needs: [a], run: 'echo new > x.md', writes: [x.md] }\n";
    let a = format!("  - {{ id: a, writes: [x.md], run: 'LOG; {SEALED}' }}\n");
    let bench = Bench::new(&(a + last));
    sealed(&bench);
    edit(&bench, "x.md");
    asks_and_keeps(&bench, "artifact-changed", "");
}

const CHAIN: &str = "  - { id: u, reads: [in], run: 'LOG; cat in > u.md', writes: [u.md] }\n  \
     - { id: a, needs: [u], run: 'LOG; echo 1 > x.md', writes: [x.md] }\n  \
     - { id: z, needs: [a], run: 'LOG; test -e go' }\n";

#[test]
fn a15_keep_holds_where_the_input_is_what_another_step_made() {
    let bench = Bench::new(CHAIN);
    bench.write("in", "1\n");
    bench.exits("run w.yaml", 10);
    edit(&bench, "u.md");
    bench.write("go", "");
    let said = bench.exits("resume --no-input --yes --keep a", 0);
    assert_eq!((bench.ran("a"), bench.ran("z")), (vec![1], vec![1, 2]), "{said:?}");
    let plan = bench.plan(&only_run(&bench));
    assert_eq!(plan["counts"]["keep"], 3, "{plan:#}");
}

/// The step before it runs again; what the plan prints for that is pasted.
#[test]
fn a15_the_hint_for_a_changed_output_works_when_it_is_pasted() {
    let bench = Bench::new(CHAIN);
    bench.write("in", "1\n");
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    bench.write("in", "2\n");
    bench.write("go", "");
    let plan = bench.plan(&only_run(&bench));
    let findings = plan["findings"].as_array().unwrap();
    let asked = findings.iter().find(|it| it["severity"] == "blocking").unwrap();
    let hint = asked["hint"].as_str().unwrap();
    let flag = hint.split('`').find(|it| it.starts_with("--keep")).unwrap();
    bench.exits(&format!("resume --no-input --yes {flag}"), 0);
    assert_eq!(bench.text("x.md"), MINE);
    assert_eq!((bench.ran("u"), bench.ran("a")), (vec![1, 2], vec![1]));
}

/// Another output of the step is gone: it runs again whatever is kept.
#[test]
fn a15_no_hint_says_that_a_step_can_be_kept_which_cannot() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > x.md; echo 1 > y.md', writes: [x.md, y.md] }\n  \
         - { id: z, needs: [a], run: 'LOG; test -e go' }\n",
    );
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    fs::remove_file(bench.path("y.md")).unwrap();
    let plan = bench.plan(&only_run(&bench));
    assert!(!format!("{plan}").contains("--keep"), "{plan:#}");
}
