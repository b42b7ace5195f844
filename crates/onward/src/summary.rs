//! The last words about a run: what ran, what was kept, what it cost, and what to type next.
//!
//! Invariant: told from the fold of the journal, as `status` would tell it, so that the end of a
//! run and a look at it later agree.

use std::{collections::BTreeSet, path::Path};

use onward_core::{
    address::Address,
    decide::used_up,
    plan::Status,
    plural::count,
    run::Run,
    state::{Phase, StepState},
    survey::outputs_to_check,
    time::Timestamp,
    view::{self, Tally},
    worktree::{WorktreePlace, worktree_path},
};

use crate::{
    diagnostic::printable,
    next::became,
    style::{self, DIM, took, usd},
    undone::{self, Why},
};

/// So many steps are called the slowest, and so many outputs are named.
const NAMED: usize = 3;

/// `run X completed: 13 steps, 42 s`, and below it what is worth knowing. `since` = when this drive
/// began; `brief` = its first line only.
pub(crate) fn lines(
    id: &str,
    dir: &Path,
    run: &Run,
    status: Status,
    since: Timestamp,
    brief: bool,
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
        | Status::Fresh => {
            let more = if counts.more { " and more to come" } else { "" };
            format!("{} of {} done{more}, {span}", counts.done, count_of(counts.total))
        }
    };
    lines.push(format!("run {id} {style}{}{style:#}: {what}", became(status, run)));
    if brief {
        return lines;
    }
    let facts = facts(run, status, since);
    if !facts.is_empty() {
        lines.push(format!("  {}", facts.join(", ")));
    }
    let slow = slowest(run, since);
    if slow.len() > 1 {
        lines.push(format!("  {DIM}slowest: {}{DIM:#}", slow.join(", ")));
    }
    let again: Vec<String> = tried_again(run, since).collect();
    lines.extend(first_few("needed more than one try", again.iter().map(String::as_str)));
    if status == Status::Completed {
        lines.extend(outputs(dir, run));
    }
    // What the last resume saved, unless that was before this drive.
    if let Some(resumed) = run.state.resumed.as_deref().filter(|_| is_part) {
        let all = [resumed.reverts.as_slice(), &run.state.kept_at_starts].concat();
        let rescues = undone::by_rescue(&all);
        for ((number, why), paths) in rescues.iter().filter(|((_, why), _)| *why == Why::Replaced) {
            let (said, command) = undone::line(paths, id, *number, *why);
            lines.push(format!("  saved: {said} {command}"));
        }
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

/// `3 ran (1 again), 2 kept`: each step is in one of them.
fn facts(run: &Run, status: Status, since: Timestamp) -> Vec<String> {
    let tally = Tally::of(run, since);
    // Of a run that is over nothing comes.
    let to_come = if status == Status::Cancelled { "not done" } else { "to come" };
    let mut facts = Vec::new();
    let others = [
        (tally.kept, "kept"),
        (tally.taken_over, "taken over"),
        (tally.answered, "answered"),
        (tally.by_hand, "done by hand"),
        (tally.skipped, "skipped"),
        (tally.failed, "failed"),
        (tally.stopped, "stopped"),
        (tally.parked, "parked"),
        (tally.running, "running"),
        (tally.waiting, "waiting"),
        (tally.to_come, to_come),
    ];
    let is_alone = others.iter().all(|(number, _)| *number == 0);
    let ran = tally.ran;
    match tally.again {
        0 if ran == 0 || is_alone => {}
        0 => facts.push(format!("{ran} ran")),
        again if again == ran => facts.push(format!("{ran} ran again")),
        again => facts.push(format!("{ran} ran ({again} again)")),
    }
    let others = others.iter().filter(|(number, _)| *number > 0);
    facts.extend(others.map(|(number, word)| format!("{number} {word}")));
    let spent = run.state.spent.dollars();
    if spent > 0.0 {
        facts.push(format!("{} spent", usd(spent)));
    }
    facts
}

fn slowest(run: &Run, since: Timestamp) -> Vec<String> {
    let ended = worked(run).filter(|(_, it)| it.started_at >= since && it.phase == Phase::Done);
    let all = ended.map(|(step, it)| (it.ended_at.ms_since(it.started_at), step));
    let mut all: Vec<(u64, &Address)> = all.filter(|(ms, _)| *ms >= 1000).collect();
    all.sort_by(|one, other| other.cmp(one));
    let named = all.into_iter().take(NAMED);
    named.map(|(ms, step)| format!("{} {}", printable(step.as_str()), took(ms))).collect()
}

/// Done, after tries that failed.
fn tried_again(run: &Run, since: Timestamp) -> impl Iterator<Item = String> {
    let done = worked(run).filter(move |(_, it)| it.started_at >= since && it.phase == Phase::Done);
    let again = done.filter(|(_, it)| it.failures > 0);
    again.map(|(step, it)| format!("{step} ({} tries)", it.failures + 1))
}

/// The files that the last steps left, and the branches of worktrees.
fn outputs(dir: &Path, run: &Run) -> Vec<String> {
    let ended = |step: &Address| run.state.step(step).map(|it| it.ended_at).unwrap_or_default();
    // Each path is named once.
    let files = outputs_to_check(&run.state).into_iter();
    let mut files: Vec<(Timestamp, &str)> =
        files.map(|(step, file)| (ended(step), file.path.as_str())).collect();
    files.sort_by_key(|one| std::cmp::Reverse(one.0));
    let files = files.into_iter().map(|(_, path)| path);
    let committed =
        run.state.steps.noteworthy().filter(|(_, it)| it.evidence.branch_head.is_some());
    let tree = |step: &Address| Some(worktree_path(run, run.graph.find(step)?));
    let places = committed.filter_map(|(step, _)| WorktreePlace::at(&tree(step)?));
    let branches: BTreeSet<String> = places.map(|place| place.branch).collect();
    let named =
        [first_few("files", files), first_few("branches", branches.iter().map(String::as_str))];
    let named: Vec<String> = named.into_iter().flatten().collect();
    if named.is_empty() {
        return vec![format!("  {DIM}output: {}{DIM:#}", dir.join("out").display())];
    }
    named
}

/// `files: a, b, c and 2 more`
fn first_few<'a>(what: &str, all: impl Iterator<Item = &'a str>) -> Option<String> {
    let all: Vec<&str> = all.collect();
    let named: Vec<String> = all.iter().take(NAMED).map(|it| printable(it)).collect();
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| format!("  {DIM}{what}: {}{more}{DIM:#}", named.join(", ")))
}
