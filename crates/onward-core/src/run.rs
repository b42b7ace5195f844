//! A run in memory: the workflow, what the journal says, and where that leaves each step.

use std::sync::Arc;

use crate::{
    event::Record,
    graph::{Defs, Graph, Noted},
    state::{State, Violation},
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
}
