//! Rescues of resumes, retries and `undo`: none is made in the place of another one, and a plan names the one
//! that the resume makes.

use std::{collections::BTreeSet, fs};

use onward_engine::revert::rescue;

use crate::{
    bench::{Bench, id},
    f_hands::{HALF, edit, in_rescue, killed, only_run},
    support::repo::git,
};

const ACCEPT: &str = "--accept artifact-changed --accept definition-touches-done";
const PRECIOUS: &str = "PRECIOUS\n";

/// A done step of which a person's version is in rescue 1, and what `undo` replaced in rescue 2.
fn undone_by_hand(is_git: bool) -> Bench {
    let bench = Bench::new(
        "  - { id: a, run: 'echo v1 > a.txt', writes: [a.txt] }\n\
         \x20 - { id: d, run: 'test -e go' }\n",
    );
    if is_git {
        git(&bench, "init -q -b main");
        git(&bench, "add -A");
        git(&bench, "commit -q -m one");
    }
    bench.exits("run w.yaml --no-input", 10);
    bench.write("a.txt", "ONE\n");
    other_command(&bench, "v1", "v2");
    bench.exits(&format!("resume --no-input {ACCEPT}"), 10);
    assert_eq!(in_rescue(&bench, 1, "a.txt"), "ONE\n");
    bench.write("a.txt", PRECIOUS);
    bench.exits(&format!("undo {} 1 --yes --replace a.txt", id(&only_run(&bench))), 0);
    bench
}

fn other_command(bench: &Bench, from: &str, to: &str) {
    bench.write("w.yaml", &bench.text("w.yaml").replace(from, to));
}

/// Each has a number of its own.
#[track_caller]
fn numbers(bench: &Bench) -> Vec<u32> {
    let all = rescue::list(&only_run(bench)).unwrap().rescues;
    let all: Vec<u32> = all.iter().map(|it| it.number).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
    all
}

#[test]
fn l1_a_resume_replaces_no_rescue_that_undo_made() {
    for is_git in [false, true] {
        let bench = undone_by_hand(is_git);
        bench.write("a.txt", "TWO\n");
        other_command(&bench, "v2", "v3");
        let plan = bench.exits("plan", 0);
        assert!(plan.out.contains("saved as rescue 3"), "{plan:?}");
        bench.exits(&format!("resume --no-input {ACCEPT}"), 10);
        assert_eq!(in_rescue(&bench, 2, "a.txt"), PRECIOUS);
        assert_eq!(in_rescue(&bench, 3, "a.txt"), "TWO\n");
        assert_eq!(numbers(&bench), [1, 2, 3]);
    }
}

/// A failed step in git, of which `undo` replaced what a person had made of its file.
fn failed() -> Bench {
    let bench =
        Bench::new("  - { id: k, run: 'echo half > k.txt; test -e go', writes: [k.txt] }\n");
    git(&bench, "init -q -b main");
    git(&bench, "add w.yaml");
    git(&bench, "commit -q -m one");
    bench.exits("run w.yaml --no-input", 10);
    bench.exits("resume --no-input", 10);
    bench.write("k.txt", PRECIOUS);
    bench.exits(&format!("undo {} 1 --yes --replace k.txt", id(&only_run(&bench))), 0);
    assert_eq!(in_rescue(&bench, 2, "k.txt"), PRECIOUS);
    bench
}

#[test]
fn l1_a_retry_and_a_cancel_replace_no_rescue_that_undo_made() {
    for command in ["resume --no-input --accept dirty-tree", "cancel --yes"] {
        let bench = failed();
        bench.onward(command);
        assert_eq!(in_rescue(&bench, 2, "k.txt"), PRECIOUS, "{command}");
        numbers(&bench);
    }
}

#[test]
fn l1_a_rescue_that_is_in_git_alone_keeps_its_number() {
    let bench = failed();
    let run = only_run(&bench);
    fs::remove_dir_all(run.join("rescue")).unwrap();
    git(&bench, &format!("update-ref refs/onward/{}-rescue/7 HEAD", id(&run)));
    bench.exits("resume --no-input --accept dirty-tree", 10);
    assert_eq!(numbers(&bench), [8]);
}

/// What was not committed before an attempt, and a person replaced by a commit after it.
#[test]
fn l1_a_commit_of_a_persons_is_not_called_one_of_the_attempt() {
    let bench = Bench::new(&format!("  - {{ id: a, edits: true, run: '{HALF}' }}\n"));
    bench.write("out.log", "one\n");
    git(&bench, "init -q -b main");
    git(&bench, "add w.yaml out.log");
    git(&bench, "commit -q -m one");
    bench.write("out.log", "two\n");
    killed(&bench);
    edit(&bench, "out.log");
    git(&bench, "commit -q -m mine out.log");
    let plan = bench.exits("plan", 0).out;
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plan.contains("commits that no step of the run made"), "{plan}");
    assert!(plan.contains("a commit since its attempt began replaced it"), "{plan}");
}
