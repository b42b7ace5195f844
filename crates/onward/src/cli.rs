//! What can be typed: the command line as a type.

use std::{ffi::OsStr, io::Write as _, path::PathBuf, process::ExitCode};

use clap::{ArgAction, Args, Parser, Subcommand, error::ErrorKind};
use onward_core::time::Timestamp;

use crate::{cmd, error};

/// Runs long agent workflows and resumes them after any interruption
#[derive(Parser, Debug)]
#[command(name = "onward", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Global {
    /// Print one JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Work in this directory instead of the current one
    #[arg(long, global = true, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub(crate) cwd: PathBuf,
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

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Run(cmd::run::RunArgs),
    Resume(cmd::resume::ResumeArgs),
    Plan(cmd::plan::PlanArgs),
    Why(cmd::plan::WhyArgs),
    List(cmd::status::ListArgs),
    Status(cmd::status::StatusArgs),
    Log(cmd::log::LogArgs),
    Attach(cmd::log::AttachArgs),
    Decide(cmd::decide::DecideArgs),
    /// Answer a gate with `approve`
    Approve(cmd::decide::YesNoArgs),
    /// Answer a gate with `reject`
    Reject(cmd::decide::YesNoArgs),
    Done(cmd::decide::DoneArgs),
    /// Ask the driver to start nothing new and let go when what runs has ended
    Pause(cmd::decide::AskArgs),
    /// Ask the driver to stop everything and end the run
    Cancel(cmd::decide::AskArgs),
    Rescue(cmd::rescue::RescueArgs),
    Undo(cmd::rescue::UndoArgs),
    Repair(cmd::repair::RepairArgs),
    Verify(cmd::verify::VerifyArgs),
    Doctor(cmd::doctor::DoctorArgs),
    Rehearse(cmd::rehearse::RehearseArgs),
    Archive(cmd::archive::ArchiveArgs),
    Gc(cmd::archive::GcArgs),
    Check(cmd::check::CheckArgs),
    Demo(cmd::demo::DemoArgs),
    Init(cmd::init::InitArgs),
    Schema(cmd::schema::SchemaArgs),
    Completions(cmd::tools::CompletionsArgs),
    /// Print the manual page
    Man,
    /// Print the version
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

/// Answers a command line that is not one, or that asks for help.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let json = std::env::args_os().any(|argument| argument == OsStr::new("--json"));
    if asked || !json {
        // There is nobody left to tell when this cannot be printed.
        let _ = error.print();
        return ExitCode::from(if asked { error::OK } else { error::INVALID });
    }
    let text = error.render().to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let object = error::json("usage", message, Some("see `onward --help`"));
    let _ = writeln!(anstream::stdout(), "{object}");
    ExitCode::from(error::INVALID)
}
