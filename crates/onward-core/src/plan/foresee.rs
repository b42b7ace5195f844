//! What follows from a resume before anything starts: lists that are read again, loops that turn or
//! are through, conditions that do not hold.
//!
//! Invariant: what is folded in here the driver records, too, before its first start; so the rows
//! say what becomes of steps behind it.

use std::collections::BTreeSet;

use super::next_record;
use crate::{
    address::Address,
    decide::{Foreseen, foreseen},
    facts::{Facts, Lacking},
    graph::{NodeId, Role},
    run::Run,
    state::{RunStatus, Violation},
    time::Timestamp,
};

/// Brings a run that was resumed to where its first steps start, as far as the facts reach; hands
/// back what else must be known for that.
pub fn foresee(run: &mut Run, facts: &Facts, now: Timestamp) -> Result<Lacking, Violation> {
    let mut lacking = Lacking::new();
    if run.state.status != RunStatus::UnderWay || run.state.cancelling.is_some() {
        return Ok(lacking);
    }
    let mut asked = BTreeSet::new();
    loop {
        let open = ready(run, &asked);
        if open.is_empty() {
            return Ok(lacking);
        }
        for it in open {
            // What was decided about another one may have taken it back.
            let id = run.graph.find(&it.0).filter(|id| run.graph.is_ready(*id));
            if let Some(id) = id {
                match foreseen(run, facts, id) {
                    Foreseen::Goes(events) => {
                        for event in events {
                            run.after(next_record(&run.state, now, event))?;
                        }
                    }
                    Foreseen::Lacks(needs) => {
                        lacking.entry(it.0.clone()).or_default().extend(needs);
                    }
                    Foreseen::Unknown => {}
                }
            }
            asked.insert(it);
        }
    }
}

/// Nodes to be asked about, each with the turn that its loop stands at.
fn ready(run: &Run, asked: &BTreeSet<(Address, u32)>) -> Vec<(Address, u32)> {
    let has_when = |id: &NodeId| run.defs.brief(run.graph.node(*id).def).has_when();
    let open = run.graph.ready_control().chain(run.graph.ready_work().filter(has_when));
    let named = open.map(|id| {
        let node = run.graph.node(id);
        let turns = match node.role {
            Role::Loop => run.state.loops.get(&node.address).map_or(0, |it| it.turns),
            Role::Root | Role::Leaf | Role::Group | Role::Each | Role::Item | Role::Turn => 0,
        };
        (node.address.clone(), turns)
    });
    named.filter(|it| !asked.contains(it)).collect()
}
