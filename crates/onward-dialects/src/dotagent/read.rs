//! The files of a run as one value, each read once.
//!
//! Invariant: of a file and its `.tmp`, the file counts when it parses, else the `.tmp` when that
//! does. Whatever does not parse is kept as such for `check`.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::{EXECUTION, ID, PHASE, Phase, left, write::CUT_OFF};
use crate::{
    File, Files,
    kit::{
        json::{self, Object, Oddities, plain},
        path::inside,
        status::{self, Progress},
    },
};

pub const DEMAND: &str = "memory/reports/demand.json";
pub const DESIGNS: &str = "memory/reports/designs/";
pub const DESIGN: &str = "memory/reports/final_design.json";
/// The roundtable's design until the user has said yes to it; only this program writes it.
pub const MERGED: &str = "memory/reports/merged_design.json";
pub const VERIFICATION: &str = "memory/reports/verification.json";
pub const REFLECTION: &str = "memory/reports/reflection.json";
pub const REFLECTIONS: &str = "memory/reflections/";
pub const CONTRACTS: &str = "memory/contracts/";

/// What became of one file that should hold an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Presence {
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

    pub fn map(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Whole(map) => Some(map),
            Self::Missing | Self::Broken(_) => None,
        }
    }

    /// Tasks by their ids are a list of tasks.
    fn listed(mut self) -> Self {
        if let Self::Whole(map) = &mut self
            && let Some(Value::Object(tasks)) = map.get_mut("tasks")
            && tasks.values().all(Value::is_object)
        {
            let named = |(id, mut task): (String, Value)| {
                if let Some(task) = task.as_object_mut() {
                    task.entry("id").or_insert_with(|| id.into());
                }
                task
            };
            let tasks: Vec<Value> = std::mem::take(tasks).into_iter().map(named).collect();
            map.insert("tasks".to_owned(), tasks.into());
        }
        self
    }
}

/// A file and what was left of writing it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    pub main: Presence,
    pub tmp: Presence,
}

impl Sheet {
    pub fn of(files: &Files, path: &str) -> Self {
        let main = Presence::of(files.file(path));
        let tmp = Presence::of(files.file(&format!("{path}.tmp")));
        if path == EXECUTION {
            return Self { main: main.listed(), tmp: tmp.listed() };
        }
        Self { main, tmp }
    }

    /// The one that counts.
    pub fn map(&self) -> Option<&Map<String, Value>> {
        self.main.map().or_else(|| self.tmp.map())
    }

    /// It holds something: an empty object says nothing.
    pub fn is_valid(&self) -> bool {
        self.map().is_some_and(|map| !map.is_empty())
    }

    pub fn is_missing(&self) -> bool {
        self.main == Presence::Missing && self.tmp == Presence::Missing
    }

    fn id(&self) -> Option<String> {
        let id = plain(self.map()?.get(ID)?)?.trim().to_owned();
        Some(id).filter(|it| !it.is_empty())
    }
}

/// The workflow whose tasks execution.json lists, where phase.json is of another one.
pub fn stranger(files: &Files) -> Option<String> {
    let (phase, execution) = (Sheet::of(files, PHASE), Sheet::of(files, EXECUTION));
    let (ours, theirs) = (phase.id()?, execution.id()?);
    (ours != theirs).then_some(theirs)
}

/// An entry of `completed_phases` or `user_checkpoints`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub phase: Option<Phase>,
    /// As it is spelled.
    pub word: String,
    pub at: Option<Timestamp>,
    pub output: Option<String>,
}

/// One task of execution.json as it is written there.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEntry {
    pub id: String,
    pub status: Option<Progress>,
    pub word: String,
    pub attempts: u32,
    pub output: String,
    /// The entry names an output that lies outside; nothing looks there.
    pub refused: bool,
    pub summary: String,
    pub last_error: Option<String>,
    pub strategy: Option<String>,
    /// The attempt of ours that was cut off last, and counted.
    pub cut_off: Option<String>,
    pub depends_on: Vec<String>,
    pub moments: Vec<(&'static str, Timestamp)>,
}

/// Everything that the files say, before anything is concluded from it.
#[derive(Debug)]
pub struct State {
    pub phase_file: Sheet,
    /// Missing where it is of another workflow.
    pub execution_file: Sheet,
    /// That workflow.
    pub stranger: Option<String>,
    pub workflow_id: Option<String>,
    pub started_at: Option<Timestamp>,
    pub last_updated: Option<Timestamp>,
    pub current: Option<Phase>,
    pub current_word: Option<String>,
    pub status: Option<Progress>,
    pub completed: Vec<Entry>,
    pub checkpoints: Vec<Entry>,
    /// The architects that were asked, where this program asked them.
    pub architects: Option<Vec<String>>,
    pub interruption_safe: bool,
    pub tasks: Vec<TaskEntry>,
    /// execution.json as other files tell it, where it is lost: the tasks are those in it.
    pub rebuilt: Option<Map<String, Value>>,
    /// Ids that two tasks have; the first one counts.
    pub doubled: Vec<String>,
    pub failure_reason: Option<String>,
    /// Every file below `memory` that is read, by its path without `.tmp`.
    pub sheets: BTreeMap<String, Sheet>,
    pub reflected: bool,
    /// Reports that were written after the user said yes to the demand.
    pub since_demand: BTreeSet<String>,
    /// Files that are older than the design that the run builds.
    pub older: BTreeSet<String>,
    pub odd: Oddities,
    /// When the newest of the state files was written.
    pub touched: Option<Timestamp>,
}

impl State {
    pub fn of(files: &Files) -> Self {
        let mut sheets = BTreeMap::new();
        for (path, _) in files.iter() {
            let path = path.strip_suffix(".tmp").unwrap_or(path);
            sheets.entry(path.to_owned()).or_insert_with(|| Sheet::of(files, path));
        }
        let odd = Oddities::default();
        let phase_file = Sheet::of(files, PHASE);
        let stranger = stranger(files);
        let nothing = || Sheet { main: Presence::Missing, tmp: Presence::Missing };
        let execution_file =
            if stranger.is_some() { nothing() } else { Sheet::of(files, EXECUTION) };
        let empty = Map::new();
        let phase = Object { map: phase_file.map().unwrap_or(&empty), path: PHASE, odd: &odd };
        let execution =
            Object { map: execution_file.map().unwrap_or(&empty), path: EXECUTION, odd: &odd };
        let (tasks, doubled) = task_entries(&execution);
        let id = phase.text(ID).or_else(|| execution.text(ID));
        let workflow_id = id.filter(|it| !it.trim().is_empty());
        let started_at = phase.moment("started_at");
        let current_word = phase.text("current_phase");
        let state_files = [PHASE, EXECUTION].into_iter().filter_map(|path| files.file(path));
        let (last_updated, status) = (phase.moment("last_updated"), phase.text("phase_status"));
        let completed = entries(&phase, "completed_phases", "completed_at");
        let checkpoints = entries(&phase, "user_checkpoints", "approved_at");
        let asked = phase.get("architects").is_some();
        let architects = asked.then(|| phase.texts("architects"));
        let interruption_safe = phase.flag("interruption_safe") != Some(false);
        let failure_reason = execution.text("failure_reason");
        let reflected = reflected(files, &sheets, workflow_id.as_deref(), started_at);
        let is_yes = |it: &&Entry| it.phase == Some(Phase::Requirements);
        let yes_at = checkpoints.iter().filter(is_yes).filter_map(|it| it.at).max();
        let is_later = |file: &File| yes_at.is_some_and(|yes| file.modified >= Some(yes));
        let later = files.iter().filter(|(_, file)| is_later(file));
        let since_demand = later.map(|(path, _)| path.to_owned()).collect();
        let is_designed = |it: &&Entry| it.phase == Some(Phase::Architecture);
        let designed_at = completed.iter().filter(is_designed).filter_map(|it| it.at).max();
        // Its clock has seconds; the design's own time tells what came before it within one.
        let design_at = files.file(DESIGN).and_then(|file| file.modified).max(designed_at);
        let design_at = design_at.filter(|at| designed_at.is_some_and(|it| at.ms_since(it) < 1000));
        let older = older(files, design_at.or(designed_at).or(started_at));
        let mut state = Self {
            stranger,
            workflow_id,
            started_at,
            last_updated,
            current: current_word.as_deref().and_then(Phase::parse),
            current_word,
            status: status.as_deref().and_then(status::progress),
            completed,
            checkpoints,
            architects,
            interruption_safe,
            tasks,
            rebuilt: None,
            doubled,
            failure_reason,
            reflected,
            since_demand,
            older,
            touched: state_files.filter_map(|file| file.modified).max(),
            phase_file,
            execution_file,
            sheets,
            odd,
        };
        state.rebuilt = left::rebuilt(&state);
        if let Some(map) = &state.rebuilt {
            let execution = Object { map, path: EXECUTION, odd: &state.odd };
            (state.tasks, state.doubled) = task_entries(&execution);
        }
        state
    }

    pub fn sheet(&self, path: &str) -> Option<&Sheet> {
        self.sheets.get(path)
    }

    pub fn is_valid(&self, path: &str) -> bool {
        self.sheet(path).is_some_and(Sheet::is_valid)
    }

    /// Nothing was begun: a checkpoint that waits for its run.
    pub fn is_fresh(&self) -> bool {
        let is_first = matches!(self.current, None | Some(Phase::Requirements));
        is_first && self.completed.is_empty() && self.status == Some(Progress::Pending)
    }

    /// The last phase is said to be complete.
    pub fn is_over(&self) -> bool {
        self.current == Some(Phase::Reflection) && self.status == Some(Progress::Done)
    }

    pub fn designs(&self) -> impl Iterator<Item = (&str, &Sheet)> {
        let named = self.sheets.iter().map(|(path, sheet)| (path.as_str(), sheet));
        named.filter(|(path, _)| path.starts_with(DESIGNS))
    }

    /// The task that a file names, where that is another one than it should be about.
    pub fn another(&self, path: &str, id: &str) -> Option<String> {
        let named = match self.sheet(path)?.map()?.get("task_id")? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        (!named.is_empty() && named != id.trim()).then_some(named)
    }

    /// `verdict`, else `status`, else `result` of a verification; `None` when there is none.
    pub fn verdict(&self, path: &str) -> Option<bool> {
        Some(is_passed(self.sheet(path)?.map()?))
    }
}

/// What the page of a verifier says.
pub fn is_passed(page: &Map<String, Value>) -> bool {
    let spoken = ["verdict", "status", "result"].iter().find_map(|key| page.get(*key));
    spoken.is_some_and(status::is_good)
}

/// The id of the run and the outputs that a state file names, for a listing.
pub fn glance(bytes: &[u8]) -> (Option<String>, Vec<String>) {
    let (Ok(map), odd) = (json::object(bytes), Oddities::default()) else {
        return (None, Vec::new());
    };
    let state = Object { map: &map, path: "", odd: &odd };
    let outputs = ["completed_phases", "tasks"].iter().flat_map(|key| state.objects(key));
    let outputs = outputs.filter_map(|entry| entry.text("output")).collect();
    (state.text(ID), outputs)
}

fn older(files: &Files, than: Option<Timestamp>) -> BTreeSet<String> {
    let is_older = |file: &File| file.modified.zip(than).is_some_and(|(at, than)| at < than);
    let all = files.iter().filter(|(_, file)| is_older(file));
    all.map(|(path, _)| path.to_owned()).collect()
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
        let Some(id) = id.filter(|id| !id.trim().is_empty()) else {
            entry.nameless();
            continue;
        };
        if !ids.insert(id.clone()) {
            doubled.push(id);
            continue;
        }
        let named = entry.text("output").filter(|it| !it.trim().is_empty());
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
            cut_off: entry.text(CUT_OFF),
            depends_on: entry.texts_of(&["depends_on", "dependencies"]),
            moments: moments.into_iter().filter_map(moment).collect(),
            id,
        });
    }
    (tasks, doubled)
}

/// The id of the task that mends what the verification of the whole named.
pub fn repair_id(number: usize) -> String {
    format!("repair-{number}")
}

pub fn is_repair(id: &str) -> bool {
    let number = id.strip_prefix("repair-");
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A file in the directory of a task.
pub fn in_task(id: &str, file: &str) -> String {
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
        let named = map.get(ID).and_then(plain);
        named.map_or(!is_older, |named| workflow_id.is_none_or(|id| id == named))
    })
}
