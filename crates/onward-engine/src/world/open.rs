//! The one opener: every file that onward reads or writes is opened here.
//!
//! A checkout is a stranger's. Where a file of ours should be, there may be a link to the person's
//! own files, a FIFO that nothing ever writes to, or a device without an end.
//!
//! Invariant: what is opened is a regular file, below the root that was named, and it is as it was:
//! opening never cuts it, never waits and never leads elsewhere. Reading is bounded.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStringExt as _,
            fs::{DirBuilderExt as _, OpenOptionsExt as _},
        },
    },
    path::{Component, Path, PathBuf},
};

use onward_core::{name, workflow::TEXT_BYTES_MAX};
use rustix::{
    fs::{Mode, OFlags, ResolveFlags},
    io::Errno,
};

/// A file of another program or a prompt may be this large.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// A small file of ours, such as a lock or a note, may be this large.
pub const SMALL_BYTES_MAX: u64 = 16 << 20;
/// A journal or a log of seals may be this large.
pub const LOG_BYTES_MAX: u64 = 8 << 30;
/// What is only compared or summed is read in pieces of this size.
pub const PIECE_BYTES: usize = 256 << 10;

/// What reading a workflow takes for each byte of its text, at the most that was seen.
const MEMORY_PER_TEXT_BYTE: u64 = 96;

/// A workflow may be so large that reading it fills no more than the memory that is free.
pub fn text_bytes_max() -> u64 {
    let known = text_named(Path::new("/proc/meminfo"), SMALL_BYTES_MAX).ok();
    let free_kb = known.as_deref().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    let most = free_kb.map_or(0, |kb| kb.saturating_mul(1024) / MEMORY_PER_TEXT_BYTE);
    most.max(TEXT_BYTES_MAX as u64)
}

/// For the files of a run: they are this user's alone.
pub const PRIVATE: u32 = 0o600;
const PRIVATE_DIR: u32 = 0o700;
const SHARED_DIR: u32 = 0o777;
/// For files of the project: as the person's umask has it.
pub const SHARED: u32 = 0o666;

/// How a file is opened. It is made where it is missing, unless it is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Read,
    /// Where it is missing, that is an error.
    Change,
    Write,
    Append,
    /// A new one; whatever stands there under the name is in the way.
    Make,
}

impl To {
    fn flags(self) -> OFlags {
        let how = match self {
            Self::Read => OFlags::RDONLY,
            Self::Change => OFlags::RDWR,
            Self::Write => OFlags::RDWR | OFlags::CREATE,
            Self::Append => OFlags::RDWR | OFlags::CREATE | OFlags::APPEND,
            Self::Make => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        // A FIFO is opened at once, and then seen not to be a file.
        how | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY
    }
}

/// A file of ours: no part of its name below the root may be a link.
pub fn own(root: &Path, name: impl AsRef<Path>, to: To, mode: u32) -> io::Result<File> {
    let name = name.as_ref();
    inside(name)?;
    let dir = dir_of(root)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let created = match to {
        To::Write | To::Append | To::Make => Mode::from_raw_mode(mode),
        To::Read | To::Change => Mode::empty(),
    };
    let opened = match rustix::fs::openat2(&dir, name, to.flags(), created, resolve) {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => walk(dir, name, to.flags(), created),
        other => other,
    };
    regular(opened.map_err(explained)?.into())
}

/// A file of the project, for reading: links may lead about in the project, not out of it.
pub fn project(root: &Path, name: impl AsRef<Path>) -> io::Result<File> {
    let name = name.as_ref();
    inside(name)?;
    let dir = dir_of(root)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(&dir, name, To::Read.flags(), Mode::empty(), resolve) {
        Ok(file) => regular(file.into()),
        // A link with a whole path may still lead back into the project.
        Err(Errno::XDEV | Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
            let root = fs::canonicalize(root)?;
            let found = fs::canonicalize(root.join(name))?;
            match found.strip_prefix(&root) {
                Ok(name) => own(&root, name, To::Read, 0),
                Err(_) => Err(leads_out()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// A file that a workflow names, to be looked at: below the project only in it, elsewhere as named.
pub fn looked(root: &Path, path: &str) -> io::Result<File> {
    let path = raw(path);
    if inside(&path).is_ok() { project(root, path) } else { named(&path) }
}

/// The name of a file of the project that a text stands for.
pub fn raw(text: &str) -> Cow<'_, Path> {
    match name::bytes(text) {
        Cow::Borrowed(_) => Cow::Borrowed(Path::new(text)),
        Cow::Owned(bytes) => Cow::Owned(PathBuf::from(OsString::from_vec(bytes))),
    }
}

/// A file of the project, for changing: links in the directories above it may lead about in the
/// project, its own name is no link.
pub fn change(root: &Path, name: impl AsRef<Path>, to: To) -> io::Result<File> {
    let path = beneath(root, name)?;
    let (dir, name) = split(&path)?;
    let (root, dir) = (fs::canonicalize(root)?, fs::canonicalize(dir)?);
    let below = dir.strip_prefix(&root).map_err(|_| leads_out())?;
    own(&root, below.join(name), to, SHARED)
}

/// The path of a name, if the directories above it, as far as they are there, lie below the root.
pub fn beneath(root: &Path, name: impl AsRef<Path>) -> io::Result<PathBuf> {
    let name = name.as_ref();
    inside(name)?;
    let path = root.join(name);
    let above = path.ancestors().skip(1).find_map(|dir| fs::canonicalize(dir).ok());
    match above {
        Some(above) if above.starts_with(fs::canonicalize(root)?) => Ok(path),
        Some(_) | None => Err(leads_out()),
    }
}

/// A file that a person named, or that another program keeps at a place of its own: links are
/// theirs to follow.
pub fn named(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    regular(options.read(true).custom_flags(flags).open(path)?)
}

/// The whole content of a file, if it is no larger than that.
pub fn all_of(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let too_large = || {
        let mib = bytes_max >> 20;
        io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {mib} MiB"))
    };
    if length > bytes_max {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_large()) } else { Ok(bytes) }
}

/// Whether two files, each from where it stands, hold the same bytes; a piece of each at a time.
pub fn are_the_same(mut one: &File, mut other: &File) -> io::Result<bool> {
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut piece, mut beside) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        let read = one.read(&mut piece)?;
        if read == 0 {
            return Ok(other.read(&mut beside[..1])? == 0);
        }
        let is_there = other.read_exact(&mut beside[..read]).is_ok();
        if !is_there || piece[..read] != beside[..read] {
            return Ok(false);
        }
    }
}

/// The content of a file of ours.
pub fn read_own(root: &Path, name: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    all_of(own(root, name, To::Read, 0)?, bytes_max)
}

/// The content of a file of ours of which the whole path is known. Its directory is the root.
pub fn read_at(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    all_of(at(path, To::Read)?, bytes_max)
}

/// A file of ours of which the whole path is known. Its directory is the root.
pub fn at(path: &Path, to: To) -> io::Result<File> {
    let (dir, name) = split(path)?;
    own(dir, name, to, PRIVATE)
}

/// The content of a file that a person named.
pub fn read_named(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    all_of(named(path)?, bytes_max)
}

/// No more than its beginning.
pub fn head_of(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    named(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same, as text.
pub fn text_named(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read_named(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// The text of a file with settings. A project's is a checkout's: a link in its place would show
/// what it leads to. The user's own may be one.
pub fn settings(path: &Path) -> io::Result<String> {
    if path.parent().is_some_and(|dir| dir.ends_with(".onward")) {
        no_link(path)?;
    }
    text_named(path, SMALL_BYTES_MAX)
}

/// A new file at the place of whatever had the name, which is a temporary one of ours.
pub fn make_at(path: &Path, mode: u32) -> io::Result<File> {
    let (dir, name) = split(path)?;
    match own(dir, name, To::Make, mode) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            own(dir, name, To::Make, mode)
        }
        other => other,
    }
}

/// Writes a whole file; what it held before is gone.
pub fn put(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (dir, name) = split(path)?;
    let mut file = own(dir, name, To::Write, mode)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

/// A file that is not there yet.
pub fn new(path: &Path, mode: u32) -> io::Result<File> {
    let (dir, name) = split(path)?;
    own(dir, name, To::Make, mode)
}

/// A file in `dir` that has no name and is gone when it is closed.
pub fn unnamed(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(PRIVATE))?))
}

/// Copies a regular file with its permissions.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = named(from)?;
    let permissions = source.metadata()?.permissions();
    let mut copy = make_at(to, PRIVATE)?;
    io::copy(&mut source, &mut copy)?;
    copy.set_permissions(permissions)
}

/// A directory, made where it is missing; below `.onward` for this user alone. A link is none.
pub fn make_dir(path: &Path) -> io::Result<()> {
    let is_ours = path.components().any(|part| part.as_os_str() == ".onward");
    let mode = if is_ours { PRIVATE_DIR } else { SHARED_DIR };
    match fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_dir(path) => Ok(()),
        other => other,
    }
}

/// What is ours is no link: whatever is written, renamed or moved below it would be so elsewhere.
pub fn no_link(path: &Path) -> io::Result<()> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if is_link { Err(link_instead(path)) } else { Ok(()) }
}

/// The same of a directory and of every name in it. One that is missing has none.
pub fn no_links_in(dir: &Path) -> io::Result<()> {
    no_link(dir)?;
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            return Err(link_instead(&entry.path()));
        }
    }
    Ok(())
}

fn link_instead(path: &Path) -> io::Error {
    let why = format!("a link stands where onward keeps what is its own: {}", path.display());
    io::Error::other(why)
}

/// Whether there is a directory, and no link to one.
pub fn is_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// A directory, open; a lock on it keeps others out.
pub fn dir(path: &Path) -> io::Result<File> {
    Ok(dir_of(path)?.into())
}

fn split(path: &Path) -> io::Result<(&Path, &Path)> {
    let name = path.file_name().map(Path::new);
    let dir =
        path.parent().map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
    dir.zip(name).ok_or_else(|| io::Error::from(ErrorKind::IsADirectory))
}

fn dir_of(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(root, flags, Mode::empty())?)
}

/// A relative name that does not climb.
fn inside(name: &Path) -> io::Result<()> {
    let mut parts = name.components().peekable();
    let is_empty = parts.peek().is_none();
    if !is_empty && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(());
    }
    let why = format!("`{}` leads out of its directory", name.display());
    Err(io::Error::new(ErrorKind::InvalidInput, why))
}

fn explained(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("a link stands where a file of onward should be"),
        Errno::XDEV => leads_out(),
        // A FIFO without a reader, or a socket.
        Errno::NXIO => not_a_file(),
        other => other.into(),
    }
}

fn leads_out() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it leads out of its directory")
}

fn not_a_file() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}

fn regular(file: File) -> io::Result<File> {
    let found = file.metadata()?;
    if found.is_file() {
        Ok(file)
    } else if found.is_dir() {
        Err(ErrorKind::IsADirectory.into())
    } else {
        Err(not_a_file())
    }
}

/// The same as `openat2` with everything forbidden, for kernels that do not have it.
fn walk(mut dir: OwnedFd, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rustix::fs::openat(&dir, part.as_os_str(), flags | OFlags::NOFOLLOW, mode);
        }
        let step = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        dir = match rustix::fs::openat(&dir, part.as_os_str(), step, Mode::empty()) {
            Err(Errno::NOTDIR) if is_link(&dir, part.as_os_str()) => return Err(Errno::LOOP),
            other => other?,
        };
    }
    Err(Errno::ISDIR)
}

fn is_link(dir: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let found = rustix::fs::statat(dir, name, flags);
    found.is_ok_and(|it| rustix::fs::FileType::from_raw_mode(it.st_mode).is_symlink())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    type Opener = fn(&Path, &str, To) -> io::Result<File>;

    fn walked(root: &Path, name: &str, to: To) -> io::Result<File> {
        inside(Path::new(name))?;
        let mode = Mode::from_raw_mode(PRIVATE);
        let opened = walk(dir_of(root)?, Path::new(name), to.flags(), mode);
        regular(opened.map_err(explained)?.into())
    }

    fn direct(root: &Path, name: &str, to: To) -> io::Result<File> {
        own(root, name, to, PRIVATE)
    }

    #[test]
    fn two_files_are_compared_to_their_ends() {
        let dir = tempfile::tempdir().unwrap();
        let same = |one: &[u8], other: &[u8]| {
            let paths = ["one", "other"].map(|name| dir.path().join(name));
            fs::write(&paths[0], one).unwrap();
            fs::write(&paths[1], other).unwrap();
            let [one, other] = paths.map(|path| named(&path).unwrap());
            are_the_same(&one, &other).unwrap()
        };
        for length in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            assert!(same(&bytes, &bytes), "{length}");
            assert!(!same(&bytes, &[&bytes[..], b"x"].concat()), "{length}");
            for at in [0, length / 2, length.saturating_sub(1)] {
                let mut spoilt = bytes.clone();
                if let Some(byte) = spoilt.get_mut(at) {
                    *byte ^= 1;
                    assert!(!same(&bytes, &spoilt), "{length}, at {at}");
                }
            }
        }
    }

    #[test]
    fn nothing_but_a_regular_file_below_the_root_is_opened_with_either_call() {
        for opener in [direct as Opener, walked] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("root");
            fs::create_dir_all(root.join("deep")).unwrap();
            fs::write(dir.path().join("precious"), "mine").unwrap();
            fs::create_dir(dir.path().join("other")).unwrap();
            symlink("../precious", root.join("link")).unwrap();
            symlink("../other", root.join("out")).unwrap();
            symlink("kept", root.join("inside")).unwrap();
            fs::write(root.join("kept"), "kept").unwrap();
            let fifo = root.join("fifo");
            let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
            assert!(made.success());
            for to in [To::Read, To::Change, To::Write, To::Append] {
                for name in ["link", "out/x", "inside", "fifo", "deep", "../precious", "", "/etc"] {
                    assert!(opener(&root, name, to).is_err(), "{name} {to:?}");
                }
            }
            assert_eq!(fs::read(dir.path().join("precious")).unwrap(), b"mine");
            assert_eq!(fs::read_dir(dir.path().join("other")).unwrap().count(), 0);
            let file = opener(&root, "deep/new", To::Write).unwrap();
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            assert!(opener(&root, "kept", To::Make).is_err());
            for to in [To::Read, To::Change, To::Write, To::Append] {
                let length = opener(&root, "kept", to).unwrap().metadata().unwrap().len();
                assert_eq!(length, 4, "opening cuts nothing");
            }
            assert!(
                opener(&root, "missing", To::Change).is_err() && !root.join("missing").exists()
            );
        }
    }

    #[test]
    fn links_of_a_project_lead_about_in_it_and_not_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap().join("root");
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/a.md"), "a").unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        symlink("docs/a.md", root.join("near")).unwrap();
        symlink(root.join("docs/a.md"), root.join("whole")).unwrap();
        symlink("../secret", root.join("far")).unwrap();
        for name in ["docs/a.md", "near", "whole"] {
            assert_eq!(all_of(project(&root, name).unwrap(), 9).unwrap(), b"a");
        }
        assert!(project(&root, "far").is_err());
        assert!(project(&root, "../secret").is_err());
    }

    #[test]
    fn reading_stops_at_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_at(&path, 5).unwrap(), b"12345");
        assert_eq!(read_at(&path, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(read_named(Path::new("/dev/zero"), 5).is_err());
        assert_eq!(text_named(&path, 5).unwrap(), "12345");
    }

    #[test]
    fn a_temporary_file_is_never_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("precious"), "mine").unwrap();
        let path = dir.path().join("new");
        symlink("precious", &path).unwrap();
        io::Write::write_all(&mut make_at(&path, PRIVATE).unwrap(), b"x").unwrap();
        assert_eq!(fs::read(dir.path().join("precious")).unwrap(), b"mine");
        assert_eq!(read_at(&path, 9).unwrap(), b"x");
        symlink("precious", dir.path().join("linked")).unwrap();
        assert!(make_dir(&dir.path().join("linked")).is_err());
        for _ in 0..2 {
            make_dir(&dir.path().join(".onward")).unwrap();
        }
        let mode = fs::metadata(dir.path().join(".onward")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
