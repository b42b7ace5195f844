//! What was undone, and the command that brings it back: the same words on the screen, in `log` and
//! in `status`.

use std::collections::BTreeMap;

use onward_core::event::{Event, Revert};

use crate::{diagnostic::printable, session::word};

/// So many paths are named.
const NAMED_MAX: usize = 20;

/// A line for each rescue that an event announces.
pub(crate) fn lines(event: &Event, run: &str) -> Vec<String> {
    let reverts: &[Revert] = match event {
        Event::AttemptStarted(it) => &it.reverts,
        Event::RunResumed(it) => &it.reverts,
        Event::RunOpened(_)
        | Event::RunAdopted { .. }
        | Event::RunPaused { .. }
        | Event::RunEnded { .. }
        | Event::RunArchived { .. }
        | Event::GroupExpanded { .. }
        | Event::LoopTurned { .. }
        | Event::LoopEnded { .. }
        | Event::StepSkipped { .. }
        | Event::StepInvalidated { .. }
        | Event::AttemptSession { .. }
        | Event::AttemptSpent { .. }
        | Event::AttemptFinished(_)
        | Event::AttemptLost { .. }
        | Event::AttemptAdopted(_)
        | Event::AttemptVerified(_)
        | Event::GateOpened { .. }
        | Event::GateDecided { .. }
        | Event::EffectIntended { .. }
        | Event::EffectSettled { .. }
        | Event::NativeExported { .. }
        | Event::LimitHit { .. }
        | Event::BudgetHit { .. }
        | Event::WorkflowChanged { .. }
        | Event::JournalRepaired { .. }
        | Event::Note { .. } => &[],
    };
    let mut rescues: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for revert in reverts.iter().filter(|it| !it.keeps_in_place()) {
        if let Some(number) = revert.rescue_number() {
            rescues.entry(number).or_default().push(&revert.path);
        }
    }
    rescues.iter().map(|(number, paths)| line(paths, run, *number)).collect()
}

/// `a.txt, b.txt; bring them back with: onward undo RUN 3`
pub(crate) fn line(paths: &[&str], run: &str, number: u32) -> String {
    let mut named: Vec<String> = paths.iter().take(NAMED_MAX).map(|it| printable(it)).collect();
    let more = paths.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let what = if paths.len() == 1 { "it" } else { "them" };
    format!("{}; bring {what} back with: onward undo {} {number}", named.join(", "), word(run))
}
