//! The fold: a run's state is a pure function of its journal.
//!
//! Invariant: nothing here reads a clock, a file, an environment variable or a random number, and
//! every map iterates in a fixed order. Two machines that fold the same journal agree to the byte.
//! The fold does not know the workflow: what a fact means for other steps is for the graph to say.

mod fold;
mod gates;
mod kinds;
mod packed;
mod plain;
mod resumed;
mod steps;
mod streak;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    address::Address,
    digest::Digest,
    event::{
        AttemptStarted, EndStatus, Exported, Item, LoopEnd, PauseCause, Revert, RunOpened,
        RunResumed, SourceFile,
    },
    evidence::{Cause, Evidence, FreeTries, Usd},
    finding::Code,
    key::Key,
    recovery::Rung,
    said::{Counting, Spent},
    time::Timestamp,
};

pub use fold::{PERSON, Violation};
pub use plain::{FileKept, Plain};
pub use resumed::AskedSince;
pub use steps::{Glance, Iter as StepsIter, Steps};
pub use streak::Streak;

/// Everything the journal says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// How many records were folded; also the number the next record gets.
    pub next_seq: u64,
    pub epoch: u32,
    pub batch: u64,
    pub last_at: Timestamp,
    /// The last record that says that a driver was there.
    pub driven_at: Timestamp,
    /// Spans in which nothing of the run was at work, one before each resume.
    pub gaps: Vec<Gap>,
    /// Kind of the last record that says something about progress.
    #[serde(skip)]
    pub last_kind: &'static str,
    pub opened: Option<Arc<RunOpened>>,
    pub opened_at: Timestamp,
    pub adopted: Option<Adopted>,
    /// What the files of an adopted run were when we last wrote them.
    pub exported: Vec<Exported>,
    pub workflow_hash: Option<Digest>,
    /// The boot of the machine in which the run was last opened or resumed.
    pub boot_id: String,
    pub status: RunStatus,
    /// The last `run.resumed`, and whether anything came of it: an attempt was started, a gate
    /// opened or another system's files written. Until then its undo and its entry may be half
    /// done.
    pub resumed: Option<Arc<RunResumed>>,
    pub acted_since_resume: bool,
    /// Epoch and batch of a resume whose undo may not be over: its driver writes the next batch
    /// only after the undo, and has written none.
    pub undoing: Option<(u32, u64)>,
    pub resumes: u32,
    pub streak: Streak,
    /// The highest number of a rescue that was announced.
    pub rescues: u32,
    /// What attempts changed that ended while others ran in the same tree, until a resume finds
    /// nothing running: which of them changed a path cannot be told.
    pub shared: BTreeMap<Address, Vec<String>>,
    /// Paths that finished attempts changed without declaring them, and when the last one ended.
    pub touched: BTreeMap<String, Timestamp>,
    /// The same by the step whose last attempt changed them.
    pub footprints: BTreeMap<Address, Vec<String>>,
    pub spent: Usd,
    /// Tokens that went in and came out, over all attempts.
    pub tokens: u64,
    /// Limits that agents met, by the agent program (`use`), or by the empty word for all of them.
    pub limits: BTreeMap<String, Lifted>,
    /// The gate at which a person chose an option that ends the run.
    pub cancelling: Option<Address>,
    /// Gates that were answered, and whose answer the driver has not acted on yet.
    pub unused_answers: BTreeSet<Address>,
    /// Gates that were answered, and on whose answer no step has acted to its end: what steps leave
    /// cannot tell of it yet.
    pub untold_answers: BTreeSet<Address>,
    /// Finished work that counts no more, in order, with the number of the record that says so.
    pub invalidated: Vec<(u64, Address)>,
    /// How many attempts are in flight.
    pub running: u32,
    /// The commit that the project's branch led to when the run last looked.
    pub head: Option<String>,
    /// What people made of outputs, by path, that was kept in a rescue before a step replaces it;
    /// and what a power cut made of them.
    pub kept_by_hand: BTreeMap<String, Digest>,
    /// What starts since the last resume kept of such files, unasked.
    pub kept_at_starts: Vec<Revert>,
    /// In order of first mention.
    #[serde(skip)]
    pub steps: Steps,
    pub groups: BTreeMap<Address, GroupState>,
    pub loops: BTreeMap<Address, LoopState>,
}

/// How long after the last sign of life a change may still be an attempt's own.
pub const AFTERGLOW_MS: u64 = 2_000;

/// What changed in between is no work of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub since: Timestamp,
    pub until: Timestamp,
}

/// Where an adopted run came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    pub dialect: String,
    pub source: String,
    pub files: Vec<SourceFile>,
}

/// What the run as a whole is doing, by its journal alone. Whether a driver is alive is not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunStatus {
    /// No record yet.
    #[default]
    Unopened,
    UnderWay,
    Paused {
        cause: PauseCause,
        until: Option<Timestamp>,
    },
    Ended {
        status: EndStatus,
    },
}

/// A group that was opened by an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupState {
    pub items: Vec<Item>,
    pub needs: BTreeMap<String, Digest>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopState {
    pub turns: u32,
    pub ended: Option<LoopEnd>,
    /// Turns beyond its `max`, one for each time that a person gave it one more.
    pub granted: u32,
}

impl LoopState {
    /// A person accepted that this loop used up its turns, or any: it gets one more.
    fn is_given_a_turn(accepted: &str, step: &Address) -> bool {
        let (code, at) = accepted.split_once('@').unwrap_or((accepted, step.as_str()));
        code == Code::TurnsUsedUp.as_str() && at == step.as_str()
    }
}

/// One step instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepState {
    pub phase: Phase,
    /// Attempts started so far; the last one has this number.
    pub attempts: u32,
    /// Those of them that were announced and never began.
    pub unspawned: u32,
    /// Failed tries that count against `retry.max`: since the first start, invalidation or resume.
    pub failures: u32,
    /// Free tries since then, and how long the next one of them waits; `None` = it is not free.
    pub free_tries: FreeTries,
    pub free_wait_ms: Option<u64>,
    /// How the last failed try failed.
    pub failure: Option<Box<(Cause, String)>>,
    /// Why the last attempt that was given up was.
    pub lost_by: Option<Rung>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// What the last attempt was started with.
    pub started: Option<Box<AttemptStarted>>,
    /// The tree as the last attempt left it, if that one failed.
    pub after: Option<Box<str>>,
    /// The key the evidence holds under. `None` for adopted work: unknown never makes it stale.
    pub key: Option<Key>,
    pub evidence: Evidence,
    /// Outputs that a person changed after it was done, and what they are now.
    pub by_hand: BTreeMap<String, Digest>,
    /// The commit that the project's branch led to when it ended, where it had moved.
    pub head: Option<Box<str>>,
    pub result: Option<Arc<Value>>,
    pub stdout: Option<Arc<str>>,
    pub session: Option<String>,
    /// The machine was restarted while the journal had this attempt running.
    pub outlived_boot: bool,
    /// How it was asked for since the attempt in flight began.
    pub asked_since: Option<AskedSince>,
    /// Another system did it: its files are the witness.
    pub elsewhere: bool,
    pub spent: Usd,
    /// What of the agent's own counters is in the journal already; `None` = nothing.
    pub billed: Option<Box<Billed>>,
    pub gate: Option<Box<GateState>>,
    pub effect: EffectState,
}

/// When a limit is lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lifted {
    At(Timestamp),
    /// The provider did not say; a person who resumes the run says: now.
    Unknown,
}

impl Lifted {
    pub fn moment(self) -> Option<Timestamp> {
        match self {
            Self::At(moment) => Some(moment),
            Self::Unknown => None,
        }
    }

    pub fn holds_at(self, now: Timestamp) -> bool {
        self.moment().is_none_or(|moment| moment > now)
    }
}

/// The part of an agent's running totals that was billed. What an agent reports beyond it is owed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billed {
    /// In this attempt.
    pub attempt: Spent,
    /// In the session that this attempt continues, by the attempts before it.
    pub session_before: Spent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    /// A gate that is open.
    Waiting,
    Done,
    Failed,
    /// Failed, no try was left, and the workflow goes on without it.
    Tolerated,
    Skipped,
    /// Pending again, because an attempt was lost.
    Lost,
    /// Pending again, because finished work was invalidated.
    Stale,
}

impl Phase {
    /// An attempt may start.
    pub fn is_startable(self) -> bool {
        match self {
            Self::Pending | Self::Lost | Self::Stale => true,
            Self::Running
            | Self::Waiting
            | Self::Done
            | Self::Failed
            | Self::Tolerated
            | Self::Skipped => false,
        }
    }

    /// Dependents may go on.
    pub fn is_settled(self) -> bool {
        match self {
            Self::Done | Self::Skipped | Self::Tolerated => true,
            Self::Pending
            | Self::Running
            | Self::Waiting
            | Self::Failed
            | Self::Lost
            | Self::Stale => false,
        }
    }

    /// Its attempts are over: done, or failed and the run goes on without it. What it was made from
    /// is compared with what is there now.
    pub fn is_concluded(self) -> bool {
        match self {
            Self::Done | Self::Tolerated => true,
            Self::Pending
            | Self::Running
            | Self::Waiting
            | Self::Failed
            | Self::Skipped
            | Self::Lost
            | Self::Stale => false,
        }
    }

    /// The word in `status --json` and on the screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed | Self::Tolerated => "failed",
            Self::Skipped => "skipped",
            Self::Lost => "lost",
            Self::Stale => "stale",
        }
    }
}

/// A gate that was opened at least once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateState {
    pub prompt: String,
    pub options: Vec<String>,
    pub shows: Vec<String>,
    /// What is shown, or was when it was decided.
    pub hash: Digest,
    /// A dependent has started on the strength of the answer: it is compared again only when work
    /// before the gate counts no more.
    pub consumed: bool,
    /// The number of the record that opened or decided it.
    pub seq: u64,
}

/// How far a side effect beyond this machine is known to have got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffectState {
    #[default]
    None,
    /// Announced; whether it happened is unknown.
    Intended,
    Happened,
    Absent,
}

impl State {
    pub fn step(&self, address: &Address) -> Option<&StepState> {
        self.steps.get(address)
    }

    /// Holds steps that are done in less memory; the state stays as it is. It walks over all steps.
    pub fn settle(&mut self) {
        self.steps.settle();
    }

    /// What a step left that is done.
    pub fn done(&self, address: &Address) -> Option<Value> {
        let entry = self.step(address).filter(|it| it.phase == Phase::Done)?;
        Some(entry.result.as_deref().cloned().unwrap_or_default())
    }

    pub fn phase(&self, address: &Address) -> Phase {
        self.steps.glance(address).map_or(Phase::Pending, Glance::phase)
    }

    /// What a finished attempt changed without declaring it.
    fn leave(&mut self, step: &Address, footprint: &[String], at: Timestamp) {
        self.touched.extend(footprint.iter().map(|path| (path.clone(), at)));
        if footprint.is_empty() {
            self.footprints.remove(step);
        } else {
            self.footprints.insert(step.clone(), footprint.to_vec());
        }
    }

    /// Loops that took all their turns for nothing, and how many these were.
    pub fn used_up(&self) -> impl Iterator<Item = (&Address, u32)> {
        let ended = |it: &LoopState| it.ended == Some(LoopEnd::Exhausted);
        self.loops.iter().filter(move |(_, it)| ended(it)).map(|(step, it)| (step, it.turns))
    }

    /// Its last attempt met a limit, and goes on when that is lifted.
    pub fn is_parked(&self, address: &Address) -> bool {
        let is_limit = |entry: &StepState| {
            let failure = entry.failure.as_deref().filter(|_| entry.phase == Phase::Failed);
            failure.is_some_and(|(cause, _)| cause.is_limit())
        };
        !self.is_ended() && self.step(address).is_some_and(is_limit)
    }

    /// What the last resume announced to undo and may not have undone yet.
    pub fn pending_reverts(&self) -> &[Revert] {
        match &self.resumed {
            Some(resumed) if self.undoing.is_some() => &resumed.reverts,
            Some(_) | None => &[],
        }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.status, RunStatus::Ended { .. })
    }

    /// Whether there is anything that a resume alone sets going again: a failed step, a loop
    /// without turns, or a gate whose answer ended the run.
    pub(crate) fn has_given_up(&self) -> bool {
        self.cancelling.is_some()
            || self.used_up().next().is_some()
            || self.steps.phases().any(|phase| phase == Phase::Failed)
    }
}

impl State {
    /// The moment for which the whole run waits, because a limit holds until then. An answer that
    /// came since may let something else go on.
    pub fn parked_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self.status {
            RunStatus::Paused { cause: PauseCause::Limit, until } => {
                until.filter(|until| *until > now && self.unused_answers.is_empty())
            }
            RunStatus::Paused { .. }
            | RunStatus::Unopened
            | RunStatus::UnderWay
            | RunStatus::Ended { .. } => None,
        }
    }

    /// The moment at which something can go on that a limit holds back.
    pub fn next_reset(&self, now: Timestamp) -> Option<Timestamp> {
        let moments = self.limits.values().filter_map(|it| it.moment());
        self.parked_until(now).or_else(|| moments.filter(|it| *it > now).min())
    }

    /// The limit that the steps of this agent program wait for.
    pub fn limit_of(&self, agent: &str) -> Option<Lifted> {
        self.limits.get(agent).or_else(|| self.limits.get("")).copied()
    }
}

impl StepState {
    /// How many of its attempts began.
    pub fn begun(&self) -> u32 {
        self.attempts.saturating_sub(self.unspawned)
    }

    pub fn has_begun(&self) -> bool {
        self.begun() > 0
    }

    /// The next attempt goes on in the session of the one that failed, if the session allows it.
    pub fn may_go_on(&self) -> bool {
        let failed = self.phase == Phase::Failed || self.phase == Phase::Pending;
        let cause = self.failure.as_deref().map(|(cause, _)| *cause);
        let keeps = cause.is_some_and(Cause::keeps_session);
        failed && keeps && self.session.is_some() && self.started.is_some()
    }

    fn bill(&mut self, spent: Spent) {
        self.spent = self.spent.plus(spent.usd.unwrap_or_default());
        let billed = self.billed.get_or_insert_default();
        billed.attempt = billed.attempt.plus(spent);
    }

    /// A new attempt has nothing billed, and so has a new session.
    fn open_bill(&mut self, continues: bool) {
        self.billed = self.billed.take().filter(|_| continues).map(|mut billed| {
            billed.session_before = billed.session_before.plus(billed.attempt);
            billed.attempt = Spent::NOTHING;
            billed
        });
    }

    /// What of a running total is not in the journal yet.
    pub fn owed(&self, total: Spent, counting: Counting) -> Spent {
        let billed = self.billed.as_deref().copied().unwrap_or_default();
        total.beyond(match counting {
            Counting::Attempt => billed.attempt,
            Counting::Session => billed.session_before.plus(billed.attempt),
        })
    }

    /// When it read its files.
    pub fn read_at(&self) -> Timestamp {
        // One that is passed over was never started.
        if self.phase == Phase::Skipped { self.ended_at } else { self.started_at }
    }

    /// What dependents compare: the evidence, or, for a step that leaves none, that it ran.
    pub fn evidence_digest(&self, address: &Address) -> Digest {
        if self.phase == Phase::Skipped {
            return Digest::of(b"skipped");
        }
        if self.phase == Phase::Tolerated {
            let cause = self.failure.as_ref().map_or("", |failure| failure.0.as_str());
            return Digest::of_parts([b"failed", cause.as_bytes()]);
        }
        if self.evidence.is_empty() {
            let attempts = self.attempts.to_le_bytes();
            return Digest::of_parts([address.as_str().as_bytes(), attempts.as_slice()]);
        }
        self.evidence.digest()
    }
}
