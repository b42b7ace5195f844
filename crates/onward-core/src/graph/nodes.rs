//! The nodes of a graph, in pieces that two graphs share until one of them changes.
//!
//! A plan is made on a second graph, which differs from the first in a few nodes: so it takes up a
//! few pieces, and not as much as the first. A piece of a graph that was kept is made when a node
//! of it is first looked into.

use std::sync::{Arc, OnceLock};

use super::{Node, kept::Kept};

/// So many nodes are copied when one of them changes.
const PIECE: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    /// All of [`PIECE`] nodes, but for the last one.
    pieces: Vec<OnceLock<Arc<Vec<Node>>>>,
    count: usize,
    /// What pieces are made of that no one has looked into.
    kept: Option<Arc<Kept>>,
}

impl PartialEq for Nodes {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && (0..self.count).all(|at| self.get(at) == other.get(at))
    }
}

impl Nodes {
    pub(super) fn kept(kept: Arc<Kept>) -> Self {
        let count = kept.len();
        let pieces = (0..count.div_ceil(PIECE)).map(|_| OnceLock::new()).collect();
        Self { pieces, count, kept: Some(kept) }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn push(&mut self, node: Node) {
        if self.count.is_multiple_of(PIECE) {
            let mut piece = Vec::with_capacity(PIECE);
            piece.push(node);
            self.pieces.push(OnceLock::from(Arc::new(piece)));
        } else {
            Arc::make_mut(self.piece_mut(self.count / PIECE)).push(node);
        }
        self.count += 1;
    }

    fn piece(&self, piece: usize) -> &Arc<Vec<Node>> {
        self.pieces[piece].get_or_init(|| {
            let nodes = piece * PIECE..self.count.min((piece + 1) * PIECE);
            let made = self.kept.iter().flat_map(|kept| nodes.clone().map(|at| kept.node(at)));
            Arc::new(made.collect())
        })
    }

    fn piece_mut(&mut self, piece: usize) -> &mut Arc<Vec<Node>> {
        self.piece(piece);
        self.pieces[piece].get_mut().expect("it was made just now")
    }

    pub(super) fn get(&self, index: usize) -> &Node {
        &self.piece(index / PIECE)[index % PIECE]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Node {
        &mut Arc::make_mut(self.piece_mut(index / PIECE))[index % PIECE]
    }

    /// What the node was kept as, while no one has looked into it or its neighbours.
    pub(super) fn unmade(&self, index: usize) -> Option<&Kept> {
        let is_made = self.pieces[index / PIECE].get().is_some();
        self.kept.as_deref().filter(|_| !is_made)
    }
}
