//! Where else a person may enter, and what our log says then.
//!
//! Invariant: events alone take a run back: no artifact changes, and what was said before stays. An
//! artifact that is to be made again counts no more while it is as the event found it.

use onward_core::{
    digest::Digest,
    told::{Change, Entering, NoEntry},
};
use serde_json::{Map, Value, json};

use super::{
    Code,
    event::{ENTERED, VOID},
    read::{GRAPH, PLAN, PRD},
    tasks::{Stage, Task},
    told::AgentMemoryTold,
    write::{Entry, logged},
};
use crate::kit::path::shown;

/// Nothing when that is where the run goes on anyway.
pub(super) fn enter(told: &AgentMemoryTold, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
    if at.place == told.code.as_str() || told.point().iter().any(|it| it == at.place) {
        return Ok(Vec::new());
    }
    let task = told.tasks.all.iter().find(|it| it.address().as_str() == at.place);
    let wanted = task.map_or_else(|| meant(at.place), |_| Some(Code::Execute));
    let wanted = wanted.ok_or_else(|| NoEntry::Unknown(at.place.to_owned()))?;
    // The tasks of a phase are entered one by one.
    let is_ahead = match task {
        // What it depends on would be passed over.
        Some(task) if task.stage == Stage::Open && !told.tasks.is_free(task) => true,
        Some(_) => wanted.phase() > told.ahead.phase() && told.ahead != Code::Complete,
        None => place(wanted) >= place(told.ahead),
    };
    if is_ahead {
        let place = shown(at.place);
        return Err(NoEntry::Ahead(format!("{place} lies ahead of what is done")));
    }
    let entries = match (wanted, task) {
        (Code::Intake, _) => again(told, 0, &[PRD, PLAN, GRAPH], at),
        (Code::Planning, _) if at.place == "tasks" => again(told, 1, &[GRAPH], at),
        (Code::Planning, _) => again(told, 1, &[PLAN, GRAPH], at),
        (Code::Approval, _) => back(told, 1, at),
        (Code::Execute, Some(task)) => [vec![reopened(task, at)], back(told, 2, at)].concat(),
        (Code::Execute, None) => {
            let again = told.tasks.all.iter().filter(|it| is_executed_again(told.ahead, it));
            [again.map(|it| reopened(it, at)).collect(), back(told, 2, at)].concat()
        }
        (Code::Verify, _) => {
            let done = told.tasks.all.iter().filter(|it| it.stage == Stage::Done);
            [done.map(|it| doubted(it, at)).collect(), back(told, 2, at)].concat()
        }
        (Code::Cleanup, _) => back(told, 3, at),
        (Code::Consolidate, _) => back(told, 4, at),
        (Code::Blocked | Code::Complete, _) => {
            return Err(NoEntry::Ahead("nothing stands in the way".to_owned()));
        }
    };
    Ok(logged(told.files(), &entries, at.now))
}

/// A code, a phase, or a step of the workflow.
fn meant(place: &str) -> Option<Code> {
    match place {
        "intake" | "0" => Some(Code::Intake),
        "planning" | "plan" | "tasks" | "1" => Some(Code::Planning),
        "approval" | "approve" => Some(Code::Approval),
        "execute" | "2" => Some(Code::Execute),
        "verify" => Some(Code::Verify),
        "blocked" => Some(Code::Blocked),
        "cleanup" | "pr" | "3" => Some(Code::Cleanup),
        "consolidate" | "4" => Some(Code::Consolidate),
        _ => None,
    }
}

/// In the order of the work.
fn place(code: Code) -> usize {
    match code {
        Code::Intake => 0,
        Code::Planning => 1,
        Code::Approval => 2,
        Code::Execute => 3,
        Code::Verify => 4,
        Code::Blocked => 5,
        Code::Cleanup => 6,
        Code::Consolidate => 7,
        Code::Complete => 8,
    }
}

/// The run is in this phase again.
fn back(told: &AgentMemoryTold, phase: u32, at: &Entering<'_>) -> Vec<Entry> {
    let details = json!({ ENTERED: at.place });
    let from = told.phase().unwrap_or(4);
    let is_later = from > phase || told.code == Code::Complete;
    let entry = Entry::phase(from, phase, "user", "entered here", details);
    taken_up(told).into_iter().chain(is_later.then_some(entry)).collect()
}

/// A run that is over is taken up first.
fn taken_up(told: &AgentMemoryTold) -> Option<Entry> {
    (told.code == Code::Complete).then(|| Entry::new("session-resumed", json!({})))
}

/// The run is in this phase again, and these are made again in it.
fn again(told: &AgentMemoryTold, phase: u32, made: &[&str], at: &Entering<'_>) -> Vec<Entry> {
    let digest = |path: &&str| {
        let bytes = told.files().bytes(path)?;
        Some(((*path).to_owned(), Value::from(Digest::of(bytes).to_string())))
    };
    let void: Map<String, Value> = made.iter().filter_map(digest).collect();
    let details = json!({ ENTERED: at.place, VOID: void });
    let from = told.phase().unwrap_or(4);
    let entry = Entry::phase(from, phase, "user", "entered here", details);
    taken_up(told).into_iter().chain([entry]).collect()
}

/// From where nothing can be executed, what stands in the way; from the verifier, what waits for
/// it; from later on, everything.
fn is_executed_again(code: Code, task: &Task) -> bool {
    match (code, task.stage) {
        (Code::Blocked, stage) => matches!(stage, Stage::Blocked | Stage::UsedUp),
        (Code::Verify, stage) => stage == Stage::Unverified,
        (
            Code::Intake
            | Code::Planning
            | Code::Approval
            | Code::Execute
            | Code::Cleanup
            | Code::Consolidate
            | Code::Complete,
            _,
        ) => true,
    }
}

fn reopened(task: &Task, at: &Entering<'_>) -> Entry {
    let details = json!({ "reason": "a person asked for it", ENTERED: at.place });
    Entry::new("task-unblocked", details).of_task(&task.entry.id)
}

/// Done, and to be verified again.
fn doubted(task: &Task, at: &Entering<'_>) -> Entry {
    let details = json!({ "reason": "a person asked for another verdict", ENTERED: at.place });
    Entry::new("task-implemented", details).of_task(&task.entry.id)
}
