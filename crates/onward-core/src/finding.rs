//! Something the check found: a code, how bad it is, what, where, and what to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::Address;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub code: String,
    pub severity: Severity,
    pub message: String,
    /// A file, relative to the project.
    pub path: Option<String>,
    pub step: Option<String>,
    pub hint: Option<String>,
}

/// Ordered: the worst is the greatest.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Warning,
    Blocking,
}

/// Every code a native run can give. The word is the contract; a dialect may add its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    MissingArtifact,
    ArtifactChanged,
    InputChanged,
    StaleAge,
    ClockInFuture,
    StillRunning,
    OrphanProcess,
    TornTail,
    JournalDamaged,
    ResumedRepeatedly,
    EffectUnknown,
    AttemptContested,
    WorkflowChanged,
    DefinitionTouchesDone,
    PrerequisiteMissing,
    StatusDisagrees,
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingArtifact => "missing-artifact",
            Self::ArtifactChanged | Self::InputChanged => "artifact-changed",
            Self::StaleAge => "stale-age",
            Self::ClockInFuture => "clock-in-future",
            Self::StillRunning => "still-running",
            Self::OrphanProcess => "orphan-process",
            Self::TornTail => "torn-tail",
            Self::JournalDamaged => "journal-damaged",
            Self::ResumedRepeatedly => "resumed-repeatedly",
            Self::EffectUnknown => "effect-unknown",
            Self::AttemptContested => "dirty-tree",
            Self::WorkflowChanged => "workflow-changed",
            Self::DefinitionTouchesDone => "definition-touches-done",
            Self::PrerequisiteMissing => "prerequisite-missing",
            Self::StatusDisagrees => "status-disagrees",
        }
    }

    pub const fn severity(self) -> Severity {
        match self {
            Self::TornTail | Self::WorkflowChanged => Severity::Info,
            Self::MissingArtifact
            | Self::ArtifactChanged
            | Self::InputChanged
            | Self::StaleAge
            | Self::OrphanProcess
            | Self::ResumedRepeatedly
            | Self::DefinitionTouchesDone
            | Self::StatusDisagrees => Severity::Warning,
            Self::StillRunning
            // A moment that has not come yet is not a clock's opinion but corruption.
            | Self::ClockInFuture
            | Self::JournalDamaged
            | Self::EffectUnknown
            | Self::AttemptContested
            | Self::PrerequisiteMissing => Severity::Blocking,
        }
    }
}

impl Finding {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: code.as_str().to_owned(),
            severity: code.severity(),
            message: message.into(),
            path: None,
            step: None,
            hint: None,
        }
    }

    #[must_use]
    pub fn at_step(mut self, step: &Address) -> Self {
        self.step = Some(step.to_string());
        self
    }

    #[must_use]
    pub fn at_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
