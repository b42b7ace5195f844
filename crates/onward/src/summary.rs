//! The last words about a run: what ran, what was kept, what it cost, and what to type next.
//!
//! Invariant: told from the fold of the journal, as `status` would tell it, so that the end of a
//! run and a look at it later agree.

use std::path::Path;

use onward_core::{
    address::Address,
    decide::used_up,
    evidence::Cause,
    graph::Role,
    plan::Status,
    plural::count,
    run::Run,
    state::{Phase, StepState},
    survey::outputs_to_check,
    time::Timestamp,
    view,
};

use crate::{
    diagnostic::printable,
    next::became,
    style::{self, DIM, took, usd},
};

/// So many steps are called the slowest, and so many outputs are named.
const NAMED: usize = 3;

/// `run X completed: 13 steps, 42 s`, and below it what is worth knowing. `since` = when this drive
/// began.
pub(crate) fn lines(
    id: &str,
    dir: &Path,
    run: &Run,
    status: Status,
    since: Timestamp,
) -> Vec<String> {
    let counts = view::counts(run);
    let style = style::of_status(status);
    let span = took(run.state.last_at.ms_since(since));
    // What was there before took its time earlier.
    let is_part = run.state.resumes > 0 && since > run.state.opened_at;
    let span = if is_part { format!("{span} since the resume") } else { span };
    let mut lines = Vec::new();
    let what = match status {
        Status::Completed => format!("{}, {span}", count(counts.done as usize, "step")),
        Status::Failed
        | Status::Cancelled
        | Status::Waiting
        | Status::Parked
        | Status::OverBudget
        | Status::Interrupted
        | Status::Running
        | Status::Fresh => format!("{} of {} done, {span}", counts.done, count_of(counts.total)),
    };
    lines.push(format!("run {id} {style}{}{style:#}: {what}", became(status, run)));
    let facts = facts(run, since);
    if !facts.is_empty() {
        lines.push(format!("  {}", facts.join(", ")));
    }
    let slow = slowest(run, since);
    if slow.len() > 1 {
        lines.push(format!("  {DIM}slowest: {}{DIM:#}", slow.join(", ")));
    }
    if status == Status::Completed {
        lines.extend(outputs(dir, run));
    }
    if status == Status::Failed {
        let line = |it| format!("  {}", printable(&used_up(it)));
        lines.extend(run.state.used_up().map(line));
    }
    lines
}

fn count_of(total: u32) -> String {
    count(total as usize, "step")
}

/// Steps that a person or an agent worked at; groups and gates have no attempts.
fn worked(run: &Run) -> impl Iterator<Item = (&Address, &StepState)> {
    run.state.steps.iter().filter(|(_, it)| it.attempts > 0 && it.gate.is_none())
}

/// Every step that the run has now, gates too: as the plan of a resume counts them.
fn leaves(run: &Run) -> impl Iterator<Item = (&Address, &StepState)> {
    let is_leaf = |step: &Address| {
        let id = run.graph.find(step);
        id.is_some_and(|id| run.graph.node(id).role == Role::Leaf)
    };
    run.state.steps.iter().filter(move |(step, _)| is_leaf(step))
}

fn facts(run: &Run, since: Timestamp) -> Vec<String> {
    let of = |is: &dyn Fn(&Address, &StepState) -> bool| {
        leaves(run).filter(|(step, it)| is(step, it)).count()
    };
    let is_old = |it: &StepState| it.ended_at < since && it.started_at < since;
    // What was waited for ended in this drive, too.
    let ran = of(&|_, it| it.attempts > 0 && !is_old(it) && !it.elsewhere);
    let taken_over = of(&|_, it| it.elsewhere && !is_old(it));
    let kept = of(&|_, it| is_old(it) && matches!(it.phase, Phase::Done | Phase::Tolerated));
    let answered = of(&|_, it| it.gate.is_some() && it.phase == Phase::Done && !is_old(it));
    let skipped = of(&|_, it| it.phase == Phase::Skipped);
    let repeated = of(&|_, it| it.started_at >= since && it.attempts > 1);
    let parked = of(&|step, _| run.state.is_parked(step));
    let stopped = of(&|_, it| is_stopped(it));
    let failed = of(&|_, it| it.phase == Phase::Failed) - parked - stopped;
    let mut facts = Vec::new();
    for (number, word) in [
        (ran, "ran"),
        (kept, "kept"),
        (taken_over, "taken over"),
        (answered, "answered"),
        (skipped, "skipped"),
        (repeated, "repeated"),
        (failed, "failed"),
        (stopped, "stopped"),
        (parked, "parked"),
    ] {
        let apart = kept + taken_over + answered + skipped;
        let others = apart + repeated + failed + stopped + parked;
        if number > 0 && !(word == "ran" && others == 0) {
            facts.push(format!("{number} {word}"));
        }
    }
    let spent = run.state.spent.dollars();
    if spent > 0.0 {
        facts.push(format!("{} spent", usd(spent)));
    }
    facts
}

/// The user stopped it, and it did not end by itself.
pub(crate) fn is_stopped(step: &StepState) -> bool {
    let by_user = step.failure.as_deref().is_some_and(|(cause, _)| *cause == Cause::Interrupted);
    step.phase == Phase::Failed && by_user
}

fn slowest(run: &Run, since: Timestamp) -> Vec<String> {
    let ended = worked(run).filter(|(_, it)| it.started_at >= since && it.phase == Phase::Done);
    let mut all: Vec<(u64, &Address)> =
        ended.map(|(step, it)| (it.ended_at.ms_since(it.started_at), step)).collect();
    all.sort_by(|one, other| other.cmp(one));
    let long = all.into_iter().filter(|(ms, _)| *ms >= 1000).take(NAMED);
    long.map(|(ms, step)| format!("{} {}", printable(step.as_str()), took(ms))).collect()
}

/// The files that the last steps left.
#[expect(clippy::unnecessary_wraps, reason = "as its siblings")]
fn outputs(dir: &Path, run: &Run) -> Option<String> {
    let mut all: Vec<(Timestamp, String)> = Vec::new();
    for (step, file) in outputs_to_check(&run.state) {
        let at = run.state.step(step).map(|it| it.ended_at).unwrap_or_default();
        all.retain(|(_, path)| *path != file.path);
        all.push((at, file.path.clone()));
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.0));
    let more = all.len().saturating_sub(NAMED);
    let named: Vec<String> =
        all.into_iter().take(NAMED).map(|(_, path)| printable(&path)).collect();
    if named.is_empty() {
        return Some(format!("  {DIM}output: {}{DIM:#}", dir.join("out").display()));
    }
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("  {DIM}files: {}{more}{DIM:#}", named.join(", ")))
}
