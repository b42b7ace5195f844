//! The two state files as they are written: one line of JSON each, whole or not at all.
//!
//! Invariant: what is known changes, every other key is kept. A run that is not over says
//! `in_progress`, because the original takes up no other; the file that names the phase comes last.

use onward_core::{time::Timestamp, told::Change};
use serde_json::{Map, Value, json};

use super::{
    EXECUTION, ID, PHASE, Phase,
    read::{DEMAND, DESIGN, Sheet, VERIFICATION, is_repair, stranger},
};
use crate::{
    Files,
    kit::{
        age::{seconds, stamp},
        json::plain,
        path::component,
    },
    rules::dotagent::phases::ARCHIVE,
};

/// Under this key phase.json says that a person enters here, until the resume is written down: what
/// was done from here on counts no more.
pub const ENTERED: &str = "entered_at";

/// Under this key phase.json says that it was lost and made again, from the reports: what it does
/// not say may have been said before.
pub const REBUILT: &str = "rebuilt_at";

/// Under this key a task names the attempt of ours that was cut off and counted, until it is over.
pub const CUT_OFF: &str = "cut_off";

/// phase.json and execution.json, to be changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    pub phase: Map<String, Value>,
    pub execution: Map<String, Value>,
}

impl Phase {
    /// The file that its work ends in.
    const fn output(self) -> Option<&'static str> {
        match self {
            Self::Requirements => Some(DEMAND),
            Self::Architecture => Some(DESIGN),
            Self::Implementation => Some(EXECUTION),
            Self::Verification => Some(VERIFICATION),
            Self::Reflection => None,
        }
    }
}

impl Checkpoint {
    /// As the files are; a file that cannot be read is empty, and so is an execution of another
    /// workflow.
    pub fn of(files: &Files) -> Self {
        let map = |path| Sheet::of(files, path).map().cloned().unwrap_or_default();
        let execution = if stranger(files).is_some() { Map::new() } else { map(EXECUTION) };
        Self { phase: map(PHASE), execution }
    }

    /// A run that begins now, with what a file that was there says beside it.
    pub fn begin(&mut self, id: &str, at: Timestamp) {
        if self.workflow_id().is_empty() {
            self.phase.insert(ID.to_owned(), id.into());
        }
        self.phase.insert("started_at".to_owned(), seconds(at).into());
        for list in ["completed_phases", "user_checkpoints"] {
            self.phase.insert(list.to_owned(), json!([]));
        }
        self.phase.insert("current_phase".to_owned(), Phase::Requirements.as_str().into());
        self.stamp(at);
    }

    /// The run is in this phase: those before it are completed, it and those after it are not.
    pub fn enter(&mut self, phase: Phase, at: Timestamp) {
        with_list(&mut self.phase, "completed_phases", |done| {
            done.retain(|it| phase_of(it).is_none_or(|it| it < phase));
            for before in Phase::ALL.into_iter().filter(|it| *it < phase) {
                if !done.iter().any(|it| phase_of(it) == Some(before)) {
                    done.push(completed(before, at));
                }
            }
        });
        with_list(&mut self.phase, "user_checkpoints", |said| {
            said.retain(|it| phase_of(it).is_none_or(|it| it < phase));
        });
        self.phase.insert("current_phase".to_owned(), phase.as_str().into());
        self.stamp(at);
    }

    /// The phase's work is there; the run stays in it until the user has said yes.
    pub fn complete(&mut self, phase: Phase, at: Timestamp) {
        with_list(&mut self.phase, "completed_phases", |done| {
            if !done.iter().any(|it| phase_of(it) == Some(phase)) {
                done.push(completed(phase, at));
            }
        });
        self.stamp(at);
    }

    /// The user said yes to what the phase made.
    pub fn approve(&mut self, phase: Phase, at: Timestamp) {
        with_list(&mut self.phase, "user_checkpoints", |said| {
            if !said.iter().any(|it| phase_of(it) == Some(phase)) {
                said.push(json!({"phase": phase.as_str(), "approved_at": seconds(at)}));
            }
        });
        self.stamp(at);
    }

    /// Nothing is left to do.
    pub fn finish(&mut self, at: Timestamp) {
        self.enter(Phase::Reflection, at);
        self.complete(Phase::Reflection, at);
        self.phase.insert("phase_status".to_owned(), "complete".into());
    }

    /// Something happened in the phase that the run is in.
    pub fn stamp(&mut self, at: Timestamp) {
        self.phase.insert("phase_status".to_owned(), "in_progress".into());
        self.phase.insert("last_updated".to_owned(), seconds(at).into());
        self.phase.insert("interruption_safe".to_owned(), true.into());
    }

    pub fn workflow_id(&self) -> String {
        self.phase.get(ID).and_then(plain).unwrap_or_default()
    }

    /// The same as it is written: a number stays one.
    pub fn written_id(&self) -> Value {
        self.phase.get(ID).cloned().unwrap_or_else(|| "".into())
    }

    /// Tasks in the place of those that were there.
    pub fn set_tasks(&mut self, tasks: Vec<Value>) {
        self.execution.insert(ID.to_owned(), self.written_id());
        self.execution.insert("tasks".to_owned(), tasks.into());
    }

    /// The plan is made again.
    pub(super) fn clear_tasks(&mut self) {
        if self.execution.contains_key("tasks") {
            self.execution.insert("tasks".to_owned(), json!([]));
        }
    }

    /// What mended an earlier verification of the whole mends none that is still to come.
    pub(super) fn forget_repairs(&mut self) {
        if let Some(tasks) = self.execution.get_mut("tasks").and_then(Value::as_array_mut) {
            tasks.retain(|it| !id_of(it).is_some_and(|id| is_repair(&id)));
        }
    }

    pub fn task(&self, id: &str) -> Option<&Map<String, Value>> {
        let tasks = self.execution.get("tasks").and_then(Value::as_array);
        tasks?.iter().find(|it| is_task(it, id)).and_then(Value::as_object)
    }

    /// Sets fields of a task, and adds it where there is none.
    pub fn set_task(&mut self, id: &str, fields: Value) {
        let id_of_run = self.written_id();
        self.execution.entry(ID.to_owned()).or_insert(id_of_run);
        with_list(&mut self.execution, "tasks", |tasks| {
            if !tasks.iter().any(|it| is_task(it, id)) {
                tasks.push(json!({ "id": id }));
            }
            let entry = tasks.iter_mut().find(|it| is_task(it, id)).and_then(Value::as_object_mut);
            if let (Some(entry), Value::Object(fields)) = (entry, fields) {
                entry.extend(fields);
            }
        });
    }

    /// The attempt that began after one of ours was cut off is over.
    pub fn forget_cut_off(&mut self, id: &str) {
        let tasks = self.execution.get_mut("tasks").and_then(Value::as_array_mut);
        let entry = tasks.into_iter().flatten().find(|it| is_task(it, id));
        if let Some(entry) = entry.and_then(Value::as_object_mut) {
            entry.remove(CUT_OFF);
        }
    }

    /// What differs from the files, the phase last. An execution that holds nothing is no file.
    pub fn changes(&self, files: &Files) -> Vec<Change> {
        let of = |path: &str, map: &Map<String, Value>| {
            let is_same = Sheet::of(files, path).main.map() == Some(map);
            (!is_same && !map.is_empty()).then(|| replace(path, map))
        };
        let execution = of(EXECUTION, &self.execution);
        let aside = execution.as_ref().and_then(|_| put_aside(files));
        [aside, execution, of(PHASE, &self.phase)].into_iter().flatten().collect()
    }
}

/// A copy in the archive of the execution.json of another workflow, before it gives way.
pub(super) fn put_aside(files: &Files) -> Option<Change> {
    let id = component(&stranger(files)?);
    let file = files.file(EXECUTION)?;
    let at = file.modified.map_or_else(|| "unknown".to_owned(), stamp);
    let path = format!("{ARCHIVE}{id}_{at}/execution.json");
    Some(Change::Replace { path, bytes: file.bytes.clone() })
}

/// One line of JSON in the place of a file.
pub fn replace(path: &str, map: &Map<String, Value>) -> Change {
    let mut bytes = Value::Object(map.clone()).to_string().into_bytes();
    bytes.push(b'\n');
    Change::Replace { path: path.to_owned(), bytes }
}

/// Changes the list under a key; anything else that stands there gives way to a list.
fn with_list<R>(
    map: &mut Map<String, Value>,
    key: &str,
    change: impl FnOnce(&mut Vec<Value>) -> R,
) -> R {
    let mut list = match map.remove(key) {
        Some(Value::Array(list)) => list,
        Some(_) | None => Vec::new(),
    };
    let answer = change(&mut list);
    map.insert(key.to_owned(), list.into());
    answer
}

fn phase_of(entry: &Value) -> Option<Phase> {
    entry["phase"].as_str().and_then(Phase::parse)
}

fn is_task(entry: &Value, id: &str) -> bool {
    id_of(entry).as_deref() == Some(id)
}

/// What a task is called, also by a number; `None` where nothing names it.
pub(crate) fn id_of(entry: &Value) -> Option<String> {
    let named = ["id", "task_id"].iter().find_map(|key| plain(&entry[*key]));
    named.filter(|it| !it.trim().is_empty())
}

fn completed(phase: Phase, at: Timestamp) -> Value {
    let mut entry = json!({"phase": phase.as_str(), "completed_at": seconds(at)});
    if let Some(output) = phase.output() {
        entry["output"] = output.into();
    }
    entry
}
