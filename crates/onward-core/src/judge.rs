//! Was it done? The exit, the agent's own words, and what the attempt left, looked at together.
//!
//! Invariant: success is an exit with code 0, and the agent's word that it ended well where its
//! program gives one, and every postcondition of the step. No one of them is trusted alone: agents
//! exit with 0 after an interrupt, and say `success` about a refused request. `TABLE` is the
//! policy: the first row that fits decides, and a test walks every combination.

use serde_json::Value;

use crate::{
    address::Address,
    digest::Digest,
    event::AttemptFinished,
    evidence::{Cause, Ending, Evidence, FileProof, Outcome},
    launch::Seal,
    said::{Closed, Said},
    workflow::model::Step,
};

#[cfg(test)]
mod tests;

/// What was found on disk after the attempt ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// Declared outputs that are there, in path order.
    pub files: Vec<FileProof>,
    /// Patterns of declared outputs that nothing matches.
    pub missing: Vec<String>,
    /// Declared outputs that lead out of the project.
    pub outside: Vec<String>,
    pub result: ResultSeen,
    /// The first 64 KiB of standard output, or of an agent's answer, where a template refers to it.
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
    /// It is valid and says no: what the agent decided.
    Refuses(String),
}

/// Why a result counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// It does not satisfy its schema.
    Violates(String),
    /// It does, and its answer lets nothing go on.
    Refuses(String),
}

impl Objection {
    /// For a user.
    pub fn into_words(self) -> String {
        match self {
            Self::Violates(why) | Self::Refuses(why) => why,
        }
    }
}

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Zero,
    Other,
    /// By itself, in the middle of a turn: it heeded an interrupt.
    Halted,
    Signal,
    TimeOut,
    Stopped,
    NotStarted,
}

/// What the agent said about its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// Nothing, and its program says nothing about that.
    NotExpected,
    /// Nothing, though its program always does.
    Missing,
    Well,
    Badly(Cause),
}

/// What the step's own postconditions say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// The step declares none.
    NotDeclared,
    Holds,
    CheckFailed(Cause),
    OutputMissing,
    ResultMissing,
    ResultInvalid,
    ResultRefuses,
}

impl Proof {
    /// Why the work counts for nothing, if it does.
    fn failure(self) -> Option<Cause> {
        match self {
            Self::NotDeclared | Self::Holds => None,
            // Any exit code of a check says the same: the work is not proved.
            Self::CheckFailed(Cause::Failed) | Self::OutputMissing | Self::ResultMissing => {
                Some(Cause::Unproved)
            }
            Self::CheckFailed(cause) => Some(cause),
            Self::ResultInvalid => Some(Cause::SchemaViolation),
            // A decision of the agent's, and nothing that it could put right.
            Self::ResultRefuses => Some(Cause::Failed),
        }
    }
}

/// Everything that is known about the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    exit: Exit,
    words: Words,
    /// The cause of the limit that the agent met.
    limit: Option<Cause>,
    /// A tool was refused to it.
    denied: bool,
    proof: Proof,
}

/// One row: what it fits, what the attempt is then, and how that is put for people. A cause of
/// `None` is success.
struct Row {
    fits: fn(Facts) -> bool,
    cause: fn(Facts) -> Option<Cause>,
    words: fn(&Seal, &Collected, &Said) -> String,
}

const fn row(
    fits: fn(Facts) -> bool,
    cause: fn(Facts) -> Option<Cause>,
    words: fn(&Seal, &Collected, &Said) -> String,
) -> Row {
    Row { fits, cause, words }
}

/// From what is surest to what is least so; the first row that fits decides.
#[rustfmt::skip]
static TABLE: [Row; 14] = [
    row(|it| it.exit == Exit::NotStarted,            |_| Some(Cause::Failed), how_it_ended),
    // The engine ended it, so what it said about its end is about that.
    row(|it| it.exit == Exit::Stopped,               |_| Some(Cause::Interrupted), how_it_ended),
    // Its own word is more exact than any exit code.
    row(|it| matches!(it.words, Words::Badly(_)),    said_cause, what_it_said),
    // A program that waits for the reset until its time is out was not slow.
    row(|it| it.limit.is_some() && it.words != Words::Well, |it| it.limit, which_limit),
    row(|it| it.exit == Exit::TimeOut,               |_| Some(Cause::Timeout), how_it_ended),
    row(|it| it.exit == Exit::Halted,                |_| Some(Cause::Interrupted), halted),
    row(|it| it.exit == Exit::Signal,                |_| Some(Cause::Crash), how_it_ended),
    // It could not finish, and the denial says why.
    row(|it| it.exit == Exit::Other && it.denied,    |_| DENIED, what_was_denied),
    row(|it| it.exit == Exit::Other,                 |_| Some(Cause::Failed), how_it_ended),
    // Exit 0 in mid-sentence: its stream was cut, or another program interrupted it.
    row(|it| it.words == Words::Missing,             |_| Some(Cause::Crash), never_closed),
    row(|it| it.denied && it.proof != Proof::Holds,  |_| DENIED, what_was_denied),
    // It was asked for a result, said that it was through, and gave none.
    row(|it| it.words == Words::Well && it.proof == Proof::ResultMissing,
        |_| Some(Cause::SchemaViolation), no_result),
    row(|it| it.proof.failure().is_some(),           |it| it.proof.failure(), unproved),
    row(|_| true,                                    |_| None, how_it_ended),
];

const DENIED: Option<Cause> = Some(Cause::PermissionDenied);

fn said_cause(facts: Facts) -> Option<Cause> {
    match facts.words {
        Words::Badly(cause) => Some(cause),
        Words::NotExpected | Words::Missing | Words::Well => None,
    }
}

impl Facts {
    fn of(step: &Step, seal: &Seal, seen: &Collected, said: &Said) -> Self {
        let words = match &said.closed {
            Some(Closed::Well) => Words::Well,
            Some(Closed::Badly { cause, .. }) => Words::Badly(*cause),
            None if said.must_close => Words::Missing,
            None => Words::NotExpected,
        };
        Self {
            exit: exit(&seal.ending, words, said.mid_turn),
            words,
            limit: said.limit.as_ref().map(|limit| limit.kind.cause()),
            denied: !said.denied.is_empty(),
            proof: proof(step, seal, seen),
        }
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| (row.fits)(self)).expect("the last row fits everything")
    }
}

/// A shell's numbers for a program that a signal ended.
const BY_SIGNAL: [i32; 3] = [130, 137, 143];

fn exit(ending: &Ending, words: Words, mid_turn: bool) -> Exit {
    match ending {
        Ending::Exited { code: 0 } => Exit::Zero,
        Ending::Exited { code: 1 } if words == Words::Missing && mid_turn => Exit::Halted,
        // It was ended in the middle of its work, and tidied up.
        Ending::Exited { code } if words == Words::Missing && BY_SIGNAL.contains(code) => {
            Exit::Signal
        }
        Ending::Exited { .. } => Exit::Other,
        Ending::Signalled { .. } => Exit::Signal,
        Ending::TimedOut { .. } => Exit::TimeOut,
        Ending::Stopped => Exit::Stopped,
        Ending::NotStarted { .. } => Exit::NotStarted,
    }
}

fn proof(step: &Step, seal: &Seal, seen: &Collected) -> Proof {
    if let Some((cause, _)) = seal.check.as_ref().and_then(failure) {
        return Proof::CheckFailed(cause);
    }
    if !seen.missing.is_empty() || !seen.outside.is_empty() {
        return Proof::OutputMissing;
    }
    let declares = step.check.is_some() || !step.writes.is_empty() || step.result.is_some();
    match &seen.result {
        ResultSeen::Absent if step.result.is_some() => Proof::ResultMissing,
        ResultSeen::NotJson(_) | ResultSeen::Violates(_) => Proof::ResultInvalid,
        ResultSeen::Refuses(_) => Proof::ResultRefuses,
        ResultSeen::Absent | ResultSeen::Valid(_) if declares => Proof::Holds,
        ResultSeen::Absent | ResultSeen::Valid(_) => Proof::NotDeclared,
    }
}

/// The record of an attempt that ended as `seal` says, left what `seen` says, and whose agent said
/// what `said` says.
pub fn judge(step: &Step, seal: &Seal, seen: Collected, said: &Said) -> AttemptFinished {
    let facts = Facts::of(step, seal, &seen, said);
    let row = facts.row();
    let outcome = match (row.cause)(facts) {
        None => Outcome::Done,
        Some(cause) => Outcome::Failed { cause, detail: (row.words)(seal, &seen, said) },
    };
    let result = match seen.result {
        ResultSeen::Valid(value) => Some(value),
        ResultSeen::Absent
        | ResultSeen::NotJson(_)
        | ResultSeen::Violates(_)
        | ResultSeen::Refuses(_) => None,
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
        tolerated: false,
        head: None,
        ended: None,
        waited: seal.waited,
    }
}

fn how_it_ended(seal: &Seal, _: &Collected, _: &Said) -> String {
    failure(&seal.ending).map(|(_, words)| words).unwrap_or_default()
}

fn what_it_said(_: &Seal, _: &Collected, said: &Said) -> String {
    match &said.closed {
        Some(Closed::Badly { detail, .. }) => detail.clone(),
        Some(Closed::Well) | None => String::new(),
    }
}

fn which_limit(_: &Seal, _: &Collected, said: &Said) -> String {
    let Some(limit) = &said.limit else { return String::new() };
    let until = limit.resets_at.map(|it| format!(" until {it}")).unwrap_or_default();
    format!("a limit of {} holds{until}", limit.provider)
}

fn what_was_denied(_: &Seal, _: &Collected, said: &Said) -> String {
    format!("it may not use {}", said.denied.join(", "))
}

fn halted(_: &Seal, _: &Collected, _: &Said) -> String {
    "exit 1 in the middle of its turn: another program interrupted it".to_owned()
}

fn never_closed(_: &Seal, _: &Collected, _: &Said) -> String {
    "exit 0, but the agent never said that it was through".to_owned()
}

fn no_result(_: &Seal, _: &Collected, _: &Said) -> String {
    "the agent said that it was through, and gave no result".to_owned()
}

fn unproved(seal: &Seal, seen: &Collected, _: &Said) -> String {
    if let Some((_, words)) = seal.check.as_ref().and_then(failure) {
        return format!("check: {words}");
    }
    if !seen.outside.is_empty() {
        let outside = seen.outside.join(", ");
        return format!("exit 0, but what was written leads out of the project: {outside}");
    }
    if !seen.missing.is_empty() {
        return format!("exit 0, but nothing was written to {}", seen.missing.join(", "));
    }
    match &seen.result {
        ResultSeen::NotJson(why) | ResultSeen::Violates(why) => format!("result: {why}"),
        ResultSeen::Refuses(what) => what.clone(),
        ResultSeen::Absent | ResultSeen::Valid(_) => {
            "exit 0, but no result was left in the file $ONWARD_RESULT".to_owned()
        }
    }
}

impl AttemptFinished {
    /// It came to nothing, and left nothing that counts.
    pub fn failed(step: Address, attempt: u32, cause: Cause, detail: String) -> Self {
        Self {
            step,
            attempt,
            outcome: Outcome::Failed { cause, detail },
            ending: None,
            evidence: Evidence::default(),
            result: None,
            stdout: None,
            after: None,
            footprint: Vec::new(),
            tolerated: false,
            head: None,
            ended: None,
            waited: 0,
        }
    }
}

/// Why an end alone makes an attempt a failed one.
pub fn failure(ending: &Ending) -> Option<(Cause, String)> {
    match ending {
        Ending::Exited { code: 0 } => None,
        Ending::Exited { code } => Some((Cause::Failed, format!("exit {code}"))),
        Ending::Signalled { signal } => Some((Cause::Crash, format!("died by signal {signal}"))),
        Ending::TimedOut { idle: true } => Some((Cause::Timeout, "timed out: no output".into())),
        Ending::TimedOut { idle: false } => Some((Cause::Timeout, "timed out".into())),
        Ending::Stopped => Some((Cause::Interrupted, "stopped by Ctrl-C or a request".into())),
        Ending::NotStarted { why } => Some((Cause::Failed, format!("could not start: {why}"))),
    }
}
