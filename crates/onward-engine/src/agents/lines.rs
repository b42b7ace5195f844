//! Onward's own protocol for agent scripts: one JSON object a line on standard output.
//!
//! `docs/agents.md` describes it for users. A line that is no JSON object is the agent talking, and
//! a field that is not as described is passed over.

use onward_core::{
    evidence::{Cause, Usd},
    said::{Closed, Counting, Limit, LimitKind, Said, Spent},
    time::Timestamp,
};
use serde_json::{Map, Value};

use super::{Adapter, Card, Cost, Limits, Sessions, Stream, events};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Lines;

const CARD: Card = Card {
    sessions: Sessions::Told,
    cost: Cost::Usd,
    limits: Limits::Moment,
    ..Card::configured("lines")
};

impl Adapter for Lines {
    fn card(&self) -> &Card {
        &CARD
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        if from == Stream::Err {
            return;
        }
        for line in lines.split(|byte| *byte == b'\n') {
            if let Some(Value::Object(fields)) = events::parsed(line) {
                take(&fields, said);
            }
        }
    }

    fn tell(&self, line: &str) -> Vec<String> {
        let Ok(Value::Object(fields)) = serde_json::from_str(line) else {
            return vec![line.to_owned()];
        };
        let word = |name: &str| fields.get(name).and_then(Value::as_str);
        let error = word("error").map(|it| format!("(ended badly: {it})"));
        let denied = word("denied").map(|it| format!("(denied: {it})"));
        word("answer").map(str::to_owned).into_iter().chain(denied).chain(error).collect()
    }
}

fn take(fields: &Map<String, Value>, said: &mut Said) {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let amount = |name: &str| fields.get(name).and_then(Value::as_object).map(spent);
    if let Some(session) = text("session").filter(|it| !it.is_empty()) {
        said.session = Some(session);
    }
    if let Some(more) = amount("spent") {
        said.spent = said.spent.plus(more);
    }
    if let Some(total) = amount("spent_in_session") {
        (said.spent, said.counting) = (total, Counting::Session);
    }
    said.denied.extend(text("denied"));
    if let Some(limit) = fields.get("limit").and_then(Value::as_object) {
        said.limit = Some(self::limit(limit));
    }
    if let Some(result) = fields.get("result") {
        said.result = Some(result.clone());
    }
    if let Some(answer) = text("answer") {
        said.answer = Some(answer);
        said.closed = Some(Closed::Well);
    }
    if let Some(word) = text("error") {
        let named = Cause::ALL.into_iter().find(|cause| cause.as_str() == word);
        let (cause, detail) = (named.unwrap_or(Cause::Failed), text("detail").unwrap_or(word));
        said.closed = Some(Closed::Badly { cause, detail });
    }
}

fn spent(fields: &Map<String, Value>) -> Spent {
    let tokens = |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or(0);
    Spent {
        input_tokens: tokens("input_tokens"),
        output_tokens: tokens("output_tokens"),
        cache_read_tokens: tokens("cache_read_tokens"),
        cache_write_tokens: tokens("cache_write_tokens"),
        usd: fields.get("usd").and_then(Value::as_f64).and_then(Usd::from_dollars),
    }
}

fn limit(fields: &Map<String, Value>) -> Limit {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let kind = match text("kind") {
        Some("rate") => LimitKind::Rate,
        Some(_) | None => LimitKind::Usage,
    };
    Limit {
        provider: text("provider").unwrap_or("unknown").to_owned(),
        account: text("account").map(str::to_owned),
        resets_at: fields.get("resets_at").and_then(moment),
        words: None,
        kind,
    }
}

/// A moment as text, or as seconds since 1970.
fn moment(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(seconds) => {
            // Beyond the year 9999 no moment can be written down.
            let seconds = seconds.as_i64().filter(|it| (0..253_402_300_800).contains(it))?;
            Some(Timestamp::from_micros(seconds * 1_000_000))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[&str]) -> Said {
        let mut said = Said::nothing_yet(true);
        for line in lines {
            Lines.read(Stream::Out, format!("{line}\n").as_bytes(), &mut said);
        }
        said
    }

    #[test]
    fn a_whole_conversation_is_understood() {
        let said = said(&[
            r#"{"session":"s-1"}"#,
            "thinking aloud",
            r#"{"spent":{"input_tokens":10,"output_tokens":2,"usd":0.25}}"#,
            r#"{"spent":{"input_tokens":5,"cache_read_tokens":7}}"#,
            r#"{"denied":"Write"}"#,
            r#"{"answer":"done","result":{"n":1},"unknown":true}"#,
        ]);
        assert_eq!((said.session.as_deref(), said.answer.as_deref()), (Some("s-1"), Some("done")));
        let usd = Some(Usd(250_000));
        let (input_tokens, output_tokens, cache_read_tokens) = (15, 2, 7);
        let cache_write_tokens = 0;
        let spent =
            Spent { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, usd };
        assert_eq!((said.spent, said.counting), (spent, Counting::Attempt));
        assert_eq!((said.closed, said.denied), (Some(Closed::Well), vec!["Write".to_owned()]));
        assert_eq!(said.result, Some(serde_json::json!({"n": 1})));
    }

    #[test]
    fn a_limit_has_its_moment_in_either_form() {
        for moment in ["1800000000", r#""2027-01-15T08:00:00.000000Z""#] {
            let line = format!(r#"{{"limit":{{"provider":"p","resets_at":{moment}}}}}"#);
            let limit = said(&[&line]).limit.unwrap();
            assert_eq!(limit.resets_at, Some(Timestamp::from_micros(1_800_000_000_000_000)));
            assert_eq!((limit.provider.as_str(), limit.kind), ("p", LimitKind::Usage));
        }
        let unknown = said(&[r#"{"limit":{"kind":"rate","resets_at":253402300800}}"#]);
        let limit = unknown.limit.unwrap();
        assert_eq!((limit.resets_at, limit.kind), (None, LimitKind::Rate));
    }

    #[test]
    fn an_error_is_named_by_one_of_the_causes_and_is_taken_back_by_an_answer() {
        let closed = |lines: &[&str]| said(lines).closed.unwrap();
        let badly = |cause, detail: &str| Closed::Badly { cause, detail: detail.to_owned() };
        let auth = r#"{"error":"auth","detail":"no login"}"#;
        assert_eq!(closed(&[auth]), badly(Cause::Auth, "no login"));
        assert_eq!(closed(&[r#"{"error":"it broke"}"#]), badly(Cause::Failed, "it broke"));
        assert_eq!(closed(&[auth, r#"{"answer":""}"#]), Closed::Well);
    }

    #[test]
    fn totals_of_a_session_replace_what_was_counted() {
        let said = said(&[
            r#"{"spent_in_session":{"input_tokens":100}}"#,
            r#"{"spent_in_session":{"input_tokens":200}}"#,
        ]);
        assert_eq!((said.spent.input_tokens, said.counting), (200, Counting::Session));
    }
}
