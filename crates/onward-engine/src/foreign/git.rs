//! Branches and worktrees of the repository around a foreign run, as git tells them.
//!
//! Invariant: git is asked not to take its optional locks, and only questions are put to it.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use onward_dialects::{Branch, Git, Worktree};

/// `None` where there is no git or no repository. Only branches that begin with `prefix` count, and
/// trees are looked at only where there are such branches.
pub(super) fn look(dir: &Path, prefix: &str) -> Option<Git> {
    let format = "--format=%(refname:short)%00%(objectname)";
    let heads = format!("refs/heads/{prefix}");
    let text = ask(dir, &["for-each-ref", format, &heads])?;
    let branch = |line: &str| {
        let (name, head) = line.split_once('\0')?;
        Some((name.to_owned(), Branch { head: head.to_owned() }))
    };
    let mut git = Git { branches: text.lines().filter_map(branch).collect(), ..Git::default() };
    if !git.branches.is_empty() {
        let list = ask(dir, &["worktree", "list", "--porcelain", "-z"])?;
        git.worktrees = list.split("\0\0").filter_map(|entry| worktree(entry, prefix)).collect();
    }
    Some(git)
}

/// One entry of `git worktree list`, looked into if it is on a branch that counts, or on none.
fn worktree(entry: &str, prefix: &str) -> Option<Worktree> {
    let lines = || entry.split('\0');
    let path = lines().find_map(|line| line.strip_prefix("worktree "))?;
    let short = |name: &str| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
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
    if let Some(git_dir) = ask(at, &["rev-parse", "--absolute-git-dir"]) {
        let git_dir = Path::new(git_dir.trim_end_matches('\n'));
        tree.unfinished = unfinished(git_dir).map(str::to_owned);
        // During a rebase the head is detached; the branch waits in a file.
        let waiting = ["rebase-merge/head-name", "rebase-apply/head-name"];
        let waiting = waiting.iter().find_map(|it| std::fs::read_to_string(git_dir.join(it)).ok());
        tree.branch = tree.branch.or_else(|| waiting.map(|name| short(name.trim())));
    }
    let status = ask(at, &["status", "--porcelain", "-z", "--untracked-files=all"])?;
    let changes = status.split('\0').filter(|line| !line.is_empty());
    tree.changes = changes.map(str::to_owned).collect();
    Some(tree)
}

/// What somebody began in this tree and did not end.
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

/// What git says, or `None` when it does not know.
fn ask(dir: &Path, question: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(question).stdin(Stdio::null());
    command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
        assert_eq!(look(&root, "conference/"), Some(Git::default()));
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
        assert_eq!(seen.worktrees.len(), 4, "the tree of main is nobody's business");
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
