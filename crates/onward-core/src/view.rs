//! What watchers see: one run, step by step, in the words of `onward status --json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    bill::Bill,
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
    /// What interruptions have cost, when somebody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
}

/// Leaf steps known so far; skipped ones count as done.
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
            counts.done += u32::from(state_word(run, id) == "done" || is_skipped(run, id));
        }
    }
    counts
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
    let phase = steps.iter().find(|step| !matches!(&*step.state, "done" | "skipped"));
    let done = run.state.steps.iter().filter(|(_, entry)| entry.phase == Phase::Done);
    let last = done.max_by_key(|(_, entry)| entry.ended_at);
    View {
        schema: "onward.status/1".to_owned(),
        phase: phase.map(|step| {
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

fn state_word(run: &Run, id: NodeId) -> &'static str {
    let node = run.graph.node(id);
    let phase = run.state.phase(&node.address);
    if phase == Phase::Pending && is_skipped(run, id) {
        "skipped"
    } else if phase == Phase::Pending && run.graph.is_blocked(id, &run.state) {
        "blocked"
    } else if phase == Phase::Done && !node.is_settled() && node.is_reachable() {
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
