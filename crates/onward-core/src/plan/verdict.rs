//! Verdict and reason of each step, read off the run as it would be after the resume.

use super::{
    PlannedStep, Resumption, Verdict, Why, Whys,
    outdated::{retaken_for, retaken_if_probed},
    whens::{Whens, whens},
};
use crate::{
    address::Address,
    bill,
    evidence::Usd,
    finding::{Code, Finding},
    graph::{Node, NodeId, Role},
    key::{Difference, KeyParts},
    recovery::{Decision, Row},
    run::Run,
    state::{EffectState, Glance, Phase, StepState},
    time::Timestamp,
    workflow::model::{Items, Many},
};

/// Why a step has its verdict. That it is as it was left is put in words only where it is told.
pub(super) enum Reason {
    Because(Vec<Why>),
    Settled,
    /// The same of a step of which no more is to be told.
    DoneAt(Timestamp),
}

/// The cause of a row that a `when` decides, which is not asked yet.
pub(super) const WHEN: &str = "when";

impl Reason {
    const NONE: Self = Self::Because(Vec::new());

    fn one(why: Why) -> Self {
        Self::Because(vec![why])
    }
}

pub(super) fn planned(
    before: &Run,
    after: &Run,
    id: NodeId,
    resumption: &Resumption,
    (verdict, reason): (Verdict, Reason),
) -> PlannedStep {
    let node = after.graph.node(id);
    let step = &node.address;
    let name = step.as_str().to_owned();
    let more = resumption.reasons.get(step);
    let mut why = match reason {
        Reason::Because(why) => why,
        Reason::DoneAt(moment) if more.is_none() => {
            let why = Whys::done_at(moment);
            return PlannedStep { step: name, verdict, why, cost_usd: None };
        }
        Reason::DoneAt(moment) => Whys::done_at(moment).to_vec(),
        Reason::Settled => {
            let entry = before.state.step(step);
            let word = entry.map_or(Phase::Pending, |entry| entry.phase).as_str();
            vec![Why::because(word, settled_detail(entry))]
        }
    };
    why.extend(more.into_iter().flatten().cloned());
    if why.is_empty() {
        why.push(because("pending", "not started"));
    }
    let entry = before.state.step(step);
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
    PlannedStep { step: name, verdict, why: why.into(), cost_usd }
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

pub(super) fn judge(before: &Run, after: &Run, id: NodeId, made: &Resumption) -> (Verdict, Reason) {
    let (verdict, reason) = judged(before, after, id, made);
    let starts = match verdict {
        Verdict::Run | Verdict::Rerun | Verdict::Continue => true,
        Verdict::Keep
        | Verdict::Verify
        | Verdict::Adopt
        | Verdict::Reattach
        | Verdict::Ask
        | Verdict::Skip => false,
    };
    // What another system's files prove may settle it, whatever is before it.
    let is_ours = after.state.adopted.is_none();
    let whens = if starts && is_ours { whens(after, id) } else { Whens::Hold };
    let open = match whens {
        Whens::Fail => {
            let why = because(WHEN, "its `when` does not hold, whatever comes before it");
            return (Verdict::Skip, Reason::one(why));
        }
        Whens::Open => because(WHEN, "runs if its `when` holds after the steps before it"),
        Whens::Hold if starts && is_listed_later(after, id) => {
            because("upstream", "runs if the list has it when the steps before it are done")
        }
        Whens::Hold => return (verdict, reason),
    };
    let mut why = match reason {
        Reason::Because(why) => why,
        Reason::Settled | Reason::DoneAt(_) => Vec::new(),
    };
    why.push(open);
    (Verdict::Verify, Reason::Because(why))
}

/// An item whose list is read again when steps before it are done: it may be no more by then.
fn is_listed_later(after: &Run, id: NodeId) -> bool {
    let mut scope = Some(id);
    while let Some(inner) = scope {
        let node = after.graph.node(inner);
        let is_read = || match &after.defs.step(node.def).many {
            Many::Each(each) => matches!(each.items, Items::Expression(_)),
            Many::Once | Many::Repeat(_) => false,
        };
        if node.role == Role::Each && inner != id && !node.is_reachable() && is_read() {
            return true;
        }
        scope = node.parent;
    }
    false
}

fn judged(before: &Run, after: &Run, id: NodeId, made: &Resumption) -> (Verdict, Reason) {
    let node = after.graph.node(id);
    let step = &node.address;
    if let Some(kept) = plainly_kept(before, after, node) {
        return (Verdict::Keep, kept);
    }
    let (entry, now) = (before.state.step(step), after.state.step(step));
    let [was, is] = [entry, now].map(|it| it.map_or(Phase::Pending, |it| it.phase));
    let is_told = is == Phase::Done && now.is_some_and(|it| it.elsewhere);
    if is_told && !was.is_settled() {
        let why = because("done", "done by the other system since");
        return (Verdict::Keep, Reason::one(why));
    }
    if was != Phase::Skipped && is == Phase::Skipped {
        return (Verdict::Skip, Reason::NONE);
    }
    if let Some(row) = made.rungs.get(step) {
        let (verdict, why) = of_attempt(after, id, row, made);
        return (verdict, Reason::Because(why));
    }
    let (verdict, why) = match was {
        Phase::Done | Phase::Tolerated | Phase::Skipped if is == Phase::Stale => {
            let is_gate = after.defs.brief(node.def).is_gate();
            let verdict = if made.passed_over.contains(step) {
                Verdict::Skip
            } else if is_gate {
                Verdict::Ask
            } else {
                again(entry)
            };
            let was_answered = is_gate && entry.is_some_and(|entry| entry.gate.is_some());
            let why = if was_answered {
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
            (Verdict::Ask, vec![because("gate", "what it showed has changed since the answer")])
        }
        Phase::Done | Phase::Skipped if node.is_settled() => {
            let verdict = if was == Phase::Done { Verdict::Keep } else { Verdict::Skip };
            return (verdict, Reason::Settled);
        }
        // It ran, and stays as it is: the workflow goes on without it.
        Phase::Tolerated if node.is_settled() => (Verdict::Keep, vec![failure("failed", entry)]),
        // A person keeps it, whatever the steps before it come out as.
        Phase::Done | Phase::Skipped | Phase::Tolerated if made.kept.contains(step) => {
            return (Verdict::Keep, Reason::Settled);
        }
        Phase::Done | Phase::Skipped | Phase::Tolerated if node.is_reachable() => {
            let is_gate = after.defs.brief(node.def).is_gate();
            let why = match node.role {
                Role::Leaf => stale(after, id),
                // It was a step by itself before the workflow was edited.
                Role::Root | Role::Group | Role::Each | Role::Loop | Role::Item | Role::Turn => {
                    let (was, is) = ("one step".to_owned(), "items or turns".to_owned());
                    let (was, is) = (Some(was), Some(is));
                    let kind = Difference { part: "kind".to_owned(), was, is };
                    vec![Why::changed(&kind, "was one step, is items or turns")]
                }
            };
            (if is_gate { Verdict::Ask } else { again(entry) }, why)
        }
        Phase::Done | Phase::Skipped | Phase::Tolerated => (
            Verdict::Verify,
            vec![because("upstream", "kept if the steps before it give the same output")],
        ),
        Phase::Waiting => (Verdict::Ask, vec![because("gate", "waits for your answer")]),
        Phase::Failed if made.to_probe.contains(step) => (Verdict::Verify, Vec::new()),
        // Whether its effect happened is not known, and no person said that it may be tried again.
        Phase::Failed if now.is_some_and(|it| it.effect == EffectState::Intended) => {
            (Verdict::Ask, Vec::new())
        }
        Phase::Failed if is == Phase::Done => (Verdict::Adopt, Vec::new()),
        Phase::Failed if made.continuing.contains(step) => {
            (Verdict::Continue, vec![failure("failed", entry)])
        }
        Phase::Failed => (Verdict::Rerun, vec![failure("failed", entry)]),
        Phase::Lost if made.continuing.contains(step) => {
            (Verdict::Continue, vec![failure("lost", entry)])
        }
        // It was announced while no slot was free.
        Phase::Lost if entry.is_some_and(|it| !it.has_begun()) => (Verdict::Run, Vec::new()),
        Phase::Lost => (Verdict::Rerun, vec![failure("lost", entry)]),
        Phase::Stale => (again(entry), vec![because("stale", "out of date since the last resume")]),
        // The fold remembers a pending step only because it failed before the last resume.
        Phase::Pending if entry.is_some() => (Verdict::Rerun, vec![failure("failed", entry)]),
        // A list without items that was opened before.
        Phase::Pending if before.state.groups.contains_key(step) => (
            Verdict::Verify,
            vec![because("upstream", "kept if the steps before it give the same output")],
        ),
        Phase::Pending | Phase::Running => to_come(after, id, made),
    };
    (verdict, Reason::Because(why))
}

/// A step that has not begun.
fn to_come(after: &Run, id: NodeId, made: &Resumption) -> (Verdict, Vec<Why>) {
    // A step that it needs failed while the engine was down, and has no try left.
    if ended_meanwhile(after, made).is_some() && after.graph.is_blocked(id, &after.state) {
        let detail = "a step that it needs failed, and is not tried again by this resume";
        return (Verdict::Verify, vec![because("blocked", detail)]);
    }
    let Some(turning) = used_up_before(after, id, made) else { return (Verdict::Run, Vec::new()) };
    let detail = format!("runs if {turning} is through after its turn");
    (Verdict::Verify, vec![because("upstream", &detail)])
}

/// A loop that a step waits for, that used up its turns and gets one more.
fn used_up_before<'m>(after: &Run, id: NodeId, made: &'m Resumption) -> Option<&'m str> {
    let is_used_up = |it: &&Finding| it.code == Code::TurnsUsedUp.as_str();
    let mut used_up = made.findings.iter().filter(is_used_up).filter_map(|it| it.step.as_deref());
    used_up.find(|step| {
        let turning = after.graph.find(&Address::from_text(step));
        turning.is_some_and(|turning| after.graph.comes_after(id, turning))
    })
}

/// A step that was passed over until now has never run.
fn again(entry: Option<&StepState>) -> Verdict {
    if entry.is_some_and(|it| it.attempts > 0) { Verdict::Rerun } else { Verdict::Run }
}

/// A step that was done and of which no more is to be told, before and after: nearly all steps of a
/// large run. None of them is in flight, a gate or another system's.
fn plainly_kept(before: &Run, after: &Run, node: &Node) -> Option<Reason> {
    let (was, is) = (&before.state.steps, &after.state.steps);
    let Glance::Plain(plain) = was.glance(&node.address)? else { return None };
    let is_plain = || matches!(is.glance(&node.address), Some(Glance::Plain(_)));
    let stays = node.is_settled() && (was.are_shared_with(is) || is_plain());
    stays.then(|| Reason::DoneAt(plain.ended_at()))
}

/// What becomes of an attempt in flight.
fn of_attempt(after: &Run, id: NodeId, row: &Row, made: &Resumption) -> (Verdict, Vec<Why>) {
    let node = after.graph.node(id);
    let step = &node.address;
    if made.to_probe.contains(step) {
        return (Verdict::Verify, retaken_if_probed(after, id));
    }
    if made.to_check.contains(step) {
        return (Verdict::Verify, Vec::new());
    }
    if made.superseded.contains(step) {
        // A person says first which version of its files counts.
        let is_open = after.state.phase(step) == Phase::Running;
        return (if is_open { Verdict::Ask } else { Verdict::Rerun }, Vec::new());
    }
    if made.retaken.contains_key(step) && after.state.phase(step) != Phase::Failed {
        return (Verdict::Rerun, Vec::new());
    }
    // An effect whose end is not known is settled first, whatever became of the session.
    let gives_up = row.decision == Decision::Continue && !made.continuing.contains(step);
    let decision = if gives_up { Decision::Rerun } else { row.decision };
    if decision == Decision::AdoptSeal && is_tried_again(after, id) {
        return (Verdict::Rerun, Vec::new());
    }
    let verdict = in_flight(decision, after.state.phase(step));
    let takes = matches!(verdict, Verdict::Adopt | Verdict::Reattach);
    // What it stands on runs again: whether its result counts is not known before that.
    if takes && !node.is_reachable() {
        let detail = "it is taken, and kept if what it needs comes out the same";
        return (Verdict::Verify, vec![because("upstream", detail)]);
    }
    if takes && after.state.phase(step) != Phase::Failed {
        let whys = retaken_for(after, id);
        return (if whys.is_empty() { verdict } else { Verdict::Rerun }, whys);
    }
    (verdict, Vec::new())
}

/// The first attempt that failed while the engine was down and is not tried again: the resume
/// records that, and the run ends.
pub(super) fn ended_meanwhile<'m>(after: &Run, made: &'m Resumption) -> Option<&'m Address> {
    made.decided(Decision::AdoptSeal).find(|step| {
        let id = after.graph.find(step);
        after.state.phase(step) == Phase::Failed && id.is_some_and(|id| !is_tried_again(after, id))
    })
}

/// It failed, and the workflow gives it another try.
fn is_tried_again(after: &Run, id: NodeId) -> bool {
    let is_failed = after.state.phase(&after.graph.node(id).address) == Phase::Failed;
    is_failed && after.graph.ready_work().any(|ready| ready == id)
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

pub(super) fn because(cause: &str, detail: &str) -> Why {
    Why::because(cause, detail)
}

fn settled_detail(entry: Option<&StepState>) -> String {
    let detail = |entry: &StepState| {
        if entry.elsewhere {
            // When the other system did it is not when we learned of it.
            "done by the other system".to_owned()
        } else {
            let moment = entry.ended_at.text();
            ["at ", std::str::from_utf8(&moment).unwrap_or_default()].concat()
        }
    };
    entry.map(detail).unwrap_or_default()
}

fn failure(cause: &str, entry: Option<&StepState>) -> Why {
    let failure = entry.and_then(|entry| entry.failure.as_ref());
    match failure {
        Some(failure) => because(cause, &format!("{}: {}", failure.0.in_words(), failure.1)),
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
    if differences.is_empty() {
        return vec![because("writes", "a step before it runs again, and writes its files first")];
    }
    differences.iter().map(|it| Why::changed(it, "its output changed")).collect()
}
