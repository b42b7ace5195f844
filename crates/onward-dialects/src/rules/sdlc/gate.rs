//! The verdict of a QA gate, as the original keeps it.
//!
//! Invariant: a verdict that closes a story is written twice: as the next one before the story
//! changes, and as the verdict behind it. Between the two the gate counts as still to be given, so
//! that a kill leaves no gate that has passed over a story that is not done. A verdict that sent
//! the story back before stays in the file meanwhile: the rework rests on it.

use serde_json::Value;

use crate::kit::{path::component, yaml::object};

/// Where the verdict on a story is kept.
pub fn path(story: &str) -> String {
    format!("docs/qa/gates/{}-gate.yml", component(story))
}

/// Where a person's point of entry is noted for a story whose run has no state.
pub fn state_path(story: &str) -> String {
    format!(".nexos/workflow-state/{}-state.yaml", component(story))
}

/// Whether it is a verdict, and whether it closes the story.
pub fn closes(verdict: &str) -> Option<bool> {
    match verdict {
        "PASS" | "CONCERNS" | "WAIVED" => Some(true),
        BACK => Some(false),
        _ => None,
    }
}

/// The key of a verdict that is about to be given.
pub const NEXT: &str = "next_verdict";

/// The verdict that sends a story back.
const BACK: &str = "FAIL";

/// The gate while its story is brought up to the verdict; `sent_back`: by the verdict before.
pub fn announced(story: &str, sent_back: bool, verdict: &str) -> String {
    let before =
        if sent_back { given(story, BACK) } else { format!("storyId: {}\n", Value::from(story)) };
    format!("{before}{NEXT}: {verdict}\n")
}

/// Whether the gate as it stands sends its story back.
pub fn sends_back(gate: &[u8]) -> bool {
    object(gate).is_ok_and(|it| it.get("verdict").and_then(Value::as_str) == Some(BACK))
}

pub fn given(story: &str, verdict: &str) -> String {
    let id = Value::from(story);
    format!("storyId: {id}\nverdict: {verdict}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_is_announced_has_no_verdict_yet() {
        assert!(!announced("4.2", false, "PASS").contains("\nverdict:"));
        assert!(given("4.2", "PASS").contains("\nverdict: PASS\n"));
        assert_eq!(
            [closes("WAIVED"), closes("FAIL"), closes("perhaps")],
            [Some(true), Some(false), None]
        );
    }
}
