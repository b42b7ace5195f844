//! Files of one run and its project, as the engine asks for them.
//!
//! Invariant: a write that did not take everything, or a sync that failed, comes back as
//! [`Stop::Io`] and is never tried again: what the disk holds then is for the next opening to find
//! out.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use onward_core::event::FileKind;

use super::appender::Appender;
use crate::world::{At, JOURNAL, Stop, files::NEW_SUFFIX};

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

    /// At most `bytes_max` of what stands at `offset` and after it.
    pub(super) fn read_from(
        &self,
        at: At<'_>,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Vec<u8>, Stop> {
        let path = self.path(at);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(error) => return Err(io_stop("read", &path)(error)),
        };
        let mut bytes = Vec::new();
        let length = file.seek(SeekFrom::Start(offset)).and_then(|_| {
            let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
            file.take(bytes_max).read_to_end(&mut bytes)
        });
        length.map_err(io_stop("read", &path))?;
        Ok(bytes)
    }

    /// Links lead where their content says.
    pub(super) fn make(&mut self, at: At<'_>, bytes: &[u8], kind: FileKind) -> Result<(), Stop> {
        let path = self.path(at);
        match kind {
            FileKind::Plain | FileKind::Executable => {
                // What is written must not go where a link leads.
                if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
                    fs::remove_file(&path).map_err(io_stop("remove", &path))?;
                }
                self.write(at, bytes)?;
                let found = fs::metadata(&path).map_err(io_stop("look at", &path))?;
                let mode = found.permissions().mode() & 0o777;
                let wanted = with_execution(mode, kind);
                if wanted == mode {
                    return Ok(());
                }
                let permissions = fs::Permissions::from_mode(wanted);
                fs::set_permissions(&path, permissions).map_err(io_stop("write", &path))
            }
            FileKind::Link => {
                make_parents(&path)?;
                self.remove(at)?;
                let target = OsStr::from_bytes(bytes);
                std::os::unix::fs::symlink(target, &path).map_err(io_stop("link", &path))
            }
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
        // A link has nothing but its name.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Ok(());
        }
        File::open(&path).and_then(|file| file.sync_all()).map_err(io_stop("sync", &path))
    }

    /// What replaces a file keeps its permissions, except whether it can be executed: that is part
    /// of what it is. An empty directory gives way.
    pub(super) fn rename(&mut self, from: At<'_>, to: At<'_>) -> Result<(), Stop> {
        let (from, to) = (self.path(from), self.path(to));
        let new = fs::symlink_metadata(&from).map_err(io_stop("rename", &from))?;
        if let Ok(replaced) = fs::symlink_metadata(&to)
            && replaced.is_file()
            && new.is_file()
        {
            let is_executable = new.permissions().mode() & 0o100 != 0;
            let kind = if is_executable { FileKind::Executable } else { FileKind::Plain };
            let mode = with_execution(replaced.permissions().mode(), kind);
            fs::set_permissions(&from, fs::Permissions::from_mode(mode))
                .map_err(io_stop("rename", &from))?;
        }
        // Fails on everything but an empty directory, which is what we want.
        let _ = fs::remove_dir(&to);
        match fs::rename(&from, &to) {
            Err(error) if error.kind() == ErrorKind::NotFound && from.exists() => {
                make_parents(&to)?;
                fs::rename(&from, &to).map_err(io_stop("rename", &from))
            }
            other => other.map_err(io_stop("rename", &from)),
        }
    }

    /// What is gone already need not be removed. As git does, directories of the project that this
    /// leaves empty go too.
    pub(super) fn remove(&mut self, at: At<'_>) -> Result<(), Stop> {
        let path = self.path(at);
        match fs::remove_file(&path) {
            Err(error) if is_absence(&error) => return Ok(()),
            other => other.map_err(io_stop("remove", &path))?,
        }
        let above = path.ancestors().skip(1).take_while(|dir| *dir != self.project_dir);
        for dir in above {
            let is_gone = matches!(at, At::Project(_)) && fs::remove_dir(dir).is_ok();
            if !is_gone {
                break;
            }
        }
        Ok(())
    }

    /// Of a directory that is gone, the nearest one above it.
    pub(super) fn sync_dir(&mut self, at: At<'_>) -> Result<(), Stop> {
        let path = self.path(at);
        let dir = path.ancestors().skip(1).find(|dir| dir.is_dir());
        sync_dir(dir.unwrap_or(&path))
    }

    /// Gives back the room that the journal holds in advance.
    pub(super) fn close_journal(&mut self) -> Result<(), Stop> {
        let path = self.path(At::Run(JOURNAL));
        self.journal.take().map_or(Ok(()), Appender::close).map_err(io_stop("close", &path))
    }
}

/// Whoever may read an executable file may execute it.
fn with_execution(mode: u32, kind: FileKind) -> u32 {
    let mode = mode & 0o777;
    match kind {
        FileKind::Executable => mode | ((mode & 0o444) >> 2),
        FileKind::Plain | FileKind::Link => mode & !0o111,
    }
}

fn is_absence(error: &io::Error) -> bool {
    // A directory is no file that could be read, and below a file there is none.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

pub(crate) fn sync_dir(dir: &Path) -> Result<(), Stop> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io_stop("sync", dir))
}

/// Replaces a small file: it is the new one, whole and durable, when this returns, and the old one
/// after a crash before that. The temporary name is the same at every try: nothing piles up.
pub(crate) fn replace_durably(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    let mut new = path.as_os_str().to_owned();
    new.push(NEW_SUFFIX);
    let new = PathBuf::from(new);
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&new, path)).map_err(io_stop("write", path))?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Adds to the end of a file, or makes it; durable when this returns.
pub(crate) fn append_durably(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(io_stop("append to", path))?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Waits until this process alone holds the directory; it does so while the file is open.
pub(crate) fn hold_dir(dir: &Path) -> Result<File, Stop> {
    let held = File::open(dir).map_err(io_stop("open", dir))?;
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive)
        .map_err(|error| io_stop("lock", dir)(error.into()))?;
    Ok(held)
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
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(dir.path());
        let script = dir.path().join("script");
        fs::write(&script, "old").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
        let mode = || fs::metadata(&script).unwrap().permissions().mode() & 0o777;
        for (kind, expected) in [(FileKind::Executable, 0o750), (FileKind::Plain, 0o640)] {
            disk.make(At::Project("new"), b"new", kind).unwrap();
            disk.rename(At::Project("new"), At::Project("script")).unwrap();
            assert_eq!(mode(), expected);
            assert_eq!(fs::read(&script).unwrap(), b"new");
        }
    }

    #[test]
    fn links_are_made_and_replaced_as_links() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(dir.path());
        fs::write(dir.path().join("target"), "precious").unwrap();
        let at = At::Project("deep/link");
        disk.make(at, b"../target", FileKind::Link).unwrap();
        disk.sync(at).unwrap();
        assert_eq!(fs::read_link(dir.path().join("deep/link")).unwrap(), Path::new("../target"));
        disk.make(at, b"plain", FileKind::Plain).unwrap();
        assert_eq!(fs::read(dir.path().join("target")).unwrap(), b"precious");
        assert_eq!(disk.read(at).unwrap().unwrap(), b"plain");
        disk.make(At::Project("new"), b"target", FileKind::Link).unwrap();
        disk.rename(At::Project("new"), at).unwrap();
        assert_eq!(fs::read_link(dir.path().join("deep/link")).unwrap(), Path::new("target"));
    }

    #[test]
    fn directories_that_an_undo_leaves_empty_go_and_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(dir.path());
        disk.write(At::Project("a/b/c"), b"1").unwrap();
        disk.write(At::Project("a/d"), b"2").unwrap();
        disk.remove(At::Project("a/b/c")).unwrap();
        disk.sync_dir(At::Project("a/b/c")).unwrap();
        assert!(!dir.path().join("a/b").exists() && dir.path().join("a/d").exists());
        fs::create_dir(dir.path().join("a/b")).unwrap();
        disk.write(At::Project("new"), b"3").unwrap();
        disk.rename(At::Project("new"), At::Project("a/b")).unwrap();
        assert_eq!(disk.read(At::Project("a/b")).unwrap().unwrap(), b"3");
        disk.write(At::Run("x/y"), b"4").unwrap();
        disk.remove(At::Run("x/y")).unwrap();
        assert!(dir.path().join("run/x").is_dir(), "only the project's");
        disk.remove(At::Project("a/d")).unwrap();
        disk.remove(At::Project("a/b")).unwrap();
        assert!(dir.path().is_dir() && !dir.path().join("a").exists());
    }

    #[test]
    fn a_small_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.md");
        for text in ["one", "two"] {
            replace_durably(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        append_durably(&path, b" three").unwrap();
        append_durably(&dir.path().join("log"), b"line").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two three");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
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
