//! An undo is foreseen: what stands in its way is asked about before anything is undone.

use std::{fs, os::unix::ffi::OsStrExt as _};

use crate::{
    a_plan::waits_for_seal,
    bench::{Bench, codes, kill_all, sees},
    support::repo::git,
};

fn in_git(steps: &str) -> Bench {
    let bench = Bench::new(steps);
    git(&bench, "init -q -b main");
    bench.write(".gitignore", "ledger.txt\nsaid\nbegun\n*.env\n");
    bench.write("base.txt", "base\n");
    git(&bench, "add -A");
    git(&bench, "commit -q -m one");
    bench
}

#[test]
fn e5_a_directory_that_an_undo_cannot_empty_is_asked_about_first() {
    let bench = in_git(
        "  - { id: a, edits: true, run: 'LOG; test -e .onward/go || { rm base.txt; mkdir base.txt; \
         echo half > base.txt/in; touch begun; sleep 1000; }' }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    bench.write("base.txt/my.env", "PERSON\n");
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"dirty-tree"), "{plan:#}");
    bench.exits("resume --no-input", 16);
    assert_eq!(bench.text("base.txt/in"), "half\n", "nothing is undone before the answer");
    assert_eq!(bench.text("base.txt/my.env"), "PERSON\n");
    assert!(!bench.path("base.txt.onward-new").exists());
    // Out of the way, it is undone as a whole.
    fs::remove_file(bench.path("base.txt/my.env")).unwrap();
    bench.write(".onward/go", "");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.text("base.txt"), "base\n");
}

/// An edited workflow is told and decided as one, also where the interrupted attempt could have
/// changed any file.
#[test]
fn e22_a_workflow_that_was_edited_after_a_kill_is_no_edit_of_half_done_work() {
    let bench = in_git(
        "  - { id: a, edits: true, run: 'LOG; test -e .onward/go || { echo half > half.txt; \
         touch begun; sleep 1000; }' }\n\
         \x20 - { id: c, run: 'LOG; echo old' }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    let edited = bench.text("w.yaml").replace("echo old", "echo new");
    bench.write("w.yaml", &edited);
    // Long after the last sign of the attempt.
    let file = fs::File::options().write(true).open(bench.path("w.yaml")).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now + std::time::Duration::from_mins(1)).unwrap();
    let plan = bench.plan(&run);
    let found = codes(&plan);
    assert!(found.contains(&"workflow-changed") && !found.contains(&"dirty-tree"), "{plan:#}");
    bench.write(".onward/go", "");
    bench.exits("resume --no-input", 0);
    assert!(!bench.path("half.txt").exists(), "what the attempt left is undone");
    assert_eq!(bench.text("w.yaml"), edited, "what the person wrote stays");
    assert!(bench.exits("log --step c", 0).out.contains("new"));
}

#[test]
fn e18_a_directory_in_the_place_of_an_output_is_a_persons_and_the_output_is_missing() {
    let bench = Bench::new(
        "  - { id: w, run: 'LOG; echo 1 > x.md', writes: [x.md] }\n\
         \x20 - { id: u, run: 'LOG; cat x.md', reads: [x.md] }\n\
         \x20 - { id: b, run: 'test -e ok' }\n",
    );
    bench.exits("run w.yaml", 10);
    fs::remove_file(bench.path("x.md")).unwrap();
    fs::create_dir(bench.path("x.md")).unwrap();
    bench.write("x.md/p", "precious\n");
    let plan = bench.exits("plan --json", 0).json();
    let found = codes(&plan);
    assert!(found.contains(&"missing-artifact") && found.contains(&"artifact-changed"), "{plan:#}");
    let rows = plan["steps"].as_array().unwrap();
    let verdicts: Vec<_> = rows.iter().map(|it| it["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts[0], "rerun", "{plan:#}");
    bench.exits("resume --no-input", 16);
    assert_eq!((bench.ran("w"), bench.text("x.md/p")), (vec![1], "precious\n".to_owned()));
    // Accepted, what was there is kept, and the step says itself what is wrong.
    bench.exits("resume --no-input --yes --accept artifact-changed", 10);
    let said = bench.onward("rescue list");
    assert!(said.out.contains("x.md/p"), "{said:?}");
    // Taken away by a person, it does not come back.
    fs::remove_dir_all(bench.path("x.md")).unwrap();
    let plan = bench.exits("plan --json", 0).json();
    assert_eq!(plan["reverts"], serde_json::json!([]), "{plan:#}");
    bench.write("ok", "");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("w"), bench.text("x.md")), (vec![1, 2, 3], "1\n".to_owned()));
}

/// The plan said that it continues with the edited file, and that it puts the old one back.
#[test]
fn e26_an_edited_workflow_file_is_never_undone() {
    let steps = "  - { id: a, edits: true, run: 'LOG; echo half > half.txt; touch .git/begun; \
                 while test ! -e .git/end; do sleep 0.02; done; false' }\n";
    let bench = in_git(steps);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/begun"));
    engine.kill().unwrap();
    let edited = bench.text("w.yaml").replace("half > half.txt", "half > half.txt; exit 0");
    bench.write("w.yaml", &edited);
    let undone = |plan: &serde_json::Value| {
        let all = plan["reverts"].as_array().unwrap().iter();
        all.map(|it| it["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(!undone(&bench.plan(&run)).contains(&"w.yaml".to_owned()), "while it lives");
    bench.write(".git/end", "");
    waits_for_seal(&run, "a");
    // It failed, and is asked for differently now: that runs, and what it left is undone.
    assert_eq!(undone(&bench.plan(&run)), ["half.txt"], "when it failed");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.text("w.yaml"), edited);
}

#[test]
fn e20_a_snapshot_that_git_lost_is_told_as_that() {
    let bench = in_git(
        "  - { id: a, edits: true, run: 'LOG; echo half > half.txt; touch begun; sleep 1000' }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    for name in git(&bench, "for-each-ref --format=%(refname) refs/onward").lines() {
        git(&bench, &format!("update-ref -d {name}"));
    }
    git(&bench, "gc -q --prune=now");
    let plan = bench.plan(&run);
    let told = format!("{}{}", plan["steps"], plan["findings"]);
    assert!(told.contains("git has lost the snapshot"), "{plan:#}");
    assert!(!told.contains("edited afterwards"), "{plan:#}");
    bench.exits("resume --no-input", 16);
    assert_eq!(bench.text("half.txt"), "half\n");
}

#[test]
fn e9_a_name_that_is_not_utf8_is_a_name_like_any_other() {
    let name = std::ffi::OsStr::from_bytes(b"s\xff");
    let row = |bench: &Bench, step: &str| {
        let plan = bench.exits("plan --json", 0).json();
        let rows = plan["steps"].as_array().unwrap();
        rows.iter().find(|it| it["step"] == step).unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    // What a gate shows, and a step reads and writes.
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; cat s*', reads: ['s*'] }\n\
         \x20 - { id: g, gate: 'ok?', shows: ['s*'] }\n\
         \x20 - { id: w, run: 'LOG; sh make', writes: ['w*'] }\n\
         \x20 - { id: d, run: 'LOG; test -e ok' }\n",
    );
    fs::rename(bench.path("w.yaml"), bench.path("flow.yaml")).unwrap();
    bench.write("make", "echo w > \"$(printf 'w\\377')\"\n");
    fs::write(bench.root.join(name), "1\n").unwrap();
    bench.exits("run flow.yaml", 11);
    let said = bench.exits("status", 0).out;
    assert!(said.contains("look at s\\xff"), "{said}");
    bench.exits("approve", 0);
    fs::write(bench.root.join(name), "another\n").unwrap();
    assert_eq!((row(&bench, "a"), row(&bench, "g")), ("rerun".to_owned(), "ask".to_owned()));
    bench.exits("resume --no-input --yes", 11);
    bench.exits("approve", 0);
    bench.exits("resume --no-input", 10);
    assert_eq!((bench.ran("a"), bench.ran("w")), (vec![1, 2], vec![1]));
    fs::remove_file(bench.root.join(std::ffi::OsStr::from_bytes(b"w\xff"))).unwrap();
    assert_eq!(row(&bench, "w"), "rerun");
    bench.write("ok", "");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.ran("w"), [1, 2]);
}

#[test]
fn e9_half_done_work_of_such_a_name_is_undone_and_comes_back() {
    let bench =
        in_git("  - { id: a, edits: true, run: 'LOG; test -e .onward/go || sh .onward/make' }\n");
    bench.write(
        ".onward/make",
        "echo half > \"$(printf 'bad\\377')\"\necho half >> base.txt\ntouch begun\nsleep 1000\n",
    );
    let path = bench.root.join(std::ffi::OsStr::from_bytes(b"bad\xff"));
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    let plan = bench.plan(&run);
    assert!(!codes(&plan).contains(&"dirty-tree"), "{plan:#}");
    assert_eq!(plan["reverts"].as_array().unwrap().len(), 2, "{plan:#}");
    bench.write(".onward/go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!((path.exists(), bench.text("base.txt")), (false, "base\n".to_owned()));
    bench.exits("undo 1 --yes", 0);
    assert_eq!(fs::read(&path).unwrap(), b"half\n");
}
