//! `conference_events.jsonl`: one fact a line, in any of the spellings that are in use.
//!
//! Invariant: the bytes are kept as they came. A line that cannot be read is remembered by its
//! number and stands in nobody's way.

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::words::{self, Spelling, Spellings};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventLog {
    bytes: Vec<u8>,
    pub entries: Vec<Entry>,
    pub broken: Vec<Broken>,
    pub met: Spellings,
}

/// A line that could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Counted from 1.
    pub line: usize,
    /// As it is written there.
    pub name: String,
    pub at: Option<Timestamp>,
    pub fact: Fact,
}

/// A line that could not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub line: usize,
    pub why: &'static str,
}

/// What a line says. A round that is not said is found from where the line stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    Started {
        researchers: Option<u32>,
    },
    RoundStarted {
        round: Option<u32>,
        researchers: Vec<String>,
    },
    Iteration {
        researcher: String,
        round: Option<u32>,
        trial: Trial,
    },
    Stuck {
        researcher: String,
        round: Option<u32>,
        level: StuckLevel,
    },
    Poster {
        round: Option<u32>,
    },
    Review {
        round: Option<u32>,
    },
    RoundCompleted {
        round: Option<u32>,
        best: Option<f64>,
        converged: bool,
    },
    Converged {
        reason: Option<String>,
    },
    Stalled,
    Failed,
    Completed,
    Resumed {
        /// A person entered there, and what the log says about it and after it counts no more.
        redo: Option<(String, Option<u32>)>,
    },
    /// Kept, and ignored for the position.
    Other,
}

/// One iteration of one researcher.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Counted from 0 within the round, where it is said.
    pub iteration: Option<u32>,
    pub metric: Option<f64>,
    /// As written: signed text, or `-`.
    pub delta: Option<String>,
    pub status: Status,
    pub at: Option<Timestamp>,
}

/// What became of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Baseline,
    Kept,
    Reverted,
    Failed,
    /// The researcher's last one.
    Final,
    TargetReached,
    /// A word nobody knows.
    Unknown,
}

impl Status {
    pub fn parse(text: &str) -> Self {
        let word = text.trim().to_lowercase().replace([' ', '-'], "_");
        match word.as_str() {
            "baseline" => Self::Baseline,
            "kept" | "keep" | "improved" => Self::Kept,
            "reverted" | "revert" | "discarded" => Self::Reverted,
            "failed" | "timeout" | "crashed" => Self::Failed,
            "final" | "completed" | "stalled_l3" => Self::Final,
            "target_reached" => Self::TargetReached,
            _ => Self::Unknown,
        }
    }

    /// The word as the system writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Kept | Self::TargetReached | Self::Final => "kept",
            Self::Reverted => "reverted",
            Self::Failed => "failed",
            Self::Unknown => "-",
        }
    }

    /// Whether the state it leaves is one to stand on.
    pub const fn stands(self) -> bool {
        match self {
            Self::Baseline | Self::Kept | Self::Final | Self::TargetReached => true,
            Self::Reverted | Self::Failed | Self::Unknown => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StuckLevel {
    TimedOut,
    Level(u32),
}

impl EventLog {
    pub fn read(bytes: &[u8]) -> Self {
        let mut log = Self { bytes: bytes.to_owned(), ..Self::default() };
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = if index == 0 { without_mark(line) } else { line };
            if line.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0) {
                continue;
            }
            match entry(index + 1, line, &mut log.met) {
                Ok(entry) => log.entries.push(entry),
                Err(why) => log.broken.push(Broken { line: index + 1, why }),
            }
        }
        log
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Some editors begin a file with a byte-order mark.
fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

fn entry(line: usize, bytes: &[u8], met: &mut Spellings) -> Result<Entry, &'static str> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    let value: Value = serde_json::from_str(text).map_err(|_| "it is not JSON")?;
    let Value::Object(object) = value else { return Err("it is not a JSON object") };
    let fields = Fields::of(&object);
    let written = match (object.get("event"), object.get("type")) {
        (Some(name), _) => name,
        (None, Some(name)) => {
            met.insert(Spelling::TypeForEvent);
            name
        }
        (None, None) => return Err("it has neither `event` nor `type`"),
    };
    let written = written.as_str().ok_or("the name of its event is no text")?;
    let at = moment(&object, met);
    let (name, round) = without_number(written);
    if round.is_some() {
        met.insert(Spelling::RoundNumberInName);
    }
    let fact = fact(&name, round, at, fields, met)?;
    Ok(Entry { line, name: written.to_owned(), at, fact })
}

fn moment(object: &Map<String, Value>, met: &mut Spellings) -> Option<Timestamp> {
    if let Some(value) = object.get("timestamp") {
        return words::moment_in(value, met);
    }
    let others = [("ts", Spelling::TsForTimestamp), ("time", Spelling::TimeForTimestamp)];
    let (value, spelling) = others.iter().find_map(|(key, it)| Some((object.get(*key)?, *it)))?;
    met.insert(spelling);
    words::moment_in(value, met)
}

/// `round.2.completed` is `round.completed` of round 2.
fn without_number(name: &str) -> (String, Option<u32>) {
    let lower = name.trim().to_lowercase();
    let parts: Vec<&str> = lower.split('.').collect();
    if let ["round", number, rest] = parts.as_slice()
        && let Ok(round) = number.parse()
    {
        return (format!("round.{rest}"), Some(round));
    }
    (lower, None)
}

fn fact(
    name: &str,
    round_in_name: Option<u32>,
    at: Option<Timestamp>,
    fields: Fields<'_>,
    met: &mut Spellings,
) -> Result<Fact, &'static str> {
    let round = |met: &mut Spellings| {
        let said = fields.get("round", met).and_then(|value| words::whole_in(value, met));
        said.or(round_in_name)
    };
    Ok(match name {
        "conference.started" => {
            let count = fields.get("researchers", met);
            Fact::Started { researchers: count.and_then(|value| words::whole_in(value, met)) }
        }
        "round.started" => {
            let round = round(met);
            Fact::RoundStarted { round, researchers: researchers(fields, met) }
        }
        "researcher.iteration" => {
            let round = round(met);
            let researcher = researcher(fields, met).ok_or("an iteration names no researcher")?;
            Fact::Iteration { researcher, round, trial: trial(at, fields, met) }
        }
        "researcher.stuck" => {
            let round = round(met);
            let researcher = researcher(fields, met).ok_or("who is stuck is not said")?;
            Fact::Stuck { researcher, round, level: stuck_level(fields, met) }
        }
        "round.poster_session" => Fact::Poster { round: round(met) },
        "round.peer_review" => Fact::Review { round: round(met) },
        "round.completed" => {
            let round = round(met);
            let best = fields.get("best_metric", met);
            let best = best.and_then(|value| words::number_in(value, met));
            let converged = fields.get("converged", met).is_some_and(is_true);
            Fact::RoundCompleted { round, best, converged }
        }
        "conference.converged" => {
            let reason = fields.get("reason", met).and_then(Value::as_str);
            Fact::Converged { reason: reason.map(str::to_owned) }
        }
        "conference.stalled" => Fact::Stalled,
        "conference.failed" => Fact::Failed,
        "conference.completed" => Fact::Completed,
        "conference.resumed" => {
            let asked = fields.get("redo", met).is_some_and(is_true);
            let code = fields.get("recovery_point", met).and_then(Value::as_str);
            let code = code.filter(|_| asked).map(str::to_owned);
            Fact::Resumed { redo: code.map(|code| (code, round(met))) }
        }
        _ => Fact::Other,
    })
}

/// The payload, or the line itself where there is none.
#[derive(Clone, Copy)]
struct Fields<'a> {
    object: &'a Map<String, Value>,
    payload: Option<&'a Map<String, Value>>,
}

impl<'a> Fields<'a> {
    fn of(object: &'a Map<String, Value>) -> Self {
        Self { object, payload: object.get("payload").and_then(Value::as_object) }
    }

    fn get(self, key: &str, met: &mut Spellings) -> Option<&'a Value> {
        if let Some(value) = self.payload.and_then(|payload| payload.get(key)) {
            return Some(value);
        }
        let value = self.object.get(key)?;
        met.insert(Spelling::FieldsWithoutPayload);
        Some(value)
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::String(text) => matches!(text.trim(), "true" | "True" | "yes"),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn researcher(fields: Fields<'_>, met: &mut Spellings) -> Option<String> {
    words::researcher(fields.get("researcher", met)?.as_str()?)
}

/// Of `["A:ready", …]`, or of objects, or of an object by letter.
fn researchers(fields: Fields<'_>, met: &mut Spellings) -> Vec<String> {
    let states = fields.get("researcher_states", met);
    let states = states.or_else(|| fields.get("researchers", met));
    let name = |value: &Value| -> Option<String> {
        let text = match value {
            Value::Object(object) => {
                let mut names =
                    ["researcher", "id", "name"].iter().filter_map(|it| object.get(*it));
                names.next()?.as_str()?
            }
            Value::String(text) => text,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
        };
        words::researcher(text.split(':').next().unwrap_or(text))
    };
    match states {
        Some(Value::Array(states)) => states.iter().filter_map(name).collect(),
        Some(Value::Object(states)) => {
            states.keys().filter_map(|key| words::researcher(key)).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Vec::new()
        }
    }
}

fn trial(at: Option<Timestamp>, fields: Fields<'_>, met: &mut Spellings) -> Trial {
    let iteration = fields.get("iteration", met).and_then(|value| words::whole_in(value, met));
    let metric = fields.get("metric_value", met).or_else(|| fields.get("metric", met));
    let metric = metric.and_then(|value| words::number_in(value, met));
    let delta = fields.get("delta", met);
    // Text such as `+6.0` is a number spelled out; `-` says that there is none.
    let _ = delta.and_then(|value| words::number_in(value, met));
    let delta = delta.and_then(|value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let status = match fields.get("status", met) {
        Some(status) => Some(status),
        None => fields.get("outcome", met).inspect(|_| {
            met.insert(Spelling::OutcomeForStatus);
        }),
    };
    let status = status.and_then(Value::as_str).map_or(Status::Unknown, Status::parse);
    Trial { iteration, metric, delta, status, at }
}

fn stuck_level(fields: Fields<'_>, met: &mut Spellings) -> StuckLevel {
    let value = fields.get("stuck_level", met).or_else(|| fields.get("level", met));
    let text = value.and_then(Value::as_str).map(|text| text.trim_start_matches(['L', 'l']));
    let level = match text {
        Some(text) => words::whole_and_rest(text).map(|(level, _)| level),
        None => value.and_then(|value| words::whole_in(value, met)),
    };
    level.map_or(StuckLevel::TimedOut, StuckLevel::Level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> (Entry, Spellings) {
        let log = EventLog::read(line.as_bytes());
        assert_eq!(log.broken, [], "{line}");
        (log.entries[0].clone(), log.met)
    }

    #[test]
    fn the_reference_spelling_is_met_without_remark() {
        let line = r#"{"event":"researcher.iteration","timestamp":"2026-05-04T20:06:00Z",
            "payload":{"researcher":"A","round":1,"iteration":1,"metric_value":71.2,"delta":-8.8,
            "status":"kept"}}"#
            .replace('\n', "");
        let (entry, met) = one(&line);
        assert_eq!(met, Spellings::new());
        assert_eq!(entry.at, "2026-05-04T20:06:00Z".parse().ok());
        let Fact::Iteration { researcher, round, trial } = entry.fact else { panic!() };
        assert_eq!((researcher.as_str(), round), ("A", Some(1)));
        assert_eq!((trial.iteration, trial.metric), (Some(1), Some(71.2)));
        assert_eq!((trial.delta.as_deref(), trial.status), (Some("-8.8"), Status::Kept));
    }

    #[test]
    fn each_other_spelling_says_the_same_and_is_remembered() {
        let expected = Fact::RoundCompleted { round: Some(2), best: Some(9.5), converged: true };
        let line = |name: &str, fields: &str| {
            let rest = r#""best_metric":9.5,"converged":true}}"#;
            format!(r#"{{{name},"payload":{{{fields}{rest}"#)
        };
        let named = r#""event":"round.completed""#;
        let beside = line(named, r#""round":2,"#).replace("\"payload\":{", "").replace("}}", "}");
        for (line, spelling) in [
            (line(r#""type":"round.completed""#, r#""round":2,"#), Spelling::TypeForEvent),
            (line(r#""event":"round.2.completed""#, ""), Spelling::RoundNumberInName),
            (line(named, r#""round":"2","#), Spelling::NumberAsText),
            (beside, Spelling::FieldsWithoutPayload),
        ] {
            let (entry, met) = one(&line);
            assert_eq!((entry.fact, met), (expected.clone(), [spelling].into()), "{line}");
        }
        let at = "2026-05-04T20:06:00Z".parse().ok();
        for (key, spelling) in
            [("ts", Spelling::TsForTimestamp), ("time", Spelling::TimeForTimestamp)]
        {
            let line = format!(r#"{{"event":"x","{key}":"2026-05-04T20:06:00Z"}}"#);
            let (entry, met) = one(&line);
            assert_eq!((entry.at, met), (at, [spelling].into()));
        }
        let outcome =
            r#"{"event":"researcher.iteration","payload":{"researcher":"b","outcome":"final"}}"#;
        let (entry, met) = one(outcome);
        assert!(
            matches!(entry.fact, Fact::Iteration { trial, .. } if trial.status == Status::Final)
        );
        assert_eq!(met, [Spelling::OutcomeForStatus].into());
    }

    #[test]
    fn researchers_of_a_round_are_read_from_every_shape() {
        for states in [
            r#"["A:ready","B:ready"]"#,
            r#"[{"id":"A"},{"researcher":"B","state":"ready"}]"#,
            r#"{"A":"ready","B":"ready"}"#,
        ] {
            let payload = format!(r#"{{"round":1,"researcher_states":{states}}}"#);
            let line = format!(r#"{{"event":"round.started","payload":{payload}}}"#);
            let Fact::RoundStarted { researchers, .. } = one(&line).0.fact else { panic!() };
            assert_eq!(researchers, ["A", "B"], "{states}");
        }
    }

    #[test]
    fn a_stuck_level_is_a_number_or_a_timeout() {
        for (written, level) in [
            ("3", StuckLevel::Level(3)),
            ("\"2\"", StuckLevel::Level(2)),
            ("\"L3\"", StuckLevel::Level(3)),
            ("\"timeout\"", StuckLevel::TimedOut),
        ] {
            let payload = format!(r#"{{"researcher":"A","round":1,"stuck_level":{written}}}"#);
            let line = format!(r#"{{"event":"researcher.stuck","payload":{payload}}}"#);
            let Fact::Stuck { level: read, .. } = one(&line).0.fact else { panic!() };
            assert_eq!(read, level, "{written}");
        }
    }

    #[test]
    fn a_broken_line_costs_itself_only() {
        let text = "{\"event\":\"a\"}\n{\"event\":\n\n[1]\n\u{0}\u{0}\n{\"note\":1}\n\
                    {\"event\":\"researcher.iteration\"}\n{\"event\":\"b\"}";
        let log = EventLog::read(text.as_bytes());
        let names: Vec<&str> = log.entries.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let lines: Vec<usize> = log.broken.iter().map(|it| it.line).collect();
        assert_eq!(lines, [2, 4, 6, 7]);
        assert_eq!(EventLog::read(b"\xff{}\n").broken[0].why, "it is not UTF-8");
    }
}
