//! The list of tasks, where it is lost and a run of ours still knows it.
//!
//! Invariant: what our journal says of a task is what execution.json said when it was last written;
//! what the task left since then, in our hands or in the original's, goes before it.

use onward_core::{
    address::Address,
    time::Timestamp,
    told::{Change, Restored},
};
use serde_json::{Value, json};

use super::{
    EXECUTION, ID, Phase, left,
    read::{DESIGN, Presence, Sheet, in_task},
    resumed::kept,
    told::DotagentTold,
    write::{put_aside, replace},
};
use crate::{
    kit::{code::Odd, path::shown},
    rules::dotagent::plan::{designed, entry, ordered},
};

/// Gives the result of a step of ours that is done.
type Known<'a> = &'a dyn Fn(&Address) -> Option<Value>;

pub(super) fn restored(told: &DotagentTold, done: Known<'_>, now: Timestamp) -> Option<Restored> {
    let state = &told.state;
    let is_reached = state.current.is_none_or(|it| it >= Phase::Implementation);
    if !left::is_lost(&state.execution_file) || state.is_fresh() || !is_reached {
        return None;
    }
    let mut tasks = planned(told, done)?;
    left::taken_in(state, &mut tasks);
    for task in &mut tasks {
        let id = task["id"].as_str().unwrap_or_default().to_owned();
        let Some((status, attempts)) = of_task(done, &id) else { continue };
        let is_verified = task["status"] == "verified";
        task["attempts"] = attempts.max(1).into();
        if !is_verified {
            task["status"] = status.into();
        }
    }
    for (id, status, attempts) in repairs(done) {
        let fields = json!({"id": id, "status": status, "attempts": attempts, "depends_on": [],
            "output": in_task(&id, "output.json")});
        tasks.retain(|it| it["id"].as_str() != Some(&id));
        tasks.push(fields);
    }
    let verified = tasks.iter().filter(|it| it["status"] == "verified");
    let verified: Vec<&str> = verified.filter_map(|it| it["id"].as_str()).collect();
    let verified = if verified.is_empty() { "none".to_owned() } else { verified.join(", ") };
    let found = format!("our own run knows its tasks; verified: {}", shown(&verified));
    let finding = if state.phase_file.map().is_none() {
        let message = format!("neither phase.json nor execution.json can be read; {found}");
        Odd::StateUnreadable.finding(message).with_hint(super::check::FROM_REPORTS)
    } else {
        let why = match &state.execution_file.main {
            Presence::Missing => super::check::lacking(told),
            Presence::Broken(why) => format!("it cannot be read ({why})"),
            Presence::Whole(_) => "it has no list of tasks".to_owned(),
        };
        Odd::StateRebuilt.finding(format!("{why}; {found}"))
    };
    let mut map = state.execution_file.map().cloned().unwrap_or_default();
    if let Some(id) = &state.workflow_id {
        map.insert(ID.to_owned(), id.as_str().into());
    }
    map.insert("tasks".to_owned(), tasks.into());
    let mut changes = kept(told, now);
    changes.retain(|it: &Change| it.path().ends_with("/execution.json"));
    changes.extend(put_aside(&told.files));
    changes.push(replace(EXECUTION, &map));
    let finding = finding.at_path(crate::kit::path::below(&told.dir, EXECUTION));
    Some(Restored { changes, finding })
}

/// The tasks of the plan that our run works on, with nothing of them begun.
fn planned(told: &DotagentTold, done: Known<'_>) -> Option<Vec<Value>> {
    let listed = done(&Address::from_text("plan/record"))?["tasks"].as_array()?.clone();
    let mut known = told.state.sheet(DESIGN).and_then(Sheet::map).map(designed).unwrap_or_default();
    let drafted = done(&Address::from_text("plan/draft"));
    known.extend(drafted.iter().filter_map(|it| it["tasks"].as_array()).flatten().cloned());
    // What the list says of a task is less than what the plan said of it.
    let whole = |it: &Value| known.iter().find(|task| task["id"] == it["id"]).unwrap_or(it).clone();
    let tasks: Vec<Value> = listed.iter().map(whole).collect();
    (!tasks.is_empty()).then(|| ordered(&tasks).iter().map(entry).collect())
}

/// The status of a task and its attempts; `None` when it was never begun.
fn of_task(done: Known<'_>, id: &str) -> Option<(String, u64)> {
    let task = Address::from_text("implementation").item(id);
    let step = |rest: &str| done(&Address::from_text(&format!("{task}/{rest}")));
    let attempt = |number: u64| {
        step(&format!("try[{number}]/brief")).map(|it| it["attempt"].as_u64().unwrap_or(number))
    };
    let tries = (1..).map_while(|number| Some((number, attempt(number)?)));
    let last = tries.last();
    if step("verified").is_some() {
        return Some(("verified".to_owned(), last.map_or(1, |it| it.1)));
    }
    let (number, attempts) = last?;
    let settled = step(&format!("try[{number}]/settle"));
    let left = step(&format!("try[{number}]/output"));
    let (status, more) = match (settled, left) {
        (Some(settled), _) if settled["over"] == true => ("pre_complete".to_owned(), 0),
        (Some(_), _) => ("pending".to_owned(), 1),
        (None, Some(left)) => (left["status"].as_str().unwrap_or("running").to_owned(), 0),
        (None, None) => ("running".to_owned(), 0),
    };
    Some((status, attempts + more))
}

/// What mended, or mends, a verification of the whole: each task once, as its last turn left it.
fn repairs(done: Known<'_>) -> Vec<(String, &'static str, u64)> {
    let step = |rest: String| done(&Address::from_text(&rest));
    let turns =
        (1..).map_while(|number: u32| Some((number, step(format!("repair[{number}]/begin"))?)));
    let mut all: Vec<(String, &'static str, u64)> = Vec::new();
    for (number, begun) in turns {
        let Some(id) = begun["task"].as_str() else { continue };
        let is_over = step(format!("repair[{number}]/mended")).is_some();
        let status = if is_over { "verified" } else { "running" };
        all.retain(|it| it.0 != id);
        all.push((id.to_owned(), status, begun["attempt"].as_u64().unwrap_or(1)));
    }
    all
}
