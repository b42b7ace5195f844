//! What a conference asks of git: its branches, and commits made without touching any tree.
//!
//! Invariant: the user's own branch, index and tree are left alone, except by the merge that the
//! user chose. Refs of ours are below `refs/onward/conference/`.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use onward_dialects::{Branch, Git as Seen};

use super::{CallError, Name, tree::Tree};
use crate::world::git::{Env, Git, ref_commit};

pub(super) const BEST: &str = "refs/heads/conference/best";

/// What a commit that we make for a researcher says of its iteration: `ROUND/RESEARCHER/NUMBER`.
pub(super) const MARK: &str = "Conference-Iteration: ";

/// A tree is about to go to `base`. Reviews have had all rounds before this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset<'a> {
    pub(super) base: &'a str,
    pub(super) round: u32,
}

/// A worktree besides the user's own.
#[derive(Clone, Debug)]
pub(super) struct Linked {
    pub(super) path: PathBuf,
    /// As a full ref; `None` when it is on none.
    pub(super) branch: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Repo {
    /// The conference's.
    pub(super) dir: PathBuf,
    /// What paths in git's answers are relative to, whenever it is asked there.
    top: PathBuf,
    pub(super) env: Env,
}

/// The branches of a conference, as a reader of its files needs them; `None` outside git.
pub(super) fn look(dir: &Path, env: &Env) -> Option<Seen> {
    let args =
        ["for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/conference/"];
    let out = Git::new(dir, env).run(&args).ok()?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    let branch = |(name, head): (&str, &str)| (name.to_owned(), Branch { head: head.to_owned() });
    let branches: BTreeMap<String, Branch> = pairs.map(branch).collect();
    Some(Seen { branches, ..Seen::default() })
}

impl Repo {
    /// The repository that a directory lies in.
    pub(super) fn of(dir: &Path, env: &Env) -> Result<Self, CallError> {
        let git = Git::new(dir, env);
        let top = git.ask(&["rev-parse", "--show-toplevel"], &[])?;
        if top.code != Some(0) {
            let message = format!("{} is not in a git repository", dir.display());
            return Err(CallError::new(message)
                .hint("researchers change code here, each in a worktree: `git init` and commit"));
        }
        let top = String::from_utf8_lossy(&top.out).trim_end_matches('\n').to_owned();
        Ok(Self { dir: dir.to_owned(), top: top.into(), env: env.clone() })
    }

    pub(super) fn git(&self) -> Git {
        Git::new(&self.dir, &self.env)
    }

    pub(super) fn line<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<String, CallError> {
        Ok(self.git().line(args)?)
    }

    /// The commit that the user's branch is at.
    pub(super) fn head(&self) -> Result<String, CallError> {
        self.commit("HEAD")?.ok_or_else(|| {
            CallError::new("the repository has no commit yet")
                .hint("commit what the researchers are to begin with")
        })
    }

    /// The commit that a name stands for, if there is one.
    pub(super) fn commit(&self, name: &str) -> Result<Option<String>, CallError> {
        // Most of what is asked for is a ref in a file of its own: no process is needed for it.
        if let Some(commit) = ref_commit(&self.dir, name) {
            return Ok(Some(commit));
        }
        let name = format!("{name}^{{commit}}");
        let answer = self.git().ask(&["rev-parse", "--verify", "--quiet", &name], &[])?;
        let text = String::from_utf8_lossy(&answer.out).trim().to_owned();
        Ok((answer.code == Some(0) && !text.is_empty()).then_some(text))
    }
}

impl Repo {
    /// The worktrees besides the user's own that are there. One that the conference lies in is
    /// the user's, too.
    pub(super) fn linked_trees(&self) -> Result<Vec<Linked>, CallError> {
        let out = self.git().run(&["worktree", "list", "--porcelain"])?;
        let text = String::from_utf8_lossy(&out).into_owned();
        let of = |told: &str| {
            let find = |key: &str| told.lines().find_map(|line| line.strip_prefix(key));
            let path = PathBuf::from(find("worktree ")?);
            Some(Linked { path, branch: find("branch ").map(str::to_owned) })
        };
        let linked = text.split("\n\n").skip(1).filter_map(of);
        let is_there = |it: &Linked| it.path.join(".git").is_file();
        Ok(linked.filter(is_there).filter(|it| !self.dir.starts_with(&it.path)).collect())
    }

    /// conference/best, made where there is none: where the researchers' branches part, as a round
    /// begins with all of them on it, or else at the user's commit.
    pub(super) fn best(&self, researchers: &[String]) -> Result<String, CallError> {
        if let Some(best) = self.commit(BEST)? {
            return Ok(best);
        }
        let head = self.head()?;
        let mut heads = Vec::new();
        for researcher in researchers {
            let researcher = Name::checked(researcher)?;
            heads.extend(self.commit(&format!("refs/heads/conference/researcher-{researcher}"))?);
        }
        if heads.len() < 2 {
            heads.push(head.clone());
        }
        let args = ["merge-base", "--octopus"].map(str::to_owned);
        let args: Vec<String> = args.into_iter().chain(heads).collect();
        let parting = self.git().ask(&args, &[])?;
        let parting = String::from_utf8_lossy(&parting.out).trim().to_owned();
        let at = if parting.is_empty() { head } else { parting };
        self.git().run(&["update-ref", BEST, &at])?;
        Ok(at)
    }

    /// The user committed since the conference began, and no researcher did anything yet: they
    /// begin at what the user's branch has now.
    pub(super) fn follow_user(&self, researchers: &[String]) -> Result<(), CallError> {
        let (Some(best), head) = (self.commit(BEST)?, self.head()?) else { return Ok(()) };
        let leads = ["merge-base", "--is-ancestor", &best, &head];
        if best == head || self.git().ask(&leads, &[])?.code != Some(0) {
            return Ok(());
        }
        for researcher in researchers {
            let tree = Tree::of(self, &Name::checked(researcher)?)?;
            if self.commit(&tree.branch())?.is_some_and(|at| at != best) {
                return Ok(());
            }
        }
        self.git().run(&["update-ref", BEST, &head])?;
        Ok(())
    }

    /// Whether a reset would lose a commit: one that `commit` leads to, that `base` neither has nor
    /// picked, and that no review has seen.
    pub(super) fn is_lost_without(&self, commit: &str, to: &Reset<'_>) -> Result<bool, CallError> {
        let out = self.git().run(&["rev-list", &format!("{}..{commit}", to.base)])?;
        for commit in String::from_utf8_lossy(&out).lines() {
            let round = self.round_of(commit)?;
            let is_reviewed = round.is_some_and(|round| round < to.round);
            if !is_reviewed && !self.has_picked(to.base, commit)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Of a commit that we made for a researcher.
    fn round_of(&self, commit: &str) -> Result<Option<u32>, CallError> {
        let told = self.git().run(&["log", "-1", "--format=%B", commit])?;
        let told = String::from_utf8_lossy(&told).into_owned();
        let mark = told.lines().find_map(|line| line.strip_prefix(MARK));
        Ok(mark.and_then(|mark| mark.split('/').next()?.parse().ok()))
    }

    /// Gathers the commits of these researchers on conference/best, the first named first. Where
    /// two changed the same place of a file, the file stays as the earlier one left it. One move
    /// of one ref at the end: all of it happens, or nothing.
    pub(super) fn gather(&self, before: &str, researchers: &[String]) -> Result<(), CallError> {
        let mut best = before.to_owned();
        for researcher in researchers {
            for commit in Tree::of(self, &Name::checked(researcher)?)?.commits()? {
                if !self.has_picked(&best, &commit)? {
                    best = self.picked(&best, &commit)?;
                }
            }
        }
        if best != before {
            self.git().run(&["update-ref", BEST, &best, before])?;
        }
        Ok(())
    }

    fn has_picked(&self, best: &str, commit: &str) -> Result<bool, CallError> {
        let grep = format!("--grep=(cherry picked from commit {commit})");
        let args = ["log", "-1", "--format=%H", "--fixed-strings", &grep, best];
        Ok(!self.git().run(&args)?.is_empty())
    }

    fn git_at_top(&self) -> Git {
        Git::new(&self.top, &self.env)
    }

    /// `commit` on top of `best`, without any tree.
    fn picked(&self, best: &str, commit: &str) -> Result<String, CallError> {
        let parent = self.line(&["rev-parse", &format!("{commit}^")])?;
        let base = format!("--merge-base={parent}");
        let args = ["merge-tree", "--write-tree", "-z", "--name-only", &base, best, commit];
        let answer = self.git_at_top().ask(&args, &[])?;
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
        let index = self.git_at_top().line(&["rev-parse", "--git-path", "onward-gather-index"])?;
        let index = self.top.join(index);
        let git = self.git_at_top().with("GIT_INDEX_FILE", &index);
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

    /// Merges conference/best into the user's branch, or leaves that branch as it was.
    pub(super) fn merge_best(&self) -> Result<(), CallError> {
        if self.commit(BEST)?.is_none() {
            let message = "there is no branch conference/best to merge";
            let hint = "`git branch conference/best COMMIT` makes it; then `onward resume`";
            return Err(CallError::new(message).hint(hint));
        }
        // The reflog tells the run that this step moved the branch, and no stranger.
        let git = self.git().signed(&self.env);
        let answer = git.ask(&["merge", "--no-edit", "conference/best"], &[])?;
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
            let tree = Tree::of(self, &Name::checked(researcher)?)?;
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

#[cfg(test)]
mod tests;
