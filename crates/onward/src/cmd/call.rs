//! `onward call`, hidden: a built-in function of a workflow, as a process like any other.
//!
//! Invariant: what it is asked comes from `ONWARD_WITH`, what came of it goes to `ONWARD_RESULT`,
//! and it may be killed anywhere and called again.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode};

use serde_json::Value;

use crate::{cmd::Context, conference, error::Error};

/// Runs a built-in function of a workflow; started by the engine, never by a person
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CallArgs {
    /// Such as `conference.transfer`
    name: String,
    /// The command of the agent that the function starts
    #[arg(last = true)]
    program: Vec<OsString>,
}

pub(crate) fn run(_cx: &mut Context, args: &CallArgs) -> Result<ExitCode, Error> {
    let with = match env::var_os("ONWARD_WITH").map(PathBuf::from) {
        None => Value::Null,
        Some(path) => {
            let bytes = std::fs::read(&path);
            let bytes = bytes.map_err(|source| Error::CannotRead { path, source })?;
            serde_json::from_slice(&bytes).map_err(std::io::Error::other)?
        }
    };
    let result = conference::call(&args.name, with, &args.program)?;
    if let Some(path) = env::var_os("ONWARD_RESULT").map(PathBuf::from) {
        let written = std::fs::write(&path, result.to_string());
        written.map_err(|source| Error::CannotMake { path, source })?;
    }
    Ok(ExitCode::SUCCESS)
}
