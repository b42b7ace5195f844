//! What a front end needs to write a conference.md: the draft, and a trial of its evaluator.

use std::path::Path;

pub use onward_dialects::{
    conference::read::DOCUMENT,
    rules::conference::{
        draft::{Draft, Measure},
        measure::Direction,
    },
};

use super::{CallError, evaluate};

/// The number that an evaluator prints in this directory; an error when it prints none.
pub fn try_evaluator(command: &str, dir: &Path) -> Result<String, CallError> {
    let env = [("CONFERENCE_DIR", dir.display().to_string())];
    evaluate::measure(command, 1, dir, &env)?.map_err(|why| {
        CallError::new(format!("the evaluator `{command}` does not work: {why}"))
            .hint("it is run by /bin/sh, and prints the metric in its last line")
    })
}
