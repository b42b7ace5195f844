//! Taking secrets out of events: everything in them that is not our own word.

use std::borrow::Cow;

use onward_core::{
    event::{AttemptFinished, AttemptStarted, Event, GitHead},
    evidence::{Cause, Ending, Outcome},
    kept::Kept,
    key::Key,
};
use serde_json::{Map, Value};

use super::Redactor;

impl Redactor {
    /// Takes the secrets out of everything in an event that was not our own word.
    pub fn clean(&self, event: &mut Event) {
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
            // The inputs were refused if they hold one.
            Event::RunOpened(opened) => self.clean_head(opened.git.as_mut()),
            Event::RunResumed(resumed) => self.clean_head(resumed.git.as_mut()),
            Event::RunAdopted { .. }
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

    fn clean_head(&self, head: Option<&mut GitHead>) {
        if let Some(branch) = head.and_then(|it| it.branch.as_mut()) {
            self.put(branch);
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
        !self.find(json.as_bytes()).is_empty()
    }

    fn clean_finish(&self, finished: &mut AttemptFinished) {
        self.refuse_names(finished);
        if let Outcome::Failed { detail, .. } = &mut finished.outcome {
            self.put(detail);
        }
        if let Some(Ending::NotStarted { why }) = &mut finished.ending {
            self.put(why);
        }
        if let Some(stdout) = &mut finished.stdout {
            self.put(stdout);
        }
        finished.footprint.iter_mut().for_each(|path| self.put(path));
        self.clean_value(&mut finished.result);
    }

    /// An output is known by its name, and a name that holds a secret cannot be kept: so what the
    /// attempt made does not count.
    fn refuse_names(&self, finished: &mut AttemptFinished) {
        let name = |path: &str| self.find(path.as_bytes()).first().map(|it| it.1.to_owned());
        let found = finished.evidence.files.iter().find_map(|file| name(&file.path));
        let Some(found) = found else { return };
        finished.evidence.files.retain(|file| name(&file.path).is_none());
        if finished.outcome == Outcome::Done {
            let detail = format!("the name of an output holds a secret (${found})");
            finished.outcome = Outcome::Failed { cause: Cause::Unproved, detail };
        }
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
            Value::Object(fields) => self.fields(fields),
        }
    }

    fn fields(&self, fields: &mut Map<String, Value>) {
        fields.values_mut().for_each(|field| self.value(field));
        if fields.keys().any(|key| self.is_in(key)) {
            let all = std::mem::take(fields).into_iter();
            *fields = all.map(|(key, field)| (self.text(&key).into_owned(), field)).collect();
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
    use onward_core::{
        address::Address,
        digest::Digest,
        evidence::{Evidence, FileProof, Stat},
        key::KeyParts,
    };

    use super::*;

    fn redactor() -> Redactor {
        let env = [("API_KEY", "sk-abcdef"), ("ODD_SECRET", "\"qq\\yy\"")];
        let env = env.map(|(name, value)| (name.into(), value.into()));
        Redactor::of_environment(&env)
    }

    fn finished(evidence: Evidence, outcome: Outcome) -> AttemptFinished {
        AttemptFinished {
            step: Address::from_text("a"),
            attempt: 1,
            outcome,
            ending: Some(Ending::NotStarted { why: "sk-abcdef".into() }),
            evidence,
            result: Some(serde_json::json!({"deep": ["sk-abcdef"], "sk-abcdef": 1})),
            stdout: Some("sk-abcdef".into()),
            after: None,
            footprint: vec!["x-sk-abcdef".into()],
            tolerated: false,
            head: None,
            ended: None,
            waited: 0,
        }
    }

    #[test]
    fn nothing_an_attempt_leaves_in_the_journal_holds_a_secret() {
        let definition = [("command".to_owned(), "curl sk-abcdef".to_owned())].into();
        let started = AttemptStarted {
            key: Key::from(&KeyParts { definition, ..KeyParts::default() }),
            argv: Kept::from(&vec!["curl".into(), "sk-abcdef".into(), "x \"qq\\yy\"".into()]),
            ..AttemptStarted::bare(Address::from_text("a"), 1)
        };
        let failed = Outcome::Failed { cause: Cause::Failed, detail: "said sk-abcdef".into() };
        let finished = finished(Evidence::default(), failed);
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

    #[test]
    fn an_output_that_is_named_after_a_secret_does_not_count() {
        let stat = Stat { size: 1, mtime_ns: 0, inode: 1 };
        let file = |path: &str| FileProof { path: path.into(), hash: Digest::of(b"x"), stat };
        let evidence =
            Evidence { files: vec![file("fine"), file("out-sk-abcdef")], ..Evidence::default() };
        let mut event = Event::AttemptFinished(Box::new(finished(evidence, Outcome::Done)));
        redactor().clean(&mut event);
        let text = serde_json::to_string(&event).unwrap();
        assert!(!text.contains("sk-abcdef") && text.contains("unproved"), "{text}");
        assert!(text.contains("fine") && text.contains("$API_KEY"), "{text}");
    }
}
