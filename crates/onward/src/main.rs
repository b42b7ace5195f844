//! The `onward` command: parse, dispatch, report. Nothing else lives here.

mod cli;
mod cmd;
mod diagnostic;
mod draw;
mod error;

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
        None => cmd::help(&mut cx),
        Some(Command::Check(args)) => cmd::check::run(&mut cx, args),
        Some(Command::Schema(args)) => cmd::schema::run(&mut cx, args),
    };
    result.unwrap_or_else(|error| cx.report(&error))
}
