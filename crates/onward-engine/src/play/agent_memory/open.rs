//! The beginning: the run's directory, the task graph, the approval.

use onward_dialects::{
    agent_memory::{
        read::{CONSTITUTION, GRAPH, GraphFile, State},
        write::{self, Entry, approved},
    },
    kit::path::shown,
    rules::agent_memory::page,
};
use serde_json::{Value, json};

use super::{CallError, Order, desk::Desk};
use crate::world::real::wall_clock;

pub(super) fn open(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (state, _) = desk.look()?;
    if state.log.events.is_empty() {
        let details = desk.details(json!({ "request": order.request }));
        desk.log(&[Entry::new("run-started", details)])?;
    }
    Ok(json!({ "planned": state.plan, "broken_down": has_tasks(&state) }))
}

fn has_tasks(state: &State) -> bool {
    state.graph().is_some_and(|it| !it.tasks.is_empty()) && state.uncontracted.is_empty()
}

/// The task graph can be worked with.
pub(super) fn check(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (state, _) = desk.look()?;
    usable(&state)?;
    Ok(json!({ "tasks": state.graph().map_or(0, |it| it.tasks.len()) }))
}

fn usable(state: &State) -> Result<(), CallError> {
    let why = match &state.graph {
        GraphFile::Missing => Some("is missing".to_owned()),
        GraphFile::Broken(why) => Some(format!("cannot be read: {why}")),
        GraphFile::Whole(graph) if graph.tasks.is_empty() => Some("has no task".to_owned()),
        GraphFile::Whole(graph) => {
            let waits = |it: &Vec<String>| {
                format!("has tasks that wait for each other: {}", shown(&it.join(", ")))
            };
            let twice = || graph.doubled.first().map(|id| format!("has two tasks `{id}`"));
            graph.circles.first().map(waits).or_else(twice)
        }
    };
    let Some(why) = why else { return Ok(()) };
    let hint = "fix it by hand, or resume: the breakdown is made again";
    Err(CallError::new(format!("{GRAPH} {why}")).hint(hint))
}

/// The transition comes first: without the constitution the user is still to be asked, so that a
/// kill between the two loses nothing.
pub(super) fn approve(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (state, tasks) = desk.look()?;
    if !has_tasks(&state) {
        usable(&state)?;
    }
    if state.hint.is_none_or(|phase| phase < 2) {
        let details = desk.details(json!({}));
        let entry = Entry::phase(1, 2, "user_approval", &order.notes, details);
        desk.log(&[entry])?;
    }
    let page = if state.constitution {
        let files = desk.files()?;
        let page = String::from_utf8_lossy(files.bytes(CONSTITUTION).unwrap_or_default());
        page::approved_again(&page, &order.notes, wall_clock())
    } else {
        let run = order.dir.file_name().unwrap_or_default().to_string_lossy();
        Some(page::constitution(&run, &order.request, &order.notes, wall_clock()))
    };
    if let Some(page) = page {
        desk.replace(CONSTITUTION, page.as_bytes())?;
    }
    Ok(approved(&tasks, &[]))
}

/// What got lost since the approval.
pub(super) fn lost(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    Ok(write::lost(&desk.look()?.0))
}
