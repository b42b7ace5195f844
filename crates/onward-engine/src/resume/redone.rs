//! Done steps that are done again, because a person asks for it or what they were made from
//! changed: what they changed in files that were there before them is undone first, or it would be
//! applied twice.
//!
//! Invariant: all or ask. Where other hands changed one of these files since, nothing of the step
//! is undone; what is there is kept in a rescue, and asked about.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    overwritten::{run_again, written},
    plan::Resumption,
    policy::Choices,
    run::Run,
    state::Phase,
    survey::Survey,
};

use crate::{
    check::by_hand,
    drive::redone::{attempts, in_place, theirs},
    revert::{
        self,
        rescue::{self, Undoing},
    },
    world::{Stop, World},
};

/// Looks at the steps that this resume gives up. Whether it found anything.
pub(super) fn look<W: World>(
    world: &mut W,
    run: &Run,
    made: &Resumption,
    seen: (&mut Survey, &mut BTreeMap<String, Undoing>),
) -> Result<bool, Stop> {
    let (survey, undoing) = seen;
    let choices = &made.choices;
    let mut redone = run_again(made.events.iter());
    redone.retain(|step| run.state.phase(step) == Phase::Done);
    // The files of another system go on changing; that system's rules say what counts.
    if redone.is_empty() || run.state.adopted.is_some() {
        return Ok(false);
    }
    let before = (survey.redone.len(), undoing.len());
    let mut taken = BTreeSet::new();
    for did in attempts(world, run, |step| redone.contains(step))? {
        let (started, step) = (&did.0, &did.0.step);
        let mut changes = in_place(world, run, &did, &redone)?;
        changes.retain(|it| !is_kept(run, choices, step, &it.path));
        // A file that several of them changed goes back to before the first one.
        changes.retain(|it| taken.insert(it.path.clone()));
        let theirs = theirs(world, run, started, &changes)?;
        if theirs.is_empty() {
            if changes.is_empty() {
                continue;
            }
            let number = rescue::next(world, run, by_hand::announced(undoing))?;
            let made = revert::undoing(number, started, &changes);
            if let Some(first) = made.reverts.first() {
                survey.redone.insert(step.clone(), made.reverts.clone());
                undoing.insert(first.rescue.clone(), made);
            }
            continue;
        }
        let asked = survey.by_hand.entry(step.clone()).or_default();
        let new = theirs.into_iter().filter(|path| !asked.iter().any(|it| it.path == *path));
        let (new, made) = (new.collect(), by_hand::announced(undoing));
        let kept = by_hand::kept(world, run, (step, started.attempt), new, made)?;
        asked.extend(kept.map(|it| by_hand::announce(it, undoing)).unwrap_or_default());
    }
    survey.by_hand.retain(|_, reverts| !reverts.is_empty());
    Ok(before != (survey.redone.len(), undoing.len()))
}

/// A later step that a person keeps as it is wrote it, too.
fn is_kept(run: &Run, choices: &Choices, step: &Address, path: &str) -> bool {
    let mut others = run.state.steps.glances().map(|(other, _)| other);
    others.any(|other| {
        let wrote = || written(&run.state, other).iter().any(|(it, _)| *it == path);
        other != step && choices.keeps(other) && wrote()
    })
}
