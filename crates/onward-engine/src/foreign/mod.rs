//! Runs of other systems, gone on with: their files are the truth about progress, our journal about
//! our attempts.
//!
//! - `import`: what the files prove is adopted, before anything is started, at every resume.
//! - `reentry`: what is undone first, all or ask, and announced before it is done; `ours`: what of
//!   it is our own and stays; `undone`: the files without half-done work of ours; `entering`:
//!   where a person enters instead; `restoring`: what the files lost and our journal knows;
//!   `unread`: what nothing was read of; `driven`: a run of ours in another working tree.
//! - `export`: what we write into the files, and how far they are known to be ours.
//!
//! Invariant: a file of the other system changes only after the event that announces it is durable,
//! and files in which nothing is to be said stay as they are, byte for byte. Everything is read and
//! written through [`World`].

mod driven;
mod entering;
mod export;
mod import;
mod ours;
mod reentry;
mod restoring;
mod undone;
mod unread;

use std::fmt;

use globset::Glob;
use onward_core::{decide::Source, told::Told, workflow::pattern::is_glob};
use onward_dialects::{
    File, Files,
    seam::{Card, Dialect, Site},
};

pub(crate) use driven::driven;
pub(crate) use entering::told_at;
pub(crate) use export::{exported, say_cancelled, write};
pub use import::{Importing, Onlooker, import, import_announced};
pub(crate) use reentry::{Held, Reentry};
pub(crate) use undone::as_undone;

use self::reentry::{below, reads};
use crate::{
    revert::theirs::Theirs,
    world::{Stop, World},
};

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

    /// What the files alone tell, after a step that may have written them.
    pub fn read_files<W: World>(&self, world: &mut W) -> Result<Reading, Stop> {
        let files = world.foreign_files(&self.site, self.card())?;
        self.parse(files)
    }

    /// What these files tell.
    pub fn parse(&self, mut files: Files) -> Result<Reading, Stop> {
        if self.begins {
            // Our run writes the log with its first step: until then it is empty.
            let is_there = files.iter().next().is_some();
            let logs = self.card().grows.iter().filter(|it| is_there && !is_glob(it));
            for log in logs {
                if !files.contains(log) {
                    files.insert(*log, File::default());
                }
            }
        }
        if self.is_unbegun(&files) {
            return Ok(Reading { files, told: None });
        }
        let told = self
            .dialect
            .read(&self.site, files.clone())
            .or_else(|missing| self.dialect.read_rest(&self.site, files.clone()).ok_or(missing));
        let told = told.map_err(|missing| {
            let what = format!("{}: {missing}", self.site.place);
            Stop::MissingFile { what, hint: missing.hint }
        })?;
        Ok(Reading { files, told: Some(told) })
    }

    /// Our run is to begin it and has not: nothing is logged, or where there is no log, a file
    /// without which nothing can be said is still missing.
    fn is_unbegun(&self, files: &Files) -> bool {
        let mut logs = files.iter().filter(|(path, _)| self.grows(path));
        let is_missing = || self.dialect.read(&self.site, files.clone()).is_err();
        self.begins
            && if self.card().grows.is_empty() {
                is_missing()
            } else {
                logs.all(|(_, file)| file.bytes.is_empty())
            }
    }

    /// Files in it that no attempt of ours left, unless its step declares them.
    pub fn theirs(&self) -> Theirs {
        let Some(root) = self.site.roots.first() else { return Theirs::default() };
        if self.card().agents_declare {
            return Theirs::below(&root.dir, &root.reads);
        }
        let keeps: Vec<String> = self.card().keeps.iter().map(|it| (*it).to_owned()).collect();
        Theirs::below(&root.dir, &keeps)
    }

    pub(crate) fn source<'a>(&self, told: &'a dyn Told) -> Source<'a> {
        let card = self.card();
        // The first mark is where a person wrote down what they want.
        let by = card.marks.first().map_or(card.name, |mark| mark.glob);
        let by = by.rsplit('*').next().map_or(by, |it| it.trim_start_matches('/'));
        // A mark that is any file of a kind names none.
        let by = if by.is_empty() || by.starts_with('.') { card.name } else { by };
        Source { dialect: card.name, by, told }
    }

    /// What the site's own root calls a path of the project, where it reads such files.
    pub(crate) fn name_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let root = self.site.roots.first()?;
        below(&root.dir, path).filter(|name| reads(root, name))
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
        let fits = |glob: &str| Glob::new(glob).is_ok_and(|it| it.compile_matcher().is_match(name));
        self.card().grows.iter().any(|glob| fits(glob))
    }
}
