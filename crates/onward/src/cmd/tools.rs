//! Small commands around the others: `completions`, `man`, `version`, and the hidden `supervise`
//! and `snapshot`.

use std::{ffi::OsString, process::ExitCode};

use clap::CommandFactory as _;
use onward_engine::world::{
    real::{place_from_args, snapshot_from_args},
    supervisor::{SuperviseConfig, supervise as hold},
};
use serde_json::json;

use crate::{
    cli::Cli,
    cmd::Context,
    error::{self, Error},
};

/// Print the completions of a shell
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: clap_complete::Shell,
}

pub(crate) fn completions(cx: &mut Context, args: &CompletionsArgs) -> Result<ExitCode, Error> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "onward", &mut text);
    cx.out.write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(cx: &mut Context) -> Result<ExitCode, Error> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text)?;
    cx.out.write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn version(cx: &mut Context) -> Result<ExitCode, Error> {
    let version = env!("CARGO_PKG_VERSION");
    if cx.global.json {
        let format = onward_core::journal::FORMAT;
        let object = json!({"schema": "onward.version/1", "version": version,
            "journal_format": format});
        writeln!(cx.out, "{object}")?;
    } else {
        writeln!(cx.out, "onward {version}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Holds the children of a run; started by the engine, never by a person
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SuperviseArgs {
    #[arg(num_args = 4)]
    place: Vec<OsString>,
}

pub(crate) fn supervise(cx: &mut Context, args: &SuperviseArgs) -> Result<ExitCode, Error> {
    let place = place_from_args(&args.place).ok_or_else(|| Error::Usage {
        message: "these are not the arguments of a supervisor".into(),
        hint: "it is started by `onward run` and `onward resume`".into(),
    })?;
    match hold(&SuperviseConfig::new(place)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            // For the engine that waits for us to listen; a full disk keeps no complaint of ours.
            writeln!(cx.out, "{}", error::chain(&error))?;
            Err(error.into())
        }
    }
}

/// Records the tree after an attempt; started by the supervisor, never by a person
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SnapshotArgs {
    of: String,
}

pub(crate) fn snapshot(cx: &mut Context, args: &SnapshotArgs) -> Result<ExitCode, Error> {
    let env = std::env::vars_os().collect();
    let taken = snapshot_from_args(&args.of, &env).map_err(std::io::Error::other)?;
    writeln!(cx.out, "{}", taken.unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}
