//! What comes next for a run that stands still: why it does, what to do first, and the one command.
//!
//! Invariant: the same words at the end of a run, in `status`, in `list` and in a bare `onward`,
//! and a command is offered only where it can work once the line above it is heeded.

use std::collections::BTreeSet;

use onward_core::{
    digest::Digest,
    evidence::Cause,
    finding::{Code, Finding, RUN_OVER},
    plan::{Outlook, Plan, RunInfo, Status},
    policy::{self, Choices},
    run::Run,
    state::Phase,
    time::Timestamp,
};

use crate::{
    command::onward,
    diagnostic::printable,
    gates::Gate,
    session::{named_in_commands, word},
    style::{clock, took, usd},
};

/// `run X completed`, and so on, as the end of a sentence.
pub(crate) fn became(status: Status, run: &Run) -> &'static str {
    match status {
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "was cancelled",
        Status::Waiting if run.graph.open_gates().next().is_none() => "needs you",
        Status::Waiting => "waits for your answer",
        Status::Parked => "is parked",
        Status::OverBudget => "reached its budget",
        Status::Interrupted => "was interrupted",
        Status::Running => "is running",
        Status::Fresh => "has not started",
    }
}

/// `until 14:02, 3 h 10 min from now (quiet hours)`, for a run that is parked.
pub(crate) fn until(info: &RunInfo, now: Timestamp) -> Option<String> {
    let at: Timestamp = info.until.as_deref()?.parse().ok()?;
    let why = if info.stopped_by.as_deref() == Some("quiet-hours") { " (quiet hours)" } else { "" };
    Some(format!("{}{why}", moment(at, now)))
}

/// What to say of a run that waits for a moment, with its driver or without.
pub(crate) fn waits(info: &RunInfo, now: Timestamp) -> Option<String> {
    match info.status {
        Status::Parked => until(info, now),
        Status::Running => until(info, now).map(|until| format!("waits {until}")),
        Status::Fresh
        | Status::Interrupted
        | Status::Waiting
        | Status::OverBudget
        | Status::Completed
        | Status::Failed
        | Status::Cancelled => None,
    }
}

/// `until 14:02, 3 h 10 min from now`
pub(crate) fn moment(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("until {}, {} from now", clock(at, now), took(at.ms_since(now)))
    } else {
        format!("until {}, which is over", clock(at, now))
    }
}

/// What a person must do before the command below it can work.
pub(crate) fn first(run: &Run, status: Status) -> Vec<String> {
    match status {
        Status::OverBudget => over_budget(run).into_iter().collect(),
        Status::Waiting => {
            let failed = run.state.steps.noteworthy().filter(|(_, it)| it.phase == Phase::Failed);
            let mut all: Vec<String> = failed
                .filter_map(|(step, it)| remedy(run, it.failure.as_deref()?.0, step.as_str()))
                .collect();
            all.dedup();
            all
        }
        Status::Fresh
        | Status::Running
        | Status::Interrupted
        | Status::Parked
        | Status::Failed
        | Status::Cancelled
        | Status::Completed => Vec::new(),
    }
}

fn over_budget(run: &Run) -> Option<String> {
    let limit = run.defs.limits().usd?;
    let file = run.state.opened.as_ref().and_then(|it| it.file.clone());
    let file = file.map_or_else(|| "the workflow".to_owned(), |it| printable(&it));
    let (spent, limit) = (usd(run.state.spent.dollars()), usd(limit.dollars()));
    Some(format!("{spent} spent of {limit}: raise `limits.usd` in {file} first, then"))
}

/// What only a person can put right, by the cause of the failure.
fn remedy(run: &Run, cause: Cause, step: &str) -> Option<String> {
    let step = printable(step);
    let is_builtin = run.state.opened.as_ref().is_some_and(|it| it.file.is_none());
    match cause {
        Cause::Auth => Some(format!("log in to the agent of {step} first, then")),
        // A run keeps the permissions that its roles had when it began.
        Cause::PermissionDenied if is_builtin => Some(format!(
            "allow it in the settings of the agent of {step} first (`roles` in the configuration \
             is for new runs), then"
        )),
        Cause::PermissionDenied => {
            Some(format!("allow it first, by `permissions` or `allow` of {step}, then"))
        }
        Cause::Budget => Some(format!("raise the budget of the agent of {step} first, then")),
        Cause::Crash
        | Cause::Timeout
        | Cause::Overloaded
        | Cause::Server
        | Cause::Network
        | Cause::Failed
        | Cause::Unproved
        | Cause::SchemaViolation
        | Cause::RateLimited
        | Cause::UsageLimit
        | Cause::ContextOverflow
        | Cause::MaxTurns
        | Cause::Interrupted
        | Cause::SessionMissing
        | Cause::SessionBusy => None,
    }
}

/// The one next thing to type where no gate is open; nothing for a run that is over. `id` = how
/// commands name the run.
pub(crate) fn command(id: &str, status: Status) -> Option<String> {
    match status {
        Status::Completed | Status::Cancelled => None,
        Status::Running => Some(onward!("attach {id}")),
        Status::Waiting
        | Status::Fresh
        | Status::Interrupted
        | Status::Parked
        | Status::OverBudget
        | Status::Failed => Some(onward!("resume {id}")),
    }
}

/// What to type after a look at a plan.
pub(crate) enum Next {
    Command(String),
    /// It goes on in spite of what was found.
    Anyway(String),
}

/// At a terminal a resume asks about what needs the user; elsewhere it would be refused.
pub(crate) fn of_plan(plan: &Plan, is_terminal: bool) -> Option<Next> {
    let run = named_in_commands(&plan.run);
    if plan.findings.iter().any(|it| it.code == Code::JournalDamaged.as_str()) {
        return Some(Next::Command(onward!("repair {run}")));
    }
    let asks = is_terminal && !plan.needs.is_empty() && plan.outlook() != Outlook::Not;
    if plan.can_resume || asks {
        return Some(Next::Command(onward!("resume {run}")));
    }
    let standing = policy::standing(&plan.findings, plan.run.age_band, &Choices::default());
    let mut flags = settling(&standing)?;
    let is_ours = plan.run.dialect == "onward";
    if is_ours && plan.run.status == Status::Cancelled {
        flags.push(FORCE.to_owned());
    }
    (!flags.is_empty()).then(|| Next::Anyway(onward!("resume {run} {}", flags.join(" "))))
}

const FORCE: &str = "--force";

/// The flags that settle what can be settled with a word; `None` where a fact has to be mended, as
/// no flag helps beside it.
pub(crate) fn settling(findings: &[Finding]) -> Option<Vec<String>> {
    let (over, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|it| it.code == RUN_OVER);
    if others.iter().any(|it| !it.can_be_accepted()) {
        return None;
    }
    let codes: BTreeSet<&str> = others.iter().map(|it| it.code.as_str()).collect();
    let mut flags: Vec<String> = codes.iter().map(|code| format!("--accept {code}")).collect();
    flags.extend(over.first().map(|_| FORCE.to_owned()));
    Some(flags)
}

/// The command that answers a gate with its first option. An answer holds for what was `opened`; if
/// the gate shows something else now, the command names that.
pub(crate) fn answer(id: &str, gate: &Gate, opened: Option<Digest>) -> String {
    let step = word(gate.step.as_str());
    let mut command = match gate.options.first() {
        Some(option) if !gate.options.iter().any(|it| it == "approve") => {
            onward!("decide {id} {step} {}", word(option))
        }
        Some(_) | None => onward!("approve {id} {step}"),
    };
    if opened != Some(gate.hash) {
        command.push_str(" --hash ");
        command.push_str(&gate.short_hash());
    }
    command
}
