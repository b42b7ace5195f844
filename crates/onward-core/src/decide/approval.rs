//! A yes counts for what it saw.
//!
//! Invariant: what a gate showed is compared with what it would show now right before the first
//! step that needs its answer starts; where no step does, before the loop around it goes on, or
//! before the run ends. If it has moved, the gate asks again.

use std::collections::BTreeSet;

use super::{Command, Decider, Hold};
use crate::{
    address::Address,
    event::Event,
    facts::{Facts, Need},
    graph::{Node, NodeId, Role},
    run::Run,
    state::{GateState, Phase},
    time::Timestamp,
    workflow::model::Kind,
};

/// What an answered gate would show now, against what the answer saw.
#[derive(Debug)]
pub enum Content {
    Same,
    Moved,
    Lacks(BTreeSet<Need>),
}

/// Looks at an answered gate again.
pub fn gate_content(run: &Run, facts: &Facts, gate: &Address) -> Content {
    let decider = Decider::new(run, facts, Timestamp::default());
    let seen = run.state.step(gate).and_then(|entry| entry.gate.as_ref());
    let (Some(id), Some(seen)) = (run.graph.find(gate), seen) else { return Content::Same };
    match decider.reopened(id, id, seen) {
        Ok(None) => Content::Same,
        Ok(Some(_)) | Err(Hold::Fails(_)) => Content::Moved,
        Err(Hold::Lacks(needs)) => Content::Lacks(needs),
    }
}

/// Gates whose answers no step has acted on yet.
pub fn unused_answers(run: &Run) -> impl Iterator<Item = &Address> {
    run.state.unused_answers.iter().filter(|gate| !is_acted_upon(run, gate))
}

/// Whether something was done on the strength of an answer: by a step that needs it, by way of
/// steps that were skipped, or by a loop that took another turn or ended.
fn is_acted_upon(run: &Run, gate: &Address) -> bool {
    let graph = &run.graph;
    let is_ended =
        |it: &Node| run.state.loops.get(&it.address).is_some_and(|it| it.ended.is_some());
    let mut through = BTreeSet::new();
    let mut around = graph.find(gate);
    while let Some(id) = around {
        let node = graph.node(id);
        around = node.parent;
        if let Some(parent) = node.parent.map(|it| graph.node(it))
            && parent.role == Role::Loop
            && (parent.children.last() != Some(&id) || is_ended(parent))
        {
            return true;
        }
        through.insert(id);
    }
    for id in graph.in_order() {
        if !graph.effective_needs(id).iter().any(|need| through.contains(need)) {
            continue;
        }
        match run.state.phase(&graph.node(id).address) {
            Phase::Skipped => {
                through.insert(id);
            }
            Phase::Running | Phase::Done | Phase::Failed | Phase::Tolerated | Phase::Lost => {
                return true;
            }
            Phase::Pending | Phase::Waiting | Phase::Stale => {}
        }
    }
    false
}

impl Decider<'_> {
    /// The question of a gate that `id` comes after, if what its answer saw has moved.
    pub(super) fn outdated_approval(&self, id: NodeId) -> Result<Option<Event>, Hold> {
        let graph = &self.run.graph;
        for need in graph.effective_needs(id) {
            for gate in graph.gates_within(need, &self.run.defs) {
                let entry = self.run.state.step(&graph.node(gate).address);
                let answered = entry
                    .filter(|entry| entry.phase == Phase::Done)
                    .and_then(|entry| entry.gate.as_ref())
                    .filter(|seen| !seen.consumed || self.is_remade_since(gate, seen.seq));
                let Some(seen) = answered else { continue };
                if let Some(reopened) = self.reopened(id, gate, seen)? {
                    return Ok(Some(reopened));
                }
            }
        }
        Ok(None)
    }

    /// What a gate within `scope` that no step has acted on asks again, or lacks to know it.
    pub(super) fn outdated_within(&self, scope: NodeId) -> Result<Option<Command>, Hold> {
        let scope = &self.run.graph.node(scope).address;
        for gate in unused_answers(self.run).filter(|gate| gate.is_within(scope)) {
            let entry = self.run.state.step(gate).filter(|it| it.phase == Phase::Done);
            let seen = entry.and_then(|it| it.gate.as_ref());
            let (Some(id), Some(seen)) = (self.run.graph.find(gate), seen) else { continue };
            match self.reopened(id, id, seen) {
                Ok(None) => {}
                Ok(Some(opened)) => return Ok(Some(Command::Record(opened))),
                Err(Hold::Lacks(needs)) => {
                    return Ok(Some(Command::Need { step: gate.clone(), needs }));
                }
                Err(Hold::Fails(why)) => return Err(Hold::Fails(format!("{gate}: {why}"))),
            }
        }
        Ok(None)
    }

    /// The question as it is asked now, unless it is the one that was answered.
    fn reopened(
        &self,
        asker: NodeId,
        gate: NodeId,
        seen: &GateState,
    ) -> Result<Option<Event>, Hold> {
        let declared = self.run.defs.step(self.run.graph.node(gate).def);
        let Kind::Gate(declared) = &declared.kind else { return Ok(None) };
        let opened = self.opened(asker, gate, declared)?;
        let is_same = matches!(&opened, Event::GateOpened { hash, .. } if *hash == seen.hash);
        Ok((!is_same).then_some(opened))
    }

    /// Something that the gate comes after, be it by way of others, counted no more after its
    /// answer, and was done again.
    fn is_remade_since(&self, gate: NodeId, answered: u64) -> bool {
        let graph = &self.run.graph;
        let since = self.run.state.invalidated.iter().rev();
        let since: Vec<&Address> =
            since.take_while(|(seq, _)| *seq > answered).map(|(_, step)| step).collect();
        let (mut known, mut rest) = (BTreeSet::new(), graph.effective_needs(gate));
        while let Some(need) = rest.pop().filter(|_| !since.is_empty()) {
            if !known.insert(need) {
                continue;
            }
            let address = &graph.node(need).address;
            if since.iter().any(|step| step.is_within(address)) {
                return true;
            }
            rest.extend(graph.effective_needs(need));
        }
        false
    }
}
