//! What people change where no plan looked: items and turns to come, turns that come again, steps
//! that were passed over, work that was done by hand, files of steps that edit, and what they
//! commit. And what no person does: empty an output.

use std::{fs, path::Path};

use onward_engine::{care::harness::until, revert::rescue};
use serde_json::Value;

use crate::{
    bench::{Bench, codes, id},
    f_hands::{HALF, MINE, edit, in_rescue, killed, later, only_run, sealed},
    support::repo::git,
};

/// What the rescues of the run have of a path.
fn rescued(bench: &Bench, path: &str) -> Vec<String> {
    let all = rescue::list(&only_run(bench)).unwrap().rescues;
    let texts = all.iter().map(|it| fs::read_to_string(it.dir.join("files").join(path)));
    texts.filter_map(Result::ok).collect()
}

/// The plan names the path and asks; a refused resume does nothing; an accepted one has the
/// person's version in a rescue, and says so at its end.
#[track_caller]
fn asks_and_keeps(bench: &Bench, path: &str, flags: &str) {
    let run = only_run(bench);
    if flags.is_empty() {
        let plan = bench.plan(&run);
        assert_eq!(plan["can_resume"], false, "{plan:#}");
        let names = |it: &Value| it["path"] == path && it["kind"] == "replace-file";
        assert!(plan["reverts"].as_array().unwrap().iter().any(names), "{plan:#}");
    }
    bench.exits(&format!("resume --no-input --yes {flags}"), 16);
    assert_eq!((bench.text(path), rescued(bench, path)), (MINE.to_owned(), vec![]), "{path}");
    bench.write("go", "");
    let accepted = "--accept dirty-tree --accept artifact-changed";
    let said = bench.exits(&format!("resume --no-input --yes {flags} {accepted}"), 0);
    assert_eq!(bench.text(path), "new\n", "{said:?}");
    assert_eq!(rescued(bench, path), [MINE], "{said:?}");
    let told = format!(" --replace {path}");
    let told = said.err.lines().filter(|it| it.contains("saved: ") && it.contains(&told));
    assert_eq!(told.count(), 1, "{said:?}");
}

fn in_git(bench: &Bench) {
    git(bench, "init -q -b main");
    bench.write(".gitignore", "ledger.txt\nsaid\nbegun\ngo*\nw.yaml\n");
    git(bench, "add -A");
    git(bench, "commit -q -m one");
}

const STOP: &str = "  - { id: s, run: 'LOG; test -e go' }\n";

/// An item or a turn of which the name is known before anything runs.
#[test]
fn a1_a_file_of_an_item_or_turn_that_is_known_to_come_is_asked_about() {
    let item = "  - { id: f, each: [p], run: 'LOG; echo new > \"{{ item }}.md\"', \
                writes: ['{{ item }}.md'] }\n";
    let turn = "  - id: l\n    repeat: { max: 3 }\n    steps:\n      \
                - { id: w, run: 'LOG; echo new > \"{{ l }}.md\"', writes: ['{{ l }}.md'] }\n";
    let both = "  - id: l\n    repeat: { max: 2 }\n    steps:\n      - id: f\n        \
                each: [p]\n        run: 'LOG; echo new > \"{{ l }}{{ item }}.md\"'\n        \
                writes: ['{{ l }}{{ item }}.md']\n";
    for (steps, path) in [(item, "p.md"), (turn, "3.md"), (both, "2p.md")] {
        let bench = Bench::new(&format!("{STOP}{steps}"));
        bench.exits("run w.yaml", 10);
        edit(&bench, path);
        asks_and_keeps(&bench, path, "");
    }
    // Of a loop that is under way, too.
    let under_way = turn.replace("LOG; echo", "LOG; test {{ l }} = 1 || test -e go; echo");
    let bench = Bench::new(&under_way.replace("test -e go; echo", "test -e go && echo"));
    bench.exits("run w.yaml", 10);
    edit(&bench, "3.md");
    asks_and_keeps(&bench, "3.md", "");
    // And an item that an edited list adds.
    let bench = Bench::new(&format!("{item}{}", STOP.replace("id: s", "id: s, needs: [f]")));
    bench.exits("run w.yaml", 10);
    bench.write("w.yaml", &bench.text("w.yaml").replace("each: [p]", "each: [p, q]"));
    edit(&bench, "q.md");
    asks_and_keeps(&bench, "q.md", "");
}

/// Which items there will be is known when the steps before them have run: nothing can be asked
/// then, and what a person wrote between two drivers, be it long ago, is saved first.
#[test]
fn a1_a_file_of_an_item_that_no_plan_could_know_is_saved_at_its_start() {
    let bench = Bench::new(
        "  - { id: s, run: 'LOG; test -e go && echo x > items.txt', writes: [items.txt] }\n  \
         - { id: e, each: \"{{ lines('items.txt') }}\", run: 'LOG; echo new > \"{{ item }}.md\"', \
         writes: ['{{ item }}.md'] }\n",
    );
    bench.exits("run w.yaml", 10);
    // File systems count time in ticks: it is one later than the last record.
    let changed = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    until("a tick", || {
        bench.write("x.md", MINE);
        let last = changed(&only_run(&bench).join("journal.jsonl"));
        Ok((changed(&bench.path("x.md")) > last).then_some(()))
    })
    .unwrap();
    bench.exits("resume --no-input", 10);
    assert_eq!(bench.text("x.md"), MINE);
    bench.write("go", "");
    let said = bench.exits("resume --no-input", 0);
    assert_eq!((bench.text("x.md"), in_rescue(&bench, 1, "x.md")), ("new\n".into(), MINE.into()));
    let command = format!("undo {} 1 --replace x.md", id(&only_run(&bench)));
    let told = said.err.lines().filter(|it| it.contains(&command));
    assert_eq!(told.count(), 2, "at the start, and in the closing words: {said:?}");
    assert!(bench.exits("log", 0).out.contains(&command));
    assert!(bench.exits("status", 0).out.contains(&command));
    bench.exits(&format!("{command} --yes"), 0);
    assert_eq!(bench.text("x.md"), MINE);
}

/// A later turn is no more when an earlier one runs again, and may come again.
#[test]
fn a1_a_change_of_what_a_later_turn_made_is_asked_about_when_an_earlier_one_runs_again() {
    let steps = "  - id: l\n    repeat: { max: 2 }\n    steps:\n      \
                 - { id: w, run: 'LOG; echo old > \"{{ l }}.md\"', writes: ['{{ l }}.md'] }\n";
    for how in ["definition", "gone", "link"] {
        let bench = Bench::new(&format!("{steps}{STOP}"));
        bench.exits("run w.yaml", 10);
        edit(&bench, "2.md");
        if how == "link" {
            fs::rename(bench.path("2.md"), bench.path("mine.md")).unwrap();
            std::os::unix::fs::symlink("mine.md", bench.path("2.md")).unwrap();
        }
        let edited = bench.text("w.yaml").replace("echo old", "echo new");
        bench.write("w.yaml", &edited);
        if how == "gone" {
            fs::remove_file(bench.path("1.md")).unwrap();
        }
        asks_and_keeps(&bench, if how == "link" { "mine.md" } else { "2.md" }, "");
    }
}

#[test]
fn a1_a_change_before_a_gate_that_is_first_and_answered_without_a_driver_is_asked_about() {
    let bench = Bench::new(
        "  - { id: g, gate: 'ok?' }\n  \
         - { id: z, run: 'LOG; echo new > x.md', writes: [x.md] }\n",
    );
    bench.exits("run w.yaml --no-input", 11);
    edit(&bench, "x.md");
    bench.exits("approve", 0);
    asks_and_keeps(&bench, "x.md", "");
}

#[test]
fn a1_work_that_a_person_did_is_asked_about_before_the_step_does_it_again() {
    for flags in ["--from a", "--redo a"] {
        let bench = Bench::new(&format!(
            "  - {{ id: a, run: 'LOG; test -e go && echo new > x.md', writes: [x.md] }}\n{}",
            STOP.replace("id: s", "id: s, needs: [a]")
        ));
        bench.exits("run w.yaml", 10);
        edit(&bench, "x.md");
        bench.exits("done a", 0);
        asks_and_keeps(&bench, "x.md", flags);
    }
}

#[test]
fn a1_a_file_of_a_step_that_was_passed_over_and_runs_now_is_asked_about() {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: 'LOG; echo no > flag.txt', writes: [flag.txt] }}\n  \
         - {{ id: b, needs: [a], when: \"{{{{ 'yes' in read_text('flag.txt') }}}}\", \
         run: 'LOG; echo new > x.md', writes: [x.md] }}\n{STOP}"
    ));
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    let plan = bench.plan(&only_run(&bench));
    assert_eq!(plan["reverts"].as_array().unwrap().len(), 0, "it stays passed over: {plan:#}");
    bench.write("flag.txt", "yes\n");
    asks_and_keeps(&bench, "x.md", "");
}

/// What a step changed without declaring it, it may change again.
#[test]
fn a1_a_change_in_the_footprint_of_a_step_that_runs_again_is_asked_about() {
    let bench =
        Bench::new(&format!("  - {{ id: e, edits: true, run: 'LOG; echo old > x.md' }}\n{STOP}"));
    in_git(&bench);
    bench.exits("run w.yaml", 10);
    edit(&bench, "x.md");
    let plan = bench.plan(&only_run(&bench));
    assert_eq!(plan["reverts"].as_array().unwrap().len(), 0, "nothing replaces it: {plan:#}");
    bench.write("w.yaml", &bench.text("w.yaml").replace("echo old", "echo new"));
    asks_and_keeps(&bench, "x.md", "");
}

#[test]
fn a1_a_committed_edit_of_what_a_killed_step_writes_is_asked_about() {
    let bench = Bench::new(&format!("  - {{ id: a, writes: [x.md], run: 'LOG; {HALF}' }}\n"));
    in_git(&bench);
    killed(&bench);
    edit(&bench, "x.md");
    git(&bench, "add -A");
    git(&bench, "commit -q -m mine");
    asks_and_keeps(&bench, "x.md", "");
}

/// No person empties an output: the step that made it makes it again.
#[test]
fn b1_an_output_that_was_emptied_while_no_driver_lived_is_made_again() {
    let wait = "touch begun; until test -e go; do sleep 0.02; done";
    let last = "  - { id: c, needs: [a], run: 'LOG; cat x.md > c.md', reads: [x.md], \
                writes: [c.md] }\n";
    let plain = format!("  - {{ id: a, run: 'LOG; {wait}; echo one > x.md', writes: [x.md] }}\n");
    for nothing in ["", "\0\0\0\0"] {
        let bench = Bench::new(&format!("{plain}{last}"));
        let run = sealed(&bench);
        bench.write("x.md", nothing);
        later(&bench.path("x.md"));
        let seen = bench.plan(&run);
        assert_eq!(codes(&seen), ["artifact-damaged"], "{seen:#}");
        assert_eq!(seen["steps"][0]["verdict"], "rerun", "{seen:#}");
        bench.exits("resume --no-input", 0);
        assert_eq!((bench.text("x.md"), bench.text("c.md")), ("one\n".into(), "one\n".into()));
        assert_eq!(bench.ran("a"), [1, 2]);
    }
    // In the tree of a step that edits and was killed.
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo one > x.md', writes: [x.md] }\n  \
         - { id: e, edits: true, needs: [a], reads: [x.md], \
         run: 'LOG; touch begun; test -e go || exec sleep 1000; cat x.md > c.md' }\n",
    );
    in_git(&bench);
    let run = killed(&bench);
    bench.write("x.md", "");
    later(&bench.path("x.md"));
    let seen = bench.plan(&run);
    assert_eq!(codes(&seen), ["artifact-damaged"], "{seen:#}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.text("x.md"), bench.text("c.md")), ("one\n".into(), "one\n".into()));
}
