//! Where the repository of a tree is.

use crate::world::open;
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
    /// `None` where no repository has this directory in its tree. That takes no process, nor does
    /// the top of a plain repository.
    pub fn find(dir: &Path, env: &Env) -> Result<Option<Self>, GitError> {
        if !dir.ancestors().any(|above| above.join(".git").exists()) {
            return Ok(None);
        }
        if let Some(place) = plain_place(dir) {
            let (objects, index) = (place.join("objects"), place.join("index"));
            let (dir, env, prefix) = (dir.to_owned(), env.clone(), Vec::new());
            let common_dir = place;
            return Ok(Some(Self { dir, prefix, objects, index, common_dir, env, told: None }));
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

/// The directory of a repository that lies where it does by default: `.git` at its top, neither
/// bare nor a worktree, and no setting that says where its tree is. For all others git is asked.
fn plain_place(dir: &Path) -> Option<PathBuf> {
    let place = dir.join(".git");
    let is_plain = place.symlink_metadata().is_ok_and(|it| it.is_dir())
        && place.join("HEAD").is_file()
        && place.join("objects").is_dir()
        && !place.join("commondir").exists();
    let config =
        is_plain.then(|| open::text_named(&place.join("config"), open::SMALL_BYTES_MAX).ok())??;
    let config = config.to_ascii_lowercase();
    let count = |words: &str| config.matches(words).count();
    // An included file could say anything.
    let is_default = count("worktree") == 0 && count("include") == 0;
    (is_default && count("bare") == count("bare = false")).then_some(place)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::world::git::tests::{Bench, env};

    #[test]
    fn a_plain_repository_is_found_as_git_would() {
        let bench = Bench::new();
        let place = bench.root.join(".git");
        assert_eq!(plain_place(&bench.root), Some(place.clone()));
        let found = Repo::find(&bench.root, &env()).unwrap().unwrap();
        let out = Git::new(&bench.root, &env()).run(&ASKED).unwrap();
        let paths = [&found.common_dir, &found.objects, &found.index].map(|it| it.display());
        let [common_dir, objects, index] = paths;
        let told = format!("{common_dir}\n{objects}\n{index}\ntrue\n\n");
        assert_eq!(String::from_utf8(out).unwrap(), told);
        let config = place.join("config");
        let whole = fs::read_to_string(&config).unwrap();
        for setting in ["bare = true", "worktree = ../elsewhere", "[include] path = more"] {
            fs::write(&config, format!("{whole}[core] {setting}\n")).unwrap();
            assert_eq!(plain_place(&bench.root), None, "{setting}");
        }
        fs::write(&config, whole).unwrap();
        fs::create_dir(bench.root.join("below")).unwrap();
        assert_eq!(plain_place(&bench.root.join("below")), None);
    }
}
