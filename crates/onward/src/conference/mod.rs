//! The built-in functions of the workflows `conference` and `ship`: what their `call` steps do.
//!
//! - `seat` is the conference's directory: held, read, written.
//! - `ground` is where one researcher works: a `tree` in a `repo`, or a directory; `evaluate` gives
//!   the number.
//! - `open`, `round`, `trial` and `close` are the functions, in the order of a conference; `ship`
//!   comes after it.
//!
//! Invariant: each function is told everything by its arguments and the files, adds only what is
//! missing, and can be killed between any two writes: called again, it ends the same.

mod close;
mod evaluate;
mod ground;
mod open;
mod repo;
mod round;
mod seat;
mod ship;
mod tree;
mod trial;

use std::{
    ffi::OsString,
    io::Write as _,
    path::{Path, PathBuf},
};

use onward_engine::dialects::conference::{event_log::EventLog, history::History, state::EVENTS};
use serde::Deserialize;
use serde_json::Value;

/// Why a built-in function could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CallError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl CallError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn io(doing: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let what = format!("cannot {doing} `{}`", path.display());
        move |source| Self::new(format!("{what}: {source}"))
    }
}

/// Whether the log of a conference in this directory says that it has begun.
pub(crate) fn has_started(dir: &Path) -> bool {
    let log = std::fs::read(dir.join(EVENTS)).unwrap_or_default();
    History::of(&EventLog::read(&log)).started
}

/// What an evaluator prints here and now; refused when that is no number.
pub(crate) fn try_evaluator(command: &str, dir: &Path) -> Result<String, CallError> {
    let env = [("CONFERENCE_DIR", dir.display().to_string())];
    evaluate::measure(command, 1, dir, &env)?.map_err(|why| {
        CallError::new(format!("the evaluator `{command}` does not work: {why}"))
            .hint("it is run by /bin/sh, and prints the metric in its last line")
    })
}

/// What a step says to its call. Which of it is needed depends on the function.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct With {
    dir: PathBuf,
    round: u32,
    researcher: String,
    iteration: u32,
    score: Value,
    proposal: Value,
    review: Value,
    focus: Value,
    choice: String,
    format: String,
}

/// Which attempt this is, as its environment says.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) run: String,
    pub(crate) step: String,
    pub(crate) number: u32,
    /// Where its result goes.
    pub(crate) result: Option<PathBuf>,
    /// The directory of the conference, for an agent.
    pub(crate) conference: Option<PathBuf>,
}

pub(crate) fn call(
    name: &str,
    with: Value,
    attempt: &Attempt,
    program: &[OsString],
) -> Result<Value, CallError> {
    let result = called(name, with, attempt, program)?;
    for place in result["rescued"].as_array().into_iter().flatten() {
        // For whoever reads the step's log; what cannot be said there is in the result, too.
        let place = place.as_str().unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "note: what was there before is kept in {place}");
    }
    Ok(result)
}

fn called(
    name: &str,
    with: Value,
    attempt: &Attempt,
    program: &[OsString],
) -> Result<Value, CallError> {
    let with = if with.is_null() { With::default() } else { read(name, with)? };
    match name {
        "conference.open" => open::open(&with),
        "conference.start" => open::start(&with),
        "conference.begin" => round::begin(&with),
        "conference.brief" => trial::brief(&with),
        "conference.propose" => trial::propose(attempt, program),
        "conference.score" => trial::score(&with),
        "conference.settle" => trial::settle(&with),
        "conference.roll" => round::roll(&with),
        "conference.poster" => round::poster(&with),
        "conference.review" => round::review(&with),
        "conference.transfer" => round::transfer(&with),
        "conference.converge" => round::converge(&with),
        "conference.synthesis" => close::synthesis(&with),
        "conference.close" => close::close(&with),
        "ship.verify" => ship::verify(&with),
        "ship.publish" => ship::publish(&with, &attempt.run),
        _ => Err(CallError::new(format!("there is no built-in function `{name}`"))),
    }
}

fn read(name: &str, with: Value) -> Result<With, CallError> {
    serde_json::from_value(with)
        .map_err(|error| CallError::new(format!("`{name}` was not told what to do: {error}")))
}
