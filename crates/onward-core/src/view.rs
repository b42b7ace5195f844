//! What watchers see: one run, step by step, in the words of `onward status --json`.
//!
//! Invariant: there is one fold. What is shown while a run is driven ([`Live`]), and what `status`
//! and `list` show of the same records, is computed by the same functions from the same [`Run`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    bill::Bill,
    event::{Event, Record},
    graph::{NodeId, Role},
    plan::{Plan, RunInfo, Verdict},
    run::Run,
    state::Phase,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct View {
    pub schema: String,
    pub run: RunInfo,
    /// The top-level step that is under way.
    pub phase: Option<String>,
    pub counts: Counts,
    pub steps: Vec<StepView>,
    pub gates: Vec<GateView>,
    pub last_completed: Option<LastCompleted>,
    /// What starts next.
    pub next: Vec<String>,
    /// What interruptions have cost, where the caller asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
}

/// Leaf steps known so far; skipped ones, and failed ones that the run goes on without, count as
/// done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub done: u32,
    pub total: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    pub step: String,
    pub state: String,
    pub attempts: u32,
    pub cost_usd: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateView {
    pub step: String,
    pub prompt: String,
    pub options: Vec<String>,
    pub shows: Vec<String>,
    pub hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastCompleted {
    pub step: String,
    pub at: String,
}

/// How many leaf steps are done, of how many known.
pub fn counts(run: &Run) -> Counts {
    let mut counts = Counts::default();
    for id in run.graph.in_order() {
        let node = run.graph.node(id);
        if node.role == Role::Leaf {
            counts.total += 1;
            counts.done += u32::from(is_over(run, id));
        }
    }
    counts
}

/// A run as its records come in, for a counter that is drawn while the run is driven.
#[derive(Clone, Debug)]
pub struct Live {
    run: Run,
}

/// What became of a record that a [`Live`] was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    Yes,
    /// It was part of the run already.
    Known,
    /// The run is another one from here on: its workflow changed, or records are missing. Read it
    /// again from disk.
    Lost,
}

impl Live {
    /// Goes on from here; records that `run` has taken in already are recognised.
    pub fn new(run: Run) -> Self {
        Self { run }
    }

    pub fn take(&mut self, record: Record) -> Followed {
        if record.seq < self.run.state.next_seq {
            return Followed::Known;
        }
        let is_other_workflow = matches!(record.event, Event::WorkflowChanged { .. });
        if is_other_workflow || self.run.after(record).is_err() {
            return Followed::Lost;
        }
        Followed::Yes
    }

    /// As `status` and `list` would count at this moment.
    pub fn counts(&self) -> Counts {
        counts(&self.run)
    }
}

pub fn view(run: &Run, info: RunInfo) -> View {
    let leaves: Vec<NodeId> = run
        .graph
        .in_order()
        .into_iter()
        .filter(|id| run.graph.node(*id).role == Role::Leaf)
        .collect();
    let steps: Vec<StepView> = leaves.iter().map(|id| step_view(run, *id)).collect();
    let next = run.graph.ready_work().chain(run.graph.ready_control());
    let next: Vec<String> = next.map(|id| run.graph.node(id).address.to_string()).collect();
    let phase = leaves.iter().zip(&steps).find(|(id, _)| !is_over(run, **id));
    let done = run.state.steps.iter().filter(|(_, entry)| entry.phase == Phase::Done);
    let last = done.max_by_key(|(_, entry)| entry.ended_at);
    View {
        schema: "onward.status/1".to_owned(),
        phase: phase.map(|(_, step)| {
            let top = step.step.split('/').next().unwrap_or("");
            top.split('[').next().unwrap_or(top).to_owned()
        }),
        counts: counts(run),
        gates: run.graph.open_gates().filter_map(|id| gate_view(run, id)).collect(),
        last_completed: last.map(|(step, entry)| LastCompleted {
            step: step.to_string(),
            at: entry.ended_at.to_string(),
        }),
        next,
        steps,
        run: info,
        bill: None,
    }
}

/// The same for a run that is known by its plan alone, because another system wrote it.
pub fn of_plan(plan: &Plan) -> View {
    let mut counts = Counts::default();
    let mut steps = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let state = match step.verdict {
            Verdict::Keep => "done",
            Verdict::Skip => "skipped",
            Verdict::Verify | Verdict::Rerun => "stale",
            Verdict::Reattach => "running",
            Verdict::Adopt | Verdict::Continue | Verdict::Run | Verdict::Ask => "pending",
        };
        counts.total += 1;
        counts.done += u32::from(matches!(state, "done" | "skipped"));
        let (step, state) = (step.step.clone(), state.to_owned());
        steps.push(StepView { step, state, attempts: 0, cost_usd: None });
    }
    let last = steps.iter().rev().find(|step| step.state == "done");
    let at = plan.run.last_event.at.clone();
    View {
        bill: None,
        schema: "onward.status/1".to_owned(),
        run: plan.run.clone(),
        phase: plan.recovery_point.phase.clone(),
        counts,
        last_completed: last.map(|step| LastCompleted { step: step.step.clone(), at }),
        steps,
        gates: Vec::new(),
        next: plan.recovery_point.steps.clone(),
    }
}

fn step_view(run: &Run, id: NodeId) -> StepView {
    let address = &run.graph.node(id).address;
    let entry = run.state.step(address);
    StepView {
        step: address.to_string(),
        state: state_word(run, id).to_owned(),
        attempts: entry.map_or(0, |entry| entry.attempts),
        cost_usd: entry.filter(|entry| entry.spent.0 > 0).map(|entry| entry.spent.dollars()),
    }
}

/// Nothing is left to do about it: done, skipped, or failed and the run goes on without it.
fn is_over(run: &Run, id: NodeId) -> bool {
    let node = run.graph.node(id);
    let is_tolerated = run.state.phase(&node.address) == Phase::Tolerated && node.is_settled();
    is_tolerated || state_word(run, id) == "done" || is_skipped(run, id)
}

fn state_word(run: &Run, id: NodeId) -> &'static str {
    let node = run.graph.node(id);
    let phase = run.state.phase(&node.address);
    if phase == Phase::Pending && is_skipped(run, id) {
        "skipped"
    } else if phase == Phase::Pending && run.graph.is_blocked(id, &run.state) {
        "blocked"
    } else if matches!(phase, Phase::Done | Phase::Tolerated)
        && !node.is_settled()
        && node.is_reachable()
    {
        "stale"
    } else {
        phase.as_str()
    }
}

/// It, or a group around it, was skipped.
fn is_skipped(run: &Run, id: NodeId) -> bool {
    let mut scope = Some(id);
    while let Some(inner) = scope {
        let node = run.graph.node(inner);
        if run.state.phase(&node.address) == Phase::Skipped {
            return true;
        }
        scope = node.parent;
    }
    false
}

fn gate_view(run: &Run, id: NodeId) -> Option<GateView> {
    let address = &run.graph.node(id).address;
    let gate = run.state.step(address)?.gate.as_ref()?;
    Some(GateView {
        step: address.to_string(),
        prompt: gate.prompt.clone(),
        options: gate.options.clone(),
        shows: gate.shows.clone(),
        hash: gate.hash.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{plan::next_record, state::State, testing::Bench, time::Timestamp};

    const YAML: &str = "steps:
  - { id: a, run: x }
  - { id: s, run: x, when: '{{ false }}' }
  - { id: m, each: [p, q], steps: [{ id: b, run: y }] }
  - { id: g, gate: Go on? }
  - id: l
    repeat: { max: 2, until: '{{ false }}', on_max: continue }
    steps: [{ id: c, run: z }]
";

    fn note(seq_of: &Bench, text: &str) -> Record {
        let event = Event::Note { text: text.into(), step: None };
        next_record(&seq_of.run.state, Timestamp::default(), event)
    }

    #[test]
    fn the_live_counter_is_what_status_counts_after_every_record() {
        let bench = Bench::new(YAML).tell("a! m[p]/b? m[q]/b!");
        let defs = || Arc::clone(&bench.run.defs);
        let mut live = Live::new(Run::new(defs(), State::default()));
        let (mut state, mut seen) = (State::default(), Vec::new());
        for record in &bench.records {
            assert_eq!(live.take(record.clone()), Followed::Yes);
            state.after(record.clone()).unwrap();
            let as_read = Run::new(defs(), state.clone());
            assert_eq!(live.counts(), counts(&as_read), "after {record:?}");
            seen.push((live.counts().done, live.counts().total));
        }
        seen.dedup();
        assert_eq!(seen, [(0, 3), (1, 3), (2, 3), (2, 5), (3, 5)]);
    }

    #[test]
    fn a_record_that_is_known_counts_once_and_a_gap_is_noticed() {
        let bench = Bench::new(YAML).tell("a!");
        let mut live = Live::new(bench.run.clone());
        let before = live.counts();
        for record in bench.records.iter().cloned() {
            assert_eq!(live.take(record), Followed::Known);
        }
        assert_eq!(live.counts(), before);
        let next = note(&bench, "next");
        let later = Record { seq: next.seq + 2, ..next.clone() };
        assert_eq!(live.take(later), Followed::Lost);
        assert_eq!(live.take(next), Followed::Yes);
    }

    #[test]
    fn another_workflow_cannot_be_followed() {
        let bench = Bench::new(YAML).tell("a!");
        let mut live = Live::new(bench.run.clone());
        let hash = crate::digest::Digest::of(b"another");
        let event = Event::WorkflowChanged { hash, edits: Vec::new() };
        let record = Record { event, ..note(&bench, "") };
        assert_eq!(live.take(record), Followed::Lost);
    }
}
