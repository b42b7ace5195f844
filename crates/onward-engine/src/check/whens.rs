//! Conditions of steps that were decided before, asked once more.

use onward_core::{
    address::Address,
    decide::{Passing, passing},
    facts::Facts,
    run::Run,
};

use crate::{
    check::needs::find_out,
    world::{Stop, World},
};

/// Whether the `when` of a step holds now; `None` where it has none, or cannot be made out.
pub(super) fn holds<W: World>(
    world: &mut W,
    run: &Run,
    step: &Address,
) -> Result<Option<bool>, Stop> {
    let Some(id) = run.graph.find(step) else { return Ok(None) };
    if !run.defs.brief(run.graph.node(id).def).has_when() {
        return Ok(None);
    }
    let mut facts = Facts::default();
    loop {
        match passing(run, &facts, id) {
            Passing::Holds => return Ok(Some(true)),
            Passing::Fails => return Ok(Some(false)),
            Passing::Lacks(needs) => find_out(world, facts.at(step), needs)?,
            Passing::Unknown => return Ok(None),
        }
    }
}
