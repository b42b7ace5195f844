//! The pages that the workflow writes itself.

use std::fmt::Write as _;

use onward_core::time::Timestamp;
use serde_json::Value;

use super::verdict::Said;
use crate::kit::{markdown::one_line, path::shown};

/// What was approved, and under which conditions. That it exists is the proof of the approval.
pub fn constitution(run: &str, request: &str, notes: &str, at: Timestamp) -> String {
    let (request, notes) = (quoted(request), quoted(notes));
    let notes = if notes.is_empty() { "> None.\n".to_owned() } else { notes };
    let request = if request.is_empty() { "> See prd.md.\n".to_owned() } else { request };
    format!(
        "---\nrun_id: {}\nactor: onward\ncreated: {at}\nversion: 1\n---\n\n# Constitution\n\n\
         The user approved plan.md and task-graph.json. Every task of this run keeps to them, to \
         the contract of the task, and to what follows.\n\n## Request\n\n{request}\n\
         ## Conditions of the approval\n\n{notes}\n## Rules\n\n\
         - A task changes only what its contract allows.\n\
         - A task is done when a verifier has said so.\n\
         - Events are only ever added, each actor in its own folder.\n",
        shown(run)
    )
}

/// The same page when the user has approved once more, with the new condition behind what it says;
/// `None` when there is nothing to add.
pub fn approved_again(page: &str, notes: &str, at: Timestamp) -> Option<String> {
    let notes = quoted(notes);
    let is_said = notes.is_empty() || page.contains(&notes);
    let page = page.trim_end();
    (!is_said).then(|| format!("{page}\n\n## Conditions of the approval at {at}\n\n{notes}"))
}

/// What the verifier said of one task.
pub fn verification(id: &str, said: &Said<'_>) -> String {
    let Said { result, summary, .. } = said;
    let mut page = format!("# Verification of {}\n\n**Result:** {result}\n", shown(id));
    if !summary.is_empty() {
        let _ = write!(page, "\n{}", quoted(summary));
    }
    if !said.issues.is_empty() {
        let _ = write!(page, "\n## Issues\n\n{}", issues(said));
    }
    page
}

/// The contract of a quality task.
pub fn contract(id: &str, fixes: &str, said: &Said<'_>) -> String {
    let (id, fixes) = (shown(id), shown(fixes));
    let mut page = format!(
        "---\ntask_id: {id}\nactor: onward\n---\n\n# {id}: mend {fixes}\n\n## Description\n\n\
         {fixes} failed its verification. Mend what the verifier named, and nothing beside it.\n"
    );
    if !said.summary.is_empty() {
        let _ = write!(page, "\n{}", quoted(said.summary));
    }
    let _ = write!(page, "\n## Acceptance Criteria\n\n{}", issues(said));
    page
}

fn issues(said: &Said<'_>) -> String {
    let line = |issue: &&Value| {
        let text = |key: &str| issue[key].as_str().map(one_line).unwrap_or_default();
        let (what, file, severity) = (text("what"), text("file"), text("severity"));
        let severity = if severity.is_empty() { "major".to_owned() } else { severity };
        let place = if file.is_empty() { String::new() } else { format!(" ({file})") };
        format!("- [ ] {severity}: {what}{place}\n")
    };
    let lines: String = said.issues.iter().map(line).collect();
    if lines.is_empty() { "- [ ] the verification passes\n".to_owned() } else { lines }
}

/// Words of another author, as a quotation.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for line in text.trim().lines() {
        let _ = writeln!(quoted, "> {line}");
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_added_once_and_what_was_said_stays() {
        let at = Timestamp::from_micros(0);
        let page = constitution("x", "count", "tests first", at);
        assert_eq!(approved_again(&page, "tests first", at), None);
        assert_eq!(approved_again(&page, " \n", at), None);
        let again = approved_again(&page, "and docs", at).unwrap();
        assert!(again.starts_with(page.trim_end()) && again.ends_with("\n> and docs\n"), "{again}");
        assert_eq!(approved_again(&again, "and docs", at), None);
    }
}
