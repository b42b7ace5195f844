//! What the built-in workflows call: one folder for each workflow, one table of names in each.
//!
//! A call is a process of its own (`onward call`), started by the supervisor like any other step.
//! Invariant: a function is told everything by its `Order` and the files, adds only what is
//! missing, and can be killed between any two writes: called again, it ends the same.

mod agent_memory;
pub mod conference;
mod desk;
mod dotagent;
mod ink;
mod merge;
mod name;
mod pipeline;
mod sdlc;
mod ship;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

pub use ink::Ink;

use crate::world::{
    Stop,
    git::{Env, GitError},
};

/// What a function does with its order: the result of the step, or why there is none.
type Function = fn(&Order) -> Result<Value, CallError>;

/// Every built-in function by its name in the workflow.
const TABLES: &[&[(&str, Function)]] = &[
    &agent_memory::FUNCTIONS,
    &conference::FUNCTIONS,
    &pipeline::FUNCTIONS,
    &ship::FUNCTIONS,
    &dotagent::FUNCTIONS,
    &sdlc::FUNCTIONS,
];

/// Why a built-in function could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub message: String,
    pub hint: Option<String>,
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

impl From<GitError> for CallError {
    fn from(error: GitError) -> Self {
        Self::new(error.to_string()).hint("check that `git status` works here")
    }
}

impl From<Stop> for CallError {
    fn from(stop: Stop) -> Self {
        let source = std::error::Error::source(&stop).map(|it| format!(": {it}"));
        Self { message: format!("{stop}{}", source.unwrap_or_default()), hint: stop.hint() }
    }
}

/// Which attempt calls, as its environment says.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    pub run: String,
    /// The directory of the project, in which calls are started.
    pub project: PathBuf,
    pub env: Env,
    /// How much it may write.
    pub ink: Ink,
    /// Hears what it waits for.
    pub tell: Option<fn(&str)>,
}

/// What a step says to its call. Which of it is needed depends on the function.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Order {
    dir: PathBuf,
    round: u32,
    researcher: String,
    iteration: u32,
    /// `done`, or the cause for which the researcher's agent failed.
    outcome: String,
    score: Value,
    proposal: Value,
    review: Value,
    focus: Value,
    choice: String,
    format: String,
    /// What is wanted, and what the user said beside an answer.
    request: String,
    notes: String,
    task: String,
    tasks: Vec<String>,
    /// What an agent left.
    result: Value,
    verdicts: Value,
    phase: u32,
    /// All of it, for functions that read it in their own way.
    #[serde(skip)]
    with: Value,
    /// Of a pipeline: a task, a phase, what agents answered, where the work is.
    id: String,
    stage: String,
    tier: String,
    intake: Value,
    breakdown: Value,
    describe: Value,
    commit: Value,
    page: String,
    branch: String,
    turn: u32,
    /// It was completed before, and nothing was to be verified.
    kept: bool,
    #[serde(skip)]
    attempt: Attempt,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The result of the step.
    pub result: Value,
    /// For the step's log; all of it is in the result, too.
    pub notes: Vec<String>,
}

/// Does what the function of this name is asked by the step's `with`.
pub fn call(name: &str, with: Value, attempt: Attempt) -> Result<Answer, CallError> {
    let function = TABLES.iter().flat_map(|table| table.iter()).find(|(known, _)| *known == name);
    let Some((_, function)) = function else {
        return Err(CallError::new(format!("there is no built-in function `{name}`")));
    };
    let mut order = Order::default();
    if !with.is_null() {
        order = serde_json::from_value(with.clone()).map_err(|error| {
            CallError::new(format!("`{name}` was not told what to do: {error}"))
        })?;
        order.with = with;
    }
    order.attempt = attempt;
    let result = function(&order)?;
    let rescued = result["rescued"].as_array().into_iter().flatten();
    let notes = rescued.filter_map(Value::as_str);
    let notes = notes.map(|place| format!("what was there before is kept in {place}")).collect();
    Ok(Answer { result, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_can_call_every_function_of_the_tables_and_no_other() {
        let names: Vec<&str> =
            TABLES.iter().flat_map(|table| table.iter()).map(|it| it.0).collect();
        assert_eq!(names, onward_dialects::builtin::CALLS);
    }

    #[test]
    fn an_unknown_function_and_an_order_that_makes_no_sense_are_refused() {
        let refused =
            |name: &str, with: Value| call(name, with, Attempt::default()).unwrap_err().to_string();
        assert!(refused("no.such", Value::Null).contains("`no.such`"));
        let with = serde_json::json!({"dir": ".", "round": "two"});
        assert!(refused("conference.begin", with).contains("was not told what to do"));
    }
}
