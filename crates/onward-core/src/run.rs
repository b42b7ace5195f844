//! A run in memory: the workflow, what the journal says, and where that leaves each step.

use std::sync::Arc;

use crate::{
    address::Address,
    event::{AttemptFinished, Record},
    evidence::Outcome,
    graph::{DefId, Defs, Graph, NodeId, Noted},
    state::{Glance, Phase, Plain, State, Violation},
    time::Timestamp,
    workflow::model::{Kind, OnFailure},
};

/// Invariant: `graph` is what [`Graph::new`] would make of `defs` and `state`.
#[derive(Clone, Debug)]
pub struct Run {
    pub defs: Arc<Defs>,
    pub state: State,
    pub graph: Graph,
}

/// Who works at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker<'a> {
    /// The name under `agents:`, or the program itself.
    pub name: &'a str,
    /// The agent program (`use`).
    pub program: &'a str,
}

impl Run {
    pub fn new(defs: Arc<Defs>, mut state: State) -> Self {
        let graph = Graph::new(&defs, &state);
        // From here on the graph itself is kept up to date.
        state.steps.forget_graph();
        Self { defs, state, graph }
    }

    /// Takes in one record, or says why it cannot follow and stays as it was.
    pub fn after(&mut self, record: Record) -> Result<(), Violation> {
        let mut noted = Noted::of(&record.event);
        if noted == Noted::Resumed && !self.state.has_given_up() {
            // Nothing is tried again that was given up: the graph stays as it is.
            noted = Noted::Nothing;
        }
        self.state.after(record)?;
        self.graph.after(&self.defs, &self.state, &noted);
        Ok(())
    }

    /// A step of the run itself that is done and settled, and of which no more is to be told: its
    /// place in the state and itself. Its node is not looked into.
    pub(crate) fn plainly_done(&self, id: NodeId) -> Option<(usize, Plain<'_>)> {
        let place = self.graph.settled_place(id)?;
        match self.state.steps.glance_at(place) {
            Glance::Plain(plain) => Some((place, plain)),
            Glance::Whole(_) => None,
        }
    }

    /// Whether the run goes on without the step after this end of an attempt: it failed for a cause
    /// that `on_failure: continue` covers, and no try is left.
    pub fn tolerates(&self, finished: &AttemptFinished) -> bool {
        let Outcome::Failed { cause, .. } = &finished.outcome else { return false };
        let Some(id) = self.graph.find(&finished.step) else { return false };
        let step = self.defs.step(self.graph.node(id).def);
        let entry = self.state.step(&finished.step);
        let failures = entry.map_or(0, |entry| entry.failures) + 1;
        let free = entry.and_then(|it| it.free_tries.next(*cause, it.session.is_some()));
        let retried = step.retry.on.contains(cause) && failures <= step.retry.max;
        let has_tries = free.is_some() || retried;
        match step.on_failure {
            OnFailure::Fail => false,
            OnFailure::Continue => cause.may_be_tolerated() && !has_tries,
        }
    }

    /// An effect outside that has no probe: nothing can be asked whether it happened.
    pub fn is_blind(&self, step: &Address) -> bool {
        let declared = self.graph.find(step).map(|id| self.defs.step(self.graph.node(id).def));
        declared.is_some_and(|it| it.effect_outside && it.probe.is_none())
    }

    /// The agent that a step names; `None` for a step without one.
    pub fn worker(&self, id: NodeId) -> Option<Worker<'_>> {
        let def = self.graph.node(id).def;
        let Kind::Agent { agent, .. } = &self.defs.step(def).kind else { return None };
        Some(self.worker_named(def, agent))
    }

    /// The agent of the attempt that a step is at: another one may stand in for its own.
    pub fn worker_at(&self, id: NodeId) -> Option<Worker<'_>> {
        let own = self.worker(id)?;
        let node = self.graph.node(id);
        let started = self.state.step(&node.address).and_then(|it| it.started.as_deref());
        let name = started.and_then(|it| it.agent.as_deref());
        Some(name.map_or(own, |name| self.worker_named(node.def, name)))
    }

    /// An agent by its name, as the workflow of a step declares it.
    pub fn worker_named<'a>(&'a self, def: DefId, name: &'a str) -> Worker<'a> {
        let declared = self.defs.workflow_of(def).agents.get(name);
        Worker { name, program: declared.map_or(name, |it| &it.adapter) }
    }

    /// The longest that an instance of the same step took so far, in milliseconds.
    pub fn takes_ms(&self, id: NodeId) -> Option<u64> {
        let def = self.graph.node(id).def;
        let done = self.state.steps.glances().filter(|(_, it)| it.phase() == Phase::Done);
        let same = done.filter(|(step, _)| {
            self.graph.find(step).is_some_and(|other| self.graph.node(other).def == def)
        });
        same.map(|(_, it)| it.ended_at().ms_since(it.started_at())).max()
    }

    /// When the next try at a failed step may begin: its backoff doubles with each failure.
    pub fn retry_at(&self, id: NodeId) -> Option<Timestamp> {
        let node = self.graph.node(id);
        let entry = self.state.step(&node.address).filter(|it| it.phase == Phase::Failed)?;
        if let Some(wait_ms) = entry.free_wait_ms {
            return Some(entry.ended_at.plus_ms(wait_ms));
        }
        let backoff_ms = self.defs.step(node.def).retry.backoff_ms;
        // The shift is bounded so that it cannot overflow.
        let doublings = entry.failures.saturating_sub(1).min(16);
        Some(entry.ended_at.plus_ms(backoff_ms.saturating_mul(1 << doublings)))
    }
}
