//! What is written when a task is begun or completed, and when the whole is reviewed or delivered.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::told::Change;
use serde_json::json;

use crate::{
    kit::path::literal,
    pipeline::{Edit, FIXING, NOTHING, PENDING, PROVED, Phase, Pipeline, UNCHANGED, key},
};

/// A task that is about to be worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// It is completed already.
    pub done: bool,
    /// For which time it is worked on in a worktree, from 1 on.
    pub turn: u32,
    /// What says that it is in progress.
    pub changes: Vec<Change>,
}

/// `None` when there is no such task.
pub fn begin(pipeline: &Pipeline, id: &str, run: &str) -> Option<Begun> {
    let done = pipeline.is_completed(id)?;
    let turn = pipeline.turns_of(id).saturating_add(1);
    if done {
        return Some(Begun { done, turn, changes: Vec::new() });
    }
    let mut edit = Edit::of(pipeline, id);
    edit.set("status", &json!("in_progress"));
    edit.set("owner", &json!("onward"));
    edit.forget("error");
    edit.forget(key::DOUBT);
    edit.meta(key::RUN, &json!(run));
    Some(Begun { done, turn, changes: edit.change().into_iter().collect() })
}

/// The worktree that a task of the execution is done in. Done again, it has another one, which
/// begins with the project as it is by then: what came of the task before, what the review mended,
/// and what a person changed.
pub fn tree(id: &str, turn: u32) -> String {
    if turn > 1 { format!("P6r{turn}-{id}") } else { format!("P6-{id}") }
}

/// How a task came to be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was before, and nothing was to be verified: it stays as it is.
    Kept,
    /// Its agent was done in its worktree and had changed no file: what it was to make is there.
    Unchanged {
        turn: u32,
    },
    /// Its work came out of its worktree, for which time.
    Brought {
        turn: u32,
    },
    Proved,
}

/// The task is completed and has these files, each with a digest of what it holds, if it is there.
/// With the last one of its phase the phase has passed,
/// except that an execution is reviewed first. The task comes last: until then nothing counts.
pub fn settle(
    pipeline: &Pipeline,
    id: &str,
    files: &BTreeMap<String, Option<String>>,
    how: Settled,
) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Some(phase) = pipeline.last_open_of_phase(id) {
        let mut permanent = Edit::of(pipeline, pipeline.permanent_id());
        if phase == Phase::P6 {
            permanent.meta(key::REVIEW, &json!(PENDING));
        } else {
            permanent.signal(phase, &format!("PASS|tasks:{}", pipeline.count_of(phase)));
        }
        changes.extend(permanent.change());
    }
    let mut edit = Edit::of(pipeline, id);
    let result = match how {
        Settled::Kept => return changes,
        Settled::Unchanged { .. } => UNCHANGED,
        Settled::Brought { .. } | Settled::Proved => PROVED,
    };
    if let Settled::Unchanged { turn } | Settled::Brought { turn } = how {
        edit.meta(key::TURN, &json!(turn));
    }
    let named: BTreeSet<String> =
        pipeline.files_of(id).into_iter().chain(files.keys().cloned()).collect();
    edit.meta("files", &json!(named));
    note(&mut edit, files, &named);
    edit.meta_if_bare("result", &json!(result));
    edit.meta(key::CHECKED, &json!("onward"));
    edit.forget("error");
    edit.forget(key::RUN);
    edit.forget(key::DOUBT);
    edit.set("status", &json!("completed"));
    // Also one that says all this: it is newer than its files again.
    changes.push(edit.rewritten());
    changes
}

/// The task failed, and why: it is done again.
pub fn fail(pipeline: &Pipeline, id: &str, why: &str) -> Vec<Change> {
    let mut edit = Edit::of(pipeline, id);
    edit.meta("error", &json!(why));
    edit.change().into_iter().collect()
}

/// What these files of a task hold, of those that are there.
fn note(edit: &mut Edit, held: &BTreeMap<String, Option<String>>, named: &BTreeSet<String>) {
    let of = |path: &String| Some((path.clone(), held.get(path)?.clone()?));
    let hashes: BTreeMap<String, String> = named.iter().filter_map(of).collect();
    if hashes.is_empty() {
        edit.forget(key::HASHES);
    } else {
        edit.meta(key::HASHES, &json!(hashes));
    }
}

/// A fix of the review begins: what it changes speaks against no task of the execution.
pub fn mending(pipeline: &Pipeline) -> Vec<Change> {
    review(pipeline, FIXING).into_iter().collect()
}

/// It is over, and the review looks again.
pub fn mended(pipeline: &Pipeline, held: &BTreeMap<String, Option<String>>) -> Vec<Change> {
    let mut changes = executed(pipeline, held);
    changes.extend(review(pipeline, PENDING));
    changes
}

fn review(pipeline: &Pipeline, says: &str) -> Option<Change> {
    let mut permanent = Edit::of(pipeline, pipeline.permanent_id());
    permanent.meta(key::REVIEW, &json!(says));
    permanent.change()
}

/// What the files of the execution hold now is what its tasks have made.
fn executed(pipeline: &Pipeline, held: &BTreeMap<String, Option<String>>) -> Vec<Change> {
    let noted = pipeline.ids_of(Phase::P6).filter_map(|id| {
        let mut edit = Edit::of(pipeline, id);
        note(&mut edit, held, &pipeline.files_of(id));
        edit.change()
    });
    noted.collect()
}

/// The execution has passed its review.
pub fn accept(pipeline: &Pipeline, held: &BTreeMap<String, Option<String>>) -> Vec<Change> {
    let mut changes = executed(pipeline, held);
    let mut permanent = Edit::of(pipeline, pipeline.permanent_id());
    permanent.signal(Phase::P6, &format!("PASS|tasks:{}", pipeline.count_of(Phase::P6)));
    permanent.forget(key::REVIEW);
    changes.extend(permanent.change());
    changes
}

/// The files that a task names.
pub fn files_of(pipeline: &Pipeline, id: &str) -> BTreeSet<String> {
    pipeline.files_of(id)
}

/// A pattern for the files that a delivery commits; empty when there are none. What a user says yes
/// to are these files as they are.
pub fn delivered(pipeline: &Pipeline) -> String {
    let files: Vec<String> =
        commit_files(pipeline).iter().map(|it| literal(it).replace(',', "[,]")).collect();
    if files.is_empty() { String::new() } else { format!("{{{}}}", files.join(",")) }
}

/// The files that a delivery commits: those of the execution's tasks.
pub fn commit_files(pipeline: &Pipeline) -> BTreeSet<String> {
    pipeline.files_of_phase(Phase::P6)
}

/// Of these paths, which are gone, the first one that the task which was completed last should have
/// left, and that task.
pub fn missed<'a>(
    pipeline: &'a Pipeline,
    mut gone: impl Iterator<Item = &'a str>,
) -> Option<(&'a str, &'a str)> {
    gone.find_map(|path| Some((pipeline.left_by(path)?, path)))
}

/// The work is in this commit, or there was nothing to be committed.
pub fn deliver(pipeline: &Pipeline, commit: Option<&str>) -> Vec<Change> {
    let mut permanent = Edit::of(pipeline, pipeline.permanent_id());
    permanent.meta("current_phase", &json!("P8"));
    match commit {
        Some(commit) => {
            permanent.meta("commit", &json!(commit));
            permanent.meta("commit_status", &json!("committed"));
        }
        None => permanent.meta("commit_status", &json!(NOTHING)),
    }
    permanent.forget(key::DRIVER);
    permanent.set("status", &json!("completed"));
    permanent.change().into_iter().collect()
}
