//! How a run stands that no driver holds: as its plan says.
//!
//! Invariant: a step counts as done exactly if its row is kept, skipped or taken as it is, and what
//! starts next is what the plan starts. So `status`, `list` and `plan` cannot differ.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Counts, GateView, LastCompleted, StepView, View, is_over, is_skipped, last_told,
    more::has_more, top,
};
use crate::{
    address::Address,
    graph::Role,
    plan::{Plan, PlannedStep, Verdict},
    run::Run,
    state::Phase,
};

/// `view` is what the journal of `run` says; `plan` leads from there to `after`.
pub fn as_planned(mut view: View, run: &Run, after: &Run, plan: &Plan) -> View {
    view.steps = with_new(std::mem::take(&mut view.steps), after, plan);
    let rows: BTreeMap<&str, &PlannedStep> =
        plan.steps.iter().map(|row| (row.step.as_str(), row)).collect();
    let mut counts = Counts::default();
    let mut phase = None;
    for step in &mut view.steps {
        let was_over =
            run.graph.find(&Address::from_text(&step.step)).is_some_and(|id| is_over(run, id));
        let is_over = match rows.get(step.step.as_str()) {
            Some(row) => stand(step, row, was_over),
            None if !was_over && is_passed_over(after, &step.step) => {
                "skipped".clone_into(&mut step.state);
                true
            }
            None => was_over,
        };
        counts.total += 1;
        counts.done += u32::from(is_over);
        if !is_over && phase.is_none() {
            phase = Some(top(&step.step).to_owned());
        }
    }
    let counts = Counts { more: has_more(after), ..counts };
    let stale = view.steps.iter().filter(|it| it.state == "stale");
    let stale: BTreeSet<&str> = stale.map(|it| it.step.as_str()).collect();
    let counts_no_more = |step: &Address| stale.contains(step.as_str());
    let mut done: Vec<_> =
        run.state.steps.iter().filter(|(_, it)| it.phase == Phase::Done).collect();
    done.sort_by_key(|(_, entry)| entry.ended_at);
    done.retain(|(step, _)| !counts_no_more(step));
    let own = done.iter().rev().find(|(_, entry)| !entry.elsewhere);
    let own = own.map(|(step, entry)| (*step, entry.ended_at));
    let last = done.last();
    let last = last.map(|(step, entry)| LastCompleted {
        step: step.to_string(),
        at: entry.ended_at.to_string(),
    });
    view.last_completed = last_told(plan, last, own);
    let starts = |step: &&String| rows.get(step.as_str()).is_some_and(|row| starts(row.verdict));
    view.next = plan.recovery_point.steps.iter().filter(starts).cloned().collect();
    // What a gate asks about is made again first: there is nothing to answer yet.
    let open = |gate: &GateView| {
        let mut open = after.graph.open_gates().map(|id| &after.graph.node(id).address);
        open.any(|step| step.as_str() == gate.step)
    };
    view.gates.retain(open);
    // A group or a loop that is opened next has no step of its own yet.
    let is_known = |step: &String| view.steps.iter().any(|it| it.step == *step);
    let opened = view.next.first().filter(|step| !is_known(step));
    let phase = opened.map(|step| top(step).to_owned()).or(phase);
    View { phase, counts, ..view }
}

/// A step of a group that the resume passes over.
fn is_passed_over(after: &Run, step: &str) -> bool {
    after.graph.find(&Address::from_text(step)).is_some_and(|id| is_skipped(after, id))
}

/// Steps that only the plan knows, each behind the one that it follows there.
fn with_new(steps: Vec<StepView>, after: &Run, plan: &Plan) -> Vec<StepView> {
    let places: BTreeMap<&str, usize> =
        steps.iter().enumerate().map(|(at, step)| (step.step.as_str(), at)).collect();
    let mut new: Vec<(usize, StepView)> = Vec::new();
    let mut behind = 0;
    for row in &plan.steps {
        let id = after.graph.find(&Address::from_text(&row.step));
        if let Some(at) = places.get(row.step.as_str()) {
            behind = at + 1;
        } else if id.is_some_and(|id| after.graph.node(id).role == Role::Leaf) {
            let (step, state) = (row.step.clone(), "pending".to_owned());
            new.push((behind, StepView { step, state, attempts: 0, cost_usd: None }));
        }
    }
    let mut new = new.into_iter().peekable();
    let mut all = Vec::with_capacity(steps.len());
    for (at, step) in steps.into_iter().enumerate() {
        while let Some((_, step)) = new.next_if(|it| it.0 <= at) {
            all.push(step);
        }
        all.push(step);
    }
    all.extend(new.map(|(_, step)| step));
    all
}

/// Brings the state of a step to what its row says; whether nothing is left to do about it.
fn stand(step: &mut StepView, row: &PlannedStep, was_over: bool) -> bool {
    let has = |cause: &str| row.why.iter().any(|why| why.cause == cause);
    let (state, is_over) = match row.verdict {
        // One that failed for good and is kept has failed all the same.
        Verdict::Keep if was_over || has("failed") => (None, true),
        // The answer to a gate ends the run: the rest was neither done nor passed over.
        Verdict::Skip if was_over || has("cancelled") => (None, was_over),
        Verdict::Skip => (Some("skipped"), true),
        // It ended while no driver was there to hear of it.
        Verdict::Adopt if has("failed") => (Some("failed"), false),
        Verdict::Keep | Verdict::Adopt => (Some("done"), true),
        Verdict::Verify | Verdict::Rerun | Verdict::Ask if was_over => (Some("stale"), false),
        // Another system did it, and took it back.
        Verdict::Run if step.state == "done" => (Some("stale"), false),
        // It never began, also if it was announced, or passed over until now.
        Verdict::Run => (Some("pending"), false),
        Verdict::Verify | Verdict::Rerun | Verdict::Ask | Verdict::Reattach | Verdict::Continue => {
            (None, false)
        }
    };
    if let Some(state) = state {
        state.clone_into(&mut step.state);
    }
    is_over
}

fn starts(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Run | Verdict::Rerun | Verdict::Continue => true,
        Verdict::Keep
        | Verdict::Verify
        | Verdict::Adopt
        | Verdict::Reattach
        | Verdict::Ask
        | Verdict::Skip => false,
    }
}
