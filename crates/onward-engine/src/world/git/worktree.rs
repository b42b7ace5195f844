//! Worktrees of a run: made from the tree as it is, mended however they were left, committed to.
//!
//! Invariant: no file of a worktree that was worked in and no commit of its branch is ever
//! taken away. A branch is only moved on, and only to what follows from it. Whatever is done here
//! can be cut short between any two commands and done again.

use crate::world::{aside::Aside, open};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use onward_core::event::GitHead;

use super::{
    command::GitError,
    head::{branch_head, git_dir, head},
    hidden::{LeftOut, left_out, uncover},
    repo::Repo,
    snapshot::{Chain, commit, copy_index, move_ref, remove_if_there},
};

/// How a worktree was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It was never made.
    Unmade,
    Fine,
    /// The directory is gone.
    Missing {
        has_branch: bool,
    },
    /// The directory is there, and git does not know it, or its branch, any more.
    Unregistered {
        has_branch: bool,
    },
    /// It is not on its branch, but on this.
    Elsewhere(String),
    /// It was left in the middle of something: a rebase, say.
    Busy(&'static str),
}

/// What git leaves in its directory while something is under way, and what to call it.
const UNDER_WAY: [(&str, &str); 6] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

/// Everything but what is onward's own. Git refuses a pathspec that names an ignored directory,
/// also one that excludes it, and many projects ignore this one; a pattern names nothing.
pub(crate) const ADD_ALL: [&str; 5] = ["add", "--all", "--", ".", ":(exclude).onwar[d]/*"];

/// What the first commit of a worktree says, if it takes one to have the tree as it is.
pub(crate) const START: &str = "what was not committed when the worktree was made";

impl Repo {
    /// Looks without a process, and changes nothing.
    pub fn condition(&self, dir: &Path, branch: &str) -> Condition {
        let has_branch = self.branch_head(branch).is_some();
        // An empty one too: there is no work in it.
        if fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none()) {
            return Condition::Missing { has_branch };
        }
        let is_there = |git_dir: &PathBuf| git_dir.is_dir() && self.has(git_dir);
        let Some(git_dir) = git_dir(dir).filter(is_there) else {
            return Condition::Unregistered { has_branch };
        };
        let under_way = UNDER_WAY.iter().find(|(name, _)| git_dir.join(name).exists());
        if let Some((_, what)) = under_way {
            return Condition::Busy(what);
        }
        match head(dir) {
            Some(head) if head.branch.as_deref() == Some(branch) && has_branch => Condition::Fine,
            Some(head) if head.head.is_some() => {
                Condition::Elsewhere(head.branch.or(head.head).unwrap_or_default())
            }
            Some(_) | None => Condition::Unregistered { has_branch },
        }
    }

    /// A worktree that was copied along with its project still says that it is the original's.
    fn has(&self, git_dir: &Path) -> bool {
        let common = fs::canonicalize(&self.common_dir);
        let found = fs::canonicalize(git_dir);
        found.is_ok_and(|found| common.is_ok_and(|common| found.starts_with(common)))
    }

    pub fn branch_head(&self, branch: &str) -> Option<String> {
        branch_head(&self.common_dir, branch)
    }

    /// Those of the commits that no branch and no tag leads to, nor the head.
    pub fn lost(&self, commits: &BTreeSet<String>) -> Result<BTreeSet<String>, GitError> {
        let git = self.looking();
        let asked: Vec<&str> = commits.iter().map(String::as_str).collect();
        let list = asked.join("\n");
        let types = git.feed(&["cat-file", "--batch-check=%(objecttype)"], list.as_bytes())?;
        let types = String::from_utf8_lossy(&types).into_owned();
        let is_there = types.lines().map(|line| line == "commit");
        let there: Vec<&str> =
            asked.iter().zip(is_there).filter(|(_, it)| *it).map(|(id, _)| *id).collect();
        let head = head(&self.dir).and_then(|it| it.head);
        let not = ["--not", "--branches", "--tags", "--remotes"].into_iter();
        let list: Vec<&str> = there.iter().copied().chain(not).chain(head.as_deref()).collect();
        let alone = git.feed(&["rev-list", "--stdin"], list.join("\n").as_bytes())?;
        let alone = String::from_utf8_lossy(&alone).into_owned();
        let alone: BTreeSet<&str> = alone.lines().collect();
        let is_lost = |id: &&String| !there.contains(&id.as_str()) || alone.contains(id.as_str());
        Ok(commits.iter().filter(is_lost).cloned().collect())
    }

    /// Writes what a branch has into an empty directory, and nothing else anywhere.
    pub fn export_branch(&self, branch: &str, to: &Path) -> Result<(), GitError> {
        let index = to.with_added_extension("index");
        let git = self.looking().with("GIT_INDEX_FILE", &index);
        git.run(&["read-tree", &format!("refs/heads/{branch}")])?;
        let prefix = format!("--prefix={}/", to.display());
        git.run(&["checkout-index", "--all", "--force", "--quiet", &prefix]).map(drop)
    }

    /// Removes a worktree that holds nothing but what its branch has. Says whether it did.
    pub fn remove_worktree(&self, dir: &Path, branch: &str) -> Result<bool, GitError> {
        if self.condition(dir, branch) != Condition::Fine {
            return Ok(false);
        }
        let Some(git_dir) = git_dir(dir) else { return Ok(false) };
        let aside =
            Aside::new().map_err(GitError::io("make a directory in", &std::env::temp_dir()))?;
        let index = aside.path().join("index");
        copy_index(&git_dir.join("index"), &index)?;
        let git = self.in_dir(dir).with("GIT_INDEX_FILE", &index);
        // What git ignores is not on the branch, nor is what it was told not to look at.
        uncover(dir, &git, LeftOut::Stays)?;
        let asked = ["status", "--porcelain", "-z", "--untracked-files=all", "--ignored"];
        if !git.run(&asked)?.is_empty() {
            return Ok(false);
        }
        let answer = self.plain().ask(&["worktree", "remove", "--", &text(dir)?], &[])?;
        Ok(answer.code == Some(0))
    }

    /// Twice forced: one that is registered and gone may be made again, also if a git that was
    /// killed meanwhile left it locked.
    fn add(&self, dir: &Path, rest: &[&str]) -> Result<(), GitError> {
        let dir = text(dir)?;
        let start = ["worktree", "add", "--force", "--force", "--quiet"];
        let (options, start_at) = rest.split_at(rest.len() - 1);
        let args = [&start[..], options, &["--", dir.as_str()], start_at].concat();
        self.plain().run(&args).map(drop)
    }

    /// The files stay as they are; only git learns of them again. The last step alone counts.
    fn register(&self, dir: &Path, branch: &str) -> Result<(), GitError> {
        let beside = dir.with_added_extension("onward-new");
        let _ = fs::remove_dir_all(&beside);
        self.add(&beside, &["--no-checkout", branch])?;
        self.in_dir(&beside).run(&["read-tree", "HEAD"])?;
        let (from, to) = (beside.join(".git"), dir.join(".git"));
        let unclear = || GitError::Unclear { what: "worktree".to_owned() };
        let back = git_dir(&beside).ok_or_else(unclear)?.join("gitdir");
        let line = format!("{}\n", text(&to)?);
        open::put(&back, line.as_bytes(), open::SHARED).map_err(GitError::io("write", &back))?;
        fs::rename(&from, &to).map_err(GitError::io("rename", &from))?;
        let _ = fs::remove_dir(&beside);
        Ok(())
    }

    /// Back onto its branch, if what it is on follows from that.
    fn attach(&self, dir: &Path, branch: &str) -> Result<Result<(), String>, GitError> {
        let git = self.in_dir(dir);
        let name = format!("refs/heads/{branch}");
        if self.branch_head(branch).is_some() {
            let follows = git.ask(&["merge-base", "--is-ancestor", &name, "HEAD"], &[])?;
            if follows.code != Some(0) {
                return Ok(Err(format!("it is not on {branch}, nor on what follows from that")));
            }
        }
        git.run(&["update-ref", "-m", "onward", &name, "HEAD"])?;
        git.run(&["symbolic-ref", "-m", "onward", "HEAD", &name])?;
        Ok(Ok(()))
    }
}

/// Of the project's own tree.
impl Chain {
    /// Makes a worktree of the tree as it is, what is not committed included. On a
    /// branch that has commits of its own it goes on there.
    pub fn make_worktree(&self, dir: &Path, branch: &str) -> Result<(), GitError> {
        let repo = self.repo();
        if !self.has_work(branch)? {
            self.begin_branch(branch)?;
        }
        repo.add(dir, &[branch])
    }

    /// Makes one that is not fine so again, where nothing can be lost by it; else says why not.
    pub fn mend_worktree(&self, dir: &Path, branch: &str) -> Result<Result<(), String>, GitError> {
        let repo = self.repo();
        match repo.condition(dir, branch) {
            Condition::Fine => {}
            Condition::Missing { has_branch: true } => repo.add(dir, &[branch])?,
            Condition::Unmade | Condition::Missing { has_branch: false } => {
                self.make_worktree(dir, branch)?;
            }
            Condition::Unregistered { has_branch } => {
                if !has_branch {
                    self.begin_branch(branch)?;
                }
                repo.register(dir, branch)?;
            }
            Condition::Elsewhere(_) => return repo.attach(dir, branch),
            Condition::Busy(what) => return Ok(Err(format!("it is in the middle of a {what}"))),
        }
        Ok(Ok(()))
    }

    fn begin_branch(&self, branch: &str) -> Result<(), GitError> {
        let (name, start) = (format!("refs/heads/{branch}"), self.start_of_worktree()?);
        move_ref(&self.repo().plain(), &name, &start)
    }

    /// Whether the branch is there, and more than the start of a worktree that was never made.
    fn has_work(&self, branch: &str) -> Result<bool, GitError> {
        let repo = self.repo();
        let Some(tip) = repo.branch_head(branch) else { return Ok(false) };
        if head(repo.dir()).and_then(|it| it.head).as_ref() == Some(&tip) {
            return Ok(false);
        }
        let subject = repo.looking().run(&["log", "-1", "--format=%s", &tip, "--"])?;
        Ok(!String::from_utf8_lossy(&subject).contains(START))
    }

    /// The head of the branch, or a commit on it with all that is not committed.
    fn start_of_worktree(&self) -> Result<String, GitError> {
        let _lock = self.lock()?;
        let tree = self.with_left_out(self.record(&[])?.id)?;
        let git = self.git();
        let head = head(self.repo().dir()).and_then(|it| it.head);
        if let Some(head) = &head
            && git.line(&["rev-parse", &format!("{head}^{{tree}}")])? == tree
        {
            return Ok(head.clone());
        }
        let parents: Vec<String> = head.into_iter().collect();
        commit(&git, &tree, &parents, START, None)
    }

    /// What a sparse checkout leaves out of the tree is on the branch all the same.
    fn with_left_out(&self, tree: String) -> Result<String, GitError> {
        let repo = self.repo();
        let left_out = left_out(repo.dir(), &repo.prefix, &repo.looking())?;
        if left_out.is_empty() {
            return Ok(tree);
        }
        let index = self.dir().join("index.start");
        remove_if_there(&index.with_added_extension("lock"))?;
        copy_index(self.index_to_start_from(), &index)?;
        let git = repo.writing(&index);
        git.feed(&["update-index", "-z", "--index-info"], &left_out)?;
        let whole = git.line(&["write-tree"])?;
        remove_if_there(&index)?;
        Ok(whole)
    }
}

/// Of a worktree.
impl Chain {
    /// Commits whatever is there, and gives the head: the old one when there is nothing new. The
    /// index of the worktree is replaced last, and as a whole: no lock that a killed git left is in
    /// the way.
    pub fn commit_all(&self, message: &str) -> Result<Option<String>, GitError> {
        let _lock = self.lock()?;
        let repo = self.repo();
        let index = repo.index.with_file_name("index.onward");
        copy_index(&repo.index, &index)?;
        let git = repo.writing(&index);
        let _ = fs::remove_file(index.with_added_extension("lock"));
        uncover(repo.dir(), &git, LeftOut::Stays)?;
        git.run(&ADD_ALL)?;
        let tree = git.line(&["write-tree"])?;
        let unclear = || GitError::Unclear { what: "HEAD".to_owned() };
        let GitHead { branch, head: old } = head(repo.dir()).ok_or_else(unclear)?;
        let is_new = match &old {
            Some(old) => git.line(&["rev-parse", &format!("{old}^{{tree}}")])? != tree,
            None => true,
        };
        let mut now = old.clone();
        if is_new {
            let mut args = vec!["commit-tree", "--no-gpg-sign", &tree];
            if let Some(old) = &old {
                args.extend(["-p", old]);
            }
            let out = git.feed(&args, message.as_bytes())?;
            let id = String::from_utf8_lossy(&out).trim().to_owned();
            let branch = branch.ok_or_else(unclear)?;
            move_ref(&git, &format!("refs/heads/{branch}"), &id)?;
            now = Some(id);
        }
        fs::rename(&index, &repo.index).map_err(GitError::io("rename", &index))?;
        Ok(now)
    }
}

fn text(dir: &Path) -> Result<String, GitError> {
    let unclear = || GitError::Unclear { what: "worktree".to_owned() };
    PathBuf::from(dir).into_os_string().into_string().map_err(|_| unclear())
}

#[cfg(test)]
mod tests;
