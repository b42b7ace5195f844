//! What watchers see: one run, step by step, in the words of `onward status --json`.
//!
//! Invariant: there is one fold. What is shown while a run is driven ([`Live`]), and what `status`
//! and `list` show of the same records, is computed by the same functions from the same [`Run`].

mod more;
mod planned;
mod tally;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    address::Address,
    bill::Bill,
    event::{Event, Record},
    evidence::Cause,
    graph::{NodeId, Role},
    plan::{Plan, RunInfo, Verdict, needs_a_person},
    run::Run,
    state::{Phase, State},
    time::Timestamp,
    told::LastDone,
};

pub use more::has_more;
pub use planned::as_planned;
pub use tally::{Tally, is_stopped};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct View {
    pub schema: String,
    pub run: RunInfo,
    /// The top-level step that is under way.
    pub phase: Option<String>,
    pub counts: Counts,
    pub steps: Vec<StepView>,
    pub gates: Vec<GateView>,
    /// What a person must do besides, each thing in one line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    pub last_completed: Option<LastCompleted>,
    /// What starts next.
    pub next: Vec<String>,
    /// Lines of the journal that cannot be read: nothing goes on before it is repaired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
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
    /// Lists or loops have others to open. For people: scripts read the two numbers.
    #[serde(skip)]
    pub more: bool,
}

impl Counts {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (done, total) = (self.done + other.done, self.total + other.total);
        Self { done, total, more: self.more || other.more }
    }
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
        counts = counts.plus(counts_of(run, id));
    }
    counts
}

/// What one node adds to that, without the nodes below it.
pub fn counts_of(run: &Run, id: NodeId) -> Counts {
    if run.plainly_done(id).is_some() {
        return Counts { done: 1, total: 1, more: false };
    }
    if is_shown(run, id) {
        Counts { done: u32::from(is_over(run, id)), total: 1, more: false }
    } else {
        Counts { more: more::opens_more(run, id), ..Counts::default() }
    }
}

/// A step, or a fan-out or loop that failed before it had any.
fn is_shown(run: &Run, id: NodeId) -> bool {
    let node = run.graph.node(id);
    let has_failed = || run.state.phase(&node.address) == Phase::Failed;
    node.role == Role::Leaf || node.children.is_empty() && has_failed()
}

/// A run as its records come in, for a counter that is drawn while the run is driven.
#[derive(Clone, Debug)]
pub struct Live {
    run: Run,
}

/// A step that failed and is tried again later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retrying {
    pub step: Address,
    /// Which retry comes, of at most `max`; 0 = one that takes none of them.
    pub number: u32,
    pub max: u32,
    pub at: Timestamp,
}

/// A step that waits until a limit is lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    pub step: Address,
    pub cause: Cause,
    /// When it is lifted, where the provider says so.
    pub until: Option<Timestamp>,
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

    pub fn run(&self) -> &Run {
        &self.run
    }

    /// As `status` and `list` would count at this moment.
    pub fn counts(&self) -> Counts {
        counts(&self.run)
    }

    /// Steps that failed and wait for their next try.
    pub fn retries(&self, now: Timestamp) -> Vec<Retrying> {
        let ready = self.run.graph.ready_work();
        ready.filter_map(|id| self.retry_of(id)).filter(|it| it.at > now).collect()
    }

    /// The next try at a step that failed, if there is one.
    pub fn retry(&self, step: &Address) -> Option<Retrying> {
        let id = self.run.graph.find(step).filter(|id| self.run.graph.is_ready(*id))?;
        self.retry_of(id).filter(|_| !self.run.state.is_parked(step))
    }

    fn retry_of(&self, id: NodeId) -> Option<Retrying> {
        let (at, node) = (self.run.retry_at(id)?, self.run.graph.node(id));
        let entry = self.run.state.step(&node.address)?;
        let is_free = entry.free_wait_ms.is_some();
        let number = if is_free { 0 } else { entry.failures };
        let max = self.run.defs.step(node.def).retry.max;
        Some(Retrying { step: node.address.clone(), number, max, at })
    }

    /// Steps that met a limit, and wait until it is lifted.
    pub fn parked(&self) -> Vec<Parked> {
        let Run { graph, state, .. } = &self.run;
        let waits = graph.ready_work().filter_map(|id| {
            let step = &graph.node(id).address;
            let (cause, _) =
                state.step(step)?.failure.as_deref().filter(|_| state.is_parked(step))?;
            Some(Parked { step: step.clone(), cause: *cause, until: self.lifted_at(step) })
        });
        waits.collect()
    }

    /// When the limit of a step's agent is lifted, where the provider says so.
    pub fn lifted_at(&self, step: &Address) -> Option<Timestamp> {
        let worker = self.run.worker(self.run.graph.find(step)?)?;
        self.run.state.limit_of(worker.program)?.moment()
    }

    /// How much longer it takes, by what each step took in an earlier run of the workflow, of which
    /// this was the fold. What runs has worked at its share since it began.
    pub fn left_ms(&self, before: &State, now: Timestamp) -> Option<u64> {
        let whole_ms = before.last_at.ms_since(before.opened_at);
        let (mut all, mut open, mut longest) = (0_u64, 0_u64, 0_u64);
        // A skipped step and a gate end without a start: they take no working time.
        let worked = before.steps.iter().filter(|(_, entry)| entry.attempts > 0);
        for (step, entry) in worked {
            let ms = entry.ended_at.ms_since(entry.started_at);
            all += ms;
            let is_over = self.run.graph.find(step).is_some_and(|id| is_over(&self.run, id));
            let own = self.run.state.step(step).filter(|it| it.phase == Phase::Running);
            let worked_ms = own.map_or(0, |it| now.ms_since(it.started_at));
            let left = if is_over { 0 } else { ms.saturating_sub(worked_ms) };
            (open, longest) = (open + left, longest.max(left));
        }
        // Parallel steps take less than their sum: the same share of it as then, but no less than
        // the longest of them.
        let left = u128::from(whole_ms) * u128::from(open);
        let left = left.checked_div(u128::from(all)).and_then(|it| u64::try_from(it).ok());
        left.map(|it| it.max(longest))
    }
}

pub fn view(run: &Run, info: RunInfo) -> View {
    let leaves: Vec<NodeId> =
        run.graph.in_order().into_iter().filter(|id| is_shown(run, *id)).collect();
    let steps: Vec<StepView> = leaves.iter().map(|id| step_view(run, *id)).collect();
    // An answer that ends the run, or its end, leaves nothing to come.
    let ends = run.state.cancelling.is_some() || run.state.is_ended();
    let next = run.graph.ready_work().chain(run.graph.ready_control()).filter(|_| !ends);
    let gates = run.graph.open_gates().filter(|_| !ends);
    let next: Vec<String> = next.map(|id| run.graph.node(id).address.to_string()).collect();
    let phase = leaves.iter().zip(&steps).find(|(id, _)| !is_over(run, **id));
    let done = run.state.steps.iter().filter(|(_, entry)| entry.phase == Phase::Done);
    let last = done.max_by_key(|(_, entry)| entry.ended_at);
    View {
        schema: "onward.status/1".to_owned(),
        phase: phase.map(|(_, step)| top(&step.step).to_owned()),
        counts: counts(run),
        gates: gates.filter_map(|id| gate_view(run, id)).collect(),
        needs: needs_a_person(&run.state),
        last_completed: last.map(|(step, entry)| LastCompleted {
            step: step.to_string(),
            at: entry.ended_at.to_string(),
        }),
        next,
        steps,
        run: info,
        bill: None,
        damage: Vec::new(),
    }
}

/// The same for a run that is known by its plan alone, because another system wrote it.
pub fn of_plan(plan: &Plan) -> View {
    let mut counts = Counts { more: plan.more, ..Counts::default() };
    let mut steps = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let state = match step.verdict {
            // Shown by the files, whether or not a line of them records it.
            Verdict::Keep | Verdict::Adopt => "done",
            Verdict::Skip => "skipped",
            Verdict::Verify | Verdict::Rerun => "stale",
            Verdict::Reattach => "running",
            Verdict::Continue | Verdict::Run | Verdict::Ask => "pending",
        };
        counts.total += 1;
        counts.done += u32::from(matches!(state, "done" | "skipped"));
        let (step, state) = (step.step.clone(), state.to_owned());
        steps.push(StepView { step, state, attempts: 0, cost_usd: None });
    }
    let last = steps.iter().rev().find(|step| step.state == "done");
    let at = plan.run.last_event.at.clone();
    let last = last.map(|step| LastCompleted { step: step.step.clone(), at });
    View {
        bill: None,
        damage: Vec::new(),
        schema: "onward.status/1".to_owned(),
        run: plan.run.clone(),
        phase: plan.recovery_point.phase.clone(),
        counts,
        last_completed: last_told(plan, last, None),
        steps,
        gates: Vec::new(),
        needs: Vec::new(),
        next: plan.recovery_point.steps.clone(),
    }
}

/// What the plan's report calls the last completed, where it does; else `by_rows`. `own` is what
/// our own run did last, and not another system.
fn last_told(
    plan: &Plan,
    by_rows: Option<LastCompleted>,
    own: Option<(&Address, Timestamp)>,
) -> Option<LastCompleted> {
    let completed = |step: &Address, at: Timestamp| LastCompleted {
        step: step.to_string(),
        at: at.to_string(),
    };
    match &plan.last_done {
        LastDone::ByRows => by_rows,
        LastDone::Nothing => None,
        LastDone::Row(row, at) => {
            let at = at.map_or_else(|| plan.run.last_event.at.clone(), |at| at.to_string());
            Some(LastCompleted { step: row.to_string(), at })
        }
        LastDone::Latest(row, at) => match own.filter(|(_, ended)| ended > at) {
            Some((step, ended)) => Some(completed(step, ended)),
            None => Some(completed(row, *at)),
        },
    }
}

/// The top-level step that an instance stands in.
fn top(step: &str) -> &str {
    let top = step.split('/').next().unwrap_or("");
    top.split('[').next().unwrap_or(top)
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
pub fn is_over(run: &Run, id: NodeId) -> bool {
    let node = run.graph.node(id);
    // Looked up once: this is asked of every step of a large run.
    let phase = run.state.phase(&node.address);
    let is_tolerated = phase == Phase::Tolerated && node.is_settled();
    is_tolerated || word_of(run, id, phase) == "done" || is_skipped(run, id)
}

/// How a step stands, as `status --json` spells it.
pub fn state_word(run: &Run, id: NodeId) -> &'static str {
    word_of(run, id, run.state.phase(&run.graph.node(id).address))
}

fn word_of(run: &Run, id: NodeId, phase: Phase) -> &'static str {
    let node = run.graph.node(id);
    if phase == Phase::Pending && is_skipped(run, id) {
        "skipped"
    } else if phase == Phase::Pending && run.graph.is_blocked(id, &run.state) {
        "blocked"
    } else if matches!(phase, Phase::Done | Phase::Tolerated)
        && !node.is_settled()
        && node.is_reachable()
    {
        "stale"
    } else if phase == Phase::Failed && run.state.is_parked(&node.address) {
        "parked"
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
    use crate::{plan::next_record, testing::Bench};

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

    /// The counts after each of these tellings.
    fn told(yaml: &str, tellings: &[&str]) -> Vec<(u32, u32, bool)> {
        let all = tellings.iter().map(|told| counts(&Bench::new(yaml).tell(told).run));
        all.map(|it| (it.done, it.total, it.more)).collect()
    }

    #[test]
    fn what_a_list_or_a_loop_will_open_is_told_as_more() {
        let list = "steps:
  - { id: a, run: x }
  - { id: m, each: [p, q], run: y }
";
        assert_eq!(told(list, &["", "a!"]), [(0, 1, true), (1, 3, false)]);
        assert_eq!(told("steps: [{ id: m, each: [], run: y }]", &[""]), [(0, 0, false)]);
        let until = "steps:
  - { id: l, repeat: { max: 2, until: '{{ false }}', on_max: continue }, run: z }
";
        let all = ["", "l[1]!", "l[1]! l[2]!"];
        // In the first turn there may be a second; in the second there is no third.
        assert_eq!(told(until, &all), [(0, 1, true), (1, 2, false), (2, 2, false)]);
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

    #[test]
    fn a_failed_try_waits_visibly_for_the_next() {
        let yaml = "steps: [{ id: a, run: x, retry: { max: 2, backoff: 10s, on: [failed] } }]";
        let bench = Bench::new(yaml).tell("a?");
        let live = Live::new(bench.run.clone());
        let ended = bench.run.state.step(&Address::from_text("a")).unwrap().ended_at;
        let waits = live.retries(ended);
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert_eq!((waits[0].number, waits[0].max), (1, 2));
        assert_eq!(waits[0].at.ms_since(ended), 10_000);
        assert_eq!(live.retries(ended.plus_ms(10_000)), []);
    }

    #[test]
    fn the_time_left_is_the_share_of_the_work_that_is_open() {
        let mut before = Bench::new(YAML).tell("a! m[p]/b! m[q]/b!").run.state;
        let start = before.opened_at;
        for (at, name) in ["a", "m[p]/b", "m[q]/b"].into_iter().enumerate() {
            let entry = before.steps.get_mut(&Address::from_text(name)).unwrap();
            entry.started_at = start.plus_ms(1_000 * at as u64);
            entry.ended_at = start.plus_ms(1_000 * (at as u64 + 1));
        }
        before.last_at = start.plus_ms(3_000);
        let left = |told: &str| Live::new(Bench::new(YAML).tell(told).run).left_ms(&before, start);
        assert_eq!([left(""), left("a!")], [Some(3_000), Some(2_000)]);
        assert_eq!(left("a! m[p]/b! m[q]/b!"), Some(0));
        // One long step at the end takes as long, however much ran beside each other before it.
        let long = before.steps.get_mut(&Address::from_text("m[q]/b")).unwrap();
        long.ended_at = long.started_at.plus_ms(1_500);
        let last = Live::new(Bench::new(YAML).tell("a! m[p]/b!").run).left_ms(&before, start);
        assert_eq!(last, Some(1_500));
        let long = before.steps.get_mut(&Address::from_text("m[q]/b")).unwrap();
        long.ended_at = long.started_at.plus_ms(1_000);
        let bench = Bench::new(YAML).tell("");
        let began = bench.run.state.step(&Address::from_text("a")).unwrap().started_at;
        let live = Live::new(bench.run);
        let later = |ms| live.left_ms(&before, began.plus_ms(ms));
        assert_eq!([later(0), later(400), later(9_000)], [Some(3_000), Some(2_600), Some(2_000)]);
    }
}
