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

/// Every code that is known. The word is the contract; a dialect may add its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    // What was made, and what it was made from.
    MissingArtifact,
    ArtifactChanged,
    InputChanged,
    ArtifactUnproved,
    LeftoverTempFile,
    // What the journal says against what else says it.
    StatusDisagrees,
    DoneWithUnfinishedDependency,
    PhaseAheadOfEvidence,
    AllDoneNotDelivered,
    RowsExceedEvents,
    RowsMissing,
    BrokenLine,
    // Git.
    BranchMismatch,
    DirtyTree,
    AttemptContested,
    MissingCommits,
    UnexpectedCommits,
    WorktreeMissing,
    WorktreeDetached,
    WorktreeMidRebase,
    // Where to enter.
    EntersEarlier,
    // Time, and how often.
    StaleAge,
    ClockInFuture,
    ResumedRepeatedly,
    ResumesInVain,
    BudgetElapsed,
    // Who else is there.
    StillRunning,
    OtherSessionLive,
    OrphanProcess,
    // The journal itself.
    TornTail,
    JournalDamaged,
    // The workflow, and what it needs.
    WorkflowChanged,
    DefinitionTouchesDone,
    ApprovalOutdated,
    EffectUnknown,
    PrerequisiteMissing,
}

impl Code {
    pub const ALL: [Self; 36] = [
        Self::MissingArtifact,
        Self::ArtifactChanged,
        Self::InputChanged,
        Self::ArtifactUnproved,
        Self::LeftoverTempFile,
        Self::StatusDisagrees,
        Self::DoneWithUnfinishedDependency,
        Self::PhaseAheadOfEvidence,
        Self::AllDoneNotDelivered,
        Self::RowsExceedEvents,
        Self::RowsMissing,
        Self::BrokenLine,
        Self::BranchMismatch,
        Self::DirtyTree,
        Self::AttemptContested,
        Self::MissingCommits,
        Self::UnexpectedCommits,
        Self::WorktreeMissing,
        Self::WorktreeDetached,
        Self::WorktreeMidRebase,
        Self::EntersEarlier,
        Self::StaleAge,
        Self::ClockInFuture,
        Self::ResumedRepeatedly,
        Self::ResumesInVain,
        Self::BudgetElapsed,
        Self::StillRunning,
        Self::OtherSessionLive,
        Self::OrphanProcess,
        Self::TornTail,
        Self::JournalDamaged,
        Self::WorkflowChanged,
        Self::DefinitionTouchesDone,
        Self::ApprovalOutdated,
        Self::EffectUnknown,
        Self::PrerequisiteMissing,
    ];

    /// Its word, how bad it is, and whether a person's yes settles it when it blocks.
    #[rustfmt::skip]
    const fn row(self) -> (&'static str, Severity, Yes) {
        use {Severity::{Blocking, Info, Warning}, Yes::{Not, Settles}};
        match self {
            Self::MissingArtifact     => ("missing-artifact",     Warning,  Settles),
            Self::ArtifactChanged | Self::InputChanged =>
                                         ("artifact-changed",     Warning,  Settles),
            Self::ArtifactUnproved    => ("artifact-unproved",    Warning,  Settles),
            Self::LeftoverTempFile    => ("leftover-temp-file",   Info,     Settles),
            Self::StatusDisagrees     => ("status-disagrees",     Warning,  Settles),
            Self::DoneWithUnfinishedDependency =>
                                   ("done-with-unfinished-dependency", Warning, Settles),
            Self::PhaseAheadOfEvidence => ("phase-ahead-of-evidence", Warning, Settles),
            Self::AllDoneNotDelivered => ("all-done-not-delivered", Info,   Settles),
            Self::RowsExceedEvents    => ("rows-exceed-events",   Warning,  Settles),
            Self::RowsMissing         => ("rows-missing",         Warning,  Settles),
            Self::BrokenLine          => ("broken-line",          Warning,  Settles),
            Self::BranchMismatch      => ("branch-mismatch",      Blocking, Settles),
            Self::DirtyTree           => ("dirty-tree",           Warning,  Settles),
            // The tree is dirty on the very paths that would be put back.
            Self::AttemptContested    => ("dirty-tree",           Blocking, Settles),
            Self::MissingCommits      => ("missing-commits",      Warning,  Settles),
            Self::UnexpectedCommits   => ("unexpected-commits",   Warning,  Settles),
            Self::WorktreeMissing     => ("worktree-missing",     Warning,  Settles),
            Self::WorktreeDetached    => ("worktree-detached",    Blocking, Settles),
            Self::WorktreeMidRebase   => ("worktree-mid-rebase",  Blocking, Not),
            Self::EntersEarlier       => ("enters-earlier",       Warning,  Settles),
            Self::StaleAge            => ("stale-age",            Warning,  Settles),
            // A moment that has not come yet is not a clock's opinion but corruption.
            Self::ClockInFuture       => ("clock-in-future",      Blocking, Settles),
            Self::ResumedRepeatedly   => ("resumed-repeatedly",   Warning,  Settles),
            // Three times in a row for nothing: the fourth needs a yes.
            Self::ResumesInVain       => ("resumed-repeatedly",   Blocking, Settles),
            Self::BudgetElapsed       => ("budget-elapsed",       Warning,  Settles),
            Self::StillRunning        => ("still-running",        Blocking, Not),
            Self::OtherSessionLive    => ("other-session-live",   Warning,  Settles),
            Self::OrphanProcess       => ("orphan-process",       Warning,  Settles),
            Self::TornTail            => ("torn-tail",            Info,     Settles),
            Self::JournalDamaged      => ("journal-damaged",      Blocking, Not),
            Self::WorkflowChanged     => ("workflow-changed",     Info,     Settles),
            Self::DefinitionTouchesDone => ("definition-touches-done", Warning, Settles),
            Self::ApprovalOutdated    => ("approval-outdated",    Warning,  Settles),
            Self::EffectUnknown       => ("effect-unknown",       Blocking, Settles),
            Self::PrerequisiteMissing => ("prerequisite-missing", Blocking, Not),
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    pub const fn severity(self) -> Severity {
        self.row().1
    }

    /// Whether a person may say yes to it and go on; the others must be mended first.
    pub fn can_be_accepted(word: &str) -> bool {
        !Self::ALL.iter().any(|code| code.as_str() == word && code.row().2 == Yes::Not)
    }
}

/// What a person's yes does to a finding that blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Yes {
    Settles,
    /// It is a fact that no opinion changes.
    Not,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_one_thing_to_whoever_accepts_it() {
        for code in Code::ALL {
            for other in Code::ALL.iter().filter(|other| other.as_str() == code.as_str()) {
                assert!(code.row().2 == other.row().2, "{}", code.as_str());
            }
        }
    }

    #[test]
    fn only_facts_that_no_opinion_changes_cannot_be_accepted() {
        let refused: Vec<&str> = Code::ALL
            .iter()
            .map(|code| code.as_str())
            .filter(|word| !Code::can_be_accepted(word))
            .collect();
        let facts = ["worktree-mid-rebase", "still-running", "journal-damaged"];
        assert_eq!(refused, [&facts[..], &["prerequisite-missing"]].concat());
    }
}
