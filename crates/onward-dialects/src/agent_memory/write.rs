//! What onward adds to a run: events in its own folder, in the shape of the system's template.
//!
//! Invariant: only `events/onward` grows; no event is older than one that is there already, and it
//! names what it has seen where clocks do not tell, so that the latest one is ours when it is
//! written.

use std::collections::BTreeMap;

use onward_core::{
    plan::RecoveryPoint,
    time::Timestamp,
    told::{Change, Died},
};
use serde_json::{Value, json};

use super::{
    event::{ACTOR, CUT_OFF, End, Kind, Log, SEEN},
    read::State,
    tasks::{ATTEMPTS_MAX, BATCH, Stage, Task, Tasks},
    told::{AgentMemoryTold, blocked},
};
use crate::{
    Files,
    kit::{age::stamp, path::shown, with_line},
};

/// The folder of our events.
const FOLDER: &str = "events/onward/";

/// One event, before it has a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub kind: &'static str,
    pub task: Option<String>,
    pub details: Value,
    /// What the system's own events of this kind have beside `details`.
    pub beside: Vec<(&'static str, Value)>,
}

impl Entry {
    pub fn new(kind: &'static str, details: Value) -> Self {
        Self { kind, task: None, details, beside: Vec::new() }
    }

    #[must_use]
    pub fn of_task(mut self, id: &str) -> Self {
        self.task = Some(id.to_owned());
        self
    }

    /// A transition to another phase, which the system reads from fields of its own.
    pub fn phase(from: u32, to: u32, trigger: &str, notes: &str, details: Value) -> Self {
        let beside = vec![
            ("type", json!("phase_transition")),
            ("from_phase", json!(from)),
            ("to_phase", json!(to)),
            ("trigger", json!(trigger)),
            ("notes", json!(notes)),
        ];
        Self { beside, ..Self::new("phase_transition", details) }
    }

    fn line(&self, at: Timestamp, seen: &BTreeMap<&str, usize>) -> String {
        let Self { kind, task, details, beside } = self;
        let mut line = json!({
            "event_type": kind, "task_id": task, "timestamp": at.to_string(), "actor": ACTOR,
            "details": details,
        });
        if !seen.is_empty() {
            line["details"][SEEN] = json!(seen);
        }
        for (key, value) in beside {
            line[*key] = value.clone();
        }
        line.to_string()
    }
}

/// The change that adds these events to our newest log, or to a new one.
pub fn logged(files: &Files, entries: &[Entry], now: Timestamp) -> Vec<Change> {
    if entries.is_empty() {
        return Vec::new();
    }
    let log = Log::of(files);
    let at = log.next_moment(now);
    let mut seen = log.unclear(at);
    let own = files.iter().map(|(path, _)| path).filter(|it| it.starts_with(FOLDER));
    let path = own.last().map(str::to_owned);
    let path = path.unwrap_or_else(|| format!("{FOLDER}{}.jsonl", stamp(now)));
    let old = files.bytes(&path).unwrap_or_default();
    let mut all = old.to_vec();
    for entry in entries {
        all = with_line(&all, &entry.line(at, &std::mem::take(&mut seen)));
    }
    vec![Change::Append { path, bytes: all.split_off(old.len()) }]
}

/// A resume begins. After the end of the run it has nothing to say: it would open the run again.
/// What was cut off is claimed once more, which is another attempt; after the last one it failed.
pub(super) fn resumed(
    told: &AgentMemoryTold,
    at: Timestamp,
    point: &RecoveryPoint,
    died: &[Died],
) -> Vec<Change> {
    let (files, log) = (told.files(), &told.state.log);
    if log.events.last().is_some_and(|it| it.kind == Kind::Ended(End::Completed)) {
        return Vec::new();
    }
    let details = json!({ "recovery_point": point.code, "steps": point.steps });
    let begun = Entry::new("session-resumed", details);
    let again = died.iter().filter_map(|it| cut_off(&told.tasks, it));
    logged(files, &[begun].into_iter().chain(again).collect::<Vec<Entry>>(), at)
}

/// The next attempt of a task whose agent was cut off in this step of ours. It is under way from
/// here on: nothing else claims it. What has to wait for another task by now is claimed later.
fn cut_off(tasks: &Tasks, died: &Died) -> Option<Entry> {
    let place = died.step.parent().filter(|_| is_try(died))?;
    let task = tasks.all.iter().find(|it| it.orphan && it.ours && it.place() == place)?;
    if !tasks.is_free(task) {
        return None;
    }
    let mut details = json!({ "run": task.run, "step": task.step, CUT_OFF: died.mark() });
    let entry = if task.attempts < ATTEMPTS_MAX {
        details["attempt"] = (task.attempts + 1).into();
        Entry::new("task-claimed", details)
    } else {
        let count = task.attempts;
        details["summary"] =
            format!("its agent was cut off in the last of {count} attempts").into();
        Entry::new("task-failed", details)
    };
    Some(entry.of_task(&task.entry.id))
}

/// Whether the agent of this step makes an attempt at a task.
pub(super) fn is_try(died: &Died) -> bool {
    died.step.last_id() == "implement"
}

/// A person ends the run; one that is over has ended already.
pub(super) fn cancelled(files: &Files, at: Timestamp) -> Vec<Change> {
    let log = Log::of(files);
    if log.events.last().is_some_and(|it| matches!(it.kind, Kind::Ended(_))) {
        return Vec::new();
    }
    logged(files, &[Entry::new("run-cancelled", json!({ "reason": "the user ended it" }))], at)
}

/// What the step that writes the constitution leaves. A task that is implemented waits for nothing
/// any more, so that what rests on it can begin although a task before it was passed over.
pub fn approved(tasks: &Tasks, verify: &[&Task]) -> Value {
    let listed = |task: &Task| {
        let is_implemented = tasks.is_satisfied(&task.entry.id);
        item(task, if is_implemented { &[] } else { &task.entry.dependencies })
    };
    json!({ "tasks": tasks.all.iter().map(listed).collect::<Vec<Value>>(), "verify": ids(verify) })
}

/// What the step leaves that looks for artifacts which got lost after the approval.
pub fn lost(state: &State) -> Value {
    let item = |path: &&str| json!({ "id": path });
    let all: Vec<Value> = state.lost().iter().map(item).collect();
    json!({ "lost": all, "prd": !state.prd, "plan": !state.plan })
}

/// What is left after the first pass over all tasks.
pub fn surveyed(tasks: &Tasks) -> Value {
    let next = tasks.runnable();
    let waiting = tasks.unverified();
    let stuck: Vec<&str> =
        tasks.stuck().into_iter().map(|(task, _)| task.entry.id.as_str()).collect();
    let is_idle = next.is_empty() && waiting.is_empty();
    let verifies = next.is_empty() || waiting.len() >= BATCH;
    let verify = if verifies { ids(&waiting) } else { Vec::new() };
    let next = if verifies { Vec::new() } else { next };
    json!({
        "over": tasks.all.iter().all(|it| it.stage == Stage::Done),
        "tasks": next.into_iter().map(|it| item(it, &it.entry.dependencies)).collect::<Vec<_>>(),
        "verify": verify,
        "stuck": if is_idle { stuck } else { Vec::new() },
        "question": shown(&blocked(tasks)),
    })
}

fn ids(tasks: &[&Task]) -> Vec<String> {
    tasks.iter().map(|it| it.entry.id.clone()).collect()
}

fn item(task: &Task, after: &[String]) -> Value {
    json!({ "id": task.entry.id, "title": task.entry.title, "dependencies": after })
}

/// The files as one value, for what acts on them.
pub fn look(files: &Files) -> (State, Tasks) {
    let state = State::of(files);
    let tasks = Tasks::of(state.graph(), &state.log);
    (state, tasks)
}
