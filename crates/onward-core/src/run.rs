//! A run in memory: the workflow, what the journal says, and where that leaves each step.

use std::sync::Arc;

use crate::{
    event::{AttemptFinished, Record},
    evidence::Outcome,
    graph::{Defs, Graph, Noted},
    state::{State, Violation},
    workflow::model::OnFailure,
};

/// Invariant: `graph` is what [`Graph::new`] would make of `defs` and `state`.
#[derive(Clone, Debug)]
pub struct Run {
    pub defs: Arc<Defs>,
    pub state: State,
    pub graph: Graph,
}

impl Run {
    pub fn new(defs: Arc<Defs>, state: State) -> Self {
        let graph = Graph::new(&defs, &state);
        Self { defs, state, graph }
    }

    /// Takes in one record, or says why it cannot follow and stays as it was.
    pub fn after(&mut self, record: Record) -> Result<(), Violation> {
        let noted = Noted::of(&record.event);
        self.state.after(record)?;
        self.graph.after(&self.defs, &self.state, &noted);
        Ok(())
    }

    /// Whether the run goes on without the step after this end of an attempt: it failed for a cause
    /// that `on_failure: continue` covers, and no try is left.
    pub fn tolerates(&self, finished: &AttemptFinished) -> bool {
        let Outcome::Failed { cause, .. } = &finished.outcome else { return false };
        let Some(id) = self.graph.find(&finished.step) else { return false };
        let step = self.defs.step(self.graph.node(id).def);
        let failures = self.state.step(&finished.step).map_or(0, |entry| entry.failures) + 1;
        let has_tries = step.retry.on.contains(cause) && failures <= step.retry.max;
        match step.on_failure {
            OnFailure::Fail => false,
            OnFailure::Continue => cause.may_be_tolerated() && !has_tries,
        }
    }
}
