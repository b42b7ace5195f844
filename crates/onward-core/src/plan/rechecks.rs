//! Kept steps whose check is asked once more, because an effect outside is to come that rests on
//! them: if it does not agree then, the step runs again, and the plan says so beforehand.

use std::collections::{BTreeMap, BTreeSet};

use super::{PlannedStep, Verdict, Why};
use crate::{
    address::Address,
    graph::{NodeId, Role},
    run::Run,
};

/// Adds the reason to the row of each.
pub(super) fn add(before: &Run, after: &Run, rows: &mut [PlannedStep]) {
    // Most workflows have no check at all.
    if !after.defs.ids().any(|id| after.defs.brief(id).has_check()) {
        return;
    }
    let mut open = with_checks(before, after, rows);
    if open.is_empty() {
        return;
    }
    let graph = &after.graph;
    for id in graph.in_order() {
        let node = graph.node(id);
        let may_come = node.role == Role::Leaf && !node.is_settled();
        if !may_come || !after.defs.step(node.def).effect_outside {
            continue;
        }
        let (mut rest, mut seen) = (graph.effective_needs(id), BTreeSet::new());
        while let Some(need) = rest.pop() {
            if !seen.insert(need) {
                continue;
            }
            rest.extend(&graph.node(need).children);
            rest.extend(graph.effective_needs(need));
            if let Some(index) = open.remove(&need) {
                let detail = format!("its check runs again before {}", node.address);
                rows[index].why.push(Why::because("recheck", detail));
            }
        }
    }
}

/// The rows of kept steps that have a check, by node. What was adopted has none that the run knows.
fn with_checks(before: &Run, after: &Run, rows: &[PlannedStep]) -> BTreeMap<NodeId, usize> {
    let kept = rows.iter().enumerate().filter(|(_, row)| row.verdict == Verdict::Keep);
    let checked = kept.filter_map(|(index, row)| {
        let step = Address::from_text(&row.step);
        let id = after.graph.find(&step)?;
        let has_check = after.defs.brief(after.graph.node(id).def).has_check();
        let has_key = before.state.step(&step).is_some_and(|it| it.key.is_some());
        (has_check && has_key).then_some((id, index))
    });
    checked.collect()
}
