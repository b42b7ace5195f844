//! What a conference asks of git: branches, worktrees, and commits made without touching any tree.
//!
//! Invariant: the person's own branch, index and tree are left alone, except by the merge that a
//! person chose. Refs of ours are below `refs/onward/conference/`.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use onward_dialects::{Branch, Git as Seen};
use onward_engine::git::{Git, GitError};

use super::CallError;

pub(super) const BEST: &str = "refs/heads/conference/best";

impl From<GitError> for CallError {
    fn from(error: GitError) -> Self {
        Self::new(error.to_string()).hint("see that `git status` works here")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Repo {
    pub(super) dir: PathBuf,
    env: Vec<(OsString, OsString)>,
}

/// The branches of a conference, for whoever reads its files; `None` outside git.
pub(super) fn look(dir: &Path) -> Option<Seen> {
    let repo = Repo::of(dir).ok()?;
    let args =
        ["for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/conference/"];
    let out = repo.git().run(&args).ok()?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    let branch = |(name, head): (&str, &str)| (name.to_owned(), Branch { head: head.to_owned() });
    let branches: BTreeMap<String, Branch> = pairs.map(branch).collect();
    Some(Seen { branches, worktrees: Vec::new() })
}

impl Repo {
    /// The repository that a directory lies in.
    pub(super) fn of(dir: &Path) -> Result<Self, CallError> {
        let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let git = Git::new(dir, &env);
        let top = git.ask(&["rev-parse", "--show-toplevel"], &[])?;
        if top.code != Some(0) {
            let message = format!("{} is not in a git repository", dir.display());
            return Err(CallError::new(message)
                .hint("researchers change code here, each in a worktree: `git init` and commit"));
        }
        Ok(Self { dir: dir.to_owned(), env })
    }

    pub(super) fn git(&self) -> Git {
        Git::new(&self.dir, &self.env)
    }

    pub(super) fn line<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<String, CallError> {
        Ok(self.git().line(args)?)
    }

    /// The commit that the person's branch is at.
    pub(super) fn head(&self) -> Result<String, CallError> {
        self.commit("HEAD")?.ok_or_else(|| {
            CallError::new("the repository has no commit yet")
                .hint("commit what the researchers are to begin with")
        })
    }

    /// What a name stands for, if it does.
    pub(super) fn commit(&self, name: &str) -> Result<Option<String>, CallError> {
        let name = format!("{name}^{{commit}}");
        let answer = self.git().ask(&["rev-parse", "--verify", "--quiet", &name], &[])?;
        let text = String::from_utf8_lossy(&answer.out).trim().to_owned();
        Ok((answer.code == Some(0) && !text.is_empty()).then_some(text))
    }
}
