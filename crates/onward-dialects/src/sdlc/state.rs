//! A workflow state: what the orchestrator noted about one story or feature.
//!
//! Invariant: the pointer is what the file says; `completed` is what it gives as results. Which of
//! the two counts is not decided here.

use std::collections::BTreeSet;

use onward_core::{event::Mode, time::Timestamp};
use serde_json::{Map, Value};

use super::{
    qa::Verdict,
    status::{Says, words},
};
use crate::kit::json::{Object, Oddities};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Sdc,
    Spec,
    QaLoop,
    Epic,
}

impl Flow {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sdc => "sdc",
            Self::Spec => "spec",
            Self::QaLoop => "qa-loop",
            Self::Epic => "epic",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Sdc => "Story Development Cycle",
            Self::Spec => "Spec Pipeline",
            Self::QaLoop => "QA Loop",
            Self::Epic => "Epic Execution",
        }
    }

    fn of(text: &str) -> Self {
        let words = words(text).concat();
        match () {
            () if words.contains("spec") => Self::Spec,
            () if words.contains("qaloop") || words == "qa" => Self::QaLoop,
            () if words.contains("epic") => Self::Epic,
            () => Self::Sdc,
        }
    }
}

/// The number of the checkpoint, behind the four phases of a story.
pub const CHECKPOINT: u32 = 5;

/// The key under which a person's own point of entry is noted.
pub const ENTER: &str = "enter_at";

#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub flow: Flow,
    pub story: Option<String>,
    pub feature: Option<String>,
    pub epic: Option<String>,
    /// The phase, in the numbers of its workflow.
    pub pointer: Option<u32>,
    pub pointer_word: Option<String>,
    /// Phases with a result.
    pub completed: BTreeSet<u32>,
    pub says: Option<Says>,
    pub word: Option<String>,
    /// A checkpoint waits for its answer.
    pub awaits: bool,
    pub verdict: Option<Verdict>,
    pub mode: Option<String>,
    /// The phase of a story that a person enters at.
    pub enter: Option<u32>,
    pub started_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    /// Files that it says were made.
    pub artifacts: Vec<String>,
    /// Templates and configuration that it names.
    pub needs: Vec<String>,
}

/// When a run began, in every spelling.
pub(super) const STARTED: [&str; 8] = [
    "started_at",
    "startedAt",
    "start_time",
    "startTime",
    "begun_at",
    "begunAt",
    "created_at",
    "createdAt",
];

/// Maps may hold the state one level deeper.
const WRAPPERS: [&str; 3] = ["session_state", "workflow_state", "state"];

/// The key below which this map holds its state, if not itself.
pub fn wrapper(map: &Map<String, Value>) -> Option<&'static str> {
    WRAPPERS.into_iter().find(|key| map.get(*key).is_some_and(Value::is_object))
}

impl State {
    /// `None` when the map holds no workflow: an empty session, or something else.
    pub fn read(map: &Map<String, Value>, path: &str, odd: &Oddities) -> Option<Self> {
        let inner = wrapper(map).and_then(|key| map.get(key)?.as_object());
        let map = inner.unwrap_or(map);
        let it = Object { map, path, odd };
        let inner = ["context", "progress", "last_action"].map(|key| it.object(key));
        let maps: Vec<Object<'_>> = [it].into_iter().chain(inner.into_iter().flatten()).collect();
        let named = |keys: &[&'static str]| {
            let mut found = maps.iter().flat_map(|it| keys.iter().map(move |key| (it, *key)));
            found.find_map(|(it, key)| Some((key, text(it, key)?)))
        };
        let text = |keys: &[&'static str]| named(keys).map(|it| it.1);
        let moment = |keys: &[&str]| {
            let mut found = maps.iter().flat_map(|it| keys.iter().map(|key| it.moment_or_day(key)));
            found.find_map(|at| at)
        };
        let workflow = text(&["workflow", "workflow_type", "workflowId", "workflow_id"]);
        let story = text(&["current_story", "currentStory", "storyId", "story_id", "story"]);
        let feature = text(&["feature", "feature_name", "featureId", "feature_id"]);
        if workflow.is_none() && story.is_none() && feature.is_none() {
            return None;
        }
        let flow = Flow::of(workflow.as_deref().unwrap_or("sdc"));
        // Without its waves an epic is the story that it is at.
        let flow = if flow == Flow::Epic { Flow::Sdc } else { flow };
        if flow == Flow::Sdc && story.is_none() {
            return None;
        }
        // Not needed here; a program that goes on with the file trips over another type.
        for key in ["executor", "qualityGate", "quality_gate"] {
            it.text(key);
        }
        for key in ["attemptCount", "attempt_count"] {
            it.count(key);
        }
        let pointer_word = text(&["current_phase", "currentPhase", "phase"]);
        let word = text(&["status"]);
        let mut awaits = awaits(&Value::Object(map.clone()));
        let pointer = pointer_word.as_deref().and_then(|it| phase(flow, it));
        awaits |= pointer == Some(CHECKPOINT) && !has_decision(map);
        Some(Self {
            flow,
            story,
            feature,
            epic: text(&["epic_id", "epicId"]),
            pointer,
            pointer_word,
            completed: completed(flow, &it),
            says: named(&["story_status", "storyStatus"]).and_then(|(key, word)| {
                Says::of(&word).or_else(|| it.unknown(key, &word, "status of a story"))
            }),
            word,
            awaits,
            verdict: named(&["last_verdict", "lastVerdict", "verdict"]).and_then(|(key, word)| {
                Verdict::of(&word).or_else(|| it.unknown(key, &word, "verdict"))
            }),
            mode: named(&["mode", "execution_mode", "executionMode"]).and_then(|(key, word)| {
                let is_known = mode(&word).is_some();
                if is_known { Some(word) } else { it.unknown(key, &word, "mode") }
            }),
            enter: text(&[ENTER])
                .and_then(|it| phase(flow, it.strip_prefix("sdc:")?))
                .filter(|_| flow == Flow::Sdc),
            started_at: moment(&STARTED),
            updated_at: moment(&[
                "updated_at",
                "updatedAt",
                "last_updated",
                "lastUpdated",
                "interrupted_at",
                "paused_at",
                "aborted_at",
                "timestamp",
            ]),
            artifacts: paths(&it, &["artifacts", "outputs", "files"]),
            needs: paths(&it, &["templates", "template", "config", "config_files"]),
        })
    }

    /// What it says about its story: by a word of its own, or by its phase.
    pub fn says(&self) -> Option<Says> {
        let by_phase = |pointer| match (self.flow, pointer) {
            (Flow::Sdc, 1 | 2) => Some(Says::Pending),
            (Flow::Sdc, 3) => Some(Says::InProgress),
            (Flow::Sdc, 4) | (Flow::QaLoop, _) => Some(Says::InReview),
            (Flow::Sdc | Flow::Spec | Flow::Epic, _) => None,
        };
        self.says.or_else(|| self.pointer.and_then(by_phase))
    }

    pub fn is_aborted(&self) -> bool {
        matches!(self.word().as_str(), "aborted" | "cancelled" | "abort")
    }

    pub fn is_over(&self) -> bool {
        matches!(self.word().as_str(), "completed" | "complete" | "done")
    }

    fn word(&self) -> String {
        self.word.as_deref().map(|it| words(it).concat()).unwrap_or_default()
    }

    /// The last phase that has a result, with all before it. A cycle that begins with the
    /// validation gives no result of the creation.
    pub fn reached(&self) -> u32 {
        let has = |it: &u32| self.completed.contains(it) || *it == 1 && self.completed.contains(&2);
        (1..=CHECKPOINT).take_while(has).last().unwrap_or(0)
    }
}

/// Text, a number, or an object with an id. A workflow may be described instead of named.
fn text(it: &Object<'_>, key: &str) -> Option<String> {
    let value = it.get(key)?;
    let is_fine = match value {
        Value::Object(_) => key == "workflow",
        Value::Null | Value::Number(_) | Value::String(_) => true,
        Value::Bool(_) | Value::Array(_) => false,
    };
    let found = plain(value);
    if found.is_none() && !is_fine {
        return it.odd(key, value, "text");
    }
    found
}

/// The mode that the original was started in; its names for going on unasked are two.
pub fn mode(word: &str) -> Option<Mode> {
    match words(word).concat().as_str() {
        "autopilot" | "yolo" => Some(Mode::Autopilot),
        "interactive" => Some(Mode::Interactive),
        "preflight" => Some(Mode::Preflight),
        _ => None,
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(map) => ["id", "name"].iter().find_map(|key| plain(map.get(*key)?)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

/// The number of a phase: by its name, or else by the number it gives.
pub fn phase(flow: Flow, text: &str) -> Option<u32> {
    let joined = words(text).concat();
    let name = joined.trim_start_matches(|c: char| c.is_ascii_digit());
    let named: &[(&str, u32)] = match flow {
        Flow::Sdc | Flow::Epic | Flow::QaLoop => &[
            ("creat", 1),
            ("draft", 1),
            ("valid", 2),
            ("implement", 3),
            ("develop", 3),
            ("selfheal", 3),
            ("qa", 4),
            ("qualitygate", 4),
            ("review", 4),
            ("push", 4),
            ("checkpoint", CHECKPOINT),
        ],
        Flow::Spec => {
            &[("gather", 1), ("assess", 2), ("research", 3), ("write", 4), ("critique", 5)]
        }
    };
    let by_name =
        named.iter().find(|(known, _)| name.starts_with(known)).map(|(_, number)| *number);
    let digits: String = joined.chars().take_while(char::is_ascii_digit).collect();
    let number = digits.parse().ok().filter(|it| name.is_empty() && (1..=CHECKPOINT).contains(it));
    by_name.or(number)
}

/// Phases that the file gives results for: `phaseResults`, `phases_completed`, `steps`.
fn completed(flow: Flow, it: &Object<'_>) -> BTreeSet<u32> {
    let mut open = BTreeSet::new();
    let mut done = BTreeSet::new();
    let is_done = |value: &Value| match value {
        Value::Object(entry) => {
            let word = entry.get("status").and_then(Value::as_str).unwrap_or("completed");
            matches!(
                words(word).concat().as_str(),
                "completed" | "complete" | "done" | "skipped" | "passed"
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            true
        }
    };
    let mut note = |number: u32, is_done: bool| {
        if is_done {
            done.insert(number)
        } else {
            open.insert(number)
        };
    };
    for key in ["phaseResults", "phase_results", "phases"] {
        // A list of phases is read below.
        let is_list = it.get(key).is_some_and(Value::is_array);
        let results = if is_list { None } else { it.object(key) };
        for (name, value) in results.into_iter().flat_map(|it| it.map) {
            let is_result = key != "phases";
            if let Some(it) = results.filter(|_| is_result) {
                look_at(&it, name, value);
            }
            match phase(flow, name) {
                Some(number) => note(number, is_done(value)),
                None if is_result => {
                    it.unknown::<()>(key, name, "phase");
                }
                None => {}
            }
        }
    }
    for key in ["phases_completed", "phasesCompleted", "completed_phases", "steps"] {
        for value in it.list(key) {
            let inner = value.as_object();
            let of = |key: &&str| plain(inner?.get(*key)?);
            let name =
                plain(value).or_else(|| ["phase", "id", "name", "number"].iter().find_map(of));
            if let Some(number) = name.and_then(|it| phase(flow, &it)) {
                note(number, is_done(value));
            }
        }
    }
    // Several steps may be one phase: it is done when all of them are.
    done.difference(&open).copied().collect()
}

/// Notes what in the result of a phase has another type than it should have.
fn look_at(results: &Object<'_>, name: &str, value: &Value) {
    let map = match value {
        Value::Object(map) => map,
        Value::Null | Value::String(_) => return,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            results.odd::<()>(name, value, "an object");
            return;
        }
    };
    let it = Object { map, ..*results };
    for key in ["status", "decision", "agent", "executor"] {
        it.text(key);
    }
    for key in ["awaiting_input", "awaitingInput"] {
        it.flag(key);
    }
    for key in ["startedAt", "started_at", "completedAt", "completed_at", "timestamp"] {
        it.moment_or_day(key);
    }
    for key in ["attempts", "attemptCount", "attempt_count"] {
        it.count(key);
    }
}

/// `awaiting_input: true`, at any depth.
pub fn awaits(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let is_it = matches!(key.as_str(), "awaiting_input" | "awaitingInput");
            is_it && value == &Value::Bool(true) || awaits(value)
        }),
        Value::Array(list) => list.iter().any(awaits),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn has_decision(map: &Map<String, Value>) -> bool {
    map.iter().any(|(key, value)| match value {
        Value::Object(inner) => has_decision(inner),
        Value::String(_) => key == "decision",
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    })
}

/// Paths of files below these keys, of lists or of objects with a `path`.
fn paths(it: &Object<'_>, keys: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in keys.iter().filter_map(|key| Some((key, it.get(key)?))) {
        match value {
            Value::Bool(_) | Value::Number(_) => {
                it.odd::<()>(key, value, "a list of paths");
            }
            Value::Array(list) => {
                for entry in list {
                    if matches!(entry, Value::Bool(_) | Value::Number(_) | Value::Array(_)) {
                        it.odd::<()>(key, entry, "a list of paths");
                    }
                }
            }
            Value::Null | Value::String(_) | Value::Object(_) => {}
        }
        gather(value, &mut all);
    }
    all
}

fn gather(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) if is_path(text) => all.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|it| gather(it, all)),
        Value::Object(map) => map.values().for_each(|it| gather(it, all)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `docs/prd.md`, `prd.md`; no sentence, no version and no moment.
fn is_path(text: &str) -> bool {
    let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_file = !ending.is_empty() && ending.bytes().all(|it| it.is_ascii_alphabetic());
    !text.contains(' ') && text.contains('.') && (text.contains('/') || is_file)
}
