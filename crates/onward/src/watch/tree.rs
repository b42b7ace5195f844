//! The steps of a run as rows: phases, groups and fan-outs can be folded.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    graph::{NodeId, Role},
    run::Run,
    view::{self, Counts, state_word},
};
use ratatui::{
    text::{Line, Span},
    widgets::{HighlightSpacing, List},
};

use crate::{
    diagnostic::printable,
    style::{BUSY, STRONG, cut, fraction, of_state},
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
    /// How it stands is asked only where it is shown: most rows never are.
    Leaf,
    /// Of the leaves below it.
    Group { counts: Counts, folded: bool },
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

    /// What is visible, in the order of the run, and the counts of all of it. With a filter: the
    /// leaves whose address has it, and no counts, since nothing is counted for them.
    pub(super) fn rows(&self, run: &Run, filter: &str) -> (Vec<Row>, Option<Counts>) {
        let order = run.graph.in_order();
        let root = run.graph.root_id();
        if !filter.is_empty() {
            let fits = order.into_iter().filter(|id| {
                let node = run.graph.node(*id);
                node.role == Role::Leaf && node.address.as_str().contains(filter)
            });
            return (fits.map(|id| leaf(run, id, 0)).collect(), None);
        }
        let sums = Sums::of(run, &order);
        let mut rows = Vec::with_capacity(run.graph.node(root).children.len());
        for child in &run.graph.node(root).children {
            self.below(run, *child, 0, &sums, &mut rows);
        }
        (rows, Some(sums.of_node(root)))
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
        let kind = RowKind::Group { counts: sums.of_node(id), folded };
        rows.push(Row { id, address: node.address.clone(), depth, kind });
        if !folded {
            for child in &node.children {
                self.below(run, *child, depth + 1, sums, rows);
            }
        }
    }
}

/// These rows; without groups around them by their whole addresses.
pub(super) fn list<'a>(
    run: &Run,
    rows: impl Iterator<Item = &'a Row>,
    is_flat: bool,
    columns: u16,
) -> List<'static> {
    List::new(rows.map(|row| line(run, row, is_flat, columns.into())))
        .highlight_symbol(">")
        .highlight_spacing(HighlightSpacing::Always)
        .highlight_style(STRONG)
}

fn line(run: &Run, row: &Row, is_flat: bool, columns: usize) -> Line<'static> {
    let indent = "  ".repeat(row.depth.min(8));
    let name = printable(row.address.as_str());
    let short = name.rsplit('/').next().filter(|_| row.depth > 0 && !is_flat);
    let (mark, style, note) = match &row.kind {
        RowKind::Leaf => {
            let state = state_word(run, row.id);
            (sign(state), of_state(state), String::new())
        }
        RowKind::Group { counts, folded } => {
            // Of one that is not open yet nothing is known.
            let note = Some(fraction(*counts)).filter(|_| counts.total > 0);
            let note = note.map_or(String::new(), |it| format!(" {it}"));
            (if *folded { "▸" } else { "▾" }, BUSY, note)
        }
    };
    let name = cut(short.unwrap_or(&name), columns.saturating_sub(indent.len() + 3 + note.len()));
    vec![indent.into(), Span::styled(mark, style), format!(" {name}{note}").into()].into()
}

/// Readable without colours.
fn sign(state: &str) -> &'static str {
    match state {
        "done" => "✓",
        "running" => "●",
        "failed" => "✗",
        "waiting" => "?",
        "skipped" => "-",
        "parked" => "z",
        "lost" | "stale" => "↻",
        _ => "·",
    }
}

fn leaf(run: &Run, id: NodeId, depth: usize) -> Row {
    Row { id, address: run.graph.node(id).address.clone(), depth, kind: RowKind::Leaf }
}

/// Leaves below each node, counted as those of the whole run are.
struct Sums(BTreeMap<NodeId, Counts>);

impl Sums {
    fn of(run: &Run, order: &[NodeId]) -> Self {
        let mut sums: BTreeMap<NodeId, Counts> = BTreeMap::new();
        // Children come after their parents: from the end each sum is complete when it is used.
        for id in order.iter().rev() {
            let node = run.graph.node(*id);
            let own = view::counts_of(run, *id);
            let own = sums.get(id).map_or(own, |below| below.plus(own));
            if node.role != Role::Leaf {
                sums.insert(*id, own);
            }
            if let Some(parent) = node.parent {
                let sum = sums.entry(parent).or_default();
                *sum = sum.plus(own);
            }
        }
        Self(sums)
    }

    fn of_node(&self, id: NodeId) -> Counts {
        self.0.get(&id).copied().unwrap_or_default()
    }
}
