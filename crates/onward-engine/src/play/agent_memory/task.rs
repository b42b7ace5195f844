//! One task: claimed, executed by an agent, recorded; and what is left of all of them.

use onward_dialects::{
    agent_memory::{
        read::{State, contract},
        tasks::{Stage, Task},
        write::{Entry, surveyed},
    },
    rules::agent_memory::outcome::Outcome,
};
use serde_json::{Value, json};

use super::{CallError, Order, desk::Desk};

/// Whether the task is to be executed now; if so, that is logged once for each step. One that was
/// taken out of the task graph is not.
pub(super) fn claim(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (state, tasks) = desk.look()?;
    let Some(task) = tasks.get(&order.task) else {
        return Ok(json!({ "go": false, "why": "it is not in the task graph any more" }));
    };
    let is_free = tasks.is_free(task);
    if desk.has_said(task) && task.orphan && is_free {
        return Ok(claimed(&state, task, task.attempts));
    }
    let why = match task.stage {
        Stage::Open if is_free => None,
        Stage::Open => Some("what it depends on is not done"),
        Stage::Unverified | Stage::Mending => Some("it is implemented"),
        Stage::Done => Some("it is done"),
        Stage::Blocked => Some("it is blocked"),
        Stage::UsedUp => Some("it was tried as often as it may be"),
    };
    if let Some(why) = why {
        return Ok(json!({ "go": false, "why": why }));
    }
    let attempt = task.attempts + 1;
    let details = desk.details(json!({ "attempt": attempt }));
    desk.log(&[Entry::new("task-claimed", details).of_task(&task.entry.id)])?;
    Ok(claimed(&state, task, attempt))
}

/// The contract is named where it is to be written again first: others have one, and this task
/// has none.
fn claimed(state: &State, task: &Task, attempt: u32) -> Value {
    let is_missing = state.uncontracted.contains(&task.entry.id);
    let missing = if is_missing { contract(&task.entry.id) } else { String::new() };
    json!({ "go": true, "attempt": attempt, "contract": missing })
}

/// What came of it, and which tasks are verified now.
pub(super) fn record(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (_, tasks) = desk.look()?;
    let outcome = Outcome::of(&order.outcome, &order.result);
    // One that was taken out of the task graph meanwhile is told of all the same.
    if !tasks.get(&order.task).is_some_and(|task| desk.has_said(task)) {
        let details = desk.details(outcome.details(&order.outcome, &order.result));
        desk.log(&[Entry::new(outcome.event(), details).of_task(&order.task)])?;
    }
    let (_, tasks) = desk.look()?;
    Ok(json!({ "outcome": outcome.as_str(), "verify": tasks.due(&order.task) }))
}

/// What is left to be done, verified and decided.
pub(super) fn survey(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (_, tasks) = desk.look()?;
    Ok(surveyed(&tasks))
}

/// The user's word on tasks that cannot go on by themselves. One that goes on by now needs none.
pub(super) fn settle(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (_, tasks) = desk.look()?;
    let mut entries = Vec::new();
    for id in &order.tasks {
        let is_stuck = |task: &Task| matches!(task.stage, Stage::Blocked | Stage::UsedUp);
        if !tasks.get(id).is_some_and(is_stuck) {
            continue;
        }
        let kind = match order.choice.as_str() {
            "skip" => "task-completed",
            _ => "task-unblocked",
        };
        let skipped = order.choice == "skip";
        let details = desk.details(json!({ "skipped": skipped, "notes": order.notes }));
        entries.push(Entry::new(kind, details).of_task(id));
    }
    desk.log(&entries)?;
    Ok(json!({ "settled": order.tasks }))
}
