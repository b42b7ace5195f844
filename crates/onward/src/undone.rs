//! What was undone, and the command that brings it back: the same words on the screen, in `log` and
//! in `status`.

use std::collections::BTreeMap;

use onward_core::event::{Event, Revert};

use crate::{diagnostic::printable, session::word, style::wrap_with};

/// So many paths are named.
const NAMED_MAX: usize = 20;

/// A line for each rescue that an event announces; the first begins at `at`, what does not fit
/// into `width` at `indent`.
pub(crate) fn lines(
    event: &Event,
    run: &str,
    (width, at, indent): (Option<usize>, usize, usize),
) -> Vec<String> {
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
    let line = |(number, paths): (&u32, &Vec<&str>)| {
        let (said, command) = line(paths, run, *number);
        wrap_with(&said, &command, width, at, indent)
    };
    rescues.iter().map(line).collect()
}

/// `a.txt, b.txt; bring them back with:` and `onward undo RUN 3`
pub(crate) fn line(paths: &[&str], run: &str, number: u32) -> (String, String) {
    let mut named: Vec<String> = paths.iter().take(NAMED_MAX).map(|it| printable(it)).collect();
    let more = paths.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let what = if paths.len() == 1 { "it" } else { "them" };
    let said = format!("{}; bring {what} back with:", named.join(", "));
    (said, format!("onward undo {} {number}", word(run)))
}
