//! One file per command: its arguments, their help, and its `run`.

pub(crate) mod check;
pub(crate) mod schema;

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
            _ => diagnostic::failure(&mut *self.err, &error.to_string(), error.hint().as_deref()),
        };
        ExitCode::from(code)
    }
}

/// Without a command: what there is.
pub(crate) fn help(cx: &mut Context) -> Result<ExitCode, Error> {
    write!(cx.out, "{}", Cli::command().render_help().ansi())?;
    Ok(ExitCode::SUCCESS)
}
