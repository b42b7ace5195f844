//! The work on a task's branch, brought into the project by git alone.
//!
//! A worktree begins with the tree as it was, what was not committed included; what counts is what
//! the task changed since. That is merged with the tree as it is now, the result is kept under a
//! ref, written file by file, and committed. Invariant: the ref announces the merge before a file
//! changes, and each path is then either as it was or as it will be: cut short anywhere, it is
//! finished by a second call. Where both changed the same place nothing is touched, and the paths
//! are named.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use onward_core::address::Address;

use super::{Attempt, CallError};
use crate::world::{
    git::{ADD_ALL, Git, START, copy_index, trailers},
    open,
};

/// One task's work.
pub(super) struct Work<'a> {
    /// The dialect, whose name the announcing ref has.
    pub(super) system: &'a str,
    pub(super) task: &'a str,
    pub(super) branch: &'a str,
    pub(super) summary: &'a str,
    pub(super) run: &'a str,
    pub(super) step: Address,
    pub(super) attempt: u32,
    /// The system's own files, which are no work.
    pub(super) memory: PathBuf,
    /// What a file should hold of which two changed the same place, where the system knows it.
    pub(super) settle: &'a dyn Fn(&Torn<'_>) -> Option<String>,
}

/// A file that two changed in the same place.
pub(super) struct Torn<'a> {
    pub(super) path: PathBuf,
    pub(super) base: &'a str,
    pub(super) now: &'a str,
    pub(super) tip: &'a str,
}

struct Merge<'a> {
    work: &'a Work<'a>,
    top: PathBuf,
    git: Git,
    /// Where indexes of ours are made.
    scratch: PathBuf,
}

/// Merges, and gives the paths that two changed in the same place; none = it is all there.
pub(super) fn merge(attempt: &Attempt, work: &Work<'_>) -> Result<Vec<String>, CallError> {
    let here = Git::new(&attempt.project, &attempt.env);
    let top = PathBuf::from(here.line(&["rev-parse", "--show-toplevel"])?);
    let git_dir = here.line(&["rev-parse", "--absolute-git-dir"])?;
    let merge = Merge {
        work,
        git: Git::new(&top, &attempt.env),
        top,
        scratch: Path::new(&git_dir).join("onward-merge"),
    };
    merge.bring()
}

impl Merge<'_> {
    fn bring(&self) -> Result<Vec<String>, CallError> {
        let branch = format!("refs/heads/{}", self.work.branch);
        let Some(tip) = self.commit(&branch)? else { return Ok(Vec::new()) };
        fs::create_dir_all(&self.scratch).map_err(CallError::io("make", &self.scratch))?;
        let place = self.place();
        if let Some(announced) = self.commit(&place)? {
            let made_for = self.git.line(&["log", "-1", "--format=%B", &announced])?;
            if made_for.trim() == tip && self.apply(&announced)? {
                return self.finish(&announced);
            }
            // The branch went on, or a person changed a file meanwhile: merged again.
            self.git.run(&["update-ref", "-d", &place])?;
        }
        let base = self.base(&tip)?;
        if self.git.line(&["rev-parse", &format!("{base}^{{tree}}")])?
            == self.git.line(&["rev-parse", &format!("{tip}^{{tree}}")])?
        {
            return Ok(Vec::new());
        }
        let now = self.tree_as_it_is()?;
        let (mut tree, conflicts) = self.merged(&base, &now, &tip)?;
        if !conflicts.is_empty() {
            match self.settled(&tree, [&base, &now, &tip], &conflicts)? {
                Some(settled) => tree = settled,
                None => return Ok(conflicts),
            }
        }
        let announced =
            self.git.line(&["commit-tree", "--no-gpg-sign", &tree, "-p", &now, "-m", &tip])?;
        self.git.run(&["update-ref", &place, &announced])?;
        if !self.apply(&announced)? {
            return Err(CallError::new("a file changed while it was merged")
                .hint("`onward resume` merges again"));
        }
        self.finish(&announced)
    }

    fn place(&self) -> String {
        let Work { system, run, branch, .. } = self.work;
        let name = branch.rsplit('/').next().unwrap_or(branch);
        format!("refs/onward/{system}/{run}/{name}")
    }

    fn commit(&self, name: &str) -> Result<Option<String>, CallError> {
        let name = format!("{name}^{{commit}}");
        let answer = self.git.ask(&["rev-parse", "--verify", "--quiet", &name], &[])?;
        let text = String::from_utf8_lossy(&answer.out).trim().to_owned();
        Ok((answer.code == Some(0) && !text.is_empty()).then_some(text))
    }

    /// What the task began with: the first commit of its worktree, or where the branches part. Once
    /// the project's branch was merged into the task's, it is both: what was not committed at the
    /// beginning, on what was merged.
    fn base(&self, tip: &str) -> Result<String, CallError> {
        let start = self.start(tip)?;
        let met = self.git.ask(&["merge-base", "HEAD", tip], &[])?;
        let met = String::from_utf8_lossy(&met.out).trim().to_owned();
        match start {
            Some(start) if met.is_empty() || self.is_before(&met, &start)? => Ok(start),
            Some(start) => self.both(&start, &met),
            None if met.is_empty() => {
                let branch = self.work.branch;
                let message = format!("{branch} has no commit in common with the project");
                let hint = format!("`git merge {branch}` by hand, then `onward resume`");
                Err(CallError::new(message).hint(hint))
            }
            None => Ok(met),
        }
    }

    /// The commit with what was not committed when the worktree was made.
    fn start(&self, tip: &str) -> Result<Option<String>, CallError> {
        let mut args = vec!["log", "--reverse", "--first-parent", "--format=%H %s", tip];
        if self.commit("HEAD")?.is_some() {
            args.extend(["--not", "HEAD"]);
        }
        let out = self.git.run(&args)?;
        let out = String::from_utf8_lossy(&out).into_owned();
        let first = out.lines().next().and_then(|line| line.split_once(' '));
        Ok(first.filter(|(_, subject)| subject.contains(START)).map(|(id, _)| id.to_owned()))
    }

    fn is_before(&self, one: &str, other: &str) -> Result<bool, CallError> {
        let answer = self.git.ask(&["merge-base", "--is-ancestor", one, other], &[])?;
        Ok(answer.code == Some(0))
    }

    fn both(&self, start: &str, met: &str) -> Result<String, CallError> {
        let Some(before) = self.commit(&format!("{start}^"))? else { return Ok(met.to_owned()) };
        let (tree, conflicts) = self.merged(&before, start, met)?;
        if !conflicts.is_empty() {
            return Ok(met.to_owned());
        }
        let args = ["commit-tree", "--no-gpg-sign", &tree, "-p", met, "-m", "base"];
        Ok(self.git.line(&args)?)
    }

    /// Git with an index of our own, which begins as `tree`.
    fn with_index(&self, name: &str, tree: Option<&str>) -> Result<Git, CallError> {
        let index = self.scratch.join(name);
        for left in [index.clone(), index.with_added_extension("lock")] {
            let _ = fs::remove_file(left);
        }
        let git = self.git.clone().with("GIT_INDEX_FILE", &index);
        if let Some(tree) = tree {
            git.run(&["read-tree", tree])?;
        }
        Ok(git)
    }

    /// A commit of the tree as it is, what is not committed included.
    fn tree_as_it_is(&self) -> Result<String, CallError> {
        let head = self.commit("HEAD")?;
        let git = self.with_index("now", head.as_deref())?;
        git.run(&ADD_ALL)?;
        let tree = git.line(&["write-tree"])?;
        let mut args = vec!["commit-tree", "--no-gpg-sign", &tree, "-m", "now"];
        if let Some(head) = &head {
            args.extend(["-p", head]);
        }
        Ok(git.line(&args)?)
    }

    fn merged(&self, base: &str, now: &str, tip: &str) -> Result<(String, Vec<String>), CallError> {
        let base = format!("--merge-base={base}");
        let args = ["merge-tree", "--write-tree", "-z", "--name-only", &base, now, tip];
        let answer = self.git.ask(&args, &[])?;
        let mut parts = answer.out.split(|byte| *byte == 0);
        let text = |part: &[u8]| String::from_utf8_lossy(part).trim().to_owned();
        let tree = parts.next().map(text).filter(|it| !it.is_empty());
        let (Some(tree), Some(0 | 1)) = (tree, answer.code) else {
            return Err(CallError::new(format!("git merge-tree failed: {}", answer.said)));
        };
        let named = parts.map(text).take_while(|it| !it.is_empty());
        let conflicts = named.filter(|path| self.counts(path)).collect::<BTreeSet<String>>();
        let conflicts = if answer.code == Some(1) { conflicts } else { BTreeSet::new() };
        Ok((tree, conflicts.into_iter().collect()))
    }

    /// The tree with every conflict settled by the system's own rules; `None` where they do not
    /// settle one.
    fn settled(
        &self,
        tree: &str,
        [base, now, tip]: [&str; 3],
        conflicts: &[String],
    ) -> Result<Option<String>, CallError> {
        let git = self.with_index("settled", Some(tree))?;
        for path in conflicts {
            let text = |commit: &str| -> Result<Option<String>, CallError> {
                let object = format!("{commit}:{path}");
                let answer = self.git.ask(&["cat-file", "blob", &object], &[])?;
                Ok(String::from_utf8(answer.out).ok().filter(|_| answer.code == Some(0)))
            };
            let (Some(base), Some(theirs), Some(tip)) = (text(base)?, text(now)?, text(tip)?)
            else {
                return Ok(None);
            };
            let path_there = self.top.join(path);
            let torn = Torn { path: path_there, base: &base, now: &theirs, tip: &tip };
            let Some(text) = (self.work.settle)(&torn) else { return Ok(None) };
            let id = git.feed(&["hash-object", "-w", "--stdin"], text.as_bytes())?;
            let id = String::from_utf8_lossy(&id).trim().to_owned();
            let entry = format!("100644 {id}\t{path}\0");
            git.feed(&["update-index", "-z", "--index-info"], entry.as_bytes())?;
        }
        Ok(Some(git.line(&["write-tree"])?))
    }

    /// The system's own files and ours are no work of a task.
    fn counts(&self, path: &str) -> bool {
        let full = self.top.join(path);
        !full.starts_with(&self.work.memory) && !path.starts_with(".onward/")
    }

    /// What an announced merge changes.
    fn paths(&self, announced: &str) -> Result<Vec<String>, CallError> {
        let before = format!("{announced}^");
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", &before, announced];
        Ok(names(&self.git.run(&args)?).into_iter().filter(|it| self.counts(it)).collect())
    }

    /// Those of the paths that are not as a commit has them; one that is missing in both is.
    fn differing(
        &self,
        index: &str,
        commit: &str,
        paths: &[String],
    ) -> Result<BTreeSet<String>, CallError> {
        let git = self.with_index(index, None)?;
        git.feed(&["update-index", "-z", "--index-info"], &self.entries(commit, paths)?)?;
        git.ask(&["update-index", "-q", "--refresh"], &[])?;
        let changed = names(&git.run(&["diff-files", "-z", "--name-only"])?);
        let tracked: BTreeSet<String> = names(&git.run(&["ls-files", "-z"])?).into_iter().collect();
        let is_there = |path: &&String| self.top.join(path).symlink_metadata().is_ok();
        let extra = paths.iter().filter(|path| !tracked.contains(*path)).filter(is_there);
        Ok(changed.into_iter().chain(extra.cloned()).collect())
    }

    /// Brings every path to its new state; false when one is neither old nor new.
    fn apply(&self, announced: &str) -> Result<bool, CallError> {
        let paths = self.paths(announced)?;
        let old = self.differing("old", &format!("{announced}^"), &paths)?;
        let new = self.differing("new", announced, &paths)?;
        if paths.iter().any(|path| old.contains(path) && new.contains(path)) {
            return Ok(false);
        }
        let git = self.git.clone().with("GIT_INDEX_FILE", self.scratch.join("new"));
        let kept = names(&git.run(&["ls-files", "-z"])?);
        for path in paths.iter().filter(|path| new.contains(*path)) {
            if kept.contains(path) {
                self.put(&git, path)?;
            } else {
                let full = self.top.join(path);
                fs::remove_file(&full).map_err(CallError::io("remove", &full))?;
            }
        }
        Ok(true)
    }

    /// Brings a file to its new state at once: git writes it piece by piece, and one that is killed
    /// there would leave what is neither old nor new. So it writes elsewhere. Where that cannot
    /// take the place of what is there (a link or a directory is in the way, another file system),
    /// git does it by itself.
    fn put(&self, git: &Git, path: &str) -> Result<(), CallError> {
        let beside = self.scratch.join("new-files");
        let _ = fs::remove_dir_all(&beside);
        let prefix = format!("--prefix={}/", beside.display());
        let args = ["checkout-index", "--force", "--quiet", &prefix, "--", path];
        let is_put = git.run(&args).is_ok() && self.swap(&beside.join(path), path).is_ok();
        if !is_put {
            git.run(&["checkout-index", "--force", "--quiet", "--", path])?;
        }
        let _ = fs::remove_dir_all(&beside);
        Ok(())
    }

    fn swap(&self, made: &Path, path: &str) -> io::Result<()> {
        let mut dir = self.top.clone();
        let inner = Path::new(path).parent().into_iter().flat_map(Path::components);
        for part in inner {
            dir.push(part);
            match fs::symlink_metadata(&dir) {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&dir)?,
                Err(error) => return Err(error),
            }
        }
        if !fs::symlink_metadata(made)?.is_symlink() {
            open::named(made)?.sync_all()?;
        }
        fs::rename(made, self.top.join(path))
    }

    /// The commit on the user's branch, and the user's index, which knows of these paths alone.
    fn finish(&self, announced: &str) -> Result<Vec<String>, CallError> {
        let paths = self.paths(announced)?;
        let head = self.commit("HEAD")?;
        let git = self.with_index("commit", head.as_deref())?;
        let entries = self.entries(announced, &paths)?;
        git.feed(&["update-index", "-z", "--index-info"], &entries)?;
        let tree = git.line(&["write-tree"])?;
        let before = match &head {
            Some(head) => Some(self.git.line(&["rev-parse", &format!("{head}^{{tree}}")])?),
            None => None,
        };
        if before.as_ref() != Some(&tree) {
            let Work { task, summary, run, step, attempt, .. } = self.work;
            let title: String =
                summary.lines().next().unwrap_or_default().chars().take(60).collect();
            let message = format!("{task}: {title}\n\n{}", trailers(run, step, *attempt));
            let mut args = vec!["commit-tree", "--no-gpg-sign", &tree, "-m", &message];
            if let Some(head) = &head {
                args.extend(["-p", head]);
            }
            let made = self.git.line(&args)?;
            let old = head.unwrap_or_default();
            self.git.run(&["update-ref", "-m", "onward", "HEAD", &made, &old])?;
        }
        self.tell_index(&entries)?;
        self.git.run(&["update-ref", "-d", &self.place()])?;
        Ok(Vec::new())
    }

    /// The paths as `update-index --index-info` reads them; a mode of 0 takes one away.
    fn entries(&self, commit: &str, paths: &[String]) -> Result<Vec<u8>, CallError> {
        let mut all = Vec::new();
        for path in paths {
            let out = self.git.run(&["ls-tree", "-z", "--full-tree", commit, "--", path])?;
            let out = String::from_utf8_lossy(&out).into_owned();
            let head = out.split('\t').next().unwrap_or_default();
            let words: Vec<&str> = head.split(' ').collect();
            let entry = match words.as_slice() {
                [mode, _, id] => format!("{mode} {id}\t{path}\0"),
                // A path that is gone.
                _ => format!("0 {}\t{path}\0", "0".repeat(40)),
            };
            all.extend_from_slice(entry.as_bytes());
        }
        Ok(all)
    }

    /// A copy of the user's index learns of the paths and takes its place as a whole, so that no
    /// lock which a killed git left is in the way.
    fn tell_index(&self, entries: &[u8]) -> Result<(), CallError> {
        let own = self.git.line(&["rev-parse", "--git-path", "index"])?;
        let own = self.top.join(own);
        let copy = self.scratch.join("index");
        if !own.exists() {
            return Ok(());
        }
        copy_index(&own, &copy)?;
        let git = self.git.clone().with("GIT_INDEX_FILE", &copy);
        let _ = fs::remove_file(copy.with_added_extension("lock"));
        git.feed(&["update-index", "-z", "--index-info"], entries)?;
        git.ask(&["update-index", "-q", "--refresh"], &[])?;
        fs::rename(&copy, &own).map_err(CallError::io("replace", &own))
    }
}

fn names(out: &[u8]) -> Vec<String> {
    let parts = out.split(|byte| *byte == 0).filter(|it| !it.is_empty());
    parts.map(|it| String::from_utf8_lossy(it).into_owned()).collect()
}
