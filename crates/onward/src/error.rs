//! Why a command failed: what happened, a code for scripts, and what to try next.

use std::{io, path::PathBuf};

use onward_core::finding::{Code, Finding};
use onward_engine::{
    care::{CareError, harness::HarnessError, rehearse::RehearseError},
    drive::offline::DecideError,
    engine::EngineError,
    load::{follow::FollowError, journal::LoadError},
    locate::{CreateError, FindError, LoadWorkflowError, LockError, config::ConfigError},
    resume::ResumeError,
    world::{Stop, supervisor::SuperviseError},
};
use serde_json::{Value, json};

use crate::diagnostic::printable;

/// All is well.
pub(crate) const OK: u8 = 0;
/// Something outside did not work.
pub(crate) const FAILED: u8 = 1;
/// What was given is not valid: a file, or the command line.
pub(crate) const INVALID: u8 = 2;

/// The run failed or was cancelled.
pub(crate) const RUN_FAILED: u8 = 10;
/// A person must answer a gate.
pub(crate) const WAITING: u8 = 11;
/// Parked at a limit.
pub(crate) const PARKED: u8 = 12;
/// The budget is spent.
pub(crate) const OVER_BUDGET: u8 = 13;
/// Another process holds the run or the tree.
pub(crate) const HELD: u8 = 14;
/// The journal is damaged.
pub(crate) const DAMAGED: u8 = 15;
/// Conflicts must be resolved by a person.
pub(crate) const CONFLICTS: u8 = 16;
/// None found, or already complete.
pub(crate) const NOTHING: u8 = 17;
/// Stopped by a signal.
pub(crate) const INTERRUPTED: u8 = 130;

/// Messages are lower-case fragments without a full stop, fit for `error: {error}`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read `{}`: {}", path.display(), reason(source))]
    CannotRead { path: PathBuf, source: io::Error },
    #[error("cannot make `{}`: {}", path.display(), reason(source))]
    CannotMake { path: PathBuf, source: io::Error },
    #[error("cannot write to standard output: {0}")]
    CannotWrite(#[from] io::Error),
    #[error("{message}")]
    Usage { message: String, hint: String },
    #[error(transparent)]
    Call(#[from] onward_engine::play::CallError),
    #[error("`{name}` is not a valid workflow: {first}")]
    InvalidWorkflow { name: String, first: String },
    #[error("there is nothing to resume here")]
    NothingToResume,
    /// In the words of the system that wrote it.
    #[error("{what}")]
    AlreadyComplete { what: String },
    #[error("several runs can be resumed:\n{}", numbered(list))]
    SeveralRuns { list: Vec<String>, first: String },
    #[error("nobody confirmed the plan of `{run}`")]
    NotConfirmed { run: String },
    /// Somebody left a question with Ctrl-C; `command` asks it again.
    #[error("nothing was done")]
    Interrupted { command: String },
    #[error("{}", chain(.0))]
    Supervise(#[from] SuperviseError),
    #[error("there is no step `{step}` in this run")]
    NoSuchStep { step: String, known: Vec<String> },
    #[error("{}", if open.is_empty() { "no gate is open" } else { "several gates are open" })]
    WhichGate { open: Vec<String> },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error("there is no dialect `{name}`")]
    NoSuchDialect { name: String, known: Vec<String> },
    #[error("`{}` was written by another system, and no run goes on with it yet", dir.display())]
    NotAdopted { dir: PathBuf },
    #[error("the demo did not work: {0}")]
    Demo(String),
    #[error("the demo did not work: {}", chain(.0))]
    Harness(#[from] HarnessError),
    #[error("{}", engine_chain(.0))]
    Engine(#[from] EngineError),
    #[error("{}", care_chain(.0))]
    Care(#[from] CareError),
    #[error("the rehearsal did not work: {}", chain(.0))]
    Rehearse(RehearseError),
}

impl From<RehearseError> for Error {
    fn from(error: RehearseError) -> Self {
        match error {
            RehearseError::Engine(error) => Self::Engine(error),
            RehearseError::Harness(error) => Self::Harness(error),
            RehearseError::Io { .. }
            | RehearseError::Git { .. }
            | RehearseError::TooLarge { .. }
            | RehearseError::Reference { .. } => Self::Rehearse(error),
        }
    }
}

fn numbered(list: &[String]) -> String {
    let lines = list.iter().enumerate().map(|(index, line)| format!("  {}. {line}", index + 1));
    lines.collect::<Vec<_>>().join("\n")
}

/// An error with what it came from, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn engine_chain(error: &EngineError) -> String {
    let mut text = chain(error);
    if let EngineError::Resume(ResumeError::Conflicts(findings))
    | EngineError::Stop(Stop::Conflicts(findings)) = error
    {
        for finding in findings {
            text = format!("{text}\n  {}: {}", finding.code, printable(&finding.message));
        }
    }
    text
}

fn care_chain(error: &CareError) -> String {
    match error {
        CareError::Engine(error) => engine_chain(error),
        CareError::Damaged(_)
        | CareError::Alive { .. }
        | CareError::NeedsYes { .. }
        | CareError::Refused { .. } => chain(error),
    }
}

impl Error {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::CannotRead { .. } => "cannot_read",
            Self::CannotMake { .. } => "cannot_make",
            Self::CannotWrite(_) => "cannot_write",
            Self::Usage { .. } | Self::NoSuchDialect { .. } => "usage",
            Self::InvalidWorkflow { .. } => "invalid_workflow",
            Self::NothingToResume | Self::AlreadyComplete { .. } => "nothing_to_resume",
            Self::SeveralRuns { .. } => "several_runs",
            Self::NotConfirmed { .. } => "not_confirmed",
            Self::Interrupted { .. } => "interrupted",
            Self::Supervise(_) => "supervise",
            Self::NoSuchStep { .. } | Self::Engine(EngineError::Stop(Stop::NoEntry(_))) => {
                "no_such_step"
            }
            Self::WhichGate { .. } => "which_gate",
            Self::Config(_) => "invalid_config",
            Self::Find(FindError::LostJournal { .. }) => "journal_damaged",
            Self::Find(_) => "no_such_run",
            Self::Engine(EngineError::Stop(Stop::MissingFile { .. })) => "missing_file",
            Self::NotAdopted { .. } => "not_adopted",
            Self::Follow(_) => "cannot_follow",
            Self::Demo(_) | Self::Harness(_) => "demo",
            Self::Call(_) => "call",
            Self::Rehearse(_) => "rehearse",
            Self::Engine(error) => code_of(exit_of(error)),
            Self::Care(error) => code_of(exit_of_care(error)),
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::CannotRead { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path; relative ones start at `--cwd`, or here".into())
            }
            Self::CannotMake { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Some("it is there already; choose another name".into())
            }
            Self::CannotRead { .. }
            | Self::CannotMake { .. }
            | Self::CannotWrite(_)
            | Self::AlreadyComplete { .. }
            | Self::Follow(_)
            | Self::Demo(_)
            | Self::Harness(_) => None,
            Self::Usage { hint, .. } => Some(hint.clone()),
            Self::Call(error) => error.hint.clone(),
            Self::InvalidWorkflow { name, .. } => Some(format!("see `onward check {name}`")),
            Self::NothingToResume => {
                Some("start something with `onward run FILE`, or see `onward list`".into())
            }
            Self::SeveralRuns { first, .. } => {
                Some(format!("say which, such as `onward resume {first}`, or take `--all`"))
            }
            Self::Interrupted { command } => Some(command.clone()),
            Self::NotConfirmed { run } => Some(format!(
                "look at it with `onward plan {run}`, then `onward resume {run} --yes`"
            )),
            Self::Supervise(error) => error.hint().map(str::to_owned),
            Self::NoSuchStep { known, .. } => {
                let near: Vec<&str> = known.iter().take(8).map(String::as_str).collect();
                Some(format!("steps: {}", near.join(", ")))
            }
            Self::WhichGate { open } if open.is_empty() => Some("see `onward status`".into()),
            Self::WhichGate { open } => Some(format!("say which: {}", open.join(", "))),
            Self::Config(error) => Some(error.hint().to_owned()),
            Self::Find(error) => Some(error.hint()),
            Self::NoSuchDialect { known, .. } => Some(format!("known: {}", known.join(", "))),
            Self::NotAdopted { dir } => {
                let dir = dir.display();
                Some(format!("see `onward plan {dir}`, then `onward resume {dir}`"))
            }
            Self::Engine(EngineError::Resume(ResumeError::Damaged)) => {
                Some("rebuild it with `onward repair`; what is readable is kept".into())
            }
            Self::Engine(EngineError::Resume(ResumeError::Conflicts(findings))) => {
                Some(conflicts_hint(findings))
            }
            Self::Engine(error) => error.hint(),
            Self::Care(error) => error.hint(),
            Self::Rehearse(error) => error.hint(),
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            // Whoever read our output has seen enough.
            Self::CannotWrite(error) if error.kind() == io::ErrorKind::BrokenPipe => OK,
            Self::CannotRead { .. }
            | Self::CannotMake { .. }
            | Self::CannotWrite(_)
            | Self::NoSuchStep { .. }
            | Self::WhichGate { .. }
            | Self::Find(FindError::Several { .. } | FindError::Io { .. })
            | Self::NotAdopted { .. }
            | Self::Follow(_)
            | Self::Supervise(_)
            | Self::Call(_)
            | Self::Demo(_)
            | Self::Harness(_)
            | Self::Rehearse(_) => FAILED,
            Self::Usage { .. }
            | Self::InvalidWorkflow { .. }
            | Self::Config(_)
            | Self::NoSuchDialect { .. } => INVALID,
            Self::SeveralRuns { .. } | Self::NotConfirmed { .. } => CONFLICTS,
            Self::Interrupted { .. } => INTERRUPTED,
            Self::Find(FindError::LostJournal { .. }) => DAMAGED,
            Self::NothingToResume
            | Self::AlreadyComplete { .. }
            | Self::Engine(EngineError::Stop(Stop::MissingFile { .. }))
            | Self::Find(FindError::NoRuns | FindError::NoSuchRun { .. }) => NOTHING,
            Self::Engine(error) => exit_of(error),
            Self::Care(error) => exit_of_care(error),
        }
    }
}

/// The flags that settle what can be settled with a word.
fn conflicts_hint(findings: &[Finding]) -> String {
    let mut codes: Vec<&str> = findings.iter().map(|it| it.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.retain(|code| Code::can_be_accepted(code));
    if codes.is_empty() {
        return "see `onward plan`".to_owned();
    }
    let flags: Vec<String> = codes.iter().map(|code| format!("--accept {code}")).collect();
    format!("see `onward plan`; to go on all the same: `onward resume {}`", flags.join(" "))
}

fn code_of(exit: u8) -> &'static str {
    match exit {
        HELD => "held",
        DAMAGED => "journal_damaged",
        CONFLICTS => "conflicts",
        NOTHING => "nothing_to_resume",
        INVALID => "invalid",
        _ => "failed",
    }
}

fn exit_of_care(error: &CareError) -> u8 {
    match error {
        CareError::Engine(error) => exit_of(error),
        CareError::Damaged(_) => DAMAGED,
        CareError::Alive { .. } => HELD,
        CareError::NeedsYes { .. } | CareError::Refused { .. } => CONFLICTS,
    }
}

fn exit_of(error: &EngineError) -> u8 {
    match error {
        EngineError::Journal(LoadError::Read(error))
        | EngineError::Resume(ResumeError::Journal(LoadError::Read(error)))
            if error.is_damage() =>
        {
            DAMAGED
        }
        EngineError::Lock(LockError::RunHeld { .. } | LockError::TreeHeld { .. }) => HELD,
        EngineError::Resume(ResumeError::Damaged | ResumeError::Stop(Stop::Damaged))
        | EngineError::Decide(DecideError::Damaged)
        | EngineError::Stop(Stop::Damaged) => DAMAGED,
        EngineError::Resume(ResumeError::Conflicts(_))
        | EngineError::Stop(Stop::Conflicts(_))
        | EngineError::BegunElsewhere { .. }
        | EngineError::CannotContinue { .. } => CONFLICTS,
        EngineError::Resume(ResumeError::Parked { .. }) => PARKED,
        EngineError::Resume(ResumeError::Complete) | EngineError::NotARun(_) => NOTHING,
        EngineError::Resume(ResumeError::NoSuchStep(_) | ResumeError::NoSuchFinding(_))
        | EngineError::Agent(_)
        | EngineError::NoRepository { .. }
        | EngineError::Workflow(LoadWorkflowError::Invalid(_))
        | EngineError::Create(
            CreateError::NoSuchInput { .. }
            | CreateError::MissingInput { .. }
            | CreateError::WrongKind { .. }
            | CreateError::Secret { .. },
        ) => INVALID,
        EngineError::Machine { .. }
        | EngineError::NoWorkflow { .. }
        | EngineError::Create(CreateError::Unwritable(_) | CreateError::Stop(_))
        | EngineError::Lock(LockError::Io { .. })
        | EngineError::Workflow(LoadWorkflowError::Io { .. })
        | EngineError::Resume(
            ResumeError::NoJournal | ResumeError::Journal(_) | ResumeError::Stop(_),
        )
        | EngineError::Journal(_)
        | EngineError::Decide(_)
        | EngineError::Impossible(_)
        | EngineError::Stop(_) => FAILED,
    }
}

/// Without the number that the operating system gives its errors.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// The shape of an error for scripts.
pub(crate) fn json(code: &str, message: &str, hint: Option<&str>) -> Value {
    json!({"schema": "onward.error/1", "code": code, "message": message, "hint": hint})
}
