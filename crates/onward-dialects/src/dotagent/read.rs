//! The files of a run as one value, each read once.
//!
//! Invariant: of a file and its `.tmp`, the file counts when it parses, else the `.tmp` when that
//! does. Whatever does not parse is kept as such for `check`.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::{EXECUTION, PHASE, Phase};
use crate::{
    File, Files,
    kit::{
        json::{self, Object, Oddities},
        path::inside,
        status::{self, Progress},
    },
};

pub(super) const DEMAND: &str = "memory/reports/demand.json";
pub(super) const DESIGNS: &str = "memory/reports/designs/";
pub(super) const DESIGN: &str = "memory/reports/final_design.json";
pub(super) const VERIFICATION: &str = "memory/reports/verification.json";
pub(super) const REFLECTION: &str = "memory/reports/reflection.json";
pub(super) const REFLECTIONS: &str = "memory/reflections/";

/// What became of one file that should hold an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Presence {
    Missing,
    /// It does not parse, and why.
    Broken(String),
    Whole(Map<String, Value>),
}

impl Presence {
    fn of(file: Option<&File>) -> Self {
        match file.map(|file| json::object(&file.bytes)) {
            None => Self::Missing,
            Some(Ok(map)) => Self::Whole(map),
            Some(Err(why)) => Self::Broken(why),
        }
    }

    pub(super) fn map(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Whole(map) => Some(map),
            Self::Missing | Self::Broken(_) => None,
        }
    }
}

/// A file and what was left of writing it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sheet {
    pub(super) main: Presence,
    pub(super) tmp: Presence,
}

impl Sheet {
    pub(super) fn of(files: &Files, path: &str) -> Self {
        let main = Presence::of(files.file(path));
        Self { main, tmp: Presence::of(files.file(&format!("{path}.tmp"))) }
    }

    /// The one that counts.
    pub(super) fn map(&self) -> Option<&Map<String, Value>> {
        self.main.map().or_else(|| self.tmp.map())
    }

    /// It holds something: an empty object says nothing.
    pub(super) fn is_valid(&self) -> bool {
        self.map().is_some_and(|map| !map.is_empty())
    }

    pub(super) fn is_missing(&self) -> bool {
        self.main == Presence::Missing && self.tmp == Presence::Missing
    }
}

/// An entry of `completed_phases` or `user_checkpoints`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) phase: Option<Phase>,
    /// As it is spelled.
    pub(super) word: String,
    pub(super) at: Option<Timestamp>,
    pub(super) output: Option<String>,
}

/// One task of execution.json as it is written there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaskEntry {
    pub(super) id: String,
    pub(super) status: Option<Progress>,
    pub(super) word: String,
    pub(super) attempts: u32,
    pub(super) output: String,
    /// The entry names an output that lies outside; nothing looks there.
    pub(super) refused: bool,
    pub(super) summary: String,
    pub(super) last_error: Option<String>,
    pub(super) strategy: Option<String>,
    pub(super) depends_on: Vec<String>,
    pub(super) moments: Vec<(&'static str, Timestamp)>,
}

/// Everything that the files say, before anything is concluded from it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) phase_file: Sheet,
    pub(super) execution_file: Sheet,
    pub(super) workflow_id: Option<String>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) last_updated: Option<Timestamp>,
    pub(super) current: Option<Phase>,
    pub(super) current_word: Option<String>,
    pub(super) status: Option<Progress>,
    pub(super) completed: Vec<Entry>,
    pub(super) checkpoints: Vec<Entry>,
    pub(super) interruption_safe: bool,
    pub(super) tasks: Vec<TaskEntry>,
    /// Ids that two tasks have; the first one counts.
    pub(super) doubled: Vec<String>,
    pub(super) failure_reason: Option<String>,
    /// Every file below `memory` that is read, by its path without `.tmp`.
    pub(super) sheets: BTreeMap<String, Sheet>,
    pub(super) reflected: bool,
    pub(super) odd: Oddities,
    /// When the newest of the state files was written.
    pub(super) touched: Option<Timestamp>,
}

impl State {
    pub(super) fn of(files: &Files) -> Self {
        let mut sheets = BTreeMap::new();
        for (path, _) in files.iter() {
            let path = path.strip_suffix(".tmp").unwrap_or(path);
            sheets.entry(path.to_owned()).or_insert_with(|| Sheet::of(files, path));
        }
        let odd = Oddities::default();
        let phase_file = Sheet::of(files, PHASE);
        let execution_file = Sheet::of(files, EXECUTION);
        let empty = Map::new();
        let phase = Object { map: phase_file.map().unwrap_or(&empty), path: PHASE, odd: &odd };
        let execution =
            Object { map: execution_file.map().unwrap_or(&empty), path: EXECUTION, odd: &odd };
        let (tasks, doubled) = task_entries(&execution);
        let id = phase.text("workflow_id").or_else(|| execution.text("workflow_id"));
        let workflow_id = id.filter(|it| !it.trim().is_empty());
        let started_at = phase.moment("started_at");
        let current_word = phase.text("current_phase");
        let state_files = [PHASE, EXECUTION].into_iter().filter_map(|path| files.file(path));
        let (last_updated, status) = (phase.moment("last_updated"), phase.text("phase_status"));
        let completed = entries(&phase, "completed_phases", "completed_at");
        let checkpoints = entries(&phase, "user_checkpoints", "approved_at");
        let interruption_safe = phase.flag("interruption_safe") != Some(false);
        let failure_reason = execution.text("failure_reason");
        let reflected = reflected(files, &sheets, workflow_id.as_deref(), started_at);
        Self {
            workflow_id,
            started_at,
            last_updated,
            current: current_word.as_deref().and_then(Phase::parse),
            current_word,
            status: status.as_deref().and_then(status::progress),
            completed,
            checkpoints,
            interruption_safe,
            tasks,
            doubled,
            failure_reason,
            reflected,
            touched: state_files.filter_map(|file| file.modified).max(),
            phase_file,
            execution_file,
            sheets,
            odd,
        }
    }

    pub(super) fn sheet(&self, path: &str) -> Option<&Sheet> {
        self.sheets.get(path)
    }

    pub(super) fn is_valid(&self, path: &str) -> bool {
        self.sheet(path).is_some_and(Sheet::is_valid)
    }

    pub(super) fn designs(&self) -> impl Iterator<Item = (&str, &Sheet)> {
        let named = self.sheets.iter().map(|(path, sheet)| (path.as_str(), sheet));
        named.filter(|(path, _)| path.starts_with(DESIGNS))
    }

    /// `verdict`, else `status`, else `result` of a verification; `None` when there is none.
    pub(super) fn verdict(&self, path: &str) -> Option<bool> {
        let map = self.sheet(path)?.map()?;
        let spoken = ["verdict", "status", "result"].iter().find_map(|key| map.get(*key));
        Some(spoken.is_some_and(status::is_good))
    }
}

/// The id of the run and the outputs that a state file names, for a listing.
pub(super) fn glance(bytes: &[u8]) -> (Option<String>, Vec<String>) {
    let (Ok(map), odd) = (json::object(bytes), Oddities::default()) else {
        return (None, Vec::new());
    };
    let state = Object { map: &map, path: "", odd: &odd };
    let outputs = ["completed_phases", "tasks"].iter().flat_map(|key| state.objects(key));
    let outputs = outputs.filter_map(|entry| entry.text("output")).collect();
    (state.text("workflow_id").filter(|it| !it.trim().is_empty()), outputs)
}

fn entries(phase: &Object<'_>, key: &str, moment: &str) -> Vec<Entry> {
    let entry = |it: Object<'_>| {
        let word = it.text("phase").unwrap_or_default();
        let (at, output) = (it.moment(moment), it.text("output"));
        Entry { phase: Phase::parse(&word), word, at, output }
    };
    phase.objects(key).into_iter().map(entry).collect()
}

fn task_entries(execution: &Object<'_>) -> (Vec<TaskEntry>, Vec<String>) {
    let (mut tasks, mut doubled): (Vec<TaskEntry>, Vec<String>) = (Vec::new(), Vec::new());
    let mut ids = BTreeSet::new();
    for entry in execution.objects("tasks") {
        let id = entry.text("id").or_else(|| entry.text("task_id"));
        let Some(id) = id.filter(|id| !id.trim().is_empty()) else { continue };
        if !ids.insert(id.clone()) {
            doubled.push(id);
            continue;
        }
        let named = entry.text("output");
        let explicit = named.as_deref().and_then(inside);
        let word = entry.text("status").unwrap_or_default();
        let said = ["description", "title", "name", "summary"];
        let moments = ["started_at", "completed_at"];
        let moment = |key: &'static str| entry.moment(key).map(|at| (key, at));
        tasks.push(TaskEntry {
            status: status::progress(&word),
            word,
            attempts: entry.count("attempts").unwrap_or(0),
            refused: named.is_some() && explicit.is_none(),
            output: explicit.unwrap_or_else(|| in_task(&id, "output.json")),
            summary: said.iter().find_map(|key| entry.text(key)).unwrap_or_default(),
            last_error: entry.text("last_error"),
            strategy: entry.text("retry_strategy"),
            depends_on: entry.texts("depends_on"),
            moments: moments.into_iter().filter_map(moment).collect(),
            id,
        });
    }
    (tasks, doubled)
}

/// A file in the directory of a task.
pub(super) fn in_task(id: &str, file: &str) -> String {
    format!("memory/tasks/{}/{file}", crate::kit::path::component(id))
}

/// Reflections pile up over runs: one counts that names this run, or names none and was not
/// written before this run began.
fn reflected(
    files: &Files,
    sheets: &BTreeMap<String, Sheet>,
    workflow_id: Option<&str>,
    started_at: Option<Timestamp>,
) -> bool {
    sheets.iter().any(|(path, sheet)| {
        let is_one = path == REFLECTION
            || path.strip_prefix(REFLECTIONS).is_some_and(|name| !name.starts_with('_'));
        let Some(map) = sheet.map().filter(|map| is_one && !map.is_empty()) else { return false };
        let written = files.file(path).and_then(|file| file.modified);
        let is_older = matches!((written, started_at), (Some(at), Some(began)) if at < began);
        let named = map.get("workflow_id").and_then(Value::as_str);
        named.map_or(!is_older, |named| workflow_id.is_none_or(|id| id == named))
    })
}
