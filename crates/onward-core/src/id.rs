//! Names a person chooses or reads: steps and runs.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Names one step of a workflow, such as `review` or `build-linux`.
///
/// Invariant: 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`, the first one a letter. An id
/// can therefore stand in an address, a file name or a command line without quoting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepId(String);

impl StepId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StepId {
    type Err = BadStepId;

    fn from_str(text: &str) -> Result<Self, BadStepId> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
        if starts_well && text.len() <= 64 && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadStepId(text.to_owned()))
        }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for StepId {
    type Error = BadStepId;

    fn try_from(text: String) -> Result<Self, BadStepId> {
        text.parse()
    }
}

impl From<StepId> for String {
    fn from(id: StepId) -> Self {
        id.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a step id: use 1 to 64 letters, digits, `_` and `-`, a letter first")]
pub struct BadStepId(String);

/// Names one run: `<workflow>-<yyyymmdd>-<4 of base32>`, such as `release-notes-20261115-k3fq`.
///
/// Invariant: not empty, only `a-z`, `0-9`, `-`, `_` and `.`, never starting with `.`; it is a
/// directory name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// The id of a run that is only imagined, for a look at a project before there is one.
    pub fn imagined() -> Self {
        Self("imagined-20000101-aaaa".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<Self, BadRunId> {
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        if !text.is_empty()
            && text.len() <= 128
            && !text.starts_with('.')
            && text.chars().all(allowed)
        {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadRunId(text.to_owned()))
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for RunId {
    type Error = BadRunId;

    fn try_from(text: String) -> Result<Self, BadRunId> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a run id")]
pub struct BadRunId(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_id_begins_with_a_letter_and_needs_no_quoting() {
        for good in ["a", "build-linux", "T001", "x_1", &"a".repeat(64)] {
            assert!(good.parse::<StepId>().is_ok(), "{good}");
        }
        for bad in ["", "1a", "-a", "_a", "a b", "a/b", "a.b", "é", &"a".repeat(65)] {
            assert!(bad.parse::<StepId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_run_id_is_a_plain_directory_name() {
        for good in ["demo-20261115-k3fq", "a.b_c"] {
            assert!(good.parse::<RunId>().is_ok(), "{good}");
        }
        for bad in ["", ".x", "..", "a/b", "A", &"a".repeat(129)] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }
}
