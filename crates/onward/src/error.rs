//! Why a command failed: what happened, a code for scripts, and what to try next.

use std::{io, path::PathBuf};

use onward_core::plural::count;
use onward_engine::{
    care::{CareError, harness::HarnessError, rehearse::RehearseError},
    drive::offline::DecideError,
    engine::EngineError,
    load::{follow::FollowError, journal::LoadError},
    locate::{CreateError, FindError, LoadWorkflowError, LockError, config::ConfigError},
    resume::ResumeError,
    world::{Stop, supervisor::SuperviseError},
};

use crate::{
    command::{in_text, onward},
    diagnostic::printable,
    hints::{
        another_list, confirming, conflicts_hint, gates_hint, naming_run, steps_hint, with_flags,
    },
    meant::Looked,
    session::word,
    shapes::Failure,
};

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
    /// `is_told` = each problem was shown before.
    #[error("`{name}` cannot be run: {first}")]
    InvalidWorkflow { name: String, first: String, is_told: bool },
    #[error("there is nothing to resume here")]
    NothingToResume,
    /// It can be taken up again, by a word of its own.
    #[error("there is nothing to resume here: run {run} was cancelled")]
    LastIsCancelled { run: String },
    #[error("there is nothing to resume here: run {run} is complete")]
    LastIsComplete { run: String },
    /// It is no file, and no built-in workflow is called so.
    #[error("cannot read `{}`: no such file or directory", path.display())]
    NoSuchWorkflow { path: PathBuf, near: Option<String>, known: Vec<String> },
    /// In the words of the system that wrote it.
    #[error("{what}")]
    AlreadyComplete { what: String },
    #[error("run {run} was cancelled, and is over")]
    Cancelled { run: String },
    #[error("several runs wait for an answer:\n{}", numbered(list))]
    SeveralWait { list: Vec<String>, first: String },
    /// `command` = what was asked of the run; nothing where any command may have been.
    #[error("several runs can be {}:\n{}", asked(command), numbered(list))]
    SeveralRuns { list: Vec<String>, first: String, command: &'static str },
    #[error("nothing says that the pipeline in `{}` is this project's", list.display())]
    WhoseList { list: PathBuf },
    #[error("the plan of `{run}` was not confirmed")]
    NotConfirmed {
        run: String,
        /// What the resume was asked for besides, as it is typed.
        flags: Vec<String>,
    },
    /// The person left a question with Ctrl-C; `command` asks it again: the words behind `onward`.
    #[error("{}", left(command))]
    Interrupted { command: String },
    /// The driver that was started in the background ended before it drove, with this exit code.
    #[error("{message}")]
    Left { exit: u8, message: String, hint: Option<String> },
    #[error("{}", chain(.0))]
    Supervise(#[from] SuperviseError),
    #[error("there is no step `{step}` in this run")]
    NoSuchStep { step: String, known: Vec<String> },
    /// `asked` = what is wrong with the gate that was named; `open`: the commands that answer those
    /// that wait, the words behind `onward`.
    #[error("{}", which_gate(asked.as_deref(), open))]
    WhichGate { asked: Option<String>, open: Vec<String> },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Find(#[from] FindError),
    /// Where the command asks for one that there must be.
    #[error("there is no run here, in `{}`", dir.display())]
    NoRunIn { dir: PathBuf },
    /// `dir` is where it lies, `back` where it lay, both as they are typed.
    #[error("run {run} is in the archive")]
    Archived { run: String, dir: String, back: String },
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error("there is no dialect `{name}`")]
    NoSuchDialect { name: String, known: Vec<String> },
    #[error("{}", no_permanent_task(.0))]
    NoPermanentTask(Looked),
    /// As a command names it.
    #[error("`{name}` was written by another system, and no run continues it yet")]
    NotAdopted { name: String },
    /// Other systems' runs are here, and each is over or was never begun.
    #[error("no run here is open")]
    NoneOpen { names: Vec<String> },
    #[error("the demo did not work: {0}")]
    Demo(String),
    #[error("the demo did not work: {}", chain(.0))]
    Harness(#[from] HarnessError),
    #[error("{}", engine_chain(.0))]
    Engine(#[from] EngineError),
    /// What stands in the way of one run; its hint names the run.
    #[error("{error}")]
    OfRun { run: String, error: Box<Self> },
    /// What stands in the way of a resume that was given these flags; its hint repeats them.
    #[error("{error}")]
    Given { flags: Vec<String>, error: Box<Self> },
    /// Nothing is here, and task lists of Claude Code hold tasks of which no pipeline is known.
    #[error("{error}")]
    BesideLists { lists: usize, error: Box<Self> },
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

/// A person who only watched left a run that goes on.
fn left(command: &str) -> &'static str {
    if command.starts_with("attach") { "the run continues" } else { "nothing was done" }
}

fn which_gate<'a>(asked: Option<&'a str>, open: &[String]) -> &'a str {
    match asked {
        Some(asked) => asked,
        None if open.is_empty() => "no gate is open",
        None => "several gates are open",
    }
}

/// The command that ends a run for good.
pub(crate) const CANCEL: &str = "cancel";

/// What can be done with each of several runs.
fn asked(command: &str) -> &'static str {
    match command {
        "resume" => "resumed",
        CANCEL => "cancelled",
        _ => "meant",
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
    /// Of a resume that was given these flags.
    pub(crate) fn given(self, flags: Vec<String>) -> Self {
        if flags.is_empty() { self } else { Self::Given { flags, error: Box::new(self) } }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::CannotRead { .. } | Self::NoSuchWorkflow { .. } => "cannot_read",
            Self::CannotMake { .. } => "cannot_make",
            Self::CannotWrite(_) => "cannot_write",
            Self::Usage { .. } | Self::NoSuchDialect { .. } => "usage",
            Self::NoPermanentTask(_) => "no-permanent-task",
            Self::InvalidWorkflow { .. } => "invalid_workflow",
            Self::NothingToResume
            | Self::LastIsComplete { .. }
            | Self::LastIsCancelled { .. }
            | Self::AlreadyComplete { .. }
            | Self::Cancelled { .. } => "nothing_to_resume",
            Self::SeveralWait { .. } | Self::SeveralRuns { .. } => "several_runs",
            Self::WhoseList { .. } => "whose_list",
            Self::NotConfirmed { .. } => "not_confirmed",
            Self::Interrupted { .. } => "interrupted",
            Self::Supervise(_) => "supervise",
            Self::NoSuchStep { .. } | Self::Engine(EngineError::Stop(Stop::NoEntry { .. })) => {
                "no_such_step"
            }
            Self::WhichGate { .. } => "which_gate",
            Self::Config(_) => "invalid_config",
            Self::Find(FindError::LostJournal { .. }) => "journal_damaged",
            Self::Find(_)
            | Self::NoRunIn { .. }
            | Self::NoneOpen { .. }
            | Self::Archived { .. } => "no_such_run",
            Self::Engine(EngineError::Stop(Stop::MissingFile { .. })) => "missing_file",
            Self::NotAdopted { .. } => "not_adopted",
            Self::Follow(_) => "cannot_follow",
            Self::Demo(_) | Self::Harness(_) => "demo",
            Self::Call(_) => "call",
            Self::OfRun { error, .. }
            | Self::Given { error, .. }
            | Self::BesideLists { error, .. } => error.code(),
            Self::Rehearse(_) => "rehearse",
            Self::Left { exit, .. } => code_of(*exit),
            Self::Engine(error) => code_of(exit_of(error)),
            Self::Care(error) => code_of(exit_of_care(error)),
        }
    }

    /// What to try next. Its commands work from where the user stands.
    pub(crate) fn hint(&self) -> Option<String> {
        if let Self::Interrupted { command } = self {
            return Some(onward!("{command}"));
        }
        Some(in_text(&self.remedy()?))
    }

    /// The same, its commands as they are typed in the project.
    fn remedy(&self) -> Option<String> {
        match self {
            Self::CannotRead { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path; relative ones start at `--cwd`, or here".into())
            }
            Self::CannotMake { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Some("choose another name".into())
            }
            Self::CannotRead { .. }
            | Self::InvalidWorkflow { is_told: true, .. }
            | Self::CannotMake { .. }
            | Self::CannotWrite(_)
            | Self::AlreadyComplete { .. }
            | Self::Follow(_)
            | Self::Demo(_)
            | Self::Harness(_) => None,
            Self::Usage { hint, .. } => Some(hint.clone()),
            Self::Left { hint, .. } => hint.clone(),
            Self::Call(error) => error.hint.clone(),
            Self::InvalidWorkflow { name, .. } => Some(format!("see `onward check {name}`")),
            Self::NothingToResume => {
                Some("start something with `onward run FILE`, or see `onward list`".into())
            }
            Self::LastIsComplete { run } => {
                Some(format!("run it again from the beginning with `onward run --again {run}`"))
            }
            Self::NoSuchWorkflow { near: Some(near), .. } => {
                Some(format!("did you mean `{near}`?"))
            }
            Self::NoSuchWorkflow { near: None, known, .. } => Some(format!(
                "check the path; relative ones start at `--cwd`, or here; known here: {}",
                known.join(", ")
            )),
            Self::SeveralRuns { first, command, .. } => Some(match *command {
                "resume" => format!("say which, such as `onward resume {first}`, or use `--all`"),
                "" => format!("say which, such as `{first}`"),
                command => format!("say which, such as `onward {command} {first}`"),
            }),
            Self::WhoseList { list } => {
                let list = word(&list.display().to_string());
                Some(format!("if it is, continue it here: `onward resume {list}`"))
            }
            Self::Cancelled { run } | Self::LastIsCancelled { run } => {
                Some(format!("continue it anyway with `onward resume {run} --force`"))
            }
            Self::SeveralWait { first, .. } => Some(format!("say which, such as `onward {first}`")),
            Self::Interrupted { command } => Some(command.clone()),
            Self::NotConfirmed { run, flags } => Some(confirming(run, flags)),
            Self::Supervise(error) => error.hint().map(str::to_owned),
            Self::NoSuchStep { step, known } => Some(steps_hint(step, known)),
            Self::WhichGate { asked, open } => Some(gates_hint(asked.is_some(), open)),
            Self::Config(error) => Some(error.hint().to_owned()),
            Self::Find(error) => Some(error.hint()),
            Self::NoRunIn { .. } => Some(
                "runs are kept in the directory of their project: type it there, or add \
                 `--cwd DIR`"
                    .into(),
            ),
            Self::Archived { dir, back, .. } => Some(format!("to have it back: `mv {dir} {back}`")),
            Self::NoPermanentTask(looked) => Some(another_list(looked)),
            Self::NoSuchDialect { known, .. } => Some(format!("known: {}", known.join(", "))),
            Self::NoneOpen { names } => {
                let first = names.first().map(String::as_str).unwrap_or_default();
                let others = names.len().saturating_sub(1);
                let more = if others == 0 { String::new() } else { format!(", and {others} more") };
                let what = "another system's run is over, or has not begun";
                Some(format!("{what}: see `onward plan {first}`{more}"))
            }
            Self::NotAdopted { name } => {
                Some(format!("see `onward plan {name}`, then `onward resume {name}`"))
            }
            Self::Engine(EngineError::Resume(ResumeError::Complete)) => {
                Some("start it again from the beginning with `onward run --again`".into())
            }
            Self::Engine(EngineError::Resume(ResumeError::Damaged)) => {
                Some("rebuild it with `onward repair`; what can be read is kept".into())
            }
            Self::Engine(EngineError::Resume(ResumeError::Conflicts(findings))) => {
                Some(conflicts_hint(findings))
            }
            Self::OfRun { run, error } => Some(naming_run(&error.remedy()?, run)),
            Self::Given { flags, error } => Some(with_flags(error.remedy()?, flags)),
            Self::BesideLists { lists, error } => {
                let first = error.remedy().map(|it| format!("{it}; ")).unwrap_or_default();
                let lists = count(*lists, "task list");
                Some(format!(
                    "{first}in {lists} of Claude Code no pipeline is known to be this project's: \
                     see `onward plan --dialect pipeline`"
                ))
            }
            Self::Engine(error) => error.hint(),
            Self::Care(error) => error.hint(),
            Self::Rehearse(error) => error.hint(),
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            // The reader of our output has seen enough.
            Self::CannotWrite(error) if error.kind() == io::ErrorKind::BrokenPipe => OK,
            Self::CannotRead { .. }
            | Self::NoSuchWorkflow { .. }
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
            | Self::SeveralWait { .. }
            | Self::SeveralRuns { command: CANCEL, .. }
            | Self::Config(_)
            | Self::NoSuchDialect { .. } => INVALID,
            Self::SeveralRuns { .. } | Self::WhoseList { .. } | Self::NotConfirmed { .. } => {
                CONFLICTS
            }
            Self::Interrupted { .. } => INTERRUPTED,
            Self::Find(FindError::LostJournal { .. }) => DAMAGED,
            Self::NothingToResume
            | Self::LastIsComplete { .. }
            | Self::LastIsCancelled { .. }
            | Self::AlreadyComplete { .. }
            | Self::Cancelled { .. }
            | Self::Engine(EngineError::Stop(Stop::MissingFile { .. }))
            | Self::NoPermanentTask(_)
            | Self::NoneOpen { .. }
            | Self::Archived { .. }
            | Self::NoRunIn { .. }
            | Self::Find(FindError::NoRuns | FindError::NoSuchRun { .. }) => NOTHING,
            Self::OfRun { error, .. }
            | Self::Given { error, .. }
            | Self::BesideLists { error, .. } => error.exit_code(),
            Self::Left { exit, .. } => *exit,
            Self::Engine(error) => exit_of(error),
            Self::Care(error) => exit_of_care(error),
        }
    }
}

fn code_of(exit: u8) -> &'static str {
    match exit {
        HELD => "held",
        DAMAGED => "journal_damaged",
        CONFLICTS => "conflicts",
        NOTHING => "nothing_to_resume",
        INVALID => "invalid",
        INTERRUPTED => "interrupted",
        _ => "failed",
    }
}

fn no_permanent_task(looked: &Looked) -> String {
    let named = |dirs: &[PathBuf]| -> Vec<String> {
        dirs.iter().map(|it| it.display().to_string()).collect()
    };
    let root = looked.root.as_ref().map(|it| it.display().to_string());
    let (lists, others) = (named(&looked.lists), named(&looked.others));
    onward_engine::dialects::pipeline::no_permanent_task(root.as_deref(), &lists, &others).message
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
        | EngineError::Workflow(LoadWorkflowError::Altered { .. })
        | EngineError::Stop(Stop::Damaged | Stop::Removed { .. }) => DAMAGED,
        EngineError::Resume(ResumeError::Conflicts(_))
        | EngineError::Stop(Stop::Conflicts(_) | Stop::Moved { .. })
        | EngineError::Misnamed(_)
        | EngineError::BegunElsewhere { .. } => CONFLICTS,
        EngineError::Resume(ResumeError::Parked { .. }) => PARKED,
        EngineError::Stop(Stop::Interrupted) => INTERRUPTED,
        EngineError::Resume(ResumeError::Complete | ResumeError::Cancelled)
        | EngineError::Decide(DecideError::Over(_))
        | EngineError::NotARun(_) => NOTHING,
        EngineError::Resume(ResumeError::NoSuchStep(_) | ResumeError::NoSuchFinding(_))
        | EngineError::Agent(_)
        | EngineError::NoRepository { .. }
        | EngineError::NoTaskLists
        | EngineError::Workflow(LoadWorkflowError::Invalid(_))
        | EngineError::Create(
            CreateError::NoSuchInput { .. }
            | CreateError::MissingInputs { .. }
            | CreateError::WrongKind { .. }
            | CreateError::Secret { .. }
            | CreateError::Token { .. },
        ) => INVALID,
        EngineError::Machine { .. }
        | EngineError::NoWorkflow { .. }
        | EngineError::Create(CreateError::Unwritable(_) | CreateError::Stop(_))
        | EngineError::Lock(LockError::Io { .. } | LockError::Linked { .. })
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
    if error.kind() == io::ErrorKind::AlreadyExists {
        return "it is there already".to_owned();
    }
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// The shape of an error for scripts.
pub(crate) fn json(code: &str, message: &str, hint: Option<&str>) -> String {
    let failure = Failure {
        schema: "onward.error/1".to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
    };
    serde_json::to_string(&failure).expect("texts are always JSON")
}
