//! Whether a list or a loop will open steps that are not known yet.
//!
//! Invariant: a total counts the steps that are known so far, in every place alike: those of a list
//! that is written out, and of the first turn of a loop, before they are opened. Where others may
//! follow, it is told as *more* and never guessed.

use super::{Counts, is_shown, is_skipped};
use crate::{
    address::Address,
    graph::{NodeId, Role, Size},
    run::Run,
    workflow::model::{Count, Many, Repeat},
};

/// Whether any fan-out or loop of the run has steps still to open.
pub fn has_more(run: &Run) -> bool {
    run.graph.in_order().into_iter().any(|id| unopened(run, id).more)
}

/// The lists and loops of the run that have steps still to open, and how many.
pub(super) fn to_open(run: &Run) -> Vec<(&Address, Counts)> {
    let closed = run.graph.in_order().into_iter().map(|id| (id, unopened(run, id)));
    let closed = closed.filter(|(_, counts)| *counts != Counts::default());
    closed.map(|(id, counts)| (&run.graph.node(id).address, counts)).collect()
}

/// The steps that a fan-out or a loop has still to open, as far as they are known; no other node
/// has any.
pub(super) fn unopened(run: &Run, id: NodeId) -> Counts {
    let node = run.graph.node(id);
    let is_closed = match node.role {
        Role::Each => !run.state.groups.contains_key(&node.address),
        Role::Loop => run.state.loops.get(&node.address).is_none_or(|it| it.ended.is_none()),
        Role::Root | Role::Leaf | Role::Group | Role::Item | Role::Turn => false,
    };
    if !is_closed || node.is_settled() || is_shown(run, id) || is_skipped(run, id) {
        return Counts::default();
    }
    if let Many::Repeat(repeat) = &run.defs.step(node.def).many {
        let known = run.state.loops.get(&node.address).copied().unwrap_or_default();
        if known.turns > 0 {
            let more = turns_again(repeat, known.turns, known.granted);
            return Counts { more, ..Counts::default() };
        }
    }
    let size = Size::of_step(&run.defs, node.def);
    let total = u32::try_from(size.known).unwrap_or(u32::MAX);
    Counts { done: 0, total, more: !size.open.is_empty() }
}

fn turns_again(repeat: &Repeat, taken: u32, granted: u32) -> bool {
    match &repeat.max {
        Count::Fixed(max) => max.saturating_add(granted) > taken,
        Count::Expression(_) => true,
    }
}
