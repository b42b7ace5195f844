//! The files of a foreign run as they were at one moment, and what git says about them.
//!
//! Invariant: plain data, gathered once by the engine. A dialect that looks twice sees the same.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, OnceLock},
};

use onward_core::time::Timestamp;

/// Everything a dialect is shown. Clones share the bytes, and what was worked out of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// By the number of the site's root, then by path below it.
    entries: Arc<BTreeMap<(usize, String), File>>,
    /// `None` where there is no repository.
    pub git: Option<Git>,
    /// Of the processes that the files name, those that are alive.
    pub alive: BTreeSet<u32>,
    /// What is there and was not read. Of these, files are there, and empty.
    pub unread: Vec<Unread>,
    worked_out: WorkedOut,
}

/// What a dialect made of these files, for the next one who asks. It says nothing that the files
/// do not say.
#[derive(Clone, Default)]
struct WorkedOut(Arc<OnceLock<Arc<dyn Any + Send + Sync>>>);

impl fmt::Debug for WorkedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkedOut").finish_non_exhaustive()
    }
}

impl PartialEq for WorkedOut {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for WorkedOut {}

/// A file, or a directory, of which nothing was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// As messages name it.
    pub path: String,
    pub why: Unreadable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    TooLarge,
    /// It is a link, or lies behind one that leads out of the run.
    Link,
    /// The run's own directory, or one around it, is a link that leads out of the project. What is
    /// in it was read; nothing is written there.
    Outside,
    /// The user has no right to read it.
    Forbidden,
    /// A directory, a pipe or the like where a file belongs.
    NoFile,
    /// A file where a directory belongs.
    NoDirectory,
    /// What is in the directory lies too deep below the run's own.
    TooDeep,
    /// The directory has more entries than are looked at.
    TooMany,
}

/// One file. Its path is the key it is kept under, relative to the run's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    pub modified: Option<Timestamp>,
}

/// What git says about the repository around the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Git {
    /// The branch that the project is on; `None` when its head is detached.
    pub branch: Option<String>,
    /// The commit that the project is on; `None` before the first one.
    pub head: Option<String>,
    /// What differs from that commit, as `git status --porcelain` tells it.
    pub changes: Vec<String>,
    /// By short name, such as `conference/best`.
    pub branches: BTreeMap<String, Branch>,
    pub worktrees: Vec<Worktree>,
    /// Of the commits that a site names, those that are not in the history of the head.
    pub missing: BTreeSet<String>,
    /// Files that a site wants to see as they were at a moment, from the last commit before it.
    pub then: BTreeMap<String, Vec<u8>>,
    /// What became of the files that a site watches, of those where something did.
    pub since: BTreeMap<String, Since>,
}

/// What became of a file since a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// Commits that changed it, newest first, in a few words each. Those of our own runs are left
    /// out.
    pub commits: Vec<String>,
    /// It differs from what is committed, or was never committed.
    pub is_dirty: bool,
    /// When it was last written; `None` where it is gone.
    pub modified: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    pub head: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worktree {
    pub path: String,
    /// `None` when its head is detached.
    pub branch: Option<String>,
    /// Its directory is gone.
    pub missing: bool,
    /// A rebase, merge or cherry-pick was left half way.
    pub unfinished: Option<String>,
    /// What differs from its head, untracked files included.
    pub changes: Vec<String>,
}

impl Files {
    pub fn insert(&mut self, path: impl Into<String>, file: File) {
        self.insert_in(0, path, file);
    }

    pub fn insert_in(&mut self, root: usize, path: impl Into<String>, file: File) {
        self.worked_out = WorkedOut::default();
        Arc::make_mut(&mut self.entries).insert((root, path.into()), file);
    }

    /// What `make` makes of all these files: the first time; then that again, also for clones.
    /// The files of many runs are often the same.
    pub(crate) fn worked_out<T: Any + Send + Sync>(&self, make: impl Fn(&Self) -> T) -> Arc<T> {
        let known = self.worked_out.0.get_or_init(|| Arc::new(make(self)));
        known.clone().downcast().unwrap_or_else(|_| Arc::new(make(self)))
    }

    pub fn remove(&mut self, path: &str) -> Option<File> {
        self.remove_in(0, path)
    }

    pub fn remove_in(&mut self, root: usize, path: &str) -> Option<File> {
        self.worked_out = WorkedOut::default();
        Arc::make_mut(&mut self.entries).remove(&(root, path.to_owned()))
    }

    pub fn contains(&self, path: &str) -> bool {
        self.file(path).is_some()
    }

    pub fn file(&self, path: &str) -> Option<&File> {
        self.file_in(0, path)
    }

    /// A file below another root of the site.
    pub fn file_in(&self, root: usize, path: &str) -> Option<&File> {
        self.entries.get(&(root, path.to_owned()))
    }

    pub fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.file(path).map(|file| file.bytes.as_slice())
    }

    /// Whether both were read while nothing was written: the same files with the same content, and
    /// the same heads. Times, living processes and uncommitted changes are no progress of a run.
    pub fn tell_the_same_as(&self, other: &Self) -> bool {
        let heads = |of: &Self| of.git.as_ref().map(|it| (it.head.clone(), it.branches.clone()));
        let mut pairs = self.entries.iter().zip(other.entries.iter());
        self.entries.len() == other.entries.len()
            && pairs.all(|(one, two)| one.0 == two.0 && one.1.bytes == two.1.bytes)
            && heads(self) == heads(other)
    }

    /// The files of the run's own root, in path order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        let own = self.entries.iter().take_while(|((root, _), _)| *root == 0);
        own.map(|((_, path), file)| (path.as_str(), file))
    }
}

impl<P: Into<String>, B: Into<Vec<u8>>> FromIterator<(P, B)> for Files {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> Self {
        let file = |bytes: B| File { bytes: bytes.into(), modified: None };
        let own = |(path, bytes): (P, B)| ((0, path.into()), file(bytes));
        let entries = files.into_iter().map(own).collect::<BTreeMap<_, _>>();
        Self { entries: Arc::new(entries), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_worked_out_is_shared_by_clones_until_a_file_changes() {
        let count = |files: &Files| files.iter().count();
        let mut files: Files = [("a", "1")].into_iter().collect();
        let first = files.worked_out(count);
        assert!(Arc::ptr_eq(&first, &files.clone().worked_out(count)));
        files.insert("b", File::default());
        assert_eq!(*files.worked_out(count), 2);
        files.remove("a");
        assert_eq!((*files.worked_out(count), *first), (1, 1));
    }
}
