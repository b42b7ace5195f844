//! What came to nothing while no driver lived: whether the workflow tries it again, what is undone
//! before that, and what stands behind it.
//!
//! Invariant: nothing is said to start that stands behind a failure which is not tried again, and
//! what a retry undoes is in the plan before the resume judges the end.

use std::collections::BTreeMap;

use super::{PlannedStep, Resumption, Verdict, Why};
use crate::{
    address::Address,
    decide::used_up,
    event::Revert,
    evidence::{Cause, Reaction},
    finding::{Code, Finding},
    graph::NodeId,
    recovery::Decision,
    run::Run,
    state::{EffectState, Phase, StepState},
    survey::Survey,
};

/// The cause in the row of an attempt that came to nothing.
pub(super) const FAILED: &str = "failed";

/// What the run does not get past: a resume records it, and the run ends.
pub(super) enum Failure<'r> {
    /// The attempt ended while no driver lived, and this is what its cause leads to.
    Step(&'r Address, Reaction),
    /// A loop whose last turn ended then.
    Loop(&'r Address, u32),
}

impl Failure<'_> {
    /// For the headline.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Step(step, Reaction::Park) => {
                format!("{step} met a limit while the engine was down")
            }
            Self::Step(step, _) => format!("{step} failed while the engine was down"),
            Self::Loop(step, turns) => used_up((step, *turns)),
        }
    }

    fn leads_to(&self) -> Option<Reaction> {
        match self {
            Self::Step(_, reaction) => Some(*reaction),
            Self::Loop(..) => None,
        }
    }

    fn step(&self) -> &Address {
        match self {
            Self::Step(step, _) | Self::Loop(step, _) => step,
        }
    }

    fn behind(&self) -> Why {
        let detail = match self {
            Self::Step(step, Reaction::Park) => {
                format!("{step} met a limit, and is tried again when the limit is lifted")
            }
            Self::Step(step, _) => format!("{step} failed, and is not tried again by this resume"),
            Self::Loop(step, turns) => used_up((step, *turns)),
        };
        Why::because("blocked", format!("it waits for {}: {detail}", self.step()))
    }
}

/// What becomes of the run where nothing else is left to do, as the decider concludes.
pub(super) fn then(after: &Run, made: &Resumption) -> &'static str {
    let is = |reaction| move |it: Failure<'_>| it.leads_to() == Some(reaction);
    if failures(after, made).any(is(Reaction::Park)) {
        "the run waits until the limit is lifted"
    } else if failures(after, made).all(is(Reaction::Ask)) {
        "the run waits for you to mend that"
    } else {
        "the run ends as failed"
    }
}

/// All of them, the first one first.
pub(super) fn failures<'r>(
    after: &'r Run,
    made: &'r Resumption,
) -> impl Iterator<Item = Failure<'r>> {
    let steps = made.decided(Decision::AdoptSeal).filter(|step| {
        let id = after.graph.find(step);
        let is_last = id.is_some_and(|id| !is_tried_again(after, id, made));
        after.state.phase(step) == Phase::Failed && is_last
    });
    // One that a finding tells of gets another turn, or the resume is refused.
    let is_told = |step: &Address| {
        let tells = |it: &Finding| {
            it.code == Code::TurnsUsedUp.as_str() && it.step.as_deref() == Some(step.as_str())
        };
        made.findings.iter().any(tells)
    };
    let loops = after.state.used_up().filter(move |(step, _)| !is_told(step));
    let cause = |step: &Address| after.state.step(step)?.failure.as_deref().map(|it| it.0);
    let steps = steps
        .map(move |step| Failure::Step(step, cause(step).map_or(Reaction::Retry, Cause::leads_to)));
    steps.chain(loops.map(|(step, turns)| Failure::Loop(step, turns)))
}

/// It failed, and the workflow gives it another try, which begins at once.
pub(super) fn is_tried_again(after: &Run, id: NodeId, made: &Resumption) -> bool {
    let step = &after.graph.node(id).address;
    let entry = after.state.step(step).filter(|it| it.phase == Phase::Failed);
    // Whether that effect happened is found out first, and what other hands changed is asked about.
    let is_free = entry.is_some_and(|it| it.effect != EffectState::Intended && !is_parked(it));
    is_free && !made.held.contains(step) && after.graph.is_ready(id)
}

/// It met a limit just then: also one of which the reset is over is given a while.
fn is_parked(entry: &StepState) -> bool {
    entry.failure.as_deref().is_some_and(|it| it.0.is_limit())
}

/// Says what follows from such an end for the step itself, and of each row behind it that it does
/// not start.
pub(super) fn tell(after: &Run, made: &Resumption, rows: &mut [PlannedStep]) {
    if made.decided(Decision::AdoptSeal).next().is_none() && after.state.used_up().next().is_none()
    {
        return;
    }
    for row in rows.iter_mut().filter(|row| row.verdict == Verdict::Adopt) {
        let step = Address::from_text(&row.step);
        let (word, then) = match after.state.phase(&step) {
            Phase::Tolerated => ("tolerated", "the workflow continues without it"),
            Phase::Failed if after.state.step(&step).is_some_and(is_parked) => {
                (FAILED, "it is tried again when the limit is lifted")
            }
            Phase::Failed if !made.held.contains(&step) => (FAILED, "it is not tried again"),
            Phase::Pending
            | Phase::Running
            | Phase::Waiting
            | Phase::Done
            | Phase::Failed
            | Phase::Skipped
            | Phase::Lost
            | Phase::Stale => continue,
        };
        let mut why = row.why.to_vec();
        for failed in why.iter_mut().filter(|it| it.cause == FAILED) {
            word.clone_into(&mut failed.cause);
            failed.detail = format!("{}; {then}", failed.detail);
        }
        row.why = why.into();
    }
    block(after, made, rows);
}

fn block(after: &Run, made: &Resumption, rows: &mut [PlannedStep]) {
    let mut blocked: BTreeMap<NodeId, Why> = BTreeMap::new();
    for failure in failures(after, made) {
        let Some(id) = after.graph.find(failure.step()) else { continue };
        for follower in after.graph.followers(id) {
            blocked.entry(follower).or_insert_with(|| failure.behind());
        }
    }
    if blocked.is_empty() {
        return;
    }
    for row in rows {
        let step = Address::from_text(&row.step);
        let why = after.graph.find(&step).and_then(|id| blocked.remove(&id));
        let starts = match row.verdict {
            Verdict::Run | Verdict::Rerun | Verdict::Continue => true,
            Verdict::Verify => row.waits_for_when(),
            Verdict::Keep | Verdict::Adopt | Verdict::Reattach | Verdict::Ask | Verdict::Skip => {
                false
            }
        };
        if let Some(why) = why.filter(|_| starts && !made.rungs.contains_key(&step)) {
            row.verdict = Verdict::Verify;
            row.why = vec![why].into();
        }
    }
}

/// What the driver undoes before it tries a step again that failed then: under which name it is
/// kept is counted behind what the resume itself undoes.
pub(super) fn undone_by_retries(
    (run, after): (&Run, &Run),
    made: &Resumption,
    survey: &Survey,
) -> Vec<Revert> {
    if after.reached_budget().is_some() {
        return Vec::new();
    }
    let of_resume = made.reverts.iter().filter_map(Revert::rescue_number).max();
    let mut number = of_resume.unwrap_or(0).max(survey.rescues).max(run.state.rescues);
    let mut all = Vec::new();
    for step in made.decided(Decision::AdoptSeal) {
        let Some(id) = after.graph.find(step) else { continue };
        let keeps = after.defs.step(after.graph.node(id).def).keep;
        let seen = survey.in_flight.get(step).map_or(&[][..], |it| &it.reverts);
        if keeps || seen.is_empty() || !is_tried_again(after, id, made) {
            continue;
        }
        number += 1;
        all.extend(seen.iter().map(|it| renumbered(it, number)));
    }
    all
}

fn renumbered(revert: &Revert, number: u32) -> Revert {
    let name = revert.rescue.strip_prefix("rescue/").and_then(|it| it.split_once('-'));
    let rescue = name.map(|(_, step)| format!("rescue/{number}-{step}"));
    let rescue = rescue.unwrap_or_else(|| revert.rescue.clone());
    Revert { rescue, ..revert.clone() }
}
