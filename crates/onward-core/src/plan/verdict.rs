//! Verdict and reason of each step, read off the run as it would be after the resume.

use super::{PlannedStep, RecoveryPoint, Resumption, Status, Verdict, Why};
use crate::{
    address::Address,
    bill,
    evidence::Usd,
    finding::{Code, Finding},
    graph::{NodeId, Role},
    key::KeyParts,
    recovery::Decision,
    run::Run,
    state::{Phase, StepState},
};

pub(super) fn steps(before: &Run, after: &Run, resumption: &Resumption) -> Vec<PlannedStep> {
    let graph = &after.graph;
    let shown = graph.in_order().into_iter().filter(|id| is_line(after, *id));
    let mut rows: Vec<PlannedStep> =
        shown.map(|id| planned(before, after, id, resumption)).collect();
    add_vanished(before, after, &mut rows);
    rows
}

/// Turns and items that are no more, because something before them runs again: each known instance
/// has a row, behind the one that it followed.
fn add_vanished(before: &Run, after: &Run, rows: &mut Vec<PlannedStep>) {
    let mut place = 0;
    for id in before.graph.in_order().into_iter().filter(|id| is_line(before, *id)) {
        let step = &before.graph.node(id).address;
        if let Some(at) = rows.iter().position(|row| row.step == step.as_str()) {
            place = at + 1;
        } else if after.graph.find(step).is_none() {
            let detail = "its turn comes only if what is before it asks for it";
            let why = vec![because("upstream", detail)];
            let (step, verdict) = (step.to_string(), Verdict::Verify);
            rows.insert(place, PlannedStep { step, verdict, why, cost_usd: None });
            place += 1;
        }
    }
}

/// Leaves, and groups that are not expanded yet.
fn is_line(after: &Run, id: NodeId) -> bool {
    let node = after.graph.node(id);
    let inside_skipped = || {
        let mut parent = node.parent;
        while let Some(id) = parent {
            let scope = after.graph.node(id);
            if after.state.phase(&scope.address) == Phase::Skipped {
                return true;
            }
            parent = scope.parent;
        }
        false
    };
    let skipped = after.state.phase(&node.address) == Phase::Skipped;
    match node.role {
        Role::Root | Role::Item | Role::Turn => false,
        Role::Leaf => !inside_skipped(),
        // One without items is over as soon as it is opened.
        Role::Each | Role::Loop => {
            let is_closed = node.children.is_empty() && !node.is_settled();
            (is_closed || skipped) && !inside_skipped()
        }
        Role::Group => skipped && !inside_skipped(),
    }
}

fn planned(before: &Run, after: &Run, id: NodeId, resumption: &Resumption) -> PlannedStep {
    let node = after.graph.node(id);
    let step = &node.address;
    let entry = before.state.step(step);
    let (verdict, mut why) = judge(before, after, id, resumption);
    why.extend(resumption.reasons.get(step).into_iter().flatten().cloned());
    if why.is_empty() {
        why.push(because("pending", "it has not run yet"));
    }
    let cost_usd = match verdict {
        Verdict::Rerun | Verdict::Continue | Verdict::Verify => {
            entry.and_then(bill::again).map(Usd::dollars)
        }
        Verdict::Keep
        | Verdict::Adopt
        | Verdict::Reattach
        | Verdict::Run
        | Verdict::Ask
        | Verdict::Skip => None,
    };
    PlannedStep { step: step.to_string(), verdict, why, cost_usd }
}

/// What the steps that run again for sure will cost.
pub(super) fn rerun_cost(run: &Run, steps: &[PlannedStep]) -> Usd {
    let runs_again = |step: &&PlannedStep| match step.verdict {
        Verdict::Rerun | Verdict::Continue => true,
        Verdict::Keep
        | Verdict::Verify
        | Verdict::Adopt
        | Verdict::Reattach
        | Verdict::Run
        | Verdict::Ask
        | Verdict::Skip => false,
    };
    let again = steps.iter().filter(runs_again);
    let costs = again.filter_map(|step| bill::again(run.state.steps.get(step.step.as_str())?));
    costs.fold(Usd::default(), Usd::plus)
}

fn judge(before: &Run, after: &Run, id: NodeId, made: &Resumption) -> (Verdict, Vec<Why>) {
    let node = after.graph.node(id);
    let step = &node.address;
    let was = before.state.phase(step);
    let is_told = after.state.step(step).is_some_and(|it| it.phase == Phase::Done && it.elsewhere);
    if is_told && !was.is_settled() {
        return (Verdict::Keep, vec![because("done", "another system has done it since")]);
    }
    if was != Phase::Skipped && after.state.phase(step) == Phase::Skipped {
        return (Verdict::Skip, Vec::new());
    }
    if let Some(row) = made.rungs.get(step) {
        if made.to_probe.contains(step) {
            return (Verdict::Verify, Vec::new());
        }
        // An effect whose end is not known is settled first, whatever became of the session.
        let gives_up = row.decision == Decision::Continue && !made.continuing.contains(step);
        let decision = if gives_up { Decision::Rerun } else { row.decision };
        return (in_flight(decision, after.state.phase(step)), Vec::new());
    }
    let entry = before.state.step(step);
    match was {
        Phase::Done | Phase::Tolerated if after.state.phase(step) == Phase::Stale => {
            let is_gate = entry.is_some_and(|entry| entry.gate.is_some());
            let verdict = if is_gate { Verdict::Ask } else { Verdict::Rerun };
            let why = if is_gate {
                vec![because("gate", "its last answer ended the run")]
            } else if made.reasons.contains_key(step) {
                Vec::new()
            } else {
                // What it needs is there again, and is not what it was.
                stale(after, id)
            };
            (verdict, why)
        }
        Phase::Done
            if entry.is_some_and(|entry| entry.gate.is_some())
                && made.findings.iter().any(|it| is_outdated(it, step)) =>
        {
            (Verdict::Ask, vec![because("gate", "what it showed has moved since the answer")])
        }
        Phase::Done | Phase::Skipped if node.is_settled() => {
            let verdict = if was == Phase::Done { Verdict::Keep } else { Verdict::Skip };
            (verdict, vec![because(was.as_str(), &settled_detail(entry))])
        }
        // It ran, and stays as it is: the workflow goes on without it.
        Phase::Tolerated if node.is_settled() => (Verdict::Keep, vec![failure("failed", entry)]),
        Phase::Done | Phase::Skipped | Phase::Tolerated if node.is_reachable() => {
            (Verdict::Rerun, stale(after, id))
        }
        Phase::Done | Phase::Skipped | Phase::Tolerated => {
            (Verdict::Verify, vec![because("upstream", "kept if what it needs comes out the same")])
        }
        Phase::Waiting => (Verdict::Ask, vec![because("gate", "a person must decide")]),
        Phase::Failed => (Verdict::Rerun, vec![failure("failed", entry)]),
        Phase::Lost if made.continuing.contains(step) => {
            (Verdict::Continue, vec![failure("lost", entry)])
        }
        Phase::Lost => (Verdict::Rerun, vec![failure("lost", entry)]),
        Phase::Stale => (Verdict::Rerun, vec![because("stale", "it was invalidated before")]),
        // The fold remembers a pending step only because it failed before the last resume.
        Phase::Pending if entry.is_some() => (Verdict::Rerun, vec![failure("failed", entry)]),
        // A list without items that was opened before.
        Phase::Pending if before.state.groups.contains_key(step) => {
            (Verdict::Verify, vec![because("upstream", "kept if what it needs comes out the same")])
        }
        Phase::Pending | Phase::Running => (Verdict::Run, Vec::new()),
    }
}

/// The answer of this gate counts no more.
fn is_outdated(finding: &Finding, step: &Address) -> bool {
    let is_it = finding.code == Code::ApprovalOutdated.as_str();
    is_it && finding.step.as_deref() == Some(step.as_str())
}

fn in_flight(decision: Decision, after: Phase) -> Verdict {
    match decision {
        // The probe of an effect may have decided otherwise than the table.
        Decision::Rerun | Decision::RevertThenRerun | Decision::Ask if after == Phase::Done => {
            Verdict::Adopt
        }
        Decision::Ask if after == Phase::Lost => Verdict::Rerun,
        Decision::Start => Verdict::Run,
        Decision::AdoptSeal | Decision::AdoptProof => Verdict::Adopt,
        Decision::Reattach => Verdict::Reattach,
        Decision::Continue => Verdict::Continue,
        Decision::Rerun | Decision::RevertThenRerun if after == Phase::Running => Verdict::Ask,
        Decision::Rerun | Decision::RevertThenRerun => Verdict::Rerun,
        Decision::Ask | Decision::Refuse => Verdict::Ask,
    }
}

fn because(cause: &str, detail: &str) -> Why {
    Why::because(cause, detail)
}

fn settled_detail(entry: Option<&StepState>) -> String {
    entry.map(|entry| format!("at {}", entry.ended_at)).unwrap_or_default()
}

fn failure(cause: &str, entry: Option<&StepState>) -> Why {
    let failure = entry.and_then(|entry| entry.failure.as_ref());
    match failure {
        Some(failure) => because(cause, &format!("{}: {}", failure.0.as_str(), failure.1)),
        None => because(cause, "its last attempt did not finish"),
    }
}

/// Each need that is not what it was.
fn stale(after: &Run, id: NodeId) -> Vec<Why> {
    let step = &after.graph.node(id).address;
    let key = after.state.step(step).and_then(|entry| entry.key.as_ref());
    let was = key.map(|key| key.get().needs).unwrap_or_default();
    let was = KeyParts { needs: was, ..KeyParts::default() };
    let needs = after.graph.need_digests(id, &after.defs);
    let differences = was.differences(&KeyParts { needs, ..KeyParts::default() });
    differences.iter().map(|it| Why::changed(it, "its output changed")).collect()
}

/// What the resume does first, in one sentence. It follows from the rows: the steps it names are
/// started, continued, waited for or asked about, and it says that none is left only if none is.
pub(super) fn recovery_point(after: &Run, steps: &[PlannedStep], status: Status) -> RecoveryPoint {
    let is_reachable = |step: &&&PlannedStep| {
        let id = after.graph.find(&Address::from_text(&step.step));
        id.is_some_and(|id| after.graph.node(id).is_reachable())
    };
    let active: Vec<&PlannedStep> = steps.iter().filter(|step| acts(step.verdict)).collect();
    let reachable: Vec<&PlannedStep> = active.iter().filter(is_reachable).copied().collect();
    // Behind a result that is taken or a step that is waited for, nothing can be reached yet.
    let entry =
        if reachable.is_empty() { active.get(..1).unwrap_or(&[]).to_vec() } else { reachable };
    let entry: Vec<String> = match status {
        Status::Completed => Vec::new(),
        Status::Fresh
        | Status::Running
        | Status::Interrupted
        | Status::Waiting
        | Status::Parked
        | Status::OverBudget
        | Status::Failed
        | Status::Cancelled => entry.into_iter().map(|step| step.step.clone()).collect(),
    };
    let first = entry.first().map(|step| Address::from_text(step));
    let phase = first.as_ref().map(|step| {
        let top = step.as_str().split('/').next().unwrap_or("");
        top.split('[').next().unwrap_or(top).to_owned()
    });
    let round = first.as_ref().and_then(|step| innermost_turn(after, step));
    let kept = steps.iter().filter(|step| step.verdict == Verdict::Keep).count();
    let (code, summary) = match (status, entry.as_slice()) {
        (Status::Completed, _) => ("complete", "everything is done".to_owned()),
        (_, []) => ("settle", "no step is left to run; only the end is to be written".to_owned()),
        (Status::Fresh, [first, ..]) => ("start", format!("nothing has run yet: begin at {first}")),
        (Status::Waiting, [first, ..]) => {
            ("gate", format!("{kept} steps are kept; {first} waits for a person"))
        }
        (Status::Failed, [first, ..]) => {
            ("failed-steps", format!("{kept} steps are kept; go on at {first}, which failed"))
        }
        (
            Status::Running
            | Status::Interrupted
            | Status::Parked
            | Status::OverBudget
            | Status::Cancelled,
            [first, ..],
        ) => ("continue", format!("{kept} steps are kept; go on at {first}")),
    };
    RecoveryPoint { code: code.to_owned(), phase, round, steps: entry, summary }
}

/// Whether the resume does something about such a step, beyond taking what is there.
fn acts(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Reattach | Verdict::Continue | Verdict::Rerun | Verdict::Run | Verdict::Ask => {
            true
        }
        Verdict::Keep | Verdict::Skip | Verdict::Verify | Verdict::Adopt => false,
    }
}

/// The turn of the nearest loop around `step`.
fn innermost_turn(after: &Run, step: &Address) -> Option<u32> {
    let mut scope = Some(step.clone());
    while let Some(inner) = scope {
        if let Some((group, key)) = inner.group_and_key()
            && after.state.loops.contains_key(&group)
        {
            return key.parse().ok();
        }
        scope = inner.parent();
    }
    None
}
