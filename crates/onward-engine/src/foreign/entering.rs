//! A person enters somewhere else than at the recovery point.
//!
//! Invariant: the place is written into the other system's log before anything else is; what its
//! files prove from then on is what counts, so that no second way to place a run is needed.

use onward_core::{
    finding::{Code, Finding},
    policy::EnterAt,
    run::Run,
    time::Timestamp,
    told::{Change, Entering, NoEntry, Told},
};
use onward_dialects::Files;

use super::{Foreign, export};
use crate::world::Stop;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Entered {
    pub(super) place: String,
    pub(super) at: Timestamp,
    /// What has to be written; nothing when that is where it goes on anyway.
    pub(super) changes: Vec<Change>,
    /// How it was placed without it.
    detected: String,
    refused: Option<Finding>,
}

impl Entered {
    pub(super) fn find(told: &dyn Told, from: &EnterAt, at: Timestamp) -> Result<Self, NoEntry> {
        let detected = told.standing(at).point.summary;
        let entering = Entering { place: &from.step, force: from.force, now: at };
        let (changes, refused) = match told.enter(&entering) {
            Ok(changes) => (changes, None),
            Err(NoEntry::Ahead(why)) => {
                // Nothing would be written, so that a yes could not take the run there.
                let finding = Finding::new(Code::EntersAhead, why).as_a_fact();
                let forced = Entering { force: true, ..entering };
                let hint = match told.enter(&forced) {
                    Ok(_) => "`--force` enters there anyway",
                    Err(_) => "leave `--from` out, or enter earlier",
                };
                (Vec::new(), Some(finding.with_hint(hint)))
            }
            Err(unknown @ NoEntry::Unknown(_)) => return Err(unknown),
        };
        Ok(Self { place: from.step.clone(), at, changes, detected, refused })
    }

    /// What entering there means; `redone` steps of ours are done already.
    pub(super) fn told(&self, redone: usize) -> Option<Finding> {
        if let Some(refused) = &self.refused {
            return Some(refused.clone());
        }
        if self.changes.is_empty() {
            return None;
        }
        let place = &self.place;
        let done = if redone > 0 { format!(" ({redone} done steps)") } else { String::new() };
        let message = format!("entering at {place} does again what was done from there on{done}");
        let finding = Finding::new(Code::EntersEarlier, message);
        Some(finding.with_hint(format!("without `--from`: {}", self.detected)))
    }
}

/// What the files say once a person entered there; nothing where that changes nothing.
pub(crate) fn told_at(
    foreign: &Foreign,
    (files, told): (Files, &dyn Told),
    from: &EnterAt,
    at: Timestamp,
) -> Result<Option<Box<dyn Told>>, Stop> {
    // A place that is none was refused with the plan.
    let changes = Entered::find(told, from, at).map(|it| it.changes).unwrap_or_default();
    if changes.is_empty() {
        return Ok(None);
    }
    Ok(foreign.parse(export::after(files, &changes))?.told)
}

/// A person's wish that a crash kept from the files: nothing was written, asked or started since.
pub(super) fn unkept_wish(run: &Run) -> Option<EnterAt> {
    let resumed = run.state.resumed.as_ref().filter(|_| !run.state.acted_since_resume)?;
    Some(EnterAt { step: resumed.entered.clone()?, force: true })
}
