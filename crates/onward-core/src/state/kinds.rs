//! The words of events in the journal. Invariant: each event has one, and it never changes.

use crate::event::Event;

impl Event {
    /// The word in the journal.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunOpened(_) => "run.opened",
            Self::RunAdopted { .. } => "run.adopted",
            Self::RunResumed(_) => "run.resumed",
            Self::RunPaused { .. } => "run.paused",
            Self::RunEnded { .. } => "run.ended",
            Self::RunArchived { .. } => "run.archived",
            Self::GroupExpanded { .. } => "group.expanded",
            Self::LoopTurned { .. } => "loop.turned",
            Self::LoopEnded { .. } => "loop.ended",
            Self::StepSkipped { .. } => "step.skipped",
            Self::StepInvalidated { .. } => "step.invalidated",
            Self::AttemptStarted(_) => "attempt.started",
            Self::AttemptSession { .. } => "attempt.session",
            Self::AttemptSpent { .. } => "attempt.spent",
            Self::AttemptFinished(_) => "attempt.finished",
            Self::AttemptLost { .. } => "attempt.lost",
            Self::AttemptAdopted(_) => "attempt.adopted",
            Self::AttemptVerified { .. } => "attempt.verified",
            Self::GateOpened { .. } => "gate.opened",
            Self::GateDecided { .. } => "gate.decided",
            Self::EffectIntended { .. } => "effect.intended",
            Self::EffectSettled { .. } => "effect.settled",
            Self::NativeExported { .. } => "native.exported",
            Self::LimitHit { .. } => "limit.hit",
            Self::BudgetHit { .. } => "budget.hit",
            Self::WorkflowChanged { .. } => "workflow.changed",
            Self::JournalRepaired { .. } => "journal.repaired",
            Self::Note { .. } => "note",
        }
    }
}

/// Every word, in the order of the events.
pub(super) const KINDS: [&str; 28] = [
    "run.opened",
    "run.adopted",
    "run.resumed",
    "run.paused",
    "run.ended",
    "run.archived",
    "group.expanded",
    "loop.turned",
    "loop.ended",
    "step.skipped",
    "step.invalidated",
    "attempt.started",
    "attempt.session",
    "attempt.spent",
    "attempt.finished",
    "attempt.lost",
    "attempt.adopted",
    "attempt.verified",
    "gate.opened",
    "gate.decided",
    "effect.intended",
    "effect.settled",
    "native.exported",
    "limit.hit",
    "budget.hit",
    "workflow.changed",
    "journal.repaired",
    "note",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::journal::arbitrary::any_event;

    proptest! {
        #[test]
        fn every_word_is_in_the_list(event in any_event()) {
            prop_assert!(KINDS.contains(&event.kind()));
        }
    }
}
