//! How far each task is, what can be executed, and what waits for the verifier.
//!
//! Invariant: the latest event of a task wins; of two at one time, or where a time is missing, the
//! one that means more work. A task that is done is opened again by an event alone.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{address::Address, time::Timestamp};

pub use super::event::State;
use super::{
    event::{ACTOR, Event, Kind, Log, State as Told, Word},
    graph::{Graph, TaskEntry},
};
use crate::kit::order::resting_on;

/// So often a task is tried until a person says otherwise.
pub const ATTEMPTS_MAX: u32 = 3;
/// So many tasks are verified together.
pub const BATCH: usize = 3;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// To be executed, for the first time or again.
    Open,
    /// Implemented, or done and in doubt: the verifier is next.
    Unverified,
    /// It failed its verification, and a quality task that mends it is not done.
    Mending,
    /// Blocked until an event says otherwise.
    Blocked,
    /// Tried as often as it may be.
    UsedUp,
    Done,
}

#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct Task {
    pub entry: TaskEntry,
    pub state: Told,
    pub stage: Stage,
    pub attempts: u32,
    /// It was under way when the session ended.
    pub orphan: bool,
    /// Done, although something that it rests on is not, and no verdict of ours came after that.
    pub suspect: bool,
    /// Its last event is ours, written in this step of this run.
    pub step: Option<String>,
    pub run: Option<String>,
    /// Its last event says that our agent was cut off.
    pub cut_off: bool,
    /// Why it is as it is, where its last event says so.
    pub reason: Option<String>,
    /// The steps in which a verifier was asked about it and gave no verdict, since it was
    /// implemented.
    pub unjudged: Vec<String>,
    /// Its last event is ours.
    pub ours: bool,
    /// The step of our last event of it, whatever others said after that.
    our_step: Option<String>,
    /// It was implemented once, whatever came after.
    pub was_implemented: bool,
    pub done_at: Option<Timestamp>,
    /// Where its last event stands among all, from one; 0 without any.
    pub(super) last: usize,
}

impl Task {
    /// `execute[T003]`
    pub fn address(&self) -> Address {
        Address::from_text("execute").item(&self.entry.id)
    }

    /// Where our run has it in hand: in the first pass over all tasks, or in the rework.
    pub fn place(&self) -> Address {
        let reworked = self.step.as_deref().filter(|_| self.is_reworked()).map(Address::from_text);
        reworked.and_then(|step| step.parent()).unwrap_or_else(|| self.address())
    }

    /// Our own first pass has logged that it is implemented, and was cut off before it found out
    /// which tasks are to be verified then.
    pub fn is_unrecorded(&self) -> bool {
        let step = || format!("{}/record", self.address());
        self.state == Told::Implemented && self.step.as_ref().is_some_and(|it| *it == step())
    }

    /// Our own first pass has claimed it, and others spoke of it after that.
    pub fn was_taken(&self) -> bool {
        let step = || format!("{}/claim", self.address());
        !self.ours && self.our_step.as_ref().is_some_and(|it| *it == step())
    }

    /// Nothing of it was ever begun.
    pub fn is_untouched(&self) -> bool {
        self.state == Told::Pending && self.attempts == 0 && !self.was_implemented
    }

    /// Our run has spoken of it last, and not where it is executed for the first time.
    pub fn is_past_first_pass(&self) -> bool {
        let first = ["claim", "record"].map(|step| format!("{}/{step}", self.address()));
        self.step.as_ref().is_some_and(|it| !first.contains(it))
    }

    /// Our run has taken it up after its first pass over all tasks.
    pub fn is_reworked(&self) -> bool {
        self.step.as_deref().is_some_and(|step| step.starts_with("rework"))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Tasks {
    pub all: Vec<Task>,
    /// Where each stands in `all`.
    places: BTreeMap<String, usize>,
    /// Events name these, and the graph does not.
    pub strangers: Vec<String>,
}

/// What the events of one task add up to.
#[derive(Clone, Debug)]
struct Trail {
    state: Told,
    at: Option<Timestamp>,
    /// An attempt is under way, begun with this word.
    open: Option<Word>,
    attempts: u32,
    ours: bool,
    our_step: Option<String>,
    step: Option<String>,
    run: Option<String>,
    cut_off: bool,
    reason: Option<String>,
    unjudged: Vec<String>,
    was_implemented: bool,
    done_at: Option<Timestamp>,
    last: usize,
}

impl Default for Trail {
    fn default() -> Self {
        Self {
            state: Told::Pending,
            at: None,
            open: None,
            attempts: 0,
            ours: false,
            our_step: None,
            step: None,
            run: None,
            cut_off: false,
            reason: None,
            unjudged: Vec::new(),
            was_implemented: false,
            done_at: None,
            last: 0,
        }
    }
}

impl Trail {
    fn add(&mut self, place: usize, event: &Event, state: Told, word: Word) {
        self.last = place;
        self.count(state, word);
        self.was_implemented |= matches!(state, Told::Implemented | Told::Done);
        if state == Told::Done {
            self.done_at = event.at;
        }
        // The events come in order: only one of the same moment, or without one, may mean less.
        // We have seen everything that was there when we wrote, and what we have not came later.
        let is_ours = event.actor == ACTOR;
        if is_ours {
            self.our_step.clone_from(&event.step);
        }
        let is_timeless = event.at.is_none() || self.at.is_none();
        let is_tie = !is_ours && (is_timeless || self.at == event.at && !self.ours);
        if is_tie && state < self.state && word != Word::Unblocked {
            return;
        }
        self.state = state;
        self.at = event.at.or(self.at);
        self.ours = is_ours;
        self.step = event.step.clone().filter(|_| self.ours);
        self.run = event.run.clone().filter(|_| self.ours);
        self.cut_off = event.cut_off.is_some() && self.ours;
        self.reason.clone_from(&event.reason);
        self.unjudged.clear();
    }

    /// A claim and the start after it are one attempt; each of them twice is two.
    fn count(&mut self, state: Told, word: Word) {
        match (state, word) {
            (Told::Running, Word::Started) if self.open == Some(Word::Claimed) => {
                self.open = Some(word);
            }
            (Told::Running, _) => {
                self.attempts += 1;
                self.open = Some(word);
            }
            (Told::Pending, Word::Unblocked) => (self.attempts, self.open) = (0, None),
            (Told::Failed, _) => {
                // What was implemented before fails its verification, and is no attempt more.
                let is_verdict = matches!(self.state, Told::Implemented | Told::Done);
                self.attempts += u32::from(self.open.is_none() && !is_verdict);
                self.open = None;
            }
            (Told::Pending | Told::Implemented | Told::Done | Told::Blocked, _) => self.open = None,
        }
    }
}

impl Tasks {
    pub fn of(graph: Option<&Graph>, log: &Log) -> Self {
        let mut trails: BTreeMap<&str, Trail> = BTreeMap::new();
        for (event, place) in log.since_plan().iter().zip(1..) {
            match &event.kind {
                Kind::Task { id, state, word } => {
                    trails.entry(id).or_default().add(place, event, *state, *word);
                }
                Kind::Unjudged { id } => {
                    let step = event.step.clone().unwrap_or_default();
                    trails.entry(id).or_default().unjudged.push(step);
                }
                Kind::Phase { .. } | Kind::Ended(_) | Kind::Begun | Kind::Other => {}
            }
        }
        let entries = graph.map_or(&[][..], |it| &it.tasks);
        let places: BTreeMap<String, usize> =
            entries.iter().enumerate().map(|(place, it)| (it.id.clone(), place)).collect();
        let is_stranger = |id: &&&str| !places.contains_key(**id);
        let strangers = trails.keys().filter(is_stranger).map(|it| (*it).to_owned()).collect();
        let all = entries.iter().map(|entry| {
            let trail = trails.remove(entry.id.as_str()).unwrap_or_default();
            task(entry, trail)
        });
        let mut tasks = Self { all: all.collect(), places, strangers };
        tasks.settle();
        tasks
    }

    pub fn get(&self, id: &str) -> Option<&Task> {
        self.places.get(id).map(|place| &self.all[*place])
    }

    /// What rests on other tasks: doubts, and what is being mended.
    ///
    /// A doubt is settled by one verdict of ours, or by a person who skips the task, until what
    /// the doubt comes from moves again: the verifier is not asked twice about the same ground.
    fn settle(&mut self) {
        let is_open = |task: &Task, id: &String| {
            let before = self.get(id).filter(|it| it.state != Told::Done);
            before.is_some_and(|it| !task.ours || task.last < it.last)
        };
        let mut mended: BTreeMap<&str, bool> = BTreeMap::new();
        for task in &self.all {
            for id in &task.entry.fixes {
                *mended.entry(id).or_insert(true) &= task.state == Told::Done;
            }
        }
        let mut stages = Vec::new();
        for task in &self.all {
            let is_doubted = task.entry.dependencies.iter().any(|id| is_open(task, id));
            let suspect = task.state == Told::Done && is_doubted;
            let stage = match task.state {
                Told::Done if suspect => Stage::Unverified,
                Told::Failed => match mended.get(task.entry.id.as_str()) {
                    Some(false) => Stage::Mending,
                    Some(true) => Stage::Unverified,
                    None => task.stage,
                },
                Told::Done | Told::Pending | Told::Running | Told::Implemented | Told::Blocked => {
                    task.stage
                }
            };
            stages.push((suspect, stage));
        }
        for (task, (suspect, stage)) in self.all.iter_mut().zip(stages) {
            (task.suspect, task.stage) = (suspect, stage);
        }
    }

    /// Whether what this task rests on is implemented at least.
    pub fn is_satisfied(&self, id: &str) -> bool {
        self.get(id).is_none_or(|task| match task.stage {
            Stage::Unverified | Stage::Done | Stage::Mending => true,
            Stage::Open | Stage::Blocked | Stage::UsedUp => false,
        })
    }

    /// Whether nothing that it depends on is still to be executed.
    pub fn is_free(&self, task: &Task) -> bool {
        task.entry.dependencies.iter().all(|id| self.is_satisfied(id))
    }

    /// Those whose turn it is, by phase and then in the order of the graph.
    pub fn runnable(&self) -> Vec<&Task> {
        let is_next = |task: &&Task| task.stage == Stage::Open && self.is_free(task);
        let mut all: Vec<&Task> = self.all.iter().filter(is_next).collect();
        all.sort_by_key(|task| task.entry.phase);
        all
    }

    pub fn unverified(&self) -> Vec<&Task> {
        self.all.iter().filter(|task| task.stage == Stage::Unverified).collect()
    }

    pub fn is_built(&self) -> bool {
        !self.all.is_empty() && self.all.iter().all(|task| task.stage == Stage::Done)
    }

    /// Tasks that cannot go on by themselves, and with each those that wait for it.
    pub fn stuck(&self) -> Vec<(&Task, Vec<&str>)> {
        let is_stuck = |it: &&Task| matches!(it.stage, Stage::Blocked | Stage::UsedUp);
        self.all.iter().filter(is_stuck).map(|task| (task, self.waiting_for(task))).collect()
    }

    /// Open tasks that rest on this one, however far away.
    fn waiting_for<'a>(&'a self, stuck: &'a Task) -> Vec<&'a str> {
        let open = self.all.iter().filter(|it| it.stage == Stage::Open);
        let edges = open.map(|it| (it.entry.id.as_str(), it.entry.dependencies.as_slice()));
        resting_on([stuck.entry.id.as_str()], edges).into_iter().collect()
    }

    /// Ids of open tasks that rest, however far away, on one that waits for a person or for the
    /// rework.
    pub fn held(&self) -> BTreeSet<String> {
        let is_first = |it: &&Task| it.stage == Stage::Open && !it.is_reworked();
        let holds = |it: &&Task| match it.stage {
            Stage::Blocked | Stage::UsedUp => true,
            Stage::Open => it.is_reworked(),
            Stage::Unverified | Stage::Mending | Stage::Done => false,
        };
        self.after(holds, is_first)
    }

    /// Ids of tasks that rest, however far away, on one that has still to be recorded.
    pub fn early(&self) -> BTreeSet<String> {
        self.after(|it| it.is_unrecorded(), |_| true)
    }

    /// Ids of those `among` the tasks that come after one of the `first`.
    fn after(
        &self,
        first: impl Fn(&&Task) -> bool,
        among: impl Fn(&&Task) -> bool,
    ) -> BTreeSet<String> {
        let edges = self.all.iter().filter(among);
        let edges = edges.map(|it| (it.entry.id.as_str(), it.entry.dependencies.as_slice()));
        let first = self.all.iter().filter(first).map(|it| it.entry.id.as_str());
        resting_on(first, edges).into_iter().map(str::to_owned).collect()
    }

    /// What is to be verified now that this task is implemented: nothing, or all that waits when
    /// the batch is full, the task was hard, or its phase of the plan is over.
    pub fn due(&self, id: &str) -> Vec<String> {
        let waiting = self.unverified();
        let Some(task) = self.get(id) else { return Vec::new() };
        let of_phase = self.all.iter().filter(|it| it.entry.phase == task.entry.phase);
        let is_border = of_phase.clone().all(|it| it.stage != Stage::Open);
        let is_due = waiting.len() >= BATCH || task.entry.high || is_border;
        let is_due = is_due && task.stage == Stage::Unverified;
        waiting.into_iter().filter(|_| is_due).map(|it| it.entry.id.clone()).collect()
    }
}

fn task(entry: &TaskEntry, trail: Trail) -> Task {
    let Trail { state, attempts, ours, our_step, step, was_implemented, done_at, last, .. } = trail;
    let Trail { run, cut_off, reason, unjudged, .. } = trail;
    let retried = if attempts >= ATTEMPTS_MAX { Stage::UsedUp } else { Stage::Open };
    let stage = match state {
        Told::Pending => Stage::Open,
        Told::Running | Told::Failed => retried,
        Told::Implemented => Stage::Unverified,
        Told::Done => Stage::Done,
        Told::Blocked => Stage::Blocked,
    };
    let orphan = state == Told::Running;
    let entry = entry.clone();
    Task {
        entry,
        state,
        stage,
        attempts,
        orphan,
        suspect: false,
        step,
        run,
        cut_off,
        reason,
        unjudged,
        our_step,
        ours,
        was_implemented,
        done_at,
        last,
    }
}
