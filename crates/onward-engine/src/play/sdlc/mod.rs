//! The functions of the workflows `sdc`, `spec`, `qa-loop` and `epic`.
//!
//! `open` says where a run begins; `story` writes statuses, logs and gates, and sees that each
//! agent kept to its own sections; `turn` keeps the status of a QA loop, `wave` that of an epic.
//!
//! Invariant: what is written is decided by `rules::sdlc`. The native files are changed by these
//! functions, under the desk's lock, and by agents in their own sections alone.

mod open;
mod story;
mod turn;
mod wave;

use onward_core::told::Change;
use onward_dialects::{
    sdlc::{SDLC, project::Project},
    seam::Dialect as _,
};
use serde::Deserialize;
use serde_json::Value;

use super::{CallError, Function, Order, desk::Desk};

pub(super) const FUNCTIONS: [(&str, Function); 17] = [
    ("sdlc.story", open::story),
    ("sdlc.spec", open::spec),
    ("sdlc.judged", open::judged),
    ("sdlc.critiqued", open::critiqued),
    ("sdlc.loop", open::qa_loop),
    ("sdlc.mark", story::mark),
    ("sdlc.status", story::status),
    ("sdlc.gate", story::gate),
    ("sdlc.finish", story::finish),
    ("sdlc.turn", turn::turn),
    ("sdlc.epic", wave::epic),
    ("sdlc.wave", wave::wave),
    ("sdlc.marks", wave::marks),
    ("sdlc.kept", wave::kept),
    ("sdlc.merge", wave::merge),
    ("sdlc.tag", wave::tag),
    ("sdlc.accept", wave::accept),
];

/// What a step says to its call. Which of it is needed depends on the function.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Ask {
    story: String,
    feature: String,
    epic: String,
    plan: String,
    wave: u32,
    branch: String,
    notes: String,
    is_last: bool,
    /// The file of the story.
    path: String,
    /// The agent that worked on it.
    role: String,
    to: String,
    verdict: String,
    /// The state file of the original, where the run goes on with one.
    state: String,
    iteration: u32,
    max: u32,
    /// What an earlier call said that the story held.
    before: Value,
}

impl Ask {
    fn read(order: &Order) -> Result<Self, CallError> {
        serde_json::from_value(order.with.clone())
            .map_err(|error| CallError::new(format!("the call was not told what to do: {error}")))
    }

    fn named<'a>(text: &'a str, what: &str) -> Result<&'a str, CallError> {
        let text = text.trim();
        if text.is_empty() {
            let hint = format!("--input {what}=…");
            return Err(CallError::new(format!("no {what} was named")).hint(hint));
        }
        Ok(text)
    }
}

fn desk(order: &Order) -> Result<Desk, CallError> {
    Desk::take(order, SDLC.card())
}

fn project(desk: &Desk) -> Result<Project, CallError> {
    Ok(Project::of(&desk.files()?))
}

fn text(desk: &Desk, name: &str) -> Result<String, CallError> {
    let bytes = desk.read(name)?.ok_or_else(|| {
        CallError::new(format!("`{name}` is missing")).hint("bring it back, and resume")
    })?;
    String::from_utf8(bytes).map_err(|_| CallError::new(format!("`{name}` is not UTF-8")))
}

/// A file that holds this already is left alone.
fn replace(desk: &Desk, name: &str, text: &str) -> Result<(), CallError> {
    if desk.read(name)?.as_deref() == Some(text.as_bytes()) {
        return Ok(());
    }
    desk.write(&[Change::Replace { path: name.to_owned(), bytes: text.as_bytes().to_vec() }])
}
