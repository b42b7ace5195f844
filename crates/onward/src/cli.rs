//! What can be typed: the command line as a type.

use std::{ffi::OsString, io::Write as _, path::PathBuf, process::ExitCode};

use clap::{
    ArgAction, Args, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use onward_core::time::Timestamp;

use crate::{
    cmd,
    command::in_text,
    diagnostic, error, guess,
    ink::{self, Printer},
    shapes::{Program, Text},
};

/// Runs long agent workflows and resumes them after any interruption
#[derive(Parser, Debug)]
#[command(name = "onward", version)]
#[command(after_help = "Examples:\n  onward demo\n  onward init hello\n  onward run hello.yaml")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print one JSON object on standard output; `run`, `resume` and `attach` print one a line:
    /// each event, and the outcome last
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// `text`, or `json` for what --json prints
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t)]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub(crate) log_format: LogFormat,
    /// Work in this directory instead of the current one
    #[arg(long, global = true, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub(crate) cwd: PathBuf,
    /// Use colours: `auto`, `always` or `never`
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub(crate) color: Colours,
    /// Say only what went wrong
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more; twice for even more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// The time that ages are measured against, for tests
    #[arg(long, global = true, hide = true, value_name = "RFC3339")]
    pub(crate) now: Option<Timestamp>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

/// A flag is nearer than `NO_COLOR`, `CLICOLOR_FORCE` and what the terminal can do.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colours {
    #[default]
    Auto,
    Always,
    Never,
}

impl Global {
    /// Two ways of asking for JSON, and one meaning.
    pub(crate) fn meant(self) -> Self {
        let json = self.json || self.log_format == LogFormat::Json;
        Self { json, ..self }
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Run(cmd::run::RunArgs),
    Resume(cmd::resume::ResumeArgs),
    Plan(cmd::plan::PlanArgs),
    Why(cmd::why::WhyArgs),
    List(cmd::list::ListArgs),
    Status(cmd::status::StatusArgs),
    Log(cmd::log::LogArgs),
    #[cfg(feature = "watch")]
    Watch(cmd::watch::WatchArgs),
    Attach(cmd::log::AttachArgs),
    Decide(cmd::decide::DecideArgs),
    /// Answer a gate with `approve`
    #[command(after_help = "Examples:\n  onward approve\n  \
        onward approve publish --comment \"well done\"")]
    Approve(cmd::decide::YesNoArgs),
    /// Answer a gate with `reject`
    #[command(after_help = "Example:\n  onward reject publish --comment \"too long\"")]
    Reject(cmd::decide::YesNoArgs),
    Done(cmd::decide::DoneArgs),
    /// Let running steps end, start nothing new, then stop
    #[command(after_help = "Examples:\n  onward pause\n  onward pause release-20261115-k3fq")]
    Pause(cmd::decide::AskArgs),
    Cancel(cmd::decide::CancelArgs),
    Rescue(cmd::rescue::RescueArgs),
    Undo(cmd::rescue::UndoArgs),
    Repair(cmd::repair::RepairArgs),
    Verify(cmd::verify::VerifyArgs),
    Doctor(cmd::doctor::DoctorArgs),
    Agents(cmd::agents::AgentsArgs),
    Rehearse(cmd::rehearse::RehearseArgs),
    Archive(cmd::archive::ArchiveArgs),
    Gc(cmd::archive::GcArgs),
    Check(cmd::check::CheckArgs),
    Demo(cmd::demo::DemoArgs),
    Init(cmd::init::InitArgs),
    Schema(cmd::schema::SchemaArgs),
    Config(cmd::config::ConfigArgs),
    Completions(cmd::tools::CompletionsArgs),
    Man(cmd::tools::ManArgs),
    /// Print the version, the commit it was built from, and its features
    #[command(after_help = "Examples:\n  onward version\n  onward version --json")]
    Version,
    #[command(hide = true)]
    Rehearsed(cmd::rehearse::RehearsedArgs),
    #[command(hide = true)]
    StandIn(cmd::rehearse::StandInArgs),
    #[command(hide = true)]
    Supervise(cmd::tools::SuperviseArgs),
    #[command(hide = true)]
    Snapshot(cmd::tools::SnapshotArgs),
    #[command(hide = true)]
    Call(cmd::call::CallArgs),
}

/// Whether the command line is `--version` and nothing more.
pub(crate) fn asks_for_version() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let is_it = arguments.next().is_some_and(|it| it == "--version" || it == "-V");
    is_it && arguments.next().is_none() && std::env::var_os(COMPLETES).is_none()
}

/// A shell that completes asks by this variable.
const COMPLETES: &str = "COMPLETE";

/// What the parser would say.
pub(crate) fn version() -> ExitCode {
    let _ = writeln!(Printer::json(), "onward {}", env!("CARGO_PKG_VERSION"));
    ExitCode::from(error::OK)
}

/// What is wrong, and what to type instead, where the word is one of another tool's.
fn meant(error: &clap::Error) -> Option<(String, String)> {
    let is_about_words = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::TooManyValues
            | ErrorKind::TooFewValues
            | ErrorKind::WrongNumberOfValues
    );
    if is_about_words && let Some(usage) = error.get(ContextKind::Usage) {
        return guess::words(&usage.to_string());
    }
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        Some(_) | None => None,
    };
    if let Some(typed) = word(ContextKind::InvalidSubcommand) {
        return Some((format!("there is no command `{typed}`"), guess::command(typed)?));
    }
    let typed = word(ContextKind::InvalidArg)?;
    Some((format!("there is no option `{typed}`"), guess::flag(typed)?.to_owned()))
}

/// Whether an argument asks for JSON, where the parser could not say so.
fn asks_for_json() -> bool {
    let all: Vec<OsString> = std::env::args_os().skip(1).collect();
    let format = |it: &[OsString]| it[0] == "--log-format" && it[1] == "json";
    all.iter().any(|it| it == "--json" || it == "--log-format=json") || all.windows(2).any(format)
}

/// What `help` says, which takes no flag by itself.
fn help_without_json() -> Option<clap::Error> {
    let all: Vec<OsString> = std::env::args_os().filter(|it| it != "--json").collect();
    if !all.iter().any(|it| it == "help") {
        return None;
    }
    Cli::try_parse_from(all).err().filter(|it| it.kind() == ErrorKind::DisplayHelp)
}

/// Help, or the version, as one object.
fn told(error: &clap::Error) -> ExitCode {
    let object = if error.kind() == ErrorKind::DisplayVersion {
        serde_json::to_string(&Program::this())
    } else {
        serde_json::to_string(&Text::of(error.render().to_string().as_bytes()))
    };
    let object = object.expect("texts and numbers alone");
    let _ = writeln!(Printer::json(), "{object}");
    ExitCode::from(error::OK)
}

/// Answers a command line that is not one, or that asks for help.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    let json = asks_for_json();
    let help = if json { help_without_json() } else { None };
    let error = help.as_ref().unwrap_or(error);
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked && json {
        return told(error);
    }
    if let Some((message, hint)) = meant(error) {
        let hint = in_text(&hint);
        let _ = if json {
            writeln!(Printer::json(), "{}", error::json("usage", &message, Some(&hint)))
        } else {
            diagnostic::failure(&mut Printer::stderr(), &message, Some(&hint))
        };
        return ExitCode::from(error::INVALID);
    }
    if asked || !json {
        // When this cannot be printed, nothing else can.
        let _ = if asked { ink::help(&error.render()) } else { error.print() };
        return ExitCode::from(if asked { error::OK } else { error::INVALID });
    }
    let text = error.render().to_string();
    let first: Vec<&str> = text.lines().map(str::trim).take_while(|it| !it.is_empty()).collect();
    let message = first.join(" ");
    let message = message.trim_start_matches("error: ");
    let object = error::json("usage", message, Some(&in_text("see `onward --help`")));
    let _ = writeln!(Printer::json(), "{object}");
    ExitCode::from(error::INVALID)
}
