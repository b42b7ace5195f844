//! A graph from nothing: the nodes a state implies, and then everything that can settle, settled.

use std::collections::{BTreeMap, BTreeSet};

use super::{DefId, Defs, Few, Graph, Index, Node, NodeId, Nodes, Often, Role, settle};
use crate::{address::Address, event::Item, state::State};

pub(super) fn graph(defs: &Defs, state: &State) -> Graph {
    let root = Node::new(Address::root(), DefId::ROOT, Role::Root, None);
    let mut graph = Graph {
        nodes: Nodes::default(),
        index: Index::with_capacity(defs.ids().len()),
        ready_work: BTreeSet::new(),
        ready_control: BTreeSet::new(),
        open_gates: BTreeSet::new(),
    };
    graph.nodes.push(root);
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
            needs: Few::NONE,
            sources: 0,
            dependents: Few::NONE,
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
        let declared = defs.get(def).children();
        let mut siblings = Vec::with_capacity(declared.len());
        for child in declared {
            let brief = defs.brief(*child);
            let role = match (brief.often(), brief.is_leaf()) {
                (Often::Once, true) => Role::Leaf,
                (Often::Once, false) => Role::Group,
                (Often::Each, _) => Role::Each,
                (Often::Repeat, _) => Role::Loop,
            };
            siblings.push(self.add(scope.child_named(defs.id(*child)), *child, role, parent));
        }
        for (child, id) in declared.iter().zip(&siblings) {
            let mut needs = defs.needs(*child);
            if defs.has_sources(*child) {
                // Sources stand last; all else keeps its order.
                needs.sort_by_key(|index| defs.is_source(*child, declared[*index]));
                let is_source = |index: &&usize| defs.is_source(*child, declared[**index]);
                let sources = needs.iter().rev().take_while(is_source).count();
                self.node_mut(*id).sources =
                    u32::try_from(sources).expect("fewer steps than a u32 counts");
            }
            self.set_needs(*id, needs.into_iter().map(|index| siblings[index]).collect());
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
        let leaf = defs.brief(def).is_leaf();
        let id = self.add(address, def, if leaf { Role::Leaf } else { role }, parent);
        if !leaf {
            self.add_children(defs, state, id, def);
        }
        id
    }

    fn add(&mut self, address: Address, def: DefId, role: Role, parent: NodeId) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("fewer nodes than a u32 counts"));
        self.nodes.push(Node::new(address.clone(), def, role, Some(parent)));
        self.index.insert(address, id, &self.nodes);
        let parent = self.node_mut(parent);
        parent.children.push(id);
        parent.unsettled += 1;
        // A child of an open scope does not wait for it.
        if parent.open {
            self.node_mut(id).unmet -= 1;
        }
        id
    }

    fn set_needs(&mut self, id: NodeId, needs: Few) {
        for need in &needs {
            if !self.node(*need).settled {
                self.node_mut(id).unmet += 1;
            }
            self.node_mut(*need).dependents.push(id);
        }
        self.node_mut(id).needs = needs;
    }
}
