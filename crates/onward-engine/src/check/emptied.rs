//! Files that an attempt left, or that finished work rests on, and that are empty now, or nothing
//! but NUL, since nothing of the run was at work: no person's change, and nothing to ask about.
//!
//! Invariant: what is found here is the attempt's own to make again, or that of the step that made
//! it; no version of it is worth a rescue.

use std::collections::BTreeMap;

use onward_core::{
    address::Address, digest::Digest, run::Run, survey::was_made_by_the_run, time::Timestamp,
};

use super::{outputs::is_void, survey};
use crate::{
    revert::Unfinished,
    world::{Change, Connected, Stop, World},
};

/// Takes them out of what other hands are taken to have changed. The outputs among them, by the
/// attempt that declares them.
pub(super) fn take_out<W: World>(
    world: &mut W,
    run: &Run,
    (connected, now): (&Connected, Timestamp),
    all: &mut [Unfinished<'_>],
) -> Result<BTreeMap<Address, Vec<String>>, Stop> {
    let mut emptied: BTreeMap<Address, Vec<String>> = BTreeMap::new();
    for one in all {
        let Some(started) = one.entry.started.as_deref() else { continue };
        if survey::lives(connected, one) || survey::never_spawned(run, connected, one.step) {
            continue;
        }
        let limit_ns = survey::test(connected, one, started, now).limit_ns;
        // Where a snapshot was taken after it, that one tells.
        let is_late = |it: &Change| match limit_ns {
            Some(_) => it.changed_ns > limit_ns && !it.moved,
            None => it.moved,
        };
        let mut kept = Vec::with_capacity(one.left.changes.len());
        for mut change in std::mem::take(&mut one.left.changes) {
            if !is_late(&change) || !is_empty_now(world, &change)? {
                kept.push(change);
            } else if one.left.declared.contains(&change.path) {
                emptied.entry(one.step.clone()).or_default().push(change.path.clone());
                (change.changed_ns, change.moved) = (None, false);
                kept.push(change);
            } else if !is_finished_work(run, &change) {
                kept.push(change);
            }
        }
        one.left.changes = kept;
    }
    Ok(emptied)
}

fn is_empty_now<W: World>(world: &mut W, change: &Change) -> Result<bool, Stop> {
    if change.left.is_none() {
        return Ok(false);
    }
    let now = world.glob(&change.path, &[])?.into_iter().find(|it| it.path == change.path);
    now.map_or(Ok(false), |now| is_void(world, &now))
}

/// Before the attempt it was what a step of the run had made: that step is looked at instead.
fn is_finished_work(run: &Run, change: &Change) -> bool {
    let was = change.base.map(|(base, _)| base).filter(|it| *it != Digest::of(b""));
    was.is_some_and(|was| was_made_by_the_run(&run.state, &change.path, was))
}
