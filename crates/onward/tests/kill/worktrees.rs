//! Steps with a worktree of their own: where they work, what they leave, and every way in which a
//! person may have left it.

use std::{fs, path::PathBuf};

use crate::{
    bench::{Bench, codes, id, journal},
    repo::{Killed, git, killed_half_way, repo, tree},
};

/// Changes a tracked file and makes a new one; the first attempt hangs half way.
const AGENT: &str = "\
    if [ $ONWARD_ATTEMPT = 1 ] && [ -e \"$GIT_TOP/hang\" ]; then\n\
      echo half > a.txt; echo $$ > \"$GIT_TOP/pid\"; echo > \"$GIT_TOP/half\"; exec sleep 1000\n\
    fi\n\
    echo \"$ONWARD_STEP\" >> a.txt; cat c.txt untracked.txt > made.txt\n";

const STEPS: &str = "  - id: draft\n    worktree: true\n    steps:\n\
    \x20     - { id: write, agent: claude, prompt: p, writes: [made.txt] }\n\
    \x20     - { id: polish, agent: claude, prompt: p }\n\
    \x20 - { id: merge, run: 'git merge -q {{ steps.draft.branch }} && cp {{ steps.draft.path \
    }}/made.txt merged.txt' }\n";

fn worktree_bench(hangs: bool) -> Bench {
    let bench = repo("", STEPS);
    let top = bench.path(".git");
    let agent = format!("GIT_TOP={}\n{AGENT}", top.display());
    fs::write(bench.path("agent.sh"), agent).unwrap();
    git(&bench, "config user.name ann");
    git(&bench, "config user.email ann@example.com");
    git(&bench, "add -A");
    git(&bench, "commit -q -m two");
    fs::write(bench.path("untracked.txt"), "not committed\n").unwrap();
    if hangs {
        fs::write(top.join("hang"), "").unwrap();
    }
    bench
}

fn path(bench: &Bench, run: &std::path::Path) -> PathBuf {
    bench.path(".onward/worktrees").join(id(run)).join("draft")
}

#[test]
fn steps_of_a_group_share_a_worktree_and_what_they_finish_is_committed() {
    let bench = worktree_bench(false);
    let before = tree(&bench);
    bench.exits("run w.yaml", 10);
    // The merge meets what is not committed; the worktree has it all.
    let run = bench.project().runs().unwrap().remove(0).dir;
    let draft = path(&bench, &run);
    let text = |name: &str| fs::read_to_string(draft.join(name)).unwrap();
    assert_eq!(text("a.txt"), "a\ndraft/write\ndraft/polish\n");
    assert_eq!(text("made.txt"), "uncommitted\nnot committed\n");
    assert_eq!(tree(&bench), before, "nothing landed in the project");
    let log = git(&bench, &format!("log --format=%s%n%b onward/{}/draft", id(&run)));
    assert!(
        log.contains("Onward-Step: draft/polish") && log.contains("Onward-Attempt: 1"),
        "{log}"
    );
    assert!(journal(&run).contains("\"branch_head\":\""));
    git(&bench, "commit -q -a -m three");
    fs::remove_file(bench.path("untracked.txt")).unwrap();
    bench.exits("resume --yes", 0);
    assert_eq!(bench.text("merged.txt"), "uncommitted\nnot committed\n");
}

#[test]
fn half_done_work_in_a_worktree_is_undone_there() {
    for how in [Killed::WithoutSupervisor, Killed::All] {
        let bench = worktree_bench(true);
        let before = tree(&bench);
        let run = killed_half_way(&bench, how);
        fs::remove_file(bench.path(".git/hang")).unwrap();
        let said = bench.onward("resume");
        let draft = path(&bench, &run);
        let text = fs::read_to_string(draft.join("a.txt")).unwrap();
        assert!(!text.contains("half"), "{how:?}: {text} {said:?}");
        assert_eq!(tree(&bench), before);
    }
}

#[test]
fn a_worktree_that_was_deleted_pruned_or_detached_is_told_of_and_loses_nothing() {
    let interfere: [(&str, &str, i32); 4] = [
        ("rm -rf $DIR", "worktree-missing", 0),
        ("rm -rf $DIR; git worktree prune", "worktree-missing", 0),
        ("mv $DIR x; git worktree prune --expire=now; mv x $DIR", "worktree-missing", 0),
        ("git -C $DIR checkout -q --detach", "worktree-detached", 16),
    ];
    for (command, code, exit) in interfere {
        let bench = worktree_bench(true);
        let run = killed_half_way(&bench, Killed::All);
        fs::remove_file(bench.path(".git/hang")).unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(command).env("DIR", path(&bench, &run)).current_dir(&bench.root);
        assert!(shell.status().unwrap().success(), "{command}");
        let plan = bench.plan(&run);
        assert!(codes(&plan).contains(&code), "{command}: {plan:#}");
        let said = bench.onward("resume --yes");
        assert_eq!(said.code == 16, exit == 16, "{command}: {said:?}");
        if exit == 0 {
            let text = fs::read_to_string(path(&bench, &run).join("a.txt")).unwrap();
            assert!(text.contains("draft/polish") && !text.contains("half"), "{command}: {text}");
        }
    }
}

#[test]
fn a_run_is_found_from_inside_a_worktree() {
    let bench = worktree_bench(true);
    let run = killed_half_way(&bench, Killed::All);
    let mut command = bench.command(&format!("status --json {}", id(&run)));
    let output = command.current_dir(path(&bench, &run)).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
