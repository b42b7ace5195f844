//! A step that changes a file in place and is to be done again: what it changed before is undone
//! first.

use std::{fs, path::PathBuf};

use crate::{
    bench::{Bench, id},
    g_undo::sh,
    support::repo::rescued,
};

/// `a` adds a line to a file that no step made, and `b` fails until there is a file `go`.
fn failed(in_git: bool, attributes: &str, more: &str) -> (Bench, PathBuf) {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: 'echo line >> notes.txt'{attributes} }}\n{more}  \
         - {{ id: b, run: test -e .onward/go, edits: false }}\n"
    ));
    bench.write("notes.txt", "one\n");
    bench.write(".onward/.gitignore", "*\n");
    if in_git {
        sh(&bench, "git init -q .; git add -A; git commit -qm one");
    }
    bench.exits("run w.yaml", 10);
    bench.write(".onward/go", "");
    let run = bench.project().last_run().unwrap().dir;
    (bench, run)
}

#[test]
fn i5_what_a_step_changed_in_place_is_undone_before_it_is_done_again() {
    let kinds = [
        (true, ", edits: true"),
        (true, ", edits: true, writes: [notes.txt]"),
        (false, ", writes: [notes.txt]"),
    ];
    for (in_git, attributes) in kinds {
        let (bench, run) = failed(in_git, attributes, "");
        assert_eq!(bench.text("notes.txt"), "one\nline\n");
        let said = bench.exits("resume --no-input --yes --redo a", 0);
        let command = format!("onward undo {} 1", id(&run));
        assert!(said.err.contains(&command), "{said:?}");
        assert_eq!(bench.text("notes.txt"), "one\nline\n", "{attributes}");
        let kept = rescued(&run, 1).dir.join("files/notes.txt");
        assert_eq!(fs::read_to_string(kept).unwrap(), "one\nline\n");
    }
}

#[test]
fn i5_later_changes_of_the_same_file_are_made_again_on_top() {
    let later = "  - { id: c, run: 'echo later >> notes.txt', edits: true }\n";
    for redo in ["--redo a", "--redo a --redo c", "--redo c"] {
        let (bench, _) = failed(true, ", edits: true", later);
        assert_eq!(bench.text("notes.txt"), "one\nline\nlater\n");
        bench.exits(&format!("resume --no-input --yes {redo}"), 0);
        assert_eq!(bench.text("notes.txt"), "one\nline\nlater\n", "{redo}");
    }
}

#[test]
fn i5_what_a_person_changed_since_is_asked_about_and_kept() {
    for (in_git, attributes) in [(true, ", edits: true"), (false, ", writes: [notes.txt]")] {
        let (bench, run) = failed(in_git, attributes, "");
        bench.write("notes.txt", "one\nline\nby hand\n");
        let refused = bench.exits("resume --no-input --yes --redo a", 16);
        assert!(refused.err.contains("artifact-changed"), "{refused:?}");
        assert_eq!(bench.text("notes.txt"), "one\nline\nby hand\n");
        bench.exits("resume --no-input --yes --redo a --accept artifact-changed", 0);
        assert_eq!(bench.text("notes.txt"), "one\nline\nby hand\nline\n", "on top");
        let kept = rescued(&run, 1).dir.join("files/notes.txt");
        assert_eq!(fs::read_to_string(kept).unwrap(), "one\nline\nby hand\n");
    }
}
