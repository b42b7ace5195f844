//! How far each task of the implementation is, and which of them can go on.
//!
//! Invariant: what a task left in its output goes before what execution.json says of a task that
//! was running; a task that is verified is never opened again.

use std::collections::BTreeSet;

use super::read::{State, TaskEntry, in_task};
use crate::kit::{
    order::without_circles,
    status::{self, Progress},
};

/// A task that was tried so often has failed for good, until a person says otherwise.
pub const ATTEMPTS_MAX: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// To be implemented, for the first time or again.
    Open,
    /// Implemented, and not verified yet.
    Implemented,
    /// Implemented, and the verifier said no: the next try.
    Rejected,
    /// Waits for the contract resolver.
    Blocked,
    Verified,
}

/// Why a task is where it is, where that is worth telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// As execution.json says.
    AsWritten,
    /// Running, and nothing usable was left: tried once more.
    Orphan,
    /// Running, and its output says what became of it.
    FromOutput,
    /// Failed, and tried again.
    Retry,
    /// Failed as often as it may.
    UsedUp,
    /// Its output is gone, or does not parse.
    Unproved,
    /// The verifier has written its verdict, and execution.json does not know.
    FromVerdict,
    /// Its status is no status.
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) stage: Stage,
    pub(super) turn: Turn,
    /// It mends what the verification of the whole named.
    pub(super) repairs: bool,
    /// Nothing of it was ever begun.
    pub(super) untouched: bool,
    /// With the one that an orphan is given.
    pub(super) attempts: u32,
    pub(super) summary: String,
    pub(super) last_error: Option<String>,
    pub(super) strategy: Option<String>,
    /// Other tasks of the list, without circles.
    pub(super) after: Vec<String>,
}

/// The tasks, and those that wait for each other in a circle: in there, nothing comes first.
pub(super) fn tasks(state: &State) -> (Vec<Task>, Vec<Vec<String>>) {
    let ids: BTreeSet<&str> = state.tasks.iter().map(|it| it.id.as_str()).collect();
    let mut tasks: Vec<Task> = state.tasks.iter().map(|it| task(state, it, &ids)).collect();
    let edge = |it: &mut Task| (it.id.clone(), std::mem::take(&mut it.after));
    let mut edges: Vec<(String, Vec<String>)> = tasks.iter_mut().map(edge).collect();
    let circles = without_circles(&mut edges);
    for (task, (_, after)) in tasks.iter_mut().zip(edges) {
        task.after = after;
    }
    (tasks, circles)
}

/// Those whose turn it is: not verified, and everything before them is.
pub(super) fn runnable(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    let is_open = |it: &&Task| it.stage != Stage::Verified;
    let open: BTreeSet<&str> = tasks.iter().filter(is_open).map(|it| it.id.as_str()).collect();
    let waits = move |task: &Task| task.after.iter().any(|id| open.contains(id.as_str()));
    tasks.iter().filter(is_open).filter(move |task| !waits(task))
}

fn task(state: &State, entry: &TaskEntry, ids: &BTreeSet<&str>) -> Task {
    let (reached, turn) = stage(state, entry);
    let others = entry.depends_on.iter();
    let others = others.filter(|id| **id != entry.id && ids.contains(id.as_str()));
    let after: BTreeSet<String> = others.cloned().collect();
    Task {
        id: entry.id.clone(),
        stage: reached,
        turn,
        repairs: super::read::is_repair(&entry.id),
        untouched: entry.status == Some(Progress::Pending) && entry.attempts == 0,
        attempts: entry.attempts.saturating_add(u32::from(turn == Turn::Orphan)),
        summary: entry.summary.clone(),
        last_error: entry.last_error.clone(),
        strategy: entry.strategy.clone(),
        after: after.into_iter().collect(),
    }
}

fn stage(state: &State, entry: &TaskEntry) -> (Stage, Turn) {
    let Some(status) = entry.status else { return (Stage::Open, Turn::Unknown) };
    match status {
        Progress::Pending => (Stage::Open, Turn::AsWritten),
        Progress::Running => match output_status(state, entry) {
            Some(Progress::Blocked) => (Stage::Blocked, Turn::FromOutput),
            Some(Progress::Failed) => failed(entry, Turn::FromOutput),
            Some(Progress::PreComplete | Progress::Done) => {
                implemented(state, entry, Turn::FromOutput)
            }
            // Its own output cannot know that the verifier agreed.
            Some(Progress::Verified) => (Stage::Implemented, Turn::FromOutput),
            Some(Progress::Pending | Progress::Running) | None => failed(entry, Turn::Orphan),
        },
        Progress::PreComplete | Progress::Done if output_status(state, entry).is_none() => {
            (Stage::Open, Turn::Unproved)
        }
        Progress::PreComplete | Progress::Done => implemented(state, entry, Turn::AsWritten),
        Progress::Blocked => (Stage::Blocked, Turn::AsWritten),
        Progress::Failed => failed(entry, Turn::Retry),
        Progress::Verified => (Stage::Verified, Turn::AsWritten),
    }
}

/// The cap is tested before an attempt is added.
fn failed(entry: &TaskEntry, turn: Turn) -> (Stage, Turn) {
    let used_up = entry.attempts >= ATTEMPTS_MAX;
    (Stage::Open, if used_up { Turn::UsedUp } else { turn })
}

fn implemented(state: &State, entry: &TaskEntry, turn: Turn) -> (Stage, Turn) {
    let path = in_task(&entry.id, "verification.json");
    match state.verdict(&path).filter(|_| state.another(&path, &entry.id).is_none()) {
        Some(true) => (Stage::Verified, Turn::FromVerdict),
        Some(false) if entry.attempts >= ATTEMPTS_MAX => (Stage::Open, Turn::UsedUp),
        Some(false) => (Stage::Rejected, Turn::FromVerdict),
        None => (Stage::Implemented, turn),
    }
}

/// `None` when there is no output, nothing that can be read in it, or another task's.
fn output_status(state: &State, entry: &TaskEntry) -> Option<Progress> {
    let map = state.sheet(&entry.output)?.map()?;
    if state.another(&entry.output, &entry.id).is_some() {
        return None;
    }
    status::progress(map.get("status")?.as_str()?)
}
