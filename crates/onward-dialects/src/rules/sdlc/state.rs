//! The state of a story's run, changed in the shape that its file has.
//!
//! Invariant: what is written says to the program that made the file what it says to us: its own
//! keys, its own words and names of phases, in YAML or JSON. Keys that are not known here stay.

use serde_json::{Map, Value};

use crate::{
    kit::{edit::Sheet, json, yaml},
    sdlc::state::{CHECKPOINT, ENTER, Flow, phase, wrapper},
};

/// The state of a story's run in another phase since this moment; `None` when the file is not
/// written so that this could be done.
pub fn moved(state: &str, phase: u32, word: Option<Word>, at: &str) -> Option<String> {
    let mut page = Page::read(state)?;
    page.point_at(phase)?;
    // A person's own point of entry is behind the run now.
    if page.has(&[ENTER]) {
        page.note(&[ENTER], "null")?;
    }
    if let Some(word) = word {
        page.say(word)?;
    }
    page.count_done(phase, word == Some(Word::Completed), at);
    let action = if word == Some(Word::Completed) { "STORY_COMPLETED" } else { "PHASE_CHANGE" };
    page.act(action, Some(phase), at);
    page.stamp(at)?;
    Some(page.text)
}

/// What is said of a run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Active,
    Completed,
    Aborted,
}

/// The state of a run that is active again, or is ended by a person.
pub fn marked(state: &str, word: Word, at: &str) -> Option<String> {
    let mut page = Page::read(state)?;
    page.say(word)?;
    if word == Word::Aborted {
        let key = if page.is_camel() { "abortedAt" } else { "aborted_at" };
        page.note(&[key], at)?;
    }
    page.act(if word == Word::Aborted { "ABORT" } else { "GO" }, None, at);
    page.stamp(at)?;
    Some(page.text)
}

/// The state with the status that its story is about to get. It is written before the story is, so
/// that a kill in between leaves no story that looks as if other work had moved it.
pub fn with_story(state: &str, status: &str) -> Option<String> {
    let mut page = Page::read(state)?;
    let has = |key: &str| page.has(&[key]);
    let is_camel = has("storyStatus") || page.is_camel() && !has("story_status");
    page.note(&[if is_camel { "storyStatus" } else { "story_status" }], status)?;
    Some(page.text)
}

/// A value of the state, beside its others.
pub fn with_noted(state: &str, key: &str, value: &str) -> Option<String> {
    let mut page = Page::read(state)?;
    page.note(&[key], value)?;
    Some(page.text)
}

/// The same without the question that was open: a person said GO.
pub fn decided(state: &str, at: &str) -> Option<String> {
    let mut text = state.to_owned();
    for key in ["awaiting_input", "awaitingInput"] {
        for open in [format!("{key}: "), format!("{key}\": "), format!("{key}\":")] {
            text = text.replace(&format!("{open}true"), &format!("{open}false"));
        }
    }
    let text = with_noted(&text, "decision", "GO")?;
    moved(&text, CHECKPOINT, Some(Word::Completed), at)
}

/// The phases of the upstream's development cycle, and which of a story's each belongs to.
const CYCLE: [(u32, &str); 6] = [
    (2, "1_validation"),
    (3, "2_development"),
    (3, "3_self_healing"),
    (4, "4_quality_gate"),
    (4, "5_push"),
    (CHECKPOINT, "6_checkpoint"),
];

/// The epics that the upstream's master orchestrator leads a story through.
const EPICS: [(u32, u32); 3] = [(2, 3), (3, 4), (4, 6)];

const PHASES: [(&str, &str); 5] = [
    ("create", "sm"),
    ("validate", "po"),
    ("implement", "dev"),
    ("qa-gate", "qa"),
    ("checkpoint", "master"),
];

/// Where a state keeps what it knows, besides its top.
const PLACES: [&[&str]; 3] = [&[], &["progress"], &["context"]];
const STAMPS: [&str; 4] = ["updated_at", "updatedAt", "last_updated", "lastUpdated"];

/// The file while it is changed.
struct Page {
    text: String,
    map: Map<String, Value>,
}

impl Page {
    fn read(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let map = json::object(bytes).or_else(|_| yaml::object(bytes)).ok()?;
        Some(Self { text: text.to_owned(), map })
    }

    /// The state itself, which may lie one level deeper.
    fn inner(&self) -> &Map<String, Value> {
        wrapper(&self.map).and_then(|it| self.map.get(it)?.as_object()).unwrap_or(&self.map)
    }

    fn get(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.inner().get(*first)?, |it, key| it.get(*key))
    }

    fn has(&self, path: &[&str]) -> bool {
        self.get(path).is_some()
    }

    fn is_camel(&self) -> bool {
        ["currentPhase", "storyId", "workflowId"].iter().any(|key| self.has(&[key]))
    }

    fn is_master(&self) -> bool {
        self.has(&["currentEpic"]) || self.has(&["epics"])
    }

    fn note(&mut self, path: &[&str], value: &str) -> Option<()> {
        let above = wrapper(&self.map);
        let path: Vec<&str> = above.into_iter().chain(path.iter().copied()).collect();
        *self = Self::read(&yaml::with_value(&self.text, &path, value)?)?;
        Some(())
    }

    /// What one program keeps and another does not: left out where the file has no room for it.
    fn note_too(&mut self, path: &[&str], value: &str) {
        let _ = self.note(path, value);
    }

    fn point_at(&mut self, number: u32) -> Option<()> {
        let keys = ["current_phase", "currentPhase", "phase"];
        let place = |at: &&[&'static str]| -> Option<Vec<&'static str>> {
            let full = |key: &&'static str| at.iter().copied().chain([*key]).collect::<Vec<_>>();
            let is_value = |path: &Vec<&str>| {
                self.get(path).is_some_and(|it| it.is_string() || it.is_number())
            };
            keys.iter().map(full).find(is_value)
        };
        let known = PLACES.iter().find_map(place);
        let path = known.unwrap_or_else(|| vec!["current_phase"]);
        if self.is_master() && !self.has(&path) {
            return Some(());
        }
        let value = spelled(self.get(&path), number);
        self.note(&path, &value)?;
        let agent = usize::try_from(number).ok().and_then(|it| PHASES.get(it.checked_sub(1)?));
        for key in ["current_agent", "currentAgent"] {
            if let (Some((_, agent)), Some(told)) = (agent, self.get(&[key])) {
                let at = if told.as_str().is_some_and(|it| it.starts_with('@')) { "@" } else { "" };
                let agent = format!("{at}{agent}");
                self.note_too(&[key], &agent);
            }
        }
        Some(())
    }

    /// The phases before this one are done, and none behind it is.
    fn count_done(&mut self, number: u32, is_over: bool, at: &str) {
        for key in ["phaseResults", "phase_results"] {
            let Some(results) = self.get(&[key]).and_then(Value::as_object).cloned() else {
                continue;
            };
            for (of, name) in CYCLE {
                let is_known = |it: &&String| phase(Flow::Sdc, it) == Some(of);
                let known = results.keys().find(|it| *it == name);
                let known = known.or_else(|| results.keys().find(is_known).filter(|_| of != 3));
                let name = known.map_or(name, String::as_str);
                let said = results.get(name).and_then(|it| it.get("status"));
                let is_done = said.is_some_and(|it| it == "completed" || it == "skipped");
                let counts = of < number || is_over;
                if counts && !is_done {
                    self.note_too(&[key, name, "status"], "completed");
                    self.note_too(&[key, name, "completedAt"], at);
                } else if !counts && is_done {
                    self.note_too(&[key, name, "status"], "pending");
                }
            }
        }
        for key in ["phases_completed", "phasesCompleted", "completed_phases"] {
            let Some(list) = self.get(&[key]).and_then(Value::as_array).cloned() else { continue };
            let known: Vec<Option<u32>> =
                list.iter().map(|it| phase(Flow::Sdc, &plain(it))).collect();
            let upto = if is_over { 4 } else { number.saturating_sub(1) };
            let missing = (1..=upto).filter(|it| !known.contains(&Some(*it)));
            let more: Vec<Value> = missing
                .map(|it| spelled(list.last(), it))
                .map(|it| it.parse::<u32>().map_or_else(|_| it.clone().into(), Value::from))
                .collect();
            self.list(key, &[list, more].concat());
        }
        if !self.is_master() {
            return;
        }
        for (of, epic) in EPICS {
            let path = epic.to_string();
            let counts = of < number || is_over;
            let now = if counts { "completed" } else { "in_progress" };
            if of > number && !is_over {
                continue;
            }
            if self.get(&["epics", &path, "status"]).is_none_or(|it| it != now) {
                self.note_too(&["epics", &path, "status"], now);
                let key = if counts { "completedAt" } else { "startedAt" };
                self.note_too(&["epics", &path, key], at);
            }
            if !counts {
                self.note_too(&["currentEpic"], &path);
            }
        }
        self.split_epics(number, is_over);
    }

    /// Which epics are over, and which are to come.
    fn split_epics(&mut self, number: u32, is_over: bool) {
        let (mut over, mut open) = (Vec::new(), Vec::new());
        for (of, epic) in EPICS {
            if of < number || is_over { over.push(epic) } else { open.push(epic) }
        }
        for (key, own, others) in [("completedEpics", &over, &open), ("pendingEpics", &open, &over)]
        {
            let Some(list) = self.get(&[key]).and_then(Value::as_array).cloned() else { continue };
            let number = |it: &Value| plain(it).parse::<u32>().ok();
            let is_other = |it: &Value| number(it).is_some_and(|it| others.contains(&it));
            let mut after: Vec<Value> = list.iter().filter(|it| !is_other(it)).cloned().collect();
            // The one that is worked on is neither.
            let missing = own.iter().filter(|it| !list.iter().any(|own| number(own) == Some(**it)));
            let is_new = key == "completedEpics";
            after.extend(missing.filter(|_| is_new).map(|it| Value::from(*it)));
            self.list(key, &after);
        }
    }

    /// A list as a whole, in JSON, or in YAML where it stands on one line.
    fn list(&mut self, key: &str, list: &[Value]) {
        let value = Value::from(list.to_vec());
        let above = wrapper(&self.map);
        let path: Vec<&str> = above.into_iter().chain([key]).collect();
        let text = match Sheet::read(self.text.as_bytes()) {
            Some(mut sheet) => {
                sheet.set(&path, &value);
                String::from_utf8(sheet.into_bytes()).ok()
            }
            None => self.on_one_line(key, list),
        };
        // It says that and nothing else.
        let page = text.and_then(|it| Self::read(&it)).filter(|it| it.get(&[key]) == Some(&value));
        if let Some(page) = page {
            *self = page;
        }
    }

    fn on_one_line(&self, key: &str, list: &[Value]) -> Option<String> {
        let is_it = |line: &&str| {
            let rest = line.trim_start().strip_prefix(key).and_then(|it| it.strip_prefix(':'));
            rest.is_some_and(|it| it.trim().starts_with('[') && it.trim().ends_with(']'))
        };
        let line = self.text.lines().find(is_it)?;
        let items: Vec<String> = list.iter().map(Value::to_string).collect();
        let head = &line[..line.find('[')?];
        Some(self.text.replacen(line, &format!("{head}[{}]", items.join(", ")), 1))
    }

    fn say(&mut self, word: Word) -> Option<()> {
        let text = match (word, self.is_master()) {
            (Word::Active, false) => "active",
            (Word::Active, true) => "in_progress",
            (Word::Completed, false) => "completed",
            (Word::Completed, true) => "complete",
            (Word::Aborted, _) => "aborted",
        };
        self.note(&["status"], text)
    }

    /// The last thing that happened, where the file keeps that.
    fn act(&mut self, action: &str, number: Option<u32>, at: &str) {
        if !self.get(&["last_action"]).is_some_and(Value::is_object) {
            return;
        }
        self.note_too(&["last_action", "type"], action);
        self.note_too(&["last_action", "timestamp"], at);
        if let Some(number) = number {
            let value = spelled(self.get(&["last_action", "phase"]), number);
            self.note_too(&["last_action", "phase"], &value);
        }
    }

    fn stamp(&mut self, at: &str) -> Option<()> {
        let known: Vec<&str> = STAMPS.into_iter().filter(|key| self.has(&[key])).collect();
        let usual = if self.is_camel() { "updatedAt" } else { "updated_at" };
        let keys = if known.is_empty() { vec![usual] } else { known };
        keys.into_iter().try_for_each(|key| self.note(&[key], at))
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A phase as the file spells phases: by number, as the upstream numbers its own, or by name.
fn spelled(before: Option<&Value>, number: u32) -> String {
    let Some(text) = before.and_then(Value::as_str).filter(|it| it.parse::<u32>().is_err()) else {
        return number.to_string();
    };
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let own = CYCLE.iter().find(|(of, _)| *of >= number);
        return own.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned());
    }
    let name = usize::try_from(number).ok().and_then(|it| PHASES.get(it.checked_sub(1)?));
    let name = name.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned());
    let is_capital = text.starts_with(|c: char| c.is_ascii_uppercase());
    match name.split_at_checked(1).filter(|_| is_capital) {
        Some((first, rest)) => first.to_ascii_uppercase() + rest,
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::yaml::object;

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
        let after = moved(text, 4, Some(Word::Completed), "2026-02-17T12:00:00Z").unwrap();
        assert!(after.starts_with("# kept\nworkflow: sdc\ncurrent_phase: 4\nodd: [1, 2]\n"));
        let map = object(after.as_bytes()).unwrap();
        assert_eq!(map["status"], "completed", "{after}");
        let camel = moved("currentPhase: 3_self_healing\n", 4, None, "x").unwrap();
        assert_eq!(camel, "currentPhase: \"4_quality_gate\"\nupdatedAt: x\n");
    }

    /// Between brackets, or one level deeper: it is written where it is read.
    #[test]
    fn a_state_moves_in_whatever_style_it_is_written() {
        for text in [
            "{workflow: sdc, current_story: '4.2', current_phase: 3, enter_at: sdc:implement}\n",
            "session_state:\n  workflow: sdc\n  current_story: '4.2'\n  current_phase: 3\n  \
             enter_at: sdc:implement\n",
        ] {
            let after = moved(text, 4, Some(Word::Completed), "2026-02-17T12:00:00Z").unwrap();
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

    /// The upstream's master orchestrator: its words, its epics, its way of writing.
    #[test]
    fn a_state_in_json_stays_what_its_own_program_reads() {
        let text = "{\n  \"schemaVersion\": 1,\n  \"storyId\": \"4.2\",\n  \"status\": \
                    \"in_progress\",\n  \"updatedAt\": \"x\",\n  \"currentEpic\": 4,\n  \
                    \"completedEpics\": [3],\n  \"pendingEpics\": [6],\n  \"epics\": {\"3\": \
                    {\"status\": \"completed\"}, \"4\": {\"status\": \"in_progress\", \
                    \"attempts\": 1}, \"6\": {\"status\": \"pending\"}},\n  \"odd\": [1, 2]\n}\n";
        let review = moved(text, 4, None, "y").unwrap();
        let map: Value = serde_json::from_str(&review).unwrap();
        assert_eq!((&map["currentEpic"], &map["updatedAt"]), (&6.into(), &"y".into()), "{review}");
        assert_eq!(map["epics"]["4"]["status"], "completed", "{review}");
        assert_eq!(map["epics"]["4"]["attempts"], 1, "{review}");
        assert_eq!(map["completedEpics"], serde_json::json!([3, 4]), "{review}");
        assert!(review.starts_with(&text[..text.find("\"status\"").unwrap()]), "{review}");
        assert!(review.ends_with("\"odd\": [1, 2]\n}\n"), "{review}");
        let over = moved(&review, 4, Some(Word::Completed), "z").unwrap();
        let map: Value = serde_json::from_str(&over).unwrap();
        assert_eq!(
            (&map["status"], &map["pendingEpics"]),
            (&"complete".into(), &serde_json::json!([]))
        );
        assert_eq!(map["completedEpics"], serde_json::json!([3, 4, 6]), "{over}");
        let compact = "{\"storyId\":\"4.2\",\"awaitingInput\":true}";
        let map: Value = serde_json::from_str(&decided(compact, "x").unwrap()).unwrap();
        assert_eq!(map["awaitingInput"], false);
    }

    /// Results count more than a pointer: they go with it.
    #[test]
    fn results_and_lists_say_what_the_pointer_says() {
        let text = "workflowId: sdc\ncurrentPhase: 2_development\nphaseResults:\n  \
                    1_validation:\n    status: completed\n  \
                    4_quality_gate:\n    status: completed\n";
        let after = moved(text, 4, None, "x").unwrap();
        let map = object(after.as_bytes()).unwrap();
        assert_eq!(map["currentPhase"], "4_quality_gate", "{after}");
        assert_eq!(map["phaseResults"]["3_self_healing"]["status"], "completed", "{after}");
        assert_eq!(map["phaseResults"]["4_quality_gate"]["status"], "pending", "{after}");
        let text = "workflow: sdc\ncurrent_phase: 2\ncurrent_agent: '@po'\nphases_completed: [1]\n\
                    last_action:\n  type: GO\n  timestamp: x\n";
        let after = moved(text, 3, None, "y").unwrap();
        let map = object(after.as_bytes()).unwrap();
        assert_eq!(map["current_agent"], "@dev", "{after}");
        assert_eq!(map["phases_completed"], serde_json::json!([1, 2]), "{after}");
        assert_eq!(map["last_action"]["type"], "PHASE_CHANGE", "{after}");
        assert_eq!(map["last_action"]["timestamp"], "y", "{after}");
    }
}
