//! The tree at one moment, as a commit on the run's own chain `refs/onward/<run>`; that of a
//! worktree is `refs/onward/<run>-worktree/<name>`.
//!
//! The index that is used is the run's own. It starts as a copy of the person's and is kept, so
//! that git's stat cache makes the next snapshot cost about as much as `git status`. Untracked
//! files are part of the tree, ignored ones are not, except the declared outputs; files over a
//! limit are left out and named.
//!
//! Invariant: a snapshot that was returned is durable. One at a time is taken of a run, by
//! whichever process, and what a killed one left half-done stands in the way of none.

use crate::world::open;
use std::{
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    panic::resume_unwind,
    path::{Path, PathBuf},
    thread,
};

use onward_core::name;

use super::{
    command::{Git, GitError},
    head::head,
    hidden::{LeftOut, uncover},
    repo::Repo,
};

/// Untracked files over this are left out.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// And so are further ones when all of them together are over this.
pub const ALL_BYTES_MAX: u64 = 1 << 30;

/// A snapshot that is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The commit.
    pub id: String,
    /// Paths that were left out, as they are too large or cannot be read.
    pub skipped: Vec<String>,
}

/// Where a run keeps what it needs to take snapshots of one tree. Each tree has a chain.
#[derive(Clone, Debug)]
pub struct Chain {
    repo: Repo,
    /// The run's own directory for this.
    dir: PathBuf,
    index: PathBuf,
    reference: String,
    /// What the references of rescues begin with.
    rescues: String,
}

/// The index that a run keeps for the tree of this name; there once a snapshot was taken of it.
pub fn index_of(dir: &Path, tree: &str) -> PathBuf {
    if tree.is_empty() { dir.join("index") } else { dir.join(format!("index-{tree}")) }
}

/// A tree that git knows, and what is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) id: String,
    pub(super) skipped: Vec<String>,
}

/// The newest commit of a chain.
#[derive(Clone, Debug)]
pub(super) struct Tip {
    pub(super) id: String,
    tree: String,
    pub(super) head: Option<String>,
}

/// Says that the commit's tree was looked at while the branch stood there.
const HEAD_TRAILER: &str = "Onward-Head: ";

impl Chain {
    /// `dir` is in the run's directory; `run` names the reference, `tree` the tree.
    pub fn new(repo: Repo, dir: &Path, run: &str, tree: &str) -> Self {
        let rescues = format!("refs/onward/{run}-rescue");
        let reference = if tree.is_empty() {
            format!("refs/onward/{run}")
        } else {
            format!("refs/onward/{run}-worktree/{tree}")
        };
        Self { repo, index: index_of(dir, tree), dir: dir.to_owned(), reference, rescues }
    }

    pub(super) fn repo(&self) -> &Repo {
        &self.repo
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn rescues(&self) -> &str {
        &self.rescues
    }

    /// The run's own, or the person's while there is none.
    pub(super) fn index_to_start_from(&self) -> &Path {
        if self.index.exists() { &self.index } else { &self.repo.index }
    }

    /// The sum at the end of an index takes longer than all else about writing one, and only onward
    /// reads this one: a torn one is made again.
    pub(super) fn git(&self) -> Git {
        self.git_with(&self.index)
    }

    fn git_with(&self, index: &Path) -> Git {
        self.repo.writing(index).set("index.skipHash=true")
    }

    /// Records the tree as it is now. The last snapshot is given again while nothing has changed.
    ///
    /// `title` is for people, such as `before draft, attempt 1`; `also` are paths that are part of
    /// the tree even if git ignores them.
    pub fn take(&self, title: &str, also: &[String]) -> Result<Taken, GitError> {
        let _lock = self.lock()?;
        // The one is asked while the other is still looking at the tree.
        let (tree, tip) = thread::scope(|scope| {
            let tip = scope.spawn(|| self.tip());
            (self.record(also), tip.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let (tree, tip) = (tree?, tip?);
        let head = head(&self.repo.dir).and_then(|it| it.head);
        if let Some(tip) = tip.as_ref().filter(|tip| tip.tree == tree.id && tip.head == head) {
            return Ok(Taken { id: tip.id.clone(), skipped: tree.skipped });
        }
        let parents: Vec<String> = tip.map(|tip| tip.id).into_iter().chain(head.clone()).collect();
        let mut message = format!("{title}\n");
        for skipped in &tree.skipped {
            message.push_str("\nleft out: ");
            message.push_str(skipped);
        }
        let git = self.git();
        let id = commit(&git, &tree.id, &parents, &message, head.as_deref())?;
        move_ref(&git, &self.reference, &id)?;
        Ok(Taken { id, skipped: tree.skipped })
    }

    /// One process at a time.
    pub(super) fn lock(&self) -> Result<File, GitError> {
        open::make_dir(&self.dir).map_err(GitError::io("make", &self.dir))?;
        let path = self.dir.join("lock");
        let file = open::at(&path, open::To::Write);
        let file = file.map_err(GitError::io("open", &path))?;
        file.lock().map_err(GitError::io("lock", &path))?;
        Ok(file)
    }

    /// Brings the run's index up to the tree, and the objects into the repository. An index that a
    /// power cut spoilt is made again.
    pub(super) fn record(&self, also: &[String]) -> Result<Tree, GitError> {
        let tree = self.record_anyhow(also)?;
        // git makes it for whom the user's mask says.
        match open::at(&self.index, open::To::Read) {
            Ok(index) => index.set_permissions(fs::Permissions::from_mode(open::PRIVATE)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(GitError::io("close to others", &self.index))?;
        Ok(tree)
    }

    fn record_anyhow(&self, also: &[String]) -> Result<Tree, GitError> {
        let git = self.git();
        let lock = self.index.with_added_extension("lock");
        remove_if_there(&lock)?;
        if self.index.exists()
            && let Ok(tree) = record(&self.repo, &git, also)
        {
            return Ok(tree);
        }
        self.begin()?;
        remove_if_there(&lock)?;
        record(&self.repo, &git, also)
    }

    /// The index starts as the person's, without the bits that hide files: the last step alone
    /// counts.
    fn begin(&self) -> Result<(), GitError> {
        let new = self.index.with_added_extension("new");
        remove_if_there(&new.with_added_extension("lock"))?;
        copy_index(&self.repo.index, &new)?;
        if !new.exists() {
            return remove_if_there(&self.index);
        }
        uncover(&self.repo.dir, &self.git_with(&new), LeftOut::Goes)?;
        fs::rename(&new, &self.index).map_err(GitError::io("rename", &new))
    }

    pub(super) fn tip(&self) -> Result<Option<Tip>, GitError> {
        const FORMAT: &str = "--format=%(objectname)%00%(tree)%00%(contents)%00";
        let git = self.repo.looking();
        let out = git.run(&["for-each-ref", FORMAT, &self.reference])?;
        let mut parts = out.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let (Some(id), Some(tree), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(None);
        };
        let (id, tree) = (id.into_owned(), tree.into_owned());
        Ok(Some(Tip { id, tree, head: head_in(&text) }))
    }
}

/// The branch's head while the tree of a snapshot's commit was looked at.
pub(super) fn head_in(message: &str) -> Option<String> {
    message.lines().find_map(|line| line.strip_prefix(HEAD_TRAILER)).map(str::to_owned)
}

pub(super) fn commit(
    git: &Git,
    tree: &str,
    parents: &[String],
    message: &str,
    head: Option<&str>,
) -> Result<String, GitError> {
    let mut args = vec!["commit-tree", "--no-gpg-sign", tree];
    for parent in parents {
        args.extend(["-p", parent]);
    }
    let head = head.map(|head| format!("\n{HEAD_TRAILER}{head}\n")).unwrap_or_default();
    let out = git.feed(&args, format!("onward: {}\n{head}", message.trim_end()).as_bytes())?;
    let id = String::from_utf8_lossy(&out).trim().to_owned();
    if id.is_empty() { Err(super::command::unclear(&args)) } else { Ok(id) }
}

/// The copy keeps the time of what it is a copy of: by that time git knows which files may have
/// been edited within the second in which they were added, and compares these byte by byte.
pub(crate) fn copy_index(from: &Path, to: &Path) -> Result<(), GitError> {
    let mut source = match open::named(from) {
        Ok(source) => source,
        // Nothing was ever added.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return remove_if_there(to),
        Err(error) => return Err(GitError::io("read", from)(error)),
    };
    let copied = open::make_at(to, open::PRIVATE).and_then(|mut copy| {
        io::copy(&mut source, &mut copy)?;
        copy.set_modified(source.metadata()?.modified()?)
    });
    copied.map_err(GitError::io("write", to))
}

pub(super) fn move_ref(git: &Git, name: &str, id: &str) -> Result<(), GitError> {
    git.run(&["update-ref", "-m", "onward", name, id]).map(drop)
}

pub(super) fn remove_if_there(path: &Path) -> Result<(), GitError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(GitError::io("remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What is different from the index: what `git status` looks for, too.
#[derive(Debug, Default)]
struct Moved {
    tracked: Vec<Vec<u8>>,
    untracked: Vec<Vec<u8>>,
}

/// Makes the index of `git` say what the tree is, and gives it as a tree.
pub(super) fn record(repo: &Repo, git: &Git, also: &[String]) -> Result<Tree, GitError> {
    let mut skipped = refresh(repo, git, &ADD)?;
    skipped.extend(include(repo, git, &ADD, also));
    let id = git.line(&["write-tree"])?;
    Ok(Tree { id, skipped })
}

/// Makes the index of `git` say what the tree is. Gives what is left out.
pub(super) fn refresh(repo: &Repo, git: &Git, add: &[&str]) -> Result<Vec<String>, GitError> {
    let moved = moved(repo, git)?;
    let mut budget = Budget::default();
    // A link took the place of their directory: git does not look for them behind it.
    let (gone, tracked): (Vec<&[u8]>, Vec<&[u8]>) =
        moved.tracked.iter().map(Vec::as_slice).partition(|it| link_above(&repo.dir, it).is_some());
    if !gone.is_empty() {
        git.feed(&FORGET, &list(&gone))?;
    }
    // What is gone makes room for what has taken its place.
    let mut paths = tracked;
    paths.extend(moved.untracked.iter().map(Vec::as_slice).filter(|it| budget.takes(repo, it)));
    if !paths.is_empty() {
        let many = (paths.len() > LOOSE_MAX).then(|| git.clone().set(IN_ONE_PACK));
        many.as_ref().unwrap_or(git).feed(add, &list(&paths))?;
    }
    Ok(budget.skipped)
}

/// Adds paths that are there, whether git ignores them or not. Gives what is left out.
pub(super) fn include(repo: &Repo, git: &Git, add: &[&str], also: &[String]) -> Vec<String> {
    let mut budget = Budget::default();
    let also: Vec<_> = also.iter().map(|path| name::bytes(path)).collect();
    let paths = also.iter().map(AsRef::as_ref);
    let there = paths.filter(|path| {
        let is_there = repo.dir.join(std::ffi::OsStr::from_bytes(path)).symlink_metadata().is_ok();
        is_there && budget.takes(repo, path)
    });
    let there: Vec<&[u8]> = there.collect();
    if !there.is_empty() && git.feed(add, &list(&there)).is_err() {
        // One of them lies where git does not go, such as behind a link. The others do not.
        for path in there {
            if git.feed(add, &list(&[path])).is_err() {
                budget.skipped.push(name::text(path));
            }
        }
    }
    budget.skipped
}

/// More objects than this go into one pack: a file of its own for each is synced one by one.
const LOOSE_MAX: usize = 64;
/// What is larger than this is written to a pack, and that of one command is one pack.
const IN_ONE_PACK: &str = "core.bigFileThreshold=1";

const ADD: [&str; 6] = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
/// The same without making an object: not even the time of one that is there changes.
pub(super) const NAME_ONLY: [&str; 7] =
    ["update-index", "--info-only", "--add", "--remove", "--replace", "-z", "--stdin"];

pub(super) const FORGET: [&str; 4] = ["update-index", "--force-remove", "-z", "--stdin"];

pub(super) fn list(paths: &[&[u8]]) -> Vec<u8> {
    paths.iter().flat_map(|path| [*path, b"\0"]).flatten().copied().collect()
}

/// The directory that a path names and that is a link to elsewhere: git looks behind none.
pub(crate) fn link_above<'p>(dir: &Path, path: &'p [u8]) -> Option<&'p Path> {
    let is_link = |it: &&Path| dir.join(it).symlink_metadata().is_ok_and(|it| it.is_symlink());
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty()).filter(is_link).last()
}

fn moved(repo: &Repo, git: &Git) -> Result<Moved, GitError> {
    const EDITED: [&str; 4] = ["diff-files", "--name-only", "-z", "--ignore-submodules=all"];
    const NEW: [&str; 8] = [
        "ls-files",
        "--others",
        "--exclude-standard",
        "--full-name",
        "-z",
        "--",
        ".",
        ":(exclude).onward",
    ];
    // Matching every path costs; at the top there is only our own directory to leave out, below.
    let new = if repo.prefix.is_empty() { &NEW[..5] } else { &NEW[..] };
    // `git status` does the one after the other.
    let (new, edited) = thread::scope(|scope| {
        let edited = scope.spawn(|| git.run(&EDITED));
        (git.run(new), edited.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    let ours = |out: Vec<u8>| -> Vec<Vec<u8>> {
        let paths = out.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        paths.filter_map(|path| repo.ours(path)).map(<[u8]>::to_vec).collect()
    };
    Ok(Moved { tracked: ours(edited?), untracked: ours(new?) })
}

/// How much of the untracked files is kept.
#[derive(Debug, Default)]
struct Budget {
    bytes: u64,
    skipped: Vec<String>,
}

impl Budget {
    fn takes(&mut self, repo: &Repo, path: &[u8]) -> bool {
        let full = repo.dir.join(std::ffi::OsStr::from_bytes(path));
        let Ok(found) = full.symlink_metadata() else { return false };
        let is_readable = found.is_symlink()
            || (found.is_file()
                && (found.permissions().mode() & 0o400 != 0
                    || rustix::fs::access(&full, rustix::fs::Access::READ_OK).is_ok()));
        let fits = found.len() <= FILE_BYTES_MAX && self.bytes + found.len() <= ALL_BYTES_MAX;
        // A repository of its own ends in a slash.
        if is_readable && fits && !path.ends_with(b"/") {
            self.bytes += found.len();
            return true;
        }
        self.skipped.push(name::text(path));
        false
    }
}
