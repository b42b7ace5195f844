//! `onward call`, hidden: a built-in function of a workflow, as a process like any other.
//!
//! Invariant: what it is asked comes from `ONWARD_WITH`, what came of it goes to `ONWARD_RESULT`,
//! and it may be killed anywhere and called again.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode};

use serde_json::Value;

use crate::{
    cmd::Context,
    conference::{self, Attempt},
    error::Error,
};

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
    let given: Vec<(OsString, OsString)> = env::vars_os().collect();
    let variable = |name: &str| given.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let text = |name: &str| variable(name).map(|it| it.to_string_lossy().into_owned());
    let attempt = Attempt {
        run: text("ONWARD_RUN").unwrap_or_default(),
        step: text("ONWARD_STEP").unwrap_or_default(),
        number: text("ONWARD_ATTEMPT").and_then(|it| it.parse().ok()).unwrap_or(1),
        result: variable("ONWARD_RESULT").map(PathBuf::from),
        conference: variable("CONFERENCE_DIR").map(PathBuf::from),
    };
    let with = match variable("ONWARD_WITH").map(PathBuf::from) {
        None => Value::Null,
        Some(path) => {
            let bytes = std::fs::read(&path);
            let bytes = bytes.map_err(|source| Error::CannotRead { path, source })?;
            serde_json::from_slice(&bytes).map_err(std::io::Error::other)?
        }
    };
    let result = conference::call(&args.name, with, &attempt, &args.program)?;
    if let Some(path) = attempt.result {
        let written = std::fs::write(&path, result.to_string());
        written.map_err(|source| Error::CannotMake { path, source })?;
    }
    Ok(ExitCode::SUCCESS)
}
