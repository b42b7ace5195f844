//! The instances of a run's steps, and which of them have something to decide.
//!
//! Invariant: a graph is a function of the workflow and the folded state. It is kept up to date
//! event by event only because building it from scratch after each one would be slow; a test
//! builds it from scratch after every event and compares.
//!
//! A node is *settled* when its dependents may go on. A node whose needs are settled is *ready*: it
//! is handed to the decider until an event moves it on. A done step that stands downstream of
//! unsettled work is not settled: it becomes ready when its needs are, and the decider compares its
//! key. That is the whole of early cut-off.

mod brief;
mod build;
mod defs;
mod few;
mod index;
mod kept;
mod nodes;
mod packed;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::{
    address::Address,
    digest::Digest,
    event::Event,
    state::{Phase, State},
};

use index::Index;
use nodes::Nodes;

pub use brief::{Brief, Often, Word};
pub use defs::{Def, DefId, Defs};
pub use few::Few;
pub(crate) use packed::PackedGraph;

/// Position of a node; nodes of the workflow file come in its order, later ones as they appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(u32);

/// See the module.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Nodes,
    index: Index,
    /// Ready leaves that would take a slot.
    ready_work: BTreeSet<NodeId>,
    /// Ready nodes that need a decision only: groups, loops, gates, done steps to compare.
    ready_control: BTreeSet<NodeId>,
    /// Gates that are open.
    open_gates: BTreeSet<NodeId>,
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        let found = |it: &Self, at: usize| it.find(&self.nodes.get(at).address);
        self.nodes == other.nodes
            && (0..self.len()).all(|at| found(self, at) == found(other, at))
            && self.ready_work == other.ready_work
            && self.ready_control == other.ready_control
            && self.open_gates == other.open_gates
    }
}

/// One instance, or the scope of one item or turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub address: Address,
    pub def: DefId,
    pub role: Role,
    pub parent: Option<NodeId>,
    pub children: Vec<NodeId>,
    pub needs: Few,
    /// So many of `needs`, the last ones, only say which items there are.
    sources: u32,
    dependents: Few,
    /// Needs that are not settled, and one for a parent that is not open.
    unmet: u32,
    /// Children that are not settled.
    unsettled: u32,
    /// Children may go on.
    open: bool,
    settled: bool,
    /// What dependents compare; there while the node is settled.
    digest: Option<Digest>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The run itself.
    Root,
    /// Run, agent, gate or call.
    Leaf,
    /// A group or sub-workflow that stands once.
    Group,
    /// An `each`; its children are scopes.
    Each,
    /// A `repeat`; its children are turns.
    Loop,
    /// One item of an `each`.
    Item,
    /// One turn of a loop.
    Turn,
}

impl Graph {
    /// The graph of a run as its journal tells it.
    pub fn new(defs: &Defs, state: &State) -> Self {
        let kept = state.steps.graph().and_then(|it| it.unpack(defs, &state.steps));
        kept.unwrap_or_else(|| build::graph(defs, state))
    }

    /// Moves on after `event`, which `state` has taken in already.
    pub fn after(&mut self, defs: &Defs, state: &State, event: &Noted) {
        settle::note(self, defs, state, event);
    }

    pub fn root(&self) -> &Node {
        self.nodes.get(0)
    }

    /// How many nodes there are, the root among them.
    #[expect(clippy::len_without_is_empty, reason = "the root is always there")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn root_id(&self) -> NodeId {
        NodeId(0)
    }

    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.0 as usize)
    }

    pub fn find(&self, address: &Address) -> Option<NodeId> {
        self.index.find(address)
    }

    /// Whether one is known to have exactly the instances of the other: a graph and its copy, until
    /// one of them is built again or grows.
    pub fn has_the_nodes_of(&self, other: &Self) -> bool {
        self.index.is(&other.index)
    }

    /// Ready leaves that would take a slot, in order.
    pub fn is_ready(&self, id: NodeId) -> bool {
        self.ready_work.contains(&id) || self.ready_control.contains(&id)
    }

    pub fn ready_work(&self) -> impl Iterator<Item = NodeId> {
        self.ready_work.iter().copied()
    }

    /// Ready nodes that only need a decision, in order.
    pub fn ready_control(&self) -> impl Iterator<Item = NodeId> {
        self.ready_control.iter().copied()
    }

    pub fn open_gates(&self) -> impl Iterator<Item = NodeId> {
        self.open_gates.iter().copied()
    }

    /// The place in the state of a step of the run itself that is settled, where that is known
    /// without a look into its node.
    pub(crate) fn settled_place(&self, id: NodeId) -> Option<usize> {
        let at = id.0 as usize;
        self.nodes.unmade(at)?.settled_top_leaf(at)
    }

    /// Nodes whose dependents may not go on.
    pub fn unsettled(&self) -> impl Iterator<Item = &Node> {
        let settled = |at: usize| match self.nodes.unmade(at) {
            Some(kept) => kept.is_settled(at),
            None => self.nodes.get(at).settled,
        };
        (0..self.nodes.len()).filter(move |at| !settled(*at)).map(|at| self.nodes.get(at))
    }

    /// All nodes in the order of the workflow: parents before children, lists in order.
    pub fn in_order(&self) -> Vec<NodeId> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut rest = vec![NodeId(0)];
        while let Some(id) = rest.pop() {
            order.push(id);
            let at = id.0 as usize;
            // Most nodes have none, and are not looked into for that.
            if self.nodes.unmade(at).is_none_or(|kept| kept.has_children(at)) {
                rest.extend(self.node(id).children.iter().rev());
            }
        }
        order
    }

    /// Every node this one waits for: its own needs and those of the scopes it stands in.
    pub fn effective_needs(&self, id: NodeId) -> Vec<NodeId> {
        let mut all = Vec::new();
        let mut scope = Some(id);
        while let Some(inner) = scope {
            let node = self.node(inner);
            all.extend(node.needs.iter().copied());
            scope = node.parent;
        }
        all
    }

    /// Every node that waits for this one, directly or by way of others, and all that is in them.
    pub(crate) fn followers(&self, id: NodeId) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::new();
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            if found.contains(&id) {
                rest.extend(self.node(id).children.iter().filter(|child| found.insert(**child)));
            }
            // What waits for a scope waits for all that is in it.
            let mut scope = Some(id);
            while let Some(inner) = scope {
                let node = self.node(inner);
                rest.extend(node.dependents.iter().filter(|it| found.insert(**it)));
                scope = node.parent;
            }
        }
        found
    }

    /// Whether a node waits for another one, directly or by way of others.
    pub fn comes_after(&self, later: NodeId, earlier: NodeId) -> bool {
        self.followers(earlier).contains(&later)
    }

    /// Whether a node stands in this scope, at whatever depth.
    pub(crate) fn stands_in(&self, id: NodeId, scope: NodeId) -> bool {
        let mut around = self.node(id).parent;
        while let Some(inner) = around {
            if inner == scope {
                return true;
            }
            around = self.node(inner).parent;
        }
        false
    }

    /// Those that a key is made of. An item is what its value says: when the step that listed it
    /// lists it again, it stands.
    fn compared_needs(&self, id: NodeId) -> Few {
        let mut all = self.node(id).needs.clone();
        let mut scope = self.node(id).parent;
        while let Some(around) = scope {
            let node = self.node(around);
            let sources = node.sources as usize;
            all.extend(node.needs[..node.needs.len() - sources].iter().copied());
            scope = node.parent;
        }
        all
    }

    /// Some need, own or of a scope around, can never settle in this drive.
    pub fn is_blocked(&self, id: NodeId, state: &State) -> bool {
        self.effective_needs(id).into_iter().any(|need| self.has_failed(need, state))
    }

    /// It failed, or something inside it did; a loop also when it ran out of turns.
    pub fn has_failed(&self, id: NodeId, state: &State) -> bool {
        let node = self.node(id);
        if node.settled {
            return false;
        }
        let ended = state.loops.get(&node.address).is_some_and(|it| it.ended.is_some());
        let is_over =
            state.phase(&node.address) == Phase::Failed && !state.is_parked(&node.address);
        is_over
            || (node.role == Role::Loop && ended)
            || node.children.iter().any(|child| self.has_failed(*child, state))
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(id.0 as usize)
    }
}

impl Node {
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// All it needs is settled, and so is all that the scopes around it need.
    pub fn is_reachable(&self) -> bool {
        self.unmet == 0
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }
}

/// What the graph must know of an event: which node, and that it is one of the few that move nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The state of one step changed.
    Step(Address),
    /// A group has other items now, or a loop another turn.
    Shape(Address),
    /// Every failed step is pending again.
    Resumed,
    Nothing,
}

impl Noted {
    pub fn of(event: &Event) -> Self {
        match event {
            Event::AttemptStarted(started) => Self::Step(started.step.clone()),
            Event::AttemptFinished(finished) => Self::Step(finished.step.clone()),
            Event::AttemptAdopted(adopted) => Self::Step(adopted.step.clone()),
            Event::AttemptVerified(verified) => Self::Step(verified.step.clone()),
            Event::AttemptLost { step, .. }
            | Event::StepSkipped { step, .. }
            | Event::StepInvalidated { step, .. }
            | Event::GateOpened { step, .. }
            | Event::GateDecided { step, .. } => Self::Step(step.clone()),
            Event::GroupExpanded { step, .. }
            | Event::LoopTurned { step, .. }
            | Event::LoopEnded { step, .. } => Self::Shape(step.clone()),
            Event::RunResumed(_) => Self::Resumed,
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunPaused { .. }
            | Event::RunEnded { .. }
            | Event::RunArchived { .. }
            | Event::AttemptSession { .. }
            | Event::AttemptSpent { .. }
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. }
            | Event::Note { .. } => Self::Nothing,
        }
    }
}
