//! How nodes move: open, arrive, settle, and back again.
//!
//! Invariant: every walk uses a work list, never the call stack, and visits a node once per change
//! of its own; a chain of a hundred thousand steps is as safe as one of three.

use std::collections::BTreeMap;

use super::{Defs, Few, Graph, NodeId, Noted, Role};
use crate::{
    address::Address,
    digest::Digest,
    event::LoopEnd,
    evidence::Cause,
    key::Key,
    state::{Phase, State, StepState},
    workflow::model::Retry,
};

/// Opens the root of a new graph and lets everything follow.
pub(super) fn start(graph: &mut Graph, defs: &Defs, state: &State) {
    let mut mover = Mover { graph, defs, state, arriving: Vec::new() };
    mover.open(NodeId(0));
    mover.run();
}

pub(super) fn note(graph: &mut Graph, defs: &Defs, state: &State, noted: &Noted) {
    match noted {
        Noted::Nothing => {}
        // Every failed step may have become ready; to build the graph again is as cheap as to look.
        Noted::Resumed => *graph = Graph::new(defs, state),
        Noted::Shape(address) => note_shape(graph, defs, state, address),
        Noted::Step(address) => note_step(graph, defs, state, address),
    }
}

fn note_step(graph: &mut Graph, defs: &Defs, state: &State, address: &Address) {
    let Some(id) = graph.find(address) else { return };
    if graph.has_vanished_turns(state, id) {
        *graph = Graph::new(defs, state);
        return;
    }
    let mut mover = Mover { graph, defs, state, arriving: Vec::new() };
    mover.forget_ready(id);
    mover.unsettle(id);
    if mover.graph.node(id).unmet == 0 {
        mover.arriving.push(id);
    }
    mover.run();
}

fn note_shape(graph: &mut Graph, defs: &Defs, state: &State, address: &Address) {
    let Some(id) = graph.find(address) else { return };
    let node = graph.node(id);
    let turns = state.loops.get(address).copied().unwrap_or_default().turns as usize;
    match node.role {
        Role::Loop if turns == node.children.len() + 1 => {
            let turn = u32::try_from(turns).expect("counted as u32");
            graph.add_turn(defs, state, id, turn);
            let turn = *graph.node(id).children.last().expect("added above");
            let mut mover = Mover { graph, defs, state, arriving: Vec::new() };
            mover.forget_ready(id);
            mover.open(id);
            if mover.graph.node(turn).unmet == 0 {
                mover.arriving.push(turn);
            }
            mover.run();
        }
        Role::Each if node.open || !node.children.is_empty() => *graph = Graph::new(defs, state),
        Role::Each => {
            let items = state.groups.get(address).map_or(&[][..], |group| &group.items);
            graph.add_items(defs, state, id, items);
            arrive_again(graph, defs, state, id);
        }
        Role::Root | Role::Leaf | Role::Group | Role::Loop | Role::Item | Role::Turn => {
            arrive_again(graph, defs, state, id);
        }
    }
}

fn arrive_again(graph: &mut Graph, defs: &Defs, state: &State, id: NodeId) {
    let mut mover = Mover { graph, defs, state, arriving: Vec::new() };
    mover.forget_ready(id);
    if mover.graph.node(id).unmet == 0 {
        mover.arriving.push(id);
    }
    mover.run();
}

impl Graph {
    /// Some loop around the node has fewer turns now than the graph shows.
    fn has_vanished_turns(&self, state: &State, id: NodeId) -> bool {
        let mut scope = Some(id);
        while let Some(inner) = scope {
            let node = self.node(inner);
            if node.role == Role::Loop {
                let turns = state.loops.get(&node.address).map_or(0, |it| it.turns);
                if node.children.len() > turns as usize {
                    return true;
                }
            }
            scope = node.parent;
        }
        false
    }

    /// Each need by address, and what it stands for now. Gates inside a needed group are named too,
    /// so that the journal tells which answers a start has used.
    pub fn need_digests(&self, id: NodeId, defs: &Defs) -> BTreeMap<String, Digest> {
        let mut all = BTreeMap::new();
        for need in &self.compared_needs(id) {
            self.add_need(&mut all, *need);
            for gate in self.gates_within(*need, defs) {
                self.add_need(&mut all, gate);
            }
        }
        all
    }

    fn add_need(&self, all: &mut BTreeMap<String, Digest>, need: NodeId) {
        let node = self.node(need);
        if let Some(digest) = node.digest {
            all.insert(node.address.to_string(), digest);
        }
    }

    /// The gates among `id` and everything inside it.
    pub fn gates_within(&self, id: NodeId, defs: &Defs) -> Vec<NodeId> {
        let mut gates = Vec::new();
        if !self.may_hold_gates(id, defs) {
            return gates;
        }
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            let node = self.node(id);
            if node.role == Role::Leaf && defs.brief(node.def).is_gate() {
                gates.push(id);
            }
            rest.extend(&node.children);
        }
        gates
    }

    /// Looked up in the declaration, so that a fan-out of thousands is not walked for nothing.
    fn may_hold_gates(&self, id: NodeId, defs: &Defs) -> bool {
        let mut rest = vec![self.node(id).def];
        while let Some(def) = rest.pop() {
            if defs.brief(def).is_gate() {
                return true;
            }
            rest.extend(defs.get(def).children());
        }
        false
    }

    /// Whether the needs in a key are what they are now. Compared as text first: a large run asks
    /// this of every finished step, and nearly always the answer is yes.
    fn key_holds(&self, id: NodeId, key: &Key) -> bool {
        let needs = self.compared_needs(id);
        needs.is_empty() || self.ends_in(key, needs) || self.needs_hold(id, &key.get().needs)
    }

    /// Whether a key ends in exactly these needs, as JSON writes them: they are its last part, in
    /// the order of their addresses. Compared from the end, so that nothing is searched for.
    fn ends_in(&self, key: &Key, mut needs: Few) -> bool {
        needs.sort_once(|id| self.node(id).address.as_str());
        let Some(mut rest) = key.as_str().strip_suffix('}') else { return false };
        let mut end = "}";
        for need in needs.iter().rev() {
            let node = self.node(*need);
            let Some((before, digest)) = rest
                .strip_suffix(end)
                .and_then(|it| it.strip_suffix('"'))
                .and_then(|it| it.split_at_checked(it.len().checked_sub(DIGEST_DIGITS)?))
            else {
                return false;
            };
            let name =
                before.strip_suffix("\":\"").and_then(|it| it.strip_suffix(node.address.as_str()));
            match name.and_then(|it| it.strip_suffix('"')) {
                Some(before)
                    if node
                        .digest
                        .is_some_and(|it| Digest::parse(digest.as_bytes()) == Some(it)) =>
                {
                    rest = before;
                }
                Some(_) | None => return false,
            }
            end = ",";
        }
        rest.ends_with("\"needs\":{")
    }

    /// Whether what a node was decided from is what its needs are now.
    fn needs_hold(&self, id: NodeId, recorded: &BTreeMap<String, Digest>) -> bool {
        self.compared_needs(id).iter().all(|need| {
            let node = self.node(*need);
            recorded.get(node.address.as_str()).is_none_or(|was| Some(*was) == node.digest)
        })
    }
}

/// How many characters a digest has in a key.
const DIGEST_DIGITS: usize = 32;

/// One change and all that follows from it.
struct Mover<'a> {
    graph: &'a mut Graph,
    defs: &'a Defs,
    state: &'a State,
    /// Nodes whose last unmet need went away.
    arriving: Vec<NodeId>,
}

impl Mover<'_> {
    fn run(&mut self) {
        while let Some(id) = self.arriving.pop() {
            self.arrive(id);
        }
    }

    /// Everything this node waits for is settled: what now?
    fn arrive(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        if node.unmet > 0 || node.settled {
            return;
        }
        match node.role {
            Role::Root | Role::Item | Role::Turn => self.open(id),
            Role::Leaf => self.arrive_leaf(id),
            Role::Group if !self.defs.opens_by_event(node.def) => self.open(id),
            Role::Group | Role::Each => self.arrive_group(id),
            Role::Loop => self.arrive_loop(id),
        }
    }

    fn arrive_leaf(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        let is_gate = self.defs.brief(node.def).is_gate();
        // Of a large run, nearly all come by here: none is held made for it.
        let entry = self.state.steps.aside(&node.address);
        let entry = entry.as_deref();
        match entry.map_or(Phase::Pending, |entry| entry.phase) {
            Phase::Running => {}
            Phase::Waiting => {
                self.graph.open_gates.insert(id);
            }
            Phase::Done | Phase::Skipped | Phase::Tolerated => {
                let key = entry.and_then(|entry| entry.key.as_ref());
                if key.is_none_or(|key| self.graph.key_holds(id, key)) {
                    self.settle(id);
                } else {
                    self.graph.ready_control.insert(id);
                }
            }
            Phase::Failed => {
                let retry = &self.defs.step(node.def).retry;
                if entry.is_some_and(|entry| has_tries_left(entry, retry)) {
                    self.graph.ready_work.insert(id);
                }
            }
            Phase::Pending | Phase::Lost | Phase::Stale => {
                let ready = if is_gate {
                    &mut self.graph.ready_control
                } else {
                    &mut self.graph.ready_work
                };
                ready.insert(id);
            }
        }
    }

    fn arrive_group(&mut self, id: NodeId) {
        let address = &self.graph.node(id).address;
        if let Some(group) = self.state.groups.get(address)
            && self.graph.needs_hold(id, &group.needs)
        {
            self.open(id);
        } else if !self.settle_if_skipped(id) {
            self.graph.ready_control.insert(id);
        }
    }

    fn arrive_loop(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        if !node.children.is_empty() {
            self.open(id);
        } else if !self.settle_if_skipped(id) {
            self.graph.ready_control.insert(id);
        }
    }

    fn settle_if_skipped(&mut self, id: NodeId) -> bool {
        let entry = self.state.step(&self.graph.node(id).address);
        let Some(entry) = entry.filter(|entry| entry.phase == Phase::Skipped) else {
            return false;
        };
        let holds = entry.key.as_ref().is_none_or(|key| self.graph.key_holds(id, key));
        if holds {
            self.settle(id);
        }
        holds
    }

    /// Lets the children go on; an empty scope is settled at once.
    fn open(&mut self, id: NodeId) {
        let node = self.graph.node_mut(id);
        if !node.open {
            node.open = true;
            for child in node.children.clone() {
                let child_node = self.graph.node_mut(child);
                child_node.unmet -= 1;
                if child_node.unmet == 0 {
                    self.arriving.push(child);
                }
            }
        }
        self.settle_if_complete(id);
    }

    /// A scope whose children are all settled is settled, unless it is a loop that is not over.
    fn settle_if_complete(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        if !node.open || node.unsettled > 0 || node.settled {
            return;
        }
        if node.role == Role::Loop {
            let ended = self.state.loops.get(&node.address).and_then(|it| it.ended);
            match ended {
                Some(LoopEnd::Until | LoopEnd::Max) => {}
                Some(LoopEnd::Exhausted) => return,
                None => {
                    self.graph.ready_control.insert(id);
                    return;
                }
            }
        }
        self.settle(id);
    }

    fn settle(&mut self, id: NodeId) {
        let digest = self.digest_of(id);
        let node = self.graph.node_mut(id);
        node.settled = true;
        node.digest = Some(digest);
        let parent = node.parent;
        for dependent in &node.dependents.clone() {
            let dependent = *dependent;
            let waiting = self.graph.node_mut(dependent);
            waiting.unmet -= 1;
            if waiting.unmet == 0 {
                self.arriving.push(dependent);
            }
        }
        if let Some(parent) = parent {
            let scope = self.graph.node_mut(parent);
            scope.unsettled -= 1;
            if scope.unsettled == 0 {
                // Climbs at most as deep as the workflow is nested.
                self.settle_if_complete(parent);
            }
        }
    }

    /// Takes back that the node, and all that rests on it, is settled.
    fn unsettle(&mut self, id: NodeId) {
        let mut falling = vec![id];
        while let Some(id) = falling.pop() {
            let node = self.graph.node_mut(id);
            if !node.settled {
                continue;
            }
            node.settled = false;
            node.digest = None;
            let (parent, dependents) = (node.parent, node.dependents.clone());
            if let Some(parent) = parent {
                self.graph.node_mut(parent).unsettled += 1;
                self.graph.ready_control.remove(&parent);
                falling.push(parent);
            }
            for dependent in &dependents {
                self.retract(*dependent, &mut falling);
            }
        }
    }

    /// One more need of the node is unmet; what it had on the strength of it is taken back.
    fn retract(&mut self, id: NodeId, falling: &mut Vec<NodeId>) {
        let mut closing = vec![id];
        while let Some(id) = closing.pop() {
            self.graph.node_mut(id).unmet += 1;
            self.forget_ready(id);
            falling.push(id);
            let node = self.graph.node_mut(id);
            if node.open {
                node.open = false;
                closing.extend(node.children.clone());
            }
        }
    }

    fn forget_ready(&mut self, id: NodeId) {
        self.graph.ready_work.remove(&id);
        self.graph.ready_control.remove(&id);
        self.graph.open_gates.remove(&id);
    }

    fn digest_of(&self, id: NodeId) -> Digest {
        let node = self.graph.node(id);
        let entry = self.state.steps.aside(&node.address);
        let own = match node.role {
            Role::Leaf => entry,
            Role::Group | Role::Each | Role::Loop => {
                entry.filter(|entry| entry.phase == Phase::Skipped)
            }
            Role::Root | Role::Item | Role::Turn => None,
        };
        if let Some(entry) = own {
            return entry.evidence_digest(&node.address);
        }
        let children = node.children.iter().map(|child| self.graph.node(*child));
        let digests: Vec<Digest> = children.filter_map(|child| child.digest).collect();
        Digest::of_parts(digests.iter().map(Digest::as_bytes))
    }
}

/// Failed, for a cause that is retried, and not too often yet; or parked at a provider's limit, or
/// given a free try.
pub(crate) fn has_tries_left(entry: &StepState, retry: &Retry) -> bool {
    let cause = entry.failure.as_ref().map(|failure| failure.0);
    let retried = |cause: Cause| retry.on.contains(&cause) && entry.failures <= retry.max;
    let free = entry.free_wait_ms.is_some();
    cause.is_some_and(|cause| cause.is_limit() || free || retried(cause))
}
