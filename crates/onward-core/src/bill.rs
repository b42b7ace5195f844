//! The interruption bill: what of a run's time and money was useful, and what interruptions cost.
//!
//! Invariant: every attempt that ended is in exactly one of `useful`, `repeated` and `reverted`,
//! and every cost that was not useful is under exactly one cause.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    address::Address,
    event::{EndStatus, Event, Record},
    evidence::{Cause, Outcome, Usd},
    recovery::Rung,
    said::Spent,
    state::{State, StepState},
    time::Timestamp,
};

/// In the words of `onward status --cost`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bill {
    /// Attempts whose work counts.
    pub useful: Sum,
    /// Attempts whose work was, or must be, done again; nothing of it had to be undone.
    pub repeated: Sum,
    /// The same, and what they left was undone.
    pub reverted: Sum,
    /// Attempts that have not ended, up to the last sign of life.
    pub under_way: Sum,
    /// Time in which no driver held the run, though it was not over.
    pub waiting: Sum,
    /// What was not useful, by what it came from.
    pub by_cause: BTreeMap<String, Sum>,
    /// Each step that spent money or tokens, with all of its attempts.
    #[serde(default)]
    pub steps: BTreeMap<String, Sum>,
    /// What each drive spent: the first is the run as it was started, then one for each resume.
    #[serde(default)]
    pub drives: Vec<Sum>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sum {
    pub attempts: u32,
    pub seconds: f64,
    pub usd: f64,
    /// All that went in, from caches and into them too.
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    /// Some of the tokens have no known price: `usd` lacks them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpriced: bool,
}

/// Adds up as records come.
#[derive(Clone, Debug, Default)]
pub struct Biller {
    open: BTreeMap<Address, Cost>,
    /// The last attempt of each step that is done.
    done: BTreeMap<Address, Cost>,
    /// The last attempt of each step that failed, until it is known whether it was undone.
    failed: BTreeMap<Address, (Cost, &'static str)>,
    repeated: Cost,
    reverted: Cost,
    waiting_ms: u64,
    by_cause: BTreeMap<&'static str, Cost>,
    /// No driver holds it since, and why.
    idle: Option<(Timestamp, &'static str)>,
    /// The moment the last driver was known to live, as its successor found it.
    died_at: Option<Timestamp>,
    over: bool,
    last_at: Timestamp,
    steps: BTreeMap<Address, Cost>,
    /// Of all drives so far; the last is under way.
    drives: Vec<Cost>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    attempts: u32,
    ms: u64,
    usd: Usd,
    tokens_in: u64,
    tokens_out: u64,
    unpriced: bool,
    started_at: Timestamp,
    /// The drive in which it was started.
    drive: usize,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.attempts += other.attempts;
        self.ms += other.ms;
        self.usd = self.usd.plus(other.usd);
        self.tokens_in = self.tokens_in.saturating_add(other.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(other.tokens_out);
        self.unpriced |= other.unpriced;
    }

    fn spend(&mut self, spent: Spent) {
        self.usd = self.usd.plus(spent.usd.unwrap_or_default());
        self.tokens_in = self.tokens_in.saturating_add(spent.tokens_in());
        self.tokens_out = self.tokens_out.saturating_add(spent.output_tokens);
        self.unpriced |= spent.usd.is_none() && (spent.tokens_in() > 0 || spent.output_tokens > 0);
    }

    #[expect(clippy::cast_precision_loss, reason = "exact below some hundred thousand years")]
    fn sum(self) -> Sum {
        Sum {
            attempts: self.attempts,
            seconds: self.ms as f64 / 1e3,
            usd: self.usd.dollars(),
            input_tokens: self.tokens_in,
            output_tokens: self.tokens_out,
            unpriced: self.unpriced,
        }
    }
}

/// A driver that died did not say why it let go.
const KILLED: &str = "killed";
/// Finished work that counted no more.
const STALE: &str = "stale";

impl Biller {
    /// Takes in the next record of the journal.
    pub fn take(&mut self, record: &Record) {
        let at = record.at;
        self.take_event(&record.event, at);
        if !matches!(record.event, Event::Note { .. }) {
            self.last_at = at;
        }
    }

    fn take_event(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::AttemptStarted(started) => {
                self.drive().attempts += 1;
                let mut cost =
                    Cost { started_at: at, drive: self.drives.len() - 1, ..Cost::default() };
                match self.failed.remove(&started.step) {
                    // It goes on where the one before it stopped: that work is not done again.
                    Some((before, _)) if started.continues => cost.add(before),
                    Some((before, cause)) => {
                        self.wasted(before, cause, !started.reverts.is_empty());
                    }
                    None => {}
                }
                cost.attempts += 1;
                self.open.insert(started.step.clone(), cost);
            }
            Event::AttemptSpent { step, spent, .. } => {
                if let Some(cost) = self.open.get_mut(step) {
                    cost.spend(*spent);
                }
                self.steps.entry(step.clone()).or_default().spend(*spent);
                self.drive().spend(*spent);
            }
            Event::AttemptFinished(finished) => {
                let ended = finished.ended.map_or(at, |ended| ended.min(at));
                if let Some(cost) = self.open.get_mut(&finished.step) {
                    cost.started_at = cost.started_at.plus_ms(finished.waited);
                }
                let Some(cost) = self.close(&finished.step, ended) else { return };
                match &finished.outcome {
                    Outcome::Done => {
                        self.done.insert(finished.step.clone(), cost);
                    }
                    Outcome::Failed { cause, .. } => {
                        self.failed.insert(finished.step.clone(), (cost, cause.as_str()));
                    }
                }
            }
            Event::AttemptAdopted(adopted) => {
                let ended = self.died(&adopted.step, at);
                if let Some(cost) = self.close(&adopted.step, ended) {
                    self.done.insert(adopted.step.clone(), cost);
                }
            }
            Event::AttemptLost { step, rung: Rung::NeverSpawned, .. } => self.forget(step),
            Event::AttemptLost { step, cause, reverted, .. } => {
                let ended = self.died(step, at);
                if let Some(cost) = self.close(step, ended) {
                    if reverted.is_empty() {
                        self.failed.insert(step.clone(), (cost, cause.as_str()));
                    } else {
                        self.wasted(cost, cause.as_str(), true);
                    }
                }
            }
            Event::StepInvalidated { step, .. } => {
                if let Some(cost) = self.done.remove(step) {
                    self.wasted(cost, STALE, false);
                }
            }
            Event::RunPaused { cause, .. } => self.idle = Some((at, cause.as_str())),
            Event::RunEnded { status, .. } => {
                self.over = *status == EndStatus::Completed;
                self.idle = Some((at, end_word(*status)));
            }
            Event::RunResumed(resumed) => {
                let last = resumed.last_sign.map_or(self.last_at, |sign| sign.max(self.last_at));
                let (since, cause) = self.idle.take().unwrap_or((last.min(at), KILLED));
                self.wait(at.ms_since(since), cause);
                self.died_at = Some(since);
                let undone = resumed.reverts.iter().filter(|it| !it.keeps_in_place());
                for step in undone.filter_map(|it| it.step.as_ref()) {
                    if let Some((cost, cause)) = self.failed.remove(step) {
                        self.wasted(cost, cause, true);
                    }
                }
                self.drive();
                self.drives.push(Cost::default());
            }
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunArchived { .. }
            | Event::GroupExpanded { .. }
            | Event::LoopTurned { .. }
            | Event::LoopEnded { .. }
            | Event::StepSkipped { .. }
            | Event::AttemptSession { .. }
            | Event::AttemptVerified(_)
            | Event::GateOpened { .. }
            | Event::GateDecided { .. }
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. }
            | Event::Note { .. } => {}
        }
    }

    /// When an attempt ended that a record of `at` gives up or takes: one of an earlier drive died
    /// with its driver at the latest, not when a person came to look.
    fn died(&self, step: &Address, at: Timestamp) -> Timestamp {
        let is_earlier = |it: &&Cost| it.drive + 1 < self.drives.len();
        let died_at = self.open.get(step).filter(is_earlier).and(self.died_at);
        died_at.map_or(at, |died_at| died_at.min(at))
    }

    fn close(&mut self, step: &Address, at: Timestamp) -> Option<Cost> {
        let mut cost = self.open.remove(step)?;
        let ms = at.ms_since(cost.started_at);
        cost.ms += ms;
        if let Some(drive) = self.drives.get_mut(cost.drive) {
            drive.ms += ms;
        }
        let all = self.steps.entry(step.clone()).or_default();
        all.attempts += 1;
        all.ms += ms;
        Some(cost)
    }

    /// The drive that is under way.
    fn drive(&mut self) -> &mut Cost {
        if self.drives.is_empty() {
            self.drives.push(Cost::default());
        }
        let last = self.drives.len() - 1;
        &mut self.drives[last]
    }

    fn wasted(&mut self, cost: Cost, cause: &'static str, undone: bool) {
        let into = if undone { &mut self.reverted } else { &mut self.repeated };
        into.add(cost);
        self.by_cause.entry(cause).or_default().add(cost);
    }

    fn wait(&mut self, ms: u64, cause: &'static str) {
        self.waiting_ms += ms;
        self.by_cause.entry(cause).or_default().ms += ms;
    }

    /// The run was seen at work at this moment, beyond what its journal says.
    pub fn see(&mut self, sign: Timestamp) {
        self.last_at = self.last_at.max(sign);
    }

    /// No driver holds the run, and its journal knows only the start of this attempt: it died after
    /// the last sign of life.
    pub fn lose(&mut self, step: &Address) {
        if let Some(cost) = self.close(step, self.last_at) {
            self.failed.insert(step.clone(), (cost, Cause::Interrupted.as_str()));
        }
    }

    /// It was announced, and never began: it cost nothing. What it would have gone on with stays
    /// given up.
    pub fn forget(&mut self, step: &Address) {
        let Some(mut cost) = self.open.remove(step) else { return };
        if let Some(drive) = self.drives.get_mut(cost.drive) {
            drive.attempts = drive.attempts.saturating_sub(1);
        }
        cost.attempts -= 1;
        if cost.attempts > 0 {
            self.failed.insert(step.clone(), (cost, Cause::Interrupted.as_str()));
        }
    }

    /// The same, and it came to its end: its result is taken.
    pub fn keep(&mut self, step: &Address) {
        if let Some(cost) = self.close(step, self.last_at) {
            self.done.insert(step.clone(), cost);
        }
    }

    /// The bill so far. With `now`, a run that no driver holds has been waiting until then.
    pub fn bill(&self, now: Option<Timestamp>) -> Bill {
        let mut all = self.clone();
        for (cost, cause) in std::mem::take(&mut all.failed).into_values() {
            all.wasted(cost, cause, false);
        }
        if let Some(now) = now.filter(|_| !all.over) {
            let (since, cause) = all.idle.unwrap_or((all.last_at, KILLED));
            all.wait(now.ms_since(since), cause);
        }
        for cost in all.open.values_mut() {
            cost.ms += all.last_at.ms_since(cost.started_at);
        }
        let total = |costs: &BTreeMap<Address, Cost>| {
            let mut total = Cost::default();
            for cost in costs.values() {
                total.add(*cost);
            }
            total.sum()
        };
        let has_spent = |it: &Cost| it.usd.0 > 0 || it.tokens_in > 0 || it.tokens_out > 0;
        let steps = all.steps.iter().filter(|(_, it)| has_spent(it));
        let by_cause = all.by_cause.iter();
        let by_cause = by_cause.map(|(cause, cost)| ((*cause).to_owned(), cost.sum()));
        Bill {
            useful: total(&all.done),
            repeated: all.repeated.sum(),
            reverted: all.reverted.sum(),
            under_way: total(&all.open),
            waiting: Cost { ms: all.waiting_ms, ..Cost::default() }.sum(),
            by_cause: by_cause.collect(),
            steps: steps.map(|(step, it)| (step.to_string(), it.sum())).collect(),
            drives: all.drives.iter().copied().map(Cost::sum).collect(),
        }
    }
}

fn end_word(status: EndStatus) -> &'static str {
    match status {
        EndStatus::Completed => "completed",
        EndStatus::Failed => "failed",
        EndStatus::Cancelled => "cancelled",
    }
}

/// What another attempt at a step would cost, by its own history; `None` where nothing was spent.
/// Attempts that went on in one session were one piece of work.
pub fn again(step: &StepState) -> Option<Usd> {
    let attempts = u64::from(step.attempts.max(1));
    let billed = step.billed.as_deref().copied().unwrap_or_default();
    let before = billed.session_before.usd.filter(|it| it.0 > 0);
    let session = before.map(|it| it.plus(billed.attempt.usd.unwrap_or_default()));
    let each = || Usd(step.spent.0.div_ceil(attempts));
    (step.spent.0 > 0).then(|| session.unwrap_or_else(each))
}

/// What doing everything once more would cost, by the same history.
pub fn restart(state: &State) -> Usd {
    let all = state.steps.noteworthy().filter_map(|(_, entry)| again(entry));
    all.fold(Usd::default(), Usd::plus)
}

#[cfg(test)]
mod tests;
