//! A graph as bytes that are read again without building it: what a large run keeps with its state.
//!
//! Invariant: it is a cache. It belongs to exactly the steps that it is kept with (a change of one
//! of them forgets it), and counts only for the workflow that it names. What is unpacked is the
//! graph that was packed; what is cut short or points out of itself gives `None` and never a panic.

use std::{collections::BTreeSet, sync::Arc};

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use super::{DefId, Defs, Few, Graph, Node, NodeId, Nodes, Role};
use crate::{
    address::Address,
    digest::Digest,
    state::{State, Steps},
    workflow::packed::{Pack, take, text},
};

/// A graph that is not unpacked yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PackedGraph {
    /// The text of the workflow that the steps were declared in.
    of: Digest,
    bytes: Vec<u8>,
}

const ROLES: [Role; 7] =
    [Role::Root, Role::Leaf, Role::Group, Role::Each, Role::Loop, Role::Item, Role::Turn];
const OPEN: u8 = 1 << 3;
const SETTLED: u8 = 1 << 4;
const DIGEST: u8 = 1 << 5;
const ROLE: u8 = 0b111;

impl PackedGraph {
    /// `None` where the workflow has no name that a later look would know it by, or where the graph
    /// would not come back as it is.
    pub(crate) fn of(defs: &Defs, state: &State) -> Option<Self> {
        let graph = Graph::new(defs, state);
        let packed = Self { of: defs.origin()?, bytes: graph.pack(&state.steps)? };
        (packed.unpack(defs, &state.steps)? == graph).then_some(packed)
    }

    pub(super) fn unpack(&self, defs: &Defs, steps: &Steps) -> Option<Graph> {
        let is_ours = defs.origin() == Some(self.of);
        is_ours.then(|| graph(&mut self.bytes.as_slice(), defs, steps)).flatten()
    }
}

impl Pack for PackedGraph {
    fn pack(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.of.as_bytes());
        self.bytes.len().pack(to);
        to.extend_from_slice(&self.bytes);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let of = Digest::from_bytes(take(from, 16)?.try_into().ok()?);
        let length = usize::unpack(from)?;
        Some(Self { of, bytes: take(from, length)?.to_vec() })
    }
}

impl Graph {
    fn pack(&self, steps: &Steps) -> Option<Vec<u8>> {
        let mut to = Vec::with_capacity(64 * self.len());
        self.len().pack(&mut to);
        for index in 0..self.len() {
            let node = self.nodes.get(index);
            // A step that the state has is named by its place there.
            if let Some((place, _)) = steps.find(node.address.as_str()) {
                (place + 1).pack(&mut to);
            } else {
                0_usize.pack(&mut to);
                node.address.as_str().len().pack(&mut to);
                to.extend_from_slice(node.address.as_str().as_bytes());
            }
            let role = ROLES.iter().position(|it| *it == node.role)?;
            let flags =
                [(OPEN, node.open), (SETTLED, node.settled), (DIGEST, node.digest.is_some())];
            let flags = flags.into_iter().filter(|(_, is)| *is).map(|(flag, _)| flag);
            to.push(flags.fold(u8::try_from(role).ok()?, |all, flag| all | flag));
            node.digest.into_iter().for_each(|it| to.extend_from_slice(it.as_bytes()));
            node.def.0.pack(&mut to);
            node.parent.map_or(0, |it| it.0 + 1).pack(&mut to);
            for count in [node.sources, node.unmet, node.unsettled] {
                count.pack(&mut to);
            }
            put(&node.children, &mut to);
            put(&node.needs, &mut to);
            put(&node.dependents, &mut to);
        }
        for ready in [&self.ready_work, &self.ready_control, &self.open_gates] {
            put(&ready.iter().copied().collect::<Vec<_>>(), &mut to);
        }
        Some(to)
    }
}

fn put(ids: &[NodeId], to: &mut Vec<u8>) {
    ids.len().pack(to);
    for id in ids {
        id.0.pack(to);
    }
}

fn graph(from: &mut &[u8], defs: &Defs, steps: &Steps) -> Option<Graph> {
    let count = u32::unpack(from)?;
    // A count that is a lie ends with the bytes, and little is reserved for it.
    let most = (count as usize).min(from.len());
    let mut nodes = Nodes::default();
    let mut by_address = IndexMap::with_capacity_and_hasher(most, FixedState::default());
    for index in 0..count {
        let node = node(from, count, defs, steps)?;
        let is_new = index == 0 || by_address.insert(node.address.clone(), NodeId(index)).is_none();
        nodes.push(is_new.then_some(node)?);
    }
    let mut ready = || Some(ids(from, count)?.iter().copied().collect::<BTreeSet<_>>());
    let (ready_work, ready_control, open_gates) = (ready()?, ready()?, ready()?);
    let by_address = Arc::new(by_address);
    let graph = Graph { nodes, by_address, ready_work, ready_control, open_gates };
    (from.is_empty() && count > 0).then_some(graph)
}

fn node(from: &mut &[u8], count: u32, defs: &Defs, steps: &Steps) -> Option<Node> {
    let address = match usize::unpack(from)?.checked_sub(1) {
        Some(place) => steps.name(place)?.clone(),
        None => Address::from_text(text(from)?),
    };
    let flags = *take(from, 1)?.first()?;
    let role = *ROLES.get(usize::from(flags & ROLE))?;
    let digest = if flags & DIGEST == 0 {
        None
    } else {
        Some(Digest::from_bytes(take(from, 16)?.try_into().ok()?))
    };
    let def = DefId(u32::unpack(from)?);
    if def.0 as usize > defs.ids().len() {
        return None;
    }
    let parent = match u32::unpack(from)?.checked_sub(1) {
        Some(parent) => Some((parent < count).then_some(NodeId(parent))?),
        None => None,
    };
    let [sources, unmet, unsettled] = [u32::unpack(from)?, u32::unpack(from)?, u32::unpack(from)?];
    let (children, needs, dependents) = (ids(from, count)?, ids(from, count)?, ids(from, count)?);
    Some(Node {
        address,
        def,
        role,
        parent,
        children: children.to_vec(),
        needs,
        sources,
        dependents,
        unmet,
        unsettled,
        open: flags & OPEN != 0,
        settled: flags & SETTLED != 0,
        digest,
    })
}

fn ids(from: &mut &[u8], count: u32) -> Option<Few> {
    let mut few = Few::NONE;
    for _ in 0..u32::unpack(from)? {
        let id = u32::unpack(from)?;
        few.push((id < count).then_some(NodeId(id))?);
    }
    Some(few)
}
