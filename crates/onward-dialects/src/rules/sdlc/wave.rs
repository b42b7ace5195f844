//! The state of an epic, as the original keeps it: a plain tree of YAML, changed value by value.
//!
//! Invariant: each event of an epic is one write. Keys that are not known here stay, in their
//! order.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    kit::{
        path::component,
        yaml::{object, with_value},
    },
    sdlc::epic::{Epic, story_key, wave_key},
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

/// The state after this; `None` when it is not written so that this could be done. The wave is
/// counted as `epic` counts it, and written as the files call it.
pub fn told(state: &str, epic: &Epic, wave: u32, event: Event<'_>, at: &str) -> Option<String> {
    let told_as = |number: u32| epic.waves.get(&number).map_or(number, |it| it.told_as);
    let number = told_as(wave);
    let mut state = State { text: state.to_owned() };
    match event {
        Event::Started { story } => {
            let here = state.story(number, story)?;
            state.set(&here, "status", "in_progress")?;
            state.set(&here, "started_at", at)?;
        }
        Event::Worked { story, branch } => {
            let here = state.story(number, story)?;
            state.set(&here, "status", "completed")?;
            state.set(&here, "branch", branch)?;
            state.set(&here, "completed_at", at)?;
        }
        Event::InReview => {
            let here = state.wave(number)?;
            state.set(&here, "status", "gate_review")?;
        }
        Event::Accepted { notes } => {
            let verdict = state.verdict(number)?;
            state.set(&verdict, "status", "approved")?;
            state.set(&verdict, "agent", "architect")?;
            state.set(&verdict, "at", at)?;
            if !notes.is_empty() {
                state.set(&verdict, "notes", notes)?;
            }
            state.set(&[], "awaiting_input", "true")?;
        }
        Event::Closed { is_last } => {
            let here = state.wave(number)?;
            state.set(&here, "status", "completed")?;
            state.set(&here, "decision", "GO")?;
            state.set(&[], "awaiting_input", "false")?;
            if !is_last {
                let next = told_as(wave + 1);
                let here = state.wave(next)?;
                state.set(&here, "status", "in_progress")?;
                state.set(&[], "current_wave", &next.to_string())?;
            }
        }
        Event::Finished => {
            state.set(&["final_gate".to_owned()], "status", "approved")?;
            state.set(&[], "status", "completed")?;
        }
    }
    state.set(&[], "updated_at", at)?;
    Some(state.text)
}

/// What is done again because a person enters there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again<'a> {
    Stories(&'a [&'a str]),
    Gate,
    FinalGate,
}

/// What stands in the place of a verdict that was taken back.
const REOPENED: &str = "reopened";

/// The state with this to be done again; `None` as in [`told`].
pub fn reopened(state: &str, epic: &Epic, wave: u32, what: Again<'_>) -> Option<String> {
    let number = epic.waves.get(&wave).map_or(wave, |it| it.told_as);
    let is_judged = epic.waves.get(&wave).is_some_and(|it| it.verdict.is_some());
    let mut state = State { text: state.to_owned() };
    match what {
        Again::Stories(ids) => {
            for id in ids {
                let here = state.story(number, id)?;
                state.set(&here, "status", "pending")?;
            }
            if is_judged {
                let verdict = state.verdict(number)?;
                state.set(&verdict, "status", REOPENED)?;
            }
        }
        Again::Gate => {
            let verdict = state.verdict(number)?;
            state.set(&verdict, "status", REOPENED)?;
            state.set(&[], "awaiting_input", "false")?;
        }
        Again::FinalGate => state.set(&["final_gate".to_owned()], "status", REOPENED)?,
    }
    state.set(&[], "status", "active")?;
    Some(state.text)
}

/// The file while it is changed.
struct State {
    text: String,
}

impl State {
    fn set(&mut self, above: &[String], key: &str, value: &str) -> Option<()> {
        let mut path = vec!["epic_state"];
        path.extend(above.iter().map(String::as_str));
        path.push(key);
        self.text = with_value(&self.text, &path, value)?;
        Some(())
    }

    fn read(&self) -> Option<Value> {
        object(self.text.as_bytes()).ok()?.remove("epic_state")
    }

    /// Where a wave is kept; one that a list does not have yet is named there first.
    fn wave(&mut self, number: u32) -> Option<Vec<String>> {
        let state = self.read()?;
        let waves = state.get("waves");
        let (key, is_new) = either(wave_key(waves, number));
        let here = vec!["waves".to_owned(), key];
        if is_new && waves.is_some_and(Value::is_array) {
            self.set(&here, "wave", &number.to_string())?;
        }
        Some(here)
    }

    fn story(&mut self, number: u32, story: &str) -> Option<Vec<String>> {
        let mut here = self.wave(number)?;
        let state = self.read()?;
        let wave = here.iter().try_fold(&state, |it, key| match it {
            Value::Array(list) => key.parse().ok().and_then(|it: usize| list.get(it)),
            Value::Object(map) => map.get(key),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        });
        let stories = wave.and_then(|it| it.get("stories"));
        let (key, is_new) = either(story_key(stories, story));
        here.extend(["stories".to_owned(), key]);
        if is_new && stories.is_some_and(Value::is_array) {
            self.set(&here, "id", story)?;
        }
        Some(here)
    }

    fn verdict(&self, number: u32) -> Option<Vec<String>> {
        let state = self.read()?;
        let (key, _) = either(wave_key(state.get("gate_verdicts"), number));
        Some(vec!["gate_verdicts".to_owned(), key])
    }
}

/// The key, and whether it is a new one.
fn either(key: Result<String, String>) -> (String, bool) {
    match key {
        Ok(key) => (key, false),
        Err(key) => (key, true),
    }
}

/// Whether a run could note its progress in the state: everything that it will write up to the end
/// of this wave, tried.
pub fn is_writable(state: &str, epic: &Epic, wave: u32) -> bool {
    const TRIED_MAX: usize = 6;
    let stories = epic.waves.get(&wave).into_iter().flat_map(|it| &it.stories);
    let open = stories.filter(|it| !it.says.is_over()).take(TRIED_MAX);
    let worked = open.map(|it| Event::Worked { story: &it.id, branch: "x" });
    let is_last = epic.waves.keys().next_back() == Some(&wave);
    let gates = [Event::Accepted { notes: "x" }, Event::Closed { is_last }, Event::Finished];
    let others = epic.waves.keys().filter(|it| **it > wave).take(TRIED_MAX);
    let later = others.map(|it| (*it, Event::InReview));
    let mut all = worked.chain(gates).map(|it| (wave, it)).chain(later);
    all.all(|(wave, event)| told(state, epic, wave, event, "2026-01-01T00:00:00Z").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kit::json::Oddities, sdlc::epic::Next};

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
            text = told(&text, &epic, wave, event, AT).unwrap();
            assert_eq!(read(&text).next(&|_| None), expected, "{event:?}\n{text}");
            assert_eq!(told(&text, &epic, wave, event, AT).as_ref(), Some(&text), "written again");
        }
    }

    /// The same two waves in every style that a state is read in.
    #[test]
    fn a_state_of_any_style_says_after_each_write_what_comes_next() {
        for text in [
            "epic_state: {epicId: '3', waves: {1: {stories: {3.1: {status: pending}}}, 2: \
             {stories: {3.2: {status: pending}}}}}\n",
            "epic_state: # kept\n  waves: {1: {stories: [3.1]}, 2: {stories: [{id: 3.2}]}}\n  x: \
             1\n",
            "{\"epic_state\": {\n  \"waves\": {\n    \"1\": {\"stories\": {\"3.1\": {}}},\n    \
             \"2\": {\"stories\": {\"3.2\": \"pending\"}}\n  }\n}}\n",
            "epic_state:\n  waves:\n  - wave: 1\n    stories:\n    - id: 3.1\n    - id: 3.0\n      \
             status: completed\n  - wave: 2\n    stories:\n    - 3.2\n",
            "epic_state:\n  waves:\n    wave_1:\n      stories:\n        3.1: pending\n    \
             wave_2:\n      stories:\n        3.2: null\n",
            "epic_state:\n  waves:\n    4:\n      stories:\n        3.1:\n    7:\n      stories: \
             {3.2: {}}\n  gate_verdicts:\n    wave_4: none\n",
        ] {
            let counted = |text: &str| {
                let mut epic = read(text);
                epic.waves = (1..).zip(std::mem::take(&mut epic.waves).into_values()).collect();
                epic.pointer = None;
                epic
            };
            assert!(is_writable(text, &counted(text), 1), "{text}");
            let mut now = text.to_owned();
            for (wave, event, expected) in [
                (1, Event::Started { story: "3.1" }, Next::Stories(1)),
                (1, Event::Worked { story: "3.1", branch: "b/1" }, Next::Gate(1)),
                (1, Event::InReview, Next::Gate(1)),
                (1, Event::Accepted { notes: "fits" }, Next::Checkpoint(1)),
                (1, Event::Closed { is_last: false }, Next::Stories(2)),
                (2, Event::Worked { story: "3.2", branch: "b/2" }, Next::Gate(2)),
                (2, Event::Accepted { notes: "" }, Next::Checkpoint(2)),
                (2, Event::Closed { is_last: true }, Next::FinalGate),
                (2, Event::Finished, Next::Over),
            ] {
                now =
                    told(&now, &counted(&now), wave, event, AT).unwrap_or_else(|| panic!("{now}"));
                assert_eq!(counted(&now).next(&|_| None), expected, "{event:?}\n{now}");
            }
            let (before, after) = (counted(text), counted(&now));
            let ids = |it: &Epic| it.members().map(|it| it.id.clone()).collect::<Vec<_>>();
            assert_eq!(ids(&before), ids(&after), "{now}");
            assert_eq!(text.contains("# kept"), now.contains("# kept"), "{now}");
        }
        let shared = "epic_state:\n  waves:\n    1: &a\n      stories: {3.1: {}}\n    2: *a\n";
        assert!(!is_writable(shared, &read(shared), 1));
    }
}
