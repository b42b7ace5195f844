//! The vocabulary of the journal.
//!
//! Everything durable about a run is a list of [`Event`]s. Past tense only: an event says what
//! *did* happen or was decided. A wish is a command of the decider, and wishes are never stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    address::Address,
    digest::Digest,
    evidence::{Cause, Ending, Evidence, Outcome, Usd},
    id::RunId,
    kept::Kept,
    key::{Difference, Key, KeyParts},
    mark::Nonce,
    recovery::Rung,
    said::Spent,
    time::Timestamp,
};

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Counted from 0 without a gap.
    pub seq: u64,
    pub at: Timestamp,
    /// Goes up each time a driver opens the journal; never down.
    pub epoch: u32,
    /// Records of one batch became durable with one sync.
    pub batch: u64,
    pub event: Event,
}

/// One fact about a run. Each variant says when it is written and when it is legal; the fold
/// refuses it everywhere else.
///
/// Changing a variant changes the disk format: raise [`FORMAT`](crate::journal::FORMAT) when an old
/// reader would be misled, and add a line to `docs/journal.md` in the same commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Event {
    /// The run exists. Always record 0, never again.
    #[serde(rename = "run.opened")]
    RunOpened(Box<RunOpened>),
    /// The run was found in another system's files. Legal once, before any attempt of ours.
    #[serde(rename = "run.adopted")]
    RunAdopted { dialect: String, source: String, files: Vec<SourceFile> },
    /// A driver goes on with the run. Written before any work, and before anything is undone.
    /// Legal whenever the run has not completed; puts failed steps back to pending.
    #[serde(rename = "run.resumed")]
    RunResumed(Box<RunResumed>),
    /// The driver lets go in good order. Legal while the run is under way.
    #[serde(rename = "run.paused")]
    RunPaused {
        cause: PauseCause,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// Nothing is left to do, or to be done. Legal while the run is under way and no attempt runs;
    /// after it only `run.resumed` (not when completed) and `run.archived` may follow.
    #[serde(rename = "run.ended")]
    RunEnded {
        status: EndStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The run's directory is about to be moved. Legal while no attempt runs.
    #[serde(rename = "run.archived")]
    RunArchived { to: String },

    /// A group was opened: its `when` held, and the items of its `each` are these. Legal while no
    /// attempt of a vanished item runs; written again when the source step gave other items.
    #[serde(rename = "group.expanded")]
    GroupExpanded {
        step: Address,
        items: Vec<Item>,
        /// What it was decided from: each step it needs, and the digest of that step's evidence.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        needs: BTreeMap<String, Digest>,
    },
    /// A turn of a loop begins. Legal when `turn` is one more than the turns so far.
    #[serde(rename = "loop.turned")]
    LoopTurned { step: Address, turn: u32 },
    /// A loop is over. Legal while it is open.
    #[serde(rename = "loop.ended")]
    LoopEnded { step: Address, turns: u32, reason: LoopEnd },
    /// `when` was false, a person entered after it, or another system's files say that it will not
    /// run. Legal while the step is pending.
    #[serde(rename = "step.skipped")]
    StepSkipped {
        step: Address,
        reason: String,
        /// What it was decided from, as in `group.expanded`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        needs: BTreeMap<String, Digest>,
        /// Files that its `when` read.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        reads: BTreeMap<String, Digest>,
    },
    /// Finished work counts no more, for these causes. Legal while the step is done, skipped or
    /// failed.
    #[serde(rename = "step.invalidated")]
    StepInvalidated { step: Address, causes: Vec<Difference> },

    /// Synced before the spawn it announces. Legal while the step is pending, or failed with tries
    /// left; `attempt` is one more than the attempts so far.
    #[serde(rename = "attempt.started")]
    AttemptStarted(Box<AttemptStarted>),
    /// The agent's own session is known. Legal while the attempt runs.
    #[serde(rename = "attempt.session")]
    AttemptSession { step: Address, attempt: u32, session: String },
    /// Money or tokens since the last such record, as the agent said. Legal while the attempt runs.
    #[serde(rename = "attempt.spent")]
    AttemptSpent {
        step: Address,
        attempt: u32,
        #[serde(flatten)]
        spent: Spent,
    },
    /// The attempt ended and was judged. Legal while it runs.
    #[serde(rename = "attempt.finished")]
    AttemptFinished(Box<AttemptFinished>),
    /// The attempt left no result that counts. Legal while it runs; the step is pending again.
    #[serde(rename = "attempt.lost")]
    AttemptLost {
        step: Address,
        attempt: u32,
        cause: Cause,
        /// What decided it: a row of the recovery table, or what happened outside of a resume.
        rung: Rung,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reverted: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rescue: Option<String>,
    },
    /// Work done elsewhere counts: by another system, by a person, or proved by itself. Legal while
    /// the step is not done; ends a running attempt.
    #[serde(rename = "attempt.adopted")]
    AttemptAdopted(Box<AttemptAdopted>),
    /// A done step was proved again, and its evidence is now this. Legal while the step is done.
    #[serde(rename = "attempt.verified")]
    AttemptVerified(Box<AttemptVerified>),

    /// A person is asked. Legal while the gate is pending, or decided for content that moved.
    #[serde(rename = "gate.opened")]
    GateOpened {
        step: Address,
        prompt: String,
        options: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shows: Vec<String>,
        hash: Digest,
    },
    /// A person answered. Legal while the gate is open and `hash` is what it shows.
    #[serde(rename = "gate.decided")]
    GateDecided {
        step: Address,
        by: String,
        option: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
        hash: Digest,
        /// The option is one that ends the run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stops: bool,
    },
    /// A side effect beyond this machine is about to be tried. Legal right after its start.
    #[serde(rename = "effect.intended")]
    EffectIntended { step: Address, attempt: u32, effect: String },
    /// It is known whether the effect happened. Legal after `effect.intended`.
    #[serde(rename = "effect.settled")]
    EffectSettled { step: Address, attempt: u32, happened: bool, by: SettledBy },

    /// Foreign files say what our journal says up to here. Legal in adopted runs.
    #[serde(rename = "native.exported")]
    NativeExported { files: Vec<Exported> },
    /// A provider's limit holds: written right before the attempt that met it finishes, or when an
    /// attempt is not started because another run on this machine met it. Always legal.
    #[serde(rename = "limit.hit")]
    LimitHit {
        provider: String,
        /// The agent program (`use`) whose steps wait; `None` = all agents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
    },
    /// The run's own budget is spent. Legal while the run is under way.
    #[serde(rename = "budget.hit")]
    BudgetHit { spent: Usd, limit: Usd },
    /// The workflow file is another from here on. Legal between `run.resumed` and the next start.
    #[serde(rename = "workflow.changed")]
    WorkflowChanged { hash: Digest, edits: Vec<Edit> },
    /// What follows was rebuilt from evidence. Legal after `run.opened`.
    #[serde(rename = "journal.repaired")]
    JournalRepaired {
        /// Where the damaged file is.
        kept: String,
        /// How many events follow that were rebuilt.
        events: u64,
        /// Where each of them comes from, in their order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rebuilt: Vec<Rebuilt>,
    },
    /// For people. Always legal, never read by code.
    #[serde(rename = "note")]
    Note {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Address>,
    },
}

/// See [`Event::RunOpened`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOpened {
    /// Major version of the journal format.
    pub format: u32,
    pub run: RunId,
    pub workflow: String,
    pub workflow_hash: Digest,
    /// Where the workflow was read from: relative to the project, or absolute when it lies outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub inputs: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitHead>,
    pub engine: String,
    pub boot_id: String,
    pub mode: Mode,
}

/// Branch and commit of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitHead {
    /// None when the head is detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// None before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// How a resume treats the person: see `onward resume --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Autopilot,
    Interactive,
    Preflight,
}

/// See [`Event::RunResumed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResumed {
    /// The recovery point, in one sentence and as a code.
    pub code: String,
    pub summary: String,
    pub mode: Mode,
    /// How many times this run has been resumed, this time included.
    pub count: u32,
    pub boot_id: String,
    /// Where the project's branch stands now: what changed before this moment was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitHead>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
    /// The step or recovery code at which a person entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered: Option<String>,
    /// The last moment at which the run was seen at work before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sign: Option<Timestamp>,
    /// What is undone next. The rescue is durable already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverts: Vec<Revert>,
}

/// One path to be put back. Redo-safe: `left` = still to do, `base` = done, anything else = ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revert {
    pub path: String,
    /// What the attempt left; `None` = it deleted the file.
    pub left: Option<Digest>,
    /// What was there before it; `None` = nothing.
    pub base: Option<Digest>,
    /// Where what is undone was saved, relative to the run directory: `rescue/<n>-<address>`.
    pub rescue: String,
    #[serde(default, skip_serializing_if = "FileKind::is_plain")]
    pub left_kind: FileKind,
    #[serde(default, skip_serializing_if = "FileKind::is_plain")]
    pub base_kind: FileKind,
    /// The step whose work is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Address>,
}

impl Revert {
    /// Nothing is undone: what a person made of the path is kept before a step replaces it.
    pub fn keeps_in_place(&self) -> bool {
        let kinds = self.left_kind == self.base_kind;
        self.left.is_some() && self.left == self.base && kinds
    }

    /// The number in the name of its rescue: they count up over a run.
    pub fn rescue_number(&self) -> Option<u32> {
        self.rescue.strip_prefix("rescue/")?.split_once('-')?.0.parse().ok()
    }
}

/// What a file is besides its content; the content of a link is where it leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    #[default]
    Plain,
    Executable,
    Link,
}

impl FileKind {
    pub fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

/// See [`Event::AttemptStarted`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptStarted {
    pub step: Address,
    pub attempt: u32,
    pub key: Key,
    pub argv: Kept<Vec<String>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Chosen by us before the agent was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// It goes on in the session of the attempt before it, over what that one left: `base`, `saved`
    /// and `kinds` are those of that attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// The tree before the attempt: a git commit under `refs/onward/<run>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Patterns of the declared outputs, rendered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The declared outputs before the attempt; `None` = absent. Their content is under `saved/`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub saved: BTreeMap<String, Option<Digest>>,
    /// Those of them that are more than a plain file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, FileKind>,
    /// What the attempt before this one left, undone before this one is spawned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverts: Vec<Revert>,
    /// What the seal of this very start repeats. Journals of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Nonce>,
}

impl AttemptStarted {
    /// An attempt of which nothing is known but that it began.
    pub fn bare(step: Address, attempt: u32) -> Self {
        Self {
            step,
            attempt,
            key: Key::from(&KeyParts::default()),
            argv: Kept::from(&Vec::new()),
            cwd: String::new(),
            agent: None,
            session: None,
            continues: false,
            base: None,
            writes: Vec::new(),
            saved: BTreeMap::new(),
            kinds: BTreeMap::new(),
            reverts: Vec::new(),
            nonce: None,
        }
    }
}

/// See [`Event::AttemptFinished`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFinished {
    pub step: Address,
    pub attempt: u32,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    #[serde(default, skip_serializing_if = "Evidence::is_empty")]
    pub evidence: Evidence,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present_even_if_null"
    )]
    pub result: Option<Value>,
    /// The first 64 KiB of standard output, where a template refers to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// The tree after the attempt, where there was a snapshot before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Paths the attempt changed beyond its declared outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub footprint: Vec<String>,
    /// It failed, no try was left, and the workflow goes on without it: `on_failure: continue`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tolerated: bool,
    /// The commit that the project's branch led to when it ended, where that moved since the run
    /// last saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// When it ended, where no driver was there to see it: this record came later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// How long it had been announced before it was spawned, in milliseconds: it waited for a slot.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A result of `null` is a result.
fn present_even_if_null<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// See [`Event::AttemptAdopted`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptAdopted {
    pub step: Address,
    /// Where the knowledge comes from: `seal`, `evidence`, `person`, `repair`, or the dialect whose
    /// files prove it.
    pub source: String,
    pub certainty: Certainty,
    #[serde(default, skip_serializing_if = "Evidence::is_empty")]
    pub evidence: Evidence,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present_even_if_null"
    )]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// See [`Event::AttemptVerified`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptVerified {
    pub step: Address,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The key it holds under now, where what it was made from changed without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    Recorded,
    Inferred,
}

/// Some events of one origin, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    pub count: u64,
    /// `journal`, `seal`, `result`, `check`, `commit`, `workflow`, or how the gap was bridged.
    pub source: String,
    pub certainty: Certainty,
}

/// A file another system wrote, as it was when we looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    pub path: String,
    pub hash: Digest,
}

/// How far a foreign file holds what our journal holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    pub path: String,
    pub hash: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// One item of an `each` group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub key: String,
    pub value: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseCause {
    /// A gate is open and nothing else can go on.
    Gate,
    Limit,
    Budget,
    /// SIGINT, SIGTERM or SIGHUP.
    Interrupted,
    /// `onward pause`.
    Asked,
    /// A person must do something before a step can be tried again: log in, allow a tool, pay.
    Person,
}

impl PauseCause {
    /// The word in files and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Limit => "limit",
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
            Self::Asked => "asked",
            Self::Person => "person",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    Completed,
    Failed,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopEnd {
    /// `until` held.
    Until,
    /// All turns were taken, and that is fine.
    Max,
    /// All turns were taken, `until` never held, and that is a failure.
    Exhausted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettledBy {
    /// The attempt itself came back.
    Receipt,
    Probe,
    Person,
}

/// One accepted edit of the workflow file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub step: String,
    pub class: EditClass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditClass {
    Cosmetic,
    Pending,
    TouchesDone,
}

/// The end of an attempt that was announced and never came to be.
pub fn lost_before_spawn(step: &Address, attempt: u32) -> Event {
    Event::AttemptLost {
        step: step.clone(),
        attempt,
        cause: Cause::Interrupted,
        rung: Rung::NeverSpawned,
        reverted: Vec::new(),
        rescue: None,
    }
}
