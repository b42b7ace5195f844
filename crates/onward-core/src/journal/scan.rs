//! The quick way to read a line: expect exactly what we write, and give up on anything else.
//!
//! Invariant: giving up is always right, because the general parser comes next; reading something
//! else than the general parser would is never right. The order of fields here is their order in
//! `event.rs`.

use std::collections::BTreeMap;

use serde::{Serialize, de::DeserializeOwned};

use super::cursor::Cursor;
use crate::{
    address::Address,
    digest::Digest,
    event::{AttemptFinished, AttemptStarted, Event, FileKind, Item, LoopEnd, Record, Revert},
    evidence::{Cause, Ending, Evidence, FileProof, Outcome, Stat},
    kept::Kept,
};

/// Reads a line up to, and without, `,"crc"`.
pub(super) fn record(body: &str) -> Option<Record> {
    // JSON allows no control character inside a string, and we write none outside.
    if holds_control_character(body.as_bytes()) {
        return None;
    }
    let mut line = Cursor::new(body);
    line.expect(r#"{"seq":"#)?;
    let seq = line.u64()?;
    line.expect(r#","at":""#)?;
    let at = line.timestamp()?;
    line.expect(r#"","epoch":"#)?;
    let epoch = line.u32()?;
    line.expect(r#","batch":"#)?;
    let batch = line.u64()?;
    line.expect(r#","kind":""#)?;
    let event = line.event()?;
    line.is_at_end().then_some(Record { seq, at, epoch, batch, event })
}

/// Whether any byte is below a space, looked at eight bytes at a time.
fn holds_control_character(bytes: &[u8]) -> bool {
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = bytes.as_chunks();
    // A byte borrows from its high bit if it is smaller than what is taken from it.
    let below = |word: u64| word.wrapping_sub(SPACES) & !word & HIGH_BITS;
    words.iter().fold(0, |seen, word| seen | below(u64::from_ne_bytes(*word))) != 0
        || rest.iter().any(|byte| *byte < b' ')
}

/// The labels of a key's maps, in their order, and whether digests are in them.
const KEY_MEMBERS: [(&str, bool); 4] = [
    (r#""definition":{"#, false),
    (r#""agent":{"#, false),
    (r#""reads":{"#, true),
    (r#""needs":{"#, true),
];

/// What an event is made of.
impl Cursor<'_> {
    fn event(&mut self) -> Option<Event> {
        let kind = self.plain_string()?;
        match kind {
            "attempt.started" => self.attempt_started(),
            "attempt.finished" => self.attempt_finished(),
            "attempt.spent" => self.attempt_spent(),
            "attempt.session" => {
                let (step, attempt) = (self.step()?, self.attempt()?);
                let session = self.text_field(r#","session":""#)?;
                Some(Event::AttemptSession { step, attempt, session })
            }
            "group.expanded" => {
                let step = self.step()?;
                self.expect(r#","items":["#)?;
                let items = self.list(Self::item)?;
                Some(Event::GroupExpanded { step, items, needs: self.optional_needs()? })
            }
            "loop.turned" => {
                let step = self.step()?;
                self.expect(r#","turn":"#)?;
                Some(Event::LoopTurned { step, turn: self.u32()? })
            }
            "loop.ended" => self.loop_ended(),
            "step.skipped" => {
                let step = self.step()?;
                let reason = self.text_field(r#","reason":""#)?;
                Some(Event::StepSkipped { step, reason, needs: self.optional_needs()? })
            }
            "note" => {
                let text = self.text_field(r#","text":""#)?;
                let step = if self.is_at_end() { None } else { Some(self.step()?) };
                Some(Event::Note { text, step })
            }
            _ => None,
        }
    }

    fn attempt_started(&mut self) -> Option<Event> {
        let (step, attempt) = (self.step()?, self.attempt()?);
        self.expect(r#","key":"#)?;
        let key = self.kept(Self::skip_key)?;
        self.expect(r#","argv":"#)?;
        let argv = self.kept(Self::skip_strings)?;
        let cwd = self.optional_text(r#","cwd":""#)?.unwrap_or_default();
        let agent = self.optional_text(r#","agent":""#)?;
        let session = self.optional_text(r#","session":""#)?;
        let base = self.optional_text(r#","base":""#)?;
        let writes = self.optional_list(r#","writes":["#, Self::quoted_string)?;
        let mut saved = BTreeMap::new();
        if self.eat(r#","saved":{"#) {
            saved = self.map(Self::digest_or_null)?;
        }
        let mut kinds = BTreeMap::new();
        if self.eat(r#","kinds":{"#) {
            kinds = self.map(Self::kind)?;
        }
        let reverts = self.optional_list(r#","reverts":["#, Self::revert)?;
        let started = AttemptStarted {
            step,
            attempt,
            key,
            argv,
            cwd,
            agent,
            session,
            base,
            writes,
            saved,
            kinds,
            reverts,
        };
        Some(Event::AttemptStarted(Box::new(started)))
    }

    fn optional_needs(&mut self) -> Option<BTreeMap<String, Digest>> {
        if self.eat(r#","needs":{"#) { self.map(Self::digest) } else { Some(BTreeMap::new()) }
    }

    fn attempt_finished(&mut self) -> Option<Event> {
        let (step, attempt) = (self.step()?, self.attempt()?);
        let outcome = self.outcome()?;
        let ending = if self.eat(r#","ending":{"how":""#) { Some(self.ending()?) } else { None };
        let mut evidence = Evidence::default();
        if self.eat(r#","evidence":{"#) {
            evidence = self.evidence()?;
        }
        let result = if self.eat(r#","result":"#) { Some(self.parsed()?) } else { None };
        let stdout = self.optional_text(r#","stdout":""#)?;
        let after = self.optional_text(r#","after":""#)?;
        let footprint = self.optional_list(r#","footprint":["#, Self::quoted_string)?;
        let finished = AttemptFinished {
            step,
            attempt,
            outcome,
            ending,
            evidence,
            result,
            stdout,
            after,
            footprint,
        };
        Some(Event::AttemptFinished(Box::new(finished)))
    }

    fn attempt_spent(&mut self) -> Option<Event> {
        let (step, attempt) = (self.step()?, self.attempt()?);
        self.expect(r#","usd":"#)?;
        let usd = self.usd()?;
        self.expect(r#","tokens_in":"#)?;
        let tokens_in = self.u64()?;
        self.expect(r#","tokens_out":"#)?;
        let tokens_out = self.u64()?;
        Some(Event::AttemptSpent { step, attempt, usd, tokens_in, tokens_out })
    }

    fn loop_ended(&mut self) -> Option<Event> {
        let step = self.step()?;
        self.expect(r#","turns":"#)?;
        let turns = self.u32()?;
        self.expect(r#","reason":""#)?;
        let reason = match self.plain_string()? {
            "until" => LoopEnd::Until,
            "max" => LoopEnd::Max,
            "exhausted" => LoopEnd::Exhausted,
            _ => return None,
        };
        Some(Event::LoopEnded { step, turns, reason })
    }

    fn step(&mut self) -> Option<Address> {
        self.expect(r#","step":""#)?;
        Some(Address::from_text(&self.string()?))
    }

    fn attempt(&mut self) -> Option<u32> {
        self.expect(r#","attempt":"#)?;
        self.u32()
    }

    fn item(&mut self) -> Option<Item> {
        let key = self.text_field(r#"{"key":""#)?;
        self.expect(r#","value":"#)?;
        let value = self.parsed()?;
        let after = self.optional_list(r#","after":["#, Self::quoted_string)?;
        self.expect("}")?;
        Some(Item { key, value, after })
    }

    fn revert(&mut self) -> Option<Revert> {
        let path = self.text_field(r#"{"path":""#)?;
        self.expect(r#","left":"#)?;
        let left = self.digest_or_null()?;
        self.expect(r#","base":"#)?;
        let base = self.digest_or_null()?;
        let rescue = self.text_field(r#","rescue":""#)?;
        let left_kind = self.optional_kind(r#","left_kind":"#)?;
        let base_kind = self.optional_kind(r#","base_kind":"#)?;
        self.expect("}")?;
        Some(Revert { path, left, base, rescue, left_kind, base_kind })
    }

    /// Plain is what is left out.
    fn optional_kind(&mut self, label: &str) -> Option<FileKind> {
        if self.eat(label) { self.kind() } else { Some(FileKind::Plain) }
    }

    fn kind(&mut self) -> Option<FileKind> {
        self.expect("\"")?;
        match self.plain_string()? {
            "plain" => Some(FileKind::Plain),
            "executable" => Some(FileKind::Executable),
            "link" => Some(FileKind::Link),
            _ => None,
        }
    }

    /// Takes the text as it stands there, if it is what we would write for its value.
    fn kept<T: Serialize + DeserializeOwned>(
        &mut self,
        skip: fn(&mut Self) -> Option<()>,
    ) -> Option<Kept<T>> {
        let start = self.position();
        if skip(self).is_some() {
            return Some(Kept::from_canonical(self.since(start)));
        }
        self.go_back(start);
        self.parsed()
    }

    fn skip_key(&mut self) -> Option<()> {
        let mut first = true;
        self.expect("{")?;
        for (label, is_digests) in KEY_MEMBERS {
            if self.eat_member(&mut first, label) {
                self.skip_key_member(is_digests)?;
            }
        }
        self.expect("}")
    }

    /// The rest of one map of a key: not empty, its names in order and without escapes.
    fn skip_key_member(&mut self, is_digests: bool) -> Option<()> {
        let mut last_name = None;
        loop {
            self.expect("\"")?;
            let name = self.plain_string()?;
            if last_name.replace(name).is_some_and(|last| last >= name) {
                return None;
            }
            self.expect(":")?;
            if is_digests {
                self.digest()?;
            } else {
                self.skip_string()?;
            }
            if !self.eat(",") {
                return self.expect("}");
            }
        }
    }

    fn skip_strings(&mut self) -> Option<()> {
        if self.eat("[]") {
            return Some(());
        }
        self.expect("[")?;
        loop {
            self.skip_string()?;
            if !self.eat(",") {
                return self.expect("]");
            }
        }
    }

    fn outcome(&mut self) -> Option<Outcome> {
        if self.eat(r#","outcome":"done""#) {
            return Some(Outcome::Done);
        }
        self.expect(r#","outcome":{"failed":{"cause":""#)?;
        let word = self.plain_string()?;
        let cause = Cause::ALL.into_iter().find(|cause| cause.as_str() == word)?;
        let detail = self.text_field(r#","detail":""#)?;
        self.expect("}}")?;
        Some(Outcome::Failed { cause, detail })
    }

    fn ending(&mut self) -> Option<Ending> {
        let ending = match self.plain_string()? {
            "exited" => {
                self.expect(r#","code":"#)?;
                Ending::Exited { code: i32::try_from(self.i64()?).ok()? }
            }
            "signalled" => {
                self.expect(r#","signal":"#)?;
                Ending::Signalled { signal: i32::try_from(self.i64()?).ok()? }
            }
            "timed_out" if self.eat(r#","idle":true"#) => Ending::TimedOut { idle: true },
            "timed_out" if self.eat(r#","idle":false"#) => Ending::TimedOut { idle: false },
            "stopped" => Ending::Stopped,
            "not_started" => Ending::NotStarted { why: self.text_field(r#","why":""#)? },
            _ => return None,
        };
        self.expect("}")?;
        Some(ending)
    }

    fn evidence(&mut self) -> Option<Evidence> {
        let mut evidence = Evidence::default();
        let mut first = true;
        if self.eat_member(&mut first, r#""files":["#) {
            evidence.files = self.list(Self::file_proof)?;
        }
        if self.eat_member(&mut first, r#""result":"#) {
            evidence.result = Some(self.digest()?);
        }
        if self.eat_member(&mut first, r#""stdout":"#) {
            evidence.stdout = Some(self.digest()?);
        }
        if self.eat_member(&mut first, r#""branch_head":"#) {
            evidence.branch_head = Some(self.quoted_string()?);
        }
        self.expect("}")?;
        Some(evidence)
    }

    fn file_proof(&mut self) -> Option<FileProof> {
        let path = self.text_field(r#"{"path":""#)?;
        self.expect(r#","hash":"#)?;
        let hash = self.digest()?;
        self.expect(r#","stat":{"size":"#)?;
        let size = self.u64()?;
        self.expect(r#","mtime_ns":"#)?;
        let mtime_ns = self.i64()?;
        self.expect(r#","inode":"#)?;
        let inode = self.u64()?;
        self.expect("}}")?;
        Some(FileProof { path, hash, stat: Stat { size, mtime_ns, inode } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_character_is_seen_wherever_it_stands() {
        let plain = [b' ', 0xff, b'~', 0x7f, 0x80, b'!', 0xa0].repeat(3);
        assert!(!holds_control_character(&plain));
        for at in 0..plain.len() {
            for byte in 0..b' ' {
                let mut bytes = plain.clone();
                bytes[at] = byte;
                assert!(holds_control_character(&bytes), "{byte} at {at}");
            }
        }
    }
}
