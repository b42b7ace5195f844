//! The directory of a run, held by one process at a time.
//!
//! Invariant: a file is replaced whole or not at all; our log is appended to and synced. While a
//! [`Desk`] lives, no other call changes the run.

use std::fs;

use onward_core::told::Change;
use onward_dialects::{
    Dialect as _, Files,
    agent_memory::{
        AGENT_MEMORY,
        read::State,
        tasks::{Task, Tasks},
        write::{self, Entry},
    },
    kit::path::inside,
};
use serde_json::{Value, json};

use super::{CallError, Order};
use crate::{
    play::desk,
    world::{
        open,
        real::{variable, wall_clock},
    },
};

pub(super) struct Desk {
    held: desk::Desk,
    /// The step that calls, as our events name it.
    pub(super) step: String,
    run: String,
}

impl Desk {
    /// Waits until no other call holds the directory, which is made where it is missing.
    pub(super) fn take(order: &Order) -> Result<Self, CallError> {
        let named = order.dir.to_str().and_then(inside);
        let Some(named) = named else {
            let message = format!("`{}` is not a directory of the project", order.dir.display());
            return Err(CallError::new(message).hint("give one with --input dir=PATH"));
        };
        let project = &order.attempt.project;
        let dir = open::beneath(project, &named).map_err(CallError::io("use", &order.dir))?;
        fs::create_dir_all(&dir).map_err(CallError::io("make", &dir))?;
        let step = variable(&order.attempt.env, "ONWARD_STEP");
        let step = step.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let run = order.attempt.run.clone();
        let held = desk::Desk::at_dir(dir, AGENT_MEMORY.card(), &order.attempt.ink)?;
        Ok(Self { held, step, run })
    }

    pub(super) fn files(&self) -> Result<Files, CallError> {
        self.held.files()
    }

    /// The run as its files tell it now.
    pub(super) fn look(&self) -> Result<(State, Tasks), CallError> {
        Ok(write::look(&self.files()?))
    }

    /// Whether the last event of the task was written by this very step.
    pub(super) fn has_said(&self, task: &Task) -> bool {
        task.step.as_ref() == Some(&self.step) && task.run.as_ref() == Some(&self.run)
    }

    /// What every event of ours says about where it comes from, with more.
    pub(super) fn details(&self, more: Value) -> Value {
        let mut details = json!({ "run": self.run, "step": self.step });
        if let (Value::Object(details), Value::Object(more)) = (&mut details, more) {
            details.extend(more);
        }
        details
    }

    pub(super) fn log(&self, entries: &[Entry]) -> Result<(), CallError> {
        self.held.write(&write::logged(&self.files()?, entries, wall_clock()))
    }

    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        let (path, bytes) = (name.to_owned(), bytes.to_vec());
        self.held.write(&[Change::Replace { path, bytes }])
    }
}
