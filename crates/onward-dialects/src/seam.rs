//! The seam between onward and every other system: one trait, and what it speaks of.
//!
//! A system is a [`Dialect`]: its [`Card`] says which files mark and make up a run,
//! [`Dialect::sites`] names the runs that are there, and [`Dialect::read`] parses one of them into
//! a [`Told`]. Invariant: pure. The engine finds, reads and writes files; a dialect is shown what
//! was found and says what it means.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{event::Mode, time::Timestamp, told::Told};
use serde_json::Value;

use crate::Files;

/// Another system's way of writing a run on disk.
pub trait Dialect: Sync {
    fn card(&self) -> &'static Card;

    /// The runs that are there. One directory may hold several.
    fn sites(&self, seen: &Listing) -> Vec<Site>;

    /// Inputs of a new run of ours that the user left out, such as a name for its directory.
    fn fresh(&self, _given: &BTreeMap<String, Value>, _now: Timestamp) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }

    /// The run that one of ours goes on with, by what that was given. For systems that keep several
    /// runs in one directory.
    fn site(&self, dir: &str, _workflow: &str, _inputs: &BTreeMap<String, Value>) -> Site {
        Site::at(self.card(), dir)
    }

    /// Whether one run may take the place of another in the same files.
    fn replaces(&self) -> bool {
        false
    }

    /// Whether a run from the beginning has to be told what is wanted, as the input `request`.
    fn is_told_what(&self) -> bool {
        false
    }

    /// What the other files tell of a run of ours whose marks are gone; `None` where they tell
    /// nothing.
    fn read_rest(&self, _site: &Site, _files: Files) -> Option<Box<dyn Told>> {
        None
    }

    /// Whether a run of ours that was given these inputs goes on with this one.
    fn is_of(&self, site: &Site, inputs: &BTreeMap<String, Value>) -> bool {
        let told = site.inputs.iter().filter(|it| it.0 != "dir");
        told.into_iter().all(|(name, value)| inputs.get(name) == Some(value))
    }

    /// Which of the runs in its directory a run of ours with these inputs is about, in a few words;
    /// `None` where a directory holds one run.
    fn about(&self, _workflow: &str, _inputs: &BTreeMap<String, Value>) -> Option<String> {
        None
    }

    /// The workflow and its inputs that a file stands for of which no run is known.
    fn meant_by(
        &self,
        _path: &str,
        _bytes: &[u8],
    ) -> Option<(&'static str, BTreeMap<String, Value>)> {
        None
    }

    /// Files below the site's first root that those which the site names speak of, and that are
    /// wanted too: whether or not they are there.
    fn more(&self, _site: &Site, _files: &Files) -> Vec<String> {
        Vec::new()
    }

    /// Files that are wanted as git had them at a moment, to see what changed since.
    fn moments(&self, _site: &Site, _files: &Files) -> Vec<(String, Timestamp)> {
        Vec::new()
    }

    /// Files that the run works on, and since when it does not: what other work did to them is
    /// wanted ([`Git::since`](crate::Git)).
    fn watch(&self, _site: &Site, _files: &Files) -> Option<Watch> {
        None
    }

    /// What the files mean. Refused only when a file is missing without which nothing can be said;
    /// whatever else is wrong with the files is a finding.
    fn read(&self, site: &Site, files: Files) -> Result<Box<dyn Told>, Missing>;
}

/// Files of the project that are watched from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub since: Timestamp,
    /// Below the site's first root.
    pub paths: Vec<String>,
}

/// What is the same for every run of a system.
#[derive(Debug)]
pub struct Card {
    /// The name used in `--dialect`, in `run.adopted` and in reports, such as `conference`.
    pub name: &'static str,
    /// The built-in workflows that go on with its runs.
    pub workflows: &'static [&'static str],
    /// The recovery codes that a person can enter at, in the order of the work.
    pub entries: &'static [&'static str],
    pub home: Home,
    /// The files by which a run is recognised, as globs below the directory that holds it.
    pub marks: &'static [Mark],
    /// The files that make up a run, as globs below the site's first root.
    pub reads: &'static [&'static str],
    /// Files that only ever grow: they are appended to, never replaced.
    pub grows: &'static [&'static str],
    /// Agents of its workflows change only those of its files that their steps declare: whatever
    /// else is new in them is another hand's, and a word of the system that counts.
    pub agents_declare: bool,
    /// Where they may change others: the files, as globs below the site's first root, of which the
    /// same is true.
    pub keeps: &'static [&'static str],
    /// Branches of git that matter begin so; `None` where only the head and the tree matter.
    pub branches: Option<&'static str>,
    /// Files that hold the number of a process, and a word that its command line must contain.
    pub processes: &'static [(&'static str, &'static str)],
    /// The lock file that the system's own programs take, in the site's first root; `None` = the
    /// directory itself is locked.
    pub lock: Option<&'static str>,
}

/// Where the runs of a system live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the project, at most four levels deep.
    Project,
    /// In Claude Code's task lists, one directory each, outside the project.
    TaskLists,
}

/// A file by which a run is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub glob: &'static str,
    /// [`Dialect::sites`] wants to see its content, not only its name.
    pub peek: bool,
}

/// Directories in which the marks of some system were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub candidates: Vec<Candidate>,
    pub project: Project,
}

/// The project that the user is in, for systems whose runs lie outside of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Its absolute path; empty when it is not known.
    pub path: String,
    /// The local branches of its repository.
    pub branches: BTreeSet<String>,
    /// The files in it, as git lists them: tracked, or new and not ignored.
    pub files: BTreeSet<String>,
}

/// One directory and the marks in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Relative to the project (`.` for the project itself), or absolute where it lies outside.
    pub dir: String,
    /// By path, relative to the directory.
    pub marks: BTreeMap<String, Glimpse>,
}

/// A file that was listed, and its content where the card asks to peek.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glimpse {
    pub modified: Option<Timestamp>,
    pub bytes: Option<Vec<u8>>,
}

/// A run of another system: where it is and which workflow goes on with it.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts, each asked for alone")]
pub struct Site {
    /// The card's name.
    pub dialect: &'static str,
    /// How lists and prompts call the run, such as a run id or the name of its directory.
    pub name: String,
    /// How messages name its directory: as the engine found it.
    pub place: String,
    pub workflow: &'static str,
    /// What that workflow is given.
    pub inputs: BTreeMap<String, Value>,
    /// Where its files are. The first root is the run's own; the others are only looked at.
    pub roots: Vec<Root>,
    pub last_activity: Option<Timestamp>,
    /// Commits that its files name; [`Git::missing`](crate::Git) says which of them are gone.
    pub commits: Vec<String>,
    /// It belongs to another project: listed, and never chosen by itself.
    pub elsewhere: bool,
    /// Nothing says whose it is: shown, and gone on with when a person names it or says yes.
    pub unsure: bool,
    /// Nothing that it speaks of would have a place in the project: only its name says that it is
    /// meant here.
    pub unplaced: bool,
    /// It is over, or was never begun: no candidate for a resume, unless its place is named.
    pub by_name_only: bool,
    /// No state of its own names it, only what it is about: an unfinished run of ours on the same
    /// thing, of whichever workflow, is the one that goes on with it.
    pub implied: bool,
    /// The mode that it was started in, where its files tell.
    pub mode: Option<Mode>,
    /// Files below its first root that a person may name instead of it, such as a story or a state.
    pub about: Vec<String>,
    /// A mark that is not there; without it the run can be named but not read.
    pub lacks: Option<Missing>,
}

/// A directory of a site, and the files in it that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Relative to the project (`.` for the project itself), or absolute where it lies outside.
    pub dir: String,
    /// Globs below it.
    pub reads: Vec<String>,
}

impl Site {
    /// The run whose files lie in this directory, with what its card says of them.
    pub fn at(card: &'static Card, dir: &str) -> Self {
        let reads = card.reads.iter().map(|glob| (*glob).to_owned()).collect();
        let name = dir.rsplit('/').find(|part| !part.is_empty()).unwrap_or(dir);
        Self {
            dialect: card.name,
            name: name.to_owned(),
            place: dir.to_owned(),
            workflow: card.workflows.first().copied().unwrap_or_default(),
            inputs: [("dir".to_owned(), Value::from(dir))].into(),
            roots: vec![Root { dir: dir.to_owned(), reads }],
            last_activity: None,
            commits: Vec::new(),
            elsewhere: false,
            unsure: false,
            unplaced: false,
            by_name_only: false,
            implied: false,
            mode: None,
            about: Vec::new(),
            lacks: None,
        }
    }

    /// The directory that the run's own files are in.
    pub fn dir(&self) -> &str {
        self.roots.first().map_or(".", |root| root.dir.as_str())
    }
}

impl Candidate {
    /// When the newest of its marks was last changed.
    pub fn last_activity(&self) -> Option<Timestamp> {
        self.marks.values().filter_map(|mark| mark.modified).max()
    }
}

/// A file without which nothing can be said about a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot resume this {dialect}: `{file}` is missing")]
pub struct Missing {
    pub dialect: &'static str,
    pub file: String,
    /// What to do instead.
    pub hint: String,
}
