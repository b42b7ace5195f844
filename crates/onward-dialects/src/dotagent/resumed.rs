//! A resume begins: the checkpoint says where, and what was lost.
//!
//! Invariant: an orphan's attempt is counted once, here, unless its work is ours and still alive;
//! a state file that could not be read whole is kept before one is written in its place.

use onward_core::{address::Address, time::Timestamp, told::Change};
use serde_json::{Map, Value, json};

use super::{
    Code, EXECUTION, PHASE, Phase,
    enter::voided,
    read::{Presence, Sheet, VERIFICATION},
    tasks::{Stage, Turn},
    told::{DotagentTold, place},
    write::{Checkpoint, ENTERED},
};
use crate::{
    kit::age::seconds,
    rules::dotagent::phases::{ARCHIVE, archive_name},
};

pub(super) fn resumed(told: &DotagentTold, at: Timestamp, alive: &[Address]) -> Vec<Change> {
    let Some(phase) = told.code.phase() else { return Vec::new() };
    if told.state.is_fresh() {
        return Vec::new();
    }
    let mut checkpoint = Checkpoint::of(&told.files);
    let mut changes = kept(told, at);
    if told.state.phase_file.map().is_none() {
        let id = told.state.workflow_id.clone().unwrap_or_else(|| "recovered".to_owned());
        let started = told.state.started_at.unwrap_or(at);
        checkpoint.begin(&id, started);
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
        tasks(told, &mut checkpoint, alive, at);
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

fn tasks(told: &DotagentTold, checkpoint: &mut Checkpoint, alive: &[Address], at: Timestamp) {
    for task in &told.tasks {
        let lives = alive.iter().any(|it| it.is_within(&place(task)));
        let fields = match (task.turn, task.stage) {
            (Turn::Orphan | Turn::UsedUp, _) if lives => continue,
            (Turn::Orphan, _) => json!({"status": "pending", "attempts": task.attempts}),
            // A person said that it is tried once more.
            (Turn::UsedUp, _) => json!({"status": "pending"}),
            (Turn::FromOutput, Stage::Implemented) => json!({"status": "pre_complete"}),
            (Turn::FromOutput, Stage::Blocked) => json!({"status": "blocked"}),
            (Turn::FromOutput, Stage::Open) => json!({"status": "failed"}),
            (Turn::FromVerdict, Stage::Verified) => {
                json!({"status": "verified", "completed_at": seconds(at)})
            }
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
    }
}

/// Copies of the state files that cannot be read, or that hold something else where a list belongs.
fn kept(told: &DotagentTold, at: Timestamp) -> Vec<Change> {
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
