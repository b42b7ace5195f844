//! What the steps of the workflow `dotagent` do to its files.
//!
//! `phases` has one function for each step around the tasks, `tasks` those of one task, `plan` the
//! contracts and the execution plan, `brief` what an implementer is told, `failure` what follows
//! from a try that came to nothing.
//!
//! Invariant: pure. A function is shown the files and says what changes; called again after all of
//! it was written, it changes nothing and gives the same result.

mod brief;
mod failure;
pub mod phases;
pub mod plan;
pub mod tasks;

use onward_core::{time::Timestamp, told::Change};
use serde_json::{Map, Value, json};

use crate::{
    Files,
    dotagent::{
        Phase,
        read::{Sheet, State},
        write::Checkpoint,
    },
    kit::path::shown,
};

/// What a function is shown.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub files: &'a Files,
    pub at: Timestamp,
    /// What a workflow that begins now is called.
    pub id: &'a str,
}

/// What a function wants done: files are moved out of the way first, then the changes are written
/// in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    pub moves: Vec<(String, String)>,
    pub changes: Vec<Change>,
    pub result: Value,
}

/// Why a step cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub message: String,
    pub hint: String,
    /// What the files say about it, written all the same.
    pub changes: Vec<Change>,
}

impl Act {
    fn nothing(result: Value) -> Self {
        Self { moves: Vec::new(), changes: Vec::new(), result }
    }
}

impl Refused {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into(), changes: Vec::new() }
    }
}

impl Scene<'_> {
    fn checkpoint(&self) -> Checkpoint {
        Checkpoint::of(self.files)
    }

    fn state(&self) -> State {
        State::of(self.files)
    }

    /// The workflow that the files are of, where that is another one than ours.
    pub fn another(&self, ours: &str) -> Option<String> {
        let there = self.state().workflow_id?;
        (!ours.trim().is_empty() && there.trim() != ours.trim()).then(|| shown(&there))
    }

    /// The phase that the files name; the first where they name none.
    fn phase(&self) -> Phase {
        self.state().current.unwrap_or(Phase::Requirements)
    }

    /// The object in a file, where it can be read.
    fn object(&self, path: &str) -> Option<Map<String, Value>> {
        Sheet::of(self.files, path).map().cloned()
    }

    /// The files come first, the checkpoint tells of them afterwards.
    fn act(&self, mut changes: Vec<Change>, checkpoint: &Checkpoint, result: Value) -> Act {
        changes.extend(checkpoint.changes(self.files));
        Act { moves: Vec::new(), changes, result }
    }

    /// A name beside `path` that no file has yet: `output.json`, `output.1.json`, …
    /// A file that was put aside before the checkpoint told of it: the last of its name.
    fn last_aside(&self, path: &str) -> Option<Map<String, Value>> {
        let stem = path.strip_suffix(".json").unwrap_or(path);
        let all = (1..).map(|number: u32| format!("{stem}.{number}.json"));
        let last = all.take_while(|name| self.files.contains(name)).last()?;
        self.object(&last)
    }

    fn aside(&self, path: &str) -> Option<(String, String)> {
        if !self.files.contains(path) {
            return None;
        }
        let stem = path.strip_suffix(".json").unwrap_or(path);
        let mut free = (1..).map(|number: u32| format!("{stem}.{number}.json"));
        let free = free.find(|name| !self.files.contains(name))?;
        Some((path.to_owned(), free))
    }
}

/// What an agent gave, as an object; anything else is kept under a key of its own.
fn object_of(draft: &Value) -> Map<String, Value> {
    match draft {
        Value::Object(map) => map.clone(),
        Value::Null => Map::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::from_iter([("content".to_owned(), draft.clone())])
        }
    }
}

/// The texts of a list under a key.
fn texts(value: &Value, key: &str) -> Vec<String> {
    let list = value[key].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn none() -> Value {
    json!({})
}
