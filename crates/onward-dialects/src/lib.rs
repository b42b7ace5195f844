//! What does a foreign run directory mean?
//!
//! One module per system, each a [`Dialect`]. Invariant: nothing here writes, spawns or knows about
//! the engine; a dialect is a pure function of the files it is shown.

pub mod builtin;
pub mod conference;
mod files;
pub mod seam;

use std::collections::BTreeMap;

use onward_core::{
    address::Address,
    plan::{Plan, PlannedRevert},
    time::Timestamp,
};
use serde_json::Value;

pub use files::{Branch, File, Files, Git, Worktree};
pub use onward_core::told::Done;

/// Another system's way of writing a run on disk.
pub trait Dialect: Sync {
    /// The name used in `--dialect`, in `run.adopted` and in reports, such as `conference`.
    fn name(&self) -> &'static str;

    /// The files that together mark a directory as a run of this system.
    fn marks(&self) -> &'static [&'static str];

    /// Whether the content of this file, directly in the run's directory, is wanted.
    fn reads(&self, name: &str) -> bool;

    /// The branches that matter to it begin so; `None` where git does not matter.
    fn branch_prefix(&self) -> Option<&'static str> {
        None
    }

    /// Processes that the files name, and a word that the command line of each must contain.
    fn processes(&self, _files: &Files) -> Vec<(u32, &'static str)> {
        Vec::new()
    }

    /// What a resume would do. Refused only when a mark is missing: whatever else is wrong with
    /// the files is a finding of the plan.
    fn plan(&self, files: &Files, asked: &Asked<'_>) -> Result<Plan, MissingMark>;

    /// The name of the built-in workflow that goes on with such a run.
    fn workflow(&self) -> &'static str;

    /// What that workflow is given. `dir` is the run's directory, relative to the project.
    fn inputs(&self, dir: &str) -> BTreeMap<String, Value> {
        [("dir".to_owned(), Value::from(dir))].into()
    }

    /// What the files prove about a step of that workflow; `None` when it has yet to run.
    fn done(&self, files: &Files, step: &Address) -> Option<Done>;

    /// Why a step that is not done will not run either: the files leave no place for it.
    fn passed_over(&self, _files: &Files, _step: &Address) -> Option<String> {
        None
    }

    /// Whether what the step does is in the files, so that they can tell when it is gone.
    fn witnesses(&self, _step: &Address) -> bool {
        false
    }

    /// Whether the step's work lies where a revert would undo it, until a step beside it that
    /// [`witnesses`](Self::witnesses) has settled what becomes of it.
    fn leaves_work(&self, _step: &Address) -> bool {
        false
    }

    /// Whose work a revert of the plan undoes; `None` when it is nobody's in particular.
    fn step_of(&self, _files: &Files, _revert: &PlannedRevert) -> Option<Address> {
        None
    }

    /// Whether the files say that a step which they do not witness came to nothing, although it
    /// ended well: somebody who goes on does it again.
    fn came_to_nothing(&self, _files: &Files, _step: &Address) -> bool {
        false
    }

    /// Whether going on takes an agent at all.
    fn needs_agents(&self, _files: &Files) -> bool {
        true
    }

    /// What nothing proves, and what the files are without it.
    fn undone(&self, _files: &Files) -> Vec<Undone> {
        Vec::new()
    }

    /// The files that tell the other system that somebody goes on, with what a resume by `plan`
    /// puts right in them. To be written before anything else is, and the log last.
    fn resumed(&self, files: &Files, plan: &Plan, at: Timestamp) -> Vec<(String, Vec<u8>)>;

    /// Whether this file only ever grows: it is appended to, never replaced.
    fn grows(&self, _name: &str) -> bool {
        false
    }

    /// What is written when a person enters elsewhere: at a recovery code such as `peer-review`, or
    /// at a step. The log says so first, and what it said about that place counts no more.
    fn enter(&self, _files: &Files, at: &Entering<'_>) -> Result<Option<Entry>, NoEntry> {
        Err(NoEntry::Unknown(at.place.to_owned()))
    }

    /// The recovery codes that a person can enter at, in the order of the work.
    fn places(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Where a person wants to enter.
#[derive(Clone, Copy, Debug)]
pub struct Entering<'a> {
    pub place: &'a str,
    /// Over unfinished work too.
    pub force: bool,
    pub now: Timestamp,
}

/// A file that has to say where a person enters, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: String,
    pub bytes: Vec<u8>,
}

impl Entry {
    pub fn file(&self) -> File {
        File { bytes: self.bytes.clone(), modified: None }
    }
}

/// Why nobody can enter there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEntry {
    #[error("there is no `{0}` in this run")]
    Unknown(String),
    /// It lies ahead of what is done, and what is between would be passed over.
    #[error("{0}")]
    Ahead(String),
}

/// A file that is put back to what is proved before a run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    pub path: String,
    /// What it holds then; `None` = it goes.
    pub after: Option<Vec<u8>>,
    /// Whose half-done work it is.
    pub step: Address,
}

/// What a dialect is told besides the files.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// How the person knows the directory.
    pub dir: &'a str,
    /// What ages are measured against.
    pub now: Timestamp,
}

/// Every dialect this build knows, in the order in which doubt is settled.
pub fn dialects() -> &'static [&'static dyn Dialect] {
    static ALL: [&dyn Dialect; 1] = [&conference::CONFERENCE];
    &ALL
}

/// The dialect of this name.
pub fn dialect(name: &str) -> Option<&'static dyn Dialect> {
    dialects().iter().copied().find(|dialect| dialect.name() == name)
}

/// A file without which nothing can be said about the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot resume this {dialect}: `{file}` is missing")]
pub struct MissingMark {
    pub dialect: &'static str,
    pub file: &'static str,
    /// What to do instead.
    pub hint: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_found_by_its_own_name_only() {
        for known in dialects() {
            assert_eq!(dialect(known.name()).map(Dialect::name), Some(known.name()));
            assert!(!known.marks().is_empty(), "{} could be anywhere", known.name());
            assert!(known.marks().iter().all(|mark| known.reads(mark)), "{}", known.name());
        }
        assert!(dialect("no-such-system").is_none());
    }
}
