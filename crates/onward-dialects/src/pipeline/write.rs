//! What a resume writes into a list, and what a person's own point of entry does.
//!
//! Invariant: only the keys that are named here change, and a file in which nothing changes is not
//! written.

use onward_core::told::{Change, Entering, NoEntry};
use serde_json::{Value, json};

use super::{
    Code,
    phase::Phase,
    progress::{Item, Stage, Vouched},
    read::{Task, key},
    told::{Pipeline, address},
};
use crate::kit::edit::Sheet;

/// Each task learns what the plan has found of it, so that the steps which the run comes to later
/// go by it as the plan does. The `[PERMANENT]` task learns where the run goes on, and that it does
/// once more, and by which run of ours.
pub(super) fn resumed(pipeline: &Pipeline, by: &str) -> Vec<Change> {
    let permanent = &pipeline.permanent;
    let mut edit = Edit::of(pipeline, &permanent.task.id);
    if let Some(phase) = pipeline.phase() {
        edit.meta("current_phase", &json!(phase.as_str()));
    }
    edit.meta("resume_count", &json!(permanent.resumes.saturating_add(1)));
    // Of a delivered one nothing is left to be driven.
    if !permanent.is_delivered() {
        edit.meta(key::DRIVER, &json!(by.trim_end_matches('/')));
    }
    // What was shown to the person counts when the later work is over, too.
    for state in &pipeline.progress.phases {
        if state.vouched == Some(Vouched::Begun) {
            edit.signal(state.phase, "PASS|tasks:0|a later phase had begun");
        }
    }
    // Another branch was shown to the person, who agreed to go on there.
    let current = pipeline.files.git.as_ref().and_then(|git| git.branch.as_deref());
    if let (Some(expected), Some(current)) = (permanent.branch.as_deref(), current)
        && expected != current
    {
        edit.meta("branch", &json!(current));
    }
    let phases = pipeline.progress.phases.iter().filter(|_| pipeline.code != Code::Complete);
    let judged = phases.flat_map(|it| &it.items);
    judged.filter_map(|it| judged_change(pipeline, it)).chain(edit.change()).collect()
}

fn judged_change(pipeline: &Pipeline, item: &Item) -> Option<Change> {
    let mut edit = Edit::of(pipeline, &item.task.id);
    match &item.stage {
        Stage::Settled => return None,
        Stage::Doubtful(doubt) => edit.meta(key::DOUBT, &doubt.noted()?.value()),
        Stage::Open => {
            lost(pipeline, &item.task, &mut edit);
            if item.task.is_completed() {
                edit.set("status", &json!("pending"));
                for key in [key::RUN, key::CHECKED, key::DOUBT] {
                    edit.forget(key);
                }
            }
        }
    }
    edit.change()
}

/// Its commits that are gone do not speak against what is made in their place.
fn lost(pipeline: &Pipeline, task: &Task, edit: &mut Edit) {
    let Some(git) = &pipeline.files.git else { return };
    let gone: Vec<&String> = task.commits.iter().filter(|it| git.missing.contains(*it)).collect();
    if gone.is_empty() {
        return;
    }
    let mut all = match edit.sheet.get(&["metadata", key::LOST]) {
        Some(Value::Array(before)) => before,
        Some(_) | None => Vec::new(),
    };
    all.extend(gone.into_iter().map(|it| json!(it)));
    edit.meta(key::LOST, &Value::from(all));
}

/// Nothing when that is where the pipeline goes on anyway, with tasks that are not completed.
pub(super) fn enter(pipeline: &Pipeline, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
    let unknown = || NoEntry::Unknown(at.place.to_owned());
    if let Some(task) = task_named(pipeline, at.place) {
        return Ok(reopened(pipeline, None, |_, it| it.id == task.id));
    }
    let wanted = Phase::parse(at.place).ok_or_else(unknown)?;
    let detected = pipeline.phase();
    let state = pipeline.progress.phase(wanted);
    let is_open = |it: &Item| it.stage == Stage::Open;
    // Where all its tasks are completed, and are verified or reviewed anyway, they are done again.
    let goes_on = state.is_none_or(|it| it.items.is_empty() || it.items.iter().any(is_open));
    if detected == Some(wanted) && goes_on {
        return Ok(Vec::new());
    }
    let is_known = wanted == Phase::P8 || pipeline.progress.phase(wanted).is_some();
    if !is_known {
        return Err(unknown());
    }
    if detected.is_none_or(|it| wanted <= it) {
        return Ok(reopened(pipeline, Some(wanted), |phase, _| phase >= wanted));
    }
    let unfinished = || {
        let before = pipeline.progress.phases.iter().filter(|it| it.phase < wanted);
        before.flat_map(|it| &it.items).filter(|it| it.stage == Stage::Open).map(|it| &it.task)
    };
    if !at.force {
        let open: Vec<&str> = unfinished().map(|it| it.id.as_str()).collect();
        let wanted = wanted.as_str();
        let what = match open.as_slice() {
            [] => "phases before it have no task yet".to_owned(),
            open => format!("these tasks are not completed: {}", open.join(", ")),
        };
        return Err(NoEntry::Ahead(format!("{wanted} lies ahead of what is done: {what}")));
    }
    Ok(passed_over(pipeline, wanted, &unfinished().collect::<Vec<_>>()))
}

/// The task of an address such as `P6[4]`.
fn task_named<'a>(pipeline: &'a Pipeline, place: &str) -> Option<&'a Task> {
    let place = place.split('/').next().unwrap_or(place);
    let mut all =
        pipeline.progress.phases.iter().flat_map(|state| {
            state.items.iter().map(|it| (address(state.phase, &it.task), &it.task))
        });
    all.find(|(address, _)| address.as_str() == place).map(|(_, task)| task)
}

/// Completed tasks become pending again, and the pipeline forgets that it had passed them. A phase
/// `from` which all is done again, and which has no tasks, is said to be open.
fn reopened(
    pipeline: &Pipeline,
    from: Option<Phase>,
    fits: impl Fn(Phase, &Task) -> bool,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut first = from;
    for state in &pipeline.progress.phases {
        for item in state.items.iter().filter(|it| fits(state.phase, &it.task)) {
            first = first.or(Some(state.phase));
            let mut edit = Edit::of(pipeline, &item.task.id);
            edit.set("status", &json!("pending"));
            for key in [key::RUN, key::CHECKED, key::DOUBT, "error"] {
                edit.forget(key);
            }
            changes.extend(edit.change());
        }
    }
    let mut edit = Edit::of(pipeline, &pipeline.permanent.task.id);
    if pipeline.code == Code::Complete {
        edit.set("status", &json!("in_progress"));
        edit.meta("commit_status", &json!("pending"));
    }
    edit.forget(key::REVIEW);
    for phase in Phase::working().filter(|it| first.is_some_and(|first| *it >= first)) {
        edit.forget_signal(phase);
    }
    let states = pipeline.progress.phases.iter();
    let empty =
        states.filter(|it| it.items.is_empty() && from.is_some_and(|from| it.phase >= from));
    for state in empty {
        edit.signal(state.phase, "REOPENED|by the user");
    }
    changes.extend(edit.change());
    changes
}

/// A person insists: what is unfinished before the phase counts as completed, and says so.
fn passed_over(pipeline: &Pipeline, wanted: Phase, unfinished: &[&Task]) -> Vec<Change> {
    let mut changes = Vec::new();
    for task in unfinished {
        let mut edit = Edit::of(pipeline, &task.id);
        edit.set("status", &json!("completed"));
        edit.meta("passed_over", &json!("by the user, with --force"));
        edit.meta(key::CHECKED, &json!("onward"));
        lost(pipeline, task, &mut edit);
        edit.forget("error");
        changes.extend(edit.change());
    }
    let mut edit = Edit::of(pipeline, &pipeline.permanent.task.id);
    for state in pipeline.progress.phases.iter().filter(|it| it.phase < wanted && !it.is_complete) {
        edit.signal(state.phase, "PASS|passed over by the user");
    }
    changes.extend(edit.change());
    changes
}

/// One task file, changed key by key. A file that cannot be read stays as it is.
pub(crate) struct Edit {
    path: String,
    before: Vec<u8>,
    sheet: Sheet,
    is_whole: bool,
}

impl Edit {
    pub(crate) fn of(pipeline: &Pipeline, id: &str) -> Self {
        let path = format!("{id}.json");
        let before = pipeline.files.bytes(&path).unwrap_or_default().to_vec();
        let sheet = Sheet::read(&before);
        Self { path, before, is_whole: sheet.is_some(), sheet: sheet.unwrap_or_default() }
    }

    pub(crate) fn set(&mut self, key: &str, value: &Value) {
        self.sheet.set(&[key], value);
    }

    pub(crate) fn meta(&mut self, key: &str, value: &Value) {
        self.sheet.set(&["metadata", key], value);
    }

    /// Nothing where another program has said something.
    pub(crate) fn meta_if_bare(&mut self, key: &str, value: &Value) {
        let said = self.sheet.get(&["metadata", key]);
        if said.is_none_or(|it| it.is_null() || it == "") {
            self.meta(key, value);
        }
    }

    pub(crate) fn forget(&mut self, key: &str) {
        self.sheet.remove(&["metadata", key]);
    }

    pub(crate) fn signal(&mut self, phase: Phase, text: &str) {
        self.sheet.set(&["metadata", "phase_signals", &phase.key()], &Value::from(text));
    }

    fn forget_signal(&mut self, phase: Phase) {
        for spelled in [phase.key(), phase.as_str().to_owned()] {
            self.sheet.remove(&["metadata", "phase_signals", &spelled]);
        }
    }

    /// The file is written even if it says all this already, so that it is the newest.
    pub(crate) fn rewritten(self) -> Change {
        let bytes = if self.is_whole { self.sheet.into_bytes() } else { self.before };
        Change::Replace { path: self.path, bytes }
    }

    /// Nothing when nothing changed.
    pub(crate) fn change(self) -> Option<Change> {
        let bytes = self.sheet.into_bytes();
        let is_changed = self.is_whole && bytes != self.before;
        is_changed.then_some(Change::Replace { path: self.path, bytes })
    }
}
