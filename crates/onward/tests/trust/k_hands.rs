//! What people change around work that is done, lives, or was accepted before: no version of theirs
//! goes without a question or a numbered rescue, and nothing is written outside the project.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use onward_engine::revert::rescue;
use serde_json::Value;

use crate::{
    bench::{Bench, codes, id, kill_all, kill_supervisor, sees, sees_nobody_left},
    f_hands::{MINE, edit, in_rescue, later, only_run, sealed},
    g_undo::sh,
    support::repo::git,
};

const WAIT: &str = "touch begun; until test -e go; do sleep 0.02; done";
const STOP: &str = "  - { id: s, edits: false, run: 'test -e go' }\n";
const ACCEPT: &str = "--no-input --yes --accept dirty-tree --accept artifact-changed";

fn in_git(bench: &Bench) {
    git(bench, "init -q -b main");
    bench.write(".gitignore", "ledger.txt\nsaid\nbegun\ngo*\nw.yaml\n");
    git(bench, "add -A");
    git(bench, "commit -q -m one");
}

/// The numbers of the rescues that have this path, as the program lists them.
fn listed(bench: &Bench, path: &str) -> Vec<u64> {
    let all = bench.exits("rescue list --json", 0).json();
    let all = all["rescues"].as_array().unwrap();
    let has = |it: &&Value| it["paths"].to_string().contains(path);
    all.iter().filter(has).map(|it| it["number"].as_u64().unwrap()).collect()
}

/// Screen, closing words, `status`, `log` and `rescue list` name it, and the printed command brings
/// it back.
#[track_caller]
fn is_told(bench: &Bench, said: &str, path: &str) {
    let command = format!("undo {} 1 --replace {path}", id(&only_run(bench)));
    let told = said.lines().filter(|it| it.contains(&format!("onward {command}")));
    assert_eq!(told.count(), 2, "{said}");
    for asked in ["status", "log"] {
        assert!(bench.exits(asked, 0).out.contains(&command), "{asked}");
    }
    assert_eq!(listed(bench, path), [1]);
    assert_eq!(in_rescue(bench, 1, path), MINE);
    bench.exits(&format!("{command} --yes"), 0);
    assert_eq!(bench.text(path), MINE);
}

/// What a step with `edits` changed without declaring it, it ended while no engine was there.
fn ended_alone(last: &str) -> (Bench, PathBuf) {
    let step =
        format!("  - {{ id: e, edits: true, run: 'echo 1 > x.md; {WAIT}; echo old > x.md' }}\n");
    let bench = Bench::new(&format!("{step}{last}"));
    in_git(&bench);
    let run = sealed(&bench);
    edit(&bench, "x.md");
    (bench, run)
}

#[test]
fn k1_an_edit_of_what_an_outdated_step_with_edits_changed_is_kept_in_a_rescue() {
    for flags in ["", "--redo e"] {
        let (bench, run) = ended_alone("");
        let new = bench.text("w.yaml").replace("echo old", "echo new");
        bench.write("w.yaml", &new);
        let plan = bench.plan(&run);
        assert!(codes(&plan).contains(&"dirty-tree"), "{plan:#}");
        let names = |it: &Value| it["path"] == "x.md" && it["kind"] == "replace-file";
        assert!(plan["reverts"].as_array().unwrap().iter().any(names), "{plan:#}");
        bench.exits(&format!("resume --no-input --yes {flags}"), 16);
        assert_eq!(bench.text("x.md"), MINE);
        let said = bench.exits(&format!("resume {ACCEPT} {flags}"), 0);
        assert_eq!(bench.text("x.md"), "new\n");
        is_told(&bench, &said.err, "x.md");
    }
}

/// Also where it counts as done, and a later step replaces the file.
#[test]
fn k1_an_edit_of_what_a_step_with_edits_changed_is_asked_about_before_a_later_one_writes() {
    let (bench, run) = ended_alone("  - { id: z, run: 'echo new > x.md', writes: [x.md] }\n");
    let plan = bench.plan(&run);
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    bench.exits("resume --no-input --yes", 16);
    let said = bench.exits(&format!("resume {ACCEPT}"), 0);
    assert_eq!(bench.text("x.md"), "new\n");
    is_told(&bench, &said.err, "x.md");
}

fn a_step_that_writes() -> Bench {
    Bench::new(&format!(
        "  - {{ id: a, run: 'LOG; {WAIT}; echo its > x.md', writes: [x.md] }}\n  \
         - {{ id: z, run: 'cat x.md > z.md', writes: [z.md] }}\n"
    ))
}

#[track_caller]
fn no_done_while_it_lives(bench: &Bench, way: &str) {
    bench.write("x.md", MINE);
    let before = fs::read(only_run(bench).join("journal.jsonl")).unwrap();
    let refused = bench.exits("done a", 14);
    assert!(refused.err.contains(way), "{refused:?}");
    assert_eq!(fs::read(only_run(bench).join("journal.jsonl")).unwrap(), before);
}

#[test]
fn k2_a_step_is_not_recorded_as_done_while_an_attempt_of_it_lives() {
    let bench = a_step_that_writes();
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    no_done_while_it_lives(&bench, &format!("`onward pause {}`", id(&run)));
    engine.kill().unwrap();
    no_done_while_it_lives(&bench, &format!("`onward resume {}` waits for it", id(&run)));
    bench.write("go", "");
    sees_nobody_left(&run);
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.text("z.md"), "its\n", "what it made counts");
}

#[test]
fn k2_a_step_whose_attempt_lost_its_supervisor_is_done_when_that_attempt_was_ended() {
    let bench = a_step_that_writes();
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_supervisor(&run);
    no_done_while_it_lives(&bench, "`onward doctor --fix` ends it");
    bench.onward("doctor --fix");
    bench.exits("done a", 0);
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.text("x.md"), bench.text("z.md")), (MINE.into(), MINE.into()));
}

/// The plan asks; accepted, the version of the person is in a rescue.
#[track_caller]
fn asks_and_keeps(bench: &Bench, path: &str) {
    let plan = bench.plan(&only_run(bench));
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    bench.exits("resume --no-input --yes", 16);
    assert_eq!((bench.text(path), listed(bench, path)), (MINE.to_owned(), vec![]));
    bench.write("go", "");
    let said = bench.exits(&format!("resume {ACCEPT}"), 0);
    assert_eq!(bench.text(path), "new\n");
    is_told(bench, &said.err, path);
}

#[test]
fn k3_a_file_that_a_done_step_writes_only_when_it_runs_again_is_asked_about() {
    let bench =
        Bench::new(&format!("  - {{ id: a, run: 'echo new > x.md', writes: [x.md] }}\n{STOP}"));
    bench.exits("run w.yaml", 10);
    edit(&bench, "y.md");
    bench.write("w.yaml", &bench.text("w.yaml").replace("x.md", "y.md"));
    asks_and_keeps(&bench, "y.md");
    // By a pattern.
    let bench = Bench::new(&format!(
        "  - {{ id: a, reads: [in], run: 'echo new > o-$(cat in).md', writes: ['o-*.md'] }}\n{STOP}"
    ));
    bench.write("in", "x");
    bench.exits("run w.yaml", 10);
    edit(&bench, "o-y.md");
    let plan = bench.plan(&only_run(&bench));
    assert_eq!(plan["needs"].as_array().unwrap().len(), 0, "nothing writes it: {plan:#}");
    bench.write("in", "y");
    asks_and_keeps(&bench, "o-y.md");
}

#[test]
fn k3_a_file_of_an_item_is_asked_about_where_no_step_to_come_writes_the_list() {
    let each = "each: \"{{ lines('items.txt') }}\", run: 'echo new > {{ item }}.md', \
                writes: ['{{ item }}.md']";
    let bench = Bench::new(&format!("{STOP}  - {{ id: f, needs: [s], {each} }}\n"));
    bench.write("items.txt", "p\n");
    bench.exits("run w.yaml", 10);
    edit(&bench, "p.md");
    asks_and_keeps(&bench, "p.md");
    // A step to come writes the list: which items there will be is not known.
    let list = "  - { id: l, needs: [s], run: 'echo q > items.txt', writes: [items.txt] }\n";
    let bench = Bench::new(&format!("{STOP}{list}  - {{ id: f, needs: [l], {each} }}\n"));
    bench.write("items.txt", "p\n");
    bench.exits("run w.yaml", 10);
    edit(&bench, "p.md");
    let plan = bench.plan(&only_run(&bench));
    assert_eq!(plan["needs"].as_array().unwrap().len(), 0, "{plan:#}");
}

#[test]
fn k4_what_was_accepted_before_is_told_and_not_asked_again() {
    let first = "  - { id: s, run: 'touch begun; test -e go && { test -e go2 || sleep 1000; }' }\n";
    let a = "  - { id: a, needs: [s], run: 'echo new > x.md', writes: [x.md] }\n";
    let bench = Bench::new(&format!(
        "{first}{a}{}",
        STOP.replace("id: s", "id: t").replace("-e go", "-e go3")
    ));
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    fs::remove_file(bench.path("begun")).unwrap();
    bench.write("go", "");
    let mut engine = bench.start(&format!("resume {ACCEPT}"));
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    let run = only_run(&bench);
    kill_all(&run);
    let plan = bench.plan(&run);
    assert_eq!((&plan["can_resume"], &plan["needs"]), (&true.into(), &Value::Array(vec![])));
    assert!(plan["steps"][1]["why"].to_string().contains("as accepted before"), "{plan:#}");
    let revert = &plan["reverts"][0];
    assert_eq!((&revert["path"], &revert["rescue"]), (&"x.md".into(), &"rescue/1-a".into()));
    bench.write("go2", "");
    let said = bench.exits("resume --no-input", 10);
    assert_eq!(bench.text("x.md"), "new\n");
    is_told(&bench, &said.err, "x.md");
    // Brought back, it is asked about once more.
    bench.write("go3", "");
    later(&bench.path("x.md"));
    bench.exits("resume --no-input --yes --redo a", 16);
}

/// How a step comes to run again, and what its plan says of that.
const CAUSES: [(&str, &str); 3] = [
    ("sed -i 's/echo line/echo  line/' w.yaml", "rerun"),
    ("sed -i 's/reads: \\[u.md\\]/reads: [u.md, in]/' w.yaml; echo 2 > in", "rerun"),
    ("echo 2 > in", "verify"),
];
const KINDS: [(bool, &str); 3] = [
    (true, ", edits: true"),
    (true, ", edits: true, writes: [notes.txt]"),
    (false, ", writes: [notes.txt]"),
];

fn in_place(is_in_git: bool, kind: &str, more: &str) -> Bench {
    let bench = Bench::new(&format!(
        "  - {{ id: u, reads: [in], run: 'cat in > u.md', writes: [u.md] }}\n  \
         - {{ id: a, needs: [u], reads: [u.md], run: 'echo line >> notes.txt'{kind} }}\n\
         {more}{STOP}"
    ));
    bench.write("notes.txt", "one\n");
    bench.write("in", "1\n");
    if is_in_git {
        in_git(&bench);
    }
    bench.exits("run w.yaml", 10);
    bench.write("go", "");
    bench
}

#[test]
fn k5_what_a_step_changed_in_place_is_undone_whatever_makes_it_run_again() {
    for ((is_in_git, kind), (cause, verdict)) in
        KINDS.into_iter().flat_map(|kind| CAUSES.map(|cause| (kind, cause)))
    {
        let bench = in_place(is_in_git, kind, "");
        sh(&bench, cause);
        let plan = bench.plan(&only_run(&bench));
        assert_eq!(plan["steps"][1]["verdict"], verdict, "{plan:#}");
        bench.exits("resume --no-input --yes", 0);
        assert_eq!(bench.text("notes.txt"), "one\nline\n", "{kind} {cause}");
        assert_eq!(in_rescue(&bench, 1, "notes.txt"), "one\nline\n", "{kind} {cause}");
    }
}

#[test]
fn k5_what_stays_is_not_undone_with_it() {
    for (is_in_git, kind) in KINDS {
        // Work of a step beside it, which is done and stays.
        let beside = format!(
            "  - {{ id: c, needs: [], run: 'until grep -q line notes.txt; do \
                              sleep 0.02; done; echo c >> notes.txt'{kind} }}\n"
        );
        let bench = in_place(is_in_git, kind, &beside);
        sh(&bench, CAUSES[0].0);
        bench.exits("resume --no-input --yes", 0);
        assert_eq!(bench.text("notes.txt"), "one\nline\nc\nline\n", "{kind}");
        // What a person changed since, which is asked about where a plan can know.
        let bench = in_place(is_in_git, kind, "");
        sh(&bench, CAUSES[0].0);
        bench.write("notes.txt", "one\nline\nby hand\n");
        later(&bench.path("notes.txt"));
        bench.exits("resume --no-input --yes", 16);
        bench.exits(&format!("resume {ACCEPT}"), 0);
        assert_eq!(bench.text("notes.txt"), "one\nline\nby hand\nline\n", "{kind}");
        assert_eq!(in_rescue(&bench, 1, "notes.txt"), "one\nline\nby hand\n");
    }
}

#[test]
fn k6_a_file_that_a_person_changes_while_the_run_is_driven_is_in_a_rescue() {
    let bench = Bench::new(&format!(
        "  - {{ id: s, run: '{WAIT}' }}\n  \
         - {{ id: a, needs: [s], run: 'echo new > x.md; echo new > y.md', \
         writes: [x.md, y.md] }}\n  \
         - {{ id: b, needs: [a], run: 'echo new > x.md; echo b > y.md', writes: [x.md, y.md] }}\n"
    ));
    bench.write("y.md", "as it was\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    bench.write("x.md", MINE);
    bench.write("go", "");
    engine.wait().unwrap();
    sees_nobody_left(&run);
    assert_eq!(bench.text("x.md"), "new\n");
    assert_eq!(listed(&bench, "y.md"), [0; 0], "no person changed it");
    is_told(&bench, &bench.text("said"), "x.md");
}

/// What attempts of the run leave is never called a person's.
#[test]
fn k6_what_attempts_left_is_kept_in_no_rescue_for_a_person() {
    let bench = Bench::new(
        "  - { id: t, run: 'echo half > t.md; exit 1', on_failure: continue, writes: [t.md] }\n  \
         - { id: a, run: 'echo half > x.md; test $ONWARD_ATTEMPT = 3', keep: true, \
         retry: { max: 3, on: [failed] }, writes: [x.md] }\n  \
         - { id: b, run: 'echo b > x.md; echo b > t.md', writes: [x.md, t.md] }\n",
    );
    bench.exits("run w.yaml", 0);
    assert_eq!(rescue::list(&only_run(&bench)).unwrap().rescues.len(), 0);
}

#[test]
fn k7_nothing_is_written_through_a_link_that_leads_out() {
    for (place, link, target) in
        [("x.md", "x.md", "file"), ("x.md", "x.md", "nothing"), ("out/x.md", "out", "")]
    {
        let outside = tempfile::tempdir().unwrap();
        for file in ["file", "x.md"] {
            fs::write(outside.path().join(file), MINE).unwrap();
        }
        let intact = || {
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2, "{place}");
            for file in ["file", "x.md"] {
                let text = fs::read_to_string(outside.path().join(file)).unwrap();
                assert_eq!(text, MINE, "{place} {target}");
            }
        };
        let writes = format!("echo new > {place}', writes: [{place}]");
        let step = |wait: &str| {
            let then = format!("run: 'mkdir -p $(dirname {place}); {writes}");
            format!("  - {{ id: s, run: '{wait}' }}\n  - {{ id: a, needs: [s], {then} }}\n")
        };
        // While no engine lives.
        let bench = Bench::new(&step("test -e go"));
        bench.exits("run w.yaml", 10);
        symlink(outside.path().join(target), bench.path(link)).unwrap();
        sh(&bench, &format!("touch -h -d '1 minute' {link}"));
        bench.write("go", "");
        bench.exits("resume --no-input --accept artifact-changed", 0);
        intact();
        assert_eq!((bench.text(place), listed(&bench, link)), ("new\n".into(), vec![1]));
        // While one does.
        let bench = Bench::new(&step(WAIT));
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("begun"));
        symlink(outside.path().join(target), bench.path(link)).unwrap();
        bench.write("go", "");
        engine.wait().unwrap();
        sees_nobody_left(&run);
        intact();
        assert_eq!((bench.text(place), listed(&bench, link)), ("new\n".into(), vec![1]));
        fs::remove_file(bench.path(place)).unwrap();
        if link == "out" {
            fs::remove_dir(bench.path("out")).unwrap();
        }
        bench.exits("undo 1 --yes", 0);
        assert!(fs::symlink_metadata(bench.path(link)).unwrap().is_symlink());
    }
}
