//! Runs of other systems, gone on with: their files are the truth about progress, our journal about
//! our attempts.
//!
//! - [`find`] and [`begin`]: the run that goes on with a directory, or a new one.
//! - `import`: what the files prove is adopted, before anything is started, at every resume.
//! - `reenter`: what is undone first, all or ask, and said before it is done; `ours`: what of it is
//!   our own and stays; `elsewhere`: where a person wants to enter instead.
//! - `export`: what we write into the files, and how far they are known to be ours.
//! - `plan`: the same for whoever only looks.
//!
//! Invariant: a file of the other system changes only after the event that announces it is durable,
//! and files that nothing is to be said in stay as they are, byte for byte.

mod begin;
mod elsewhere;
mod export;
mod import;
mod ours;
mod plan;
mod reenter;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use onward_core::{plan::Plan, state::Adopted, time::Timestamp};
use onward_dialects::{Asked, Dialect, File, Files, dialect};

use crate::{
    foreign::{self, ForeignError},
    locate::Project,
    world::{Stop, real::disk::io_stop},
};

pub use begin::{Adopter, begin, find, is_of};
pub(crate) use begin::{begun_here, of_run, supposed};
pub(crate) use elsewhere::Elsewhere;
pub use plan::caught_up;
pub(crate) use plan::{look, plan_adopted};
pub(crate) use reenter::Reentry;

/// The files, and who can read them.
#[derive(Clone, Copy)]
pub(crate) struct Witness<'a> {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) files: &'a Files,
}

/// The directory of the other system, and who can read it.
#[derive(Clone)]
pub struct Native {
    pub dir: PathBuf,
    /// The same, relative to the project; `.` for the project itself.
    pub source: String,
    pub(crate) dialect: &'static dyn Dialect,
    /// Nothing was there: the run itself begins it.
    is_new: bool,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dialect = self.dialect.name();
        f.debug_struct("Native")
            .field("dir", &self.dir)
            .field("dialect", &dialect)
            .finish_non_exhaustive()
    }
}

impl Native {
    pub(crate) fn new(project: &Project, dir: &Path, dialect: &'static dyn Dialect) -> Self {
        let source = match project.relative(dir) {
            root if root.is_empty() => ".".to_owned(),
            source => source,
        };
        Self { dir: project.root().join(&source), source, dialect, is_new: false }
    }

    /// Of a run that was adopted; `None` when this build does not know the dialect.
    pub(crate) fn of(project: &Project, adopted: &Adopted) -> Option<Self> {
        let dialect = dialect(&adopted.dialect)?;
        let source = adopted.source.clone();
        let is_new = adopted.files.is_empty();
        Some(Self { dir: project.root().join(&source), source, dialect, is_new })
    }

    pub(crate) fn files(&self) -> Result<Files, Stop> {
        let mut files = foreign::snapshot(&self.dir, self.dialect)?;
        let is_there = files.iter().next().is_some();
        let logs = self.dialect.marks().iter().filter(|it| self.dialect.grows(it));
        for log in logs.filter(|_| self.is_new && is_there) {
            if !files.contains(log) {
                files.insert(*log, File::default());
            }
        }
        Ok(files)
    }

    /// The run is to begin it and has not: nothing is logged.
    pub(crate) fn is_unbegun(&self, files: &Files) -> bool {
        let logs = self.dialect.marks().iter().filter(|it| self.dialect.grows(it));
        self.is_new && logs.filter_map(|it| files.bytes(it)).all(<[u8]>::is_empty)
    }

    /// What cannot be read is for whoever goes on to find out.
    pub(crate) fn needs_agents(&self) -> bool {
        self.files().map_or(true, |files| self.dialect.needs_agents(&files))
    }

    /// Keeps everybody else who respects the lock from changing the files, until it is dropped.
    pub(crate) fn hold(&self) -> Result<fs::File, Stop> {
        let held = fs::File::open(&self.dir).and_then(|dir| dir.lock().map(|()| dir));
        held.map_err(io_stop("hold", &self.dir))
    }

    pub(crate) fn plan(&self, files: &Files, now: Timestamp) -> Result<Plan, Stop> {
        let dir = self.dir.display().to_string();
        let missing = |missing| ForeignError::Missing { dir: self.dir.clone(), missing };
        Ok(self.dialect.plan(files, &Asked { dir: &dir, now }).map_err(missing)?)
    }

    /// How the project names a file of it.
    pub(crate) fn path(&self, name: &str) -> String {
        if self.source == "." { name.to_owned() } else { format!("{}/{name}", self.source) }
    }

    /// Whether a path of the project is one of its files.
    pub(crate) fn has(&self, path: &str) -> bool {
        let inside = match self.source.as_str() {
            "." => Some(path),
            source => path.strip_prefix(source).and_then(|rest| rest.strip_prefix('/')),
        };
        inside.is_some_and(|name| self.dialect.reads(name))
    }
}

impl From<ForeignError> for Stop {
    fn from(error: ForeignError) -> Self {
        match error {
            ForeignError::Io { path, source } => {
                Self::Io { doing: "read", path: path.display().to_string(), source }
            }
            ForeignError::NoSuchDialect { .. }
            | ForeignError::Missing { .. }
            | ForeignError::NoEntry(_)
            | ForeignError::TooLarge { .. } => {
                Self::Unready { what: error.to_string(), hint: error.hint() }
            }
        }
    }
}
