//! What was undone or is replaced, and the command that brings it back: the same words on the
//! screen, in `log` and in `status`.

use std::collections::BTreeMap;

use onward_core::event::{Event, Revert};

use crate::{
    command::{onward, option, word},
    diagnostic::printable,
    style::wrap_with,
};

/// So many paths are named.
const NAMED_MAX: usize = 20;

/// Why there is a rescue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// A half-done attempt left it, and it was put back.
    Undone,
    /// A person changed it, and a step replaces it.
    Replaced,
}

/// A line for each rescue that an event announces; the first begins at `at`, what does not fit
/// into `width` at `indent`.
pub(crate) fn lines(
    event: &Event,
    run: &str,
    (width, at, indent): (Option<usize>, usize, usize),
) -> Vec<(Why, String)> {
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
    let line = |((number, why), paths): (&(u32, Why), &Vec<&str>)| {
        let (said, command) = line(paths, run, *number, *why);
        (*why, wrap_with(&said, &command, width, at, indent))
    };
    by_rescue(reverts).iter().map(line).collect()
}

/// The paths of each rescue.
pub(crate) fn by_rescue(reverts: &[Revert]) -> BTreeMap<(u32, Why), Vec<&str>> {
    let mut rescues: BTreeMap<(u32, Why), Vec<&str>> = BTreeMap::new();
    for revert in reverts {
        let why = if revert.keeps_in_place() { Why::Replaced } else { Why::Undone };
        if let Some(number) = revert.rescue_number() {
            rescues.entry((number, why)).or_default().push(&revert.path);
        }
    }
    rescues
}

/// `a.txt, b.txt; bring them back with:` and `onward undo RUN 3`
pub(crate) fn line(paths: &[&str], run: &str, number: u32, why: Why) -> (String, String) {
    let mut named: Vec<String> = paths.iter().take(NAMED_MAX).map(|it| printable(it)).collect();
    let more = paths.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let what = if paths.len() == 1 { "it" } else { "them" };
    let changed = match why {
        Why::Undone => "",
        Why::Replaced => ", changed by hand",
    };
    let said = format!("{}{changed}; bring {what} back with:", named.join(", "));
    let mut command = onward!("undo {} {number}", word(run));
    // What a step made since is replaced only by name.
    for path in paths.iter().filter(|_| why == Why::Replaced && more == 0) {
        command = format!("{command} {}", option("--replace", path));
    }
    (said, command)
}
