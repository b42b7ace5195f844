//! One file per command: its arguments, their help, and its `run`.

pub(crate) mod adopt;
pub(crate) mod archive;
pub(crate) mod attach;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod decide;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod plan;
pub(crate) mod rehearse;
pub(crate) mod repair;
pub(crate) mod rescue;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod verify;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::CommandFactory as _;

use crate::{
    cli::{Cli, Global},
    diagnostic,
    error::{self, Error},
    session::{Driving, Session},
};

/// What every command gets. Built once, in `main`.
pub(crate) struct Context {
    pub(crate) global: Global,
    /// Data.
    pub(crate) out: Box<dyn Write>,
    /// Words for people.
    pub(crate) err: Box<dyn Write>,
}

impl Context {
    pub(crate) fn new(global: Global) -> Self {
        Self { global, out: Box::new(anstream::stdout()), err: Box::new(anstream::stderr()) }
    }

    /// A path as the person meant it.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        if self.global.cwd == Path::new(".") { path.into() } else { self.global.cwd.join(path) }
    }

    /// The one object of a `--json` answer.
    pub(crate) fn print_json(&mut self, object: &impl serde::Serialize) -> Result<ExitCode, Error> {
        let text = serde_json::to_string(object).map_err(std::io::Error::other)?;
        writeln!(self.out, "{text}")?;
        Ok(ExitCode::SUCCESS)
    }

    pub(crate) fn report(&mut self, error: &Error) -> ExitCode {
        let code = error.exit_code();
        // When not even this can be written, the exit code is all that is left.
        let _ = match code {
            error::OK => Ok(()),
            _ if self.global.json => {
                let hint = error.hint();
                let object = error::json(error.code(), &error.to_string(), hint.as_deref());
                writeln!(self.out, "{object}")
            }
            // The last line is the command that goes on, and nothing but that.
            error::INTERRUPTED => {
                writeln!(self.err, "{error}\n{}", error.hint().unwrap_or_default())
            }
            _ => diagnostic::failure(&mut *self.err, &error.to_string(), error.hint().as_deref()),
        };
        ExitCode::from(code)
    }
}

/// Splits `[RUN] WORD`: the last word is what it is about, one before it names the run.
pub(crate) fn run_and_rest(words: &[String]) -> (Option<&str>, &str) {
    match words {
        [] => (None, ""),
        [word] => (None, word),
        [run, word, ..] => (Some(run), word),
    }
}

/// Without a command: what is here, and the next sensible thing to type.
pub(crate) fn overview(cx: &mut Context) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let runs = session.unfinished()?;
    if cx.global.json {
        return status::list(cx, &status::ListArgs {});
    }
    if runs.is_empty() {
        write!(cx.out, "{}", Cli::command().render_help().ansi())?;
        writeln!(cx.out, "\nNothing to resume here. Try `onward demo`, or `onward init`.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let ids: Vec<_> = runs.iter().map(|found| found.dir.id.clone()).collect();
    for (found, id) in runs.into_iter().zip(&ids) {
        writeln!(cx.out, "{id} is {}", found.status.as_str())?;
        let run = found.run()?;
        for gate in run.graph.open_gates() {
            let gate = &run.graph.node(gate).address;
            writeln!(cx.out, "  onward approve {id} '{gate}'")?;
        }
    }
    if let [only] = ids.as_slice() {
        writeln!(cx.out, "onward plan {only}\nonward resume {only}")?;
    } else {
        writeln!(cx.out, "onward resume")?;
    }
    Ok(ExitCode::SUCCESS)
}
