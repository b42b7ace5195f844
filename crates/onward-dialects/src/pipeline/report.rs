//! The reports that users of the system know: the phase matrix in words, and the short one.

use std::fmt::Write as _;

use onward_core::plural;

use super::{
    Code,
    phase::Phase,
    progress::{Item, PhaseState, Stage},
    read::TaskStatus,
    told::Pipeline,
};
use crate::kit::path::shown;

pub(super) fn report(told: &Pipeline) -> Vec<String> {
    let subject = shown(&told.permanent.task.subject);
    let tier = told.progress.tier.as_str();
    let (total, done) = (told.list.tasks.len(), told.count(TaskStatus::Completed));
    let pointer = told.permanent.current.map_or("no phase", Phase::as_str);
    let mut lines = vec![
        format!("{subject}: tier {tier}, {done} of {total} work tasks completed"),
        format!("The pointer of the [PERMANENT] task says {pointer}"),
    ];
    for state in &told.progress.phases {
        lines.push(matrix(state, told.code == Code::Complete));
    }
    for item in told.progress.phases.iter().flat_map(|it| &it.items) {
        if item.stage != Stage::Settled && told.code != Code::Complete {
            let (id, subject) = (shown(&item.task.id), shown(&item.task.subject));
            lines.push(format!("Task {id}, {subject}: {}", said(item)));
        }
    }
    lines.push(told.summary());
    lines
}

/// One line of the phase matrix.
fn matrix(state: &PhaseState, is_over: bool) -> String {
    let count = |fits: &dyn Fn(&Item) -> bool| state.items.iter().filter(|it| fits(it)).count();
    let completed = count(&|it| it.task.is_completed());
    let failed = count(&|it| it.task.is_failed());
    let begun = count(&|it| it.task.status == TaskStatus::InProgress && !it.task.is_failed());
    let (all, name) = (state.items.len(), state.phase.as_str());
    let pending = all.saturating_sub(completed + failed + begun);
    let word = if state.is_complete || is_over && all == 0 { "complete" } else { "not complete" };
    if all == 0 {
        let why = match (state.vouched, is_over) {
            (_, true) => "no tasks; it is delivered",
            (Some(vouched), false) => vouched.why(),
            (None, false) => "no tasks",
        };
        return format!("{name} {}: {word}; {why}", state.phase.title());
    }
    format!(
        "{name} {}: {word}; {}, {completed} completed, {failed} failed, {begun} \
         interrupted, {pending} pending",
        state.phase.title(),
        plural::count(all, "task")
    )
}

fn said(item: &Item) -> String {
    let error = item.task.error.as_deref();
    match (&item.stage, item.task.status) {
        (Stage::Settled, _) => "completed".to_owned(),
        (Stage::Doubtful(doubt), _) => doubt.why(),
        (Stage::Open, status) => match (error, status) {
            (Some(error), _) => format!("failed: {}", shown(error)),
            (None, TaskStatus::InProgress) => "was interrupted; restart it".to_owned(),
            (None, TaskStatus::Pending) => "pending".to_owned(),
            (None, TaskStatus::Completed) => "completed, and its commit is gone".to_owned(),
        },
    }
}

/// The short report of the system's own, as YAML.
pub(super) fn l1(told: &Pipeline) -> String {
    let name = |phase: Option<Phase>| phase.map_or("", Phase::as_str);
    let last = match told.code {
        Code::Complete => Some(Phase::P8),
        Code::Start | Code::RestartPhase | Code::ResumeTasks | Code::Deliver => {
            told.progress.last_completed()
        }
    };
    let mut page = String::from("domain: cross-cutting\nskill: pipeline-resume\n");
    for (key, value) in [("last_completed_phase", name(last)), ("resume_phase", name(told.phase()))]
    {
        let _ = writeln!(page, "{key}: \"{value}\"");
    }
    for (key, count) in [
        ("total_tasks", told.list.tasks.len()),
        ("completed_tasks", told.count(TaskStatus::Completed)),
        ("in_progress_tasks", told.count(TaskStatus::InProgress)),
        ("pending_tasks", told.count(TaskStatus::Pending)),
    ] {
        let _ = writeln!(page, "{key}: {count}");
    }
    page
}
