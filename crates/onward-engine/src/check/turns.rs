//! Loops between two turns: what a resume decides about them first, so that its plan names the
//! steps of the turn that comes.
//!
//! Invariant: reads only; the events are folded into a copy and never written from here.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    decide::{Turning, next_turn},
    event::Event,
    facts::Facts,
    graph::{NodeId, Role},
    plan::next_record,
    run::Run,
    state::RunStatus,
    time::Timestamp,
};

use crate::{
    check::needs::find_out,
    world::{Stop, World},
};

/// The run when each loop whose turn is over has turned, or is through.
pub(crate) fn taken<W: World>(world: &mut W, mut run: Run, now: Timestamp) -> Result<Run, Stop> {
    if run.state.status != RunStatus::UnderWay || run.state.cancelling.is_some() {
        return Ok(run);
    }
    let mut asked = BTreeSet::new();
    // A loop that is through may have been the last step of a turn of the one around it.
    while let Some(id) = waiting(&run, &asked) {
        asked.insert(run.graph.node(id).address.clone());
        if let Some(event) = next(world, &run, id)? {
            let record = next_record(&run.state, now, event);
            run.after(record)?;
        }
    }
    Ok(run)
}

fn waiting(run: &Run, asked: &BTreeSet<Address>) -> Option<NodeId> {
    run.graph.ready_control().find(|id| {
        let node = run.graph.node(*id);
        node.role == Role::Loop && !asked.contains(&node.address)
    })
}

fn next<W: World>(world: &mut W, run: &Run, id: NodeId) -> Result<Option<Event>, Stop> {
    let step = &run.graph.node(id).address;
    let mut facts = Facts::default();
    loop {
        match next_turn(run, &facts, id) {
            Turning::Goes(event) => return Ok(Some(*event)),
            Turning::Lacks(needs) => find_out(world, facts.at(step), needs)?,
            Turning::Unknown => return Ok(None),
        }
    }
}
