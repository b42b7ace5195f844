//! The state of an epic, as the original keeps it: a plain tree of YAML, changed value by value.
//!
//! Invariant: each event of an epic is one write. Keys that are not known here stay, in their
//! order.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    kit::{path::component, yaml::with_value},
    sdlc::epic::Epic,
};

/// Where a run of ours keeps the state of an epic.
pub fn path(epic: &str) -> String {
    format!(".aios/epic-{}-state.yaml", component(epic))
}

/// The state of an epic that was never begun.
pub fn fresh(epic: &Epic, plan: &str, mode: &str, at: &str) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = format!(
        "epic_state:\n  epicId: {}\n  execution_plan: {}\n  mode: {}\n  status: active\n  \
         started_at: {}\n  updated_at: {}\n  current_wave: 1\n  total_waves: {}\n  waves:\n",
        quoted(&epic.id),
        quoted(plan),
        quoted(mode),
        quoted(at),
        quoted(at),
        epic.waves.len()
    );
    for (number, wave) in &epic.waves {
        let name = quoted(&wave.name);
        let status = if *number == 1 { "in_progress" } else { "pending" };
        let _ = write!(text, "    {number}:\n      name: {name}\n      status: {status}\n");
        if let Some(tag) = &wave.tag {
            let _ = writeln!(text, "      tag: {}", quoted(tag));
        }
        text.push_str("      stories:\n");
        for member in &wave.stories {
            let _ = write!(text, "        {}:\n          status: pending\n", quoted(&member.id));
        }
    }
    text
}

/// What happens in an epic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A story is in progress.
    Started { story: &'a str },
    /// A story is implemented and reviewed, on a branch of its own.
    Worked { story: &'a str, branch: &'a str },
    /// The wave is judged as a whole.
    InReview,
    /// It was accepted and merged; a person is asked how it goes on.
    Accepted { notes: &'a str },
    /// The person said GO: the next wave begins, if there is one.
    Closed { is_last: bool },
    /// The final gate accepted the epic.
    Finished,
}

/// The state after this; `None` when it is not written so that this could be done.
pub fn told(state: &str, wave: u32, event: Event<'_>, at: &str) -> Option<String> {
    let wave_text = wave.to_string();
    let mut text = state.to_owned();
    let mut set = |path: &[&str], value: &str| -> Option<()> {
        let full: Vec<&str> = [&["epic_state"], path].concat();
        text = with_value(&text, &full, value)?;
        Some(())
    };
    let here = ["waves", wave_text.as_str()];
    match event {
        Event::Started { story } => {
            set(&[&here[..], &["stories", story, "status"]].concat(), "in_progress")?;
            set(&[&here[..], &["stories", story, "started_at"]].concat(), at)?;
        }
        Event::Worked { story, branch } => {
            set(&[&here[..], &["stories", story, "status"]].concat(), "completed")?;
            set(&[&here[..], &["stories", story, "branch"]].concat(), branch)?;
            set(&[&here[..], &["stories", story, "completed_at"]].concat(), at)?;
        }
        Event::InReview => set(&[&here[..], &["status"]].concat(), "gate_review")?,
        Event::Accepted { notes } => {
            set(&["gate_verdicts", &wave_text, "status"], "approved")?;
            set(&["gate_verdicts", &wave_text, "agent"], "architect")?;
            set(&["gate_verdicts", &wave_text, "at"], at)?;
            if !notes.is_empty() {
                set(&["gate_verdicts", &wave_text, "notes"], notes)?;
            }
            set(&["awaiting_input"], "true")?;
        }
        Event::Closed { is_last } => {
            set(&[&here[..], &["status"]].concat(), "completed")?;
            set(&[&here[..], &["decision"]].concat(), "GO")?;
            set(&["awaiting_input"], "false")?;
            if !is_last {
                let next = (wave + 1).to_string();
                set(&["waves", &next, "status"], "in_progress")?;
                set(&["current_wave"], &next)?;
            }
        }
        Event::Finished => {
            set(&["final_gate", "status"], "approved")?;
            set(&["status"], "completed")?;
        }
    }
    set(&["updated_at"], at)?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kit::{json::Oddities, yaml::object},
        sdlc::epic::Next,
    };

    const PLAN: &str = "execution:\n  epicId: '3'\n  waves:\n    1:\n      name: one\n      tag: \
                        epic-3-w1\n      stories: ['3.1', '3.2']\n    2:\n      name: two\n      \
                        stories: ['3.3']\n";
    const AT: &str = "2026-02-17T12:00:00Z";

    fn read(text: &str) -> Epic {
        let map = object(text.as_bytes()).unwrap();
        Epic::read(&map, "x", &Oddities::default()).unwrap()
    }

    #[test]
    fn an_epic_says_after_each_write_what_comes_next() {
        let mut epic = Epic { id: "3".to_owned(), ..Epic::default() };
        epic.planned(&object(PLAN.as_bytes()).unwrap());
        let mut text = fresh(&epic, "docs/epics/3/EXECUTION.yaml", "interactive", AT);
        assert_eq!(read(&text).waves[&1].tag.as_deref(), Some("epic-3-w1"));
        for (wave, event, expected) in [
            (1, Event::Started { story: "3.1" }, Next::Stories(1)),
            (1, Event::Worked { story: "3.1", branch: "b/1" }, Next::Stories(1)),
            (1, Event::Worked { story: "3.2", branch: "b/2" }, Next::Gate(1)),
            (1, Event::InReview, Next::Gate(1)),
            (1, Event::Accepted { notes: "fits" }, Next::Checkpoint(1)),
            (1, Event::Closed { is_last: false }, Next::Stories(2)),
            (2, Event::Worked { story: "3.3", branch: "b/3" }, Next::Gate(2)),
            (2, Event::Accepted { notes: "" }, Next::Checkpoint(2)),
            (2, Event::Closed { is_last: true }, Next::FinalGate),
            (2, Event::Finished, Next::Over),
        ] {
            text = told(&text, wave, event, AT).unwrap();
            assert_eq!(read(&text).next(&|_| None), expected, "{event:?}\n{text}");
            assert_eq!(told(&text, wave, event, AT).as_ref(), Some(&text), "written again");
        }
    }
}
