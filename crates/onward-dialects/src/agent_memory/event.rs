//! The events of all actors, in the order in which they happened.
//!
//! Invariant: a line in any of the shapes that the system's agents write is read; a line that is
//! no JSON object costs itself only. An event without a time has that of the line before it, else
//! that in the name of its file, else that of the file; what has none is weighed by what it means.
//!
//! Clocks of others have seconds. An event of ours that falls into such a second names what it had
//! seen of them there (`order`): that came before it, and all the rest of that second after it.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{digest::Digest, time::Timestamp};
use serde_json::{Map, Value};

use super::order::{Span, in_order};
use crate::{
    Files,
    kit::{Broken, age, jsonl, number, status},
};

/// What a task's event says of it. Ordered: of two at one time, the greater counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Pending,
    Running,
    Implemented,
    Done,
    Failed,
    Blocked,
}

/// What the end of a run says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    Failed,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Task {
        id: String,
        state: State,
        word: Word,
    },
    /// The phase that it went to, as it is numbered or named there, and whether the plan or the
    /// user's yes to it is why.
    Phase {
        to: Option<String>,
        by_plan: bool,
    },
    /// A verifier was asked about this task, and its answer had no verdict on it.
    Unjudged {
        id: String,
    },
    Ended(End),
    /// The run was begun or taken up again: what ended it before counts no more.
    Begun,
    Other,
}

/// Words for one state that differ in what they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Claimed,
    Started,
    Unblocked,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Option<Timestamp>,
    /// Its own time, not one that was found elsewhere.
    pub timed: bool,
    pub actor: String,
    pub kind: Kind,
    /// As it is spelled.
    pub name: String,
    /// The step of a run of ours that wrote it, and the run.
    pub step: Option<String>,
    pub run: Option<String>,
    /// The attempt of ours that was cut off, and that it counts.
    pub cut_off: Option<String>,
    /// Why, where it says so.
    pub reason: Option<String>,
    /// A person entered elsewhere, and our log says so with it.
    pub entered: bool,
    /// What counts no more since then, as it was: artifacts by path, each with its digest.
    pub void: BTreeMap<String, String>,
    /// Of ours: up to which line it had seen logs of others, where their clocks do not tell.
    pub seen: BTreeMap<String, usize>,
    pub(super) span: Span,
}

/// The actor that onward writes as, and the folder of its events.
pub(super) const ACTOR: &str = "onward";
/// Under this key the details of an event name the place at which a person enters.
pub(super) const ENTERED: &str = "entered";
/// And under this one, what was made before and counts no more.
pub(super) const VOID: &str = "void";
/// Under this one, the attempt of ours that was cut off.
pub(super) const CUT_OFF: &str = "cut_off";
/// And under this one, logs of others, each with the last line that was there.
pub(super) const SEEN: &str = "seen";

#[derive(Clone, Debug, Default)]
pub struct Log {
    pub events: Vec<Event>,
    /// The files of the events, as their spans number them.
    pub(super) paths: Vec<String>,
    /// By file.
    pub broken: Vec<(String, Broken)>,
    /// Lines that name no event, by file.
    pub nameless: Vec<(String, usize)>,
}

impl Log {
    pub fn of(files: &Files) -> Self {
        let mut log = Self::default();
        let mut events = Vec::new();
        for (path, file) in files.iter() {
            // The card asks for no other files there.
            let Some(inner) = path.strip_prefix("events/") else { continue };
            let (folder, name) = inner.rsplit_once('/').unwrap_or(("", inner));
            let index = log.paths.len();
            log.paths.push(path.to_owned());
            let mut before = None;
            let dated = stamp(name).or(file.modified.map(|at| (None, at)));
            jsonl::each(&file.bytes, |number, line| {
                let object = match line {
                    Ok(object) => object,
                    Err(why) => {
                        log.broken.push((path.to_owned(), Broken::new(number, why)));
                        return;
                    }
                };
                let Some(mut event) = event(&object, folder) else {
                    log.nameless.push((path.to_owned(), number));
                    return;
                };
                before = event.at.or(before);
                event.at = before.or(dated.map(|(_, end)| end));
                event.span = match (before, dated) {
                    (Some(at), _) => Span::at(at),
                    (None, Some((from, end))) => Span { from, until: Some(end), ..Span::default() },
                    (None, None) => Span::default(),
                };
                (event.span.file, event.span.line) = (index, number);
                events.push(event);
            });
        }
        log.events = in_order(events, &log.paths);
        log
    }

    /// Artifacts that a person wants made again and that are still as they were. What comes of the
    /// next approval counts, whatever it is.
    pub fn void(&self, files: &Files) -> BTreeSet<String> {
        let is_phase = |it: &&Event| matches!(it.kind, Kind::Phase { .. });
        let Some(last) = self.events.iter().rev().find(is_phase) else { return BTreeSet::new() };
        let is_same = |(path, digest): &(&String, &String)| {
            files.bytes(path).is_some_and(|it| Digest::of(it).to_string() == **digest)
        };
        last.void.iter().filter(is_same).map(|(path, _)| path.clone()).collect()
    }

    /// The events about tasks of the plan that counts: those of an earlier one are of other tasks.
    pub fn since_plan(&self) -> &[Event] {
        let planned = self.events.iter().rposition(|it| !it.void.is_empty());
        planned.map_or(&self.events, |place| &self.events[place..])
    }

    /// The newest moment that an event names itself.
    pub fn last(&self) -> Option<&Event> {
        self.events.iter().filter(|it| it.timed).max_by_key(|it| it.at)
    }
}

/// The newest moment in the last lines of a log, for a listing.
pub(super) fn last_moment(bytes: &[u8]) -> Option<Timestamp> {
    const TAIL_BYTES_MAX: usize = 64 << 10;
    let tail = &bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..];
    let mut last = None;
    jsonl::each(tail, |_, line| {
        if let Ok(object) = line {
            last = last.max(moment(&object));
        }
    });
    last
}

fn event(object: &Map<String, Value>, folder: &str) -> Option<Event> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let name = ["event_type", "type", "event"].into_iter().find_map(text)?;
    let at = moment(object);
    let details = object.get("details");
    let detail = |key: &str| details?.get(key)?.as_str().map(str::to_owned);
    let (step, run, cut_off) = (detail("step"), detail("run"), detail(CUT_OFF));
    let actor = if folder.is_empty() { text("actor").unwrap_or("") } else { folder };
    let (actor, name) = (actor.to_owned(), name.to_owned());
    let kind = kind(&name, object);
    let entered = actor == ACTOR && details.is_some_and(|it| it.get(ENTERED).is_some());
    let void = details.filter(|_| entered).map(void).unwrap_or_default();
    let seen = details.filter(|_| actor == ACTOR).map(seen).unwrap_or_default();
    let reason = detail("reason").or_else(|| text("reason").map(str::to_owned));
    let (timed, span) = (at.is_some(), Span::default());
    Some(Event {
        at,
        timed,
        actor,
        kind,
        name,
        step,
        run,
        cut_off,
        reason,
        entered,
        void,
        seen,
        span,
    })
}

fn seen(details: &Value) -> BTreeMap<String, usize> {
    let named = details.get(SEEN).and_then(Value::as_object).into_iter().flatten();
    let line = |it: &Value| it.as_u64().and_then(|it| usize::try_from(it).ok());
    named.filter_map(|(path, it)| Some((path.clone(), line(it)?))).collect()
}

fn void(details: &Value) -> BTreeMap<String, String> {
    let named = details.get(VOID).and_then(Value::as_object).into_iter().flatten();
    named.filter_map(|(path, digest)| Some((path.clone(), digest.as_str()?.to_owned()))).collect()
}

fn moment(object: &Map<String, Value>) -> Option<Timestamp> {
    let mut keys = ["timestamp", "created_at", "time", "ts", "at"].into_iter();
    keys.find_map(|key| number_or_text(object.get(key)?))
}

fn number_or_text(value: &Value) -> Option<Timestamp> {
    match value.as_str() {
        Some(text) => age::moment(text),
        None => value.as_i64().and_then(seconds),
    }
}

/// Seconds or milliseconds since 1970.
fn seconds(number: i64) -> Option<Timestamp> {
    const MILLIS_FROM: i64 = 100_000_000_000;
    let micros = if number < MILLIS_FROM { 1_000_000 } else { 1000 };
    (number > 0).then(|| number.checked_mul(micros).map(Timestamp::from_micros)).flatten()
}

/// Every spelling of a task's event, without `task`, in letters only.
#[rustfmt::skip]
const WORDS: [(&str, State, Word); 15] = [
    ("created",            State::Pending,     Word::Other),
    ("ready",              State::Pending,     Word::Other),
    ("unblocked",          State::Pending,     Word::Unblocked),
    ("claimed",            State::Running,     Word::Claimed),
    ("started",            State::Running,     Word::Started),
    ("implemented",        State::Implemented, Word::Other),
    ("verified",           State::Done,        Word::Other),
    ("completed",          State::Done,        Word::Other),
    ("complete",           State::Done,        Word::Other),
    ("failed",             State::Failed,      Word::Other),
    ("verificationfailed", State::Failed,      Word::Other),
    ("blocked",            State::Blocked,     Word::Other),
    ("verification",       State::Done,        Word::Other),
    ("verificationpassed", State::Done,        Word::Other),
    ("verificationcompleted", State::Done,     Word::Other),
];

fn kind(name: &str, object: &Map<String, Value>) -> Kind {
    let bare = status::bare(name);
    let of_run = match bare.as_str() {
        "phasetransition" => {
            let inner = object.get("details").and_then(|it| it.get("to_phase"));
            let to = object.get("to_phase").or(inner).and_then(plain);
            let why = object.get("trigger").and_then(Value::as_str).map(status::bare);
            let by_plan = why.is_some_and(|it| it.contains("approv") || it.contains("plan"));
            return Kind::Phase { to, by_plan };
        }
        "runcompleted" | "runcomplete" => Some(Kind::Ended(End::Completed)),
        "runfailed" => Some(Kind::Ended(End::Failed)),
        "runcancelled" | "runcanceled" => Some(Kind::Ended(End::Cancelled)),
        "runstarted" | "runresumed" | "sessionresumed" => Some(Kind::Begun),
        _ => None,
    };
    if let Some(kind) = of_run {
        return kind;
    }
    let inner = object.get("details").and_then(|it| it.get("task_id"));
    let id = object.get("task_id").or_else(|| object.get("task")).or(inner).and_then(plain);
    let Some(id) = id.filter(|it| !it.trim().is_empty()) else { return Kind::Other };
    let word = bare.strip_prefix("task").unwrap_or(&bare);
    if word == "verificationinconclusive" {
        return Kind::Unjudged { id: id.trim().to_owned() };
    }
    let known = WORDS.iter().find(|(spelled, ..)| *spelled == word);
    let Some((_, state, word)) = known else { return Kind::Other };
    // A verdict that says no outweighs the name of its event.
    let says_no = object.get("result").is_some_and(|it| !it.is_null() && !status::is_good(it));
    let state = if *state == State::Done && says_no { State::Failed } else { *state };
    Kind::Task { id: id.trim().to_owned(), state, word: *word }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The moments between which a file was begun by its name: `20260302-0952.jsonl`,
/// `20260302-095230-T002.jsonl`. A minute is meant to its end: what was written then is not older
/// than what has the minute's first second.
fn stamp(name: &str) -> Option<(Option<Timestamp>, Timestamp)> {
    let (date, rest) = name.split_at_checked(8)?;
    let clock: String = rest.strip_prefix('-')?.chars().take_while(char::is_ascii_digit).collect();
    let (first, last) = match clock.len() {
        4 => (format!("{clock}00"), format!("{clock}59")),
        6 => (clock.clone(), clock),
        _ => return None,
    };
    if !date.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let day = [&date[..4], &date[4..6], &date[6..]].join("-");
    let moment = |clock: &str, part: &str| {
        let time = [&clock[..2], &clock[2..4], &clock[4..]].join(":");
        age::moment(&format!("{day}T{time}{part}Z"))
    };
    Some((moment(&first, ""), moment(&last, ".999999")?))
}

/// A phase as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseWord {
    /// By its name; the number is that of the first version.
    Named(u32),
    Numbered(u32),
}

/// `2`, `"2"`, `phase_2`, or a name such as `execution`.
pub(super) fn phase_word(text: &str) -> Option<PhaseWord> {
    const NAMES: [(&str, u32); 8] = [
        ("intake", 0),
        ("routing", 1),
        ("planning", 1),
        ("approval", 1),
        ("execution", 2),
        ("verification", 2),
        ("cleanup", 3),
        ("consolidation", 4),
    ];
    let bare = status::bare(text);
    let rest = bare.strip_prefix("phase").unwrap_or(&bare);
    if let Some((_, number)) = NAMES.iter().find(|(name, _)| rest.contains(name)) {
        return Some(PhaseWord::Named(*number));
    }
    let (number, rest) = number::whole_and_rest(rest)?;
    rest.is_empty().then_some(PhaseWord::Numbered(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_tells_the_moment_and_other_names_do_not() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let span = |from: &str, end: &str| Some((Some(at(from)), at(end)));
        let minute = span("2026-03-02T09:52:00Z", "2026-03-02T09:52:59.999999Z");
        assert_eq!(stamp("20260302-0952.jsonl"), minute);
        let second = span("2026-03-02T09:52:30Z", "2026-03-02T09:52:30.999999Z");
        assert_eq!(stamp("20260302-095230-T002.jsonl"), second);
        for name in ["events.jsonl", "20260302.jsonl", "20269902-0952.jsonl", "2026030é-0952", "é"]
        {
            assert_eq!(stamp(name), None, "{name}");
        }
        assert_eq!(phase_word("phase_4_execution"), Some(PhaseWord::Named(2)));
        assert_eq!(phase_word("phase_2"), Some(PhaseWord::Numbered(2)));
        assert_eq!(phase_word("EXECUTION"), Some(PhaseWord::Named(2)));
        assert_eq!(phase_word("B2"), None);
    }
}
