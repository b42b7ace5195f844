//! One line to one record.
//!
//! Invariant: a line whose checksum is wrong is never looked into. Two ways lead to a record, the
//! quick one of [`scan`](super::scan) and the general one here, and where both find one, it is the
//! same.

use serde::Deserialize;

use super::scan;
use crate::{
    event::{Event, Record},
    time::Timestamp,
    words,
};

/// Why a line is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("it does not end in a checksum")]
    NoChecksum,
    #[error("its checksum should be {should:08x}")]
    WrongChecksum { should: u32 },
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is not a record we know: {0}")]
    NotARecord(String),
}

const CHECKSUM_LABEL: &[u8] = br#","crc":""#;
const CHECKSUM_LEN: usize = CHECKSUM_LABEL.len() + 8 + 2;

/// Reads one line, without its newline.
#[inline]
pub fn decode_line(line: &[u8]) -> Result<Record, LineError> {
    let body_len = checked_body_len(line)?;
    let text = std::str::from_utf8(line).map_err(|_| LineError::NotUtf8)?;
    match scan::record(&text[..body_len]) {
        Some(record) => Ok(record),
        None => general(text),
    }
}

/// The length of what comes before `,"crc":"…"}`, when the checksum is right.
#[inline]
fn checked_body_len(line: &[u8]) -> Result<usize, LineError> {
    let body_len = line.len().checked_sub(CHECKSUM_LEN).ok_or(LineError::NoChecksum)?;
    let (body, tail) = line.split_at(body_len);
    let written = tail.strip_prefix(CHECKSUM_LABEL).and_then(|rest| rest.strip_suffix(br#""}"#));
    let written = written.and_then(|digits| words::hex(digits.try_into().ok()?));
    let written = written.ok_or(LineError::NoChecksum)?;
    // The comma that follows is part of what the checksum covers.
    let should = crc32fast::hash(&line[..=body.len()]);
    if written == should { Ok(body_len) } else { Err(LineError::WrongChecksum { should }) }
}

/// The format that an opening line claims, even when the rest of it is beyond us.
pub(super) fn format_of_opening(line: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Opening {
        kind: String,
        format: u32,
    }
    checked_body_len(line).ok()?;
    let opening: Opening = serde_json::from_slice(line).ok()?;
    (opening.kind == "run.opened").then_some(opening.format)
}

/// Any order of fields, and fields we do not know: what a later version of this format may write.
pub(super) fn general(text: &str) -> Result<Record, LineError> {
    #[derive(Deserialize)]
    struct Header {
        seq: u64,
        at: Timestamp,
        epoch: u32,
        batch: u64,
    }
    let refused = |error: serde_json::Error| LineError::NotARecord(error.to_string());
    let Header { seq, at, epoch, batch } = serde_json::from_str(text).map_err(refused)?;
    let event: Event = serde_json::from_str(text).map_err(refused)?;
    Ok(Record { seq, at, epoch, batch, event })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        digest::Digest,
        journal::{arbitrary::any_record, encode},
    };

    /// A line with the right checksum for `body`, which ends before the last comma.
    fn sealed(body: &str) -> Vec<u8> {
        let crc = crc32fast::hash(format!("{body},").as_bytes());
        format!(r#"{body},"crc":"{crc:08x}"}}"#).into_bytes()
    }

    /// The kinds the quick way must not give up on.
    fn is_frequent(event: &Event) -> bool {
        match event {
            Event::AttemptStarted(_)
            | Event::AttemptFinished(_)
            | Event::AttemptSession { .. }
            | Event::GroupExpanded { .. }
            | Event::LoopTurned { .. }
            | Event::LoopEnded { .. }
            | Event::StepSkipped { .. }
            | Event::Note { .. } => true,
            // The smallest amounts and the largest are written with an exponent.
            Event::AttemptSpent { spent, .. } => {
                spent.usd.is_none_or(|usd| (100..1_000_000_000_000_000).contains(&usd.0))
            }
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunResumed(_)
            | Event::RunPaused { .. }
            | Event::RunEnded { .. }
            | Event::RunArchived { .. }
            | Event::StepInvalidated { .. }
            | Event::AttemptLost { .. }
            | Event::AttemptAdopted(_)
            | Event::AttemptVerified(_)
            | Event::GateOpened { .. }
            | Event::GateDecided { .. }
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. } => false,
        }
    }

    const NOTE: &str = concat!(
        r#"{"seq":7,"at":"2026-11-15T18:20:01.123456Z","epoch":2,"batch":5,"#,
        r#""kind":"note","text":"hi""#,
    );

    #[test]
    fn any_order_of_fields_and_unknown_fields_are_read() {
        let plain = decode_line(&sealed(NOTE)).unwrap();
        let later = concat!(
            r#"{"kind":"note","mood":{"a":[1]},"text":"hi","batch":5,"epoch":2,"seq":7,"#,
            r#""at":"2026-11-15T19:20:01.123456+01:00""#,
        );
        assert_eq!(decode_line(&sealed(later)), Ok(plain.clone()));
        let spaced = NOTE.replace(':', ": ").replace("18: 20: 01", "18:20:01");
        assert_eq!(decode_line(&sealed(&spaced)), Ok(plain));
    }

    #[test]
    fn a_line_says_what_is_wrong_with_it() {
        assert_eq!(decode_line(b""), Err(LineError::NoChecksum));
        assert_eq!(decode_line(NOTE.as_bytes()), Err(LineError::NoChecksum));
        let good = sealed(NOTE);
        let upper = good.to_ascii_uppercase();
        assert_eq!(decode_line(&upper), Err(LineError::NoChecksum));
        let mut wrong = good.clone();
        wrong[8] ^= 1;
        assert!(matches!(decode_line(&wrong), Err(LineError::WrongChecksum { .. })));
        let unknown = sealed(&NOTE.replace("note", "nota"));
        assert!(matches!(decode_line(&unknown), Err(LineError::NotARecord(_))));
        let mut broken = NOTE.as_bytes().to_vec();
        broken[NOTE.len() - 2] = 0xff;
        broken.push(b',');
        let crc = crc32fast::hash(&broken);
        broken.extend(format!(r#""crc":"{crc:08x}"}}"#).bytes());
        assert_eq!(decode_line(&broken), Err(LineError::NotUtf8));
    }

    /// Lines not quite as we write them: the quick way must read them alike, or not at all.
    #[test]
    fn the_quick_way_does_not_take_what_only_looks_like_ours() {
        let head = NOTE.split_once(r#""note""#).unwrap().0;
        let started = |key: &str, argv: &str| {
            let step = r#""attempt.started","step":"a","attempt":1"#;
            format!(r#"{step},"key":{key},"argv":{argv}"#)
        };
        let (plain, hash) = (r#"{"definition":{"a":"b"}}"#, Digest::of(b"x"));
        let spent = |usd: &str| {
            let step = r#""attempt.spent","step":"a","attempt":1"#;
            let tokens = r#""input_tokens":1,"output_tokens":1,"cache_read_tokens":1"#;
            format!(r#"{step},{tokens},"cache_write_tokens":1,"usd":{usd}"#)
        };
        let reads = |first: &str, second: &str| {
            format!(r#"{{"reads":{{"{first}":"{hash}","{second}":"{hash}"}}}}"#)
        };
        assert!(scan::record(&format!("{head}{}", started(plain, "[]"))).is_some());
        for event in [
            r#""loop.turned","step":"a","turn":01"#.to_owned(),
            r#""loop.turned","step":"a","turn":1.0"#.to_owned(),
            r#""loop.turned","step":"a","turn":"#.to_owned(),
            r#""loop.turned","step":"a","turn":4294967296"#.to_owned(),
            r#""step.skipped","step":"a\x","reason":""#.to_owned(),
            "\"note\",\"text\":\"a\tb\"".to_owned(),
            spent("1."),
            spent("0.1234567"),
            spent("nul"),
            started(plain, r#"["\/"]"#),
            started(plain, r#"["\u0008"]"#),
            started(plain, r#"["\u0009"]"#),
            started(plain, r#"["\u001F"]"#),
            started(plain, r#"["\u00e9"]"#),
            started(plain, r#"["\x"]"#),
            started(plain, "[1]"),
            started(plain, "[ ]"),
            started("{}", r#"["a",]"#),
            started(r#"{"definition":{}}"#, "[]"),
            started(r#"{"agent":{"a":"b"},"definition":{"a":"b"}}"#, "[]"),
            started(r#"{"definition":{"a":"b"},"more":1}"#, "[]"),
            started(r#"{"definition":{"\u0061":"b"}}"#, "[]"),
            started(&reads("b", "a"), "[]"),
            started(&reads("a", "a"), "[]"),
            format!(r#"{},"saved":{{"b":null,"a":null}}"#, started(plain, "[]")),
        ] {
            let body = format!("{head}{event}");
            let read = general(&format!("{body}}}"));
            let scanned = scan::record(&body);
            assert!(scanned.is_none() || scanned == read.clone().ok(), "{event}\n{read:?}");
        }
    }

    #[test]
    fn the_quick_way_reads_the_largest_number_and_gives_up_beyond_it() {
        for (seq, is_read) in [
            ("9999999999999999999", true),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("100000000000000000000", false),
        ] {
            let body = NOTE.replacen('7', seq, 1);
            let scanned = scan::record(&body);
            assert_eq!(scanned.map(|it| it.seq), seq.parse().ok(), "{seq}");
            assert_eq!(general(&format!("{body}}}")).is_ok(), is_read, "{seq}");
        }
    }

    #[test]
    fn an_opening_of_a_later_format_is_known_by_its_number() {
        let opening = sealed(r#"{"seq":0,"kind":"run.opened","format":9,"new":1"#);
        assert_eq!(format_of_opening(&opening), Some(9));
        assert_eq!(format_of_opening(&sealed(NOTE)), None);
        assert_eq!(format_of_opening(br#"{"kind":"run.opened","format":9}"#), None);
    }

    proptest! {
        #[test]
        fn every_record_reads_back_as_it_was_written(record in any_record()) {
            let mut line = Vec::new();
            encode(&record, &mut line).unwrap();
            prop_assert_eq!(line.pop(), Some(b'\n'));
            prop_assert!(!line.contains(&b'\n'));
            prop_assert_eq!(decode_line(&line), Ok(record));
        }

        #[test]
        fn the_quick_way_and_the_general_way_agree(record in any_record()) {
            let mut line = Vec::new();
            encode(&record, &mut line).unwrap();
            let text = std::str::from_utf8(&line[..line.len() - 1]).unwrap();
            prop_assert_eq!(general(text), Ok(record.clone()));
            let scanned = scan::record(&text[..text.len() - CHECKSUM_LEN]);
            prop_assert!(scanned.is_some() || !is_frequent(&record.event));
            prop_assert!(scanned.is_none_or(|scanned| scanned == record));
        }

        /// The quick way may give up on a changed line, but must not read what the other refuses.
        #[test]
        fn what_the_quick_way_reads_the_general_way_reads_too(
            record in any_record(),
            at in any::<prop::sample::Index>(),
            put in prop::sample::select(br#"",:{}[]\0123456789eE.-+null tf"#.to_vec()),
        ) {
            let mut line = Vec::new();
            encode(&record, &mut line).unwrap();
            let mut body = line[..line.len() - 1 - CHECKSUM_LEN].to_vec();
            let at = at.index(body.len());
            body[at] = put;
            let Ok(body) = String::from_utf8(body) else { return Ok(()) };
            if let Some(scanned) = scan::record(&body) {
                prop_assert_eq!(general(&format!("{body}}}")), Ok(scanned));
            }
        }
    }
}
