//! Worktrees that the user broke during the pause: each case is told of before anything is done,
//! has a way on, and loses nothing that was committed.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::Value;

use crate::{
    bench::{Bench, codes, id},
    repo::{Killed, git, killed_half_way},
    worktrees::{GROUP, path, the_run, worktree_bench},
};

/// `draft/write` is done and `draft/polish` was killed half-way.
fn interrupted() -> (Bench, std::path::PathBuf) {
    let bench = worktree_bench(GROUP, "draft/polish");
    let run = killed_half_way(&bench, Killed::All);
    (bench, run)
}

/// A person at work, `$DIR` being the worktree and `$BRANCH` its branch.
#[track_caller]
fn shell(bench: &Bench, run: &Path, command: &str) {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(&bench.root);
    shell.env("DIR", path(bench, run, "draft")).env("BRANCH", format!("onward/{}/draft", id(run)));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}

fn verdict(plan: &Value, step: &str) -> String {
    let steps = plan["steps"].as_array().unwrap();
    let found = steps.iter().find(|it| it["step"] == step);
    found.map_or_else(String::new, |it| it["verdict"].as_str().unwrap().to_owned())
}

/// Everything was merged, and what was half done is nowhere.
#[track_caller]
fn is_merged(bench: &Bench, run: &Path, said: &str) {
    let status = bench.exits(&format!("status --json {}", id(run)), 0).json();
    assert_eq!(status["run"]["status"], "completed", "{status:#}");
    assert_eq!(bench.text("a.txt"), "a\ndraft/write\ndraft/polish\n", "{said}");
    assert!(!bench.path("half.txt").exists(), "{said}");
}

const CONFLICT: &str = "cd $DIR && git stash -q -u && git checkout -q -b theirs main && \
    echo theirs > a.txt && git commit -q -a -m theirs && git checkout -q $BRANCH && ";

#[test]
fn case_10_a_worktree_deleted_pruned_detached_or_in_mid_rebase_has_a_way_on() {
    // What the user did, what the plan says of it, and what they do before they resume.
    let cases: [(&str, &str, &str); 10] = [
        ("rm -rf $DIR", "worktree-missing", ""),
        ("rm -rf $DIR; git worktree prune", "worktree-missing", ""),
        ("mv $DIR x; git worktree prune --expire=now; mv x $DIR", "worktree-missing", ""),
        ("rm $DIR/.git", "worktree-missing", ""),
        ("rm -rf $DIR; mkdir $DIR", "worktree-missing", ""),
        ("git -C $DIR checkout -q --detach", "worktree-detached", "git -C $DIR switch -q $BRANCH"),
        ("git -C $DIR checkout -q -b other", "worktree-detached", "git -C $DIR switch -q $BRANCH"),
        ("CONFLICT ! git rebase -q theirs", "worktree-mid-rebase", "cd $DIR && git rebase --abort"),
        ("CONFLICT ! git merge -q theirs", "worktree-mid-rebase", "cd $DIR && git merge --abort"),
        (
            "CONFLICT ! git cherry-pick theirs",
            "worktree-mid-rebase",
            "cd $DIR && git cherry-pick --abort",
        ),
    ];
    for (command, code, way_on) in cases {
        let (bench, run) = interrupted();
        shell(&bench, &run, &command.replace("CONFLICT ", CONFLICT));
        let plan = bench.plan(&run);
        assert!(codes(&plan).contains(&code), "{command}: {plan:#}");
        assert_eq!(verdict(&plan, "draft/write"), "keep", "{command}: {plan:#}");
        if !way_on.is_empty() {
            let said = bench.exits("resume --yes", 16);
            assert!(said.err.contains(code), "{command}: {said:?}");
            shell(&bench, &run, way_on);
        }
        let said = bench.exits("resume --yes", 0);
        is_merged(&bench, &run, &format!("{command}: {said:?}"));
        bench.is_proved(&run);
    }
}

/// What a resume leaves that was killed in the middle of making a lost worktree again: a worktree
/// that git knows, with a part of its files.
#[test]
fn a_worktree_that_was_half_made_again_is_no_worktree_in_which_files_were_deleted() {
    let (bench, run) = interrupted();
    shell(&bench, &run, "rm -rf $DIR; git worktree add -q -f --no-checkout $DIR $BRANCH");
    fs::write(run.join("git/remaking-draft"), "").unwrap();
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"worktree-missing"), "{plan:#}");
    let said = bench.exits("resume --yes", 0);
    is_merged(&bench, &run, &format!("{said:?}"));
    assert_eq!(bench.text("b.txt"), "b\n", "nothing was deleted on the branch");
    assert!(!run.join("git/remaking-draft").exists(), "it is made");
    bench.is_proved(&run);
}

#[test]
fn a_worktree_off_its_branch_is_gone_on_from_when_that_is_accepted_and_follows() {
    let (bench, run) = interrupted();
    let ahead = "cd $DIR && git stash -q -u && git checkout -q --detach && echo by hand > d.txt && \
        git add -A && git commit -q -m ahead";
    shell(&bench, &run, ahead);
    bench.exits("resume --yes", 16);
    bench.exits("resume --yes --accept worktree-detached", 0);
    is_merged(&bench, &run, "accepted");
    bench.is_proved(&run);
    assert_eq!(bench.text("d.txt"), "by hand\n", "the branch was moved on");
    let (bench, run) = interrupted();
    shell(&bench, &run, "cd $DIR && git stash -q -u && git checkout -q --detach HEAD~1");
    let tip = git(&bench, &format!("rev-parse onward/{}/draft", id(&run)));
    let said = bench.onward("resume --yes --accept worktree-detached");
    assert_ne!(said.code, 0, "{said:?}");
    let left = git(&bench, &format!("rev-parse onward/{}/draft", id(&run)));
    assert_eq!(left, tip, "a branch is never moved back");
    shell(&bench, &run, "git -C $DIR switch -q $BRANCH");
    bench.exits("resume --yes", 0);
    is_merged(&bench, &run, "switched");
    bench.is_proved(&run);
}

#[test]
fn a_done_step_whose_commit_is_gone_is_not_done_and_the_plan_says_so() {
    let cases = [
        "cd $DIR && git reset -q --hard HEAD~1",
        "rm -rf $DIR; git worktree prune; git branch -q -D $BRANCH",
        "git update-ref -d refs/heads/$BRANCH; rm -rf $DIR",
    ];
    for command in cases {
        let (bench, run) = interrupted();
        shell(&bench, &run, command);
        let plan = bench.plan(&run);
        assert!(codes(&plan).contains(&"missing-commits"), "{command}: {plan:#}");
        assert_eq!(verdict(&plan, "draft/write"), "rerun", "{command}: {plan:#}");
        let said = bench.exits("resume --yes", 0);
        is_merged(&bench, &run, &format!("{command}: {said:?}"));
        assert_eq!(bench.ran("draft/write").len(), 2, "{command}");
    }
}

#[test]
fn a_branch_that_is_gone_while_its_files_are_there_begins_anew_with_them() {
    let (bench, run) = interrupted();
    shell(&bench, &run, "git update-ref -d refs/heads/$BRANCH");
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"worktree-missing"), "{plan:#}");
    assert_eq!(verdict(&plan, "draft/write"), "rerun", "{plan:#}");
    bench.exits("resume --yes", 0);
    let text = bench.text("a.txt");
    assert!(text.contains("draft/polish") && !text.contains("half"), "{text}");
}

#[test]
fn a_commit_that_somebody_rebased_still_counts_by_its_trailers() {
    let (bench, run) = interrupted();
    let rebase = "cd $DIR && git checkout -q -f && git clean -q -f -d && \
        git commit -q --amend -m \"$(git log -1 --format=%B)\" --author 'bob <bob@example.com>'";
    shell(&bench, &run, rebase);
    let plan = bench.plan(&run);
    assert!(!codes(&plan).contains(&"missing-commits"), "{plan:#}");
    assert_eq!(verdict(&plan, "draft/write"), "keep", "{plan:#}");
    bench.exits("resume --yes", 0);
    is_merged(&bench, &run, "rebased");
    assert_eq!(bench.ran("draft/write"), [1]);
}

#[test]
fn what_was_merged_and_then_cleared_away_is_done_for_good() {
    let steps = format!("{GROUP}  - {{ id: last, run: 'LOG; test -e .git/ready' }}\n");
    let bench = worktree_bench(&steps, "");
    bench.exits("run w.yaml", 10);
    let run = the_run(&bench);
    shell(&bench, &run, "rm -rf $DIR; git worktree prune; git branch -q -D $BRANCH");
    let plan = bench.plan(&run);
    for step in ["draft/write", "draft/polish", "merge"] {
        assert_eq!(verdict(&plan, step), "keep", "{step}: {plan:#}");
    }
    bench.write(".git/ready", "");
    bench.exits("resume --yes", 0);
    assert_eq!([bench.ran("draft/write"), bench.ran("merge")], [[1], [1]]);
}

#[test]
fn an_agent_that_leaves_its_worktree_in_the_middle_of_a_merge_is_not_done() {
    let bench = worktree_bench(
        "  - id: one\n    worktree: true\n    run: |\n      LOG\n\
         \x20     ours=$(git branch --show-current)\n\
         \x20     git checkout -q -b theirs; echo x > a.txt; git commit -q -a -m x\n\
         \x20     git checkout -q $ours; echo y > a.txt; git commit -q -a -m y\n\
         \x20     git merge -q theirs || true\n",
        "",
    );
    let said = bench.exits("run w.yaml", 10);
    assert!(said.err.contains("in the middle of a merge"), "{said:?}");
    let run = the_run(&bench);
    assert!(codes(&bench.plan(&run)).contains(&"worktree-mid-rebase"));
    bench.exits("resume --yes", 16);
}

/// Name, content and time of everything below.
fn picture(root: &Path) -> BTreeMap<std::path::PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let bytes = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            all.insert(path.clone(), (bytes, found.modified().unwrap()));
            if found.is_dir() {
                dirs.push(path);
            }
        }
    }
    all
}

#[test]
fn a_plan_leaves_broken_worktrees_as_they_are() {
    let cases = [
        "true",
        "rm -rf $DIR",
        "rm $DIR/.git",
        "git update-ref -d refs/heads/$BRANCH",
        "git -C $DIR checkout -q --detach",
    ];
    for command in cases {
        let (bench, run) = interrupted();
        shell(&bench, &run, command);
        let before = picture(&bench.root);
        bench.plan(&run);
        let after = picture(&bench.root);
        let differ: Vec<_> =
            after.iter().filter(|(path, it)| before.get(*path) != Some(it)).collect();
        assert!(differ.is_empty() && before.len() == after.len(), "{command}: {differ:?}");
    }
}

#[test]
fn worktrees_move_with_their_project() {
    let (bench, run) = interrupted();
    let moved = bench.root.with_extension("moved");
    fs::rename(&bench.root, &moved).unwrap();
    // The agent knows its project by this name.
    std::os::unix::fs::symlink(&moved, &bench.root).unwrap();
    let mut command = bench.command(&format!("resume --yes {}", id(&run)));
    let output = command.current_dir(&moved).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = fs::read_to_string(moved.join("a.txt")).unwrap();
    assert_eq!(text, "a\ndraft/write\ndraft/polish\n");
    fs::remove_file(&bench.root).unwrap();
    fs::rename(&moved, &bench.root).unwrap();
}

#[test]
fn an_archived_run_leaves_its_branches_and_what_is_not_committed() {
    let bench = worktree_bench(GROUP, "");
    bench.exits("run w.yaml", 0);
    let run = the_run(&bench);
    let tip = git(&bench, &format!("rev-parse onward/{}/draft", id(&run)));
    let said = bench.exits("archive", 0);
    assert!(said.err.contains("draft was removed"), "{said:?}");
    assert!(!path(&bench, &run, "draft").exists());
    assert_eq!(git(&bench, "worktree list").lines().count(), 1);
    assert_eq!(git(&bench, &format!("rev-parse onward/{}/draft", id(&run))), tip);
    bench.exits("gc --keep 0 --yes", 0);
    assert_eq!(git(&bench, &format!("rev-parse onward/{}/draft", id(&run))), tip);
    let (bench, run) = interrupted();
    let said = bench.exits(&format!("archive {} --yes", id(&run)), 0);
    assert!(said.err.contains("so it stays"), "{said:?}");
    bench.exits("gc --keep 0 --yes", 0);
    let half = fs::read_to_string(path(&bench, &run, "draft").join("half.txt")).unwrap();
    assert_eq!(half, "half\n");
}

#[test]
fn what_was_rescued_from_a_worktree_comes_back_only_into_a_worktree() {
    let (bench, run) = interrupted();
    bench.exits("resume --yes", 0);
    shell(&bench, &run, "rm -rf $DIR");
    let changed = format!(".onward/worktrees/{}/draft/a.txt", id(&run));
    let undo = format!("undo {} 1 --yes --replace {changed}", id(&run));
    let said = bench.onward(&undo);
    assert!(said.code != 0 && said.err.contains("is gone"), "{said:?}");
    assert!(!path(&bench, &run, "draft").exists(), "no half of a worktree is made");
    shell(&bench, &run, "git worktree prune; git worktree add -q $DIR $BRANCH");
    bench.exits(&undo, 0);
    let half = fs::read_to_string(path(&bench, &run, "draft").join("half.txt")).unwrap();
    assert_eq!(half, "half\n");
}
