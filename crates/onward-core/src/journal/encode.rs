//! Records to bytes.
//!
//! Invariant: one record is one line, ended by the only newline in it, and nothing is written that
//! [`decode_line`](super::decode_line) would not read back.

use std::io::Write as _;

use serde_json::Value;

use super::{RECORD_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::event::{Event, Record};

/// Why a record was not written. `out` is then as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("the record would be a line of {bytes} bytes, more than {RECORD_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("the record holds a value nested deeper than {VALUE_DEPTH_MAX} levels")]
    TooDeep,
}

impl EncodeError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "let the step write its result to a file and return the path",
            Self::TooDeep => "let the step return a flatter result",
        }
    }
}

/// Appends `record` to `out`, as one line with its newline.
pub fn encode(record: &Record, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if !nesting_is_bounded(&record.event) {
        return Err(EncodeError::TooDeep);
    }
    let start = out.len();
    let at = record.at.text();
    let at = std::str::from_utf8(&at).expect("digits and punctuation");
    let Record { seq, epoch, batch, .. } = record;
    write!(out, r#"{{"seq":{seq},"at":"{at}","epoch":{epoch},"batch":{batch}"#).expect(TAKES_ALL);

    // The event is an object of its own: its braces become the commas that join it to the line.
    let opening_brace = out.len();
    serde_json::to_writer(&mut *out, &record.event).expect("an event is plain JSON");
    let closing_brace = out.len() - 1;
    out[opening_brace] = b',';
    out[closing_brace] = b',';

    let crc = crc32fast::hash(&out[start..]);
    writeln!(out, r#""crc":"{crc:08x}"}}"#).expect(TAKES_ALL);

    let bytes = out.len() - start;
    if bytes > RECORD_BYTES_MAX {
        out.truncate(start);
        return Err(EncodeError::TooLong { bytes });
    }
    Ok(())
}

const TAKES_ALL: &str = "a vector takes all";

/// Whether a value is flat enough for a record.
pub fn is_flat_enough(value: &Value) -> bool {
    is_within(value, VALUE_DEPTH_MAX)
}

fn nesting_is_bounded(event: &Event) -> bool {
    let bounded = is_flat_enough;
    match event {
        Event::RunOpened(opened) => opened.inputs.values().all(bounded),
        Event::GroupExpanded { items, .. } => items.iter().all(|item| bounded(&item.value)),
        Event::AttemptFinished(finished) => finished.result.as_ref().is_none_or(bounded),
        Event::AttemptAdopted(adopted) => adopted.result.as_ref().is_none_or(bounded),
        Event::RunAdopted { .. }
        | Event::RunResumed(_)
        | Event::RunPaused { .. }
        | Event::RunEnded { .. }
        | Event::RunArchived { .. }
        | Event::LoopTurned { .. }
        | Event::LoopEnded { .. }
        | Event::StepSkipped { .. }
        | Event::StepInvalidated { .. }
        | Event::AttemptStarted(_)
        | Event::AttemptSession { .. }
        | Event::AttemptSpent { .. }
        | Event::AttemptLost { .. }
        | Event::AttemptVerified(_)
        | Event::GateOpened { .. }
        | Event::GateDecided { .. }
        | Event::EffectIntended { .. }
        | Event::EffectSettled { .. }
        | Event::NativeExported { .. }
        | Event::LimitHit { .. }
        | Event::BudgetHit { .. }
        | Event::WorkflowChanged { .. }
        | Event::JournalRepaired { .. }
        | Event::Note { .. } => true,
    }
}

fn is_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|it| is_within(it, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|it| is_within(it, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{address::Address, event::Item, time::Timestamp};

    fn record(event: Event) -> Record {
        let at = "2026-11-15T18:20:01.123456Z".parse::<Timestamp>().unwrap();
        Record { seq: 7, at, epoch: 2, batch: 5, event }
    }

    fn note(text: &str) -> Record {
        record(Event::Note { text: text.into(), step: None })
    }

    #[test]
    fn a_record_is_one_line_with_the_checksum_of_all_before_it() {
        let mut out = b"before\n".to_vec();
        encode(&note("a\n\"b\"\u{2028}\0"), &mut out).unwrap();
        let head = r#"{"seq":7,"at":"2026-11-15T18:20:01.123456Z","epoch":2,"batch":5,"kind":"note",
"text":"a\n\"b\"@\u0000","#;
        let head = head.replace(",\n", ",").replace('@', "\u{2028}");
        let crc = crc32fast::hash(head.as_bytes());
        let expected = format!("before\n{head}\"crc\":\"{crc:08x}\"}}\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_checksum_is_the_common_one() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_record_that_could_not_be_read_back_is_not_written() {
        let mut out = b"before".to_vec();
        let long = note(&"x".repeat(RECORD_BYTES_MAX));
        assert!(matches!(encode(&long, &mut out), Err(EncodeError::TooLong { .. })));
        assert_eq!(out, b"before");

        let nested = |levels| (0..levels).fold(Value::Null, |value, _| Value::from(vec![value]));
        let expanded = |value| {
            let items = vec![Item { key: "a".into(), value, after: vec![] }];
            let needs = std::collections::BTreeMap::new();
            record(Event::GroupExpanded { step: Address::from_text("g"), items, needs })
        };
        let too_deep = expanded(nested(VALUE_DEPTH_MAX + 1));
        assert_eq!(encode(&too_deep, &mut out), Err(EncodeError::TooDeep));
        assert_eq!(out, b"before");

        out.clear();
        let deep = expanded(nested(VALUE_DEPTH_MAX));
        encode(&deep, &mut out).unwrap();
        assert_eq!(super::super::decode_line(out.trim_ascii_end()), Ok(deep));
    }
}
