//! Nodes by their address.

use std::sync::Arc;

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use super::{NodeId, Nodes, kept::Kept};
use crate::address::Address;

/// Two copies share it until one of them grows.
#[derive(Clone, Debug)]
pub(super) enum Index {
    Own(Arc<IndexMap<Address, NodeId, FixedState>>),
    /// Of a graph that was kept, and has not grown since.
    Kept(Arc<Kept>),
}

impl Index {
    pub(super) fn with_capacity(count: usize) -> Self {
        Self::Own(Arc::new(IndexMap::with_capacity_and_hasher(count, FixedState::default())))
    }

    pub(super) fn find(&self, address: &Address) -> Option<NodeId> {
        match self {
            Self::Own(own) => own.get(address).copied(),
            Self::Kept(kept) => kept.find(address),
        }
    }

    /// Adds a node that stands behind all others.
    pub(super) fn insert(&mut self, address: Address, id: NodeId, nodes: &Nodes) {
        if let Self::Kept(_) = self {
            let known = (1..id.0).map(|at| (nodes.get(at as usize).address.clone(), NodeId(at)));
            *self = Self::Own(Arc::new(known.collect()));
        }
        if let Self::Own(own) = self {
            Arc::make_mut(own).insert(address, id);
        }
    }

    /// Whether one is known to be the other: a copy that has not grown.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Own(own), Self::Own(other)) => Arc::ptr_eq(own, other),
            (Self::Kept(kept), Self::Kept(other)) => Arc::ptr_eq(kept, other),
            (Self::Own(_), Self::Kept(_)) | (Self::Kept(_), Self::Own(_)) => false,
        }
    }
}
