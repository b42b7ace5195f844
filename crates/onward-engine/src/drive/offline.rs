//! What a person says about a run that no driver holds, written to its journal.
//!
//! Invariant: the caller holds the run's lock, and nothing is touched before the answer is
//! accepted.

use std::sync::Arc;

use onward_core::{address::Address, event::Event, graph::Defs, journal::Rest, run::Run};

use crate::{
    check::witness,
    drive::gate::{self, Answer, Refused},
    load::{
        checkpoint::load_kept,
        journal::{Journal, LoadError, mend_tail},
    },
    world::{Stop, World, real::RealWorld},
};

/// Why an answer could not be written to the journal.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    #[error("the run has no journal")]
    NoJournal,
    #[error("the journal is damaged")]
    Damaged,
    #[error(transparent)]
    Journal(#[from] LoadError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("there is no step `{0}` in this run")]
    NoSuchStep(Address),
    #[error("`{step}` is not proved done: {why}")]
    Unproved { step: Address, why: String },
    #[error("`{0}` is {1} already")]
    Settled(Address, &'static str),
    #[error("the driver has not read the answer to `{0}` yet; it waits in its inbox")]
    Unheard(Address),
    #[error("the run was {0} already")]
    Over(&'static str),
    #[error("attempts were running when the driver of this run died")]
    InFlight,
    #[error(transparent)]
    Stop(#[from] Stop),
}

impl DecideError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(refused) => Some(refused.hint()),
            Self::Damaged => Some("see `onward plan`, then run `onward repair`".to_owned()),
            Self::InFlight => Some("`onward resume` sees to them; then cancel".to_owned()),
            Self::Stop(stop) => stop.hint(),
            Self::NoJournal
            | Self::Journal(_)
            | Self::NoSuchStep(_)
            | Self::Over(_)
            | Self::Unheard(_)
            | Self::Unproved { .. }
            | Self::Settled(..) => None,
        }
    }
}

/// Answers a gate of a run without a driver. The caller holds the run's lock.
pub fn decide_offline(
    world: RealWorld,
    workflow: Arc<Defs>,
    answer: Answer,
) -> Result<(), DecideError> {
    write_offline(world, workflow, |world, run| Ok(gate::decided(world, run, answer)??))
}

/// Writes what a person said to the journal of a run without a driver. The caller holds its lock.
pub fn write_offline(
    mut world: RealWorld,
    workflow: Arc<Defs>,
    make: impl FnOnce(&mut RealWorld, &Run) -> Result<Vec<Event>, DecideError>,
) -> Result<(), DecideError> {
    let loaded = load_kept::<_, DecideError>(&mut world, None)?;
    let (loaded, end) = loaded.ok_or(DecideError::NoJournal)?;
    if let Rest::Damaged(_) = loaded.tail.rest {
        return Err(DecideError::Damaged);
    }
    let mut run = Run::new(workflow, loaded.state);
    // The supervisor's log knows more than the journal: its end is lost.
    if witness::lost_tail(&run, &world.look_at_hands(&run.state)?).is_some() {
        return Err(DecideError::Damaged);
    }
    // Refused before anything is touched.
    let events = make(&mut world, &run)?;
    mend_tail(&mut world, &end, &loaded.tail)?;
    let mut journal = Journal::after(&run.state, loaded.tail.missing_newline);
    for mut event in events {
        world.clean(&mut event);
        let at = world.now();
        journal.record(&mut run, at, event)?;
    }
    journal.commit(&mut world)?;
    world.finish()?;
    Ok(())
}
