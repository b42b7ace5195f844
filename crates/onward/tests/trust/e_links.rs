//! Links in a checkout lead nowhere, and wedge nothing.

use std::{fs, os::unix::fs::symlink, path::Path};

use tempfile::TempDir;

use crate::{
    bench::{Bench, codes, id},
    c_files::DOCUMENT,
    support::repo::git,
};

fn in_git(steps: &str) -> Bench {
    let bench = Bench::new(steps);
    git(&bench, "init -q -b main");
    bench.write(".gitignore", "ledger.txt\n");
    git(&bench, "add -A");
    git(&bench, "commit -q -m one");
    bench
}

/// A directory outside with one file in it.
fn outside() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.json"), "precious\n").unwrap();
    dir
}

#[track_caller]
fn is_untouched(outside: &TempDir, case: &str) {
    let names: Vec<_> = fs::read_dir(outside.path()).unwrap().flatten().collect();
    let names: Vec<_> = names.iter().map(fs::DirEntry::file_name).collect();
    assert_eq!(names, ["a.json"], "{case}");
    assert_eq!(fs::read(outside.path().join("a.json")).unwrap(), b"precious\n", "{case}");
}

fn replace(at: &Path, by: &Path) {
    let _ = fs::remove_dir_all(at);
    let _ = fs::remove_file(at);
    symlink(by, at).unwrap();
}

#[test]
fn e8_a_link_where_a_directory_of_a_run_should_be_is_refused() {
    for name in ["inbox", "git", "out", "saved", "rescue"] {
        let bench = in_git(
            "  - { id: e, run: 'echo e > e.txt', edits: true }\n  - { id: b, run: 'test -e ok' }\n",
        );
        bench.exits("run w.yaml", 10);
        let run = bench.project().runs().unwrap().remove(0).dir;
        let outside = outside();
        replace(&run.join(name), outside.path());
        let said = bench.exits(&format!("resume --no-input --redo e --yes {}", id(&run)), 1);
        assert!(said.err.contains("a link stands") && said.err.contains(name), "{said:?}");
        for command in ["cancel", "done b", "archive"] {
            assert_ne!(bench.onward(command).code, 0, "{name} {command}");
        }
        is_untouched(&outside, name);
    }
}

#[test]
fn e8_a_link_where_a_directory_of_the_project_should_be_is_refused() {
    for name in [".onward", ".onward/runs", ".onward/archive", ".onward/worktrees"] {
        let bench = in_git("  - { id: t, worktree: true, run: 'echo t > t.txt' }\n");
        bench.exits("run w.yaml", 0);
        let outside = outside();
        replace(&bench.path(name), outside.path());
        for command in ["run w.yaml", "list", "plan", "archive", "gc --keep 0 --yes"] {
            let said = bench.exits(command, 1);
            assert!(said.err.contains("a link stands"), "{name} {command} {said:?}");
        }
        is_untouched(&outside, name);
    }
}

#[test]
fn e8_errors_show_nothing_of_what_a_link_leads_to() {
    let bench = Bench::new("  - { id: a, run: 'test -e ok' }\n");
    bench.exits("run w.yaml", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let outside = outside();
    for at in [run.join("workflow.yaml"), bench.path(".onward/config.toml")] {
        let _ = fs::remove_file(&at);
        symlink(outside.path().join("a.json"), &at).unwrap();
        for command in ["plan", "status", "resume --no-input"] {
            let said = bench.onward(command);
            assert!(!format!("{said:?}").contains("precious"), "{command} {said:?}");
        }
        assert_ne!(bench.onward("plan").code, 0);
        fs::remove_file(&at).unwrap();
    }
}

#[test]
fn e23_a_file_whose_name_looks_like_a_pattern_is_named_by_it() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; echo 1 > \"app/[slug]/one.tsx\"', \
         writes: ['app/[slug]/one.tsx'] }\n  \
         - { id: two, dir: 'app/[slug]', run: 'echo 1 > two.tsx', writes: [two.tsx] }\n  \
         - { id: three, run: LOG, reads: ['app/[slug]/one.tsx'] }\n  \
         - { id: last, run: test -e go }\n",
    );
    fs::create_dir_all(bench.path("app/[slug]")).unwrap();
    bench.exits("run w.yaml", 10);
    bench.write("go", "");
    // What it read has changed.
    bench.write("app/[slug]/one.tsx", "by hand\n");
    bench.exits("resume --no-input --mode autopilot", 0);
    assert_eq!((bench.ran("one"), bench.ran("three")), (vec![1], vec![1, 2]));
    assert_eq!(bench.text("app/[slug]/one.tsx"), "by hand\n");
}

#[test]
fn e6_an_output_that_leads_out_is_a_failed_attempt_and_wedges_nothing() {
    let outside = outside();
    let target = outside.path().join("a.json").display().to_string();
    let steps = format!(
        "  - {{ id: a, run: 'LOG; rm -f x.md; test -e ok && echo a > x.md || ln -s {target} x.md', \
         writes: [x.md] }}\n  - {{ id: b, run: LOG }}\n"
    );
    let bench = Bench::new(&steps);
    let said = bench.exits("run w.yaml", 10);
    assert!(said.err.contains("leads out of the project: x.md"), "{said:?}");
    for command in ["plan", "status", "why a"] {
        assert!(matches!(bench.onward(command).code, 0 | 10), "{command}");
    }
    bench.write("ok", "");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.ran("b"), [1]);
    is_untouched(&outside, "x.md");
}

#[test]
fn e6_a_person_may_move_an_output_elsewhere_and_leave_a_link() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo a > x.md', writes: [x.md] }\n\
         \x20 - { id: b, run: 'LOG; test -e ok' }\n",
    );
    bench.exits("run w.yaml", 10);
    let outside = tempfile::tempdir().unwrap();
    fs::copy(bench.path("x.md"), outside.path().join("x.md")).unwrap();
    fs::remove_file(bench.path("x.md")).unwrap();
    symlink(outside.path().join("x.md"), bench.path("x.md")).unwrap();
    let plan = bench.exits("plan --json", 0).json();
    assert_eq!(codes(&plan), ["artifact-changed"], "{plan:#}");
    bench.write("ok", "");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.ran("a"), [1], "it is kept as it is");
}

#[test]
fn e6_inputs_behind_a_link_are_known_by_their_place_size_and_time() {
    let outside = outside();
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; cat data/*', reads: ['data/*'] }\n\
         \x20 - { id: b, run: 'LOG; test -e ok' }\n",
    );
    symlink(outside.path(), bench.path("data")).unwrap();
    bench.exits("run w.yaml", 10);
    bench.exits("plan", 0);
    fs::write(outside.path().join("a.json"), "another text\n").unwrap();
    let plan = bench.exits("plan --json", 0).json();
    let row = plan["steps"].as_array().unwrap().iter().find(|it| it["step"] == "a").unwrap();
    assert_eq!(row["verdict"], "rerun", "{plan:#}");
    // A template that reads there fails its step, with the file's name.
    let bench = Bench::new("  - { id: a, run: 'echo {{ read_text(\"data/a.json\") }}' }\n");
    symlink(outside.path(), bench.path("data")).unwrap();
    let said = bench.onward("run w.yaml");
    assert!(said.code != 0 && said.err.contains("data/a.json"), "{said:?}");
    bench.exits("plan", 0);
}

#[test]
fn e17_a_linked_log_of_another_system_is_named_and_neither_read_nor_written() {
    let bench = Bench::new("");
    let dir = bench.path("talks/tea");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("conference.md"), DOCUMENT).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let log = outside.path().join("ev");
    let line = "{\"event\":\"conference.started\",\"timestamp\":\"2026-05-04T20:00:00Z\",\
                \"payload\":{\"researchers\":2}}\n";
    fs::write(&log, line).unwrap();
    symlink(&log, dir.join("conference_events.jsonl")).unwrap();
    let said = bench.exits("plan talks/tea", 0);
    assert!(said.out.contains("conference_events.jsonl is a link"), "{said:?}");
    let said = bench.exits("resume --no-input --yes talks/tea", 16);
    assert!(said.err.contains("conference_events.jsonl is a link"), "{said:?}");
    assert!(bench.project().runs().unwrap().is_empty(), "nothing was made");
    // A person may go on without what cannot be read; what lies behind a link stays as it is.
    bench.onward("resume --no-input --yes --accept state-unreadable talks/tea");
    assert_eq!(fs::read_to_string(&log).unwrap(), line);
}
