//! Done steps that a person asks for once more: what they changed in files that were there before
//! them is undone first, or it would be applied twice.
//!
//! Invariant: all or ask. Where other hands changed one of these files since, nothing of the step
//! is undone; what is there is kept in a rescue, and asked about.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    event::{AttemptStarted, Event},
    journal::Reader,
    overwritten::written,
    policy::Choices,
    run::Run,
    state::Phase,
    survey::was_made_by_the_run,
};

use crate::{
    check::{by_hand, survey::Seen},
    load::journal::JOURNAL,
    revert,
    world::{At, Change, Stop, World},
};

pub(super) fn look<W: World>(
    world: &mut W,
    run: &Run,
    choices: &Choices,
    seen: &mut Seen,
) -> Result<(), Stop> {
    let done = run.state.steps.glances().filter(|(_, it)| it.phase() == Phase::Done);
    let redone = done.map(|(step, _)| step).filter(|step| choices.redoes(step));
    let redone: BTreeSet<Address> = redone.cloned().collect();
    // The files of another system go on changing; that system's rules say what counts.
    if redone.is_empty() || run.state.adopted.is_some() {
        return Ok(());
    }
    let moved: BTreeSet<String> = world.moved("")?.into_iter().collect();
    let mut taken = BTreeSet::new();
    for (started, after) in attempts(world, run, &redone)? {
        let step = &started.step;
        let mut left = revert::footprint(world, &started, after.as_deref())?;
        left.leave_workflow(run);
        let is_kept = |path: &str| is_kept(run, choices, step, path);
        let in_place = |it: &&Change| {
            let by_run = |base| was_made_by_the_run(&run.state, &it.path, base);
            it.base.is_some_and(|(base, _)| !by_run(base)) && !is_kept(&it.path)
        };
        let mut changes: Vec<Change> = left.changes.iter().filter(in_place).cloned().collect();
        // A file that several of them changed goes back to before the first one.
        changes.retain(|it| taken.insert(it.path.clone()));
        let is_ours = |it: &&Change| match it.left {
            Some((now, _)) if was_made_by_the_run(&run.state, &it.path, now) => true,
            Some(_) | None => started.base.is_some() && !moved.contains(&it.path),
        };
        let theirs: Vec<String> =
            changes.iter().filter(|it| !is_ours(it)).map(|it| it.path.clone()).collect();
        let undoing = &mut seen.undoing;
        if theirs.is_empty() {
            let number = by_hand::next(run, undoing);
            let made = revert::undoing(number, &started, &changes);
            if let Some(first) = made.reverts.first() {
                seen.survey.redone.insert(step.clone(), made.reverts.clone());
                undoing.insert(first.rescue.clone(), made);
            }
            continue;
        }
        let asked = seen.survey.by_hand.entry(step.clone()).or_default();
        let new = theirs.into_iter().filter(|path| !asked.iter().any(|it| it.path == *path));
        let number = by_hand::next(run, undoing);
        let kept = by_hand::kept(world, run, (step, started.attempt), new.collect(), number)?;
        asked.extend(kept.map(|it| by_hand::announce(it, undoing)).unwrap_or_default());
    }
    seen.survey.by_hand.retain(|_, reverts| !reverts.is_empty());
    Ok(())
}

/// A later step that a person keeps as it is wrote it, too.
fn is_kept(run: &Run, choices: &Choices, step: &Address, path: &str) -> bool {
    let mut others = run.state.steps.glances().map(|(other, _)| other);
    others.any(|other| {
        let wrote = || written(&run.state, other).iter().any(|(it, _)| *it == path);
        other != step && choices.keeps(other) && wrote()
    })
}

/// The attempt that did each of these steps in the project's own tree, in their order, and the
/// snapshot after it, where enough is known to tell what it changed.
fn attempts<W: World>(
    world: &mut W,
    run: &Run,
    steps: &BTreeSet<Address>,
) -> Result<Vec<(AttemptStarted, Option<String>)>, Stop> {
    let bytes = world.read(At::Run(JOURNAL))?.unwrap_or_default();
    let mut reader = Reader::new(bytes.as_slice());
    let mut all: Vec<(AttemptStarted, Option<String>)> = Vec::new();
    // What cannot be read is told elsewhere.
    while let Ok(Some(record)) = reader.next_record() {
        if let Event::AttemptStarted(started) = record.event {
            if steps.contains(&started.step) {
                all.retain(|it| it.0.step != started.step);
                all.push((*started, None));
            }
        } else if let Event::AttemptFinished(finished) = record.event {
            let its = all.iter_mut().find(|it| it.0.step == finished.step);
            if let Some(its) = its.filter(|it| it.0.attempt == finished.attempt) {
                its.1.clone_from(&finished.after);
            }
        }
    }
    let is_last = |it: &AttemptStarted| {
        run.state.step(&it.step).is_some_and(|entry| entry.attempts == it.attempt)
    };
    all.retain(|(started, after)| {
        let is_told = started.base.is_none() || after.is_some();
        is_told && started.cwd.is_empty() && is_last(started)
    });
    Ok(all)
}
