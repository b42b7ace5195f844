//! The files of another system's run, held by one call at a time.
//!
//! Invariant: while a [`Desk`] lives, no other call and no resume changes the run's files. Each
//! file is replaced whole or not at all, in the order that was asked for, and no name leads out of
//! the directory; a file that is moved out of the way takes the place of no other.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use onward_core::told::Change;
use onward_dialects::{
    Files, Unreadable,
    seam::{Card, Site},
};

use super::{CallError, Ink, Order};
use crate::world::{
    open,
    real::{
        disk::{append_durably, hold_dir, make_parents, replace, sync_dir},
        site,
    },
};

pub(super) struct Desk {
    /// The directory that the run's files are in.
    pub(super) dir: PathBuf,
    card: &'static Card,
    ink: Ink,
    /// Keeps the lock.
    _lock: File,
}

impl Desk {
    /// Waits until no other process holds the directory.
    pub(super) fn take(order: &Order, card: &'static Card) -> Result<Self, CallError> {
        let dir = fs::canonicalize(&order.dir).map_err(CallError::io("find", &order.dir))?;
        Self::at_dir(dir, card, &order.attempt.ink)
    }

    /// The same for a directory that is known to be the run's.
    pub(super) fn at_dir(dir: PathBuf, card: &'static Card, ink: &Ink) -> Result<Self, CallError> {
        let lock = hold_dir(&dir)?;
        Ok(Self { dir, card, ink: ink.clone(), _lock: lock })
    }

    /// What the card says that a run is made of, as it is now; git is not asked.
    pub(super) fn files(&self) -> Result<Files, CallError> {
        let site = Site::at(self.card, &self.dir.display().to_string());
        Ok(site::contents(&self.dir, &site)?)
    }

    /// The whole of a file; `None` when there is none of this name.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, CallError> {
        let path = self.at(name)?;
        if !path.is_file() {
            return Ok(None);
        }
        let bytes = open::read_at(&path, open::FILE_BYTES_MAX);
        bytes.map(Some).map_err(CallError::io("read", &path))
    }

    fn at(&self, name: &str) -> Result<PathBuf, CallError> {
        open::beneath(&self.dir, name).map_err(CallError::io("use", Path::new(name)))
    }

    pub(super) fn write(&self, changes: &[Change]) -> Result<(), CallError> {
        for change in changes {
            let path = self.at(change.path())?;
            self.ink.dip()?;
            make_parents(&path)?;
            match change {
                Change::Append { bytes, .. } => append_durably(&path, bytes)?,
                Change::Replace { path: name, bytes } => {
                    self.refuse_unread(name)?;
                    // Like any file of the project: other people read it, too.
                    replace(&path, bytes, open::SHARED).map_err(CallError::io("write", &path))?;
                }
            }
        }
        Ok(())
    }

    /// What cannot be read was shown as empty: a file that takes its place would lose all of it.
    fn refuse_unread(&self, name: &str) -> Result<(), CallError> {
        let why = match site::unreadable(&self.dir, name) {
            None => return Ok(()),
            Some(Unreadable::Link) => "it is a link, or lies behind one",
            Some(Unreadable::TooLarge) => "it is too large",
            Some(Unreadable::Outside) => "it leads out of the project",
            Some(Unreadable::Forbidden) => "it may not be read",
            Some(Unreadable::NoFile) => "it is not a file",
            Some(Unreadable::NoDirectory) => "a file is in the place of its directory",
            Some(Unreadable::TooDeep) => "it lies too deep",
            Some(Unreadable::TooMany) => "it has too many entries",
        };
        let error = std::io::Error::other(why);
        Err(CallError::io("change", &self.dir.join(name))(error))
    }

    /// Moves files below the directory; one that is gone was moved before.
    pub(super) fn rename(&self, moves: &[(String, String)]) -> Result<(), CallError> {
        for (from, to) in moves {
            let (old, new) = (self.dir.join(from), free(&self.dir.join(to)));
            self.ink.dip()?;
            make_parents(&new)?;
            match fs::rename(&old, &new) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(CallError::io("move", &old)(error)),
            }
            for path in [&old, &new] {
                path.parent().map_or(Ok(()), sync_dir)?;
            }
        }
        Ok(())
    }
}

/// The path, or the first one like it that no file has.
fn free(path: &Path) -> PathBuf {
    let mut free = path.to_owned();
    let mut number = 1_u32;
    while free.exists() {
        free = path.with_added_extension(number.to_string());
        number += 1;
    }
    free
}
