//! The directory that the steps work in, and `.onward` in it.

use crate::world::open;
use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use onward_core::worktree::WORKTREES;

use crate::world::{Stop, real::disk};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// The nearest directory from `start` upwards with `.onward` or `.git` in it, else `start`.
    pub fn locate(start: &Path) -> io::Result<Self> {
        let start = fs::canonicalize(start)?;
        if let Some(root) = around_worktree(&start) {
            return Self { root }.without_links();
        }
        let is_project = |dir: &&Path| dir.join(".onward").is_dir() || dir.join(".git").exists();
        let root = start.ancestors().find(is_project).unwrap_or(&start).to_owned();
        Self { root }.without_links()
    }

    /// A checkout may have links where our directories should be; nothing of ours goes where they
    /// lead.
    fn without_links(self) -> io::Result<Self> {
        let worktrees = self.root.join(WORKTREES);
        for dir in [self.onward_dir(), self.runs_dir(), self.archive_dir(), worktrees] {
            open::no_link(&dir)?;
        }
        Ok(self)
    }

    /// The project that a run's directory lies in.
    pub fn of_run(run_dir: &Path) -> Option<Self> {
        let onward = run_dir.parent()?.parent()?;
        let root = onward.parent()?.to_owned();
        (onward.file_name()? == ".onward").then_some(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How the journal names a file: from the project's root, or whole when it lies elsewhere.
    pub fn relative(&self, file: &Path) -> String {
        let whole = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        whole.strip_prefix(&self.root).unwrap_or(&whole).to_string_lossy().into_owned()
    }

    pub fn onward_dir(&self) -> PathBuf {
        self.root.join(".onward")
    }

    pub fn runs_dir(&self) -> PathBuf {
        self.onward_dir().join("runs")
    }

    pub fn archive_dir(&self) -> PathBuf {
        self.onward_dir().join("archive")
    }

    /// Makes `.onward/runs`, hidden from git by a file of its own.
    pub(crate) fn prepare(&self) -> Result<(), Stop> {
        let ignore = self.onward_dir().join(".gitignore");
        disk::make_parents(&ignore)?;
        disk::make_parents(&self.runs_dir().join("x"))?;
        match open::own(&self.onward_dir(), ".gitignore", open::To::Make, open::SHARED) {
            Ok(mut file) => {
                let written = io::Write::write_all(&mut file, b"*\n");
                written.map_err(disk::io_stop("write", &ignore))
            }
            // A person may have another opinion.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(disk::io_stop("write", &ignore)(error)),
        }
    }
}

/// The project whose worktree, made for a step, `dir` lies in.
fn around_worktree(dir: &Path) -> Option<PathBuf> {
    let is_theirs = |above: &&Path| above.ends_with(WORKTREES);
    let worktrees = dir.ancestors().skip(1).find(is_theirs)?;
    let root = worktrees.parent()?.parent()?;
    root.join(".onward/runs").is_dir().then(|| root.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_the_nearest_directory_with_a_mark() {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        let at = |path: &str| Project::locate(&top.join(path)).unwrap().root;
        fs::create_dir_all(top.join("repo/.git")).unwrap();
        fs::create_dir_all(top.join("repo/a/b/.onward")).unwrap();
        fs::create_dir_all(top.join("repo/a/b/c")).unwrap();
        assert_eq!(at("repo/a"), top.join("repo"));
        assert_eq!(at("repo/a/b/c"), top.join("repo/a/b"));
        fs::create_dir_all(top.join("repo/.onward/runs")).unwrap();
        let inside = top.join("repo/.onward/worktrees/r-1/draft/deep");
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("../.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(Project::locate(&inside).unwrap().root, top.join("repo"));
        let run = top.join("repo/.onward/runs/r-1");
        assert_eq!(Project::of_run(&run).unwrap().root, top.join("repo"));
        assert_eq!(Project::of_run(&top.join("repo/a")), None);
    }

    #[test]
    fn the_store_hides_itself_from_git_and_leaves_an_opinion_alone() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().to_owned() };
        project.prepare().unwrap();
        let ignore = dir.path().join(".onward/.gitignore");
        assert_eq!(fs::read_to_string(&ignore).unwrap(), "*\n");
        fs::write(&ignore, "mine\n").unwrap();
        project.prepare().unwrap();
        assert_eq!(fs::read_to_string(&ignore).unwrap(), "mine\n");
        assert!(project.runs_dir().is_dir());
    }
}
