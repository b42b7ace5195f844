//! Whether a list or a loop will open steps that are not known yet.
//!
//! Invariant: a total counts the steps that are known so far, in every place alike; where others
//! may follow, it is told as *more* and never guessed.

use super::{is_shown, is_skipped};
use crate::{
    graph::{NodeId, Role},
    run::Run,
    workflow::model::{Count, Items, Many, Repeat},
};

/// Whether any fan-out or loop of the run has steps still to open.
pub fn has_more(run: &Run) -> bool {
    run.graph.in_order().into_iter().any(|id| opens_more(run, id))
}

/// Whether a fan-out or a loop has steps still to open; no other node has.
pub(super) fn opens_more(run: &Run, id: NodeId) -> bool {
    let node = run.graph.node(id);
    let is_closed = match node.role {
        Role::Each => !run.state.groups.contains_key(&node.address),
        Role::Loop => run.state.loops.get(&node.address).is_none_or(|it| it.ended.is_none()),
        Role::Root | Role::Leaf | Role::Group | Role::Item | Role::Turn => false,
    };
    if !is_closed || node.is_settled() || is_shown(run, id) || is_skipped(run, id) {
        return false;
    }
    match &run.defs.step(node.def).many {
        Many::Once => false,
        Many::Each(each) => match &each.items {
            Items::List(items) => !items.is_empty(),
            Items::Expression(_) => true,
        },
        Many::Repeat(repeat) => {
            let known = run.state.loops.get(&node.address).copied().unwrap_or_default();
            turns_again(repeat, known.turns, known.granted)
        }
    }
}

fn turns_again(repeat: &Repeat, taken: u32, granted: u32) -> bool {
    match &repeat.max {
        Count::Fixed(max) => max.saturating_add(granted) > taken,
        Count::Expression(_) => true,
    }
}
