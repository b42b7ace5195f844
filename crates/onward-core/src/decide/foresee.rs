//! What the decider records about a node before anything starts: conditions that do not hold, lists
//! that are read again, turns of loops.
//!
//! Invariant: nothing is decided here that [`decide`](super::decide) would not decide in the same
//! way at the same moment.

use std::collections::BTreeSet;

use super::{Command, Decider, Hold};
use crate::{
    event::{Event, LoopEnd},
    facts::{Facts, Need},
    graph::{NodeId, Role},
    overwritten::{Overwritten, overwritten, run_again},
    run::Run,
    scope::Scope,
    state::Phase,
    time::Timestamp,
};

/// What becomes of a node that everything it waits for is there for.
#[derive(Debug)]
pub enum Foreseen {
    /// These are recorded, in this order; none = it starts, asks or opens.
    Goes(Vec<Event>),
    Lacks(BTreeSet<Need>),
    /// It cannot be made out.
    Unknown,
}

/// What the decider records about a ready node before it starts, asks about or opens it.
pub fn foreseen(run: &Run, facts: &Facts, id: NodeId) -> Foreseen {
    match Decider::new(run, facts, Timestamp::default()).foreseen(id) {
        Ok(mut events) => {
            let again = run_again(events.iter());
            if !again.is_empty() {
                events.extend(overwritten(run, again).iter().map(Overwritten::event));
            }
            Foreseen::Goes(events)
        }
        Err(Hold::Lacks(needs)) => Foreseen::Lacks(needs),
        Err(Hold::Fails(_)) => Foreseen::Unknown,
    }
}

/// Whether the `when` of a step holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Passing {
    Holds,
    Fails,
    Lacks(BTreeSet<Need>),
    /// It cannot be made out.
    Unknown,
}

/// Asks for the `when` of a step once more; one without it passes.
pub fn passing(run: &Run, facts: &Facts, id: NodeId) -> Passing {
    let step = run.defs.step(run.graph.node(id).def);
    match Decider::new(run, facts, Timestamp::default()).skipped(id, step) {
        Ok(None) => Passing::Holds,
        Ok(Some(_)) => Passing::Fails,
        Err(Hold::Lacks(needs)) => Passing::Lacks(needs),
        Err(Hold::Fails(_)) => Passing::Unknown,
    }
}

/// What the `when` of a step says whatever the steps before it come out as; `None` where that
/// depends on them, or on a file.
pub fn passing_already(run: &Run, id: NodeId) -> Option<bool> {
    let (facts, node) = (Facts::default(), run.graph.node(id));
    let when = run.defs.step(node.def).when.as_ref()?;
    let scope = Scope { run, node: id, facts: facts.of(&node.address) };
    if !scope.is_settled(when) {
        return None;
    }
    match passing(run, &facts, id) {
        Passing::Holds => Some(true),
        Passing::Fails => Some(false),
        Passing::Lacks(_) | Passing::Unknown => None,
    }
}

impl Decider<'_> {
    fn foreseen(&self, id: NodeId) -> Result<Vec<Event>, Hold> {
        let node = self.run.graph.node(id);
        let step = self.run.defs.step(node.def);
        let state = &self.run.state;
        match state.phase(&node.address) {
            // A failed try has passed its `when` already.
            Phase::Failed => return Ok(Vec::new()),
            // What it needs is not what it was, and so its `when` is asked again.
            Phase::Done | Phase::Skipped | Phase::Tolerated => {
                let skipped = self.skipped(id, step)?;
                let events = skipped.map(|skipped| vec![self.invalidation(id), skipped]);
                return Ok(events.unwrap_or_default());
            }
            Phase::Pending | Phase::Running | Phase::Waiting | Phase::Lost | Phase::Stale => {}
        }
        let was_opened = match node.role {
            Role::Loop => state.loops.get(&node.address).is_some_and(|it| it.turns > 0),
            Role::Each | Role::Group => state.groups.contains_key(&node.address),
            Role::Root | Role::Leaf | Role::Item | Role::Turn => false,
        };
        if !was_opened {
            return Ok(self.skipped(id, step)?.into_iter().collect());
        }
        let commands = self.control(id)?;
        Ok(commands.into_iter().filter_map(recorded).collect())
    }
}

/// A loop that used up its turns ends the run, which is for the driver to tell.
fn recorded(command: Command) -> Option<Event> {
    let Command::Record(event) = command else { return None };
    let is_used_up = matches!(&event, Event::LoopEnded { reason: LoopEnd::Exhausted, .. });
    (!is_used_up).then_some(event)
}
