//! The verdict of a QA gate, as the original keeps it.
//!
//! Invariant: a verdict that closes a story is written twice: as the next one before the story
//! changes, and as the verdict behind it. Between the two the gate counts as still to be given, so
//! that a kill leaves no gate that has passed over a story that is not done. A verdict that sent
//! the story back before stays in the file meanwhile: the rework rests on it.

use serde_json::Value;

use crate::{
    kit::{
        path::component,
        yaml::{object, with_value},
    },
    sdlc::state::{ENTER, wrapper},
};

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

/// The state of a story's run in another phase since this moment; `None` when the file is not
/// written so that this could be done.
pub fn moved(state: &str, phase: u32, word: Option<&str>, at: &str) -> Option<String> {
    let map = object(state.as_bytes()).ok()?;
    let inner = wrapper(&map).and_then(|it| map.get(it)?.as_object()).unwrap_or(&map);
    let has = |key: &str| inner.contains_key(key);
    let key = if has("currentPhase") { "currentPhase" } else { "current_phase" };
    let text = with_noted(state, key, &phase.to_string())?;
    // A person's own point of entry is behind the run now.
    let text = if has(ENTER) { with_noted(&text, ENTER, "null")? } else { text };
    let text = match word {
        Some(word) => with_noted(&text, "status", word)?,
        None => text,
    };
    let key = if has("lastUpdated") { "lastUpdated" } else { "updated_at" };
    with_noted(&text, key, at)
}

/// The state with the status that its story is about to get. It is written before the story is, so
/// that a kill in between leaves no story that looks as if other work had moved it.
pub fn with_story(state: &str, status: &str) -> Option<String> {
    let map = object(state.as_bytes()).ok()?;
    let inner = wrapper(&map).and_then(|it| map.get(it)?.as_object()).unwrap_or(&map);
    let has = |key: &str| inner.contains_key(key);
    let is_camel = has("storyStatus") || has("currentPhase") && !has("story_status");
    with_noted(state, if is_camel { "storyStatus" } else { "story_status" }, status)
}

/// A value of the state, beside its others.
pub fn with_noted(state: &str, key: &str, value: &str) -> Option<String> {
    let map = object(state.as_bytes()).ok()?;
    let path = [wrapper(&map), Some(key)];
    with_value(state, &path.into_iter().flatten().collect::<Vec<_>>(), value)
}

/// The same without the question that was open: a person said GO.
pub fn decided(state: &str, at: &str) -> Option<String> {
    let mut text = state.to_owned();
    for key in ["awaiting_input", "awaitingInput"] {
        for open in [format!("{key}: "), format!("{key}\": ")] {
            text = text.replace(&format!("{open}true"), &format!("{open}false"));
        }
    }
    let text = with_noted(&text, "decision", "GO")?;
    moved(&text, crate::sdlc::state::CHECKPOINT, Some("completed"), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_says_what_its_story_is_about_to_be_in_its_own_spelling() {
        for (before, after) in [
            ("workflow: sdc\n", "workflow: sdc\nstory_status: InReview\n"),
            ("story_status: InProgress # kept\n", "story_status: InReview # kept\n"),
            ("currentPhase: 3_x\n", "currentPhase: 3_x\nstoryStatus: InReview\n"),
            (
                "state:\n  story_status: Draft\n  odd: 1\n",
                "state:\n  story_status: InReview\n  odd: 1\n",
            ),
        ] {
            assert_eq!(with_story(before, "InReview").as_deref(), Some(after));
        }
    }

    #[test]
    fn a_state_moves_and_what_is_unknown_stays() {
        let text = "# kept\nworkflow: sdc\ncurrent_phase: 3\nodd: [1, 2]\n";
        let after = moved(text, 4, Some("completed"), "2026-02-17T12:00:00Z").unwrap();
        assert!(after.starts_with("# kept\nworkflow: sdc\ncurrent_phase: 4\nodd: [1, 2]\n"));
        let map = object(after.as_bytes()).unwrap();
        assert_eq!(map["status"], "completed", "{after}");
        let camel = moved("currentPhase: 3_self_healing\n", 4, None, "x").unwrap();
        assert!(camel.starts_with("currentPhase: 4\n"), "{camel}");
    }

    /// Between brackets, or one level deeper: it is written where it is read.
    #[test]
    fn a_state_moves_in_whatever_style_it_is_written() {
        for text in [
            "{workflow: sdc, current_story: '4.2', current_phase: 3, enter_at: sdc:implement}\n",
            "session_state:\n  workflow: sdc\n  current_story: '4.2'\n  current_phase: 3\n  \
             enter_at: sdc:implement\n",
        ] {
            let after = moved(text, 4, Some("completed"), "2026-02-17T12:00:00Z").unwrap();
            let map = object(after.as_bytes()).unwrap();
            let odd = crate::kit::json::Oddities::default();
            let state = crate::sdlc::state::State::read(&map, "x", &odd).unwrap();
            assert_eq!((state.pointer, state.enter), (Some(4), None), "{after}");
            assert!(state.is_over() && state.updated_at.is_some(), "{after}");
        }
    }

    #[test]
    fn a_checkpoint_that_is_answered_waits_no_more() {
        for open in [
            "awaiting_input: true\n",
            "phaseResults:\n  6_checkpoint: {status: completed, awaiting_input: true}\n",
            "phaseResults:\n  6_checkpoint:\n    awaiting_input: true\n",
        ] {
            let text = format!("workflow: sdc\ncurrent_story: 4.2\n{open}");
            let after = decided(&text, "2026-02-17T12:00:00Z").unwrap();
            let map = object(after.as_bytes()).unwrap();
            assert!(!crate::sdlc::state::awaits(&map.clone().into()), "{after}");
            assert_eq!(map["decision"], "GO", "{after}");
        }
    }

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
