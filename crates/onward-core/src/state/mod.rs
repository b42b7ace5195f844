//! The fold: a run's state is a pure function of its journal.
//!
//! Invariant: nothing here reads a clock, a file, an environment variable or a random number, and
//! every map iterates in a fixed order. Two machines that fold the same journal agree to the byte.
//! The fold does not know the workflow: what a fact means for other steps is for the graph to say.

mod fold;
mod streak;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use serde_json::Value;

use crate::{
    address::Address,
    digest::Digest,
    event::{
        AttemptStarted, EndStatus, Exported, Item, LoopEnd, PauseCause, Revert, RunOpened,
        RunResumed, SourceFile,
    },
    evidence::{Cause, Evidence, Usd},
    key::Key,
    time::Timestamp,
};

pub use fold::Violation;
pub use streak::Streak;

/// Everything the journal says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// How many records were folded; also the number the next record gets.
    pub next_seq: u64,
    pub epoch: u32,
    pub batch: u64,
    pub last_at: Timestamp,
    /// Kind of the last record that says something about progress.
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
    /// The last `run.resumed`, and whether an attempt has started since: until then its reverts may
    /// be half done.
    pub resumed: Option<Arc<RunResumed>>,
    pub started_since_resume: bool,
    /// Epoch and batch of a resume whose undo may not be over: whoever wrote it has written nothing
    /// since, and would have done so only after it.
    pub undoing: Option<(u32, u64)>,
    pub resumes: u32,
    pub streak: Streak,
    /// The highest number of a rescue that was announced.
    pub rescues: u32,
    /// What attempts changed that ended while others ran in the same tree, until a resume finds
    /// nothing running: whoever changed the same path cannot be told.
    pub shared: BTreeMap<Address, Vec<String>>,
    /// Paths that finished attempts changed without declaring them, and when the last one ended.
    pub touched: BTreeMap<String, Timestamp>,
    pub spent: Usd,
    pub limited_until: Option<Timestamp>,
    /// The gate at which a person chose an option that ends the run.
    pub cancelling: Option<Address>,
    /// Gates that were answered, and whose answer nobody has acted on yet.
    pub unused_answers: BTreeSet<Address>,
    /// How many attempts are in flight.
    pub running: u32,
    /// In order of first mention.
    pub steps: IndexMap<Address, StepState, FixedState>,
    pub groups: BTreeMap<Address, GroupState>,
    pub loops: BTreeMap<Address, LoopState>,
}

/// Where an adopted run came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    pub dialect: String,
    pub source: String,
    pub files: Vec<SourceFile>,
}

/// What the run as a whole is doing, by its journal alone. Whether a driver is alive is not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupState {
    pub items: Vec<Item>,
    pub needs: BTreeMap<String, Digest>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopState {
    pub turns: u32,
    pub ended: Option<LoopEnd>,
}

/// One step instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepState {
    pub phase: Phase,
    /// Attempts started so far; the last one has this number.
    pub attempts: u32,
    /// Failed tries that count against `retry.max`: since the first start, invalidation or resume.
    pub failures: u32,
    /// How the last failed try failed.
    pub failure: Option<Box<(Cause, String)>>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// What the last attempt was started with.
    pub started: Option<Box<AttemptStarted>>,
    /// The tree as the last attempt left it, if that one failed.
    pub after: Option<Box<str>>,
    /// The key the evidence holds under. `None` for adopted work: unknown never makes it stale.
    pub key: Option<Key>,
    pub evidence: Evidence,
    pub result: Option<Arc<Value>>,
    pub stdout: Option<Arc<str>>,
    pub session: Option<String>,
    /// The machine was restarted while the journal had this attempt running.
    pub outlived_boot: bool,
    /// Another system did it: its files are the witness.
    pub elsewhere: bool,
    pub spent: Usd,
    pub gate: Option<Box<GateState>>,
    pub effect: EffectState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    /// A gate that is open.
    Waiting,
    Done,
    Failed,
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
            Self::Running | Self::Waiting | Self::Done | Self::Failed | Self::Skipped => false,
        }
    }

    /// Dependents may go on.
    pub fn is_settled(self) -> bool {
        match self {
            Self::Done | Self::Skipped => true,
            Self::Pending
            | Self::Running
            | Self::Waiting
            | Self::Failed
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
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Lost => "lost",
            Self::Stale => "stale",
        }
    }
}

/// A gate that was opened at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateState {
    pub prompt: String,
    pub options: Vec<String>,
    pub shows: Vec<String>,
    /// What is shown, or was when it was decided.
    pub hash: Digest,
    /// A dependent has started on the strength of the answer: it is never compared again.
    pub consumed: bool,
}

/// How far a side effect beyond this machine is known to have got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

    pub fn phase(&self, address: &Address) -> Phase {
        self.step(address).map_or(Phase::Pending, |step| step.phase)
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
}

impl StepState {
    /// What dependents compare: the evidence, or, for a step that leaves none, that it ran.
    pub fn evidence_digest(&self, address: &Address) -> Digest {
        if self.phase == Phase::Skipped {
            return Digest::of(b"skipped");
        }
        if self.evidence.is_empty() {
            let attempts = self.attempts.to_le_bytes();
            return Digest::of_parts([address.as_str().as_bytes(), attempts.as_slice()]);
        }
        self.evidence.digest()
    }
}
