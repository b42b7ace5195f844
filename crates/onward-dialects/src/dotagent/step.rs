//! What the files say about each step of the built-in workflow.
//!
//! Invariant: the files are the witness of the steps that write them, and of no other. What an
//! agent did is done when a file tells of what came of it, and otherwise they are silent: a result
//! that waits in our journal is not lost because nothing has written it down yet.

use onward_core::{
    address::{Address, encode_key},
    told::{Done, StepTold},
};
use serde_json::{Value, json};

use super::{
    Code, EXECUTION, Phase,
    read::{DEMAND, DESIGN, Entry, MERGED, VERIFICATION},
    tasks::{Stage, Task, Turn},
    told::{DotagentTold, task_of},
    write::REBUILT,
};
use crate::rules::dotagent::phases::design_path;

/// How a step is told that is not done.
#[derive(Clone, Copy)]
enum Otherwise {
    /// It writes the files: they would tell.
    Undone,
    Silent,
}

impl Otherwise {
    fn told(self) -> StepTold {
        match self {
            Self::Undone => StepTold::Undone,
            Self::Silent => StepTold::Silent,
        }
    }
}

/// Noted with a yes to the demand that no file names.
const IMPLIED: &str = "no file says so; the run continued after it";

/// What the checkpoint says of the user's yes to the demand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Yes,
    Nothing,
    /// It was lost, or made again from the reports.
    Unknown,
}

fn said(told: &DotagentTold) -> Said {
    let is_said = |it: &Entry| it.phase == Some(Phase::Requirements);
    match told.state.phase_file.map() {
        Some(_) if told.state.checkpoints.iter().any(is_said) => Said::Yes,
        Some(map) if !map.contains_key(REBUILT) => Said::Nothing,
        Some(_) | None => Said::Unknown,
    }
}

pub(super) fn told(told: &DotagentTold, at: &Address) -> StepTold {
    use Otherwise::{Silent, Undone};
    let (first, rest) = at.as_str().split_once('/').unwrap_or((at.as_str(), ""));
    let (id, key) = first.split_once('[').unwrap_or((first, ""));
    let key = key.trim_end_matches(']');
    let is_past = |phase| told.is_past(phase);
    let has_demand = is_past(Phase::Requirements) || told.code == Code::Approval;
    let has_designs = is_past(Phase::Architecture) || told.code == Code::Roundtable;
    let is_merged = is_past(Phase::Architecture) || told.is_merged();
    let is_built = is_past(Phase::Implementation) || told.repairs;
    let has_plan = is_built || told.code == Code::Implementation && !told.tasks.is_empty();
    let is_over = told.code == Code::Complete;
    let approve = || json!({ "option": "approve" });
    let said = said(told);
    // What agents did is not lost because nothing has written it down yet.
    let unwritten = if told.is_entered() { Undone } else { Silent };
    let content = |path: &str| told.state.sheet(path).and_then(|it| it.map().cloned());
    let content = |path: &str| Value::Object(content(path).unwrap_or_default());
    match (id, rest) {
        ("requirements", "open") => {
            done(told, !told.state.is_fresh(), super::PHASE, json!({}), Undone)
        }
        ("requirements", "draft") => done(told, has_demand, DEMAND, content(DEMAND), unwritten),
        ("requirements", _) => done(told, has_demand, DEMAND, json!({}), Undone),
        ("approve", _) => {
            let noted = json!({ "option": "approve", "comment": IMPLIED });
            match (is_past(Phase::Requirements), said) {
                (true, Said::Yes) => StepTold::Done(Done::recorded(approve())),
                (true, Said::Unknown) => StepTold::Done(Done::inferred(approve())),
                (true, Said::Nothing) => StepTold::Done(Done::implied(noted)),
                (false, _) => StepTold::Undone,
            }
        }
        ("approved", _) if is_past(Phase::Requirements) && said == Said::Nothing => {
            StepTold::Done(Done::implied(json!({ "noted": IMPLIED })))
        }
        ("approved", _) => done(told, is_past(Phase::Requirements), DEMAND, json!({}), Undone),
        ("architects", step) => {
            let mut asked = told.state.architects.iter().flatten();
            let name = asked.find(|name| encode_key(name) == key);
            let is_asked = name.is_some();
            let path = design_path(name.map_or(key, String::as_str));
            let reached = told.code.phase().is_none_or(|at| at >= Phase::Architecture);
            let is_there = has_designs || is_asked && reached && told.state.is_valid(&path);
            let otherwise = if step == "draft" { unwritten } else { Undone };
            let result = if step == "draft" { content(&path) } else { json!({}) };
            done(told, is_there, &path, result, otherwise)
        }
        ("roundtable", "draft") => done(told, is_merged, DESIGN, content(MERGED), unwritten),
        ("roundtable", _) => done(told, is_merged, DESIGN, json!({}), Undone),
        // A design is final when the user has said yes to it.
        ("approve-design", _) => {
            done(told, is_past(Phase::Architecture), DESIGN, approve(), Undone)
        }
        ("approved-design", _) => {
            done(told, is_past(Phase::Architecture), DESIGN, json!({}), Undone)
        }
        ("plan", "look") => done(told, has_plan, EXECUTION, told.planned(), unwritten),
        ("plan", "record") => {
            let is_open = told.code == Code::Implementation;
            growing(done(told, has_plan, EXECUTION, told.planned(), Undone), is_open)
        }
        // No task is known, and the run is past all of them.
        ("plan", _) if is_built && told.tasks.iter().all(|it| it.repairs) => {
            StepTold::PassedOver("the files know of no task".to_owned())
        }
        ("implementation", step) => of_task(told, at, step),
        ("verification", step) => {
            let is_done = is_past(Phase::Verification) || told.repairs;
            let has_begun = is_done || told.code == Code::Verification && is_at(told);
            let result = json!({ "passed": !told.repairs, "failures": failures(told) });
            // While it is mended, the files are back in the phase before.
            let mends = told.tasks.iter().any(|it| it.repairs);
            let otherwise = match step {
                "check" => unwritten,
                _ if mends => unwritten,
                _ => Undone,
            };
            match step {
                "begin" => done(told, has_begun, VERIFICATION, json!({}), otherwise),
                _ => done(told, is_done, VERIFICATION, result, otherwise),
            }
        }
        // It is over, and what is left of it has nothing more to mend.
        ("repair", "") if is_past(Phase::Verification) => StepTold::Done(Done::recorded(json!({}))),
        ("repair", _) if is_past(Phase::Verification) => {
            StepTold::PassedOver("the verification of the whole has passed".to_owned())
        }
        // A plan is drafted for its record; what a repair mended is verified again first.
        ("plan", "draft") | ("repair", _) => unwritten.told(),
        ("reflection", "draft") => done(told, is_over, "", json!({}), unwritten),
        ("reflection", _) => done(told, is_over, "", json!({}), Undone),
        _ => StepTold::Silent,
    }
}

/// Another program may add tasks while they are worked on.
fn growing(told: StepTold, is_open: bool) -> StepTold {
    match told {
        StepTold::Done(done) if is_open => StepTold::Done(done.growing("tasks")),
        told @ (StepTold::Done(_)
        | StepTold::PassedOver(_)
        | StepTold::Unproved(_)
        | StepTold::Undone
        | StepTold::Silent) => told,
    }
}

/// The files name the phase in which the run re-enters.
fn is_at(told: &DotagentTold) -> bool {
    told.state.current == told.code.phase()
}

fn failures(told: &DotagentTold) -> Value {
    let map = told.state.sheet(VERIFICATION).and_then(|it| it.map());
    let named = ["failures", "issues", "errors"].iter().find_map(|key| map?.get(*key));
    let texts = |list: &Vec<Value>| {
        let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
        list.iter().map(text).collect::<Vec<String>>()
    };
    match named.and_then(Value::as_array) {
        Some(list) => json!(texts(list)),
        None => map
            .filter(|_| told.repairs)
            .map_or_else(|| json!([]), |map| json!([Value::Object(map.clone()).to_string()])),
    }
}

/// One step of a task. All that is told belongs to its first try.
fn of_task(told: &DotagentTold, at: &Address, step: &str) -> StepTold {
    let place = told.places.get(&task_of(at)).and_then(|index| told.tasks.get(*index));
    let Some(task) = place else {
        return if told.is_entered() { StepTold::Undone } else { StepTold::Silent };
    };
    let is_past = told.is_past(Phase::Implementation);
    let stage = if is_past { Stage::Verified } else { task.stage };
    let ready = json!({ "status": "pre_complete", "summary": task.summary });
    let blocked = json!({ "status": "blocked", "summary": task.summary });
    let begun = json!({ "text": "", "attempt": task.attempts });
    let verdict = |passed: bool| json!({ "passed": passed, "failures": [] });
    let over = |over: bool| json!({ "over": over });
    if stage == Stage::Verified && step.starts_with("try") && !step.starts_with("try[1]/") {
        return if step == "try" {
            StepTold::Done(proof(told, task, is_past, json!({})))
        } else {
            StepTold::PassedOver("the task is verified".to_owned())
        };
    }
    let result = match (stage, step) {
        (
            Stage::Implemented | Stage::Rejected | Stage::Blocked | Stage::Verified,
            "try[1]/brief",
        ) => Some(begun),
        (Stage::Blocked, "try[1]/implement" | "try[1]/output") => Some(blocked),
        (
            Stage::Implemented | Stage::Rejected | Stage::Verified,
            "try[1]/implement" | "try[1]/output",
        ) => Some(ready),
        (Stage::Rejected, "try[1]/verify") => Some(verdict(false)),
        (Stage::Rejected, "try[1]/settle") => Some(over(false)),
        (Stage::Verified, "try[1]/verify") => Some(verdict(true)),
        (Stage::Verified, "try[1]/settle") => Some(over(true)),
        (Stage::Verified, "merge") => Some(json!({ "merged": true, "conflicts": [] })),
        (Stage::Verified, "verified") => Some(json!({})),
        (
            Stage::Open | Stage::Blocked | Stage::Implemented | Stage::Rejected | Stage::Verified,
            _,
        ) => None,
    };
    match result {
        Some(result) => StepTold::Done(proof(told, task, is_past, result)),
        // A task that was set back to its beginning is done from there.
        None if task.untouched && !is_past || step == "verified" => StepTold::Undone,
        None => StepTold::Silent,
    }
}

fn proof(told: &DotagentTold, task: &Task, is_past: bool, result: Value) -> Done {
    let is_written = !is_past && told.state.rebuilt.is_none();
    match task.turn {
        Turn::AsWritten if is_written => Done::recorded(result),
        Turn::AsWritten
        | Turn::Orphan
        | Turn::FromOutput
        | Turn::Retry
        | Turn::UsedUp
        | Turn::Unproved
        | Turn::FromVerdict
        | Turn::Unknown => Done::inferred(result),
    }
}

/// Done when the condition holds; recorded when the file that proves it is there.
fn done(
    told: &DotagentTold,
    is_done: bool,
    proof: &str,
    result: Value,
    otherwise: Otherwise,
) -> StepTold {
    if !is_done {
        return otherwise.told();
    }
    let is_proved = told.state.is_valid(proof);
    StepTold::Done(if is_proved { Done::recorded(result) } else { Done::inferred(result) })
}
