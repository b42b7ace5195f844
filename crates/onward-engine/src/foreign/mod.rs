//! Runs of other systems, gone on with: their files are the truth about progress, our journal about
//! our attempts.
//!
//! - `import`: what the files prove is adopted, before anything is started, at every resume.
//! - `reentry`: what is undone first, all or ask, and announced before it is done; `ours`: what of
//!   it is our own and stays; `entering`: where a person enters instead.
//! - `export`: what we write into the files, and how far they are known to be ours.
//!
//! Invariant: a file of the other system changes only after the event that announces it is durable,
//! and files in which nothing is to be said stay as they are, byte for byte. Everything is read and
//! written through [`World`].

mod entering;
mod export;
mod import;
mod ours;
mod reentry;

use std::fmt;

use onward_core::{decide::Source, told::Told};
use onward_dialects::{
    File, Files,
    seam::{Card, Dialect, Site},
};

pub(crate) use export::exported;
pub use import::{Importing, Onlooker, import, import_announced};
pub(crate) use reentry::Reentry;

use crate::world::{Stop, World};

/// The run of another system that a run of ours goes on with.
#[derive(Clone)]
pub struct Foreign {
    pub dialect: &'static dyn Dialect,
    pub site: Site,
    /// Nothing was there: our run begins it.
    pub begins: bool,
}

/// Its files at one moment, and what they tell.
pub struct Reading {
    pub files: Files,
    /// `None` while our run has still to begin it.
    pub told: Option<Box<dyn Told>>,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").field("site", &self.site).finish_non_exhaustive()
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Foreign {
    pub fn card(&self) -> &'static Card {
        self.dialect.card()
    }

    /// Looks, and changes nothing.
    pub fn read<W: World>(&self, world: &mut W) -> Result<Reading, Stop> {
        let files = world.foreign(&self.site, self.card())?;
        self.parse(files)
    }

    /// What these files tell.
    pub fn parse(&self, mut files: Files) -> Result<Reading, Stop> {
        if self.begins {
            // Our run writes the log with its first step: until then it is empty.
            let is_there = files.iter().next().is_some();
            for log in self.card().grows.iter().filter(|_| is_there) {
                if !files.contains(log) {
                    files.insert(*log, File::default());
                }
            }
        }
        if self.is_unbegun(&files) {
            return Ok(Reading { files, told: None });
        }
        let told = self.dialect.read(&self.site, files.clone()).map_err(|missing| {
            let what = format!("{}: {missing}", self.site.place);
            Stop::MissingFile { what, hint: missing.hint }
        })?;
        Ok(Reading { files, told: Some(told) })
    }

    /// Our run is to begin it and has not: nothing is logged.
    fn is_unbegun(&self, files: &Files) -> bool {
        let mut logs = self.card().grows.iter().filter_map(|it| files.bytes(it));
        self.begins && logs.all(<[u8]>::is_empty)
    }

    pub(crate) fn source<'a>(&self, told: &'a dyn Told) -> Source<'a> {
        let card = self.card();
        // The first mark is where a person wrote down what they want.
        let by = card.marks.first().map_or(card.name, |mark| mark.glob);
        Source { dialect: card.name, by, told }
    }

    /// How the project names a file of the site's own root.
    pub(crate) fn path(&self, name: &str) -> String {
        match self.site.dir() {
            "." => name.to_owned(),
            dir => format!("{dir}/{name}"),
        }
    }

    /// Whether the file only ever grows.
    pub(crate) fn grows(&self, name: &str) -> bool {
        self.card().grows.contains(&name)
    }
}
