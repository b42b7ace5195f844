//! A researcher's own worktree, on its own branch.
//!
//! Invariant: the commit that the researcher stands on is a ref of ours. Whatever an agent does to
//! the tree, its index or its branch, the next iteration begins from that ref.

use crate::world::open;
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{
    CallError, Name,
    repo::{BEST, Linked, MARK, Repo, Reset},
};
use crate::world::git::{Answer, Git, git_dir, head};

/// A researcher's own worktree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    repo: Repo,
    researcher: Name,
    pub(super) path: PathBuf,
    /// Git knew it as a worktree when it was looked for.
    was_linked: bool,
}

impl Tree {
    /// In `.worktrees`, unless another system has checked the branch out elsewhere: two trees on
    /// one branch would move it under each other.
    pub(super) fn of(repo: &Repo, researcher: &Name) -> Result<Self, CallError> {
        let path = repo.dir.join(".worktrees").join(format!("researcher-{researcher}"));
        let linked = repo.linked_trees()?;
        let was_linked = linked.iter().any(|it| it.path == path);
        let (repo, researcher) = (repo.clone(), researcher.clone());
        let mut tree = Self { repo, researcher, path, was_linked };
        if !was_linked {
            let branch = tree.branch();
            let is_own = |it: &Linked| it.branch.as_deref() == Some(branch.as_str());
            if let Some(elsewhere) = linked.into_iter().find(is_own) {
                (tree.path, tree.was_linked) = (elsewhere.path, true);
            }
        }
        Ok(tree)
    }

    pub(super) fn branch(&self) -> String {
        format!("refs/heads/conference/researcher-{}", self.researcher)
    }

    /// What the researcher stands on, whatever an agent did to the branch since.
    fn standing_ref(&self) -> String {
        format!("refs/onward/conference/standing/{}", self.researcher)
    }

    /// A tree that lost its `.git` must not be taken for the user's own: git looks nowhere else.
    pub(super) fn git(&self) -> Git {
        let above = self.path.parent().unwrap_or(&self.path);
        Git::new(&self.path, &self.repo.env).with("GIT_CEILING_DIRECTORIES", above)
    }

    /// Makes the tree, its branch and the ref it stands on, where one is missing. The caller holds
    /// the seat.
    pub(super) fn ensure(&self) -> Result<(), CallError> {
        let (branch, standing) = (self.branch(), self.standing_ref());
        let (on_branch, stands_on) = (self.repo.commit(&branch)?, self.repo.commit(&standing)?);
        let at = match on_branch.as_ref().or(stands_on.as_ref()) {
            Some(at) => at.clone(),
            None => self.repo.commit(BEST)?.map_or_else(|| self.repo.head(), Ok)?,
        };
        if on_branch.is_none() {
            self.repo.git().run(&["update-ref", &branch, &at])?;
        }
        if stands_on.is_none() {
            self.repo.git().run(&["update-ref", &standing, &at])?;
        }
        if self.was_linked {
            return Ok(());
        }
        if self.path.exists() {
            self.repo.git().ask(&["worktree", "repair"], &[])?;
            if self.is_linked()? {
                return Ok(());
            }
        }
        hide(&self.repo.dir.join(".worktrees"))?;
        // Git does not know what is in the way as a worktree. It is renamed and stays.
        if self.path.exists() {
            let aside = self.path.with_extension("aside");
            let free = names(&aside).find(|it| it.symlink_metadata().is_err());
            std::fs::rename(&self.path, free.as_ref().unwrap_or(&aside))
                .map_err(CallError::io("move", &self.path))?;
        }
        self.repo.git().run(&["worktree", "prune"])?;
        let name = format!("conference/researcher-{}", self.researcher);
        let path = self.path.as_os_str();
        let args = ["worktree", "add", "--force", "--quiet"].map(OsStr::new);
        let args: Vec<&OsStr> = args.into_iter().chain([path, OsStr::new(&name)]).collect();
        self.repo.git().run(&args)?;
        Ok(())
    }

    fn is_linked(&self) -> Result<bool, CallError> {
        Ok(self.repo.linked_trees()?.iter().any(|it| it.path == self.path))
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

    /// Commits that another system made on the branch count from the next iteration on.
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
        let on = head(&self.path).and_then(|it| it.branch);
        if on.map(|it| format!("refs/heads/{it}")) != Some(self.branch()) {
            git.run(&["symbolic-ref", "HEAD", &self.branch()])?;
        }
        git.run(&["reset", "--quiet", "--hard", &standing])?;
        git.run(&["clean", "--quiet", "-f", "-d"])?;
        Ok(())
    }

    /// From `best` on, as at the start of a round. Gives the refs that keep what was there.
    pub(super) fn begin(&self, round: u32, best: &str) -> Result<Vec<String>, CallError> {
        let place = format!("{round}/{}/begin", self.researcher);
        let kept = self.keep_aside(&place, &Reset { base: best, round })?;
        self.stand_on(best)?;
        self.restore()?;
        Ok(kept)
    }

    /// Keeps what a reset would take: commits of the branch and of the tree's own HEAD, and changed
    /// files. A ref is named by what it keeps, so that what is kept twice is kept once. Gives the
    /// refs.
    pub(super) fn keep_aside(&self, place: &str, to: &Reset<'_>) -> Result<Vec<String>, CallError> {
        let branch = self.repo.commit(&self.branch())?;
        let git = self.git();
        let head = git.ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], &[])?;
        let head = String::from_utf8_lossy(&head.out).trim().to_owned();
        let head = Some(head).filter(|it| !it.is_empty()).or_else(|| branch.clone());
        let is_dirty = self.is_dirty()?;
        let mut refs = Vec::new();
        let mut keep = |id: &str, commit: &str| -> Result<(), CallError> {
            let name = format!("refs/onward/conference/rescue/{place}/{}", &id[..12]);
            self.repo.git().run(&["update-ref", &name, commit])?;
            refs.push(name);
            Ok(())
        };
        let mut commits: Vec<String> = branch.into_iter().chain(head.clone()).collect();
        commits.dedup();
        for commit in commits {
            if self.repo.is_lost_without(&commit, to)? {
                keep(&commit, &commit)?;
            }
        }
        if let Some(head) = head.filter(|_| is_dirty) {
            let tree = self.files_as_they_are()?;
            if tree != git.line(&["rev-parse", &format!("{head}^{{tree}}")])? {
                let message = format!("left in the worktree of researcher {}", self.researcher);
                let commit = git.line(&["commit-tree", &tree, "-p", &head, "-m", &message])?;
                keep(&tree, &commit)?;
            }
        }
        Ok(refs)
    }

    pub(super) fn is_dirty(&self) -> Result<bool, CallError> {
        let out = self.git().run(&["status", "--porcelain"])?;
        Ok(!out.is_empty())
    }

    /// The commit that was saved under a ref of ours.
    pub(super) fn saved(&self, name: &str) -> Result<Option<String>, CallError> {
        self.repo.commit(&format!("refs/onward/conference/{name}"))
    }

    pub(super) fn drop_saved(&self, name: &str) -> Result<(), CallError> {
        if self.saved(name)?.is_some() {
            let name = format!("refs/onward/conference/{name}");
            self.repo.git().run(&["update-ref", "-d", &name])?;
        }
        Ok(())
    }

    /// The files as they are, as a commit under a ref of ours. Ignored files are not in it.
    pub(super) fn save(&self, name: &str, message: &str) -> Result<String, CallError> {
        let (git, standing) = (self.git(), self.standing()?);
        let tree = self.files_as_they_are()?;
        let commit = git.line(&["commit-tree", &tree, "-p", &standing, "-m", message])?;
        git.run(&["update-ref", &format!("refs/onward/conference/{name}"), &commit])?;
        Ok(commit)
    }

    fn files_as_they_are(&self) -> Result<String, CallError> {
        let own = git_dir(&self.path);
        let missing = || CallError::new(format!("{} is not a worktree", self.path.display()));
        let index = own.ok_or_else(missing)?.join("onward-index");
        let git = self.git().with("GIT_INDEX_FILE", &index);
        git.run(&["read-tree", &self.standing()?])?;
        let add = ["add", "--all", "--ignore-errors", "."];
        if !is_all_but_unborn(&git.ask(&add, &[])?) {
            git.run(&add)?;
        }
        let tree = git.line(&["write-tree"])?;
        std::fs::remove_file(&index).map_err(CallError::io("remove", &index))?;
        Ok(tree)
    }

    /// The files of a saved state, over what the researcher stands on.
    pub(super) fn show(&self, commit: &str) -> Result<(), CallError> {
        self.restore()?;
        self.git().run(&["read-tree", "--reset", "-u", &format!("{commit}^{{tree}}")])?;
        Ok(())
    }

    /// The researcher stands on the saved state from now on. `mark` in the commit says so: called
    /// again, nothing happens.
    pub(super) fn keep(&self, saved: &str, subject: &str, mark: &str) -> Result<(), CallError> {
        let standing = self.standing()?;
        let told = self.repo.git().run(&["log", "-1", "--format=%B", &standing])?;
        let mark = format!("{MARK}{mark}");
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

/// Whether git took everything, or all but repositories without a commit, which it cannot hold.
/// Those stay where they are: a reset leaves them alone, too.
fn is_all_but_unborn(answer: &Answer) -> bool {
    let mut errors = answer.said.lines().filter(|line| line.starts_with("error:"));
    let is_unborn = |line: &str| line.ends_with("does not have a commit checked out");
    answer.code == Some(0) || answer.code == Some(1) && errors.all(is_unborn)
}

/// The name itself, then `NAME-2`, `NAME-3`, …
pub(super) fn names(path: &Path) -> impl Iterator<Item = PathBuf> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    };
    std::iter::once(path.to_owned()).chain((2..=u32::MAX).map(numbered))
}

/// A directory of ours that git is to pass over.
fn hide(dir: &Path) -> Result<(), CallError> {
    let ignore = dir.join(".gitignore");
    if ignore.exists() {
        return Ok(());
    }
    let made = std::fs::create_dir_all(dir).and_then(|()| open::put(&ignore, b"*\n", open::SHARED));
    made.map_err(CallError::io("make", &ignore))
}
