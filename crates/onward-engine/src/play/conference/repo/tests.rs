//! Branches, trees and picks, in a repository of their own.

use std::{fs, process::Command};

use tempfile::TempDir;

use super::*;

struct Bench {
    dir: TempDir,
    repo: Repo,
}

impl Bench {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=a", "-c", "user.email=a@localhost"]);
            assert!(command.args(args).current_dir(&path).status().unwrap().success(), "{args:?}");
        };
        git(&["init", "--quiet"]);
        fs::write(path.join("shared.txt"), "nobody\n").unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message=start"]);
        git(&["branch", "conference/best"]);
        Self { repo: Repo::of(&path, &std::env::vars_os().collect()).unwrap(), dir }
    }

    fn tree(&self, researcher: &str) -> Tree {
        let tree = Tree::of(&self.repo, &Name::checked(researcher).unwrap()).unwrap();
        tree.ensure().unwrap();
        tree
    }

    fn log(&self, name: &str) -> Vec<String> {
        let out = self.repo.git().run(&["log", "--format=%s", name]).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    fn best(&self, file: &str) -> String {
        let out = self.repo.git().run(&["show", &format!("conference/best:{file}")]).unwrap();
        String::from_utf8(out).unwrap()
    }
}

fn proposes(tree: &Tree, turn: u32, text: &str) -> String {
    tree.restore().unwrap();
    fs::write(tree.path.join("shared.txt"), text).unwrap();
    fs::write(tree.path.join(format!("{text}.txt").replace('\n', "")), text).unwrap();
    tree.save(&format!("proposal/{turn}"), "proposal").unwrap()
}

#[test]
fn a_state_is_kept_once_however_often_it_is_said() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    let saved = proposes(&tree, 1, "one");
    for _ in 0..2 {
        tree.keep(&saved, "a step", "1/A/1").unwrap();
    }
    assert_eq!(bench.log("conference/researcher-A"), ["a step", "start"]);
    assert!(!tree.is_dirty().unwrap());
    assert_eq!(fs::read_to_string(tree.path.join("one.txt")).unwrap(), "one");
}

#[test]
fn whatever_an_agent_did_the_tree_goes_back_to_what_stands() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    let standing = tree.standing().unwrap();
    fs::write(tree.path.join("shared.txt"), "mine\n").unwrap();
    let git = tree.git();
    git.run(&["commit", "--quiet", "--all", "--message=by the agent"]).unwrap();
    git.run(&["checkout", "--quiet", "--detach"]).unwrap();
    fs::write(tree.path.join("left.txt"), "x").unwrap();
    tree.restore().unwrap();
    assert_eq!(tree.standing().unwrap(), standing);
    assert_eq!(bench.log("conference/researcher-A"), ["start"]);
    assert_eq!(fs::read_to_string(tree.path.join("shared.txt")).unwrap(), "nobody\n");
    assert!(!tree.path.join("left.txt").exists());
    assert_eq!(git.line(&["symbolic-ref", "HEAD"]).unwrap(), tree.branch());
}

#[test]
fn no_lock_that_a_killed_git_left_is_in_the_way() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    let locks = [
        "worktrees/researcher-A/index.lock",
        "worktrees/researcher-A/HEAD.lock",
        "worktrees/researcher-A/onward-index.lock",
        "refs/heads/conference/researcher-A.lock",
        "refs/onward/conference/standing/A.lock",
    ];
    for lock in locks {
        fs::write(bench.dir.path().join(".git").join(lock), "").unwrap();
    }
    let saved = proposes(&tree, 1, "one");
    tree.keep(&saved, "a step", "1/A/1").unwrap();
    assert_eq!(bench.log("conference/researcher-A"), ["a step", "start"]);
    for lock in locks {
        assert!(!bench.dir.path().join(".git").join(lock).exists(), "{lock}");
    }
}

#[test]
fn a_proposal_is_shown_again_after_its_tree_was_cleaned() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    let saved = proposes(&tree, 1, "one");
    tree.restore().unwrap();
    assert!(!tree.path.join("one.txt").exists());
    tree.show(&saved).unwrap();
    assert_eq!(fs::read_to_string(tree.path.join("one.txt")).unwrap(), "one");
}

#[test]
fn commits_are_gathered_once_and_the_first_one_wins_a_file() {
    let bench = Bench::new();
    for (researcher, text) in [("A", "one"), ("B", "two")] {
        let tree = bench.tree(researcher);
        let saved = proposes(&tree, 1, text);
        tree.keep(&saved, text, &format!("1/{researcher}/1")).unwrap();
    }
    let all = ["B".to_owned(), "A".to_owned()];
    let start = bench.repo.best(&all).unwrap();
    bench.repo.gather(&start, &all).unwrap();
    let gathered = bench.repo.commit(BEST).unwrap();
    assert_eq!(bench.log("conference/best"), ["one", "two", "start"]);
    assert_eq!(bench.best("shared.txt"), "two", "B came first");
    assert_eq!([bench.best("one.txt"), bench.best("two.txt")], ["one", "two"]);
    bench.repo.gather(&gathered.clone().unwrap(), &all).unwrap();
    assert_eq!(bench.repo.commit(BEST).unwrap(), gathered, "nothing is picked twice");
}

#[test]
fn a_tree_that_is_gone_is_made_again_and_deleted_with_its_branch() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    fs::remove_dir_all(&tree.path).unwrap();
    tree.ensure().unwrap();
    tree.restore().unwrap();
    assert!(tree.path.join("shared.txt").exists());
    bench.repo.delete(&["A".to_owned()]).unwrap();
    bench.repo.forget().unwrap();
    assert!(!tree.path.exists());
    let refs = bench.repo.git().run(&["for-each-ref", "--format=%(refname)"]).unwrap();
    assert_eq!(String::from_utf8(refs).unwrap().lines().count(), 1, "the person's own branch");
    assert!(bench.dir.path().exists());
}

#[test]
fn what_is_in_the_way_of_a_tree_is_put_aside_as_often_as_it_takes() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    for turn in ["first", "second"] {
        fs::remove_file(tree.path.join(".git")).unwrap();
        // A repository of its own, which is not ours to repair.
        fs::create_dir(tree.path.join(".git")).unwrap();
        fs::write(tree.path.join("mine.txt"), turn).unwrap();
        tree.ensure().unwrap();
    }
    let read = |name: &str| fs::read_to_string(tree.path.with_file_name(name).join("mine.txt"));
    assert_eq!(read("researcher-A.aside").unwrap(), "first");
    assert_eq!(read("researcher-A.aside-2").unwrap(), "second");
    assert!(tree.path.join("shared.txt").exists());
}

#[test]
fn a_tree_whose_git_file_is_gone_is_never_the_persons_own_and_is_linked_again() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    fs::write(tree.path.join("one.txt"), "one").unwrap();
    fs::remove_file(tree.path.join(".git")).unwrap();
    fs::write(bench.repo.dir.join("shared.txt"), "the person's\n").unwrap();
    assert!(tree.restore().is_err());
    assert_eq!(fs::read_to_string(bench.repo.dir.join("shared.txt")).unwrap(), "the person's\n");
    tree.ensure().unwrap();
    let saved = tree.save("proposal/1", "proposal").unwrap();
    let files = bench.repo.git().run(&["ls-tree", "--name-only", &saved]).unwrap();
    assert_eq!(String::from_utf8(files).unwrap(), "one.txt\nshared.txt\n");
}

#[test]
fn a_repository_without_a_commit_is_left_out_of_a_state_and_left_alone() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    fs::create_dir_all(tree.path.join("nested/deep")).unwrap();
    tree.git().run(&["init", "--quiet", "nested/deep"]).unwrap();
    fs::write(tree.path.join("nested/deep/inner.txt"), "x").unwrap();
    fs::write(tree.path.join("one.txt"), "one").unwrap();
    let saved = tree.save("proposal/1", "proposal").unwrap();
    let files = bench.repo.git().run(&["ls-tree", "-r", "--name-only", &saved]).unwrap();
    assert_eq!(String::from_utf8(files).unwrap(), "one.txt\nshared.txt\n");
    tree.keep(&saved, "a step", "1/A/1").unwrap();
    assert!(tree.path.join("nested/deep/inner.txt").exists());
    let to = Reset { base: &tree.standing().unwrap(), round: 1 };
    let kept = tree.keep_aside("1/A/2", &to).unwrap();
    assert_eq!(kept, Vec::<String>::new());
}

#[test]
fn what_a_tree_has_is_kept_once_before_a_round_takes_it() {
    let bench = Bench::new();
    let tree = bench.tree("A");
    let best = bench.repo.best(&[]).unwrap();
    fs::write(tree.path.join("shared.txt"), "committed\n").unwrap();
    tree.git().run(&["commit", "--quiet", "--all", "--message=by the agent"]).unwrap();
    tree.git().run(&["checkout", "--quiet", "--detach"]).unwrap();
    fs::write(tree.path.join("shared.txt"), "detached\n").unwrap();
    tree.git().run(&["commit", "--quiet", "--all", "--message=on no branch"]).unwrap();
    fs::write(tree.path.join("new.txt"), "x").unwrap();
    // Killed before the reset, it is all said again.
    let first = tree.keep_aside("2/A/begin", &Reset { base: &best, round: 2 }).unwrap();
    let kept = tree.begin(2, &best).unwrap();
    assert_eq!((first.len(), &first), (3, &kept));
    let show = |name: &str, file: &str| {
        let out = bench.repo.git().run(&["show", &format!("{name}:{file}")]).unwrap();
        String::from_utf8(out).unwrap()
    };
    let found = [0, 1, 2].map(|at| show(&kept[at], "shared.txt"));
    assert_eq!(found, ["committed\n", "detached\n", "detached\n"]);
    assert_eq!(show(&kept[2], "new.txt"), "x");
    assert_eq!(bench.log("conference/researcher-A"), ["start"]);
    assert!(!tree.is_dirty().unwrap());
    assert_eq!(tree.begin(2, &best).unwrap(), Vec::<String>::new());
    // What a review had, and did not take, is no loss to a later round.
    let saved = proposes(&tree, 2, "refused");
    tree.keep(&saved, "refused", "2/A/1").unwrap();
    assert_eq!(tree.begin(3, &best).unwrap(), Vec::<String>::new());
}

#[test]
fn commits_are_gathered_for_a_conference_below_the_top_of_the_repository() {
    let bench = Bench::new();
    let below = bench.repo.dir.join("conf/one");
    fs::create_dir_all(&below).unwrap();
    let repo = Repo::of(&below, &bench.repo.env).unwrap();
    for (researcher, text) in [("A", "one"), ("B", "two")] {
        let tree = Tree::of(&repo, &Name::checked(researcher).unwrap()).unwrap();
        tree.ensure().unwrap();
        let saved = proposes(&tree, 1, text);
        tree.keep(&saved, text, &format!("1/{researcher}/1")).unwrap();
    }
    let all = ["A".to_owned(), "B".to_owned()];
    repo.gather(&repo.best(&all).unwrap(), &all).unwrap();
    assert_eq!(bench.best("shared.txt"), "one", "A came first");
    assert_eq!([bench.best("one.txt"), bench.best("two.txt")], ["one", "two"]);
}

#[test]
fn a_best_branch_that_is_gone_begins_where_the_researchers_part() {
    let bench = Bench::new();
    let all = ["A".to_owned(), "B".to_owned()];
    let before = bench.tree("A");
    let saved = proposes(&before, 1, "zero");
    before.keep(&saved, "an earlier round", "1/A/1").unwrap();
    bench.repo.gather(&bench.repo.best(&all).unwrap(), &all[..1]).unwrap();
    let best = bench.repo.best(&all).unwrap();
    for (researcher, text) in [("A", "one"), ("B", "two")] {
        let tree = bench.tree(researcher);
        tree.begin(2, &best).unwrap();
        let saved = proposes(&tree, 2, text);
        tree.keep(&saved, text, &format!("2/{researcher}/1")).unwrap();
    }
    bench.repo.git().run(&["update-ref", "-d", BEST]).unwrap();
    assert_eq!(bench.repo.best(&all).unwrap(), best);
    assert_eq!(bench.repo.commit(BEST).unwrap(), Some(best));
}
