//! Something the check found: a code, how bad it is, what, where, and what to do.
//!
//! Invariant: a severity comes from a row of a table and from nowhere else: [`Code`] here, and
//! [`DialectCode`] for another system. Where one word has two severities, it has two rows, and the
//! name of each says what makes the difference. Readers see the word alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{address::Address, plural::count};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub code: String,
    /// Private, so that no caller can change what the table says.
    severity: Severity,
    pub message: String,
    /// A file, relative to the project.
    pub path: Option<String>,
    pub step: Option<String>,
    pub hint: Option<String>,
    /// Here no yes settles it, whatever its word means elsewhere. What is read from JSON has lost
    /// that: it is for people.
    #[serde(skip)]
    is_fact: bool,
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

crate::listed! {
    /// Every code of onward itself. The word is the contract.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Code {
        // What was made, and what it was made from.
        MissingArtifact,
        /// It is there, and is not what any step or person made of it.
        ArtifactDamaged,
        ArtifactChanged,
        InputChanged,
        /// A person changed it, and the step that made it runs again.
        ArtifactReplaced,
        /// The file that lists the items of an `each` lists others now.
        ItemsChanged,
        ArtifactUnproved,
        /// Work is there that nothing proves, and going on without asking would count it as done.
        UnprovedWorkCounts,
        LeftoverTempFile,
        // What the journal says against what else says it.
        StatusDisagrees,
        DoneWithUnfinishedDependency,
        PhaseAheadOfEvidence,
        /// A person asked to enter there, and that would pass over unfinished steps.
        EntersAhead,
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
        /// A loop took all the turns that it may take, and what it is for is not reached.
        TurnsUsedUp,
        StaleAge,
        ClockInFuture,
        ResumedRepeatedly,
        ResumesInVain,
        BudgetElapsed,
        // Who else is there.
        StillRunning,
        OtherSessionLive,
        /// A person or another program has the session open that an agent would go on in.
        SessionBusy,
        OrphanProcess,
        // The journal itself.
        TornTail,
        JournalDamaged,
        /// The supervisor knows of an attempt of which the journal knows no start: it lost its end.
        LostTail,
        /// A line of the supervisor's log cannot be read; it may have said how an attempt ended.
        SealDamaged,
        // The workflow, and what it needs.
        WorkflowChanged,
        DefinitionTouchesDone,
        ApprovalOutdated,
        EffectUnknown,
        PrerequisiteMissing,
        /// The same for a run of another system: its files are fine, a line of configuration is
        /// all that is missing.
        AgentNotConfigured,
    }
}

impl Code {
    /// Its word, how bad it is, and whether a person's yes settles it when it blocks.
    #[rustfmt::skip]
    const fn row(self) -> (&'static str, Severity, Yes) {
        use {Severity::{Blocking, Info, Warning}, Yes::{Not, Settles}};
        match self {
            Self::MissingArtifact     => ("missing-artifact",     Warning,  Settles),
            Self::ArtifactDamaged     => ("artifact-damaged",     Warning,  Settles),
            Self::ArtifactChanged | Self::InputChanged =>
                                         ("artifact-changed",     Warning,  Settles),
            // What a person made of it is replaced only when a person says so.
            Self::ArtifactReplaced | Self::ItemsChanged =>
                                         ("artifact-changed",     Blocking, Settles),
            Self::ArtifactUnproved    => ("artifact-unproved",    Warning,  Settles),
            Self::UnprovedWorkCounts  => ("artifact-unproved",    Blocking, Settles),
            Self::LeftoverTempFile    => ("leftover-temp-file",   Info,     Settles),
            Self::StatusDisagrees     => ("status-disagrees",     Warning,  Settles),
            Self::DoneWithUnfinishedDependency =>
                                   ("done-with-unfinished-dependency", Warning, Settles),
            Self::PhaseAheadOfEvidence => ("phase-ahead-of-evidence", Warning, Settles),
            Self::EntersAhead         => ("phase-ahead-of-evidence", Blocking, Settles),
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
            // Another turn costs what the others did, and may be as much in vain.
            Self::TurnsUsedUp         => ("turns-used-up",        Blocking, Settles),
            Self::StaleAge            => ("stale-age",            Warning,  Settles),
            // A moment that has not come yet is not a clock's opinion but corruption.
            Self::ClockInFuture       => ("clock-in-future",      Blocking, Settles),
            Self::ResumedRepeatedly   => ("resumed-repeatedly",   Warning,  Settles),
            // Three times in a row for nothing: the fourth needs a yes.
            Self::ResumesInVain       => ("resumed-repeatedly",   Blocking, Settles),
            Self::BudgetElapsed       => ("budget-elapsed",       Warning,  Settles),
            Self::StillRunning        => ("still-running",        Blocking, Not),
            Self::OtherSessionLive    => ("other-session-live",   Warning,  Settles),
            Self::SessionBusy         => ("session-busy",         Warning,  Settles),
            Self::OrphanProcess       => ("orphan-process",       Warning,  Settles),
            Self::TornTail            => ("torn-tail",            Info,     Settles),
            Self::JournalDamaged | Self::LostTail =>
                                         ("journal-damaged",      Blocking, Not),
            // What may be finished runs again only when a person says so.
            Self::SealDamaged         => ("seal-damaged",         Blocking, Settles),
            Self::WorkflowChanged     => ("workflow-changed",     Info,     Settles),
            Self::DefinitionTouchesDone => ("definition-touches-done", Warning, Settles),
            Self::ApprovalOutdated    => ("approval-outdated",    Warning,  Settles),
            Self::EffectUnknown       => ("effect-unknown",       Blocking, Settles),
            Self::PrerequisiteMissing => ("prerequisite-missing", Blocking, Not),
            // The files stand against nothing; a setting does.
            Self::AgentNotConfigured  => ("prerequisite-missing", Warning,  Not),
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    pub const fn severity(self) -> Severity {
        self.row().1
    }

    /// Whether a person may say yes to it and go on; the others must be mended first. A finding
    /// knows better: [`Finding::can_be_accepted`].
    pub fn can_be_accepted(word: &str) -> bool {
        let is_fact = |code: &&Self| code.as_str() == word && code.row().2 == Yes::Not;
        ![RUN_OVER, RUN_SUPERSEDED].contains(&word) && !Self::ALL.iter().any(|code| is_fact(&code))
    }
}

/// Another system's files say that the run failed or was cancelled there. As with a cancelled run
/// of our own, no yes settles it: `--force` takes the run up again.
pub const RUN_OVER: &str = "run-over";

/// Another run lies where the other system kept the one that ours goes on with. Ours is over: no
/// word takes it up again.
pub const RUN_SUPERSEDED: &str = "run-superseded";

/// What a person's yes does to a finding that blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Yes {
    Settles,
    /// It is a fact that no opinion changes.
    Not,
}

/// A code in the table of a dialect. It may use a word of [`Code`]: what the other system's users
/// call by that word may be graver or milder there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DialectCode {
    pub word: &'static str,
    pub severity: Severity,
}

impl Finding {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with(code.as_str(), code.severity(), message.into())
    }

    /// The only other way: by a row of a dialect's table.
    pub fn of_dialect(code: DialectCode, message: impl Into<String>) -> Self {
        Self::with(code.word, code.severity, message.into())
    }

    fn with(word: &str, severity: Severity, message: String) -> Self {
        let code = word.to_owned();
        Self { code, severity, message, path: None, step: None, hint: None, is_fact: false }
    }

    /// Whether a person may say yes to it and go on.
    pub fn can_be_accepted(&self) -> bool {
        !self.is_fact && Code::can_be_accepted(&self.code)
    }

    /// It must be mended first: going on could not work.
    #[must_use]
    pub fn as_a_fact(mut self) -> Self {
        self.is_fact = true;
        self
    }

    pub fn severity(&self) -> Severity {
        self.severity
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

/// So many findings that say the same of steps of one phase or fan-out are told one by one.
const ALIKE_MAX: usize = 3;

/// A finding as people read it: one that stands for others that say the same of further steps.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    pub finding: &'a Finding,
    /// How many others.
    others: usize,
}

impl<'a> Told<'a> {
    /// It stands for itself.
    pub fn alone(finding: &'a Finding) -> Self {
        Self { finding, others: 0 }
    }

    /// Its words, and of how many other steps the same is to be said.
    pub fn message(&self) -> String {
        let Finding { message, step, .. } = self.finding;
        match (self.others, step) {
            (0, _) | (_, None) => message.clone(),
            (others, Some(step)) => {
                let (scope, others) = (top(step), count(others, "more step"));
                format!("{message}; the same of {others} in {scope}")
            }
        }
    }
}

/// Findings in their order; where many say the same of steps of one phase or fan-out, the first of
/// them stands for all.
pub fn told<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Told<'a>> {
    let findings: Vec<&Finding> = findings.into_iter().collect();
    let mut many: BTreeMap<Sentence<'_>, usize> = BTreeMap::new();
    for finding in &findings {
        *many.entry(sentence(finding)).or_default() += 1;
    }
    let mut all = Vec::new();
    for finding in findings {
        let count = many.entry(sentence(finding)).or_default();
        match *count {
            // Told already.
            0 => {}
            some if some > ALIKE_MAX => {
                all.push(Told { finding, others: some - 1 });
                *count = 0;
            }
            _ => all.push(Told::alone(finding)),
        }
    }
    all
}

/// What a finding says, whichever of the steps of a phase or fan-out it says it of.
type Sentence<'a> = (&'a str, Severity, Option<&'a str>, String);

fn sentence(finding: &Finding) -> Sentence<'_> {
    let Finding { code, severity, message, path, step, .. } = finding;
    let message = match step {
        Some(step) => message.replacen(step.as_str(), "", 1),
        None => message.clone(),
    };
    let message = format!("{message}{}", path.as_deref().unwrap_or_default());
    (code, *severity, step.as_deref().map(top), message)
}

/// The phase or fan-out that a step stands in.
fn top(step: &str) -> &str {
    let top = step.split('/').next().unwrap_or(step);
    top.split('[').next().unwrap_or(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_who_accepts_a_word_accepts_one_thing() {
        for code in Code::ALL {
            for other in Code::ALL.iter().filter(|other| other.as_str() == code.as_str()) {
                assert!(code.row().2 == other.row().2, "{}", code.as_str());
            }
        }
    }

    #[test]
    fn only_facts_that_no_opinion_changes_cannot_be_accepted() {
        let mut refused: Vec<&str> = Code::ALL
            .iter()
            .map(|code| code.as_str())
            .filter(|word| !Code::can_be_accepted(word))
            .collect();
        refused.dedup();
        let (missing, damaged) = ("prerequisite-missing", "journal-damaged");
        assert_eq!(refused, ["worktree-mid-rebase", "still-running", damaged, missing]);
    }

    /// A severity that differs has its reason in the name of the second row.
    #[test]
    fn the_words_with_two_severities_are_these() {
        let mut twice: Vec<&str> = Vec::new();
        for code in Code::ALL {
            let differs =
                |it: &&Code| it.as_str() == code.as_str() && it.severity() != code.severity();
            if Code::ALL.iter().any(|it| differs(&it)) && !twice.contains(&code.as_str()) {
                twice.push(code.as_str());
            }
        }
        let unproved =
            ["artifact-changed", "artifact-unproved", "phase-ahead-of-evidence", "dirty-tree"];
        assert_eq!(
            twice,
            [&unproved[..], &["resumed-repeatedly", "prerequisite-missing"]].concat()
        );
    }

    #[test]
    fn what_is_the_same_of_many_steps_is_told_once() {
        let of = |step: &str, message: &str| {
            let step = Address::from_text(step);
            Finding::new(Code::DefinitionTouchesDone, format!("{step} {message}")).at_step(&step)
        };
        let mut all: Vec<Finding> = (0..5).map(|it| of(&format!("fan[{it}]"), "changed")).collect();
        all.extend([of("fan[5]", "is gone"), of("one", "changed")]);
        let words = |all: &[Finding]| told(all).iter().map(Told::message).collect::<Vec<_>>();
        let others = "fan[0] changed; the same of 4 more steps in fan";
        assert_eq!(words(&all), [others, "fan[5] is gone", "one changed"]);
        assert_eq!(words(&all[..3]), ["fan[0] changed", "fan[1] changed", "fan[2] changed"]);
    }
}
