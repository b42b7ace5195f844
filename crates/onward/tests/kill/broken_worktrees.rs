//! Worktrees that somebody broke during the pause: each case is told of before anything is done,
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
    bench.is_proved(run);
    assert_eq!(bench.text("a.txt"), "a\ndraft/write\ndraft/polish\n", "{said}");
    assert!(!bench.path("half.txt").exists(), "{said}");
}

const CONFLICT: &str = "cd $DIR && git stash -q -u && git checkout -q -b theirs main && \
    echo theirs > a.txt && git commit -q -a -m theirs && git checkout -q $BRANCH && ";

#[test]
fn case_10_a_worktree_deleted_pruned_detached_or_in_mid_rebase_has_a_way_on() {
    // What somebody did, what the plan says of it, and what they do before they resume.
    let cases: [(&str, &str, &str); 9] = [
        ("rm -rf $DIR", "worktree-missing", ""),
        ("rm -rf $DIR; git worktree prune", "worktree-missing", ""),
        ("mv $DIR x; git worktree prune --expire=now; mv x $DIR", "worktree-missing", ""),
        ("rm $DIR/.git", "worktree-missing", ""),
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
        assert_eq!(bench.plan(&run), plan, "{command}: looking changes nothing");
        if !way_on.is_empty() {
            let said = bench.exits("resume --yes", 16);
            assert!(said.err.contains(code), "{command}: {said:?}");
            shell(&bench, &run, way_on);
        }
        let said = bench.exits("resume --yes", 0);
        is_merged(&bench, &run, &format!("{command}: {said:?}"));
        assert_eq!(bench.ran("draft/write"), [1], "{command}");
    }
}
