//! What a resume, or its end by a person, tells the system in its own files: that the run is active
//! again, or aborted.
//!
//! Invariant: one value changes at a time, and unknown keys, order and comments stay. A file that
//! cannot be changed so is left alone.

use onward_core::{time::Timestamp, told::Change};
use serde_json::json;

use super::{
    Code,
    told::{Kind, SdlcTold},
};
use crate::{
    kit::{edit::Sheet, yaml::with_value},
    rules::sdlc::gate::with_noted,
};

/// The state is active, and since when.
pub(super) fn resumed(told: &SdlcTold, at: Timestamp) -> Vec<Change> {
    match &told.kind {
        Kind::Epic(_) => marked(told, &["epic_state"], "active", &["updated_at"], at),
        Kind::Story(_) | Kind::Spec(_) => marked(told, &[], "active", &["updated_at"], at),
        Kind::Loop(_) => Vec::new(),
    }
}

/// The state is aborted; a loop is stopped, as it has no other word for it.
pub(super) fn cancelled(told: &SdlcTold, at: Timestamp) -> Vec<Change> {
    match &told.kind {
        Kind::Epic(_) => marked(told, &["epic_state"], "aborted", &["updated_at"], at),
        Kind::Story(_) | Kind::Spec(_) => {
            marked(told, &[], "aborted", &["aborted_at", "updated_at"], at)
        }
        Kind::Loop(_) => stopped(told, at),
    }
}

/// The state file; none where nothing is open, or it cannot be read.
fn state(told: &SdlcTold) -> Option<(&String, &str)> {
    // What is complete has nothing to be active for: a kill behind the last write left it so.
    let is_open = told.code != Code::Complete && told.rebuilt.is_none();
    let path = told.state_path.as_ref().filter(|_| is_open)?;
    let text = told.files.bytes(path).and_then(|it| std::str::from_utf8(it).ok())?;
    Some((path, text))
}

fn marked(
    told: &SdlcTold,
    above: &[&str],
    word: &str,
    dates: &[&str],
    at: Timestamp,
) -> Vec<Change> {
    let Some((path, text)) = state(told) else { return Vec::new() };
    if path.to_lowercase().ends_with(".json") {
        return Vec::new();
    }
    let set = |text: &str, key: &str, value: &str| match above {
        [] => with_noted(text, key, value),
        above => with_value(text, &[above, &[key]].concat(), value),
    };
    let mut after = set(text, "status", word);
    for key in dates {
        after = after.and_then(|it| set(&it, key, &at.to_string()));
    }
    let change = |text: String| Change::Replace { path: path.clone(), bytes: text.into_bytes() };
    after.map(change).into_iter().collect()
}

fn stopped(told: &SdlcTold, at: Timestamp) -> Vec<Change> {
    let sheet = state(told).and_then(|(path, text)| Some((path, Sheet::read(text.as_bytes())?)));
    let Some((path, mut sheet)) = sheet else { return Vec::new() };
    let is_snake = sheet.get(&["story_id"]).is_some();
    let key = if is_snake { "stopped_at" } else { "stoppedAt" };
    sheet.set(&["status"], &json!("stopped"));
    sheet.set(&[key], &json!(at.to_string()));
    vec![Change::Replace { path: path.clone(), bytes: sheet.into_bytes() }]
}
