//! What is wrong with a list, or stands against going on with its pipeline.

use std::collections::BTreeSet;

use onward_core::{
    finding::{Code as Known, Finding},
    time::Timestamp,
};

use super::{
    Code,
    phase::Phase,
    progress::{Doubt, PROJECT, Stage, Vouched, changed, was_cleaned_up},
    read::Task,
    told::{Pipeline, address},
};
use crate::kit::{
    age,
    code::Odd,
    path::{from_project, shown},
};

/// From here on a pipeline is interrupted too often.
const RESUMES_MANY: u32 = 3;
/// Paths that a message names.
const PATHS_SHOWN: usize = 3;

pub(super) fn findings(told: &Pipeline, now: Timestamp) -> Vec<Finding> {
    let mut all = Vec::new();
    files(told, &mut all);
    pointer(told, &mut all);
    tasks(told, &mut all);
    blockers(told, &mut all);
    all.extend(told.list.odd.findings());
    from_project(&mut all, &told.dir);
    doubts(told, &mut all);
    repository(told, &mut all);
    resumes(told, &mut all);
    let age = told.list.touched.into_iter();
    let age = age.flat_map(|at| {
        let stale = age::stale(now, at).filter(|_| told.code != Code::Complete);
        [age::future(now, "the newest task file", at), stale]
    });
    all.extend(age.flatten());
    all
}

fn file(task: &Task) -> String {
    format!("{}.json", task.id)
}

/// Other pipelines, and files that cannot be read.
fn files(told: &Pipeline, all: &mut Vec<Finding>) {
    let earlier = told.list.permanents.iter().filter(|it| !it.duplicate && !it.is_delivered());
    for other in earlier.filter(|it| it.task.id != told.permanent.task.id) {
        let message = format!(
            "`{}` is open too; the newest one, `{}`, was chosen",
            shown(&other.task.subject),
            shown(&told.permanent.task.subject)
        );
        all.push(Odd::OthersOpen.finding(message).at_path(file(&other.task)));
    }
    for (dir, subject) in &told.others {
        let message = format!("`{}` is open too, in the list {}", shown(subject), shown(dir));
        all.push(Odd::OthersOpen.finding(message));
    }
    if let Some(why) = &told.permanent.task.broken {
        let message = format!("the pipeline's own task cannot be read ({why})");
        let hint = "fix it: one JSON object with the subject `[PERMANENT] …`; nothing can be \
             written into it as it is";
        let finding = Odd::StateUnreadable.finding(message).with_hint(hint);
        all.push(finding.at_path(file(&told.permanent.task)));
    }
    for task in &told.list.tasks {
        if let Some(why) = &task.broken {
            let message = format!("it cannot be read ({why}) and counts as not completed");
            all.push(Finding::new(Known::ArtifactUnproved, message).at_path(file(task)));
        }
        if let Some(word) = &task.odd_status {
            let message = format!("`{}` is not a status of a task", shown(word));
            all.push(Odd::OddValue.finding(message).at_path(file(task)));
        }
        for path in &task.refused {
            let message =
                format!("`{}` lies outside of the project; nothing looks there", shown(path));
            all.push(Odd::PathRefused.finding(message).at_path(file(task)));
        }
    }
}

/// The pointer of the `[PERMANENT]` task, and its tier, against what the tasks say.
fn pointer(told: &Pipeline, all: &mut Vec<Finding>) {
    let at = file(&told.permanent.task);
    if told.permanent.tier.is_none() {
        let tier = told.progress.tier.as_str();
        let message = format!("no tier is known; {tier} is assumed, by the tasks that are there");
        all.push(Odd::MissingTier.finding(message).at_path(at.clone()));
    }
    let phase = told.phase();
    let resumed = phase.map_or("P8", Phase::as_str);
    match told.permanent.current {
        None => {
            let word = told.permanent.current_word.as_deref();
            let said = word.map_or("no phase".to_owned(), |it| format!("`{}`", shown(it)));
            let message = format!("`current_phase` says {said}; by the tasks it is {resumed}");
            all.push(Odd::MissingCurrentPhase.finding(message).at_path(at));
        }
        Some(current) if phase.is_some_and(|it| current > it) => {
            let message = format!(
                "`current_phase` says {}, and the tasks reach {resumed} only: the tasks count",
                current.as_str()
            );
            all.push(Finding::new(Known::PhaseAheadOfEvidence, message).at_path(at));
        }
        Some(_) => {}
    }
    match told.code {
        Code::Deliver => {
            let message = "all work tasks are completed, and nothing was delivered";
            all.push(Finding::new(Known::AllDoneNotDelivered, message));
        }
        Code::Complete => {
            let open = told.list.tasks.iter().filter(|it| !it.is_completed());
            let open: Vec<&str> = open.map(|it| it.id.as_str()).collect();
            if !open.is_empty() {
                let open = shown(&open.join(", "));
                let message = format!("it is delivered, and these tasks are not completed: {open}");
                let at = file(&told.permanent.task);
                all.push(Finding::new(Known::StatusDisagrees, message).at_path(at));
            }
        }
        Code::Start | Code::RestartPhase | Code::ResumeTasks => {}
    }
}

/// Which phase each task is counted in, where that is not plain.
fn tasks(told: &Pipeline, all: &mut Vec<Finding>) {
    for task in &told.list.tasks {
        if let (Some(said), Some(phase)) = (task.said, task.phase) {
            let (said, phase) = (said.as_str(), phase.as_str());
            let message = format!("it says {said}, and its skill belongs to {phase}, which counts");
            all.push(Odd::PhaseBySkill.finding(message).at_path(file(task)));
        }
        if let Some(phase) = told.progress.placed.get(&task.id) {
            let message = format!("it names no phase; it counts in {}", phase.as_str());
            all.push(Odd::TaskWithoutPhase.finding(message).at_path(file(task)));
        }
    }
    let begun = told.progress.phases.iter().filter(|it| it.vouched == Some(Vouched::Begun));
    for state in begun.filter(|_| told.code != Code::Complete) {
        let (name, title) = (state.phase.as_str(), state.phase.title());
        let message = format!(
            "{name} ({title}) has no tasks; it counts as done, as work of a later phase has begun"
        );
        let hint = format!("to do it first: `onward resume --from {name}`");
        all.push(Odd::PhaseWithoutTasks.finding(message).with_hint(hint));
    }
    let tier = told.progress.tier;
    let off = told.progress.phases.iter().filter(|it| !tier.has(it.phase));
    for phase in off.map(|it| it.phase.as_str()) {
        let message = format!(
            "there are tasks of {phase}, which is not on the path of {}; it is done too",
            tier.as_str()
        );
        all.push(Odd::PhaseOffPath.finding(message));
    }
}

/// Tasks that come after a task whose file is not there.
fn blockers(told: &Pipeline, all: &mut Vec<Finding>) {
    let list = &told.list;
    let tasks = list.tasks.iter().chain(list.permanents.iter().map(|it| &it.task));
    let known: BTreeSet<&str> = tasks.map(|task| task.id.as_str()).collect();
    for task in &list.tasks {
        for id in task.blocked_by.iter().filter(|id| !known.contains(id.as_str())) {
            let name = shown(id);
            all.push(if was_cleaned_up(list, id) {
                let message = format!(
                    "it comes after task {name}, whose file is gone: most likely completed and \
                     cleaned up"
                );
                Odd::BlockerGone.finding(message).at_path(file(task))
            } else {
                let message = format!("it comes after task {name}, which is not there");
                Finding::new(Known::MissingArtifact, message).at_path(file(task))
            });
        }
    }
    gone(told, &known, all);
}

/// Tasks that were there and are not: whether they were done, nothing tells.
fn gone(told: &Pipeline, known: &BTreeSet<&str>, all: &mut Vec<Finding>) {
    if told.code == Code::Complete {
        return;
    }
    let list = &told.list;
    let mut named: BTreeSet<u64> =
        list.tasks.iter().flat_map(|it| &it.blocked_by).filter_map(|it| it.parse().ok()).collect();
    for task in list.tasks.iter().filter(|it| !it.is_completed()) {
        for id in task.blocks.iter().filter(|id| !known.contains(id.as_str())) {
            let message = format!(
                "task {}, which comes after it, is not there: it counts as done, and nothing says \
                 so",
                shown(id)
            );
            let hint = "make the task again where it is still to be done";
            let finding = Finding::new(Known::MissingArtifact, message).with_hint(hint);
            all.push(finding.at_path(file(task)));
            named.extend(id.parse::<u64>());
        }
    }
    // Work tasks are made after the pipeline's own, with numbers in order.
    let Ok(mut before) = told.permanent.task.id.parse::<u64>() else { return };
    let numbers = known.iter().filter_map(|it| it.parse::<u64>().ok());
    let numbers: BTreeSet<u64> = numbers.chain(named).filter(|it| *it > before).collect();
    let end = list.highwatermark.map(|it| it.saturating_add(1));
    let mut gaps = Vec::new();
    for number in numbers.into_iter().chain(end) {
        match number.saturating_sub(before) {
            0 | 1 => {}
            2 => gaps.push((before + 1).to_string()),
            _ => gaps.push(format!("{} to {}", before + 1, number - 1)),
        }
        before = before.max(number);
    }
    if !gaps.is_empty() {
        let message = format!(
            "files of tasks are gone ({}): most likely completed and cleaned up; one that was \
             pending would count as done, too",
            gaps.join(", ")
        );
        all.push(Odd::BlockerGone.finding(message));
    }
}

/// Completed tasks that something speaks against.
fn doubts(told: &Pipeline, all: &mut Vec<Finding>) {
    if told.code == Code::Complete {
        return;
    }
    let has_resumed = told.permanent.resumes > 0;
    for state in &told.progress.phases {
        for item in &state.items {
            let step = address(state.phase, &item.task);
            let finding = match &item.stage {
                Stage::Doubtful(Doubt::Stale(path)) => {
                    let message = "it was changed after the task that it belongs to was completed";
                    let hint = "the task is verified before anything after it runs";
                    Finding::new(Known::ArtifactChanged, message).at_path(path).with_hint(hint)
                }
                Stage::Doubtful(Doubt::Gone(path)) => {
                    let message = "it is gone, and the task that it belongs to is completed";
                    let hint = "bring it back; or else the task is verified before anything after \
                         it runs";
                    Finding::new(Known::MissingArtifact, message).at_path(path).with_hint(hint)
                }
                Stage::Doubtful(Doubt::Dependency(id)) => {
                    let message =
                        format!("it was completed before task {}, which it comes after", shown(id));
                    let hint = "it is verified before anything after it runs";
                    Finding::new(Known::DoneWithUnfinishedDependency, message).with_hint(hint)
                }
                Stage::Open if told.progress.gone.contains(&item.task.id) => {
                    let message = "it names a commit that is not in the history; it counts as not \
                         completed";
                    Finding::new(Known::MissingCommits, message)
                }
                Stage::Settled if has_resumed => {
                    let is_gone = |path: &&String| {
                        told.files.file_in(PROJECT, path).is_none() && item.task.has_left(path)
                    };
                    let Some(path) = item.task.files.iter().find(is_gone) else { continue };
                    let message = "a completed task names it, and it is not there";
                    let hint = format!(
                        "look whether the last resume did its work; to do the phase again: `onward \
                         resume --from {}`",
                        state.phase.as_str()
                    );
                    Finding::new(Known::MissingArtifact, message).at_path(path).with_hint(hint)
                }
                Stage::Doubtful(Doubt::Restart | Doubt::NoOutput)
                | Stage::Open
                | Stage::Settled => {
                    continue;
                }
            };
            all.push(finding.at_step(&step));
        }
    }
}

/// Branch and tree, against what the pipeline expects.
fn repository(told: &Pipeline, all: &mut Vec<Finding>) {
    let Some(git) = &told.files.git else { return };
    if told.code == Code::Complete {
        return;
    }
    if told.permanent.is_delivered() {
        let message = "it says that it was delivered, and its commit is not in the history";
        all.push(Finding::new(Known::MissingCommits, message));
    }
    let branch = told.permanent.branch.as_deref();
    if let Some(expected) = branch.filter(|it| git.branch.as_deref() != Some(*it)) {
        let current = git.branch.as_deref().map_or("no branch".to_owned(), |it| format!("`{it}`"));
        let expected = shown(expected);
        let message = format!("the project is on {current}, the pipeline belongs to `{expected}`");
        let hint = format!("run `git switch {expected}`, or accept the current branch");
        all.push(Finding::new(Known::BranchMismatch, message).with_hint(hint));
    }
    let expected: BTreeSet<&str> =
        told.list.tasks.iter().flat_map(|it| &it.files).map(String::as_str).collect();
    let changed = git.changes.iter().filter_map(|line| changed(line));
    // Pages are what tasks of other phases leave; what lies in `.onward` is ours.
    let is_ours = |path: &&str| path.starts_with("pipeline/") || path.starts_with(".onward/");
    let changed: Vec<&str> =
        changed.filter(|path| !expected.contains(path)).filter(|it| !is_ours(it)).collect();
    if let Some(first) = changed.first() {
        let named = changed.iter().take(PATHS_SHOWN).map(|it| shown(it));
        let named = named.collect::<Vec<String>>().join(", ");
        let more = changed.len().saturating_sub(PATHS_SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let message = format!("changes that belong to no task: {named}{more}");
        let hint = "look at them: they may have made completed work wrong";
        all.push(Finding::new(Known::DirtyTree, message).at_path(*first).with_hint(hint));
    }
}

fn resumes(told: &Pipeline, all: &mut Vec<Finding>) {
    let count = told.permanent.resumes;
    if count >= RESUMES_MANY && told.code != Code::Complete {
        let message = format!("it was resumed {count} times");
        let hint = "simplify (a lower tier has fewer phases), diagnose what interrupts it, or \
             commit partial work more often";
        all.push(Finding::new(Known::ResumedRepeatedly, message).with_hint(hint));
    }
}
