//! A graph from nothing: the nodes a state implies, and then everything that can settle, settled.

use std::collections::{BTreeMap, BTreeSet};

use super::{DefId, Defs, Graph, Node, NodeId, Role, settle};
use crate::{
    address::Address,
    event::Item,
    state::State,
    workflow::model::{Kind, Many},
};

pub(super) fn graph(defs: &Defs, state: &State) -> Graph {
    let root = Node::new(Address::root(), DefId::ROOT, Role::Root, None);
    let mut graph = Graph {
        nodes: vec![root],
        by_address: BTreeMap::new(),
        ready_work: BTreeSet::new(),
        ready_control: BTreeSet::new(),
        open_gates: BTreeSet::new(),
    };
    graph.add_children(defs, state, NodeId(0), DefId::ROOT);
    settle::start(&mut graph, defs, state);
    graph
}

impl Node {
    fn new(address: Address, def: DefId, role: Role, parent: Option<NodeId>) -> Self {
        Self {
            address,
            def,
            role,
            parent,
            children: Vec::new(),
            needs: Vec::new(),
            sources: 0,
            dependents: Vec::new(),
            unmet: u32::from(parent.is_some()),
            unsettled: 0,
            open: false,
            settled: false,
            digest: None,
        }
    }
}

impl Graph {
    /// The steps declared in `def`, as children of the scope `parent`.
    pub(super) fn add_children(&mut self, defs: &Defs, state: &State, parent: NodeId, def: DefId) {
        let scope = self.node(parent).address.clone();
        let declared = &defs.get(def).children;
        let mut siblings = Vec::with_capacity(declared.len());
        for child in declared {
            let step = defs.step(*child);
            let role = match (&step.many, step.is_leaf()) {
                (Many::Once, true) => Role::Leaf,
                (Many::Once, false) => Role::Group,
                (Many::Each(_), _) => Role::Each,
                (Many::Repeat(_), _) => Role::Loop,
            };
            siblings.push(self.add(scope.child(&step.id), *child, role, parent));
        }
        for (child, id) in declared.iter().zip(&siblings) {
            let needs = defs.step(*child).needs.iter();
            let is_source = |index: &&usize| defs.is_source(*child, declared[**index]);
            let (sources, others): (Vec<_>, Vec<_>) = needs.partition(is_source);
            self.node_mut(*id).sources =
                u32::try_from(sources.len()).expect("fewer steps than a u32 counts");
            let needs = others.into_iter().chain(sources);
            self.set_needs(*id, needs.map(|index: &usize| siblings[*index]).collect());
        }
        for (child, id) in declared.iter().zip(&siblings) {
            self.add_inside(defs, state, *id, *child);
        }
    }

    fn add_inside(&mut self, defs: &Defs, state: &State, id: NodeId, def: DefId) {
        let node = self.node(id);
        match node.role {
            Role::Group => self.add_children(defs, state, id, def),
            Role::Each => {
                if let Some(group) = state.groups.get(&node.address) {
                    self.add_items(defs, state, id, &group.items);
                }
            }
            Role::Loop => {
                let turns = state.loops.get(&node.address).map_or(0, |it| it.turns);
                (1..=turns).for_each(|turn| self.add_turn(defs, state, id, turn));
            }
            Role::Root | Role::Leaf | Role::Item | Role::Turn => {}
        }
    }

    pub(super) fn add_items(&mut self, defs: &Defs, state: &State, each: NodeId, items: &[Item]) {
        let mut by_key = BTreeMap::new();
        for item in items {
            let address = self.node(each).address.item(&item.key);
            let id = self.add_scope(defs, state, each, address, Role::Item);
            by_key.insert(item.key.as_str(), id);
        }
        for item in items {
            let needs = item.after.iter().filter_map(|key| by_key.get(key.as_str()).copied());
            self.set_needs(by_key[item.key.as_str()], needs.collect());
        }
    }

    pub(super) fn add_turn(&mut self, defs: &Defs, state: &State, each: NodeId, turn: u32) {
        let before = self.node(each).children.last().copied();
        let address = self.node(each).address.turn(turn);
        let id = self.add_scope(defs, state, each, address, Role::Turn);
        self.set_needs(id, before.into_iter().collect());
    }

    /// One item or turn: the step itself when it is a leaf, else a scope with its steps.
    fn add_scope(
        &mut self,
        defs: &Defs,
        state: &State,
        parent: NodeId,
        address: Address,
        role: Role,
    ) -> NodeId {
        let def = self.node(parent).def;
        let leaf = match defs.step(def).kind {
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => true,
            Kind::Group { .. } | Kind::Sub { .. } => false,
        };
        let id = self.add(address, def, if leaf { Role::Leaf } else { role }, parent);
        if !leaf {
            self.add_children(defs, state, id, def);
        }
        id
    }

    fn add(&mut self, address: Address, def: DefId, role: Role, parent: NodeId) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("fewer nodes than a u32 counts"));
        self.nodes.push(Node::new(address.clone(), def, role, Some(parent)));
        self.by_address.insert(address, id);
        let parent = self.node_mut(parent);
        parent.children.push(id);
        parent.unsettled += 1;
        // A child of an open scope does not wait for it.
        if parent.open {
            self.node_mut(id).unmet -= 1;
        }
        id
    }

    fn set_needs(&mut self, id: NodeId, needs: Vec<NodeId>) {
        for need in &needs {
            if !self.node(*need).settled {
                self.node_mut(id).unmet += 1;
            }
            self.node_mut(*need).dependents.push(id);
        }
        self.node_mut(id).needs = needs;
    }
}
