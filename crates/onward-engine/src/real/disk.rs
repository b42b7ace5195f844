//! Files of one run and its project, as the engine asks for them.
//!
//! Invariant: a write that did not take everything, or a sync that failed, comes back as
//! [`Stop::Io`] and is never tried again: what the disk holds then is for the next opening to find
//! out.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use super::appender::Appender;
use crate::{
    journal::JOURNAL,
    world::{At, Stop},
};

#[derive(Debug)]
pub(super) struct Disk {
    run_dir: PathBuf,
    project_dir: PathBuf,
    /// Open from the first append on: a reopened file would cost two calls a step.
    journal: Option<Appender>,
}

pub(crate) fn io_stop(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Stop {
    let path = path.display().to_string();
    move |source| Stop::Io { doing, path, source }
}

impl Disk {
    pub(super) fn new(run_dir: PathBuf, project_dir: PathBuf) -> Self {
        Self { run_dir, project_dir, journal: None }
    }

    pub(super) fn project_dir(&self) -> &Path {
        &self.project_dir
    }

    pub(super) fn path(&self, at: At<'_>) -> PathBuf {
        match at {
            At::Run(path) => self.run_dir.join(path),
            At::Project(path) => self.project_dir.join(path),
        }
    }

    pub(super) fn read(&self, at: At<'_>) -> Result<Option<Vec<u8>>, Stop> {
        let path = self.path(at);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(io_stop("read", &path)(error)),
        }
    }

    pub(super) fn write(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
        let path = self.path(at);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = open_with_parents(&path, &options)?;
        file.write_all(bytes).map_err(io_stop("write", &path))
    }

    pub(super) fn append(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
        let path = self.path(at);
        if at == At::Run(JOURNAL) {
            let journal = match &mut self.journal {
                Some(journal) => journal,
                none => none.insert(Appender::open(&path).map_err(io_stop("open", &path))?),
            };
            return journal.append(bytes).map_err(io_stop("append to", &path));
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        let mut file = open_with_parents(&path, &options)?;
        match file.write(bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err(io_stop("append to", &path)(ErrorKind::WriteZero.into())),
            Err(error) => Err(io_stop("append to", &path)(error)),
        }
    }

    pub(super) fn truncate(&mut self, at: At<'_>, length: u64) -> Result<(), Stop> {
        let path = self.path(at);
        if let (At::Run(JOURNAL), Some(journal)) = (at, &mut self.journal) {
            return journal.truncate(length).map_err(io_stop("cut", &path));
        }
        let file = OpenOptions::new().write(true).open(&path);
        file.and_then(|file| file.set_len(length)).map_err(io_stop("cut", &path))
    }

    pub(super) fn sync(&mut self, at: At<'_>) -> Result<(), Stop> {
        let path = self.path(at);
        if let (At::Run(JOURNAL), Some(journal)) = (at, &mut self.journal) {
            return journal.sync().map_err(io_stop("sync", &path));
        }
        File::open(&path).and_then(|file| file.sync_all()).map_err(io_stop("sync", &path))
    }

    /// What replaces a file keeps its permissions.
    pub(super) fn rename(&mut self, from: At<'_>, to: At<'_>) -> Result<(), Stop> {
        let (from, to) = (self.path(from), self.path(to));
        if let Ok(replaced) = fs::metadata(&to) {
            let permissions = replaced.permissions();
            fs::set_permissions(&from, permissions).map_err(io_stop("rename", &from))?;
        }
        match fs::rename(&from, &to) {
            Err(error) if error.kind() == ErrorKind::NotFound && from.exists() => {
                make_parents(&to)?;
                fs::rename(&from, &to).map_err(io_stop("rename", &from))
            }
            other => other.map_err(io_stop("rename", &from)),
        }
    }

    /// What is gone already need not be removed.
    pub(super) fn remove(&mut self, at: At<'_>) -> Result<(), Stop> {
        let path = self.path(at);
        match fs::remove_file(&path) {
            Err(error) if is_absence(&error) => Ok(()),
            other => other.map_err(io_stop("remove", &path)),
        }
    }

    pub(super) fn sync_dir(&mut self, at: At<'_>) -> Result<(), Stop> {
        let path = self.path(at);
        sync_dir(path.parent().unwrap_or(&path))
    }

    /// Gives back the room that the journal holds in advance.
    pub(super) fn close_journal(&mut self) -> Result<(), Stop> {
        let path = self.path(At::Run(JOURNAL));
        self.journal.take().map_or(Ok(()), Appender::close).map_err(io_stop("close", &path))
    }
}

fn is_absence(error: &io::Error) -> bool {
    // A directory is no file that could be read, and below a file there is none.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

pub(crate) fn sync_dir(dir: &Path) -> Result<(), Stop> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io_stop("sync", dir))
}

fn open_with_parents(path: &Path, options: &OpenOptions) -> Result<File, Stop> {
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make_parents(path)?;
            options.open(path).map_err(io_stop("open", path))
        }
        other => other.map_err(io_stop("open", path)),
    }
}

/// Makes the directories above `path`; each new name is durable.
pub(crate) fn make_parents(path: &Path) -> Result<(), Stop> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if parent.as_os_str().is_empty() || parent.is_dir() {
        return Ok(());
    }
    make_parents(parent)?;
    match fs::create_dir(parent) {
        Ok(()) => {}
        // Somebody was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(io_stop("make directory", parent)(error)),
    }
    parent.parent().map_or(Ok(()), sync_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(dir: &Path) -> Disk {
        fs::create_dir_all(dir.join("run")).unwrap();
        Disk::new(dir.join("run"), dir.to_owned())
    }

    #[test]
    fn a_file_is_made_with_its_directories_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(dir.path());
        let at = At::Project("deep/er/file");
        assert_eq!(disk.read(at).unwrap(), None);
        disk.write(at, b"one").unwrap();
        disk.append(at, b" two").unwrap();
        disk.sync(at).unwrap();
        disk.sync_dir(at).unwrap();
        assert_eq!(disk.read(at).unwrap().unwrap(), b"one two");
        disk.truncate(at, 3).unwrap();
        assert_eq!(disk.read(at).unwrap().unwrap(), b"one");
        assert_eq!(disk.read(At::Project("deep")).unwrap(), None, "a directory is no file");
        assert_eq!(disk.read(At::Project("deep/er/file/x")).unwrap(), None);
        disk.remove(at).unwrap();
        disk.remove(at).unwrap();
        assert_eq!(disk.read(at).unwrap(), None);
    }

    #[test]
    fn what_is_put_back_keeps_the_permissions_of_what_it_replaces() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(dir.path());
        let script = dir.path().join("script");
        fs::write(&script, "old").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
        disk.write(At::Project("new"), b"new").unwrap();
        disk.rename(At::Project("new"), At::Project("script")).unwrap();
        assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read(&script).unwrap(), b"new");
    }

    #[test]
    fn the_journal_grows_ahead_of_itself_and_gives_the_room_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(dir.path());
        let at = At::Run(JOURNAL);
        disk.append(at, b"one\n").unwrap();
        disk.sync(at).unwrap();
        let ahead = disk.read(at).unwrap().unwrap();
        assert!(ahead.starts_with(b"one\n\0") && ahead[4..].iter().all(|byte| *byte == 0));
        disk.append(at, b"two\n").unwrap();
        disk.close_journal().unwrap();
        assert_eq!(disk.read(at).unwrap().unwrap(), b"one\ntwo\n");
        disk.append(at, b"three\n").unwrap();
        disk.truncate(at, 4).unwrap();
        disk.append(at, b"four\n").unwrap();
        disk.close_journal().unwrap();
        assert_eq!(disk.read(at).unwrap().unwrap(), b"one\nfour\n");
    }
}
