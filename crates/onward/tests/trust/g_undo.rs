//! What an attempt made of the tree is undone exactly, and saved, whether the attempt failed or was
//! killed; what git was told not to look at is looked at all the same.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use onward_engine::{care::harness::Watch, revert::rescue};

use crate::{
    bench::{Bench, Said, codes, id, kill_all, sees},
    support::repo::rescued,
};

/// How the first attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Fails,
    IsKilled,
}

pub(crate) const BOTH: [Ends; 2] = [Ends::Fails, Ends::IsKilled];

#[track_caller]
pub(crate) fn sh(bench: &Bench, script: &str) {
    let mut command = Command::new("sh");
    let identity = "git config user.name t; git config user.email t@example.com\n";
    let is_git = bench.path(".git").exists();
    let script = format!("set -e\n{}{script}", if is_git { identity } else { "" });
    let done = command.current_dir(&bench.root).args(["-c", &script]).status().unwrap();
    assert!(done.success(), "{script}");
}

/// A project with one step, whose first attempt does this. What is prepared comes before the run.
pub(crate) fn project(step: &str, prepare: &str, attempt: &str, ends: Ends) -> Bench {
    let bench = Bench::new(&format!(
        "  - id: a\n    {step}\n    retry: {{ max: 1, on: [failed] }}\n    \
         run: 'if [ $ONWARD_ATTEMPT = 1 ]; then sh .onward/attempt; exit 1; fi; sh .onward/then'\n"
    ));
    let end = match ends {
        Ends::Fails => "",
        Ends::IsKilled => "touch .onward/begun\nexec sleep 1000\n",
    };
    bench.write(".onward/.gitignore", "*\n");
    bench.write(".onward/attempt", &format!("{attempt}\n{end}"));
    bench.write(".onward/then", "echo ok > out\n");
    sh(&bench, prepare);
    bench
}

/// The run, which is over, or killed and not resumed yet.
pub(crate) fn begun(bench: &Bench, ends: Ends) -> PathBuf {
    match ends {
        Ends::Fails => {
            bench.exits("run w.yaml --no-input", 0);
            bench.project().runs().unwrap().remove(0).dir
        }
        Ends::IsKilled => {
            let (mut engine, run) = bench.start_run();
            sees(&bench.path(".onward/begun"));
            engine.kill().unwrap();
            kill_all(&run);
            fs::remove_file(bench.path("said")).unwrap();
            run
        }
    }
}

/// The same, and resumed where it was killed.
fn over(bench: &Bench, ends: Ends) -> PathBuf {
    let run = begun(bench, ends);
    if ends == Ends::IsKilled {
        bench.exits("resume --no-input --yes", 0);
    }
    run
}

const GIT: &str = "git init -q -b main; git config user.name t; git config user.email t@e.org\n";
const COMMIT: &str = "git add -A; git commit -q -m i\n";
const EDITS: &str = "edits: true\n    writes: [out]";

/// An attempt in git, undone; the second attempt has done its work.
fn undone(prepare: &str, attempt: &str, ends: Ends) -> (Bench, PathBuf) {
    let prepare = format!("{GIT}{}", prepare.replace("COMMIT", COMMIT));
    let bench = project(EDITS, &prepare, attempt, ends);
    let run = over(&bench, ends);
    (bench, run)
}

fn saved(run: &Path, number: u32, path: &str) -> PathBuf {
    rescued(run, number).dir.join("files").join(path)
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink())
}

#[test]
fn g3_what_git_was_told_not_to_look_at_is_undone_like_the_rest() {
    for bit in ["--skip-worktree", "--assume-unchanged"] {
        for ends in BOTH {
            let prepare =
                format!("echo c > cfg\nCOMMIT\ngit update-index {bit} cfg\necho mine > cfg");
            let (bench, run) = undone(&prepare, "echo att > cfg", ends);
            assert_eq!(bench.text("cfg"), "mine\n", "{bit} {ends:?}");
            assert_eq!(fs::read_to_string(saved(&run, 1, "cfg")).unwrap(), "att\n");
            let mut git = Command::new("git");
            let out =
                git.current_dir(&bench.root).args(["ls-files", "-v", "cfg"]).output().unwrap();
            assert!(!out.stdout.starts_with(b"H"), "the person's own index keeps the bit: {bit}");
        }
    }
}

#[test]
fn g3_a_worktree_begins_with_the_files_as_they_are_and_all_that_a_sparse_checkout_leaves_out() {
    let bench = Bench::new("  - { id: a, worktree: true, run: 'cat cfg > seen' }\n");
    bench.write(".onward/.gitignore", "*\n");
    let prepare = "echo c > cfg; mkdir far near; echo f > far/f; echo n > near/n\n";
    sh(
        &bench,
        &format!(
            "{GIT}{prepare}{COMMIT}git sparse-checkout set --no-cone '/*' '!/far/'\n\
             git update-index --skip-worktree cfg; echo mine > cfg\n"
        ),
    );
    assert!(!bench.path("far").exists());
    bench.exits("run w.yaml --no-input", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let show = |path: &str| {
        let mut git = Command::new("git");
        let branch = format!("onward/{}/a:{path}", id(&run));
        git.current_dir(&bench.root).args(["show", &branch]);
        String::from_utf8(git.output().unwrap().stdout).unwrap()
    };
    assert_eq!((show("seen"), show("far/f")), ("mine\n".to_owned(), "f\n".to_owned()));
}

#[test]
fn g18_what_a_sparse_checkout_leaves_out_is_not_brought_by_an_undo() {
    for ends in BOTH {
        let prepare = "mkdir far near; echo f > far/f; echo n > near/n\nCOMMIT\n\
                       git sparse-checkout set --no-cone '/*' '!/far/'";
        let (bench, run) = undone(prepare, "mkdir far; echo half > far/f", ends);
        assert!(!bench.path("far").exists(), "{ends:?}");
        assert_eq!(fs::read_to_string(saved(&run, 1, "far/f")).unwrap(), "half\n");
    }
}

#[test]
fn g4_a_worktree_with_changes_that_git_was_told_not_to_see_is_not_removed() {
    for bit in ["--skip-worktree", "--assume-unchanged"] {
        let bench = Bench::new("  - { id: a, worktree: true, run: 'echo a > out.txt' }\n");
        bench.write(".onward/.gitignore", "*\n");
        sh(&bench, &format!("{GIT}echo b > base\n{COMMIT}"));
        bench.exits("run w.yaml --no-input", 0);
        let run = bench.project().runs().unwrap().remove(0).dir;
        let tree = bench.path(&format!(".onward/worktrees/{}/a", id(&run)));
        let hide = format!("git -C {} update-index {bit} out.txt", tree.display());
        sh(&bench, &hide);
        fs::write(tree.join("out.txt"), "precious\n").unwrap();
        bench.exits("archive", 0);
        assert_eq!(fs::read_to_string(tree.join("out.txt")).unwrap(), "precious\n", "{bit}");
    }
}

#[test]
fn g5_a_directory_that_became_a_link_comes_back_as_it_was() {
    for ends in BOTH {
        let prepare = "mkdir lib; echo 1 > lib/x\nCOMMIT";
        let (bench, run) = undone(prepare, "mv lib src; ln -s src lib", ends);
        assert_eq!(bench.text("lib/x"), "1\n", "{ends:?}");
        assert!(!is_link(&bench.path("lib")) && !bench.path("src").exists(), "{ends:?}");
        assert!(is_link(&saved(&run, 1, "lib")), "{ends:?}");
        assert_eq!(fs::read_to_string(saved(&run, 1, "src/x")).unwrap(), "1\n");
        // And what the attempt made of it comes back, too, twice asked for or not.
        for _ in 0..2 {
            bench.exits("undo 1 --yes", 0);
            assert!(is_link(&bench.path("lib")), "{ends:?}");
            assert_eq!((bench.text("src/x"), bench.text("lib/x")), ("1\n".into(), "1\n".into()));
        }
    }
}

#[test]
fn g5_killed_in_the_middle_of_such_an_undo_the_tree_ends_the_same() {
    let prepare = format!(
        "{GIT}mkdir lib; for n in $(seq 200); do echo $n > lib/$n; done\n\
         echo said > .gitignore\n{COMMIT}"
    );
    let attempt = "mv lib src; ln -s src lib; echo half > src/1";
    let bench = project(EDITS, &prepare, attempt, Ends::IsKilled);
    let run = begun(&bench, Ends::IsKilled);
    let count = |name: &str| fs::read_dir(bench.path(name)).map_or(0, Iterator::count);
    let lib_is_back = || !is_link(&bench.path("lib")) && count("lib") > 0;
    let moments: [&dyn Fn() -> bool; 4] = [
        &|| run.join("rescue/1-a/UNDO.json").exists(),
        &|| !is_link(&bench.path("lib")),
        &|| count("src") < 200,
        &lib_is_back,
    ];
    for (number, moment) in moments.iter().enumerate() {
        let mut watch = Watch::new(&run);
        let mut engine = bench.start(&format!("resume --no-input --yes {}", id(&run)));
        assert!(watch.until(&mut engine, |_| moment()).unwrap(), "{number} {}", bench.text("said"));
        engine.kill().unwrap();
    }
    bench.exits("resume --no-input --yes", 0);
    assert!(!is_link(&bench.path("lib")) && !bench.path("src").exists());
    for number in 1..=200 {
        assert_eq!(bench.text(&format!("lib/{number}")), format!("{number}\n"));
    }
    assert!(is_link(&saved(&run, 1, "lib")));
    assert_eq!(fs::read_to_string(saved(&run, 1, "src/1")).unwrap(), "half\n");
}

#[test]
fn g5_what_was_written_through_such_a_link_is_undone_too() {
    for ends in BOTH {
        let prepare = "mkdir g; echo 1 > g/x\nCOMMIT";
        let (bench, run) = undone(prepare, "mv g h; ln -s h g; echo via > h/x", ends);
        assert_eq!(bench.text("g/x"), "1\n", "{ends:?}");
        assert!(!is_link(&bench.path("g")) && !bench.path("h").exists(), "{ends:?}");
        assert_eq!(fs::read_to_string(saved(&run, 1, "h/x")).unwrap(), "via\n");
    }
}

#[test]
fn g5_a_link_out_of_the_project_in_the_place_of_a_directory_is_taken_away() {
    for step in [EDITS, "edits: false\n    writes: [g/x, out]"] {
        for ends in BOTH {
            let outside = tempfile::tempdir().unwrap();
            fs::write(outside.path().join("x"), "theirs\n").unwrap();
            let prepare = format!("{GIT}{COMMIT}mkdir g; echo secret > g/x");
            let attempt = format!("rm -r g; ln -s {} g", outside.path().display());
            let bench = project(step, &prepare, &attempt, ends);
            bench.write(".onward/then", "echo ok > out; cat g/x > .onward/seen\n");
            let run = over(&bench, ends);
            assert_eq!(bench.text("g/x"), "secret\n", "{step} {ends:?}");
            assert_eq!(bench.text(".onward/seen"), "secret\n", "{step} {ends:?}");
            assert!(is_link(&saved(&run, 1, "g")), "{step} {ends:?}");
            let kept = fs::read_to_string(outside.path().join("x")).unwrap();
            assert_eq!(kept, "theirs\n", "{step} {ends:?}");
        }
    }
}

#[test]
fn g5_a_link_that_leads_out_never_stops_a_resume_or_a_cancel() {
    for (then, code) in [("resume --no-input --yes", 0), ("cancel --yes", 0)] {
        let outside = tempfile::tempdir().unwrap();
        let attempt = format!("rm -r g; ln -s {} g", outside.path().display());
        let prepare = format!("{GIT}{COMMIT}mkdir g; echo 1 > g/x");
        let step = "edits: false\n    writes: [g/x]";
        let bench = project(step, &prepare, &attempt, Ends::IsKilled);
        bench.write(".onward/then", "mkdir -p g; echo ok > g/x\n");
        begun(&bench, Ends::IsKilled);
        bench.exits(then, code);
        assert!(!is_link(&bench.path("g")), "{then}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{then}");
    }
}

#[test]
fn g6_a_file_comes_back_as_it_was_whatever_attributes_the_attempt_left() {
    for ends in BOTH {
        let attempt = "echo '*.txt text eol=crlf' > .gitattributes; echo x >> base.txt";
        let (bench, _) = undone("printf 'one\\ntwo\\n' > base.txt\nCOMMIT", attempt, ends);
        assert_eq!(bench.text("base.txt"), "one\ntwo\n", "{ends:?}");
        assert!(!bench.path(".gitattributes").exists(), "{ends:?}");
        // The other way round: what was written out by attributes is so again.
        let prepare = "echo '*.txt text eol=crlf' > .gitattributes\n\
                       printf 'one\\r\\ntwo\\r\\n' > base.txt\nCOMMIT";
        let (bench, _) = undone(prepare, "rm .gitattributes; echo x > base.txt", ends);
        assert_eq!(bench.text("base.txt"), "one\r\ntwo\r\n", "{ends:?}");
    }
}

#[test]
fn g7_what_was_not_committed_comes_back_when_an_attempt_resets_the_branch() {
    for ends in BOTH {
        let prepare = "echo one > base.txt\nCOMMIT\necho two >> base.txt; git commit -q -a -m two\n\
                       echo mine >> base.txt";
        let attempt = "git reset -q --hard HEAD~1; echo z > z";
        let prepare = format!("{GIT}{}", prepare.replace("COMMIT", COMMIT));
        let bench = project(EDITS, &prepare, attempt, ends);
        let run = begun(&bench, ends);
        if ends == Ends::IsKilled {
            let plan = bench.plan(&run);
            let reverts = plan["reverts"].to_string();
            assert!(reverts.contains("base.txt"), "{plan:#}");
            let accepts =
                codes(&plan).iter().flat_map(|it| [" --accept ", *it]).collect::<String>();
            bench.exits(&format!("resume --no-input --yes{accepts}"), 0);
        }
        assert_eq!(bench.text("base.txt"), "one\ntwo\nmine\n", "{ends:?}");
        assert!(!bench.path("z").exists(), "{ends:?}");
        assert_eq!(fs::read_to_string(saved(&run, 1, "base.txt")).unwrap(), "one\n");
    }
}

#[test]
fn g8_a_declared_directory_that_became_a_file_is_a_directory_again() {
    for (git, ends) in [("", Ends::Fails), ("", Ends::IsKilled), (GIT, Ends::IsKilled)] {
        let prepare = format!("{git}mkdir d; echo mine > d/x");
        let step = "edits: false\n    writes: ['d/**']";
        let bench = project(step, &prepare, "rm -rf d; echo half > d", ends);
        bench.write(".onward/then", "cat d/x > .onward/seen; echo k > d/z\n");
        let run = begun(&bench, ends);
        if ends == Ends::IsKilled {
            let plan = bench.plan(&run);
            assert_eq!(plan["reverts"].as_array().unwrap().len(), 2, "{plan:#}");
            bench.exits("resume --no-input --yes", 0);
        }
        assert_eq!((bench.text("d/x"), bench.text("d/z")), ("mine\n".into(), "k\n".into()));
        assert_eq!(bench.text(".onward/seen"), "mine\n", "{ends:?}");
        assert_eq!(fs::read_to_string(saved(&run, 1, "d")).unwrap(), "half\n");
    }
}

#[test]
fn g10_what_was_undone_comes_back_where_a_directory_had_become_a_file() {
    for ends in BOTH {
        let prepare = "mkdir d; echo 1 > d/f\nCOMMIT";
        let (bench, _) = undone(prepare, "rm -r d; echo file > d", ends);
        assert_eq!(bench.text("d/f"), "1\n", "{ends:?}");
        // What a person has there meanwhile is in the way, and then nothing is done.
        bench.write("d/mine", "mine\n");
        let said = bench.exits("undo 1 --yes", 16);
        assert!(said.err.contains("d/mine"), "{said:?}");
        assert_eq!((bench.text("d/f"), bench.text("d/mine")), ("1\n".into(), "mine\n".into()));
        assert!(!bench.path("d.onward-new").exists(), "{ends:?}");
        fs::remove_file(bench.path("d/mine")).unwrap();
        bench.exits("undo 1 --yes", 0);
        assert_eq!(bench.text("d"), "file\n", "{ends:?}");
        assert!(!bench.path("d.onward-new").exists(), "{ends:?}");
        // What it replaced was kept, and comes back from there.
        bench.exits("undo 2 --yes", 0);
        assert_eq!(bench.text("d/f"), "1\n", "{ends:?}");
    }
}

#[test]
fn g18_the_indexes_of_a_run_are_its_users_alone() {
    let (_bench, run) = undone("echo 1 > f\nCOMMIT", "echo half > f", Ends::Fails);
    for entry in fs::read_dir(run.join("git")).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{} {mode:o}", entry.path().display());
    }
}

/// What a person made of an output is kept before the step writes again, also behind a link.
#[test]
fn g2_what_a_link_in_the_place_of_an_output_leads_to_is_kept() {
    for is_outside in [false, true] {
        let outside = tempfile::tempdir().unwrap();
        let bench = Bench::new(
            "  - { id: a, run: 'cat in > out.txt', reads: [in], writes: [out.txt] }\n  \
             - { id: g, gate: '?' }\n",
        );
        bench.write(".onward/.gitignore", "*\n");
        sh(&bench, &format!("{GIT}echo 1 > in\n{COMMIT}"));
        bench.exits("run w.yaml --no-input", 11);
        let run = bench.project().runs().unwrap().remove(0).dir;
        let dir = if is_outside { outside.path().to_owned() } else { bench.path("final") };
        fs::create_dir_all(&dir).unwrap();
        let report = dir.join("report.txt");
        fs::write(&report, "hours of work\n").unwrap();
        fs::remove_file(bench.path("out.txt")).unwrap();
        symlink(&report, bench.path("out.txt")).unwrap();
        bench.write("in", "2\n");
        bench.exits("resume --no-input --yes --accept artifact-changed", 11);
        assert_eq!(bench.text("out.txt"), "2\n", "{is_outside}");
        let now = fs::read_to_string(&report).unwrap();
        if is_outside {
            assert_eq!(now, "hours of work\n", "the link was taken away first");
            assert!(!is_link(&bench.path("out.txt")));
            assert!(is_link(&saved(&run, 1, "out.txt")));
        } else {
            let kept = fs::read_to_string(saved(&run, 1, "final/report.txt")).unwrap();
            assert_eq!(kept, "hours of work\n");
        }
    }
}

#[test]
fn g2_what_a_link_of_a_persons_leads_to_is_kept_before_a_later_step_writes() {
    let bench = Bench::new(
        "  - { id: e, edits: true, run: 'echo e > e.txt' }\n  - { id: g, gate: '?' }\n  \
         - { id: b, run: 'echo 2 > out.txt', writes: [out.txt] }\n",
    );
    bench.write(".onward/.gitignore", "*\n");
    sh(&bench, &format!("{GIT}{COMMIT}"));
    bench.exits("run w.yaml --no-input", 11);
    let run = bench.project().runs().unwrap().remove(0).dir;
    sh(&bench, "mkdir final; echo hours > final/report.txt; ln -s final/report.txt out.txt");
    bench.exits("approve", 0);
    bench.exits("resume --no-input --yes --accept artifact-changed", 0);
    assert_eq!(bench.text("final/report.txt"), "2\n");
    let kept = rescue::list(&run).unwrap().rescues.into_iter().map(|it| it.dir);
    let kept: Vec<String> = kept
        .filter_map(|dir| fs::read_to_string(dir.join("files/final/report.txt")).ok())
        .collect();
    assert_eq!(kept, ["hours\n"]);
}

#[test]
fn g2_half_done_work_through_a_link_is_undone_behind_it() {
    for (ignored, step) in
        [("", "edits: false\n    writes: [out]"), ("", EDITS), ("echo rep > .gitignore\n", EDITS)]
    {
        for ends in BOTH {
            let prepare = format!(
                "{GIT}{ignored}echo precious > rep; ln -s rep out\n{COMMIT}echo unsaved >> rep"
            );
            let bench = project(step, &prepare, "echo half > out", ends);
            bench.write(".onward/then", "cat out > .onward/seen; echo ok > out\n");
            let run = over(&bench, ends);
            assert_eq!(bench.text(".onward/seen"), "precious\nunsaved\n", "{step} {ends:?}");
            assert_eq!(bench.text("rep"), "ok\n", "{step} {ends:?}");
            assert_eq!(fs::read_to_string(saved(&run, 1, "rep")).unwrap(), "half\n");
        }
    }
}

#[test]
fn g2_an_output_that_leads_out_is_taken_away_before_every_attempt() {
    for step in ["edits: false\n    writes: [out]", EDITS] {
        for ends in BOTH {
            let outside = tempfile::tempdir().unwrap();
            let report = outside.path().join("report.txt");
            fs::write(&report, "hours of work\n").unwrap();
            let link = format!("ln -s {} out", report.display());
            let bench = project(step, &format!("{GIT}{link}\n{COMMIT}"), "echo half > out", ends);
            let run = over(&bench, ends);
            let kept = fs::read_to_string(&report).unwrap();
            assert_eq!(kept, "hours of work\n", "{step} {ends:?}");
            let now = (bench.text("out"), is_link(&bench.path("out")));
            assert_eq!(now, ("ok\n".to_owned(), false), "{step} {ends:?}");
            assert!(is_link(&saved(&run, 1, "out")), "{step} {ends:?}");
            assert_eq!(fs::read_to_string(saved(&run, 2, "out")).unwrap(), "half\n");
        }
    }
}

#[test]
fn g17_what_no_undo_takes_back_is_told() {
    let prepare = format!("{GIT}echo 1 > f\n{COMMIT}git init -q sub2; echo q > sub2/q");
    let attempt = "echo half > sub2/q";
    let bench = project(EDITS, &prepare, attempt, Ends::IsKilled);
    let run = begun(&bench, Ends::IsKilled);
    let plan = bench.plan(&run);
    let told = plan["steps"][0]["why"].to_string();
    assert!(told.contains("what it did in sub2/ is not known"), "{plan:#}");
    let attempt = "echo half > f; git commit -q -a -m half-done; echo more > g";
    let bench = project(EDITS, &prepare, attempt, Ends::IsKilled);
    let run = begun(&bench, Ends::IsKilled);
    let plan = bench.plan(&run);
    let told = plan["steps"][0]["why"].to_string();
    assert!(
        told.contains("it committed, and that stays") && told.contains("half-done"),
        "{plan:#}"
    );
    let said = bench.exits("resume --no-input --yes", 0);
    assert!(said.err.contains("it committed, and that stays"), "{said:?}");
    assert_eq!((bench.text("f"), bench.path("g").exists()), ("half\n".to_owned(), false));
}

#[test]
fn g18_what_a_killed_attempt_left_is_the_steps_when_a_person_says_that_it_is_done() {
    let prepare = format!("{GIT}echo 1 > f\n{COMMIT}");
    let bench = project(EDITS, &prepare, "echo half > f; echo ok > out", Ends::IsKilled);
    let run = begun(&bench, Ends::IsKilled);
    bench.exits("done a", 0);
    let plan = bench.plan(&run);
    assert!(!codes(&plan).contains(&"dirty-tree"), "{plan:#}");
    bench.write("f", "by hand\n");
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"dirty-tree"), "what a person changes since is told: {plan:#}");
}

#[test]
fn g18_a_branch_that_is_named_after_a_secret_is_the_same_branch_and_not_shown() {
    let bench = Bench::new("  - { id: a, run: 'test -e ok' }\n");
    bench.write(".onward/.gitignore", "*\n");
    sh(&bench, &format!("{GIT}{COMMIT}git switch -q -c fix-tok-5f0c9a77d1"));
    let onward = |arguments: &str| {
        let out = bench.command(arguments).env("X_TOKEN", "tok-5f0c9a77d1").output().unwrap();
        Said::of(&out)
    };
    assert_eq!(onward("run w.yaml --no-input").code, 10);
    let plan = onward("plan --json");
    assert_eq!(codes(&plan.json()), [""; 0], "{plan:?}");
    sh(&bench, "git switch -q -c another; git commit -q --allow-empty -m tok-5f0c9a77d1");
    let plan = onward("plan --json");
    assert!(codes(&plan.json()).contains(&"branch-mismatch"), "{plan:?}");
    assert!(!plan.out.contains("tok-5f0c9a77d1"), "{plan:?}");
    onward("resume --no-input --yes --accept branch-mismatch");
    let run = bench.project().runs().unwrap().remove(0).dir;
    for name in ["journal.jsonl", "opened.json"] {
        let text = fs::read(run.join(name)).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("tok-5f0c9a77d1"), "{name}");
    }
}

#[test]
fn i4_an_edit_that_an_attempt_threw_away_and_committed_over_is_in_a_rescue() {
    let prepare = "git init -q .; git config user.name t; git config user.email t@example.com; \
        echo one > c.txt; git add -A; git commit -qm one; \
        echo mine > c.txt";
    let drops = [("git checkout -q c.txt", "true"), ("git stash -q", "echo more >> c.txt")];
    for (drop, rest) in drops {
        for ends in BOTH {
            let attempt = format!(
                "{drop}; echo agent > c.txt; git add c.txt; git commit -qm agent; {rest}\n\
                 echo half > half.txt"
            );
            let bench = project("edits: true", prepare, &attempt, ends);
            let run = begun(&bench, ends);
            if ends == Ends::IsKilled {
                let plan = bench.plan(&run);
                let reverts = plan["reverts"].as_array().unwrap();
                let kept = |it: &&serde_json::Value| it["kind"] == "replace-file";
                let kept: Vec<_> = reverts.iter().filter(kept).collect();
                assert_eq!(kept.len(), 1, "{plan:#}");
                assert_eq!(kept[0]["path"], "c.txt", "{plan:#}");
                let said = bench.exits("resume --no-input --yes", 0);
                assert!(said.err.contains("--replace c.txt"), "{said:?}");
            }
            assert_eq!(bench.text("c.txt"), "agent\n", "its commit stays");
            assert!(!bench.path("half.txt").exists());
            let has = |it: &&rescue::Rescue| {
                let file = it.dir.join("files/c.txt");
                fs::read_to_string(file).is_ok_and(|text| text == "mine\n")
            };
            let all = rescue::list(&run).unwrap().rescues;
            let found = all.iter().find(has).unwrap_or_else(|| panic!("{drop} {ends:?}"));
            let command = format!("undo {} {} --replace c.txt", id(&run), found.number);
            assert!(bench.exits("status", 0).out.contains(&command), "{drop} {ends:?}");
            bench.exits(&format!("{command} --yes"), 0);
            assert_eq!(bench.text("c.txt"), "mine\n");
        }
    }
}
