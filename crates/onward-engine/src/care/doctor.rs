//! Is this machine, and this project's store of runs, fit to run and to resume?
//!
//! Invariant: without `fix` nothing changes but a temporary file that is removed again. With it,
//! only what is safe is mended: half-made runs are moved to the archive, and processes are ended
//! whose identity is proved and whose supervisor is dead.

mod machine;
mod runs;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{care::CareError, engine::Machine, locate::Project};

/// `onward doctor --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Checkup {
    pub schema: String,
    pub checks: Vec<Check>,
    pub counts: BTreeMap<String, u32>,
    /// No problem is left.
    pub healthy: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// A word for scripts, such as `git` or `orphan-process`.
    pub check: String,
    pub health: Health,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Ok,
    /// It was not, and now it is.
    Fixed,
    /// Not all that onward can do is possible.
    Warning,
    /// Runs would fail, or cannot be resumed as they are.
    Problem,
}

impl Health {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fixed => "fixed",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Check {
    pub fn new(check: &str, health: Health, message: impl Into<String>) -> Self {
        Self { check: check.to_owned(), health, message: message.into(), hint: None }
    }

    fn ok(check: &str, message: impl Into<String>) -> Self {
        Self::new(check, Health::Ok, message)
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Looks at everything; mends what is safe when told so.
pub fn examine(project: &Project, machine: &Machine, fix: bool) -> Result<Checkup, CareError> {
    let mut checks = machine::checks(project, machine);
    checks.extend(runs::checks(project, machine, fix)?);
    let mut counts = BTreeMap::new();
    for check in &checks {
        *counts.entry(check.health.as_str().to_owned()).or_insert(0) += 1;
    }
    let healthy = checks.iter().all(|check| check.health != Health::Problem);
    Ok(Checkup { schema: "onward.doctor/1".to_owned(), checks, counts, healthy })
}
