//! The events of all actors, in the order in which they happened.
//!
//! Invariant: a line in any of the shapes that the system's agents write is read; a line that is
//! no JSON object costs itself only. An event without a time has that of the line before it, else
//! that in the name of its file, else that of the file; what has none is weighed by what it means.
//!
//! Clocks of others have seconds. An event of ours that falls into such a second names what it had
//! seen of them there (`order`): that came before it, and all the rest of that second after it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use onward_core::{digest::Digest, time::Timestamp};
use serde_json::Value;

use super::order::{Place, Span, in_order};
use crate::{
    File, Files,
    kit::{
        Broken, age,
        fields::{Field, Fields, Wanted},
        jsonl, number, status,
    },
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
        id: Arc<str>,
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
        id: Arc<str>,
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

/// One line. There may be millions of them: names are shared, and what few lines say lies beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Option<Timestamp>,
    /// Its own time, not one that was found elsewhere.
    pub timed: bool,
    pub actor: Arc<str>,
    pub kind: Kind,
    /// As it is spelled.
    pub name: Arc<str>,
    /// A person entered elsewhere, and our log says so with it.
    pub entered: bool,
    pub(super) span: Span,
    more: Option<Box<More>>,
}

/// What an event may say besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct More {
    /// The step of a run of ours that wrote it, and the run.
    pub step: Option<String>,
    pub run: Option<String>,
    /// The attempt of ours that was cut off, and that it counts.
    pub cut_off: Option<String>,
    /// Why, where it says so.
    pub reason: Option<String>,
    /// What counts no more since then, as it was: artifacts by path, each with its digest.
    pub void: BTreeMap<String, String>,
    /// Of ours: up to which line it had seen logs of others, where their clocks do not tell.
    pub seen: BTreeMap<String, usize>,
}

static NOTHING_MORE: More = More {
    step: None,
    run: None,
    cut_off: None,
    reason: None,
    void: BTreeMap::new(),
    seen: BTreeMap::new(),
};

impl Event {
    pub fn more(&self) -> &More {
        self.more.as_deref().unwrap_or(&NOTHING_MORE)
    }
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

/// What one file holds. A file that stays as it is is parsed once.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) events: Vec<Event>,
    broken: Vec<Broken>,
    /// Lines that name no event.
    nameless: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Log {
    files: Vec<Arc<Lines>>,
    order: Vec<Place>,
    /// The files of the events, as their places number them.
    pub(super) paths: Vec<String>,
    /// By file.
    pub broken: Vec<(String, Broken)>,
    /// Lines that name no event, by file.
    pub nameless: Vec<(String, usize)>,
}

impl Lines {
    /// `inner`: below the folder of all events.
    fn of(file: &File, inner: &str) -> Self {
        let mut lines = Self::default();
        let (folder, name) = inner.rsplit_once('/').unwrap_or(("", inner));
        let mut reader = Reader::new(folder);
        let mut before = None;
        let dated = stamp(name).or(file.modified.map(|at| (None, at)));
        jsonl::each_text(&file.bytes, |number, line| {
            let fields = line.and_then(|text| {
                let fields = Fields::of(text, WANTED);
                fields.ok_or_else(|| jsonl::object(text).err().unwrap_or("it is not JSON"))
            });
            let fields = match fields {
                Ok(fields) => fields,
                Err(why) => {
                    lines.broken.push(Broken::new(number, why));
                    return;
                }
            };
            let Some(mut event) = reader.event(&fields) else {
                lines.nameless.push(number);
                return;
            };
            before = event.at.or(before);
            event.at = before.or(dated.map(|(_, end)| end));
            event.span = match (before, dated) {
                (Some(at), _) => Span::at(at),
                (None, Some((from, end))) => Span { from, until: Some(end), ..Span::default() },
                (None, None) => Span::default(),
            };
            event.span.line = number;
            lines.events.push(event);
        });
        lines
    }
}

impl Log {
    /// Of all actors. The same files give the same log, and a file that was parsed before is not
    /// parsed again.
    pub fn of(files: &Files) -> Arc<Self> {
        files.worked_out(Self::made)
    }

    fn made(files: &Files) -> Self {
        let mut log = Self::default();
        for (path, held) in files.iter_held() {
            // The card asks for no other files there.
            let Some(inner) = path.strip_prefix("events/") else { continue };
            let lines = held.worked_out(|file| Lines::of(file, inner));
            let broken = lines.broken.iter().map(|it| (path.to_owned(), it.clone()));
            log.broken.extend(broken);
            log.nameless.extend(lines.nameless.iter().map(|line| (path.to_owned(), *line)));
            log.paths.push(path.to_owned());
            log.files.push(lines);
        }
        log.order = in_order(&log.files, &log.paths);
        log
    }

    /// In the order in which they happened.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> + ExactSizeIterator + Clone {
        self.places().map(|it| it.1)
    }

    /// The same, each with the number of its file.
    pub(super) fn places(
        &self,
    ) -> impl DoubleEndedIterator<Item = (usize, &Event)> + ExactSizeIterator + Clone {
        self.order.iter().map(|it| (it.file(), &self.files[it.file()].events[it.index()]))
    }

    pub fn latest(&self) -> Option<&Event> {
        self.events().next_back()
    }

    /// Artifacts that a person wants made again and that are still as they were. What comes of the
    /// next approval counts, whatever it is.
    pub fn void(&self, files: &Files) -> BTreeSet<String> {
        let is_phase = |it: &&Event| matches!(it.kind, Kind::Phase { .. });
        let Some(last) = self.events().rev().find(is_phase) else { return BTreeSet::new() };
        let is_same = |(path, digest): &(&String, &String)| {
            files.bytes(path).is_some_and(|it| Digest::of(it).to_string() == **digest)
        };
        last.more().void.iter().filter(is_same).map(|(path, _)| path.clone()).collect()
    }

    /// The events about tasks of the plan that counts: those of an earlier one are of other tasks.
    pub fn since_plan(&self) -> impl Iterator<Item = &Event> {
        let planned = self.events().rposition(|it| !it.more().void.is_empty());
        self.events().skip(planned.unwrap_or(0))
    }

    /// The newest moment that an event names itself.
    pub fn last(&self) -> Option<&Event> {
        self.events().filter(|it| it.timed).max_by_key(|it| it.at)
    }
}

/// The newest moment in the last lines of a log, for a listing.
pub(super) fn last_moment(bytes: &[u8]) -> Option<Timestamp> {
    const TAIL_BYTES_MAX: usize = 64 << 10;
    let tail = &bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..];
    let mut last = None;
    jsonl::each_text(tail, |_, line| {
        last = last.max(line.ok().and_then(|it| moment(&Fields::of(it, WANTED)?)));
    });
    last
}

/// What is looked for in a line.
const WANTED: &[Wanted] = &[
    ("event_type", &[]),
    ("type", &[]),
    ("event", &[]),
    ("task_id", &[]),
    ("task", &[]),
    ("timestamp", &[]),
    ("created_at", &[]),
    ("time", &[]),
    ("ts", &[]),
    ("at", &[]),
    ("actor", &[]),
    ("to_phase", &[]),
    ("trigger", &[]),
    ("result", &[]),
    ("reason", &[]),
    ("details", &["step", "run", CUT_OFF, "reason", "task_id", "to_phase", ENTERED, VOID, SEEN]),
];

/// Makes events of the lines of one file.
struct Reader<'f> {
    folder: &'f str,
    /// Each text that stands in many lines, once.
    texts: BTreeSet<Arc<str>>,
    meanings: BTreeMap<Arc<str>, Meaning>,
}

impl<'f> Reader<'f> {
    fn new(folder: &'f str) -> Self {
        Self { folder, texts: BTreeSet::new(), meanings: BTreeMap::new() }
    }

    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }

    fn event(&mut self, line: &Fields<'_>) -> Option<Event> {
        let name = ["event_type", "type", "event"].into_iter().find_map(|key| line.text(key))?;
        let name = self.shared(name);
        let at = moment(line);
        let details = line.get("details").and_then(Field::object);
        let detail = |key: &str| details?.text(key).map(str::to_owned);
        let folder = self.folder;
        let actor = if folder.is_empty() { line.text("actor").unwrap_or("") } else { folder };
        let actor = self.shared(actor);
        let is_ours = *actor == *ACTOR;
        let kind = self.kind(&name, line, details);
        let own = details.filter(|_| is_ours);
        let entered = own.is_some_and(|it| it.get(ENTERED).is_some());
        let more = More {
            step: detail("step"),
            run: detail("run"),
            cut_off: detail(CUT_OFF),
            reason: detail("reason").or_else(|| line.text("reason").map(str::to_owned)),
            void: own.filter(|_| entered).map(void).unwrap_or_default(),
            seen: own.map(seen).unwrap_or_default(),
        };
        let more = (more != NOTHING_MORE).then(|| Box::new(more));
        let (timed, span) = (at.is_some(), Span::default());
        Some(Event { at, timed, actor, kind, name, entered, span, more })
    }

    fn kind(&mut self, name: &Arc<str>, line: &Fields<'_>, details: Option<&Fields<'_>>) -> Kind {
        let meaning = self.meanings.get(name).copied();
        let meaning = meaning.unwrap_or_else(|| {
            let meaning = Meaning::of(name);
            self.meanings.insert(name.clone(), meaning);
            meaning
        });
        let (state, word) = match meaning {
            Meaning::Phase => {
                let inner = details.and_then(|it| it.get("to_phase"));
                let to = line.get("to_phase").or(inner).and_then(plain);
                let why = line.text("trigger").map(status::bare);
                let by_plan = why.is_some_and(|it| it.contains("approv") || it.contains("plan"));
                return Kind::Phase { to, by_plan };
            }
            Meaning::Ended(end) => return Kind::Ended(end),
            Meaning::Begun => return Kind::Begun,
            Meaning::Other => return Kind::Other,
            Meaning::Unjudged => (None, Word::Other),
            Meaning::Task(state, word) => (Some(state), word),
        };
        let inner = details.and_then(|it| it.get("task_id"));
        let named = line.get("task_id").or_else(|| line.get("task")).or(inner);
        let id = match named {
            Some(Field::Text(text)) => self.shared(text.trim()),
            Some(other) => plain(other).as_deref().unwrap_or_default().into(),
            None => return Kind::Other,
        };
        if id.is_empty() {
            return Kind::Other;
        }
        let Some(state) = state else { return Kind::Unjudged { id } };
        // A verdict that says no outweighs the name of its event.
        let says_no = || match line.get("result") {
            None => false,
            Some(Field::Text(text)) => !status::is_good(&Value::from(text.as_ref())),
            Some(Field::Object(_)) => true,
            Some(Field::Other(value)) => !value.is_null() && !status::is_good(value),
        };
        let state = if state == State::Done && says_no() { State::Failed } else { state };
        Kind::Task { id, state, word }
    }
}

fn seen(details: &Fields<'_>) -> BTreeMap<String, usize> {
    let named = details.get(SEEN).and_then(Field::other).and_then(Value::as_object);
    let line = |it: &Value| it.as_u64().and_then(|it| usize::try_from(it).ok());
    let named = named.into_iter().flatten();
    named.filter_map(|(path, it)| Some((path.clone(), line(it)?))).collect()
}

fn void(details: &Fields<'_>) -> BTreeMap<String, String> {
    let named = details.get(VOID).and_then(Field::other).and_then(Value::as_object);
    let named = named.into_iter().flatten();
    named.filter_map(|(path, digest)| Some((path.clone(), digest.as_str()?.to_owned()))).collect()
}

fn moment(line: &Fields<'_>) -> Option<Timestamp> {
    let mut keys = ["timestamp", "created_at", "time", "ts", "at"].into_iter();
    keys.find_map(|key| match line.get(key)? {
        Field::Text(text) => age::moment(text),
        Field::Other(value) => value.as_i64().and_then(seconds),
        Field::Object(_) => None,
    })
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

/// What the name of an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Phase,
    Ended(End),
    Begun,
    Task(State, Word),
    Unjudged,
    Other,
}

impl Meaning {
    fn of(name: &str) -> Self {
        let bare = status::bare(name);
        match bare.as_str() {
            "phasetransition" => return Self::Phase,
            "runcompleted" | "runcomplete" => return Self::Ended(End::Completed),
            "runfailed" => return Self::Ended(End::Failed),
            "runcancelled" | "runcanceled" => return Self::Ended(End::Cancelled),
            "runstarted" | "runresumed" | "sessionresumed" => return Self::Begun,
            _ => {}
        }
        let word = bare.strip_prefix("task").unwrap_or(&bare);
        if word == "verificationinconclusive" {
            return Self::Unjudged;
        }
        let known = WORDS.iter().find(|(spelled, ..)| *spelled == word);
        known.map_or(Self::Other, |(_, state, word)| Self::Task(*state, *word))
    }
}

/// Text, or a number as text.
fn plain(field: &Field<'_>) -> Option<String> {
    match field {
        Field::Text(text) => Some(text.clone().into_owned()),
        Field::Other(Value::Number(number)) => Some(number.to_string()),
        Field::Other(_) | Field::Object(_) => None,
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
    fn a_log_that_stays_as_it_is_is_parsed_once_and_what_is_new_counts() {
        let line = |kind: &str| format!("{{\"type\": \"{kind}\", \"task_id\": \"T001\"}}\n");
        let mut files: Files =
            [("events/executor/20260302-0952.jsonl", line("task-claimed"))].into_iter().collect();
        let first = Log::of(&files);
        assert!(Arc::ptr_eq(&first, &Log::of(&files.clone())));
        let new = "events/onward/20260302-1000.jsonl";
        files.insert(new, File { bytes: line("task-implemented").into_bytes(), modified: None });
        let second = Log::of(&files);
        assert!(Arc::ptr_eq(&first.files[0], &second.files[0]), "it is shared");
        let names: Vec<&str> = second.events().map(|it| &*it.name).collect();
        assert_eq!(names, ["task-claimed", "task-implemented"]);
    }

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
