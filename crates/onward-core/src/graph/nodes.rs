//! The nodes of a graph, in pieces that two graphs share until one of them changes.
//!
//! A plan is made on a second graph, which differs from the first in a few nodes: so it takes up a
//! few pieces, and not as much as the first.

use std::sync::Arc;

use super::Node;

/// So many nodes are copied when one of them changes.
const PIECE: usize = 64;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Nodes {
    /// All of [`PIECE`] nodes, but for the last one.
    pieces: Vec<Arc<Vec<Node>>>,
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        let full = self.pieces.len().saturating_sub(1) * PIECE;
        full + self.pieces.last().map_or(0, |piece| piece.len())
    }

    pub(super) fn push(&mut self, node: Node) {
        if let Some(piece) = self.pieces.last_mut().filter(|piece| piece.len() < PIECE) {
            Arc::make_mut(piece).push(node);
        } else {
            let mut piece = Vec::with_capacity(PIECE);
            piece.push(node);
            self.pieces.push(Arc::new(piece));
        }
    }

    pub(super) fn get(&self, index: usize) -> &Node {
        &self.pieces[index / PIECE][index % PIECE]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Node {
        &mut Arc::make_mut(&mut self.pieces[index / PIECE])[index % PIECE]
    }
}
