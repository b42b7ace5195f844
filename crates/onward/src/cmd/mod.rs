//! One file per command: its arguments, their help, and its `run`.

pub(crate) mod adopt;
pub(crate) mod agents;
pub(crate) mod archive;
pub(crate) mod attach;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod closing;
pub(crate) mod config;
pub(crate) mod decide;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod rehearse;
pub(crate) mod repair;
pub(crate) mod rescue;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod status;
pub(crate) mod templates;
pub(crate) mod tools;
pub(crate) mod verify;
#[cfg(feature = "watch")]
pub(crate) mod watch;
pub(crate) mod why;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::plan::Status;
use onward_engine::play::conference::has_started;

use crate::{
    cli::Global,
    command::{in_text, onward},
    diagnostic,
    error::{self, Error},
    gates,
    ink::Printer,
    next,
    open::{self, Open, Reach},
    session::{Driving, Session, word},
    style,
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
        let out = if global.json { Printer::json() } else { Printer::stdout() };
        Self { global, out: Box::new(out), err: Box::new(Printer::stderr()) }
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

/// The command that starts what lies here, where nothing has run yet.
fn begins_here(cx: &Context) -> Option<String> {
    let here = cx.path(Path::new("."));
    if here.join(CONFERENCE).is_file() && !has_started(&here) {
        return Some(onward!("run conference"));
    }
    let files = check::workflow_files(&here);
    files.first().map(|file| onward!("run {}", word(file)))
}

/// The file that a conference begins with.
const CONFERENCE: &str = "conference.md";

/// What to type where nothing is.
const BEGIN_WITH: [(&str, &str); 3] = [
    ("demo", "watch a run being killed and resumed; takes a few seconds"),
    ("init hello", "write a first workflow into this directory"),
    ("--help", "list all commands"),
];

/// Without a command: what is here, and the one next thing to type.
pub(crate) fn overview(cx: &mut Context) -> Result<ExitCode, Error> {
    if cx.global.json {
        return list::list(cx, &list::ListArgs::default());
    }
    let session = Session::new(cx, &Driving::default())?;
    let mut rows = list::rows(cx, &session, None)?;
    if rows.is_empty()
        && let Some(next) = begins_here(cx)
    {
        writeln!(
            cx.out,
            "Nothing has run here yet; `{}` shows all commands.\n\n{next}",
            onward!("--help")
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        writeln!(cx.out, "There is no run here, and no workflow.\n")?;
        for (command, does) in BEGIN_WITH {
            let line = format!("  {:<18}  {does}", onward!("{command}"));
            writeln!(cx.out, "{}", style::wrap(&line, style::columns(), 0, 22))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    list::print(cx, &mut rows, session.now)?;
    // What waits for a person comes before what runs, and that before what stopped.
    let rank = |status: Status| match status {
        Status::Waiting => 0,
        Status::Running => 1,
        Status::Fresh
        | Status::Interrupted
        | Status::Parked
        | Status::OverBudget
        | Status::Failed
        | Status::Cancelled
        | Status::Completed => 2,
    };
    let open = open::here(cx, &session, Reach::All)?;
    let meant = open.into_iter().min_by_key(|it| (!it.is_sure(false), rank(it.status())));
    let first = match meant {
        Some(Open::Ours(first)) => *first,
        theirs @ (Some(Open::Theirs(_)) | None) => {
            let sure = theirs.as_ref().filter(|it| it.is_sure(false));
            let lost = rows.iter().find_map(list::Row::repair).filter(|_| sure.is_none());
            // A run that another system left is continued by its directory.
            let next = lost.or(theirs.and_then(|it| next::command(&it.name(), it.status())));
            let nothing = || in_text("nothing to resume; start something with `onward run FILE`");
            writeln!(cx.out, "\n{}", next.unwrap_or_else(nothing))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let (id, status, dir) = (first.dir.id.to_string(), first.status, first.dir.dir.clone());
    if let Some(repair) = rows.iter().find(|it| it.is_of(&id)).and_then(list::Row::repair) {
        writeln!(cx.out, "\n{repair}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = first.run()?;
    let asks = matches!(status, Status::Waiting | Status::Running);
    let answers = if asks { gates::answers(&session, &dir, &run)? } else { Vec::new() };
    writeln!(cx.out)?;
    for first in next::first(&run, status).iter().filter(|_| answers.is_empty()) {
        writeln!(cx.out, "{first}")?;
    }
    let next = answers.into_iter().next().or_else(|| next::command(&id, status));
    writeln!(cx.out, "{}", next.unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}
