//! A resume begins: the checkpoint says where, and what was lost.
//!
//! Invariant: an orphan's attempt is counted once, here, unless its work is ours and still alive.
//! One of ours that was cut off is running again from here on, and is named, so that it is counted
//! once. A state file that could not be read whole is kept before one is written in its place.

use onward_core::{
    address::Address,
    time::Timestamp,
    told::{Change, Died},
};
use serde_json::{Map, Value, json};

use super::{
    Code, EXECUTION, PHASE, Phase,
    enter::voided,
    read::{Presence, Sheet, VERIFICATION},
    tasks::{Stage, Turn},
    told::{DotagentTold, place},
    write::{CUT_OFF, Checkpoint, ENTERED, REBUILT},
};
use crate::{
    kit::age::seconds,
    rules::dotagent::phases::{ARCHIVE, archive_name},
};

pub(super) fn resumed(
    told: &DotagentTold,
    at: Timestamp,
    alive: &[Address],
    died: &[Died],
) -> Vec<Change> {
    let Some(phase) = told.code.phase() else { return Vec::new() };
    if told.state.is_fresh() {
        return Vec::new();
    }
    let mut checkpoint = Checkpoint::of(&told.files);
    let mut changes = kept(told, at);
    if let Some(execution) = &told.state.rebuilt {
        checkpoint.execution.clone_from(execution);
    }
    if told.state.phase_file.map().is_none() {
        let known = told.state.workflow_id.as_deref().or(told.id.as_deref());
        let id = known.unwrap_or("recovered").to_owned();
        let started = told.state.started_at.unwrap_or(at);
        checkpoint.begin(&id, started);
        checkpoint.phase.insert(REBUILT.to_owned(), seconds(at).into());
    }
    if let Some(phase) = entered(told, phase) {
        if told.state.current.is_some_and(|now| now < phase) {
            // What an earlier run left of the phase must not count from now on.
            changes.extend(voided(told, told.code, &archive_name(&checkpoint, at)));
        }
        checkpoint.enter(phase, at);
    }
    checkpoint.stamp(at);
    checkpoint.phase.remove(ENTERED);
    // Also when the last of them turns out to be verified.
    if told.code == Code::Implementation || told.state.current == Some(Phase::Implementation) {
        tasks(told, &mut checkpoint, (alive, died), at);
    }
    changes.extend(checkpoint.changes(&told.files));
    changes
}

/// The phase that the checkpoint does not name yet. A failed verification goes back to the
/// implementation when its repair begins, and is named until then, also by a checkpoint that is
/// made because the old one cannot be read.
fn entered(told: &DotagentTold, phase: Phase) -> Option<Phase> {
    let is_refused = told.state.verdict(VERIFICATION) == Some(false);
    match told.state.current {
        Some(_) if told.repairs => None,
        None if told.repairs && is_refused => Some(Phase::Verification),
        now => Some(phase).filter(|phase| now != Some(*phase)),
    }
}

fn tasks(
    told: &DotagentTold,
    checkpoint: &mut Checkpoint,
    (alive, died): (&[Address], &[Died]),
    at: Timestamp,
) {
    for task in &told.tasks {
        let is_here = |it: &Address| it.is_within(&place(task));
        let died = died.iter().find(|it| is_here(&it.step) && is_try(&it.step));
        let fields = match (task.turn, task.stage) {
            (Turn::Orphan | Turn::UsedUp, _) if died.is_none() && alive.iter().any(is_here) => {
                continue;
            }
            (Turn::Orphan, _) => json!({"status": "pending", "attempts": task.attempts}),
            // A person said that it is tried once more: that one counts, too.
            (Turn::UsedUp, _) => {
                json!({"status": "pending", "attempts": task.attempts.saturating_add(1)})
            }
            (Turn::FromOutput, Stage::Implemented) => json!({"status": "pre_complete"}),
            (Turn::FromOutput, Stage::Blocked) => json!({"status": "blocked"}),
            (Turn::FromOutput, Stage::Open) => json!({"status": "failed"}),
            (Turn::FromVerdict, Stage::Verified) => {
                json!({"status": "verified", "completed_at": seconds(at)})
            }
            // Another program has counted it: it runs again all the same.
            (Turn::AsWritten, Stage::Open) if died.is_some() && !task.untouched => json!({}),
            (
                Turn::AsWritten
                | Turn::FromOutput
                | Turn::Retry
                | Turn::Unproved
                | Turn::FromVerdict
                | Turn::Unknown,
                _,
            ) => continue,
        };
        checkpoint.set_task(&task.id, fields);
        if let (Some(died), Stage::Open) = (died, task.stage) {
            let fields = json!({"status": "running", "started_at": seconds(at)});
            checkpoint.set_task(&task.id, fields);
            checkpoint.set_task(&task.id, json!({ CUT_OFF: died.mark() }));
        }
    }
}

/// Whether the agent of this step makes an attempt at a task: what it leaves is the output.
fn is_try(step: &Address) -> bool {
    matches!(step.last_id(), "implement" | "fix")
}

/// Whether a task says that it has counted this attempt.
pub(super) fn counts(told: &DotagentTold, died: &Died) -> bool {
    let (tasks, mark) = (told.state.tasks.iter(), died.mark());
    !is_try(&died.step) || tasks.filter_map(|it| it.cut_off.as_deref()).any(|it| it == mark)
}

/// Copies of the state files that cannot be read, or that hold something else where a list belongs.
pub(super) fn kept(told: &DotagentTold, at: Timestamp) -> Vec<Change> {
    let stamp: String = at.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let is_odd = |map: &Map<String, Value>| {
        let mut lists = ["tasks", "completed_phases", "user_checkpoints"].iter();
        lists.any(|key| map.get(*key).is_some_and(|it| !it.is_array() && !it.is_null()))
    };
    let is_broken = |sheet: &Sheet| match &sheet.main {
        Presence::Missing => false,
        Presence::Broken(_) => true,
        Presence::Whole(map) => is_odd(map),
    };
    let all = [(&told.state.phase_file, PHASE), (&told.state.execution_file, EXECUTION)];
    let copy = |(sheet, path): (&Sheet, &str)| {
        let bytes = told.files.bytes(path).filter(|_| is_broken(sheet))?.to_vec();
        let file = path.rsplit('/').next().unwrap_or(path);
        Some(Change::Replace { path: format!("{ARCHIVE}unreadable_{stamp}/{file}"), bytes })
    };
    all.into_iter().filter_map(copy).collect()
}
