//! The directory of a conference, held by one process at a time.
//!
//! Invariant: every native file is replaced whole or not at all; the log is appended to and synced,
//! after the files that it speaks of. While a [`Seat`] lives, no other call changes them.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use onward_engine::dialects::{
    File as Content, Files,
    conference::{
        Conference, chart,
        deed::{Deed, What},
        import,
        state::{DOCUMENT, EVENTS, Part},
        write,
    },
};
use onward_engine::world::real::wall_clock;

use super::CallError;

pub(super) struct Seat {
    pub(super) dir: PathBuf,
    /// Keeps the lock.
    _lock: File,
}

impl Seat {
    pub(super) fn take(dir: &Path) -> Result<Self, CallError> {
        let dir = fs::canonicalize(dir).map_err(CallError::io("find", dir))?;
        let lock = File::open(&dir).map_err(CallError::io("open", &dir))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| CallError::io("hold", &dir)(error.into()))?;
        Ok(Self { dir, _lock: lock })
    }

    /// The conference as its files tell it now. A log that was not begun is empty.
    pub(super) fn read(&self) -> Result<Conference, CallError> {
        let mut files = self.files()?;
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
                let bytes = fs::read(&path).map_err(CallError::io("read", &path))?;
                files.insert(name, Content { bytes, modified: None });
            }
        }
        files.git = super::repo::look(&self.dir);
        Ok(files)
    }

    /// Makes it so that this happened.
    pub(super) fn add(&self, conference: &Conference, what: What) -> Result<Conference, CallError> {
        let after = conference.after(&Deed { at: wall_clock(), what });
        self.write(&after)?;
        Ok(after)
    }

    pub(super) fn write(&self, after: &Conference) -> Result<(), CallError> {
        for (name, bytes) in write::changes(&self.files()?, after) {
            if name == EVENTS { self.append(&name, &bytes)? } else { self.replace(&name, &bytes)? }
        }
        Ok(())
    }

    /// The picture of the metric, where there is something to draw.
    pub(super) fn draw(&self, conference: &Conference) -> Result<(), CallError> {
        let Some(picture) = chart::progress(conference) else { return Ok(()) };
        if fs::read(self.dir.join(chart::FILE_NAME)).is_ok_and(|it| it == picture.as_bytes()) {
            return Ok(());
        }
        self.replace(chart::FILE_NAME, picture.as_bytes())
    }

    fn append(&self, name: &str, whole: &[u8]) -> Result<(), CallError> {
        let path = self.dir.join(name);
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(CallError::io("open", &path))?;
        let length = file.metadata().map_err(CallError::io("look at", &path))?.len();
        let known = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(new) = whole.get(known..) else {
            return Err(CallError::new(format!("{name} was changed by somebody else")));
        };
        let written = file.write_all(new).and_then(|()| file.sync_all());
        written.map_err(CallError::io("write to", &path))?;
        self.sync_names()
    }

    /// Under a name of its own first. It is the same at every try, so that nothing is left behind.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        let (path, part) = (self.dir.join(name), self.dir.join(format!(".{name}.part")));
        let failed = |error| CallError::io("write", &path)(error);
        let mut file = File::create(&part).map_err(failed)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.and_then(|()| fs::rename(&part, &path)).map_err(CallError::io("write", &path))?;
        self.sync_names()
    }

    fn sync_names(&self) -> Result<(), CallError> {
        let dir = File::open(&self.dir).and_then(|dir| dir.sync_all());
        dir.map_err(CallError::io("sync", &self.dir))
    }
}
