//! The steps of a run as rows: phases, groups and fan-outs can be folded.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    graph::{NodeId, Role},
    run::Run,
    view,
};

/// Fan-outs and loops with more children than this begin folded.
const FOLD_OVER: usize = 20;

/// One visible row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: NodeId,
    pub(super) address: Address,
    pub(super) depth: usize,
    pub(super) kind: RowKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    Leaf {
        state: &'static str,
    },
    /// How many leaves below it are done, of how many.
    Group {
        done: u32,
        total: u32,
        folded: bool,
    },
}

/// Which groups a person opened or closed.
#[derive(Default)]
pub(super) struct Tree {
    turned: BTreeSet<Address>,
}

impl Tree {
    pub(super) fn turn(&mut self, group: &Address) {
        if !self.turned.remove(group) {
            self.turned.insert(group.clone());
        }
    }

    /// What is visible, in the order of the run. With a filter: the leaves whose address has it.
    pub(super) fn rows(&self, run: &Run, filter: &str) -> Vec<Row> {
        let order = run.graph.in_order();
        let Some(root) = order.first().copied() else { return Vec::new() };
        if !filter.is_empty() {
            let fits = order.into_iter().filter(|id| {
                let node = run.graph.node(*id);
                node.role == Role::Leaf && node.address.as_str().contains(filter)
            });
            return fits.map(|id| leaf(run, id, 0)).collect();
        }
        let sums = Sums::of(run, &order);
        let mut rows = Vec::new();
        for child in &run.graph.node(root).children {
            self.below(run, *child, 0, &sums, &mut rows);
        }
        rows
    }

    fn below(&self, run: &Run, id: NodeId, depth: usize, sums: &Sums, rows: &mut Vec<Row>) {
        let node = run.graph.node(id);
        if node.role == Role::Leaf {
            rows.push(leaf(run, id, depth));
            return;
        }
        // A scope with one leaf in it is that leaf.
        if let [only] = node.children.as_slice()
            && matches!(node.role, Role::Item | Role::Turn)
            && run.graph.node(*only).role == Role::Leaf
        {
            rows.push(leaf(run, *only, depth));
            return;
        }
        let folded = (node.children.len() > FOLD_OVER) != self.turned.contains(&node.address);
        let (done, total) = sums.of_node(id);
        let kind = RowKind::Group { done, total, folded };
        rows.push(Row { id, address: node.address.clone(), depth, kind });
        if !folded {
            for child in &node.children {
                self.below(run, *child, depth + 1, sums, rows);
            }
        }
    }
}

fn leaf(run: &Run, id: NodeId, depth: usize) -> Row {
    let kind = RowKind::Leaf { state: view::state_word(run, id) };
    Row { id, address: run.graph.node(id).address.clone(), depth, kind }
}

/// Done and known leaves below each node.
struct Sums(std::collections::BTreeMap<NodeId, (u32, u32)>);

impl Sums {
    fn of(run: &Run, order: &[NodeId]) -> Self {
        let mut sums = std::collections::BTreeMap::new();
        // Children come after their parents: from the end each sum is complete when it is used.
        for id in order.iter().rev() {
            let node = run.graph.node(*id);
            if node.role == Role::Leaf {
                sums.insert(*id, (u32::from(view::is_over(run, *id)), 1));
            }
            let own: (u32, u32) = sums.get(id).copied().unwrap_or_default();
            if let Some(parent) = node.parent {
                let sum: &mut (u32, u32) = sums.entry(parent).or_default();
                *sum = (sum.0 + own.0, sum.1 + own.1);
            }
        }
        Self(sums)
    }

    fn of_node(&self, id: NodeId) -> (u32, u32) {
        self.0.get(&id).copied().unwrap_or_default()
    }
}
