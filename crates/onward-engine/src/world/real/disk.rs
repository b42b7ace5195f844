//! Files of one run and its project, as the engine asks for them.
//!
//! Invariant: a write that did not take everything, or a sync that failed, comes back as
//! [`Stop::Io`] and is never tried again: what the disk holds then is for the next opening to find
//! out.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

use onward_core::event::FileKind;

use super::{
    appender::Appender,
    held::{self, Meanwhile},
};
use crate::world::{
    At, JOURNAL, Stop,
    files::NEW_SUFFIX,
    open::{self, To},
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
            At::Project(path) => self.project_dir.join(open::raw(path)),
        }
    }

    /// The same for changing what stands there: it must lie below its root.
    fn target(&self, at: At<'_>) -> Result<PathBuf, Stop> {
        let found = match at {
            At::Run(path) => open::beneath(&self.run_dir, path),
            At::Project(path) => match outside(path) {
                Some(path) => Ok(path.to_owned()),
                None => open::beneath(&self.project_dir, open::raw(path)),
            },
        };
        found.map_err(io_stop("use", &self.path(at)))
    }

    fn open(&self, at: At<'_>, to: To) -> io::Result<File> {
        match (at, to) {
            (At::Run(path), _) => open::own(&self.run_dir, path, to, open::PRIVATE),
            (At::Project(path), To::Read) => open::looked(&self.project_dir, path),
            (At::Project(path), To::Change | To::Write | To::Append | To::Make) => {
                match outside(path) {
                    Some(path) => open::at(path, to),
                    None => open::change(&self.project_dir, open::raw(path), to),
                }
            }
        }
    }

    fn open_with_parents(&self, at: At<'_>, to: To) -> Result<File, Stop> {
        let path = self.path(at);
        match self.open(at, to) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make_parents(&self.target(at)?)?;
                self.open(at, to).map_err(io_stop("open", &path))
            }
            other => other.map_err(io_stop("open", &path)),
        }
    }

    pub(super) fn read(&self, at: At<'_>) -> Result<Option<Vec<u8>>, Stop> {
        let most = match at {
            // Most attempts leave no result: that there is none is seen with one call.
            At::Run(_) if is_missing(&self.path(at)) => return Ok(None),
            At::Run(_) => open::LOG_BYTES_MAX,
            At::Project(_) => open::FILE_BYTES_MAX,
        };
        match self.open(at, To::Read).and_then(|file| open::all_of(file, most)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(io_stop("read", &self.path(at))(error)),
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
        let mut file = match self.open(at, To::Read) {
            Ok(file) => file,
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(error) => return Err(io_stop("read", &path)(error)),
        };
        let mut bytes = Vec::with_capacity(bytes_max.min(open::PIECE_BYTES));
        let length = file.seek(SeekFrom::Start(offset)).and_then(|_| {
            let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
            file.take(bytes_max).read_to_end(&mut bytes)
        });
        length.map_err(io_stop("read", &path))?;
        Ok(bytes)
    }

    /// Links lead where their content says.
    pub(super) fn make(&mut self, at: At<'_>, bytes: &[u8], kind: FileKind) -> Result<(), Stop> {
        let path = self.target(at)?;
        match kind {
            FileKind::Plain | FileKind::Executable => {
                // What is written must not go where a link leads, and into nothing but a file.
                if fs::symlink_metadata(&path).is_ok_and(|it| !it.is_file() && !it.is_dir()) {
                    fs::remove_file(&path).map_err(io_stop("remove", &path))?;
                }
                let mut file = self.open_with_parents(at, To::Write)?;
                let written = file.set_len(0).and_then(|()| file.write_all(bytes));
                written.map_err(io_stop("write", &path))?;
                let found = file.metadata().map_err(io_stop("look at", &path))?;
                let mode = found.permissions().mode() & 0o777;
                let wanted = with_execution(mode, kind);
                if wanted == mode {
                    return Ok(());
                }
                let permissions = fs::Permissions::from_mode(wanted);
                file.set_permissions(permissions).map_err(io_stop("write", &path))
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
        let mut file = self.open_with_parents(at, To::Write)?;
        let written = file.set_len(0).and_then(|()| file.write_all(bytes));
        written.map_err(io_stop("write", &self.path(at)))
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
        let mut file = self.open_with_parents(at, To::Append)?;
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
        let file = self.open(at, To::Change);
        file.and_then(|file| file.set_len(length)).map_err(io_stop("cut", &path))
    }

    pub(super) fn sync(&mut self, at: At<'_>) -> Result<(), Stop> {
        let path = self.path(at);
        if let (At::Run(JOURNAL), Some(journal)) = (at, &mut self.journal) {
            journal.sync().map_err(io_stop("sync", &path))?;
            if !journal.is_at(&path) {
                return Err(self.removed());
            }
            return Ok(());
        }
        // A link has nothing but its name.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Ok(());
        }
        self.open(at, To::Read).and_then(|file| file.sync_all()).map_err(io_stop("sync", &path))
    }

    /// A run that was moved under its driver lives on elsewhere: nothing is where it would look.
    pub(super) fn has_not_moved(&self) -> Result<(), Stop> {
        let path = self.path(At::Run(JOURNAL));
        let gone = self.journal.as_ref().filter(|it| !it.is_at(&path));
        match gone.and_then(Appender::dir_now) {
            Some(to) => Err(Stop::Moved { run_dir: self.run_dir.clone(), to }),
            None => Ok(()),
        }
    }

    /// The journal lies no longer where it did, and with it all of the run: what is known of it is
    /// kept beside the project, or where there is room.
    fn removed(&self) -> Stop {
        if let Err(moved) = self.has_not_moved() {
            return moved;
        }
        let content = self.journal.as_ref().map_or(Ok(Vec::new()), Appender::content);
        let run = self.run_dir.file_name().unwrap_or_default().to_string_lossy();
        let mut kept = None;
        if let Ok(bytes) = content {
            let beside = self.project_dir.parent();
            let mut places = beside.into_iter().chain([self.project_dir.as_path()]);
            kept = places.find_map(|place| {
                let dir = place.join(format!("onward-saved-{run}"));
                open::make_dir(&dir).ok()?;
                replace(&dir.join(JOURNAL), &bytes, open::PRIVATE).ok()?;
                Some(dir)
            });
        }
        Stop::Removed { run_dir: self.run_dir.clone(), kept }
    }

    /// What replaces a file keeps its permissions, except whether it can be executed: that is part
    /// of what it is. An empty directory gives way.
    pub(super) fn rename(&mut self, from: At<'_>, to: At<'_>) -> Result<(), Stop> {
        let (from, to) = (self.target(from)?, self.target(to)?);
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
        let path = self.target(at)?;
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

/// A user who may read an executable file may execute it.
fn with_execution(mode: u32, kind: FileKind) -> u32 {
    let mode = mode & 0o777;
    match kind {
        FileKind::Executable => mode | ((mode & 0o444) >> 2),
        FileKind::Plain | FileKind::Link => mode & !0o111,
    }
}

/// A link that leads nowhere is there.
fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn is_absence(error: &io::Error) -> bool {
    // A directory is no file that could be read, below a file there is none, and a name that no
    // file can have names none.
    use ErrorKind::{InvalidFilename, IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory | InvalidFilename)
}

/// A site of another system may lie outside of the project; its path is whole and climbs nowhere.
fn outside(path: &str) -> Option<&Path> {
    let climbs = |part: Component<'_>| part == Component::ParentDir;
    let path = Path::new(path);
    (path.is_absolute() && !path.components().any(climbs)).then_some(path)
}

pub(crate) fn sync_dir(dir: &Path) -> Result<(), Stop> {
    open::sync_dir(dir).map_err(io_stop("sync", dir))
}

/// Replaces a small file: it is the new one, whole and durable, when this returns, and the old one
/// after a crash before that. The temporary name is the same at every try: nothing piles up.
pub(crate) fn replace_durably(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    replace(path, bytes, open::PRIVATE).map_err(io_stop("write", path))
}

/// The same, for those who say themselves what failed.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(NEW_SUFFIX);
    let new = PathBuf::from(new);
    let mut file = open::make_at(&new, mode)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), open::sync_dir)
}

/// Adds to the end of a file, or makes it; durable when this returns.
pub(crate) fn append_durably(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    let written = open::at(path, To::Append).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(io_stop("append to", path))?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Waits until this process alone holds the directory; it does so while the file is open.
pub(crate) fn hold_dir(dir: &Path) -> Result<File, Stop> {
    let held = open::dir(dir).map_err(io_stop("open", dir))?;
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive)
        .map_err(|error| io_stop("lock", dir)(error.into()))?;
    Ok(held)
}

/// The same for a lock file of another system, which is made where it is missing and left there.
pub(crate) fn hold_file(
    dir: &Path,
    name: &str,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<File, Stop> {
    let (file, path) = (open::own(dir, name, open::To::Write, open::SHARED), dir.join(name));
    held::hold(file.map_err(io_stop("hold", &path))?, &path, meanwhile)
}

/// Makes the directories above `path`; each new name is durable. Those of ours are private.
pub(crate) fn make_parents(path: &Path) -> Result<(), Stop> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if parent.as_os_str().is_empty() || parent.is_dir() {
        return Ok(());
    }
    make_parents(parent)?;
    open::make_dir(parent).map_err(io_stop("make directory", parent))?;
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
