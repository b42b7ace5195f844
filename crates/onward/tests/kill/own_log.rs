//! A command whose own words go to a file of the project.

use std::{fs::File, process::Stdio};

use crate::{
    bench::{Bench, codes},
    repo::git,
};

/// The shell makes the log before the command begins, and the command writes into it.
#[test]
fn a_log_of_the_command_itself_is_no_edit_of_a_person_and_no_work_of_a_step() {
    let steps = "  - { id: a, run: 'echo a > a.txt', edits: true }\n  \
        - { id: b, run: 'false', edits: true }\n";
    let bench = Bench::new(steps);
    git(&bench, "init -q");
    git(&bench, "add w.yaml");
    git(&bench, "commit -q -m one");
    bench.exits("run w.yaml", 10);
    let mut left = None;
    for arguments in ["resume --no-input", "resume --no-input", "plan --json"] {
        let log = File::create(bench.path("log.txt")).unwrap();
        let mut command = bench.command(arguments);
        command.stdout(Stdio::from(log.try_clone().unwrap())).stderr(Stdio::from(log));
        left = command.status().unwrap().code();
        let said = bench.text("log.txt");
        assert!(!said.contains("dirty-tree"), "{arguments}: {said}");
        if arguments.starts_with("resume") {
            assert_eq!(left, Some(10), "{arguments}: {said}");
        }
    }
    assert_eq!(left, Some(0));
    // Of a command that speaks elsewhere, it is a file like any other.
    let plan = bench.exits("plan --json", 0).json();
    assert!(codes(&plan).contains(&"dirty-tree"), "{plan:#}");
}
