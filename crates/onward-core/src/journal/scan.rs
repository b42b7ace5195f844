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
    mark::Nonce,
    said::Spent,
};

/// Reads a line up to, and without, `,"crc"`.
#[inline]
pub(super) fn record(body: &str) -> Option<Record> {
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
    if !line.is_at_end() {
        return None;
    }
    Some(Record { seq, at, epoch, batch, event })
}

/// What an event is made of.
impl Cursor<'_> {
    fn event(&mut self) -> Option<Event> {
        if self.eat(r#"attempt.started""#) {
            return self.attempt_started();
        }
        if self.eat(r#"attempt.finished""#) {
            return self.attempt_finished();
        }
        match self.plain_string()? {
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
                let needs = self.optional_needs()?;
                let reads = if self.eat(r#","reads":{"#) {
                    self.map(Self::digest)?
                } else {
                    BTreeMap::new()
                };
                Some(Event::StepSkipped { step, reason, needs, reads })
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
        // Made where it stays, and filled there: most of it is rarely there.
        let mut started = Box::new(AttemptStarted {
            step,
            attempt,
            key,
            argv,
            cwd: String::new(),
            agent: None,
            session: None,
            continues: false,
            base: None,
            writes: Vec::new(),
            saved: BTreeMap::new(),
            kinds: BTreeMap::new(),
            reverts: Vec::new(),
            nonce: None,
        });
        if self.eat(r#","cwd":""#) {
            started.cwd = self.string()?.into_owned();
        }
        if self.eat(r#","agent":""#) {
            started.agent = Some(self.string()?.into_owned());
        }
        if self.eat(r#","session":""#) {
            started.session = Some(self.string()?.into_owned());
        }
        started.continues = self.eat(r#","continues":true"#);
        if self.eat(r#","base":""#) {
            started.base = Some(self.string()?.into_owned());
        }
        if self.eat(r#","writes":["#) {
            started.writes = self.list(Self::quoted_string)?;
        }
        if self.eat(r#","saved":{"#) {
            started.saved = self.map(Self::digest_or_null)?;
        }
        if self.eat(r#","kinds":{"#) {
            started.kinds = self.map(Self::kind)?;
        }
        if self.eat(r#","reverts":["#) {
            started.reverts = self.list(Self::revert)?;
        }
        if self.eat(r#","nonce":""#) {
            started.nonce = Some(Nonce::parse(self.plain_string()?)?);
        }
        Some(Event::AttemptStarted(started))
    }

    fn optional_needs(&mut self) -> Option<BTreeMap<String, Digest>> {
        if self.eat(r#","needs":{"#) { self.map(Self::digest) } else { Some(BTreeMap::new()) }
    }

    fn attempt_finished(&mut self) -> Option<Event> {
        let (step, attempt) = (self.step()?, self.attempt()?);
        let outcome = self.outcome()?;
        let mut finished = Box::new(AttemptFinished {
            step,
            attempt,
            outcome,
            ending: None,
            evidence: Evidence::default(),
            result: None,
            stdout: None,
            after: None,
            footprint: Vec::new(),
            tolerated: false,
            head: None,
            ended: None,
            waited: 0,
        });
        if self.eat(r#","ending":{"how":""#) {
            finished.ending = Some(self.ending()?);
        }
        if self.eat(r#","evidence":{"#) {
            self.fill_evidence(&mut finished.evidence)?;
        }
        if self.eat(r#","result":"#) {
            finished.result = Some(self.parsed()?);
        }
        if self.eat(r#","stdout":""#) {
            finished.stdout = Some(self.string()?.into_owned());
        }
        if self.eat(r#","after":""#) {
            finished.after = Some(self.string()?.into_owned());
        }
        if self.eat(r#","footprint":["#) {
            finished.footprint = self.list(Self::quoted_string)?;
        }
        finished.tolerated = self.eat(r#","tolerated":true"#);
        if self.eat(r#","head":""#) {
            finished.head = Some(self.string()?.into_owned());
        }
        if self.eat(r#","ended":""#) {
            finished.ended = Some(self.timestamp()?);
            self.expect("\"")?;
        }
        if self.eat(r#","waited":"#) {
            finished.waited = self.u64()?;
        }
        Some(Event::AttemptFinished(finished))
    }

    fn attempt_spent(&mut self) -> Option<Event> {
        let (step, attempt) = (self.step()?, self.attempt()?);
        self.expect(r#","input_tokens":"#)?;
        let input_tokens = self.u64()?;
        self.expect(r#","output_tokens":"#)?;
        let output_tokens = self.u64()?;
        self.expect(r#","cache_read_tokens":"#)?;
        let cache_read_tokens = self.u64()?;
        self.expect(r#","cache_write_tokens":"#)?;
        let cache_write_tokens = self.u64()?;
        self.expect(r#","usd":"#)?;
        let usd = if self.eat("null") { None } else { Some(self.usd()?) };
        let spent =
            Spent { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, usd };
        Some(Event::AttemptSpent { step, attempt, spent })
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
        let step = if self.eat(r#","step":""#) { Some(self.string()?) } else { None };
        let step = step.map(|text| Address::from_text(&text));
        self.expect("}")?;
        Some(Revert { path, left, base, rescue, left_kind, base_kind, step })
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
        if self.eat_member(&mut first, r#""definition":{"#) {
            self.skip_map(Self::skip_string)?;
        }
        if self.eat_member(&mut first, r#""agent":{"#) {
            self.skip_map(Self::skip_string)?;
        }
        if self.eat_member(&mut first, r#""reads":{"#) {
            self.skip_map(|line| line.digest().map(drop))?;
        }
        if self.eat_member(&mut first, r#""needs":{"#) {
            self.skip_map(|line| line.digest().map(drop))?;
        }
        self.expect("}")
    }

    /// The rest of a map that is not empty, its names in order and without escapes.
    #[inline]
    fn skip_map(&mut self, value: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        let mut last_name = None;
        loop {
            self.expect("\"")?;
            let name = self.plain_string()?;
            if last_name.replace(name).is_some_and(|last| last >= name) {
                return None;
            }
            self.expect(":")?;
            value(self)?;
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
        if self.eat(r#"exited","code":"#) {
            let code = i32::try_from(self.i64()?).ok()?;
            self.expect("}")?;
            return Some(Ending::Exited { code });
        }
        let ending = match self.plain_string()? {
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

    fn fill_evidence(&mut self, evidence: &mut Evidence) -> Option<()> {
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
        self.expect("}")
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
