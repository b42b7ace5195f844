//! Conditions of steps whose turn has not come: what is known of them now.
//!
//! Invariant: a step is said to run for sure only if every `when` on the way to it was asked when
//! its turn had come, or says the same whatever the steps before it come out as.

use crate::{
    decide::passing_already,
    graph::{NodeId, Role},
    run::Run,
    state::Phase,
};

/// What is known of all conditions on the way to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whens {
    Hold,
    /// One of them is asked when the steps before it are through.
    Open,
    Fail,
}

/// Its own condition and those of the groups around it. What [`foresee`](super::foresee()) could
/// reach is decided.
pub(super) fn whens(after: &Run, id: NodeId) -> Whens {
    let (mut found, mut scope) = (Whens::Hold, Some(id));
    while let Some(inner) = scope {
        let node = after.graph.node(inner);
        if node.is_reachable() || node.role == Role::Root {
            break;
        }
        if is_asked_later(after, inner) {
            match passing_already(after, inner) {
                Some(true) => {}
                Some(false) => return Whens::Fail,
                None => found = Whens::Open,
            }
        }
        scope = node.parent;
    }
    found
}

/// It has a `when` that its driver asks before it starts or opens.
fn is_asked_later(after: &Run, id: NodeId) -> bool {
    let node = after.graph.node(id);
    let has_turned = || after.state.loops.get(&node.address).is_some_and(|it| it.turns > 0);
    let is_asked = match node.role {
        // A failed try has passed it already.
        Role::Leaf => after.state.phase(&node.address) != Phase::Failed,
        Role::Loop => !has_turned(),
        Role::Group | Role::Each => true,
        // They have that of their group.
        Role::Root | Role::Item | Role::Turn => false,
    };
    is_asked && after.defs.brief(node.def).has_when()
}
