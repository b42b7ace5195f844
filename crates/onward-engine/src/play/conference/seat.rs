//! The directory of a conference, held by one process at a time.
//!
//! Invariant: every native file is replaced whole or not at all; the log is appended to and synced,
//! after the files that it speaks of. While a [`Seat`] lives, no other call changes them.

use crate::world::open;
use std::{
    fs::{self, File},
    path::PathBuf,
};

use onward_core::told::Change;
use onward_dialects::{
    File as Content, Files,
    conference::{
        Conference, import,
        read::{DOCUMENT, EVENTS, Part},
        write::{
            self,
            happening::{Happening, What},
        },
    },
    rules::conference::chart,
};

use super::{
    CallError, Order,
    repo::{self, Repo},
};
use crate::world::{
    git::Env,
    real::{
        disk::{append_durably, hold_dir, replace},
        wall_clock,
    },
};

pub(in crate::play) struct Seat {
    pub(in crate::play) dir: PathBuf,
    env: Env,
    /// Keeps the lock.
    _lock: File,
}

impl Seat {
    /// Waits until no other call holds the directory.
    pub(in crate::play) fn take(order: &Order) -> Result<Self, CallError> {
        let dir = fs::canonicalize(&order.dir).map_err(CallError::io("find", &order.dir))?;
        let lock = hold_dir(&dir)?;
        Ok(Self { dir, env: order.attempt.env.clone(), _lock: lock })
    }

    /// The repository that the conference lies in.
    pub(super) fn repo(&self) -> Result<Repo, CallError> {
        Repo::of(&self.dir, &self.env)
    }

    /// The conference as its files tell it now. A log that is not there yet is empty.
    pub(in crate::play) fn read(&self) -> Result<Conference, CallError> {
        let mut files = self.files()?;
        files.git = repo::look(&self.dir, &self.env);
        if files.contains(DOCUMENT) && !files.contains(EVENTS) {
            files.insert(EVENTS, Content::default());
        }
        import(&files).map_err(|missing| {
            CallError::new(format!("{}: {missing}", self.dir.display())).hint(missing.hint)
        })
    }

    fn files(&self) -> Result<Files, CallError> {
        let mut files = Files::default();
        let entries = fs::read_dir(&self.dir).map_err(CallError::io("list", &self.dir))?;
        for entry in entries {
            let entry = entry.map_err(CallError::io("list", &self.dir))?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| Part::of(name).is_some()) else {
                continue;
            };
            let path = entry.path();
            if path.is_file() {
                let bytes = open::read_named(&path, open::FILE_BYTES_MAX)
                    .map_err(CallError::io("read", &path))?;
                files.insert(name, Content { bytes, modified: None });
            }
        }
        Ok(files)
    }

    /// Writes that this happened, where the files do not say so yet.
    pub(super) fn add(&self, conference: &Conference, what: What) -> Result<Conference, CallError> {
        let after = conference.after(&Happening { at: wall_clock(), what });
        self.write(&after)?;
        Ok(after)
    }

    pub(super) fn write(&self, after: &Conference) -> Result<(), CallError> {
        for change in write::changes(&self.files()?, after) {
            match change {
                Change::Append { path, bytes } => append_durably(&self.at(&path)?, &bytes)?,
                Change::Replace { path, bytes } => self.replace(&path, &bytes)?,
            }
        }
        Ok(())
    }

    /// The picture of the metric, where there is something to draw.
    pub(super) fn draw(&self, conference: &Conference) -> Result<(), CallError> {
        let Some(picture) = chart::progress(conference) else { return Ok(()) };
        let drawn = open::read_named(&self.dir.join(chart::FILE_NAME), open::FILE_BYTES_MAX);
        if drawn.is_ok_and(|it| it == picture.as_bytes()) {
            return Ok(());
        }
        self.replace(chart::FILE_NAME, picture.as_bytes())
    }

    pub(in crate::play) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        let path = self.at(name)?;
        replace(&path, bytes, open::SHARED).map_err(CallError::io("write", &path))
    }

    /// A file of the conference; a name that leads elsewhere is none.
    fn at(&self, name: &str) -> Result<PathBuf, CallError> {
        open::beneath(&self.dir, name).map_err(CallError::io("use", &self.dir.join(name)))
    }
}
