//! A graph as bytes that are read again without building it: what a large run keeps with its state.
//!
//! Invariant: it is a cache. It belongs to exactly the steps that it is kept with (a change of one
//! of them forgets it), and counts only for the workflow that it names. What is unpacked is the
//! graph that was packed; what is cut short or points out of itself gives `None` and never a panic.

use std::{ops::Range, sync::Arc};

use super::{Defs, Graph, Index, Nodes, kept};
use crate::{
    digest::Digest,
    state::{State, Steps},
    workflow::packed::{Pack, take},
};

/// A graph that is not unpacked yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PackedGraph {
    /// The text of the workflow that the steps were declared in.
    of: Digest,
    /// What it stands in, and where.
    bytes: Arc<Vec<u8>>,
    at: Range<usize>,
}

impl PackedGraph {
    /// `None` where the workflow has no name that a later look would know it by, or where the graph
    /// would not come back as it is.
    pub(crate) fn of(defs: &Defs, state: &State) -> Option<Self> {
        let graph = Graph::new(defs, state);
        let bytes = Arc::new(kept::put(&graph, &state.steps)?);
        let packed = Self { of: defs.origin()?, at: 0..bytes.len(), bytes };
        (packed.unpack(defs, &state.steps)? == graph).then_some(packed)
    }

    pub(super) fn unpack(&self, defs: &Defs, steps: &Steps) -> Option<Graph> {
        if defs.origin() != Some(self.of) {
            return None;
        }
        let (kept, ready) =
            kept::Kept::take(&self.bytes, self.at.clone(), defs.ids().len(), steps)?;
        let [ready_work, ready_control, open_gates] = ready.map(|ids| ids.into_iter().collect());
        let kept = Arc::new(kept);
        let (nodes, index) = (Nodes::kept(Arc::clone(&kept)), Index::Kept(kept));
        Some(Graph { nodes, index, ready_work, ready_control, open_gates })
    }

    fn packed(&self) -> &[u8] {
        self.bytes.get(self.at.clone()).unwrap_or_default()
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.of.as_bytes());
        self.packed().len().pack(to);
        to.extend_from_slice(self.packed());
    }

    /// Takes what [`put`](Self::put) gave; `from` is the end of `bytes`, which are held.
    pub(crate) fn take(from: &mut &[u8], bytes: &Arc<Vec<u8>>) -> Option<Self> {
        let of = Digest::from_bytes(take(from, 16)?.try_into().ok()?);
        let length = usize::unpack(from)?;
        take(from, length)?;
        let end = bytes.len().saturating_sub(from.len());
        Some(Self { of, bytes: Arc::clone(bytes), at: end.saturating_sub(length)..end })
    }
}
