//! The `onward` command: parse, dispatch, report. Nothing else lives here.

mod attend;
mod cli;
mod cmd;
mod confirm;
mod consult;
mod diagnostic;
mod draw;
mod error;
mod outlook;
mod progress;
mod prompt;
mod screen;
mod session;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    cli::{Cli, Command},
    cmd::Context,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::refuse(&error),
    };
    let mut cx = Context::new(cli.global);
    let result = match &cli.command {
        None => cmd::overview(&mut cx),
        Some(Command::Run(args)) => cmd::run::run(&mut cx, args),
        Some(Command::Resume(args)) => cmd::resume::run(&mut cx, args),
        Some(Command::Plan(args)) => cmd::plan::run(&mut cx, args),
        Some(Command::Why(args)) => cmd::plan::why(&mut cx, args),
        Some(Command::List(args)) => cmd::status::list(&mut cx, args),
        Some(Command::Status(args)) => cmd::status::status(&mut cx, args),
        Some(Command::Log(args)) => cmd::log::run(&mut cx, args),
        Some(Command::Attach(args)) => cmd::log::attach(&mut cx, args),
        Some(Command::Decide(args)) => cmd::decide::run(&mut cx, args),
        Some(Command::Approve(args)) => cmd::decide::yes_no(&mut cx, args, "approve"),
        Some(Command::Reject(args)) => cmd::decide::yes_no(&mut cx, args, "reject"),
        Some(Command::Done(args)) => cmd::decide::done(&mut cx, args),
        Some(Command::Pause(args)) => cmd::decide::pause(&mut cx, args),
        Some(Command::Cancel(args)) => cmd::decide::cancel(&mut cx, args),
        Some(Command::Rescue(args)) => cmd::rescue::run(&mut cx, args),
        Some(Command::Undo(args)) => cmd::rescue::undo(&mut cx, args),
        Some(Command::Repair(args)) => cmd::repair::run(&mut cx, args),
        Some(Command::Verify(args)) => cmd::verify::run(&mut cx, args),
        Some(Command::Doctor(args)) => cmd::doctor::run(&mut cx, args),
        Some(Command::Rehearse(args)) => cmd::rehearse::run(&mut cx, args),
        Some(Command::Archive(args)) => cmd::archive::run(&mut cx, args),
        Some(Command::Gc(args)) => cmd::archive::gc(&mut cx, args),
        Some(Command::Check(args)) => cmd::check::run(&mut cx, args),
        Some(Command::Demo(args)) => cmd::demo::run(&mut cx, args),
        Some(Command::Init(args)) => cmd::init::run(&mut cx, args),
        Some(Command::Schema(args)) => cmd::schema::run(&mut cx, args),
        Some(Command::Completions(args)) => cmd::tools::completions(&mut cx, args),
        Some(Command::Man) => cmd::tools::man(&mut cx),
        Some(Command::Version) => cmd::tools::version(&mut cx),
        Some(Command::Rehearsed(args)) => cmd::rehearse::rehearsed(&mut cx, args),
        Some(Command::StandIn(args)) => cmd::rehearse::play(&mut cx, args),
        Some(Command::Supervise(args)) => cmd::tools::supervise(&mut cx, args),
        Some(Command::Snapshot(args)) => cmd::tools::snapshot(&mut cx, args),
        Some(Command::Call(args)) => cmd::call::run(&mut cx, args),
    };
    result.unwrap_or_else(|error| cx.report(&error))
}
