//! The `onward` command: parse, dispatch, report. Nothing else lives here.

mod attend;
mod cli;
mod cmd;
mod command;
mod complete;
mod confirm;
mod consult;
mod diagnostic;
mod diff;
mod draw;
mod error;
mod folds;
mod gates;
mod guess;
mod hints;
mod ink;
mod keys;
mod live;
mod meant;
mod next;
mod open;
mod outlook;
mod plain;
mod plan_page;
mod preflight;
mod progress;
mod prompt;
mod screen;
mod seen;
mod session;
mod shapes;
mod speech;
mod style;
mod summary;
mod undone;
mod user;
mod warned;
#[cfg(feature = "watch")]
mod watch;
mod width;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    cli::{Cli, Command},
    cmd::Context,
};

fn main() -> ExitCode {
    // Nothing else is asked: the parser of all commands need not be made for it.
    if cli::asks_for_version() {
        return cli::version();
    }
    // A file that may grow no further is a full disk: the write fails, and says so. Caught and not
    // ignored, because children would inherit that.
    let too_large = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, too_large);
    // A shell that completes asks by this variable; for it nothing else is done.
    clap_complete::CompleteEnv::with_factory(complete::visible).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            command::typed_in_vain();
            return cli::refuse(&error);
        }
    };
    ink::choose(cli.global.color);
    command::typed_with(&cli.global.cwd);
    let mut cx = Context::new(cli.global.meant());
    let result = match &cli.command {
        None => cmd::overview(&mut cx),
        Some(Command::Run(args)) => cmd::run::run(&mut cx, args),
        Some(Command::Resume(args)) => cmd::resume::run(&mut cx, args),
        Some(Command::Plan(args)) => cmd::plan::run(&mut cx, args),
        Some(Command::Why(args)) => cmd::why::run(&mut cx, args),
        Some(Command::List(args)) => cmd::list::list(&mut cx, args),
        Some(Command::Status(args)) => cmd::status::status(&mut cx, args),
        Some(Command::Log(args)) => cmd::log::run(&mut cx, args),
        #[cfg(feature = "watch")]
        Some(Command::Watch(args)) => cmd::watch::run(&mut cx, args),
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
        Some(Command::Agents(args)) => cmd::agents::run(&mut cx, args),
        Some(Command::Rehearse(args)) => cmd::rehearse::run(&mut cx, args),
        Some(Command::Archive(args)) => cmd::archive::run(&mut cx, args),
        Some(Command::Gc(args)) => cmd::archive::gc(&mut cx, args),
        Some(Command::Check(args)) => cmd::check::run(&mut cx, args),
        Some(Command::Demo(args)) => cmd::demo::run(&mut cx, args),
        Some(Command::Init(args)) => cmd::init::run(&mut cx, args),
        Some(Command::Schema(args)) => cmd::schema::run(&mut cx, args),
        Some(Command::Config(args)) => cmd::config::run(&mut cx, args),
        Some(Command::Completions(args)) => cmd::tools::completions(&mut cx, args),
        Some(Command::Man(args)) => cmd::tools::man(&mut cx, args),
        Some(Command::Version) => cmd::tools::version(&mut cx),
        Some(Command::Rehearsed(args)) => cmd::rehearse::rehearsed(&mut cx, args),
        Some(Command::StandIn(args)) => cmd::rehearse::play(&mut cx, args),
        Some(Command::Supervise(args)) => cmd::tools::supervise(&mut cx, args),
        Some(Command::Snapshot(args)) => cmd::tools::snapshot(&mut cx, args),
        Some(Command::Call(args)) => cmd::call::run(&mut cx, args),
    };
    // However the command ended: keys are shown again.
    keys::show();
    result.unwrap_or_else(|error| cx.report(&error))
}
