//! The report before another system's run is resumed in preflight mode: what was compared, file by
//! file and status by status, and what lies ahead.
//!
//! Invariant: a dialect says what is compared ([`Referred`]); how a file was and is, the engine
//! finds out. What nothing tells is `unknown`, never `same`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What a dialect wants compared, and what its files alone tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Referred {
    /// When the state was last written: what the files were then.
    pub since: Option<Timestamp>,
    pub files: Vec<ReferredFile>,
    pub statuses: Vec<ComparedStatus>,
    pub dependencies: Vec<Dependency>,
    pub ahead: Vec<String>,
}

/// A file that a run refers to, from the project's directory of that system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferredFile {
    pub path: String,
    /// What it is to the run, such as `story` or `template`.
    pub role: &'static str,
    /// The run cannot go on without it.
    pub critical: bool,
}

/// `preflight` of `onward plan --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preflight {
    /// When the state was last written: `was` of a file is from then.
    pub since: Option<String>,
    pub files: Vec<ComparedFile>,
    pub statuses: Vec<ComparedStatus>,
    pub dependencies: Vec<Dependency>,
    /// What is done from the recovery point to the end, one phase a line.
    pub ahead: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFile {
    pub path: String,
    pub role: String,
    pub critical: bool,
    pub was: Option<Stamp>,
    pub is: Option<Stamp>,
    pub verdict: Compared,
}

/// What a file held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stamp {
    pub bytes: u64,
    pub hash: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compared {
    Same,
    Changed,
    Missing,
    /// It is there, and nothing tells what it was.
    Unknown,
}

impl Compared {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// A story as the state and as its own file have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedStatus {
    pub story: String,
    pub state: Option<String>,
    pub file: Option<String>,
    pub verdict: String,
}

/// One link of the chain: what waits, and what for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dependency {
    pub what: String,
    pub after: String,
    pub verdict: String,
}
