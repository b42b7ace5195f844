//! The files that this command's own words go to.
//!
//! Invariant: a log that a person's shell made for the command (`onward resume >log.txt`) is no
//! work of a step and no edit of a person, whichever name it has in the project.

use std::{
    fs,
    io::{stderr, stdout},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, fstat};

use crate::world::open;

pub(super) struct Said {
    project: PathBuf,
    /// Device and number of each.
    files: Vec<(u64, u64)>,
}

impl Said {
    pub(super) fn here(project: &Path) -> Self {
        let files = [file_of(stdout()), file_of(stderr())].into_iter().flatten().collect();
        Self { project: project.to_owned(), files }
    }

    /// Whether a path of the project is one of them.
    pub(super) fn is_in(&self, path: &str) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        !self.files.is_empty()
            && fs::symlink_metadata(self.project.join(open::raw(path)))
                .is_ok_and(|it| self.files.contains(&(it.dev(), it.ino())))
    }
}

/// Nothing for a terminal, a pipe or the like.
fn file_of(stream: impl AsFd) -> Option<(u64, u64)> {
    let found = fstat(stream).ok()?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    is_file.then_some((found.st_dev, found.st_ino))
}
