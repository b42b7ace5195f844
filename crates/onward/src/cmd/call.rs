//! `onward call`, hidden: a built-in function of a workflow, as a process like any other.
//!
//! Invariant: the question comes from `ONWARD_WITH`, the answer goes to `ONWARD_RESULT`, and all
//! work is done by the engine.

use onward_engine::world::open;
use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::ExitCode,
};

use onward_engine::{
    play::{self, Attempt},
    world::real::variable,
};
use serde_json::Value;

use crate::{cmd::Context, error::Error, screen::Screen};

/// Runs a built-in function of a workflow; started by the engine, never by a person
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CallArgs {
    /// Such as `conference.transfer`
    name: String,
}

pub(crate) fn run(cx: &mut Context, args: &CallArgs) -> Result<ExitCode, Error> {
    let env: Vec<(OsString, OsString)> = env::vars_os().collect();
    let file = |name: &str| variable(&env, name).map(PathBuf::from);
    let with = match file("ONWARD_WITH") {
        None => Value::Null,
        Some(path) => {
            let bytes = open::read_named(&path, open::FILE_BYTES_MAX);
            let bytes = bytes.map_err(|source| Error::CannotRead { path, source })?;
            serde_json::from_slice(&bytes).map_err(std::io::Error::other)?
        }
    };
    let result = file("ONWARD_RESULT");
    let run = variable(&env, "ONWARD_RUN").map(OsStr::to_string_lossy).unwrap_or_default();
    // Into the step's log, at once: the step may wait for long.
    let tell: Option<fn(&str)> = Some(|words| {
        Screen::of_stderr().line(words);
    });
    let (run, project) = (run.into_owned(), env::current_dir()?);
    let attempt = Attempt { run, project, env, tell, ..Attempt::default() };
    let answer = play::call(&args.name, with, attempt)?;
    for note in &answer.notes {
        writeln!(cx.err, "note: {note}")?;
    }
    if let Some(path) = result {
        let written = open::put(&path, answer.result.to_string().as_bytes(), open::PRIVATE);
        written.map_err(|source| Error::CannotMake { path, source })?;
    }
    Ok(ExitCode::SUCCESS)
}
