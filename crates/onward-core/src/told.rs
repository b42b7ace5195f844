//! What another system's files tell about a run, in core's own words.
//!
//! A dialect parses the files once into a [`Told`]; core and the engine ask it as often as they
//! like. Invariant: a `Told` is pure data behind a trait. It answers the same question the same way
//! each time, opens no file, and never builds a plan: core plans for every system.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    address::Address,
    event::Certainty,
    finding::Finding,
    plan::{LastEvent, Plan, RecoveryPoint, Referred, Status},
    time::Timestamp,
};

/// The run of another system, as its files tell it.
pub trait Told {
    /// How the run stands. Ages and budgets are measured against `now`.
    fn standing(&self, now: Timestamp) -> Standing;

    /// The report once more, when it is known which steps of ours live; `None` where that says
    /// nothing else.
    fn report_with(&self, _alive: &[Address]) -> Option<Vec<String>> {
        None
    }

    /// The last line of the report, when all findings are known: those of the files, of our run and
    /// of the project.
    fn closing(&self, _findings: &[Finding]) -> Option<String> {
        None
    }

    /// What is wrong with the files, or stands against going on.
    fn findings(&self, now: Timestamp) -> Vec<Finding>;

    /// What the files say about one step of the built-in workflow.
    fn step(&self, at: &Address) -> StepTold;

    /// The step that makes the outputs of this one again, which got lost after all that rests on
    /// them was done: this one stays done without them.
    fn made_again_by(&self, _at: &Address) -> Option<Address> {
        None
    }

    /// Whether this step writes again what got lost. What lies behind it was done before: the files
    /// are asked about that once more when it has ended.
    fn restores(&self, _at: &Address) -> bool {
        false
    }

    /// Why a step of ours that is done does not count any more, where a finding of the files tells
    /// it, too.
    fn explains(&self, _at: &Address) -> Option<String> {
        None
    }

    /// The items of a list that is opened behind such a step: the row of each, and its first step.
    fn items(&self, _group: &Address) -> Vec<(Address, Address)> {
        Vec::new()
    }

    /// Whether there are parts of this file of the project that the role of the step may not write.
    fn guards(&self, _at: &Address, _path: &str) -> bool {
        false
    }

    /// Whether a change of such a file is none that the role of the step may make.
    /// Made about when its agent was cut off, it is a person's, as far as that can be known.
    fn is_beyond(&self, _at: &Address, _before: &[u8], _after: &[u8]) -> bool {
        false
    }

    /// What a person is asked about this step, which is passed over, by a gate further on.
    fn asks_about(&self, _at: &Address) -> Option<String> {
        None
    }

    /// The row of a plan that a step belongs to. Several steps may share one, such as the draft of
    /// a poster and its publication.
    fn row(&self, at: &Address) -> Address {
        at.clone()
    }

    /// Rows of work that the files name and that the run has not come to yet.
    fn ahead(&self) -> Option<Ahead> {
        None
    }

    /// Whether the files count this attempt of ours, which died, among those that were made.
    fn counts(&self, _died: &Died) -> bool {
        false
    }

    /// What the report calls the last completed.
    fn last_done(&self) -> LastDone {
        LastDone::ByRows
    }

    /// Why these files are another run's than the one that our journal goes on with. Then nothing
    /// is taken from them, and nothing is written into them.
    fn superseded(&self) -> Option<Finding> {
        None
    }

    /// The directory of the run of ours that began it, or that went on with it last: it may lie in
    /// another working tree, and drive it at this moment.
    fn driven_from(&self) -> Option<&str> {
        None
    }

    /// Inputs of a run of ours that begins where this one waits to be begun: which of the runs
    /// that come and go in its directory it is.
    fn inputs(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }

    /// Half-done work in the files and worktrees, to be saved and put back before going on.
    fn undo(&self) -> Vec<Undo>;

    /// The files that change when this happened. The log comes last, so that it never speaks of
    /// something that is not on disk yet.
    fn write(&self, deed: &Deed<'_>) -> Vec<Change>;

    /// What has to be written so that a new run can begin in the place of this one, which is kept;
    /// `None` when none can.
    fn retire(&self, _now: Timestamp) -> Option<Vec<Change>> {
        None
    }

    /// What giving the run up puts away and sets back; `None` where the system keeps no state that
    /// could be put away.
    fn clean_up(&self, _now: Timestamp) -> Option<CleanUp> {
        None
    }

    /// A report in a format of the system's own, such as `l1`; `None` when it has no such format.
    fn page(&self, _format: &str) -> Option<String> {
        None
    }

    /// Those formats.
    fn formats(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether files that no agent of ours writes say how far this step is. Only then does what the
    /// other system did count against an attempt of ours that was cut short.
    fn vouches(&self, _at: &Address) -> bool {
        true
    }

    /// What the files have lost and a journal of ours still knows: what has to be written before
    /// anything else so that they tell it again. `done` gives the result of a step that is done.
    fn restore(
        &self,
        _done: &dyn Fn(&Address) -> Option<Value>,
        _now: Timestamp,
    ) -> Option<Restored> {
        None
    }

    /// Whether a step that was learned from the files stays done although they tell nothing of it
    /// any more, because of what a run of ours has done since. `done` gives the result of a step
    /// that is done.
    fn outlasts(&self, _at: &Address, _done: &dyn Fn(&Address) -> Option<Value>) -> bool {
        false
    }

    /// Takes in how our run stands by its journal, `known`: what agents of ours wrote while they
    /// worked is no progress of the other system.
    fn beside(&mut self, _known: &dyn Fn(&Address) -> Journaled) {}

    /// Steps of ours whose outcome does not count any more, because files that it speaks of were
    /// changed since. `known` says how a step stands in our journal.
    fn overtaken(&self, _known: &dyn Fn(&Address) -> Journaled) -> Vec<Overtaken> {
        Vec::new()
    }

    /// What a person is shown before a resume in preflight mode, which then takes their word, with
    /// a terminal or without; `None` where the system has no such report.
    fn preflight(&self) -> Option<Referred> {
        None
    }

    /// What has to be written so that the run re-enters where a person wants; empty when it goes on
    /// there anyway.
    fn enter(&self, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
        Err(NoEntry::Unknown(at.place.to_owned()))
    }
}

/// How a run of another system stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub status: Status,
    pub started_at: Option<Timestamp>,
    /// The last thing that the files tell, and when it was.
    pub last_event: Option<LastTold>,
    /// How often it was resumed, by whichever program.
    pub resumes: u32,
    /// Where it re-enters, in the system's own codes and phases.
    pub point: RecoveryPoint,
    /// The report that the system's users know, line by line.
    pub report: Vec<String>,
    /// Going on takes an agent.
    pub needs_agents: bool,
    /// What a person must say before the run goes on, although nothing is wrong.
    pub asks: Option<String>,
}

impl Standing {
    /// The files say that the run is complete, and by the plan no step of ours is left either: no
    /// more than the closing record of our journal is missing.
    pub fn is_all_done(&self, plan: &Plan) -> bool {
        self.status == Status::Completed && plan.recovery_point.steps.is_empty()
    }
}

/// The newest entry of a log, or the newest file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastTold {
    pub kind: String,
    pub at: Timestamp,
}

impl From<LastTold> for LastEvent {
    fn from(last: LastTold) -> Self {
        Self { kind: last.kind, at: last.at.to_string() }
    }
}

/// What was completed last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LastDone {
    /// As the rows of the plan say.
    #[default]
    ByRows,
    /// The system counts its own tasks, and none is done.
    Nothing,
    /// The one that it calls so, as a row, and when that was.
    Row(Address, Option<Timestamp>),
    /// The one that it did last, unless our own run has done something after that.
    Latest(Address, Timestamp),
}

/// What the files say about one step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepTold {
    /// They prove it done.
    Done(Done),
    /// It is not done and will not run either; the text says why.
    PassedOver(String),
    /// Something of it is there, and nothing vouches for it: saved, then done again.
    Unproved(String),
    /// They would tell if it were done, and do not: a journal that says so is wrong about it.
    Undone,
    /// They say nothing about such a step.
    Silent,
}

/// A step that the files prove done.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// What the step would have left; for a gate, `{"option": …}`.
    pub result: Value,
    /// Whether the files say so, or it follows from what they say.
    pub certainty: Certainty,
    /// The list in the result that may grow: a journal that lacks one of its items is behind.
    pub list: Option<&'static str>,
    /// The files do not say it, and go on behind it: enough for a run that never knew more. Where a
    /// journal knows another result, which they told before, it was taken back.
    pub implied: bool,
    /// How they show it, where a plan should say so.
    pub why: Option<&'static str>,
}

impl Done {
    pub fn recorded(result: Value) -> Self {
        Self { result, certainty: Certainty::Recorded, list: None, implied: false, why: None }
    }

    pub fn inferred(result: Value) -> Self {
        Self { result, certainty: Certainty::Inferred, list: None, implied: false, why: None }
    }

    /// Implied by what comes behind it; the result is told from one that the files themselves say.
    pub fn implied(result: Value) -> Self {
        Self { implied: true, ..Self::inferred(result) }
    }

    /// Whether a journal, which knows this result, was told it by files that do not say it any
    /// more.
    pub fn is_taken_back(&self, given: Option<&Value>) -> bool {
        self.implied && given.is_some_and(|given| *given != self.result)
    }

    /// The same, where the list of this name in the result may grow.
    #[must_use]
    pub fn growing(self, list: &'static str) -> Self {
        Self { list: Some(list), ..self }
    }

    /// The same, with the reason that a plan gives.
    #[must_use]
    pub fn because(self, why: &'static str) -> Self {
        Self { why: Some(why), ..self }
    }

    /// Whether the files list something that a journal, which knows this result, does not. Items
    /// are known by their `id`; one that is to be verified is another than one that is not.
    pub fn has_grown_since(&self, given: Option<&Value>) -> bool {
        let items = |result: &Value, list: &str| -> Vec<(String, bool)> {
            let items = result.get(list).and_then(Value::as_array).into_iter().flatten();
            let is_doubted = |it: &Value| it.get("verify") == Some(&Value::Bool(true));
            items.filter_map(|it| Some((it.get("id")?.to_string(), is_doubted(it)))).collect()
        };
        let Some(list) = self.list else { return false };
        // Whether one of that name was doubted.
        let mut known: BTreeMap<String, bool> = BTreeMap::new();
        for (id, was_doubted) in given.map_or_else(Vec::new, |it| items(it, list)) {
            *known.entry(id).or_default() |= was_doubted;
        }
        let is_known = |(id, is_doubted): &(String, bool)| {
            known.get(id).is_some_and(|was_doubted| *was_doubted || !is_doubted)
        };
        !items(&self.result, list).iter().all(is_known)
    }
}

/// Half-done work of one step, and what is left when it is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// Whose work it is. An attempt of ours within this step that still counts keeps its work.
    pub step: Address,
    /// A file of the site, or a worktree as git names it.
    pub path: String,
    pub what: UndoWhat,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoWhat {
    /// The file loses these rows and then holds `after`.
    Rows { rows: Vec<String>, after: Vec<u8> },
    /// The file goes to the rescue; the step makes it again.
    Remove,
    /// The worktree goes back to the head of its branch; these paths differ from it.
    Worktree { changes: Vec<String> },
}

/// Something that happened and that the other system's files must tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deed<'a> {
    /// A resume begins. Written before anything else is.
    Resumed {
        at: Timestamp,
        point: &'a RecoveryPoint,
        undone: &'a [Undo],
        /// Steps of ours that are done, or under way, and count: what they leave is still to be
        /// written down.
        alive: &'a [Address],
        /// Agents of ours that were cut off, of which the files do not know yet, and that are
        /// started again.
        died: &'a [Died],
        /// The directory of our run.
        by: &'a str,
    },
    /// A person ends the run before it is done. Written before the journal says so.
    Cancelled { at: Timestamp },
}

/// Files that are put back from a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    pub changes: Vec<Change>,
    /// What was lost, and what is known again.
    pub finding: Finding,
}

/// Work that comes later, such as that of the next waves of an epic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Each with what a plan says of it.
    pub rows: Vec<(Address, String)>,
    /// The row that they come before.
    pub before: Address,
}

/// How a step stands in a journal of ours.
#[derive(Clone, Debug, PartialEq)]
pub enum Journaled {
    /// With what it left.
    Done(Value),
    /// The same, and it is to be done again.
    Stale(Value),
    Failed,
    Open,
}

/// Steps of ours that are done, and do not count any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Overtaken {
    pub steps: Vec<Address>,
    /// For a person, after "the journal has it as done, but".
    pub says: String,
    pub finding: Finding,
}

/// An attempt of ours that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Died {
    pub step: Address,
    pub attempt: u32,
}

impl Died {
    /// As files may name it, and find it again.
    pub fn mark(&self) -> String {
        format!("{}#{}", self.step, self.attempt)
    }
}

/// A run that is given up: its state is kept in an archive, and what it left half-way goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanUp {
    /// Files that move, each from where to where.
    pub moves: Vec<(String, String)>,
    pub resets: Vec<Reset>,
}

/// A status that goes back to where work can begin again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// For a person, such as `story 4.2: InProgress -> Ready`.
    pub what: String,
    pub change: Change,
}

/// One file of a site that changes. Its path is relative to the site's first root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Append { path: String, bytes: Vec<u8> },
    Replace { path: String, bytes: Vec<u8> },
}

impl Change {
    pub fn path(&self) -> &str {
        match self {
            Self::Append { path, .. } | Self::Replace { path, .. } => path,
        }
    }
}

/// Where a person wants to enter: a recovery code such as `peer-review`, or a step.
#[derive(Clone, Copy, Debug)]
pub struct Entering<'a> {
    pub place: &'a str,
    /// Over unfinished work too.
    pub force: bool,
    pub now: Timestamp,
}

/// Why a run cannot be entered there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEntry {
    #[error("there is no `{0}` in this run")]
    Unknown(String),
    /// It lies ahead of what is done, and what is between would be passed over.
    #[error("{0}")]
    Ahead(String),
}
