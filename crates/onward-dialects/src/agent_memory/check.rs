//! What is wrong with the files of a run, or stands against going on with it.

use std::collections::BTreeMap;

use onward_core::{
    finding::{Code as Known, Finding},
    plural::count,
    time::Timestamp,
};

use super::{
    Code,
    event::{End, State as Stood},
    read::{CONSTITUTION, GRAPH, GraphFile, PLAN, PR, PRD, contract},
    tasks::Stage,
    told::AgentMemoryTold,
};
use crate::kit::{
    age,
    code::Odd,
    order::circle,
    path::{from_project, shown},
};

/// So many broken lines of one file are named one by one.
const LINES_MAX: usize = 5;

pub(super) fn findings(told: &AgentMemoryTold, now: Timestamp) -> Vec<Finding> {
    let mut all = Vec::new();
    over(told, &mut all);
    artifacts(told, &mut all);
    lines(told, &mut all);
    phase(told, &mut all);
    graph(told, &mut all);
    tasks(told, &mut all);
    times(told, now, &mut all);
    all.extend(told.state.odd.findings());
    from_project(&mut all, &told.dir);
    all
}

fn over(told: &AgentMemoryTold, all: &mut Vec<Finding>) {
    let word = match told.state.end {
        Some(End::Failed) => "failed",
        Some(End::Cancelled) => "was cancelled",
        Some(End::Completed) | None => return,
    };
    let message = format!("an event says that the run {word}");
    let hint = "`onward resume --force` continues anyway";
    all.push(Odd::RunOver.finding(message).with_hint(hint));
}

/// What should be there by now and is not.
fn artifacts(told: &AgentMemoryTold, all: &mut Vec<Finding>) {
    if told.code == Code::Complete {
        return;
    }
    let state = &told.state;
    let began = !told.tasks.all.iter().all(|it| it.state == Stood::Pending);
    let later = |phase: u32| state.hint.is_some_and(|it| it >= phase) || began;
    let planned = state.plan || state.graph().is_some() || later(2);
    let built = state.graph().is_some() && told.tasks.is_built();
    // Only a transition says that it was there.
    let is_prepared = state.hint.is_some_and(|it| it >= 4);
    for (path, is_missing, who) in [
        (PRD, !state.prd && (planned || later(1)), "intake writes it again"),
        (PLAN, !state.plan && (state.graph().is_some() || later(2)), "planning writes it again"),
        (
            GRAPH,
            state.graph == GraphFile::Missing && (later(2) || state.constitution),
            "the breakdown into tasks is made again",
        ),
        (CONSTITUTION, !state.constitution && later(2), "the user is asked for approval again"),
        (PR, !state.pr && built && is_prepared, "cleanup and the pull request are prepared again"),
    ] {
        if is_missing {
            let message = format!("{path} is missing: {who}");
            all.push(Finding::new(Known::MissingArtifact, message).at_path(path));
        }
    }
    if let GraphFile::Broken(why) = &state.graph {
        let message = format!("it cannot be read ({}) and is made again", shown(why));
        all.push(Finding::new(Known::ArtifactUnproved, message).at_path(GRAPH));
    }
    for id in &state.uncontracted {
        let task = told.tasks.get(id).filter(|_| state.is_approved());
        let then = match task.map(|it| it.stage) {
            None => "the breakdown into tasks is made again",
            Some(Stage::Open | Stage::Blocked | Stage::UsedUp) => {
                "it is written again before the task begins, without another approval"
            }
            Some(Stage::Unverified | Stage::Mending | Stage::Done) => {
                "the task is implemented, and its entry in the task graph stands for it"
            }
        };
        let message = format!("the contract of {} is missing: {then}", shown(id));
        all.push(Finding::new(Known::MissingArtifact, message).at_path(contract(id)));
    }
    if state.no_contracts {
        let message = "no task has a contract; what the task graph says of each has to do";
        all.push(Finding::new(Known::MissingArtifact, message).at_path("tasks"));
    }
}

fn lines(told: &AgentMemoryTold, all: &mut Vec<Finding>) {
    let mut by_file: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, broken) in &told.state.log.broken {
        let why = format!("line {} cannot be read: {}", broken.line, broken.why);
        by_file.entry(path).or_default().push(why);
    }
    for (path, line) in &told.state.log.nameless {
        by_file.entry(path).or_default().push(format!("line {line} names no event"));
    }
    for (path, lines) in by_file {
        let more = lines.len().saturating_sub(LINES_MAX);
        for message in lines.into_iter().take(LINES_MAX) {
            all.push(Finding::new(Known::BrokenLine, message).at_path(path));
        }
        if more > 0 {
            let message = format!("{} cannot be read", count(more, "more line"));
            all.push(Finding::new(Known::BrokenLine, message).at_path(path));
        }
    }
}

/// What the last transition says, against the files.
fn phase(told: &AgentMemoryTold, all: &mut Vec<Finding>) {
    let state = &told.state;
    if let Some(word) = &state.odd_phase {
        let message = format!("the last transition names `{}`, which is not a phase", shown(word));
        all.push(Odd::MissingCurrentPhase.finding(message));
    }
    let (Some(hint), Some(phase)) = (state.hint, told.ahead.phase()) else { return };
    // In the second version 3 is the approval and 4 the execution. A transition for the plan that
    // comes so far was numbered there: in the first one it leads to 2.
    let is_second = state.by_plan
        && match told.ahead {
            Code::Approval => hint == 3,
            Code::Execute | Code::Verify | Code::Blocked => hint == 4,
            Code::Intake | Code::Planning | Code::Cleanup | Code::Consolidate | Code::Complete => {
                false
            }
        };
    if phase.parse().is_ok_and(|at: u32| at < hint) && !is_second {
        let message = format!("the last transition went to phase {hint}; the files prove {phase}");
        all.push(Finding::new(Known::PhaseAheadOfEvidence, message));
    }
    if hint < 2 && state.constitution && told.code == Code::Approval {
        let message = "the run went back to planning after the approval";
        all.push(Finding::new(Known::ApprovalOutdated, message).at_path(CONSTITUTION));
    }
}

fn graph(told: &AgentMemoryTold, all: &mut Vec<Finding>) {
    let Some(graph) = told.state.graph() else { return };
    for id in &graph.doubled {
        let message = format!("two tasks have the id `{}`; the first one counts", shown(id));
        all.push(Finding::new(Known::StatusDisagrees, message).at_path(GRAPH));
    }
    for (id, after) in &graph.unknown {
        let message = format!("{} comes after `{}`, which is not a task", shown(id), shown(after));
        all.push(Odd::OddValue.finding(message).at_path(GRAPH));
    }
    for id in &graph.selfish {
        let message = format!("{} comes after itself; that counts as nothing", shown(id));
        all.push(Odd::OddValue.finding(message).at_path(GRAPH));
    }
    all.extend(graph.circles.iter().map(|it| circle(it).at_path(GRAPH)));
    if graph.tasks.is_empty() {
        let message = "it has no task; the breakdown is made again";
        all.push(Finding::new(Known::ArtifactUnproved, message).at_path(GRAPH));
    }
}

fn tasks(told: &AgentMemoryTold, all: &mut Vec<Finding>) {
    let is_over = matches!(told.code, Code::Complete);
    for task in told.tasks.all.iter().filter(|_| !is_over) {
        let at = task.place();
        if task.suspect {
            let message = "it is done, and what it depends on is not: it is verified again";
            let code = Known::DoneWithUnfinishedDependency;
            all.push(Finding::new(code, message).at_step(&at));
        }
        if task.orphan && task.stage == Stage::Open {
            let message = format!(
                "it was under way when the session ended; attempt {} starts",
                task.attempts + 1
            );
            all.push(Odd::OrphanTask.finding(message).at_step(&at));
        }
        if task.stage == Stage::UsedUp {
            let (id, count) = (shown(&task.entry.id), task.attempts);
            let message = format!(
                "{id} was tried {count} times and is not tried again by itself; you are asked"
            );
            all.push(Odd::UsedUpAskedByGate.finding(message).at_step(&at));
        }
    }
    if !told.tasks.strangers.is_empty() && told.state.graph().is_some() {
        let ids = shown(&told.tasks.strangers.join(", "));
        let message = format!("events speak of tasks that the graph does not have: {ids}");
        all.push(Odd::OddValue.finding(message).at_path(GRAPH));
    }
}

fn times(told: &AgentMemoryTold, now: Timestamp, all: &mut Vec<Finding>) {
    let log = &told.state.log;
    let last = log.last();
    if let Some((name, at)) = last.and_then(|it| Some((&it.name, it.at?))) {
        all.extend(age::future(now, &format!("the event {}", shown(name)), at));
    }
    if told.code != Code::Complete {
        all.extend(told.last_at().and_then(|at| age::stale(now, at)));
    }
}
