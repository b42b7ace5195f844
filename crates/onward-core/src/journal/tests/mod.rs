//! Whole journals: written, broken in every way we can think of, and read back.

mod large;
mod torn;

use std::io::{self, Read};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use super::{
    Damage, Mark, ReadError, Reader, Rest, Tail,
    arbitrary::{KINDS, any_event, kind_number},
    decode_line, encode,
};
use crate::{
    address::Address,
    digest::Digest,
    event::{Event, Mode, Record, RunOpened},
    time::Timestamp,
};

fn opened(format: u32) -> Event {
    Event::RunOpened(Box::new(RunOpened {
        format,
        run: "demo-20261115-k3fq".parse().unwrap(),
        workflow: "demo".into(),
        workflow_hash: Digest::of(b"demo"),
        file: None,
        inputs: [].into(),
        git: None,
        engine: "0.1.0".into(),
        boot_id: "b".into(),
        mode: Mode::Autopilot,
    }))
}

fn turned(turn: u32) -> Event {
    Event::LoopTurned { step: Address::from_text("r"), turn }
}

fn record(seq: u64, epoch: u32, batch: u64, event: Event) -> Record {
    let at = Timestamp::from_micros(1_794_766_801_123_456 + i64::try_from(seq).unwrap());
    Record { seq, at, epoch, batch, event }
}

fn line(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    encode(record, &mut out).unwrap();
    out
}

/// A journal whose records belong to these batches, in epoch 1, each on its own line.
struct Written {
    records: Vec<Record>,
    lines: Vec<Vec<u8>>,
}

fn written(batches: &[u64]) -> Written {
    let event = |seq: u64| if seq == 0 { opened(1) } else { turned(u32::try_from(seq).unwrap()) };
    let numbered = (0..).zip(batches);
    let records: Vec<_> = numbered.map(|(seq, batch)| record(seq, 1, *batch, event(seq))).collect();
    let lines = records.iter().map(line).collect();
    Written { records, lines }
}

impl Written {
    fn bytes(&self) -> Vec<u8> {
        self.lines.concat()
    }

    /// The offset at which a line begins.
    fn offset(&self, line: usize) -> usize {
        self.lines[..line].iter().map(Vec::len).sum()
    }

    fn line_at(&self, offset: usize) -> usize {
        (0..self.lines.len()).rev().find(|line| self.offset(*line) <= offset).unwrap()
    }
}

fn read(source: impl Read) -> Result<(Vec<Record>, Tail), ReadError> {
    let mut reader = Reader::new(source);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    assert_eq!(reader.next_record().unwrap(), None, "the end is the end");
    Ok((records, reader.tail()?))
}

/// `3 records, torn at 300..412 on line 4: it does not end in a checksum`
fn told(bytes: &[u8]) -> String {
    let (records, tail) = match read(bytes) {
        Ok(read) => read,
        Err(error) => return error.to_string(),
    };
    let rest = match &tail.rest {
        Rest::Clean => "clean".to_owned(),
        Rest::Torn(torn) => {
            assert_eq!(torn.offset, tail.mark.offset, "cut at the first bad byte");
            format!("torn on line {}: {}", torn.line, torn.why)
        }
        Rest::Damaged(lines) => {
            assert_eq!(lines.listed[0].offset, tail.mark.offset);
            let tell = |damage: &Damage| format!("line {}: {}", damage.line, damage.why);
            let told: Vec<_> = lines.listed.iter().map(tell).collect();
            format!("damaged {} and {} more", told.join("; "), lines.more)
        }
    };
    let newline = if tail.missing_newline { ", no newline" } else { "" };
    let nuls = match tail.trailing_nuls {
        0 => String::new(),
        count => format!(", {count} NULs"),
    };
    format!("{} records{newline}{nuls}, {rest}", records.len())
}

fn is_damaged(tail: &Tail) -> bool {
    matches!(tail.rest, Rest::Damaged(_))
}

#[test]
fn the_strategy_makes_every_kind_of_event() {
    let mut runner = TestRunner::deterministic();
    let mut seen = [false; KINDS];
    for _ in 0..2_000 {
        let event = any_event().new_tree(&mut runner).unwrap().current();
        seen[kind_number(&event)] = true;
    }
    assert_eq!(seen, [true; KINDS]);
}

#[test]
fn the_format_is_documented_kind_by_kind_and_field_by_field() {
    let page = include_str!("../../../../../docs/journal.md");
    let example = page.lines().find(|line| line.starts_with(r#"{"seq":"#)).unwrap();
    assert!(decode_line(example.as_bytes()).is_ok());
    let mut runner = TestRunner::deterministic();
    for _ in 0..2_000 {
        let event = any_event().new_tree(&mut runner).unwrap().current();
        let json = serde_json::to_value(&event).unwrap();
        let kind = json["kind"].as_str().unwrap();
        let row = page.lines().find(|line| line.starts_with(&format!("| `{kind}` |")));
        let row = row.unwrap_or_else(|| panic!("{kind} has no row"));
        let fields = row.split(" | ").nth(1).unwrap();
        for field in json.as_object().unwrap().keys().filter(|field| *field != "kind") {
            assert!(fields.contains(&format!("`{field}`")), "{kind} has `{field}`");
        }
    }
}

#[test]
fn a_whole_journal_reads_back() {
    let journal = written(&[0, 1, 1, 2, 3]);
    let (records, tail) = read(journal.bytes().as_slice()).unwrap();
    assert_eq!(records, journal.records);
    let offset = journal.bytes().len() as u64;
    let mark = Mark { offset, next_seq: 5, epoch: 1, batch: 3 };
    let expected = Tail { mark, missing_newline: false, trailing_nuls: 0, rest: Rest::Clean };
    assert_eq!(tail, expected);
}

#[test]
fn a_reader_goes_on_where_another_stopped() {
    let journal = written(&[0, 1, 1, 2, 3]);
    let mut bytes = journal.bytes();
    bytes[journal.offset(4)] ^= 1;
    let mut first = Reader::new(bytes.as_slice());
    for _ in 0..2 {
        first.next_record().unwrap();
    }
    let mark = first.mark();
    assert_eq!(mark.offset, journal.offset(2) as u64);
    let mut second = Reader::resume_at(&bytes[journal.offset(2)..], mark);
    assert_eq!(second.next_record().unwrap().as_ref(), Some(&journal.records[2]));
    let tail = second.tail().unwrap();
    assert_eq!(tail.mark.offset, journal.offset(4) as u64);
    assert!(matches!(tail.rest, Rest::Torn(torn) if torn.line == 5));
}

#[test]
fn a_line_out_of_order_is_unreadable() {
    let base = written(&[0, 1, 2]).bytes();
    let with = |records: &[Record]| {
        let mut bytes = base.clone();
        for record in records {
            bytes.extend(line(record));
        }
        told(&bytes)
    };
    let at = |seq, epoch, batch| record(seq, epoch, batch, turned(9));

    // Twice the same line: nothing later follows, then something does.
    let twice = "record 2 stands where record 3 should be";
    assert_eq!(with(&[at(2, 1, 2)]), format!("3 records, torn on line 4: {twice}"));
    assert_eq!(
        with(&[at(2, 1, 2), at(3, 1, 3)]),
        format!("3 records, damaged line 4: {twice} and 0 more")
    );
    // A gap: within a batch, then between batches.
    let gap = "record 3 is missing before record 4";
    assert_eq!(with(&[at(4, 1, 2)]), format!("3 records, torn on line 4: {gap}"));
    assert_eq!(with(&[at(4, 1, 3)]), format!("3 records, damaged line 4: {gap} and 0 more"));
    // A writer of an earlier epoch.
    let stale = "its epoch 0 is lower than 1";
    assert_eq!(with(&[at(3, 0, 9)]), format!("3 records, torn on line 4: {stale}"));
    assert_eq!(
        with(&[at(3, 0, 9), at(3, 1, 3)]),
        format!("3 records, damaged line 4: {stale} and 0 more")
    );
    let early = "its batch 1 is lower than 2";
    assert_eq!(with(&[at(3, 1, 1)]), format!("3 records, torn on line 4: {early}"));
    // A new epoch may begin its batches at 0 again.
    assert_eq!(with(&[at(3, 2, 0), at(4, 2, 1)]), "5 records, clean");
    // An empty line.
    let mut bytes = base.clone();
    bytes.push(b'\n');
    assert_eq!(told(&bytes), "3 records, torn on line 4: it does not end in a checksum");
}

#[test]
fn what_is_not_utf8_is_unreadable_even_with_a_right_checksum() {
    let mut bytes = written(&[0, 1]).bytes();
    let good = line(&record(2, 1, 2, Event::Note { text: "~".into(), step: None }));
    let body_len = good.len() - br#""crc":"00000000"}"#.len() - 1;
    let mut bad = good[..body_len].to_vec();
    let tilde = bad.iter().position(|byte| *byte == b'~').unwrap();
    bad[tilde] = 0xff;
    let crc = crc32fast::hash(&bad);
    bytes.extend(bad);
    bytes.extend(format!("\"crc\":\"{crc:08x}\"}}\n").bytes());
    assert_eq!(told(&bytes), "2 records, torn on line 3: it is not UTF-8");
}

#[test]
fn line_separators_of_unicode_do_not_end_a_line() {
    let mut bytes = written(&[0, 1]).bytes();
    let text = "a\u{2028}b\u{2029}c\u{85}d\r\n\u{0b}e".to_owned();
    let note = record(2, 1, 2, Event::Note { text, step: None });
    bytes.extend(line(&note));
    assert!(bytes.windows(3).any(|three| three == "\u{2028}".as_bytes()));
    let (records, tail) = read(bytes.as_slice()).unwrap();
    assert_eq!((records.last(), &tail.rest), (Some(&note), &Rest::Clean));
}

#[test]
fn without_an_opening_there_is_no_run() {
    assert_eq!(told(b""), "the journal is empty");
    assert_eq!(told(&[0; 5000]), "the journal is empty");
    let note = |seq| line(&record(seq, 1, 0, Event::Note { text: String::new(), step: None }));
    assert_eq!(told(&note(0)), "the first record of the journal is not `run.opened`");
    assert!(told(&note(1)).ends_with("record 0 is missing before record 1"));
    assert!(told(b"hello\n").ends_with("unreadable: it does not end in a checksum"));
    let mut late = vec![0; 10];
    late.extend(line(&record(0, 1, 0, opened(1))));
    assert!(told(&late).ends_with("NUL bytes stand in its place"));
}

#[test]
fn a_newer_format_is_refused_even_if_its_opening_is_beyond_us() {
    let plain = line(&record(0, 1, 0, opened(2)));
    let refusal = "the journal has format 2, and this version knows formats up to 1";
    assert_eq!(told(&plain), refusal);
    let body = r#"{"format":2,"kind":"run.opened","seq":"zero","#;
    let crc = crc32fast::hash(body.as_bytes());
    let strange = format!("{body}\"crc\":\"{crc:08x}\"}}\n");
    assert_eq!(told(strange.as_bytes()), refusal);
    let error = read(plain.as_slice()).unwrap_err();
    assert!(matches!(error, ReadError::NewerFormat { found: 2, known: 1 }));
    assert!(error.hint().contains("newer"));
}

#[test]
fn many_damaged_lines_are_counted_and_the_first_hundred_described() {
    let batches: Vec<u64> = (0..400).collect();
    let journal = written(&batches);
    let mut bytes = journal.bytes();
    for hit in (1..=300).step_by(2) {
        bytes[journal.offset(hit) + 9] ^= 1;
    }
    let Rest::Damaged(lines) = read(bytes.as_slice()).unwrap().1.rest else { panic!() };
    assert_eq!((lines.listed.len(), lines.more), (100, 50));
    assert_eq!(lines.listed[99].line, 200);
}

#[test]
fn an_error_of_the_source_is_passed_on() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("cable"))
        }
    }
    let bytes = written(&[0, 1]).bytes();
    assert!(matches!(read(bytes.chain(Broken)), Err(ReadError::Source(_))));
}
