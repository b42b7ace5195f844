//! A program that the configuration describes: where in its JSON lines the session, the answer, the
//! cost and the error stand, and which words mean a limit.

use onward_core::{
    evidence::{Cause, Usd},
    said::{Closed, Counting, Said, Spent},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Adapter, Card, Cost, Sessions, Stream,
    events::{self, text},
    notice,
};

/// `[agents.NAME.reads]`: each is a JSON pointer such as `/usage/input`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reads {
    pub session: Option<String>,
    /// The final answer. A program that has one always gives it when it ends well.
    pub answer: Option<String>,
    pub result: Option<String>,
    pub error: Option<String>,
    pub input_tokens: Option<String>,
    pub output_tokens: Option<String>,
    pub usd: Option<String>,
    /// The counters begin with the session, not with the process.
    #[serde(default)]
    pub counts_sessions: bool,
    /// Words in any line that mean a limit; `*` stands for anything.
    #[serde(default)]
    pub limits: Vec<String>,
    /// Whose limits they are.
    pub provider: Option<String>,
}

impl Reads {
    /// A pointer that can point nowhere.
    pub fn wrong(&self) -> Option<&str> {
        let Self { session, answer, result, error, input_tokens, output_tokens, usd, .. } = self;
        let all = [session, answer, result, error, input_tokens, output_tokens, usd];
        all.into_iter().flatten().map(String::as_str).find(|it| !it.starts_with('/'))
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Generic {
    reads: Reads,
    card: Card,
}

impl Generic {
    pub fn new(reads: Reads) -> Self {
        let card = Card {
            sessions: if reads.session.is_some() { Sessions::Told } else { Sessions::None },
            cost: match (&reads.usd, &reads.input_tokens) {
                (Some(_), _) => Cost::Usd,
                (None, Some(_)) => Cost::Tokens,
                (None, None) => Cost::Unknown,
            },
            closes: reads.answer.is_some(),
            ..Card::configured("generic")
        };
        Self { reads, card }
    }

    fn take(&self, event: &Value, said: &mut Said) {
        let Reads { session, answer, result, error, .. } = &self.reads;
        let found = |at: &Option<String>| at.as_ref().and_then(|at| text(event, at));
        if let Some(session) = found(session).filter(|it| !it.is_empty()) {
            said.session = Some(session.to_owned());
        }
        let spent = self.spent(event);
        if !spent.is_nothing() {
            if self.reads.counts_sessions {
                (said.spent, said.counting) = (spent, Counting::Session);
            } else {
                said.spent = said.spent.plus(spent);
            }
        }
        if let Some(result) = result.as_ref().and_then(|at| event.pointer(at)) {
            said.result = Some(result.clone());
        }
        if let Some(answer) = found(answer) {
            said.answer = Some(answer.to_owned());
            said.closed = Some(Closed::Well);
            if self.is_limit(answer) && notice::is_limit_notice(answer) {
                notice::end_with(said, self.provider(), Cause::UsageLimit, answer);
            }
        }
        if let Some(error) = found(error).filter(|it| !it.is_empty()) {
            self.end_badly(error, said);
        }
    }

    fn end_badly(&self, words: &str, said: &mut Said) {
        if self.is_limit(words) {
            return notice::end_with(said, self.provider(), Cause::UsageLimit, words);
        }
        notice::end_badly(said, self.provider(), None, words);
    }

    fn provider(&self) -> &str {
        self.reads.provider.as_deref().unwrap_or(self.card.provider)
    }

    fn is_limit(&self, line: &str) -> bool {
        let line = line.to_lowercase();
        notice::is_limit_notice(&line) || self.reads.limits.iter().any(|it| fits(&line, it))
    }

    fn spent(&self, event: &Value) -> Spent {
        let Reads { input_tokens, output_tokens, usd, .. } = &self.reads;
        let value = |at: &Option<String>| at.as_ref().and_then(|at| event.pointer(at));
        let tokens = |at: &Option<String>| value(at).and_then(Value::as_u64).unwrap_or(0);
        Spent {
            input_tokens: tokens(input_tokens),
            output_tokens: tokens(output_tokens),
            usd: value(usd).and_then(Value::as_f64).and_then(Usd::from_dollars),
            ..Spent::NOTHING
        }
    }
}

/// Every part between the `*` stands in the line, in this order.
fn fits(line: &str, pattern: &str) -> bool {
    let pattern = pattern.to_lowercase();
    let mut rest = line;
    !pattern.trim_matches('*').is_empty()
        && pattern.split('*').all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
}

impl Adapter for Generic {
    fn card(&self) -> &Card {
        &self.card
    }

    fn shares(&self) -> Option<&str> {
        self.reads.provider.as_deref()
    }

    fn read(&self, _: Stream, lines: &[u8], said: &mut Said) {
        for line in lines.split(|byte| *byte == b'\n') {
            if let Some(event @ Value::Object(_)) = events::parsed(line) {
                self.take(&event, said);
                continue;
            }
            let line = String::from_utf8_lossy(line);
            if said.closed.is_none() && self.is_limit(&line) {
                notice::end_with(said, self.provider(), Cause::UsageLimit, &line);
            }
        }
    }

    fn tell(&self, line: &str) -> Vec<String> {
        let Reads { answer, error, .. } = &self.reads;
        events::told(line, |event| {
            let words = |at: &Option<String>| at.as_ref().and_then(|at| text(event, at));
            let error = words(error).map(|it| events::ended_badly(Some(it)));
            words(answer).map(str::to_owned).into_iter().chain(error).collect()
        })
    }
}
