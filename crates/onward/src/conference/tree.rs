//! A researcher's own worktree, on its own branch.
//!
//! Invariant: what the researcher stands on is a ref of ours. Whatever an agent does to the tree,
//! its index or its branch, the next look begins from there.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use onward_engine::git::Git;

use super::{
    CallError,
    repo::{BEST, Repo},
};

/// A researcher's own worktree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    repo: Repo,
    researcher: String,
    pub(super) path: PathBuf,
}

impl Tree {
    pub(super) fn of(repo: &Repo, researcher: &str) -> Self {
        let path = repo.dir.join(".worktrees").join(format!("researcher-{researcher}"));
        Self { repo: repo.clone(), researcher: researcher.to_owned(), path }
    }

    pub(super) fn branch(&self) -> String {
        format!("refs/heads/conference/researcher-{}", self.researcher)
    }

    /// What the researcher stands on, whatever an agent did to the branch since.
    fn standing_ref(&self) -> String {
        format!("refs/onward/conference/standing/{}", self.researcher)
    }

    pub(super) fn git(&self) -> Git {
        Git::new(&self.path, &self.repo.env)
    }

    /// There, on its branch, and with something to stand on. Called while the seat is held.
    pub(super) fn ensure(&self) -> Result<(), CallError> {
        let (branch, standing) = (self.branch(), self.standing_ref());
        let at = match (self.repo.commit(&branch)?, self.repo.commit(&standing)?) {
            (Some(at), _) | (None, Some(at)) => at,
            (None, None) => self.repo.commit(BEST)?.map_or_else(|| self.repo.head(), Ok)?,
        };
        if self.repo.commit(&branch)?.is_none() {
            self.repo.git().run(&["update-ref", &branch, &at])?;
        }
        if self.repo.commit(&standing)?.is_none() {
            self.repo.git().run(&["update-ref", &standing, &at])?;
        }
        if self.path.join(".git").exists() && self.repo.is_worktree(&self.path)? {
            return Ok(());
        }
        hide(&self.repo.dir.join(".worktrees"))?;
        // Whatever is in the way was never a tree of ours.
        if self.path.exists() {
            let aside = self.path.with_extension("aside");
            std::fs::rename(&self.path, &aside).map_err(CallError::io("move", &self.path))?;
        }
        self.repo.git().run(&["worktree", "prune"])?;
        let name = format!("conference/researcher-{}", self.researcher);
        let path = self.path.as_os_str();
        let args = ["worktree", "add", "--force", "--quiet"].map(OsStr::new);
        let args: Vec<&OsStr> = args.into_iter().chain([path, OsStr::new(&name)]).collect();
        self.repo.git().run(&args)?;
        Ok(())
    }

    /// From now on the researcher stands on this commit.
    pub(super) fn stand_on(&self, commit: &str) -> Result<(), CallError> {
        self.repo.git().run(&["update-ref", &self.standing_ref(), commit])?;
        Ok(())
    }

    pub(super) fn standing(&self) -> Result<String, CallError> {
        let missing = || CallError::new(format!("researcher {} stands nowhere", self.researcher));
        self.repo.commit(&self.standing_ref())?.ok_or_else(missing)
    }

    /// Commits that somebody else made on the branch count from the next iteration on.
    pub(super) fn follow_branch(&self) -> Result<(), CallError> {
        let Some(head) = self.repo.commit(&self.branch())? else { return Ok(()) };
        let standing = self.standing()?;
        let args = ["merge-base", "--is-ancestor", &standing, &head];
        if head != standing && self.repo.git().ask(&args, &[])?.code == Some(0) {
            self.stand_on(&head)?;
        }
        Ok(())
    }

    /// Branch, index and files go back to what the researcher stands on.
    pub(super) fn restore(&self) -> Result<(), CallError> {
        let (git, standing) = (self.git(), self.standing()?);
        git.run(&["symbolic-ref", "HEAD", &self.branch()])?;
        git.run(&["reset", "--quiet", "--hard", &standing])?;
        git.run(&["clean", "--quiet", "-f", "-d"])?;
        Ok(())
    }

    pub(super) fn is_dirty(&self) -> Result<bool, CallError> {
        let out = self.git().run(&["status", "--porcelain"])?;
        Ok(!out.is_empty())
    }

    /// The files as they are, as a commit under a ref of ours. Ignored files are not in it.
    pub(super) fn save(&self, name: &str, message: &str) -> Result<String, CallError> {
        let index = self.git().line(&["rev-parse", "--git-path", "onward-index"])?;
        let index = self.path.join(index);
        let git = self.git().with("GIT_INDEX_FILE", &index);
        let standing = self.standing()?;
        git.run(&["read-tree", &standing])?;
        git.run(&["add", "--all", "."])?;
        let tree = git.line(&["write-tree"])?;
        let commit = git.line(&["commit-tree", &tree, "-p", &standing, "-m", message])?;
        let name = format!("refs/onward/conference/{name}");
        git.run(&["update-ref", &name, &commit])?;
        std::fs::remove_file(&index).map_err(CallError::io("remove", &index))?;
        Ok(commit)
    }

    /// The files of a saved state, over what the researcher stands on.
    pub(super) fn show(&self, commit: &str) -> Result<(), CallError> {
        self.restore()?;
        self.git().run(&["read-tree", "--reset", "-u", &format!("{commit}^{{tree}}")])?;
        Ok(())
    }

    /// The saved state becomes what the researcher stands on, once: `mark` tells that it did.
    pub(super) fn keep(&self, saved: &str, subject: &str, mark: &str) -> Result<(), CallError> {
        let standing = self.standing()?;
        let told = self.repo.git().run(&["log", "-1", "--format=%B", &standing])?;
        let mark = format!("Conference-Iteration: {mark}");
        if !String::from_utf8_lossy(&told).lines().any(|line| line == mark) {
            let message = format!("{subject}\n\n{mark}");
            let tree = format!("{saved}^{{tree}}");
            let args = ["commit-tree", &tree, "-p", &standing, "-m", &message];
            let commit = self.repo.line(&args)?;
            self.stand_on(&commit)?;
        }
        self.restore()
    }

    /// The commits that the researcher made since it was last put on conference/best.
    pub(super) fn commits(&self) -> Result<Vec<String>, CallError> {
        let range = format!("{BEST}..{}", self.branch());
        let out = self.repo.git().run(&["rev-list", "--reverse", "--topo-order", &range])?;
        Ok(String::from_utf8_lossy(&out).lines().map(str::to_owned).collect())
    }
}

/// A directory of ours that git is to pass over.
fn hide(dir: &Path) -> Result<(), CallError> {
    let ignore = dir.join(".gitignore");
    if ignore.exists() {
        return Ok(());
    }
    let made = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&ignore, "*\n"));
    made.map_err(CallError::io("make", &ignore))
}
