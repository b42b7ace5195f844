//! The rows of a plan: which steps have one, in which order.

use std::collections::BTreeMap;

use super::{
    PlannedStep, Resumption, Verdict, Why, Whys, rechecks,
    verdict::{Reason, because, judge, planned},
};
use crate::{
    address::Address,
    graph::{NodeId, Role},
    overwritten::{Overwritten, overwritten_if_compared},
    run::Run,
    state::{Glance, Phase},
    time::Timestamp,
};

pub(super) fn steps(before: &Run, after: &Run, resumption: &Resumption) -> Vec<PlannedStep> {
    let mut rows = Vec::with_capacity(after.graph.len());
    let lent = overwritten_if_compared(after);
    for id in after.graph.in_order() {
        let unread = unread(before, after, id, resumption);
        if let Some((step, moment)) = unread.filter(|it| !lent.contains_key(it.0)) {
            let (step, why) = (step.as_str().to_owned(), Whys::done_at(moment));
            rows.push(PlannedStep { step, verdict: Verdict::Keep, why, cost_usd: None });
        } else if is_shown(after, id, resumption) {
            let judged = judged(before, after, id, (resumption, &lent));
            rows.push(planned(before, after, id, resumption, judged));
        }
    }
    add_vanished(before, after, resumption, &mut rows);
    rechecks::add(before, after, &mut rows);
    if let Some(gate) = &after.state.cancelling {
        end_all(&mut rows, gate, resumption);
    }
    rows
}

/// The same rows without those that say no more than that a step is kept, and how many these are:
/// all that [`recovery_point`](super::headline::recovery_point) looks at.
pub(super) fn steps_beyond_kept(
    before: &Run,
    after: &Run,
    resumption: &Resumption,
) -> (Vec<PlannedStep>, usize) {
    let (mut rows, mut kept) = (Vec::new(), 0);
    let lent = overwritten_if_compared(after);
    for id in after.graph.in_order() {
        let unread = unread(before, after, id, resumption);
        if unread.is_some_and(|it| !lent.contains_key(it.0)) {
            kept += 1;
            continue;
        }
        if !is_shown(after, id, resumption) {
            continue;
        }
        let judged = judged(before, after, id, (resumption, &lent));
        if matches!(judged, (Verdict::Keep, Reason::Settled | Reason::DoneAt(_))) {
            kept += 1;
        } else {
            rows.push(planned(before, after, id, resumption, judged));
        }
    }
    add_vanished(before, after, resumption, &mut rows);
    if let Some(gate) = &after.state.cancelling {
        end_all(&mut rows, gate, resumption);
    }
    kept += rows.iter().filter(|row| row.verdict == Verdict::Keep).count();
    (rows, kept)
}

/// Its verdict; a kept step may run again for the sake of one that is compared first.
fn judged(
    before: &Run,
    after: &Run,
    id: NodeId,
    (made, lent): (&Resumption, &BTreeMap<Address, Overwritten>),
) -> (Verdict, Reason) {
    let judged = judge(before, after, id, made);
    let lent = lent.get(&after.graph.node(id).address).filter(|_| judged.0 == Verdict::Keep);
    let Some(lent) = lent else { return judged };
    let detail = format!("kept, unless {}", lent.condition());
    (Verdict::Verify, Reason::Because(vec![because("writes", &detail)]))
}

/// Whether a node has a row.
fn is_shown(after: &Run, id: NodeId, resumption: &Resumption) -> bool {
    is_line(after, id) || turns_again(after, id, resumption)
}

/// A step of the run itself that is kept and of which no more is to be told, and when it was done:
/// its node is not looked into. [`judge`] says the same.
fn unread<'r>(
    before: &'r Run,
    after: &'r Run,
    id: NodeId,
    made: &Resumption,
) -> Option<(&'r Address, Timestamp)> {
    let (place, plain) = after.plainly_done(id)?;
    let (was, is) = (&before.state.steps, &after.state.steps);
    let stays = was.are_shared_with(is) || matches!(was.glance_at(place), Glance::Plain(_));
    let step = was.name(place).filter(|step| stays && !made.reasons.contains_key(*step))?;
    Some((step, plain.ended_at()))
}

/// An answer ends the run: nothing starts any more.
fn end_all(rows: &mut [PlannedStep], gate: &Address, made: &Resumption) {
    for row in rows {
        let step = Address::from_text(&row.step);
        let goes = match row.verdict {
            Verdict::Reattach | Verdict::Continue | Verdict::Rerun | Verdict::Run => true,
            Verdict::Ask => !made.rungs.contains_key(&step),
            Verdict::Verify => !made.to_probe.contains(&step) && !made.to_check.contains(&step),
            Verdict::Keep | Verdict::Adopt | Verdict::Skip => false,
        };
        if goes {
            row.verdict = Verdict::Skip;
            let detail = format!("the answer to {gate} ends the run");
            row.why = vec![because("cancelled", &detail)].into();
            row.cost_usd = None;
        }
    }
}

/// Turns and items that are no more, because something before them runs again: each known instance
/// has a row, behind the one that it followed.
fn add_vanished(before: &Run, after: &Run, made: &Resumption, rows: &mut Vec<PlannedStep>) {
    if before.graph.has_the_nodes_of(&after.graph) {
        return;
    }
    let places: BTreeMap<&str, usize> =
        (1..).zip(&*rows).map(|(place, row)| (row.step.as_str(), place)).collect();
    let mut vanished_at: BTreeMap<usize, Vec<PlannedStep>> = BTreeMap::new();
    let mut place = 0;
    for id in before.graph.in_order().into_iter().filter(|id| is_line(before, *id)) {
        let step = &before.graph.node(id).address;
        if let Some(at) = places.get(step.as_str()) {
            place = *at;
        } else if after.graph.find(step).is_none() {
            let (verdict, why) = vanished(before, after, step);
            let mut why = vec![why];
            why.extend(made.reasons.get(step).into_iter().flatten().cloned());
            let (step, why) = (step.to_string(), why.into());
            let row = PlannedStep { step, verdict, why, cost_usd: None };
            vanished_at.entry(place).or_default().push(row);
        }
    }
    if vanished_at.is_empty() {
        return;
    }
    let mut all = vanished_at.remove(&0).unwrap_or_default();
    for (place, row) in (1..).zip(rows.drain(..)) {
        all.push(row);
        all.extend(vanished_at.remove(&place).into_iter().flatten());
    }
    *rows = all;
}

/// An item that is no longer listed stays as it is; a turn may come again.
fn vanished(before: &Run, after: &Run, step: &Address) -> (Verdict, Why) {
    let mut scope = Some(step.clone());
    while let Some(inner) = scope {
        if let Some((group, key)) = inner.group_and_key()
            && let Some(listed) = after.state.groups.get(&group)
            && after.graph.find(&group).is_some()
            && !listed.items.iter().any(|it| it.key == key)
        {
            let is_done = before.state.phase(step).is_settled();
            let detail = "no longer listed, and left as it is";
            let verdict = if is_done { Verdict::Keep } else { Verdict::Skip };
            return (verdict, because("unlisted", detail));
        }
        scope = inner.parent();
    }
    let detail = "runs only if the steps before it ask for it";
    (Verdict::Verify, because("upstream", detail))
}

/// Leaves, and groups that are not expanded yet.
fn is_line(after: &Run, id: NodeId) -> bool {
    let node = after.graph.node(id);
    let inside_skipped = || {
        let mut parent = node.parent;
        while let Some(id) = parent {
            let scope = after.graph.node(id);
            // The run itself is never passed over.
            if scope.role != Role::Root && after.state.phase(&scope.address) == Phase::Skipped {
                return true;
            }
            parent = scope.parent;
        }
        false
    };
    let skipped = || after.state.phase(&node.address) == Phase::Skipped;
    match node.role {
        Role::Root | Role::Item | Role::Turn => false,
        Role::Leaf => !inside_skipped(),
        // One without items is over as soon as it is opened.
        Role::Each | Role::Loop => {
            let is_closed = node.children.is_empty() && !node.is_settled();
            (is_closed || skipped()) && !inside_skipped()
        }
        Role::Group => skipped() && !inside_skipped(),
    }
}

/// A loop that had ended: its next turn has no row of its own yet.
fn turns_again(after: &Run, id: NodeId, resumption: &Resumption) -> bool {
    let node = after.graph.node(id);
    let is_between = || node.children.iter().all(|it| after.graph.node(*it).is_settled());
    let is_open = node.role == Role::Loop && !node.is_settled();
    is_open && is_between() && resumption.invalidates(&node.address)
}
