//! Finished steps that are done again: what they changed in files that were there before them is
//! undone first, or it would be applied twice.
//!
//! Invariant: nothing is undone on which work that stays was done, nor what other hands changed.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    event::{AttemptStarted, Event},
    journal::Reader,
    overwritten::written,
    run::Run,
    state::Phase,
    survey::was_made_by_the_run,
};

use super::{Driver, prepare::UndoOfPrevious};
use crate::{
    load::journal::JOURNAL,
    revert::{self, rescue},
    world::{At, Change, Stop, World},
};

/// The attempt that did a step, and the snapshot after it.
pub(crate) type Did = (AttemptStarted, Option<String>);

/// What an attempt changed in place, as far as no work stands on it that is not done again.
pub(crate) fn in_place<W: World>(
    world: &mut W,
    run: &Run,
    (started, after): &Did,
    again: &BTreeSet<Address>,
) -> Result<Vec<Change>, Stop> {
    let mut left = revert::footprint(world, started, after.as_deref())?;
    left.leave_workflow(run);
    let is_in_place = |it: &Change| {
        let by_run = |base| was_made_by_the_run(&run.state, &it.path, base);
        it.base.is_some_and(|(base, _)| !by_run(base))
    };
    left.changes.retain(is_in_place);
    if left.changes.is_empty() {
        return Ok(Vec::new());
    }
    let since = run.state.step(&started.step).map(|it| it.started_at).unwrap_or_default();
    let mut built_upon = BTreeSet::new();
    for (other, glance) in run.state.steps.glances() {
        if glance.phase().is_concluded() && glance.ended_at() > since && !again.contains(other) {
            built_upon.extend(written(&run.state, other).into_iter().map(|it| it.0));
        }
    }
    left.changes.retain(|it| !built_upon.contains(it.path.as_str()));
    Ok(left.changes)
}

/// Those of these that other hands changed since.
pub(crate) fn theirs<W: World>(
    world: &mut W,
    run: &Run,
    started: &AttemptStarted,
    changes: &[Change],
) -> Result<Vec<String>, Stop> {
    let moved: BTreeSet<String> = world.moved("")?.into_iter().collect();
    let is_ours = |it: &&Change| match it.left {
        Some((now, _)) if was_made_by_the_run(&run.state, &it.path, now) => true,
        Some(_) | None => started.base.is_some() && !moved.contains(&it.path),
    };
    let theirs = changes.iter().filter(|it| !is_ours(it));
    Ok(theirs.map(|it| it.path.clone()).collect())
}

/// The attempt that did each of these steps in the project's own tree, in their order, and the
/// snapshot after it, where enough is known to tell what it changed.
pub(crate) fn attempts<W: World>(
    world: &mut W,
    run: &Run,
    is_meant: impl Fn(&Address) -> bool,
) -> Result<Vec<Did>, Stop> {
    let bytes = world.read(At::Run(JOURNAL))?.unwrap_or_default();
    let mut reader = Reader::new(bytes.as_slice());
    let mut all: BTreeMap<Address, (usize, Did)> = BTreeMap::new();
    // What cannot be read is told elsewhere.
    while let Ok(Some(record)) = reader.next_record() {
        if let Event::AttemptStarted(started) = record.event {
            if is_meant(&started.step) {
                let place = usize::try_from(record.seq).unwrap_or(usize::MAX);
                let def = run.graph.find(&started.step).map(|id| run.graph.node(id).def);
                let edits = def.is_some_and(|def| run.defs.brief(def).edits());
                // Of one that may not edit, its outputs alone are its own.
                let base = started.base.clone().filter(|_| edits);
                let started = AttemptStarted { base, ..*started };
                all.insert(started.step.clone(), (place, (started, None)));
            }
        } else if let Event::AttemptFinished(finished) = record.event {
            let its = all.get_mut(&finished.step).map(|it| &mut it.1);
            if let Some(its) = its.filter(|it| it.0.attempt == finished.attempt) {
                its.1.clone_from(&finished.after);
            }
        }
    }
    let is_last = |it: &AttemptStarted| {
        run.state.step(&it.step).is_some_and(|entry| entry.attempts == it.attempt)
    };
    let mut all: Vec<(usize, Did)> = all.into_values().collect();
    all.sort_by_key(|it| it.0);
    let all = all.into_iter().map(|it| it.1).filter(|(started, after)| {
        let is_told = started.base.is_none() || after.is_some();
        is_told && started.cwd.is_empty() && is_last(started)
    });
    Ok(all.collect())
}

impl<W: World> Driver<'_, W> {
    /// Rescues what a step changed in place that counts no more since the run goes on: what a step
    /// that it needs made came out otherwise. What a resume gave up was undone then.
    pub(crate) fn undo_of_done(&mut self, step: &Address) -> Result<UndoOfPrevious, Stop> {
        let state = &self.run.state;
        if state.adopted.is_some() || !self.changes_in_place(step)? {
            return Ok(UndoOfPrevious::default());
        }
        let Some(did) = attempts(self.world, &self.run, |it| it == step)?.pop() else {
            return Ok(UndoOfPrevious::default());
        };
        let state = &self.run.state;
        let is_stale = |step: &Address| state.phase(step) == Phase::Stale;
        let again = state.steps.glances().map(|it| it.0).filter(|it| is_stale(it));
        let again: BTreeSet<Address> = again.cloned().collect();
        let changes = in_place(self.world, &self.run, &did, &again)?;
        // On top of what other hands changed it is done once more.
        if changes.is_empty() || !theirs(self.world, &self.run, &did.0, &changes)?.is_empty() {
            return Ok(UndoOfPrevious::default());
        }
        let number = rescue::next(self.world, &self.run, [])?;
        let undoing = revert::undoing(number, &did.0, &changes);
        let kept = undoing.keep(self.world)?;
        Ok(UndoOfPrevious {
            reverts: undoing.reverts,
            declared: did.0.saved.into_keys().collect(),
            undone: kept.map(|it| it.undone),
        })
    }

    /// Whether the attempt that did it may have changed a file that was there. The journal is read
    /// for that once.
    fn changes_in_place(&mut self, step: &Address) -> Result<bool, Stop> {
        let Some(entry) = self.run.state.step(step).filter(|it| it.phase == Phase::Stale) else {
            return Ok(false);
        };
        if entry.ended_at >= self.opened_at {
            return Ok(true);
        }
        if let Some(known) = &self.in_place {
            return Ok(known.contains(step));
        }
        let all = attempts(self.world, &self.run, |_| true)?;
        let may = |it: &&Did| it.0.base.is_some() || it.0.saved.values().any(Option::is_some);
        let known: BTreeSet<Address> = all.iter().filter(may).map(|it| it.0.step.clone()).collect();
        let is_known = known.contains(step);
        self.in_place = Some(known);
        Ok(is_known)
    }
}
