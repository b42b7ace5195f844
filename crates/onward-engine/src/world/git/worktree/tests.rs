//! A real repository, worktrees of it, and everything that can become of them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use onward_core::address::Address;

use super::super::{
    Chain, Condition, Repo,
    tests::{Bench, env},
    trailers,
};

const BRANCH: &str = "onward/r-1/draft";

impl Bench {
    fn worktree(&self) -> PathBuf {
        self.path(".onward/worktrees/r-1/draft")
    }

    fn make_worktree(&self) -> PathBuf {
        let dir = self.worktree();
        fs::create_dir_all(dir.parent().unwrap()).unwrap();
        self.chain().make_worktree(&dir, BRANCH).unwrap();
        dir
    }

    fn chain_of(&self, dir: &Path) -> Chain {
        let repo = Repo::find(dir, &env()).unwrap().unwrap();
        Chain::new(repo, &self.path(".onward/runs/r-1/git"), "r-1", "draft")
    }

    fn condition(&self) -> Condition {
        self.repo().condition(&self.worktree(), BRANCH)
    }

    fn mend(&self) -> Result<(), String> {
        self.chain().mend_worktree(&self.worktree(), BRANCH).unwrap()
    }

    /// A command in the worktree.
    fn inside(&self, args: &[&str]) -> String {
        let dir = self.worktree();
        let args = [&["-C", dir.to_str().unwrap()], args].concat();
        self.git(&args)
    }
}

#[test]
fn a_worktree_has_the_tree_as_it_is_and_leaves_the_persons_alone() {
    let bench = Bench::new();
    bench.write("a", "not committed\n");
    bench.write("new", "untracked\n");
    let (own, head) = (bench.git(&["status", "--porcelain"]), bench.git(&["rev-parse", "HEAD"]));
    assert_eq!(bench.condition(), Condition::Missing { has_branch: false });
    let dir = bench.make_worktree();
    assert_eq!(bench.condition(), Condition::Fine);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "not committed\n");
    assert_eq!(fs::read_to_string(dir.join("new")).unwrap(), "untracked\n");
    assert_eq!(bench.inside(&["status", "--porcelain"]), "");
    assert_eq!(bench.git(&["status", "--porcelain"]), own);
    assert_eq!(bench.git(&["rev-parse", "HEAD"]), head);
    let parents = bench.git(&["rev-list", "--parents", "-1", BRANCH]);
    assert!(parents.ends_with(&format!(" {head}")), "one commit on what is committed: {parents}");
    let clean = Bench::new();
    clean.make_worktree();
    let heads = clean.git(&["rev-parse", "HEAD", BRANCH]);
    assert_eq!(heads.lines().next(), heads.lines().last(), "nothing to add, no commit");
}

#[test]
fn finished_work_in_a_worktree_is_a_commit_with_trailers_and_the_same_one_when_asked_again() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    fs::write(dir.join("a"), "done\n").unwrap();
    fs::write(dir.join("made"), "done\n").unwrap();
    let (repo, tree) = (Repo::find(&dir, &env()).unwrap().unwrap(), bench.chain_of(&dir));
    let step = Address::from_text("draft[ann]");
    let message = format!("draft\n\n{}", trailers("r-1", &step, 2));
    let head = tree.commit_all(&message).unwrap().unwrap();
    assert_eq!(tree.commit_all(&message).unwrap(), Some(head.clone()));
    assert_eq!(bench.git(&["rev-parse", BRANCH]), head);
    let commits =
        repo.commits(Some(&bench.git(&["rev-parse", "main"])), &head, "r-1", "HEAD").unwrap();
    assert_eq!(commits[0].by, Some((step, 2)));
    let known: std::collections::BTreeSet<String> = [head.clone()].into();
    assert_eq!(bench.repo().lost(&known).unwrap().len(), 0);
    bench.git(&["merge", "-q", BRANCH]);
    bench.git(&["worktree", "remove", "--force", dir.to_str().unwrap()]);
    bench.git(&["branch", "-q", "-D", BRANCH]);
    assert_eq!(bench.repo().lost(&known).unwrap().len(), 0, "what was merged is not lost");
    bench.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(bench.repo().lost(&known).unwrap(), known);
}

#[test]
fn a_deleted_worktree_comes_back_from_its_branch() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    fs::write(dir.join("a"), "done\n").unwrap();
    bench.chain_of(&dir).commit_all("done").unwrap();
    for prune in [false, true] {
        fs::remove_dir_all(&dir).unwrap();
        if prune {
            bench.git(&["worktree", "prune"]);
        }
        assert_eq!(bench.condition(), Condition::Missing { has_branch: true });
        bench.mend().unwrap();
        assert_eq!(bench.condition(), Condition::Fine);
        assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "done\n");
    }
}

#[test]
fn a_worktree_that_git_forgot_is_known_again_and_keeps_its_files() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    fs::write(dir.join("a"), "half done\n").unwrap();
    let aside = bench.path("aside");
    fs::rename(&dir, &aside).unwrap();
    bench.git(&["worktree", "prune", "--expire=now"]);
    fs::rename(&aside, &dir).unwrap();
    assert_eq!(bench.condition(), Condition::Unregistered { has_branch: true });
    bench.mend().unwrap();
    assert_eq!(bench.condition(), Condition::Fine);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "half done\n");
    assert_eq!(bench.inside(&["status", "--porcelain"]), " M a");
    assert_eq!(fs::read_dir(dir.parent().unwrap()).unwrap().count(), 1, "nothing is left beside");
}

#[test]
fn a_worktree_off_its_branch_is_put_back_only_if_nothing_is_left_behind() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    bench.inside(&["checkout", "-q", "--detach"]);
    fs::write(dir.join("a"), "ahead\n").unwrap();
    bench.inside(&["commit", "-q", "-a", "-m", "ahead"]);
    let ahead = bench.inside(&["rev-parse", "HEAD"]);
    assert_eq!(bench.condition(), Condition::Elsewhere(ahead.clone()));
    bench.mend().unwrap();
    assert_eq!(bench.condition(), Condition::Fine);
    assert_eq!(bench.git(&["rev-parse", BRANCH]), ahead, "it was moved on");
    bench.inside(&["checkout", "-q", "--detach", "HEAD~1"]);
    let refused = bench.mend().unwrap_err();
    assert!(refused.contains("not on"), "{refused}");
    assert_eq!(bench.git(&["rev-parse", BRANCH]), ahead, "and is never moved back");
    bench.inside(&["checkout", "-q", "-b", "other"]);
    assert_eq!(bench.condition(), Condition::Elsewhere("other".into()));
}

#[test]
fn a_worktree_in_the_middle_of_something_is_left_alone() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    fs::write(dir.join("a"), "mine\n").unwrap();
    bench.inside(&["commit", "-q", "-a", "-m", "mine"]);
    bench.write("a", "theirs\n");
    bench.commit("theirs");
    for (begin, what) in [("rebase", "rebase"), ("merge", "merge")] {
        let me = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let begun = Command::new("git").current_dir(&dir).args(me).args([begin, "main"]).output();
        assert!(!begun.unwrap().status.success(), "it must conflict");
        assert_eq!(bench.condition(), Condition::Busy(what));
        let refused = bench.mend().unwrap_err();
        assert!(refused.contains(what), "{refused}");
        bench.inside(&[begin, "--abort"]);
        assert_eq!(bench.condition(), Condition::Fine);
    }
}

#[test]
fn making_a_worktree_goes_on_wherever_it_was_cut_short() {
    let cuts: [fn(&Bench); 4] = [
        |bench| drop(bench.git(&["branch", BRANCH])),
        |bench| drop(bench.make_worktree()),
        |bench| {
            fs::remove_dir_all(bench.make_worktree()).unwrap();
        },
        |bench| {
            let dir = bench.make_worktree();
            bench.git(&["worktree", "lock", dir.to_str().unwrap()]);
            fs::remove_file(dir.join("b")).unwrap();
        },
    ];
    for (at, cut) in cuts.into_iter().enumerate() {
        let bench = Bench::new();
        cut(&bench);
        bench.write("a", "edited while it was interrupted\n");
        let _ = fs::remove_dir_all(bench.worktree());
        let dir = bench.make_worktree();
        assert_eq!(bench.condition(), Condition::Fine, "{at}");
        let text = fs::read_to_string(dir.join("a")).unwrap();
        assert_eq!(text, "edited while it was interrupted\n", "{at}: the tree as it is now");
        assert_eq!(bench.inside(&["status", "--porcelain"]), "", "{at}");
    }
}

#[test]
fn a_branch_that_is_gone_begins_anew_and_the_files_stay() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    fs::write(dir.join("a"), "mine\n").unwrap();
    bench.git(&["update-ref", "-d", &format!("refs/heads/{BRANCH}")]);
    assert_eq!(bench.condition(), Condition::Unregistered { has_branch: false });
    bench.mend().unwrap();
    assert_eq!(bench.condition(), Condition::Fine);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "mine\n");
    assert_eq!(bench.inside(&["status", "--porcelain"]), " M a");
    fs::remove_dir_all(&dir).unwrap();
    bench.git(&["worktree", "prune"]);
    bench.git(&["branch", "-q", "-D", BRANCH]);
    assert_eq!(bench.condition(), Condition::Missing { has_branch: false });
    bench.mend().unwrap();
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "a\n");
}

#[test]
fn a_repository_without_a_commit_has_worktrees_too() {
    let bench = Bench::empty();
    bench.write("a", "a\n");
    let dir = bench.make_worktree();
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "a\n");
    fs::write(dir.join("a"), "done\n").unwrap();
    bench.chain_of(&dir).commit_all("done").unwrap();
    assert_eq!(bench.inside(&["status", "--porcelain"]), "");
    assert_eq!(bench.git(&["status", "--porcelain"]), "?? a");
}

#[test]
fn no_lock_that_a_killed_git_left_is_in_the_way_of_a_commit() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    for lock in [".git/worktrees/draft/index.lock", ".git/refs/heads/onward/r-1/draft.lock"] {
        fs::write(bench.path(lock), "").unwrap();
    }
    fs::write(dir.join("a"), "done\n").unwrap();
    fs::create_dir(dir.join(".onward")).unwrap();
    fs::write(dir.join(".onward/own"), "not work\n").unwrap();
    let head = bench.chain_of(&dir).commit_all("done").unwrap();
    assert_eq!(head, Some(bench.git(&["rev-parse", BRANCH])));
    assert_eq!(bench.git(&["diff", "--name-only", &format!("{BRANCH}~1"), BRANCH]), "a");
    fs::remove_file(bench.path(".git/worktrees/draft/index.lock")).unwrap();
    assert_eq!(bench.inside(&["status", "--porcelain"]), "?? .onward/");
}

#[test]
fn only_a_worktree_that_holds_nothing_of_its_own_is_removed() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    fs::write(dir.join("new"), "new\n").unwrap();
    assert!(!bench.repo().remove_worktree(&dir, BRANCH).unwrap());
    assert!(dir.join("new").exists());
    let head = bench.chain_of(&dir).commit_all("done").unwrap().unwrap();
    assert!(bench.repo().remove_worktree(&dir, BRANCH).unwrap());
    assert!(!dir.exists());
    assert_eq!(bench.git(&["rev-parse", BRANCH]), head);
}

#[test]
fn what_a_branch_has_can_be_looked_at_without_a_trace() {
    let bench = Bench::new();
    let dir = bench.make_worktree();
    fs::write(dir.join("a"), "done\n").unwrap();
    bench.chain_of(&dir).commit_all("done").unwrap();
    fs::remove_dir_all(&dir).unwrap();
    let aside = tempfile::tempdir().unwrap();
    let files = aside.path().join("files");
    fs::create_dir(&files).unwrap();
    bench.repo().export_branch(BRANCH, &files).unwrap();
    assert_eq!(fs::read_to_string(files.join("a")).unwrap(), "done\n");
    assert_eq!(fs::read_to_string(files.join("dir/c")).unwrap(), "c\n");
    assert_eq!(bench.git(&["status", "--porcelain"]), "");
}
