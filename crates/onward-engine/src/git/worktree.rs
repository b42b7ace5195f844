//! Worktrees of a run: made from the tree as it is, mended however they were left, committed to.
//!
//! Invariant: no file of a worktree and no commit of its branch is ever taken away. A branch is only
//! moved on, and only to what follows from it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{
    command::GitError,
    head::{git_dir, has_branch, head},
    repo::Repo,
    snapshot::{Chain, commit},
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
    /// The directory is there, and git does not know it any more.
    Unregistered,
    /// It is not on its branch, but on this.
    Elsewhere(String),
    /// It was left in the middle of something, such as a rebase.
    Busy(&'static str),
}

/// What git leaves in its directory while something is under way.
const UNDER_WAY: [(&str, &str); 6] = [
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

impl Repo {
    /// Looks without a process, and changes nothing.
    pub fn condition(&self, dir: &Path, branch: &str) -> Condition {
        if !dir.is_dir() {
            return Condition::Missing { has_branch: has_branch(&self.common_dir, branch) };
        }
        let Some(git_dir) = git_dir(dir).filter(|git_dir| git_dir.is_dir()) else {
            return Condition::Unregistered;
        };
        let under_way = UNDER_WAY.iter().find(|(name, _)| git_dir.join(name).exists());
        if let Some((_, what)) = under_way {
            return Condition::Busy(what);
        }
        match head(dir) {
            Some(head) if head.branch.as_deref() == Some(branch) => Condition::Fine,
            Some(head) => Condition::Elsewhere(head.branch.or(head.head).unwrap_or_default()),
            None => Condition::Unregistered,
        }
    }

    /// Those of the commits that no branch and no tag has.
    pub fn lost(&self, commits: &BTreeSet<String>) -> Result<BTreeSet<String>, GitError> {
        let mut lost = BTreeSet::new();
        for id in commits {
            let args = ["for-each-ref", "--count=1", "--contains", id];
            let args = [&args[..], &["refs/heads", "refs/remotes", "refs/tags"]].concat();
            let answer = self.looking().ask(&args, &[])?;
            if answer.code != Some(0) || answer.out.is_empty() {
                lost.insert(id.clone());
            }
        }
        Ok(lost)
    }

    /// Makes a worktree that is not fine so again, where nothing can be lost by it.
    fn mend(&self, dir: &Path, branch: &str, condition: &Condition) -> Result<(), GitError> {
        match condition {
            Condition::Fine | Condition::Unmade => Ok(()),
            Condition::Missing { .. } => self.add(dir, &[branch]),
            Condition::Unregistered => self.register(dir, branch),
            Condition::Elsewhere(_) => self.attach(dir, branch),
            Condition::Busy(what) => Err(not_ours(dir, &format!("is in the middle of {what}"))),
        }
    }

    fn add(&self, dir: &Path, rest: &[&str]) -> Result<(), GitError> {
        let dir = text(dir)?;
        // A worktree that is registered and gone may be made again.
        let start = ["worktree", "add", "--force", "--quiet"];
        let (options, start_at) = rest.split_at(rest.len() - 1);
        let args = [&start[..], options, &["--", dir.as_str()], start_at].concat();
        self.plain().run(&args).map(drop)
    }

    /// The files stay as they are; only git learns of them again.
    fn register(&self, dir: &Path, branch: &str) -> Result<(), GitError> {
        let beside = dir.with_added_extension("onward-new");
        let _ = fs::remove_dir_all(&beside);
        self.plain().run(&["worktree", "prune"])?;
        self.add(&beside, &["--no-checkout", branch])?;
        let (from, to) = (beside.join(".git"), dir.join(".git"));
        fs::rename(&from, &to).map_err(GitError::io("rename", &from))?;
        let _ = fs::remove_dir(&beside);
        self.plain().run(&["worktree", "repair", &text(dir)?])?;
        self.in_dir(dir).run(&["reset", "--quiet"]).map(drop)
    }

    /// Back onto its branch, if what it is on follows from that.
    fn attach(&self, dir: &Path, branch: &str) -> Result<(), GitError> {
        let git = self.in_dir(dir);
        let name = format!("refs/heads/{branch}");
        if has_branch(&self.common_dir, branch) {
            let follows = git.ask(&["merge-base", "--is-ancestor", &name, "HEAD"], &[])?;
            if follows.code != Some(0) {
                return Err(not_ours(dir, "is not on its branch, nor on what follows from it"));
            }
        }
        git.run(&["update-ref", "-m", "onward", &name, "HEAD"])?;
        git.run(&["symbolic-ref", "-m", "onward", "HEAD", &name]).map(drop)
    }
}

impl Chain {
    /// Makes a worktree of the tree as it is, what is not committed included. A branch that is there
    /// already is where it goes on.
    pub fn make_worktree(&self, dir: &Path, branch: &str) -> Result<(), GitError> {
        let repo = self.repo();
        if has_branch(&repo.common_dir, branch) {
            return repo.add(dir, &[branch]);
        }
        let start = self.start_of_worktree()?;
        repo.add(dir, &["-b", branch, &start])
    }

    /// See [`Repo::mend`]; a branch that is gone too begins anew.
    pub fn mend_worktree(
        &self,
        dir: &Path,
        branch: &str,
        condition: &Condition,
    ) -> Result<(), GitError> {
        if matches!(condition, Condition::Missing { .. }) {
            return self.make_worktree(dir, branch);
        }
        self.repo().mend(dir, branch, condition)
    }

    /// The head of the branch, or a commit on it with all that is not committed.
    fn start_of_worktree(&self) -> Result<String, GitError> {
        let _lock = self.lock()?;
        let tree = self.record(&[])?;
        let git = self.git();
        let head = head(self.repo().dir()).and_then(|it| it.head);
        if let Some(head) = &head
            && git.line(&["rev-parse", &format!("{head}^{{tree}}")])? == tree.id
        {
            return Ok(head.clone());
        }
        let parents: Vec<String> = head.into_iter().collect();
        commit(&git, &tree.id, &parents, "what was not committed when the worktree was made", None)
    }
}

/// In a worktree of the run.
impl Repo {
    /// Commits whatever is there, and gives the head: the old one when there is nothing new.
    pub fn commit_all(&self, message: &str) -> Result<Option<String>, GitError> {
        let git = self.plain();
        git.run(&["add", "--all"])?;
        let is_new = git.ask(&["diff", "--cached", "--quiet", "HEAD", "--"], &[])?.code != Some(0);
        if is_new {
            let args = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--file=-"];
            git.feed(&args, message.as_bytes())?;
        }
        Ok(head(self.dir()).and_then(|it| it.head))
    }
}

fn not_ours(dir: &Path, what: &str) -> GitError {
    GitError::Failed { what: "worktree".to_owned(), said: format!("{} {what}", dir.display()) }
}

fn text(dir: &Path) -> Result<String, GitError> {
    let unclear = || GitError::Unclear { what: "worktree".to_owned() };
    PathBuf::from(dir).into_os_string().into_string().map_err(|_| unclear())
}
