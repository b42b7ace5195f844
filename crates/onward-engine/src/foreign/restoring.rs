//! What the other system's files lost, put back from our journal, and what else that knows of them.
//!
//! Invariant: only what a journal of ours knows is put back, as the first thing that a resume
//! writes; an examination sees the files as they are then.

use onward_core::{
    run::Run,
    time::Timestamp,
    told::{Restored, Told},
};
use onward_dialects::Files;

use super::{Foreign, Reading, export, ours};
use crate::world::Stop;

/// What is to be put back. What the files tell is what they tell then.
pub(super) fn look(
    foreign: &Foreign,
    (files, told): (&Files, &mut Box<dyn Told>),
    run: &Run,
    now: Timestamp,
) -> Result<Option<Restored>, Stop> {
    ours::beside(&mut **told, run);
    let Some(found) = told.restore(&|step| run.state.done(step), now) else { return Ok(None) };
    let after = export::after(files.clone(), &found.changes);
    let Reading { told: Some(again), .. } = foreign.parse(after)? else { return Ok(None) };
    *told = again;
    ours::beside(&mut **told, run);
    Ok(Some(found))
}
