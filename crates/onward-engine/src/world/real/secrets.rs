//! What must never reach the journal: the values of environment variables that are named like
//! secrets.
//!
//! Invariant: in an event that went through [`Redactor::clean`], no text that came from a command,
//! an agent or a person holds such a value; `[redacted:NAME]` stands in its place. Names, addresses
//! and digests are ours and are left as they are.

use std::{borrow::Cow, ffi::OsString};

use aho_corasick::{AhoCorasick, MatchKind};
use onward_core::{
    event::{AttemptFinished, AttemptStarted, Event},
    evidence::{Ending, Outcome},
    kept::Kept,
    key::Key,
};
use serde_json::Value;

/// A shorter value is no secret, and would be found everywhere.
const SECRET_BYTES_MIN: usize = 6;
const ENDINGS: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];

#[derive(Clone, Debug, Default)]
pub struct Redactor {
    finder: Option<AhoCorasick>,
    marks: Vec<String>,
}

impl Redactor {
    pub fn of_environment(env: &[(OsString, OsString)]) -> Self {
        let secrets = env.iter().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value.to_str()?);
            let is_secret =
                ENDINGS.iter().any(|ending| name.to_ascii_uppercase().ends_with(ending));
            (is_secret && value.len() >= SECRET_BYTES_MIN).then_some((name, value))
        });
        // In JSON text a value may look another way.
        let both = secrets.flat_map(|(name, value)| {
            let escaped = Value::from(value).to_string();
            [(name, value.to_owned()), (name, escaped[1..escaped.len() - 1].to_owned())]
        });
        let (names, values): (Vec<&str>, Vec<String>) = both.unzip();
        if values.is_empty() {
            return Self::default();
        }
        // The longest: a token that begins with another is that token and not the other.
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(values);
        let marks = names.iter().map(|name| format!("[redacted:{name}]")).collect();
        Self { finder: finder.ok(), marks }
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.finder {
            Some(finder) if finder.is_match(text) => finder.replace_all(text, &self.marks).into(),
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    /// The name of the first secret in a value, wherever it stands.
    pub fn name_in(&self, value: &Value) -> Option<&str> {
        let finder = self.finder.as_ref()?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
            Value::String(text) => {
                let found = finder.find(text)?;
                let mark = &self.marks[found.pattern().as_usize()];
                mark.strip_prefix("[redacted:")?.strip_suffix(']')
            }
            Value::Array(items) => items.iter().find_map(|item| self.name_in(item)),
            Value::Object(fields) => fields.values().find_map(|field| self.name_in(field)),
        }
    }

    /// Takes the secrets out of everything in an event that was not our own word.
    pub fn clean(&self, event: &mut Event) {
        if self.finder.is_none() {
            return;
        }
        match event {
            Event::AttemptStarted(started) => self.clean_start(started),
            Event::AttemptFinished(finished) => self.clean_finish(finished),
            Event::AttemptAdopted(adopted) => self.clean_value(&mut adopted.result),
            Event::AttemptVerified(verified) => {
                if let Some(key) = &mut verified.key {
                    self.clean_key(key);
                }
            }
            Event::GroupExpanded { items, .. } => {
                for item in items {
                    self.value(&mut item.value);
                }
            }
            Event::StepInvalidated { causes, .. } => {
                let sides = causes.iter_mut().flat_map(|cause| [&mut cause.was, &mut cause.is]);
                sides.flatten().for_each(|side| self.put(side));
            }
            Event::GateOpened { prompt, .. } => self.put(prompt),
            Event::GateDecided { comment: Some(text), .. }
            | Event::RunEnded { why: Some(text), .. }
            | Event::StepSkipped { reason: text, .. }
            | Event::Note { text, .. } => self.put(text),
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunResumed(_)
            | Event::RunPaused { .. }
            | Event::RunEnded { why: None, .. }
            | Event::RunArchived { .. }
            | Event::LoopTurned { .. }
            | Event::LoopEnded { .. }
            | Event::AttemptSession { .. }
            | Event::AttemptSpent { .. }
            | Event::AttemptLost { .. }
            | Event::GateDecided { comment: None, .. }
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. } => {}
        }
    }

    fn clean_start(&self, started: &mut AttemptStarted) {
        if self.is_in(started.argv.as_str()) {
            let mut argv = started.argv.get();
            for argument in &mut argv {
                self.put(argument);
            }
            started.argv = Kept::from(&argv);
        }
        self.clean_key(&mut started.key);
    }

    fn clean_key(&self, key: &mut Key) {
        if self.is_in(key.as_str()) {
            let mut parts = key.get();
            let texts = parts.definition.values_mut().chain(parts.agent.values_mut());
            texts.for_each(|text| self.put(text));
            *key = Key::from(&parts);
        }
    }

    fn is_in(&self, json: &str) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(json))
    }

    fn clean_finish(&self, finished: &mut AttemptFinished) {
        if let Outcome::Failed { detail, .. } = &mut finished.outcome {
            self.put(detail);
        }
        if let Some(Ending::NotStarted { why }) = &mut finished.ending {
            self.put(why);
        }
        if let Some(stdout) = &mut finished.stdout {
            self.put(stdout);
        }
        self.clean_value(&mut finished.result);
    }

    fn clean_value(&self, value: &mut Option<Value>) {
        if let Some(value) = value {
            self.value(value);
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.put(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
        }
    }

    fn put(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }
}

#[cfg(test)]
mod tests {
    use onward_core::{address::Address, evidence::Evidence, key::KeyParts};

    use super::*;

    fn redactor() -> Redactor {
        let env = [
            ("API_KEY", "sk-abcdef"),
            ("LONG_TOKEN", "sk-abcdef-ghi"),
            ("db_password", "hunter22"),
            ("SHORT_KEY", "abc"),
            ("ODD_SECRET", "\"qq\\yy\""),
            ("HOME", "plainvalue"),
        ];
        let env = env.map(|(name, value)| (name.into(), value.into()));
        Redactor::of_environment(&env)
    }

    #[test]
    fn only_what_is_named_like_a_secret_is_one() {
        let redactor = redactor();
        let check = |text: &str, clean: &str| assert_eq!(redactor.text(text), clean);
        check("-H sk-abcdef!", "-H [redacted:API_KEY]!");
        check("sk-abcdef-ghi", "[redacted:LONG_TOKEN]");
        check("hunter22hunter22", "[redacted:db_password][redacted:db_password]");
        check("abc plainvalue", "abc plainvalue");
        let value = serde_json::json!({"a": [1, null, "x hunter22"]});
        assert_eq!(redactor.name_in(&value), Some("db_password"));
        assert_eq!(redactor.name_in(&serde_json::json!(["abc"])), None);
        assert_eq!(Redactor::default().text("sk-abcdef"), "sk-abcdef");
    }

    #[test]
    fn nothing_an_attempt_leaves_in_the_journal_holds_a_secret() {
        let step = Address::from_text("a");
        let definition = [("command".to_owned(), "curl sk-abcdef".to_owned())].into();
        let started = AttemptStarted {
            key: Key::from(&KeyParts { definition, ..KeyParts::default() }),
            argv: Kept::from(&vec!["curl".into(), "sk-abcdef".into(), "x \"qq\\yy\"".into()]),
            ..AttemptStarted::bare(step.clone(), 1)
        };
        let cause = onward_core::evidence::Cause::Failed;
        let finished = AttemptFinished {
            step: step.clone(),
            attempt: 1,
            outcome: Outcome::Failed { cause, detail: "said sk-abcdef".into() },
            ending: Some(Ending::NotStarted { why: "sk-abcdef".into() }),
            evidence: Evidence::default(),
            result: Some(serde_json::json!({"deep": ["sk-abcdef"]})),
            stdout: Some("sk-abcdef".into()),
            after: None,
            footprint: Vec::new(),
            tolerated: false,
        };
        let note = Event::Note { text: "sk-abcdef".into(), step: None };
        let started = Event::AttemptStarted(Box::new(started));
        let finished = Event::AttemptFinished(Box::new(finished));
        for mut event in [started, finished, note] {
            redactor().clean(&mut event);
            let text = serde_json::to_string(&event).unwrap();
            assert!(!text.contains("sk-abcdef") && !text.contains("qq\\\\yy"), "{text}");
            assert!(text.contains("[redacted:API_KEY]"), "{text}");
        }
    }
}
