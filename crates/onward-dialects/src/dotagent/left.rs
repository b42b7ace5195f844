//! What the tasks left in their own directories, where the list of them is lost.
//!
//! Invariant: a task is verified when its verdict says so, or when the run was past all of them.
//! What is older than the design that this run builds was left by a run before it and counts for
//! nothing.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    ID, Phase,
    read::{DESIGN, Sheet, State, in_task},
};
use crate::{
    kit::{
        path::component,
        status::{self, Progress},
    },
    rules::dotagent::plan::{designed, entry, ordered},
};

const TASKS: &str = "memory/tasks/";

/// No file holds a list of tasks.
pub fn is_lost(execution: &Sheet) -> bool {
    !execution.map().is_some_and(|map| map.get("tasks").is_some_and(Value::is_array))
}

/// execution.json as the design and the tasks themselves tell it; `None` where the file is there,
/// where nothing was left, or where nothing says which tasks there were beside those.
pub(super) fn rebuilt(state: &State) -> Option<Map<String, Value>> {
    let is_reached = state.current.is_none_or(|it| it >= Phase::Implementation);
    if !is_lost(&state.execution_file) || state.is_fresh() || !is_reached {
        return None;
    }
    let design = state.sheet(DESIGN).and_then(Sheet::map);
    let mut tasks: Vec<Value> =
        design.map_or_else(Vec::new, |it| ordered(&designed(it)).iter().map(entry).collect());
    let is_known = !tasks.is_empty() || is_past(state);
    if !taken_in(state, &mut tasks) || !is_known {
        return None;
    }
    let mut map = state.execution_file.map().cloned().unwrap_or_default();
    if let Some(id) = &state.workflow_id {
        map.insert(ID.to_owned(), id.as_str().into());
    }
    map.insert("tasks".to_owned(), tasks.into());
    Some(map)
}

/// Brings a list of tasks to where their outputs and verdicts say that they are, and adds those
/// that it does not have; false when nothing was left.
pub fn taken_in(state: &State, tasks: &mut Vec<Value>) -> bool {
    let ids = ids(state);
    let is_listed =
        |id: &str, tasks: &[Value]| tasks.iter().any(|it| it["id"].as_str() == Some(id));
    for id in &ids {
        if !is_listed(id, tasks) {
            tasks.push(entry(&json!({ "id": id, "depends_on": [] })));
        }
    }
    let mut has_left = false;
    for task in tasks {
        let id = task["id"].as_str().unwrap_or_default().to_owned();
        let (said, is_left) = match word(state, &id) {
            Some(word) => (word, true),
            None if is_past(state) => ("verified", false),
            None => continue,
        };
        has_left |= is_left;
        task["status"] = said.into();
        task["attempts"] = 1.into();
    }
    has_left
}

/// The run is past all tasks.
fn is_past(state: &State) -> bool {
    state.current.is_some_and(|it| it > Phase::Implementation)
}

/// The tasks that left something, by their directories.
fn ids(state: &State) -> BTreeSet<String> {
    let in_dir = |path: &String| {
        let (dir, file) = path.strip_prefix(TASKS)?.split_once('/')?;
        let map = state.sheet(path).and_then(Sheet::map).filter(|_| counts(state, path))?;
        let named = map.get("task_id").and_then(Value::as_str).map(str::trim);
        let own = named.filter(|id| component(id) == dir).unwrap_or(dir);
        matches!(file, "output.json" | "verification.json").then(|| own.to_owned())
    };
    state.sheets.keys().filter_map(in_dir).collect()
}

/// It can be read, and this run left it.
fn counts(state: &State, path: &str) -> bool {
    state.is_valid(path) && !state.older.contains(path)
}

/// The status of a task by what it left; `None` when that says nothing.
fn word(state: &State, id: &str) -> Option<&'static str> {
    let own = |path: &String| counts(state, path) && state.another(path, id).is_none();
    let output = Some(in_task(id, "output.json")).filter(own);
    let verdict = Some(in_task(id, "verification.json")).filter(own);
    let said = output.and_then(|path| {
        let word = state.sheet(&path)?.map()?.get("status")?.as_str()?;
        status::progress(word)
    });
    let passed = verdict.and_then(|path| state.verdict(&path));
    match (said, passed) {
        (Some(Progress::Blocked), _) => Some("blocked"),
        (Some(Progress::Failed), _) => Some("failed"),
        (_, Some(true)) => Some("verified"),
        (Some(Progress::PreComplete | Progress::Done | Progress::Verified), _)
            if is_past(state) =>
        {
            Some("verified")
        }
        (Some(Progress::PreComplete | Progress::Done | Progress::Verified), _) => {
            Some("pre_complete")
        }
        (Some(Progress::Pending | Progress::Running) | None, _) => None,
    }
}
