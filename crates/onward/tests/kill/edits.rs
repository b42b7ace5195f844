//! An agent killed in the middle of its edits: they leave the tree and are in the rescue, and what
//! anybody else did stays.

use std::{collections::BTreeMap, fs, path::PathBuf};

use onward_core::event::{Event, FileKind};
use onward_engine::care::harness::Watch;

use crate::{
    bench::{Bench, codes, id, journal, kill_all, processes, sees, sees_nobody_left, watched},
    kills::kill_supervisor,
    repo::{HALF_DONE, Killed, edit_by_hand, git, killed_half_way, repo, rescued, tree},
};

const STEPS: &str = "  - { id: first, run: LOG }\n\
    \x20 - id: draft\n    agent: claude\n    prompt: write\n    writes: [made.o]\n    \
    retry: { max: 1 }\n\
    \x20 - { id: last, run: LOG }\n";

/// What the second attempt is told, without the name of the directory.
fn brief(bench: &Bench) -> String {
    bench.text("brief.txt").replace(bench.root.to_str().unwrap(), "")
}

#[test]
fn half_done_edits_leave_the_tree_and_are_in_the_rescue() {
    for how in [Killed::WithoutSupervisor, Killed::All] {
        let bench = repo(HALF_DONE, STEPS);
        let before = tree(&bench);
        let head = git(&bench, "rev-parse HEAD");
        let status = git(&bench, "status --porcelain");
        let run = killed_half_way(&bench, how);
        assert_ne!(tree(&bench), before);
        bench.exits("resume", 0);
        bench.is_proved(&run);
        assert_eq!(bench.ran("draft"), [1, 2], "{how:?}");
        // All but what the second attempt made.
        let brief = brief(&bench);
        fs::remove_file(bench.path("brief.txt")).unwrap();
        assert_eq!(tree(&bench), before, "{how:?}");
        assert_eq!(bench.text("made.o"), "done\n");
        assert!(!bench.path("new").exists(), "no empty directory is left either");
        assert_eq!(git(&bench, "rev-parse HEAD"), head);
        assert_eq!(git(&bench, "status --porcelain"), status, "{how:?}");
        let rescue = rescued(&run, 1);
        let kept = rescue.note.paths.iter().map(|it| (it.path.as_str(), it.left_kind));
        let (plain, executable) = (FileKind::Plain, FileKind::Executable);
        let expected = [
            ("a.txt", plain),
            ("b.txt", plain),
            ("link", FileKind::Link),
            ("made.o", plain),
            ("new/deep/file", plain),
            ("plain.sh", executable),
            ("run.sh", plain),
        ];
        assert_eq!(kept.collect::<Vec<_>>(), expected, "{how:?}");
        let file = |path: &str| rescue.dir.join("files").join(path);
        assert_eq!(fs::read_to_string(file("new/deep/file")).unwrap(), "half\n");
        assert_eq!(fs::read_link(file("link")).unwrap(), PathBuf::from("a.txt"));
        assert!(!file("b.txt").exists(), "it was deleted");
        let patch = fs::read_to_string(rescue.dir.join("patch.diff")).unwrap();
        assert!(patch.contains("+half") && patch.contains("deleted file"), "{patch}");
        let shown =
            git(&bench, &format!("show --format= --name-only {}", rescue.note.commit.unwrap()));
        assert_eq!(shown.lines().count(), expected.len(), "{shown}");
        assert!(brief.contains("What it changed was undone:\n- a.txt\n- b.txt\n"), "{brief}");
        assert!(brief.contains("/rescue/1-draft, the files as they were in files/"), "{brief}");
        sees_nobody_left(&run);
    }
}

#[test]
fn case_8_what_a_person_edits_during_the_pause_is_never_touched() {
    for how in [Killed::WithoutSupervisor, Killed::All] {
        let bench = repo(HALF_DONE, STEPS);
        let run = killed_half_way(&bench, how);
        edit_by_hand(&bench, &run, "a.txt");
        let left = tree(&bench);
        // The attempt that the supervisor saw fail is judged first, and not tried again.
        if how == Killed::WithoutSupervisor {
            bench.exits("resume", 10);
            assert!(journal(&run).contains("not retried"), "{}", journal(&run));
        }
        let said = bench.exits("resume", 16);
        assert!(said.err.contains("dirty-tree") && said.err.contains("a.txt"), "{how:?}: {said:?}");
        assert_eq!(tree(&bench), left, "{how:?}: neither the edit nor the rest moved");
        let plan = bench.plan(&run);
        assert_eq!(codes(&plan), ["dirty-tree"], "{how:?}: {plan:#}");
        assert_eq!(plan["can_resume"], false);
        assert_eq!(bench.ran("draft"), [1]);
        // Put back by hand, there is nothing to ask any more.
        fs::write(bench.path("a.txt"), "a\n").unwrap();
        if how == Killed::WithoutSupervisor {
            bench.exits("resume", 0);
            assert_eq!(bench.text("a.txt"), "a\n");
            assert_eq!(bench.text("b.txt"), "b\n");
        }
    }
}

#[test]
fn another_file_that_a_person_edits_during_the_pause_stays_as_well() {
    let bench = repo(HALF_DONE, STEPS);
    let run = killed_half_way(&bench, Killed::WithoutSupervisor);
    fs::write(bench.path("mine.txt"), "by hand\n").unwrap();
    fs::write(bench.path("c.txt"), "by hand\n").unwrap();
    bench.exits("resume", 0);
    bench.is_proved(&run);
    assert_eq!([bench.text("mine.txt"), bench.text("c.txt")], ["by hand\n", "by hand\n"]);
    assert_eq!([bench.text("a.txt"), bench.text("b.txt")], ["a\n", "b\n"]);
}

#[test]
fn case_9_new_commits_after_the_snapshot_do_not_move() {
    for how in [Killed::WithoutSupervisor, Killed::All] {
        let bench = repo(HALF_DONE, STEPS);
        let run = killed_half_way(&bench, how);
        fs::write(bench.path("untracked.txt"), "committed\n").unwrap();
        git(&bench, "add untracked.txt");
        git(&bench, "commit -q -m two");
        let head = git(&bench, "rev-parse HEAD");
        let said = bench.exits("resume --yes", 0);
        assert_eq!(git(&bench, "rev-parse HEAD"), head, "{how:?}: {said:?}");
        assert_eq!(git(&bench, "symbolic-ref HEAD"), "refs/heads/main");
        assert_eq!(bench.text("untracked.txt"), "committed\n");
        assert_eq!([bench.text("a.txt"), bench.text("b.txt")], ["a\n", "b\n"], "{how:?}");
        bench.is_proved(&run);
    }
}

#[test]
fn half_done_edits_that_somebody_committed_are_theirs_now() {
    let bench = repo(HALF_DONE, STEPS);
    let run = killed_half_way(&bench, Killed::All);
    git(&bench, "add a.txt");
    git(&bench, "commit -q -m kept");
    bench.exits("resume --yes", 0);
    assert_eq!(bench.text("a.txt"), "half\n");
    assert_eq!(bench.text("b.txt"), "b\n");
    bench.is_proved(&run);
}

/// It has changed nothing when the resume looks, and does so in the moment in which it is ended.
#[test]
fn what_an_orphan_edits_while_it_is_ended_is_seen_before_anything_runs_again() {
    let bench = repo(
        "",
        "  - id: one\n    edits: true\n    run: |\n      LOG\n      \
         [ $ONWARD_ATTEMPT = 1 ] || { echo again >> a.txt; exit; }\n      \
         trap 'echo late >> a.txt; exit' TERM\n      touch .git/half\n      \
         sleep 1000 & wait\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/half"));
    engine.kill().unwrap();
    kill_supervisor(&run);
    assert_eq!(codes(&bench.plan(&run)), ["orphan-process"]);
    let said = bench.exits("resume --no-input", 16);
    assert!(said.err.contains("dirty-tree") && said.err.contains("a.txt"), "{said:?}");
    assert_eq!((bench.text("a.txt"), bench.ran("one")), ("a\nlate\n".into(), vec![1]));
    fs::write(bench.path("a.txt"), "a\n").unwrap();
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.text("a.txt"), bench.ran("one")), ("a\nagain\n".into(), vec![1, 2]));
    sees_nobody_left(&run);
}

/// Commits its work; what follows differs.
const COMMITS: &str = "\
    git config user.name scribe; git config user.email scribe@example.com\n\
    if [ $ONWARD_ATTEMPT = 1 ]; then\n\
      echo committed > a.txt; git add a.txt; git commit -q -m work\n";

#[test]
fn case_7_an_agent_that_committed_before_anybody_recorded_it_is_done() {
    let bench = repo(&format!("{COMMITS} half\nfi\n"), STEPS.replace("made.o", "a.txt").as_str());
    let run = killed_half_way(&bench, Killed::All);
    let head = git(&bench, "rev-parse HEAD");
    let plan = bench.plan(&run);
    let draft = plan["steps"].as_array().unwrap().iter().find(|it| it["step"] == "draft");
    assert_eq!(draft.unwrap()["verdict"], "adopt", "{plan:#}");
    bench.exits("resume --yes", 0);
    assert_eq!(bench.ran("draft"), [1], "it is not done again");
    assert_eq!((git(&bench, "rev-parse HEAD"), bench.text("a.txt")), (head, "committed\n".into()));
    assert!(journal(&run).contains("\"kind\":\"attempt.adopted\",\"step\":\"draft\""));
}

#[test]
fn what_an_agent_went_on_to_after_its_commit_is_undone_down_to_the_commit() {
    let agent =
        format!("{COMMITS} echo more > a.txt; echo more > new.txt; half\nfi\necho ok > made.o\n");
    let bench = repo(&agent, STEPS);
    let run = killed_half_way(&bench, Killed::All);
    let head = git(&bench, "rev-parse HEAD");
    bench.exits("resume --yes", 0);
    bench.is_proved(&run);
    assert_eq!(bench.ran("draft"), [1, 2]);
    assert_eq!((git(&bench, "rev-parse HEAD"), bench.text("a.txt")), (head, "committed\n".into()));
    assert!(!bench.path("new.txt").exists());
    let paths: Vec<_> = rescued(&run, 1).note.paths.into_iter().map(|it| it.path).collect();
    assert_eq!(paths, ["a.txt", "new.txt"]);
}

#[test]
fn a_failed_attempt_is_undone_before_the_next_and_the_last_one_stays_until_a_resume() {
    let agent = "cat \"$ONWARD_BRIEF\" >> ../brief; echo try >> a.txt\n\
        echo $ONWARD_ATTEMPT > tries\n[ -e allowed ]\n";
    let steps = "  - id: draft\n    agent: claude\n    prompt: write\n    \
        retry: { max: 1, on: [failed], backoff: 0s }\n";
    let bench = repo(agent, steps);
    let before = tree(&bench);
    bench.exits("run w.yaml", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    assert_eq!([bench.text("a.txt"), bench.text("tries")], ["a\ntry\n", "2\n"]);
    assert_eq!(fs::read_to_string(rescued(&run, 1).dir.join("files/tries")).unwrap(), "1\n");
    fs::write(bench.path("allowed"), "").unwrap();
    bench.exits("resume", 0);
    assert_eq!([bench.text("a.txt"), bench.text("tries")], ["a\ntry\n", "3\n"]);
    assert_eq!(fs::read_to_string(rescued(&run, 2).dir.join("files/tries")).unwrap(), "2\n");
    assert_eq!(rescued(&run, 2).note.attempt, 2);
    let kept = repo(agent, &format!("{steps}    keep: true\n"));
    kept.exits("run w.yaml", 10);
    assert_eq!([kept.text("a.txt"), kept.text("tries")], ["a\ntry\ntry\n", "2\n"]);
    assert_eq!(tree(&kept).len(), before.len() + 1);
}

#[test]
fn killed_again_in_the_middle_of_the_undo_the_tree_ends_the_same() {
    let agent = "if [ $ONWARD_ATTEMPT = 1 ]; then\n\
        mkdir many; for n in $(seq 1000); do echo half > many/$n; done\n\
        for f in a b c; do echo half > $f.txt; done\n\
        half\n\
        fi\n\
        echo done > made.o\n";
    let bench = repo(agent, STEPS);
    let before = tree(&bench);
    let run = killed_half_way(&bench, Killed::All);
    let files = || fs::read_dir(bench.path("many")).map_or(0, Iterator::count);
    for _ in 0..3 {
        let mut watch = Watch::new(&run);
        let mut engine = bench.start(&format!("resume {}", id(&run)));
        let before = files();
        let begun = watch.until(&mut engine, |_| files() < before).unwrap();
        assert!(begun, "{}", bench.text("said"));
        engine.kill().unwrap();
        assert!(files() > 0, "it was killed half way");
    }
    // A person who looks in between is told the truth, and nothing moves.
    let half = files();
    bench.plan(&run);
    assert_eq!(files(), half);
    bench.exits("resume", 0);
    bench.is_proved(&run);
    assert_eq!(tree(&bench), before);
    assert_eq!(rescued(&run, 1).note.paths.len(), 1003);
    assert_eq!(bench.ran("draft"), [1, 2]);
}

#[test]
fn case_12_a_child_that_still_writes_is_found_and_ended_before_any_new_attempt() {
    let agent = "if [ $ONWARD_ATTEMPT = 1 ]; then\n\
        echo half > a.txt; echo > .git/half; while :; do echo more >> wild.txt; done\n\
        fi\n\
        echo done > made.o\n";
    let bench = repo(agent, STEPS);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/half"));
    engine.kill().unwrap();
    let whereabouts = fs::read_to_string(run.join("supervisor")).unwrap();
    let whereabouts: serde_json::Value = serde_json::from_str(&whereabouts).unwrap();
    let supervisor = u32::try_from(whereabouts["pid"].as_u64().unwrap()).unwrap();
    crate::bench::signal(supervisor, "-9");
    onward_engine::care::harness::until("the supervisor to die", || {
        Ok((!processes(&run).contains(&supervisor)).then_some(()))
    })
    .unwrap();
    let plan = bench.plan(&run);
    assert_eq!(codes(&plan), ["orphan-process", "dirty-tree"], "{plan:#}");
    // No process of ours saw what it did since: a person must look. Until they have, nothing is
    // done, and the answer does not change by being asked for twice.
    let journaled = journal(&run);
    for _ in 0..2 {
        let said = bench.exits("resume", 16);
        assert!(said.err.contains("a.txt") && said.err.contains("wild.txt"), "{said:?}");
        assert!(said.err.contains("orphan-process"), "{said:?}");
        assert!(said.err.contains("1 problem needs your decision first"), "{said:?}");
        assert!(!processes(&run).is_empty(), "what lives is left alone");
        assert_eq!(journal(&run), journaled);
    }
    assert_eq!(bench.ran("draft"), [1]);
    bench.exits("resume --accept dirty-tree", 0);
    sees_nobody_left(&run);
    assert_eq!(bench.ran("draft"), [1, 2]);
    assert_eq!(bench.text("a.txt"), "half\n");
}

#[test]
fn a_name_that_a_terminal_would_obey_is_shown_and_not_obeyed() {
    let agent = "if [ $ONWARD_ATTEMPT = 1 ]; then\n\
        echo half > \"$(printf 'red\\033[31m\\nline')\"; half\nfi\necho done > made.o\n";
    let bench = repo(agent, STEPS);
    let run = killed_half_way(&bench, Killed::All);
    let said = bench.exits(&format!("plan {}", id(&run)), 0);
    assert!(said.out.contains("red\\u{1b}[31m\\u{a}line (saved"), "{said:?}");
    assert!(!said.out.contains('\u{1b}'), "{said:?}");
    bench.exits("resume", 0);
    bench.is_proved(&run);
}

#[test]
fn a_plan_leaves_tree_repository_and_run_as_they_are() {
    let bench = repo(HALF_DONE, STEPS);
    let run = killed_half_way(&bench, Killed::All);
    let picture = || {
        let mut all = BTreeMap::new();
        let mut dirs = vec![bench.root.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let found = fs::symlink_metadata(&path).unwrap();
                let bytes = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                all.insert(path.clone(), (bytes, found.modified().unwrap(), found.permissions()));
                if found.is_dir() {
                    dirs.push(path);
                }
            }
        }
        all
    };
    let before = picture();
    let plan = bench.plan(&run);
    assert_eq!(plan["reverts"].as_array().unwrap().len(), 7, "{plan:#}");
    let after = picture();
    let differ: Vec<_> = after.iter().filter(|(path, it)| before.get(*path) != Some(it)).collect();
    assert!(differ.is_empty() && before.len() == after.len(), "{differ:?}");
}

#[test]
fn a_run_goes_on_from_another_directory_and_after_the_repository_moved() {
    let bench = repo(HALF_DONE, STEPS);
    let run = killed_half_way(&bench, Killed::All);
    let moved = bench.root.with_extension("moved");
    fs::rename(&bench.root, &moved).unwrap();
    let elsewhere = moved.join("sub/dir");
    fs::create_dir_all(&elsewhere).unwrap();
    let mut command = bench.command(&format!("resume {}", id(&run)));
    let output = command.current_dir(&elsewhere).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = |name: &str| fs::read_to_string(moved.join(name)).unwrap();
    assert_eq!([text("a.txt"), text("b.txt"), text("made.o")], ["a\n", "b\n", "done\n"]);
    kill_all(&moved.join(".onward/runs").join(id(&run)));
    fs::rename(&moved, &bench.root).unwrap();
    assert_eq!(watched(&run).records.iter().filter(|it| is_lost(it)).count(), 1);
}

fn is_lost(record: &onward_core::event::Record) -> bool {
    matches!(record.event, Event::AttemptLost { .. })
}
