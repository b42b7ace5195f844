//! What was undone or is replaced, and the command that brings it back: the same words on the
//! screen, in `log` and in `status`.

use std::{collections::BTreeMap, path::Path};

use onward_core::event::{Event, Revert};

use crate::{
    command::{onward, option, word},
    diagnostic::printable,
    error::Error,
    session::{id_of, open_run},
    style::{columns, wrap_with},
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

/// What to say of a run that was cancelled without a driver, which had been resumed so many times
/// before that: what was undone is in the resume that ended it.
pub(crate) fn by_end(dir: &Path, resumes: u32) -> Result<(&'static str, Vec<String>), Error> {
    let state = open_run(dir)?.state;
    let ending = state.resumed.as_deref().filter(|it| it.count > resumes);
    let reverts = ending.map_or(&[][..], |it| &it.reverts);
    let id = id_of(dir);
    let lines: Vec<String> = by_rescue(reverts)
        .iter()
        .map(|((number, why), paths)| {
            let (said, command) = line(paths, &id, *number, *why);
            let word = match why {
                Why::Undone => "undone",
                Why::Replaced => "saved",
            };
            format!("  {word}: {}", wrap_with(&said, &command, columns(), 10, 4))
        })
        .collect();
    let is_undone = reverts.iter().any(|it| !it.keeps_in_place());
    let stays =
        if is_undone { "what it left half done is undone, its other files stay" } else { STAYS };
    Ok((stays, lines))
}

const STAYS: &str = "its files stay";

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
