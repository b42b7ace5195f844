//! What is found about the run as a whole: its age, its resumes, its repository, its workflow.
//!
//! Each function looks at one thing and says what it found; what follows from it for a step is said
//! in `resumption`.

use super::AgeBand;
use crate::{
    address::Address,
    decide::used_up,
    event::{Edit, EditClass, EndStatus, GitHead},
    finding::{Code, Finding},
    graph::{Node, NodeId},
    run::Run,
    state::{Phase, RunStatus, State},
    survey::{CommitSeen, Edited, GitSeen, Survey},
    workflow::model::{Count, Many, Repeat},
};

/// Two machines' clocks may differ by this much before it is called corruption.
const CLOCK_SLACK_MS: u64 = 5 * 60 * 1000;

/// From so many resumes on, a person should find out why.
const RESUMES_MANY: u32 = 3;

/// So many paths or commits are named; the rest is counted.
const NAMED_MAX: usize = 5;

pub(super) fn about_the_run(run: &Run, survey: &Survey) -> Vec<Finding> {
    let mut all = survey.findings.clone();
    if run.state.adopted.is_none() {
        // Of an adopted run, the files of the other system tell the age.
        all.extend(age(&run.state, survey));
    }
    all.extend(resumes(run));
    all.extend(budget(run));
    all.extend(unfinished_dependencies(run));
    all.extend(not_delivered(run, survey));
    all.extend(used_up_loops(run, survey));
    all.extend(survey.outdated_approvals.iter().map(outdated_approval));
    if let Some(git) = &survey.git {
        all.extend(repository(git));
    }
    if let Some(edited) = &survey.edited {
        all.push(workflow(run, edited));
    }
    all
}

fn age(state: &State, survey: &Survey) -> Option<Finding> {
    if state.last_at > survey.now.plus_ms(CLOCK_SLACK_MS) {
        let message = format!("the last event is in the future: {}", state.last_at);
        let hint = "set the clock right, or the journal was damaged";
        return Some(Finding::new(Code::ClockInFuture, message).with_hint(hint));
    }
    let age_seconds = survey.now.ms_since(state.last_at) / 1000;
    let complete = state.status == (RunStatus::Ended { status: EndStatus::Completed });
    if AgeBand::of_seconds(age_seconds) != AgeBand::Stale || complete {
        return None;
    }
    let days = age_seconds / 86_400;
    let message = format!("nothing has happened for {days} days");
    let hint = "look at the plan with care, or start a new run";
    Some(Finding::new(Code::StaleAge, message).with_hint(hint))
}

fn resumes(run: &Run) -> Option<Finding> {
    let state = &run.state;
    if let Some(limit) = run.defs.limits().resumes.filter(|limit| state.resumes >= *limit) {
        let count = state.resumes;
        let message = format!("resumed {count} times; `limits.resumes` is {limit}");
        let hint = "raise the limit in the workflow, or start a new run";
        return Some(Finding::new(Code::ResumesInVain, message).with_hint(hint));
    }
    if let Some((cause, count)) = state.streak.in_vain().filter(|it| it.1 >= RESUMES_MANY) {
        let cause = cause.in_words();
        let message =
            format!("{count} resumes in a row ended in `{cause}` with nothing finished in between");
        let hint = "fix the cause first (see `onward log --step STEP`), then accept this";
        return Some(Finding::new(Code::ResumesInVain, message).with_hint(hint));
    }
    // The other system's log counts the resumes of an adopted run.
    if state.resumes < RESUMES_MANY || state.adopted.is_some() {
        return None;
    }
    let message = format!("resumed {} times", state.resumes);
    let hint = "smaller steps lose less; see what stops it with `onward log`";
    Some(Finding::new(Code::ResumedRepeatedly, message).with_hint(hint))
}

/// The money is spent: nothing new starts.
pub(super) fn is_over_budget(run: &Run) -> bool {
    run.defs.limits().usd.is_some_and(|limit| run.state.spent >= limit)
}

fn budget(run: &Run) -> Option<Finding> {
    let limit = run.defs.limits().usd.filter(|_| is_over_budget(run))?;
    let (spent, limit) = (run.state.spent.dollars(), limit.dollars());
    let message = format!("${spent:.2} spent; the limit is ${limit:.2}");
    let hint = "nothing new starts; raise `limits.usd` in the workflow to continue";
    Some(Finding::new(Code::BudgetElapsed, message).with_hint(hint))
}

/// Nothing is left but loops that took all the turns that they may take.
fn used_up_loops(run: &Run, survey: &Survey) -> Vec<Finding> {
    let is_over = run.state.status == (RunStatus::Ended { status: EndStatus::Failed });
    if !is_over || run.state.steps.phases().any(|it| it == Phase::Failed) {
        return Vec::new();
    }
    let stands = |(step, turns): &(&Address, u32)| {
        !survey.through.contains(*step) && !may_turn(run, step, *turns)
    };
    let finding = |(step, turns)| {
        let hint =
            "mend what it does not get through by hand, or accept this: it gets one more turn";
        Finding::new(Code::TurnsUsedUp, used_up((step, turns))).at_step(step).with_hint(hint)
    };
    run.state.used_up().filter(stands).map(finding).collect()
}

/// The workflow, as it is now, allows more turns than were taken.
fn may_turn(run: &Run, step: &Address, turns: u32) -> bool {
    let node = run.graph.find(step).map(|id| run.graph.node(id));
    let granted = run.state.loops.get(step).map_or(0, |it| it.granted);
    match node.map(|node| &run.defs.step(node.def).many) {
        Some(Many::Repeat(Repeat { max: Count::Fixed(max), .. })) => {
            turns < max.saturating_add(granted)
        }
        Some(Many::Repeat(_) | Many::Once | Many::Each(_)) | None => false,
    }
}

/// A step counts as done while something it needs was never begun: adopted work, or a mended
/// journal. It is looked at again once that is done.
fn unfinished_dependencies(run: &Run) -> Vec<Finding> {
    let mut all = Vec::new();
    // Nearly all that is done is settled, and so is what it needs.
    let is_done = |node: &Node| run.state.phase(&node.address) == Phase::Done;
    if !run.graph.unsettled().any(is_done) {
        return all;
    }
    for (step, entry) in run.state.steps.glances() {
        if entry.phase() != Phase::Done {
            continue;
        }
        let Some(id) = run.graph.find(step) else { continue };
        if run.graph.node(id).is_settled() {
            continue;
        }
        let Some(need) = never_begun(run, id) else { continue };
        let need = &run.graph.node(need).address;
        let (code, what) = if top(need) == top(step) {
            (Code::DoneWithUnfinishedDependency, "a step")
        } else {
            (Code::PhaseAheadOfEvidence, "an earlier phase")
        };
        let message = format!("{step} is done, but {need}, {what} that it needs, is not");
        let hint = format!("{need} runs first; then {step} is compared again");
        all.push(Finding::new(code, message).at_step(step).with_hint(hint));
    }
    all
}

fn never_begun(run: &Run, id: NodeId) -> Option<NodeId> {
    run.graph.effective_needs(id).into_iter().find(|need| {
        let mut rest = vec![*need];
        while let Some(id) = rest.pop() {
            let node = run.graph.node(id);
            if node.is_settled() || run.state.step(&node.address).is_some() {
                return false;
            }
            rest.extend(&node.children);
        }
        true
    })
}

/// The top-level step that an instance stands in.
fn top(step: &Address) -> &str {
    let top = step.as_str().split('/').next().unwrap_or_default();
    top.split('[').next().unwrap_or(top)
}

fn not_delivered(run: &Run, survey: &Survey) -> Option<Finding> {
    let is_settled = run.graph.root().is_settled() && survey.outdated_approvals.is_empty();
    let over = is_settled && !run.state.is_ended();
    over.then(|| {
        let message = "all steps are done; only the closing record is missing";
        Finding::new(Code::AllDoneNotDelivered, message).with_hint("a resume writes it")
    })
}

fn outdated_approval(gate: &Address) -> Finding {
    let message = format!("what {gate} showed has changed since it was answered");
    let finding = Finding::new(Code::ApprovalOutdated, message).at_step(gate);
    finding.with_hint("the gate asks again")
}

fn repository(git: &GitSeen) -> Vec<Finding> {
    let mut all = Vec::new();
    if git.known.branch != git.now.branch {
        let name = |head: &GitHead| {
            head.branch.as_ref().map_or_else(|| "no branch".to_owned(), |it| format!("branch {it}"))
        };
        let (was, is) = (name(&git.known), name(&git.now));
        let message = format!("the run started on {was}; you are on {is}");
        let hint = match &git.known.branch {
            Some(branch) => format!("`git switch {branch}`, or accept it to continue here"),
            None => "accept it to continue here".to_owned(),
        };
        all.push(Finding::new(Code::BranchMismatch, message).with_hint(hint));
    }
    let line = |commit: &CommitSeen| {
        let id: String = commit.id.chars().take(9).collect();
        format!("{id} {}", commit.subject)
    };
    if !git.missing.is_empty() {
        let gone: Vec<String> = git.missing.iter().map(line).collect();
        let message = format!("commits that the run was built on are gone: {}", some_of(&gone));
        let hint = "the branch was moved back or rewritten; see `git reflog`";
        all.push(Finding::new(Code::MissingCommits, message).with_hint(hint));
    }
    let foreign: Vec<String> =
        git.commits.iter().filter(|commit| commit.by.is_none()).map(line).collect();
    if !foreign.is_empty() {
        let message = format!("commits that no step of the run made: {}", some_of(&foreign));
        let hint = "they stay; onward never moves a branch";
        all.push(Finding::new(Code::UnexpectedCommits, message).with_hint(hint));
    }
    if let Some(first) = git.changed.first() {
        let message = format!("changed by someone other than this run: {}", some_of(&git.changed));
        let finding = Finding::new(Code::DirtyTree, message).at_path(first);
        all.push(finding.with_hint("these changes stay as they are"));
    }
    all
}

fn some_of(names: &[String]) -> String {
    let first = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn workflow(run: &Run, edited: &Edited) -> Finding {
    let mut parts = Vec::new();
    for touch in Touch::ALL {
        let names = edited.edits.iter().filter(|edit| Touch::of(run, edited, edit) == touch);
        let names: Vec<String> = names.map(|edit| edit.step.clone()).collect();
        if !names.is_empty() {
            parts.push(format!("{} ({})", some_of(&names), touch.as_str()));
        }
    }
    let what = if parts.is_empty() { "nothing that matters".to_owned() } else { parts.join("; ") };
    let message = format!("the workflow file was edited: {what}");
    let hint = "the run continues with the new file; `--pinned` keeps the old one";
    Finding::new(Code::WorkflowChanged, message).with_hint(hint)
}

/// What an edit meets, by what the run did of that step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    Labels,
    NotYetRun,
    Unfinished,
    Kept,
    Gone,
    Done,
}

impl Touch {
    const ALL: [Self; 6] =
        [Self::Labels, Self::NotYetRun, Self::Unfinished, Self::Kept, Self::Gone, Self::Done];

    fn of(run: &Run, edited: &Edited, edit: &Edit) -> Self {
        let inner = format!("{}/", edit.step);
        let is_its = |step: &Address| {
            let name = step.declared();
            name == edit.step || name.starts_with(&inner)
        };
        match edit.class {
            EditClass::Cosmetic => Self::Labels,
            EditClass::TouchesDone if edited.gone.contains(&edit.step) => Self::Gone,
            EditClass::TouchesDone => Self::Done,
            EditClass::Pending => {
                let mut phases =
                    run.state.steps.iter().filter(|it| is_its(it.0)).map(|it| it.1.phase);
                if phases.clone().any(Phase::is_settled) {
                    Self::Kept
                } else if phases.any(|it| it != Phase::Waiting) {
                    Self::Unfinished
                } else {
                    Self::NotYetRun
                }
            }
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Labels => "labels only",
            Self::NotYetRun => "not yet run",
            Self::Unfinished => "not finished",
            Self::Kept => "what is done of it is kept",
            Self::Gone => "no longer there; what it did stays",
            Self::Done => "touching finished work",
        }
    }
}

#[cfg(test)]
mod tests;
