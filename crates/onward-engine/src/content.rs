//! What a path holds: its bytes, and whether it is a plain file, an executable or a link.
//!
//! Invariant: [`put`] leaves the old content or the new one, never half of either, and it is
//! durable when it returns. A link is never followed: its content is where it leads.

use std::{
    fs::{self, File, Permissions},
    io::{self, ErrorKind, Write as _},
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{PermissionsExt as _, symlink},
    },
    path::Path,
};

use onward_core::{digest::Digest, event::FileKind};

use crate::{
    real::disk::{io_stop, make_parents, sync_dir},
    world::Stop,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: FileKind,
}

impl Content {
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

/// `None` when there is nothing, or a directory.
pub(crate) fn content(path: &Path) -> Result<Option<Content>, Stop> {
    match look(path) {
        Ok(found) => Ok(found),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(io_stop("read", path)(error)),
    }
}

fn look(path: &Path) -> io::Result<Option<Content>> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        let bytes = fs::read_link(path)?.into_os_string().into_vec();
        return Ok(Some(Content { bytes, kind: FileKind::Link }));
    }
    if !found.is_file() {
        return Ok(None);
    }
    let is_executable = found.permissions().mode() & 0o100 != 0;
    let kind = if is_executable { FileKind::Executable } else { FileKind::Plain };
    Ok(Some(Content { bytes: fs::read(path)?, kind }))
}

/// Makes the path hold this; `None` = nothing.
pub(crate) fn put(path: &Path, wanted: Option<&Content>) -> Result<(), Stop> {
    let parent = path.parent().unwrap_or(path);
    let Some(Content { bytes, kind }) = wanted else {
        return match fs::remove_file(path) {
            Ok(()) => sync_dir(parent),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io_stop("remove", path)(error)),
        };
    };
    make_parents(path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".onward-new");
    let new = path.with_file_name(name);
    let _ = fs::remove_file(&new);
    let made = match kind {
        FileKind::Link => symlink(std::ffi::OsStr::from_bytes(bytes), &new),
        FileKind::Plain | FileKind::Executable => File::create(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            let mode = file.metadata()?.permissions().mode();
            let mode = match kind {
                FileKind::Executable => mode | 0o111,
                FileKind::Plain | FileKind::Link => mode & !0o111,
            };
            file.set_permissions(Permissions::from_mode(mode))?;
            file.sync_all()
        }),
    };
    made.and_then(|()| fs::rename(&new, path)).map_err(io_stop("write", path))?;
    sync_dir(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_what_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/x");
        assert_eq!(content(&path).unwrap(), None);
        for (text, kind) in [
            ("one", FileKind::Plain),
            ("two", FileKind::Executable),
            ("../nowhere", FileKind::Link),
            ("three", FileKind::Plain),
        ] {
            let wanted = Content { bytes: text.into(), kind };
            put(&path, Some(&wanted)).unwrap();
            assert_eq!(content(&path).unwrap(), Some(wanted));
            assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        }
        put(&path, None).unwrap();
        put(&path, None).unwrap();
        assert_eq!(content(&path).unwrap(), None);
        assert_eq!(content(dir.path()).unwrap(), None, "a directory is no file");
    }
}
