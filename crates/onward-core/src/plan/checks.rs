//! What is found about the run as a whole: its age, its resumes, its repository, its workflow.
//!
//! Each function looks at one thing and says what it found; what follows from it for a step is said
//! in `resumption`.

use super::AgeBand;
use crate::{
    address::Address,
    event::{EditClass, EndStatus, GitHead},
    finding::{Code, Finding},
    graph::NodeId,
    run::Run,
    state::{Phase, RunStatus, State},
    survey::{CommitSeen, Edited, GitSeen, Survey},
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
    all.extend(not_delivered(run));
    all.extend(survey.outdated_approvals.iter().map(outdated_approval));
    if let Some(git) = &survey.git {
        all.extend(repository(git));
    }
    if let Some(edited) = &survey.edited {
        all.push(workflow(edited));
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
        let message = format!("it was resumed {count} times, and `limits.resumes` is {limit}");
        let hint = "raise the limit in the workflow, or start a new run";
        return Some(Finding::new(Code::ResumesInVain, message).with_hint(hint));
    }
    if let Some((cause, count)) = state.streak.in_vain().filter(|it| it.1 >= RESUMES_MANY) {
        let cause = cause.as_str();
        let message =
            format!("{count} resumes in a row ended in `{cause}` with nothing finished in between");
        let hint = "mend the cause first (see `onward log --step STEP`), then accept this";
        return Some(Finding::new(Code::ResumesInVain, message).with_hint(hint));
    }
    // The other system's log counts the resumes of an adopted run.
    if state.resumes < RESUMES_MANY || state.adopted.is_some() {
        return None;
    }
    let message = format!("it was resumed {} times", state.resumes);
    let hint = "smaller steps lose less; see what stops it with `onward log`";
    Some(Finding::new(Code::ResumedRepeatedly, message).with_hint(hint))
}

fn budget(run: &Run) -> Option<Finding> {
    let limit = run.defs.limits().usd.filter(|limit| run.state.spent >= *limit)?;
    let (spent, limit) = (run.state.spent.dollars(), limit.dollars());
    let message = format!("${spent:.2} are spent, and the limit is ${limit:.2}");
    let hint = "nothing new is started; raise `limits.usd` in the workflow to go on";
    Some(Finding::new(Code::BudgetElapsed, message).with_hint(hint))
}

/// A step counts as done while something it needs was never begun: adopted work, or a mended
/// journal. It is looked at again once that is done.
fn unfinished_dependencies(run: &Run) -> Vec<Finding> {
    let mut all = Vec::new();
    for (step, entry) in &run.state.steps {
        if entry.phase != Phase::Done {
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
        let message = format!("{step} is done, but {need}, {what} it needs, is not");
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

fn not_delivered(run: &Run) -> Option<Finding> {
    let over = run.graph.root().is_settled() && !run.state.is_ended();
    over.then(|| {
        let message = "every step is done, but the end of the run was never written";
        Finding::new(Code::AllDoneNotDelivered, message).with_hint("a resume writes it")
    })
}

fn outdated_approval(gate: &Address) -> Finding {
    let message = format!("what {gate} was asked about has changed since the answer");
    let finding = Finding::new(Code::ApprovalOutdated, message).at_step(gate);
    finding.with_hint("it is asked again")
}

fn repository(git: &GitSeen) -> Vec<Finding> {
    let mut all = Vec::new();
    if git.known.branch != git.now.branch {
        let name = |head: &GitHead| head.branch.clone().unwrap_or_else(|| "no branch".to_owned());
        let (was, is) = (name(&git.known), name(&git.now));
        let message = format!("the run worked on {was}, and this is {is}");
        let hint = match &git.known.branch {
            Some(branch) => format!("`git switch {branch}`, or accept it to go on here"),
            None => "accept it to go on here".to_owned(),
        };
        all.push(Finding::new(Code::BranchMismatch, message).with_hint(hint));
    }
    let line = |commit: &CommitSeen| {
        let id: String = commit.id.chars().take(9).collect();
        format!("{id} {}", commit.subject)
    };
    if !git.missing.is_empty() {
        let gone: Vec<String> = git.missing.iter().map(line).collect();
        let message = format!("commits on which the run stood are gone: {}", some_of(&gone));
        let hint = "the branch was moved back or rewritten; see `git reflog`";
        all.push(Finding::new(Code::MissingCommits, message).with_hint(hint));
    }
    let foreign: Vec<String> =
        git.commits.iter().filter(|commit| commit.by.is_none()).map(line).collect();
    if !foreign.is_empty() {
        let message = format!("commits that no step made: {}", some_of(&foreign));
        let hint = "they stay; no branch is ever moved";
        all.push(Finding::new(Code::UnexpectedCommits, message).with_hint(hint));
    }
    if let Some(first) = git.changed.first() {
        let message = format!("changed, and not by this run: {}", some_of(&git.changed));
        let finding = Finding::new(Code::DirtyTree, message).at_path(first);
        all.push(finding.with_hint("these changes are left as they are"));
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

fn workflow(edited: &Edited) -> Finding {
    let of = |class: EditClass| {
        let names = edited.edits.iter().filter(move |edit| edit.class == class);
        names.map(|edit| edit.step.clone()).collect::<Vec<_>>()
    };
    let mut parts = Vec::new();
    for (class, what) in [
        (EditClass::Cosmetic, "labels only"),
        (EditClass::Pending, "not yet run"),
        (EditClass::TouchesDone, "touching finished work"),
    ] {
        let names = of(class);
        if !names.is_empty() {
            parts.push(format!("{} ({what})", some_of(&names)));
        }
    }
    let what = if parts.is_empty() { "nothing that counts".to_owned() } else { parts.join("; ") };
    let message = format!("the workflow file was edited: {what}");
    let hint = "the run goes on with the new file; `--pinned` keeps the old one";
    Finding::new(Code::WorkflowChanged, message).with_hint(hint)
}

#[cfg(test)]
mod tests;
