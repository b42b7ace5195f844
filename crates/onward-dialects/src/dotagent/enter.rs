//! Where else a person may enter, and what the files say then.
//!
//! Invariant: what was done from there on is kept in the archive before it stops to count. A report
//! that counts no more holds `null`: it cannot be taken for one, and its step writes it again.

use onward_core::{
    address::Address,
    told::{Change, Entering, NoEntry},
};
use serde_json::{Value, json};

use super::{
    Code, Phase,
    read::{CONTRACTS, DEMAND, DESIGN, DESIGNS, MERGED, REFLECTION, REFLECTIONS, VERIFICATION},
    tasks::{Stage, Task, runnable},
    told::{DotagentTold, task_of},
    write::{Checkpoint, ENTERED},
};
use crate::{
    File,
    kit::{age::seconds, order::resting_on},
    rules::dotagent::{
        Scene,
        phases::{ARCHIVE, archive, archive_name},
    },
};

/// What a report holds that counts no more.
pub(super) const VOID: &[u8] = b"null\n";

/// In the order of the work.
const ORDER: [Code; 7] = [
    Code::Requirements,
    Code::Approval,
    Code::Architects,
    Code::Roundtable,
    Code::Implementation,
    Code::Verification,
    Code::Reflection,
];

/// Nothing when that is where the run goes on anyway.
pub(super) fn enter(told: &DotagentTold, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
    let unknown = || NoEntry::Unknown(at.place.to_owned());
    let wanted = meant(at.place).ok_or_else(unknown)?;
    let task = match at.place.contains('[').then(|| task_of(&Address::from_text(at.place))) {
        Some(item) if wanted == Code::Implementation && !told.tasks.is_empty() => {
            Some(*told.places.get(&item).ok_or_else(unknown)?)
        }
        Some(_) | None => None,
    };
    let place = |code: Code| ORDER.iter().position(|it| *it == code).unwrap_or(ORDER.len());
    if place(wanted) > place(told.code) {
        let (wanted, now) = (wanted.as_str(), told.code.as_str());
        return Err(NoEntry::Ahead(format!("{wanted} lies ahead of what is done ({now})")));
    }
    let is_next = |task: &Task| runnable(&told.tasks).any(|it| it.id == task.id);
    let waits = |task: &Task| task.stage != Stage::Verified && !is_next(task);
    if let Some(task) = task.map(|index| &told.tasks[index])
        && told.code == Code::Implementation
        && waits(task)
    {
        let message = format!("{} lies ahead: tasks before it are open", at.place);
        return Err(NoEntry::Ahead(message));
    }
    // A merged design waits for the user; a person who enters before that wants another one.
    let is_behind = wanted == Code::Roundtable && told.is_merged();
    let goes_there = !is_behind && task.is_none_or(|index| is_next(&told.tasks[index]));
    let Some(phase) = wanted.phase().filter(|_| wanted != told.code || !goes_there) else {
        return Ok(Vec::new());
    };
    let mut checkpoint = Checkpoint::of(&told.files);
    let name = archive_name(&checkpoint, at.now);
    let scene = Scene { files: &told.files, at: at.now, id: "" };
    let mut changes = archive(&scene, &name);
    changes.extend(voided(told, wanted, &name));
    checkpoint.enter(phase, at.now);
    checkpoint.phase.insert(ENTERED.to_owned(), seconds(at.now).into());
    match wanted {
        Code::Requirements | Code::Approval | Code::Architects | Code::Roundtable => {
            checkpoint.clear_tasks();
        }
        Code::Implementation => {
            checkpoint.forget_repairs();
            for task in redone_tasks(told, task) {
                checkpoint.set_task(&task.id, afresh());
            }
        }
        Code::Verification | Code::Reflection | Code::Complete => {}
    }
    changes.extend(checkpoint.changes(&told.files));
    Ok(changes)
}

/// Reports that a run which enters there makes again: kept in the archive of this name, and void.
pub(super) fn voided(told: &DotagentTold, code: Code, name: &str) -> Vec<Change> {
    let void = |(path, file): (&str, &File)| {
        let below = path.trim_start_matches("memory/");
        let copy = format!("{ARCHIVE}{name}/{below}");
        [
            Change::Replace { path: copy, bytes: file.bytes.clone() },
            Change::Replace { path: path.to_owned(), bytes: VOID.to_vec() },
        ]
    };
    let left = told.files.iter().filter(|(path, file)| is_redone(code, path) && file.bytes != VOID);
    left.flat_map(void).collect()
}

/// A task of which nothing was ever begun.
fn afresh() -> Value {
    let nothing = Value::Null;
    json!({"status": "pending", "attempts": 0, "last_error": nothing, "completed_at": nothing})
}

/// All tasks of the plan; or one, and those that rest on it, however far away.
fn redone_tasks(told: &DotagentTold, from: Option<usize>) -> Vec<&Task> {
    let planned = told.tasks.iter().filter(|it| !it.repairs);
    let Some(first) = from.map(|index| &told.tasks[index]) else { return planned.collect() };
    let edges = planned.clone().map(|it| (it.id.as_str(), it.after.as_slice()));
    let rests = resting_on([first.id.as_str()], edges);
    planned.filter(|it| it.id == first.id || rests.contains(it.id.as_str())).collect()
}

/// A code, a phase, or a step of the workflow.
fn meant(place: &str) -> Option<Code> {
    let first = place.split(['/', '[']).next().unwrap_or_default();
    let by_code = ORDER.into_iter().find(|it| it.as_str() == first);
    let by_phase = || match Phase::parse(first)? {
        Phase::Requirements => Some(Code::Requirements),
        Phase::Architecture => Some(Code::Architects),
        Phase::Implementation => Some(Code::Implementation),
        Phase::Verification => Some(Code::Verification),
        Phase::Reflection => Some(Code::Reflection),
    };
    let by_step = || match first {
        "approve" => Some(Code::Approval),
        "plan" => Some(Code::Implementation),
        _ => None,
    };
    by_code.or_else(by_phase).or_else(by_step)
}

/// Whether a report is made again by a run that enters there. A `.tmp` would count in its place.
fn is_redone(code: Code, path: &str) -> bool {
    let path = path.strip_suffix(".tmp").unwrap_or(path);
    let name = path.strip_prefix(REFLECTIONS);
    let is_reflection = path == REFLECTION || name.is_some_and(|it| !it.starts_with('_'));
    let is_verdict = path == VERIFICATION || is_reflection;
    let is_design = path == DESIGN || path == MERGED || path.starts_with(CONTRACTS) || is_verdict;
    match code {
        Code::Requirements => path == DEMAND || path.starts_with(DESIGNS) || is_design,
        Code::Approval | Code::Architects => path.starts_with(DESIGNS) || is_design,
        Code::Roundtable => is_design,
        Code::Implementation | Code::Verification => is_verdict,
        Code::Reflection | Code::Complete => is_reflection,
    }
}
