//! Where the repository of a tree is.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::command::{Git, GitError};

/// The environment git is run in, as the program was started with it.
pub type Env = Vec<(OsString, OsString)>;

/// The repository that a directory's files belong to.
#[derive(Clone, Debug)]
pub struct Repo {
    /// The tree: all of the repository's, or a directory of it.
    pub(super) dir: PathBuf,
    /// What git puts before a path of ours: empty, or ends in a slash.
    pub(super) prefix: Vec<u8>,
    pub(super) objects: PathBuf,
    /// The person's own.
    pub(super) index: PathBuf,
    pub(super) common_dir: PathBuf,
    env: Env,
    /// Where git is told that the repository is; else it finds out.
    told: Option<PathBuf>,
}

const ASKED: [&str; 9] = [
    "rev-parse",
    "--path-format=absolute",
    "--git-common-dir",
    "--git-path",
    "objects",
    "--git-path",
    "index",
    "--is-inside-work-tree",
    "--show-prefix",
];

impl Repo {
    /// `None` where no repository has this directory in its tree. That takes no process.
    pub fn find(dir: &Path, env: &Env) -> Result<Option<Self>, GitError> {
        if !dir.ancestors().any(|above| above.join(".git").exists()) {
            return Ok(None);
        }
        let git = Git::new(dir, env);
        let out = git.run(&ASKED)?;
        let mut lines = out.split(|byte| *byte == b'\n');
        let mut line = || lines.next().ok_or_else(|| super::command::unclear(&ASKED));
        let [common_dir, objects, index] =
            [line()?, line()?, line()?].map(|it| PathBuf::from(OsStr::from_bytes(it)));
        if line()? != b"true" {
            return Ok(None);
        }
        let prefix = line()?.to_vec();
        let (dir, env) = (dir.to_owned(), env.clone());
        Ok(Some(Self { dir, prefix, objects, index, common_dir, env, told: None }))
    }

    /// The same repository, with the files of a worktree that git does not know any more. To look.
    #[must_use]
    pub fn with_tree(&self, dir: &Path) -> Self {
        let told = Some(self.common_dir.clone());
        let index = dir.join(".no-index");
        Self { dir: dir.to_owned(), prefix: Vec::new(), index, told, ..self.clone() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// For looking only: takes no lock, and writes nothing.
    pub(super) fn looking(&self) -> Git {
        self.plain().with("GIT_OPTIONAL_LOCKS", "0")
    }

    /// With the index of the tree itself: for worktrees of our own.
    pub(super) fn plain(&self) -> Git {
        let git = Git::new(&self.dir, &self.env);
        match &self.told {
            Some(place) => git.with("GIT_DIR", place).with("GIT_WORK_TREE", &self.dir),
            None => git,
        }
    }

    pub(super) fn in_dir(&self, dir: &Path) -> Git {
        Git::new(dir, &self.env)
    }

    /// For writing objects and refs of ours, by way of another index than the person's.
    pub(super) fn writing(&self, index: &Path) -> Git {
        self.plain().with("GIT_INDEX_FILE", index)
    }

    /// For working out a tree without leaving anything in the repository.
    pub(super) fn aside(&self, index: &Path, objects: &Path) -> Git {
        self.writing(index)
            .with("GIT_OBJECT_DIRECTORY", objects)
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.objects))
    }

    /// The path as we name it; `None` for what lies outside our tree.
    pub(super) fn ours<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        path.strip_prefix(self.prefix.as_slice()).filter(|path| !is_onward(path))
    }
}

/// Our own directory is never part of the work.
fn is_onward(path: &[u8]) -> bool {
    path.strip_prefix(b".onward").is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// A path in a list that is separated by colons.
fn quoted(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.contains(&b':') && !bytes.starts_with(b"\"") {
        return path.into();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        if b"\"\\".contains(byte) {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    OsStr::from_bytes(&quoted).to_owned()
}
