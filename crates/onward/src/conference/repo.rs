//! What a conference asks of git: branches, worktrees, and commits made without touching any tree.
//!
//! Invariant: the person's own branch, index and tree are left alone, except by the merge that a
//! person chose. Refs of ours are below `refs/onward/conference/`.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use onward_engine::dialects::{Branch, Git as Seen};
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

    fn branch(&self) -> String {
        format!("refs/heads/conference/researcher-{}", self.researcher)
    }

    /// What the researcher stands on, whatever an agent did to the branch since.
    fn standing_ref(&self) -> String {
        format!("refs/onward/conference/standing/{}", self.researcher)
    }

    fn git(&self) -> Git {
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
        // Of a git that was killed; nobody else works in this tree now.
        let lock = git.line(&["rev-parse", "--git-path", "index.lock"])?;
        let lock = self.path.join(lock);
        if lock.exists() {
            std::fs::remove_file(&lock).map_err(CallError::io("remove", &lock))?;
        }
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
    fn commits(&self) -> Result<Vec<String>, CallError> {
        let range = format!("{BEST}..{}", self.branch());
        let out = self.repo.git().run(&["rev-list", "--reverse", "--topo-order", &range])?;
        Ok(String::from_utf8_lossy(&out).lines().map(str::to_owned).collect())
    }
}

impl Repo {
    fn is_worktree(&self, path: &Path) -> Result<bool, CallError> {
        let out = self.git().run(&["worktree", "list", "--porcelain"])?;
        let line = format!("worktree {}", path.display());
        Ok(String::from_utf8_lossy(&out).lines().any(|it| it == line))
    }

    /// Gathers the commits of these researchers on conference/best, the first named first. Where
    /// two changed the same place of a file, the file stays as the earlier one left it. One move
    /// of one ref at the end: all of it happens, or nothing.
    pub(super) fn gather(&self, researchers: &[String]) -> Result<(), CallError> {
        let Some(before) = self.commit(BEST)? else { return Ok(()) };
        let mut best = before.clone();
        for researcher in researchers {
            for commit in Tree::of(self, researcher).commits()? {
                if !self.has_picked(&best, &commit)? {
                    best = self.picked(&best, &commit)?;
                }
            }
        }
        if best != before {
            self.git().run(&["update-ref", BEST, &best, &before])?;
        }
        Ok(())
    }

    fn has_picked(&self, best: &str, commit: &str) -> Result<bool, CallError> {
        let grep = format!("--grep=(cherry picked from commit {commit})");
        let args = ["log", "-1", "--format=%H", "--fixed-strings", &grep, best];
        Ok(!self.git().run(&args)?.is_empty())
    }

    /// `commit` on top of `best`, without any tree.
    fn picked(&self, best: &str, commit: &str) -> Result<String, CallError> {
        let parent = self.line(&["rev-parse", &format!("{commit}^")])?;
        let base = format!("--merge-base={parent}");
        let args = ["merge-tree", "--write-tree", "-z", "--name-only", &base, best, commit];
        let answer = self.git().ask(&args, &[])?;
        let mut parts = answer.out.split(|byte| *byte == 0);
        let text = |part: &[u8]| String::from_utf8_lossy(part).trim().to_owned();
        let tree = parts.next().map(text).filter(|it| !it.is_empty());
        let (Some(mut tree), Some(0 | 1)) = (tree, answer.code) else {
            return Err(CallError::new(format!("git merge-tree failed: {}", answer.said)));
        };
        if answer.code == Some(1) {
            let conflicts: Vec<String> = parts.map(text).take_while(|it| !it.is_empty()).collect();
            tree = self.with_paths_of(&tree, best, &conflicts)?;
        }
        let told = self.git().run(&["log", "-1", "--format=%B", commit])?;
        let told = String::from_utf8_lossy(&told).trim_end().to_owned();
        let message = format!("{told}\n(cherry picked from commit {commit})");
        self.line(&["commit-tree", &tree, "-p", best, "-m", &message])
    }

    /// The tree with these paths as `other` has them.
    fn with_paths_of(
        &self,
        tree: &str,
        other: &str,
        paths: &[String],
    ) -> Result<String, CallError> {
        let index = self.line(&["rev-parse", "--git-path", "onward-gather-index"])?;
        let index = self.dir.join(index);
        let git = self.git().with("GIT_INDEX_FILE", &index);
        git.run(&["read-tree", tree])?;
        for path in paths {
            let out = git.run(&["ls-tree", "--full-tree", other, "--", path])?;
            let entry = String::from_utf8_lossy(&out).into_owned();
            let remove = ["update-index", "--force-remove", "--", path];
            match entry.split_once('\t') {
                None => git.run(&remove)?,
                Some((head, _)) => {
                    let mut words = head.split(' ');
                    let (mode, id) = (words.next().unwrap_or_default(), words.nth(1));
                    let info = format!("{mode},{},{path}", id.unwrap_or_default());
                    git.run(&["update-index", "--add", "--cacheinfo", &info])?
                }
            };
        }
        let tree = git.line(&["write-tree"])?;
        std::fs::remove_file(&index).map_err(CallError::io("remove", &index))?;
        Ok(tree)
    }

    /// What a person chose at the end.
    pub(super) fn merge_best(&self) -> Result<(), CallError> {
        let answer = self.git().ask(&["merge", "--no-edit", "conference/best"], &[])?;
        if answer.code == Some(0) {
            return Ok(());
        }
        self.git().ask(&["merge", "--abort"], &[])?;
        let said = if answer.said.is_empty() { "there are conflicts" } else { &answer.said };
        Err(CallError::new(format!("conference/best cannot be merged: {said}"))
            .hint("merge it by hand, or commit what is in the way, then `onward resume`"))
    }

    pub(super) fn delete(&self, researchers: &[String]) -> Result<(), CallError> {
        for researcher in researchers {
            let tree = Tree::of(self, researcher);
            if tree.path.exists() {
                let args = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
                let args: Vec<&OsStr> = args.into_iter().chain([tree.path.as_os_str()]).collect();
                self.git().run(&args)?;
            }
            self.git().run(&["update-ref", "-d", &tree.branch()])?;
        }
        self.git().run(&["worktree", "prune"])?;
        self.git().run(&["update-ref", "-d", BEST])?;
        Ok(())
    }

    /// Lets go of what only a conference under way needs.
    pub(super) fn forget(&self) -> Result<(), CallError> {
        let places = ["refs/onward/conference/standing/", "refs/onward/conference/proposal/"];
        let args: Vec<&str> =
            ["for-each-ref", "--format=delete %(refname)"].into_iter().chain(places).collect();
        let out = self.git().run(&args)?;
        if !out.is_empty() {
            self.git().feed(&["update-ref", "--stdin"], &out)?;
        }
        Ok(())
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
