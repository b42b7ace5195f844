//! A copy of a project is a project of its own: it reaches nothing of the original.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    bench::{Bench, codes, id, kill_all, processes, sees, sees_nobody_left, signal},
    support::repo::git,
};

/// `b` goes on until its project has a file `go`.
const STEPS: &str = "  - { id: a, run: LOG, writes: [a.txt] }\n\
    \x20 - { id: b, run: 'LOG; touch begun; until test -e go; do sleep 0.1; done; echo b > b.txt', \
    writes: [b.txt] }\n";

fn steps() -> String {
    STEPS.replace("run: LOG,", "run: 'LOG; echo a > a.txt',")
}

fn copy(of: &Bench, name: &str) -> (tempfile::TempDir, Bench) {
    let dir = tempfile::tempdir().unwrap();
    let to = std::fs::canonicalize(dir.path()).unwrap().join(name);
    assert!(Command::new("cp").arg("-a").arg(&of.root).arg(&to).status().unwrap().success());
    (dir, Bench::at_existing(to))
}

/// Those that lead a process group, without what `b` begins and ends again and again.
fn lasting(run: &Path) -> Vec<u32> {
    let leads = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which may hold anything: the state, the parent, the group.
        let group = stat.rsplit(')').next().and_then(|it| it.split_whitespace().nth(2));
        group == Some(pid.to_string().as_str())
    };
    processes(run).into_iter().filter(leads).collect()
}

fn its_run(copy: &Bench, run: &Path) -> PathBuf {
    copy.project().runs_dir().join(id(run))
}

#[test]
fn e3_a_resume_of_a_copy_leaves_a_living_run_alone() {
    let bench = Bench::new(&steps());
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let before = lasting(&run);
    for command in ["resume --no-input", "resume --no-input --redo a"] {
        let (_dir, copy) = copy(&bench, "copy");
        copy.write("go", "");
        let plan = copy.plan(&its_run(&copy, &run));
        assert!(!codes(&plan).contains(&"still-running"), "{plan:#}");
        copy.exits(command, 0);
        assert_eq!(copy.text("b.txt"), "b\n", "{command} works in the copy");
    }
    let (_dir, copy) = copy(&bench, "copy");
    copy.exits("cancel", 0);
    let status = copy.exits("status --json", 0).json();
    assert_eq!(status["run"]["status"], "cancelled", "{status:#}");
    assert_eq!(lasting(&run), before, "no process of the original was ended or begun");
    assert!(!bench.path("b.txt").exists());
    bench.write("go", "");
    assert!(engine.wait().unwrap().success(), "{}", bench.text("said"));
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![1]));
    bench.is_proved(&run);
}

#[test]
fn e3_what_outlived_the_supervisor_of_the_original_is_no_orphan_of_the_copy() {
    let bench = Bench::new(&steps());
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let place = run.to_str().unwrap().to_owned();
    let is_supervisor = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == place.as_bytes())
    };
    let (supervisors, children): (Vec<u32>, Vec<u32>) =
        lasting(&run).into_iter().partition(is_supervisor);
    engine.kill().unwrap();
    for pid in &supervisors {
        signal(*pid, "-KILL");
    }
    let (_dir, copy) = copy(&bench, "copy");
    copy.write("go", "");
    let plan = copy.plan(&its_run(&copy, &run));
    assert!(!codes(&plan).contains(&"orphan-process"), "{plan:#}");
    copy.exits("resume --no-input", 0);
    let living = processes(&run);
    assert!(children.iter().all(|it| living.contains(it)), "{children:?} {living:?}");
    kill_all(&run);
}

#[test]
fn e3_a_worktree_of_a_copy_commits_to_the_copy_alone() {
    let bench = Bench::new(
        "  - { id: t, worktree: true, run: 'LOG; echo $ONWARD_ATTEMPT > t.txt' }\n\
         \x20 - { id: u, run: 'test -e go' }\n",
    );
    git(&bench, "init -q -b main");
    bench.write(".gitignore", "ledger.txt\n");
    git(&bench, "add -A");
    git(&bench, "commit -q -m one");
    bench.exits("run w.yaml", 10);
    let refs = || git(&bench, "for-each-ref --format=%(refname)=%(objectname) refs/heads");
    let before = refs();
    let (_dir, copy) = copy(&bench, "copy");
    copy.write("go", "");
    copy.exits("resume --no-input --yes --redo t", 0);
    assert_eq!(refs(), before, "the original's branches are as they were");
}

/// `cp -r` of a run beside itself, then a look and a resume by either name.
#[test]
fn e3_a_copy_of_a_run_beside_it_is_told_and_never_continued() {
    let bench =
        Bench::new("  - { id: a, run: LOG }\n  - { id: b, needs: [a], run: 'LOG; test -e go' }\n");
    bench.exits("run w.yaml --no-input", 10);
    let run = bench.project().last_run().unwrap().dir;
    let name = format!("{}x", id(&run));
    let copy = run.with_file_name(&name);
    sees_nobody_left(&run);
    assert!(Command::new("cp").arg("-r").arg(&run).arg(&copy).status().unwrap().success());
    for command in ["plan", "status", "resume --no-input"] {
        let said = bench.exits(&format!("{command} {name}"), 16).err;
        assert!(said.contains("goes by its own name"), "{command}: {said}");
        assert!(said.contains("move the copy away: `mv "), "{command}: {said}");
    }
    // Every command that takes a run, by its name and by its directory.
    let before = std::fs::read(copy.join("journal.jsonl")).unwrap();
    let by_directory = copy.to_str().unwrap().to_owned();
    for name in [&name, &by_directory] {
        for (command, rest) in [
            ("log", ""),
            ("log", " --step a"),
            ("attach", " --no-input"),
            ("repair", " --yes"),
            ("verify", ""),
            ("archive", " --yes"),
            ("cancel", ""),
            ("pause", ""),
            ("done", " b"),
            ("approve", " b"),
            ("decide", " b approve"),
            ("why", " b"),
            ("rescue list", ""),
            ("rescue show", " 1"),
            ("undo", " 1 --yes"),
            ("run --again", ""),
        ] {
            let said = bench.exits(&format!("{command} {name}{rest}"), 16).err;
            assert!(said.contains("goes by its own name"), "{command}: {said}");
        }
    }
    assert_eq!(std::fs::read(copy.join("journal.jsonl")).unwrap(), before);
    let listed = bench.exits("list", 0).out;
    assert!(listed.contains("goes by its own name"), "{listed}");
    bench.write("go", "");
    let doctor = bench.onward("doctor").out;
    assert!(doctor.contains("goes by its own name"), "{doctor}");
    // Where none is named, the copy is not meant, however new it is.
    let journal = std::fs::File::options().append(true).open(copy.join("journal.jsonl")).unwrap();
    let now = journal.metadata().unwrap().modified().unwrap();
    journal.set_modified(now + std::time::Duration::from_mins(1)).unwrap();
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![1, 2]));
    // Without the original it is a run that was renamed.
    std::fs::remove_dir_all(&run).unwrap();
    let said = bench.exits(&format!("plan {name}"), 16).err;
    assert!(said.contains("give the run its name back: `mv "), "{said}");
}

/// A project below its temporary directory, so that it can be moved.
fn movable() -> (tempfile::TempDir, Bench) {
    let dir = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(dir.path()).unwrap().join("here");
    std::fs::create_dir(&root).unwrap();
    let bench = Bench::at_existing(root);
    std::fs::create_dir(bench.path(".onward")).unwrap();
    bench.workflow("w.yaml", "steps:", &(steps() + "  - { id: c, needs: [b], run: LOG }\n"));
    (dir, bench)
}

fn moved(bench: &Bench) -> Bench {
    let to = bench.root.with_file_name("there");
    std::fs::rename(&bench.root, &to).unwrap();
    Bench::at_existing(to)
}

#[test]
fn e3_a_step_that_lives_is_found_after_its_project_was_moved() {
    let (_dir, bench) = movable();
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    let bench = moved(&bench);
    let plan = bench.plan(&its_run(&bench, &run));
    assert_eq!(plan["steps"][1]["verdict"], "reattach", "{plan:#}");
    let mut resumed = bench.start("resume --no-input");
    bench.write("go", "");
    assert!(resumed.wait().unwrap().success(), "{}", bench.text("said"));
    assert_eq!((bench.ran("b"), bench.ran("c")), (vec![1], vec![1]), "{}", bench.text("said"));
    sees_nobody_left(&its_run(&bench, &run));
}

#[test]
fn e3_a_driver_whose_project_is_moved_says_where_to_and_its_steps_live_on() {
    let (_dir, bench) = movable();
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let bench = moved(&bench);
    bench.write("go", "");
    assert_eq!(engine.wait().unwrap().code(), Some(16), "{}", bench.text("said"));
    let said = bench.text("said");
    let there = bench.root.to_str().unwrap();
    assert!(said.contains(&format!("cd {there} && onward resume")), "{said}");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("b"), bench.ran("c")), (vec![1], vec![1]), "b is taken as it ended");
    sees_nobody_left(&its_run(&bench, &run));
}
