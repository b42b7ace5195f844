//! What git says around a run of another system: head, changes, branches, worktrees.
//!
//! Invariant: looks only. No lock is taken, and nothing of the checkout is run.

use crate::world::open;
use std::{collections::BTreeMap, num::NonZero, panic::resume_unwind, path::Path, thread};

use onward_core::{event::GitHead, time::Timestamp};
use onward_dialects::{Branch, Git as Facts, Worktree};

use super::{
    command::Git,
    head::git_dir,
    repo::{Env, Repo},
};

/// So many commits that a site names are looked for.
const COMMITS_MAX: usize = 200;

/// What git knows around `dir`; `None` where there is no git or no repository. `missing` names the
/// `commits` that are not in the history of the head. Worktrees are looked into only where a
/// branch begins with `prefix`.
pub fn facts(dir: &Path, env: &Env, prefix: Option<&str>, commits: &[String]) -> Option<Facts> {
    let repo = Repo::find(dir, env).ok().flatten()?;
    let git = repo.looking();
    // Git reads the whole tree for what changed, and next to nothing for the rest.
    thread::scope(|scope| {
        let tree = scope.spawn(|| changes(&git));
        let facts = around(&git, env, prefix, commits);
        let changes = tree.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Some(Facts { changes, ..facts? })
    })
}

/// Where the head stands, and the branches that begin with `prefix`; the rest is not looked at.
pub fn heads(dir: &Path, env: &Env, prefix: Option<&str>) -> Option<Facts> {
    let repo = Repo::find(dir, env).ok().flatten()?;
    let GitHead { head, branch } = super::head(dir)?;
    let branches = match prefix {
        Some(prefix) => branches(&repo.looking(), prefix)?,
        None => BTreeMap::new(),
    };
    Some(Facts { head, branch, branches, ..Facts::default() })
}

/// By short name, those that begin with `prefix`.
fn branches(git: &Git, prefix: &str) -> Option<BTreeMap<String, Branch>> {
    let heads = format!("refs/heads/{prefix}");
    let format = "--format=%(refname:short)%00%(objectname)";
    let list = git.run(&["for-each-ref", format, &heads]).ok()?;
    let branch = |line: &str| {
        let (name, head) = line.split_once('\0')?;
        Some((name.to_owned(), Branch { head: head.to_owned() }))
    };
    Some(String::from_utf8_lossy(&list).lines().filter_map(branch).collect())
}

/// All but the changes of the directory's own tree.
fn around(git: &Git, env: &Env, prefix: Option<&str>, commits: &[String]) -> Option<Facts> {
    let mut facts = Facts::default();
    (facts.head, facts.branch) = head(git);
    let is_missing = |commit: &&String| {
        // A name from a foreign file is an object's name, or it is nothing.
        let is_name = commit.len() >= 4 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let asked = ["merge-base", "--is-ancestor", commit.as_str(), "HEAD"];
        !is_name || git.ask(&asked, &[]).map_or(true, |answer| answer.code != Some(0))
    };
    facts.missing = commits.iter().take(COMMITS_MAX).filter(is_missing).cloned().collect();
    let Some(prefix) = prefix else { return Some(facts) };
    facts.branches = branches(git, prefix)?;
    if !facts.branches.is_empty() {
        let list = git.run(&["worktree", "list", "--porcelain", "-z"]).ok()?;
        let list = String::from_utf8_lossy(&list).into_owned();
        let entries: Vec<&str> = list.split("\0\0").collect();
        facts.worktrees = worktrees(&entries, prefix, env);
    }
    Some(facts)
}

/// The commit of the head, and its branch unless it is detached.
fn head(git: &Git) -> (Option<String>, Option<String>) {
    let both = git.run(&["rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD"]);
    let Ok(both) = both else {
        // No commit yet: only the branch has a name.
        return (None, text(git, &["symbolic-ref", "--quiet", "--short", "HEAD"]));
    };
    let both = String::from_utf8_lossy(&both);
    let mut lines = both.lines().map(str::to_owned);
    let (commit, name) = (lines.next(), lines.next());
    let branch = name.and_then(|it| it.strip_prefix("refs/heads/").map(str::to_owned));
    (commit, branch)
}

/// The entries of `git worktree list` that count, looked into side by side.
fn worktrees(entries: &[&str], prefix: &str, env: &Env) -> Vec<Worktree> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let part = entries.len().div_ceil(cores).max(1);
    let look = |part: &[&str]| {
        let seen = part.iter().filter_map(|entry| worktree(entry, prefix, env));
        seen.collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let hands = entries.chunks(part).map(|part| scope.spawn(move || look(part)));
        let hands: Vec<_> = hands.collect();
        let seen =
            hands.into_iter().map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        seen.flatten().collect()
    })
}

/// What a file held in the last commit before a moment; `None` when no commit had it then.
pub fn as_of(dir: &Path, env: &Env, path: &str, at: Timestamp) -> Option<Vec<u8>> {
    let git = Git::new(dir, env).with("GIT_OPTIONAL_LOCKS", "0");
    let before = format!("--before={at}");
    let commit = text(&git, &["rev-list", "--max-count=1", &before, "HEAD", "--", path])?;
    if commit.is_empty() {
        return None;
    }
    git.run(&["show", "--no-textconv", &format!("{commit}:./{path}")]).ok()
}

/// One entry of `git worktree list`, looked into if it is on a branch that counts, or on none.
fn worktree(entry: &str, prefix: &str, env: &Env) -> Option<Worktree> {
    let lines = || entry.split('\0');
    let path = lines().find_map(|line| line.strip_prefix("worktree "))?;
    let on = lines().find_map(|line| line.strip_prefix("branch ")).map(short);
    let is_bare = lines().any(|line| line == "bare");
    if is_bare || on.as_ref().is_some_and(|name| !name.starts_with(prefix)) {
        return None;
    }
    let mut tree = Worktree { path: path.to_owned(), branch: on, ..Worktree::default() };
    let at = Path::new(path);
    if !at.is_dir() {
        tree.missing = true;
        return Some(tree);
    }
    let git = Git::new(at, env).with("GIT_OPTIONAL_LOCKS", "0");
    if let Some(git_dir) = git_dir(at) {
        tree.unfinished = unfinished(&git_dir).map(str::to_owned);
        // During a rebase the head is detached; the branch waits in a file.
        let waiting = ["rebase-merge/head-name", "rebase-apply/head-name"];
        let waiting = waiting
            .iter()
            .find_map(|it| open::text_named(&git_dir.join(it), open::SMALL_BYTES_MAX).ok());
        tree.branch = tree.branch.or_else(|| waiting.map(|name| short(name.trim())));
    }
    tree.changes = changes(&git)?;
    Some(tree)
}

fn short(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}

/// What was begun in this tree and not ended.
fn unfinished(git_dir: &Path) -> Option<&'static str> {
    let marks = [
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
    ];
    marks.into_iter().find(|(mark, _)| git_dir.join(mark).exists()).map(|(_, what)| what)
}

/// What differs from the head, untracked files included; never onward's own directory.
fn changes(git: &Git) -> Option<Vec<String>> {
    let status = git.run(&["status", "--porcelain", "-z", "--untracked-files=all"]).ok()?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let lines = status.split('\0').filter(|line| !line.is_empty());
    Some(lines.map(str::to_owned).collect())
}

/// The first line that git answers, or nothing.
fn text(git: &Git, question: &[&str]) -> Option<String> {
    git.line(question).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::process::Command;

    use super::*;

    fn look(dir: &Path, prefix: &str) -> Option<Facts> {
        facts(dir, &std::env::vars_os().collect(), Some(prefix), &[])
    }

    fn run(at: &Path, args: &[&str]) -> bool {
        let me = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let output = Command::new("git").current_dir(at).args(me).args(args).output();
        output.expect("git is installed").status.success()
    }

    fn git(at: &Path, args: &[&str]) {
        assert!(run(at, args), "{args:?}");
    }

    #[test]
    fn branches_and_trees_are_seen_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo");
        fs::create_dir(&root).unwrap();
        assert_eq!(look(&root, "conference/"), None);
        git(&root, &["init", "-q", "-b", "main"]);
        git(&root, &["commit", "-q", "--allow-empty", "-m", "one"]);
        let plain = look(&root, "conference/").unwrap();
        assert_eq!((plain.branch.as_deref(), plain.head.is_some()), (Some("main"), true));
        assert!(plain.branches.is_empty() && plain.changes.is_empty());
        for id in ["A", "B", "C", "D"] {
            let branch = format!("conference/researcher-{id}");
            git(&root, &["worktree", "add", "-q", "-b", &branch, &format!("../{id}")]);
        }
        let tree = |id: &str| dir.path().join(id);
        fs::write(tree("A").join("new file"), "x").unwrap();
        fs::remove_dir_all(tree("B")).unwrap();
        git(&tree("C"), &["checkout", "-q", "--detach"]);
        half_rebased(&tree("D"));

        let seen = look(&root, "conference/").unwrap();
        let names: Vec<&String> = seen.branches.keys().collect();
        assert_eq!(names.len(), 4);
        let of = |id: &str| seen.worktrees.iter().find(|it| it.path.ends_with(id)).unwrap();
        assert_eq!(of("A").changes, ["?? new file"]);
        assert_eq!(of("A").branch.as_deref(), Some("conference/researcher-A"));
        assert!(of("B").missing);
        assert_eq!((of("C").branch.as_deref(), of("C").unfinished.as_deref()), (None, None));
        assert_eq!(of("D").branch.as_deref(), Some("conference/researcher-D"));
        assert_eq!(of("D").unfinished.as_deref(), Some("rebase"));
        assert_eq!(seen.worktrees.len(), 4, "the tree of main does not count");
        let Facts { head, branch, branches, .. } = seen;
        let quick = heads(&root, &std::env::vars_os().collect(), Some("conference/"));
        assert_eq!(quick, Some(Facts { head, branch, branches, ..Facts::default() }));
    }

    /// Leaves a rebase in the middle of a conflict.
    fn half_rebased(at: &Path) {
        let commit = |text: &str| {
            fs::write(at.join("file"), text).unwrap();
            git(at, &["add", "file"]);
            git(at, &["commit", "-q", "-m", text]);
        };
        commit("first");
        git(at, &["branch", "other"]);
        commit("second");
        git(at, &["checkout", "-q", "other"]);
        commit("third");
        git(at, &["checkout", "-q", "conference/researcher-D"]);
        assert!(!run(at, &["rebase", "-q", "other"]), "it conflicts");
    }
}
