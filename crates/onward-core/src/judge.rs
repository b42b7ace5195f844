//! Was it done? The exit, the check, the declared outputs and the result, looked at together.

use serde_json::Value;

use crate::{
    digest::Digest,
    event::AttemptFinished,
    evidence::{Cause, Ending, Evidence, FileProof, Outcome},
    launch::Seal,
    workflow::model::Step,
};

/// What was found on disk after the attempt ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// Declared outputs that are there, in path order.
    pub files: Vec<FileProof>,
    /// Patterns of declared outputs that nothing matches.
    pub missing: Vec<String>,
    pub result: ResultSeen,
    /// The first 64 KiB of standard output, where a template refers to it.
    pub stdout: Option<String>,
    pub branch_head: Option<String>,
}

/// The result file, read and held against its schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResultSeen {
    #[default]
    Absent,
    Valid(Value),
    NotJson(String),
    Violates(String),
}

/// The record of an attempt that ended as `seal` says and left what `seen` says.
pub fn judge(step: &Step, seal: &Seal, seen: Collected) -> AttemptFinished {
    let outcome = outcome(step, seal, &seen);
    let result = match seen.result {
        ResultSeen::Valid(value) => Some(value),
        ResultSeen::Absent | ResultSeen::NotJson(_) | ResultSeen::Violates(_) => None,
    };
    let done = outcome == Outcome::Done;
    let evidence = if done {
        Evidence {
            files: seen.files,
            result: result.as_ref().map(|it| Digest::of(it.to_string().as_bytes())),
            stdout: seen.stdout.as_ref().map(|it| Digest::of(it.as_bytes())),
            branch_head: seen.branch_head,
        }
    } else {
        Evidence::default()
    };
    AttemptFinished {
        step: seal.step.clone(),
        attempt: seal.attempt,
        outcome,
        ending: Some(seal.ending.clone()),
        evidence,
        result: result.filter(|_| done),
        stdout: seen.stdout.filter(|_| done),
        after: None,
        footprint: Vec::new(),
    }
}

fn outcome(step: &Step, seal: &Seal, seen: &Collected) -> Outcome {
    let failed = |cause, detail: String| Outcome::Failed { cause, detail };
    if let Some((cause, detail)) = failure(&seal.ending) {
        return failed(cause, detail);
    }
    if let Some(check) = &seal.check
        && let Some((cause, detail)) = failure(check)
    {
        // Whatever a check's exit code says, it says that the work is not proved.
        let cause = if cause == Cause::Failed { Cause::Unproved } else { cause };
        return failed(cause, format!("check: {detail}"));
    }
    if !seen.missing.is_empty() {
        let missing = seen.missing.join(", ");
        return failed(Cause::Unproved, format!("exit 0, but nothing was written to {missing}"));
    }
    match &seen.result {
        ResultSeen::Valid(_) => Outcome::Done,
        ResultSeen::Absent if step.result.is_none() => Outcome::Done,
        ResultSeen::Absent => failed(Cause::Unproved, "exit 0, but no result was left".into()),
        ResultSeen::NotJson(why) | ResultSeen::Violates(why) => {
            failed(Cause::SchemaViolation, format!("result: {why}"))
        }
    }
}

/// Why an end alone makes an attempt a failed one.
pub fn failure(ending: &Ending) -> Option<(Cause, String)> {
    match ending {
        Ending::Exited { code: 0 } => None,
        Ending::Exited { code } => Some((Cause::Failed, format!("exit {code}"))),
        Ending::Signalled { signal } => Some((Cause::Crash, format!("died by signal {signal}"))),
        Ending::TimedOut { idle: true } => Some((Cause::Timeout, "no output for too long".into())),
        Ending::TimedOut { idle: false } => Some((Cause::Timeout, "took too long".into())),
        Ending::Stopped => Some((Cause::Interrupted, "stopped on request".into())),
        Ending::NotStarted { why } => Some((Cause::Failed, format!("could not start: {why}"))),
    }
}
