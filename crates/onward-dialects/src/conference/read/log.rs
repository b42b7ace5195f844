//! `conference_events.jsonl`: one fact a line, in any of the spellings that are in use.
//!
//! Invariant: the bytes are kept as they came. A line that cannot be read, or that names a
//! researcher with a text that cannot be a name, is remembered by its number and changes nothing.

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::spelling::{self, Spelling, Spellings};
use crate::kit::{
    Broken,
    jsonl::{JsonLine, JsonLines},
    name::names_in,
    number,
};

/// A higher number is damage, not a count: what is told of a round tells of all before it, too, and
/// they are walked one by one.
const ROUNDS_MAX: u32 = 1_000;
pub(super) const ITERATIONS_MAX: u32 = 100_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventLog {
    bytes: Vec<u8>,
    pub lines: Vec<LogLine>,
    pub broken: Vec<Broken>,
    pub met: Spellings,
}

/// A line that could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// As it is written there.
    pub name: String,
    pub at: Option<Timestamp>,
    pub fact: Fact,
}

/// What a line says. A round that is not said is found from where the line stands; `redo` is where
/// a person entered, and what the log said about that place and after it counts no more.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    Started { researchers: Option<u32> },
    RoundStarted { round: Option<u32>, researchers: Vec<String> },
    Iteration { researcher: String, round: Option<u32>, trial: Trial },
    Stuck { researcher: String, round: Option<u32>, level: StuckLevel },
    Poster { round: Option<u32> },
    Review { round: Option<u32> },
    RoundCompleted { round: Option<u32>, best: Option<f64>, converged: bool },
    Converged { reason: Option<String> },
    Stalled,
    Failed,
    Completed,
    Resumed { redo: Option<(String, Option<u32>)> },
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
    /// No event tells of it; its row does, and the state it leaves stands.
    pub is_inferred: bool,
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
    /// A word that is none of these.
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
        let JsonLines { lines, broken } = JsonLines::read(bytes);
        let mut log = Self { bytes: bytes.to_owned(), broken, ..Self::default() };
        for JsonLine { number, object } in &lines {
            let payload = object.get("payload").and_then(Value::as_object);
            let mut fields = Fields { object, payload, met: &mut log.met, refused: Vec::new() };
            match fields.line() {
                Ok(line) => log.lines.push(line),
                // What was refused says it better.
                Err(_) if !fields.refused.is_empty() => {}
                Err(why) => fields.refused.push(why.to_owned()),
            }
            let refused = fields.refused.into_iter();
            log.broken.extend(refused.map(|why| Broken::new(*number, why)));
        }
        log.broken.sort_by_key(|broken| broken.line);
        log
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// One line: its payload, or the line itself where there is none.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    payload: Option<&'a Map<String, Value>>,
    met: &'a mut Spellings,
    /// What could not be taken from the line.
    refused: Vec<String>,
}

impl<'a> Fields<'a> {
    fn line(&mut self) -> Result<LogLine, &'static str> {
        let names = [("event", None), ("type", Some(Spelling::TypeForEvent))];
        let written = self.first(&names).ok_or("it has neither `event` nor `type`")?;
        let written = written.as_str().ok_or("the name of its event is not a text")?;
        let at = self.moment();
        let (name, round) = without_number(written);
        if round.is_some() {
            self.met.insert(Spelling::RoundNumberInName);
        }
        let fact = self.fact(&name, round, at)?;
        Ok(LogLine { name: written.to_owned(), at, fact })
    }

    /// The first of these keys that the line has, and the spelling that it is.
    fn first(&mut self, keys: &[(&str, Option<Spelling>)]) -> Option<&'a Value> {
        let found = keys.iter().find_map(|(key, it)| Some((self.object.get(*key)?, *it)));
        self.met.extend(found.and_then(|(_, spelling)| spelling));
        found.map(|(value, _)| value)
    }

    fn moment(&mut self) -> Option<Timestamp> {
        let (ts, time) = (Spelling::TsForTimestamp, Spelling::TimeForTimestamp);
        let value = self.first(&[("timestamp", None), ("ts", Some(ts)), ("time", Some(time))])?;
        spelling::at(number::moment_in_json(value), self.met)
    }

    fn fact(
        &mut self,
        name: &str,
        round_in_name: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Fact, &'static str> {
        let is_about_a_round = name.starts_with("round.") || name.starts_with("researcher.");
        let round = if is_about_a_round { self.whole("round").or(round_in_name) } else { None };
        if round.is_some_and(|round| round > ROUNDS_MAX) {
            return Err("no conference has that many rounds");
        }
        Ok(match name {
            "conference.started" => Fact::Started { researchers: self.whole("researchers") },
            "round.started" => Fact::RoundStarted { round, researchers: self.researchers() },
            "researcher.iteration" => {
                let researcher = self.researcher("an iteration names no researcher")?;
                let trial = self.trial(at);
                if trial.iteration.is_some_and(|iteration| iteration > ITERATIONS_MAX) {
                    return Err("no round has that many iterations");
                }
                Fact::Iteration { researcher, round, trial }
            }
            "researcher.stuck" => {
                let researcher = self.researcher("who is stuck is not said")?;
                Fact::Stuck { researcher, round, level: self.stuck_level() }
            }
            "round.poster_session" => Fact::Poster { round },
            "round.peer_review" => Fact::Review { round },
            "round.completed" => {
                let best = self.number("best_metric");
                let converged = self.get("converged").is_some_and(number::is_true);
                Fact::RoundCompleted { round, best, converged }
            }
            "conference.converged" => {
                let reason = self.get("reason").and_then(Value::as_str);
                Fact::Converged { reason: reason.map(str::to_owned) }
            }
            "conference.stalled" => Fact::Stalled,
            "conference.failed" => Fact::Failed,
            "conference.completed" => Fact::Completed,
            "conference.resumed" => {
                let is_asked = self.get("redo").is_some_and(number::is_true);
                let code = self.get("recovery_point").and_then(Value::as_str);
                let code = code.filter(|_| is_asked).map(str::to_owned);
                let round = self.whole("round").filter(|round| *round <= ROUNDS_MAX);
                Fact::Resumed { redo: code.map(|code| (code, round)) }
            }
            _ => Fact::Other,
        })
    }

    fn get(&mut self, key: &str) -> Option<&'a Value> {
        if let Some(value) = self.payload.and_then(|payload| payload.get(key)) {
            return Some(value);
        }
        let value = self.object.get(key)?;
        self.met.insert(Spelling::FieldsWithoutPayload);
        Some(value)
    }

    fn whole(&mut self, key: &str) -> Option<u32> {
        self.get(key).and_then(|value| spelling::whole_in(value, self.met))
    }

    fn number(&mut self, key: &str) -> Option<f64> {
        self.get(key).and_then(|value| spelling::number_in(value, self.met))
    }

    /// A text that cannot be a name is remembered instead.
    fn name(&mut self, text: &str) -> Option<String> {
        spelling::researcher(text).map_err(|why| self.refused.push(why.to_string())).ok()
    }

    fn researcher(&mut self, if_missing: &'static str) -> Result<String, &'static str> {
        let text = self.get("researcher").and_then(Value::as_str);
        text.and_then(|text| self.name(text)).ok_or(if_missing)
    }

    /// Of `["A:ready", …]`, or of objects, or of an object by letter.
    fn researchers(&mut self) -> Vec<String> {
        let states = self.get("researcher_states").or_else(|| self.get("researchers"));
        let names = states.map(|it| names_in(it, &["researcher", "id", "name"]));
        names.unwrap_or_default().into_iter().filter_map(|name| self.name(name)).collect()
    }

    fn trial(&mut self, at: Option<Timestamp>) -> Trial {
        let iteration = self.whole("iteration");
        let metric = self.number("metric_value").or_else(|| self.number("metric"));
        // Text such as `+6.0` is a number spelled out; `-` says that there is none.
        self.number("delta");
        let delta = self.get("delta").and_then(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        });
        let mut status = self.get("status");
        if status.is_none() {
            status = self.get("outcome");
            self.met.extend(status.map(|_| Spelling::OutcomeForStatus));
        }
        let status = status.and_then(Value::as_str).map_or(Status::Unknown, Status::parse);
        Trial { iteration, metric, delta, status, at, is_inferred: false }
    }

    fn stuck_level(&mut self) -> StuckLevel {
        let value = self.get("stuck_level").or_else(|| self.get("level"));
        let level = match value.and_then(Value::as_str) {
            Some(text) => {
                number::whole_and_rest(text.trim_start_matches(['L', 'l'])).map(|it| it.0)
            }
            None => value.and_then(number::whole_in_json),
        };
        level.map_or(StuckLevel::TimedOut, StuckLevel::Level)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> (LogLine, Spellings) {
        let log = EventLog::read(line.as_bytes());
        assert_eq!(log.broken, [], "{line}");
        (log.lines[0].clone(), log.met)
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
    fn a_line_that_says_nothing_is_broken_and_costs_itself_only() {
        let text = "{\"event\":\"a\"}\n\0\0\0\n{\"note\":1}\n\
                    {\"event\":\"researcher.iteration\"}\n{\"event\":\"b\"}";
        let log = EventLog::read(text.as_bytes());
        let names: Vec<&str> = log.lines.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let lines: Vec<usize> = log.broken.iter().map(|it| it.line).collect();
        assert_eq!(lines, [2, 3, 4]);
    }

    #[test]
    fn a_number_that_no_conference_reaches_breaks_its_line() {
        let text = "{\"event\":\"round.started\",\"payload\":{\"round\":1001}}\n\
                    {\"event\":\"round.4294967295.completed\"}\n\
                    {\"event\":\"researcher.iteration\",\"payload\":{\"researcher\":\"A\",\
                    \"round\":1,\"iteration\":100001}}\n\
                    {\"event\":\"round.started\",\"payload\":{\"round\":1000}}";
        let log = EventLog::read(text.as_bytes());
        let lines: Vec<usize> = log.broken.iter().map(|it| it.line).collect();
        assert_eq!(lines, [1, 2, 3]);
        assert_eq!(log.lines.len(), 1);
    }

    #[test]
    fn a_name_that_could_become_a_path_is_refused() {
        let text = "{\"event\":\"researcher.iteration\",\"payload\":{\"researcher\":\"../B\"}}\n\
                    {\"event\":\"round.started\",\"researcher_states\":[\"A:x\",\"..:x\"]}";
        let log = EventLog::read(text.as_bytes());
        let whys: Vec<(usize, &str)> =
            log.broken.iter().map(|it| (it.line, it.why.as_str())).collect();
        assert_eq!(whys, [(1, "a name holds a separator of paths"), (2, "a name holds `..`")]);
        let Fact::RoundStarted { researchers, .. } = &log.lines[0].fact else { panic!() };
        assert_eq!(researchers, &["A"], "the others of the line count");
    }
}
