//! What of a damaged journal can still be read: its good beginning, and records behind the damage.
//!
//! Invariant: a record is believed only if its checksum is right and no other record has its
//! number, so that nothing is taken twice.

use std::collections::BTreeMap;

use onward_core::{
    event::{Event, Record},
    journal::{ReadError, Reader, decode_line},
};

/// A journal, as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct Readable {
    /// Records from the first on, without a gap.
    pub(super) prefix: Vec<Record>,
    /// How many bytes they take.
    pub(super) prefix_bytes: usize,
    /// Readable records behind the first damage, in order.
    pub(super) later: Vec<Later>,
    pub(super) damage: Vec<Damaged>,
}

#[derive(Debug)]
pub(super) struct Later {
    pub(super) record: Record,
    /// Something is missing before it.
    pub(super) after_gap: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damaged {
    /// Counted from 1, as editors do.
    pub(super) line: u64,
    pub(super) why: String,
}

/// Reads what can be read. Fails only for a journal that is beyond this version.
pub(super) fn read(bytes: &[u8]) -> Result<Readable, ReadError> {
    let mut reader = Reader::new(bytes);
    let mut found = Readable::default();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => found.prefix.push(record),
            Ok(None) => break,
            Err(error @ (ReadError::Source(_) | ReadError::NewerFormat { .. })) => {
                return Err(error);
            }
            Err(ReadError::Empty) => return Ok(found),
            Err(ReadError::FirstLine(_) | ReadError::NotOpened) => {
                found.prefix.clear();
                scan(bytes, 0, 1, &mut found);
                return Ok(found);
            }
        }
    }
    let tail = reader.tail()?;
    found.prefix_bytes = usize::try_from(tail.mark.offset).unwrap_or(bytes.len()).min(bytes.len());
    // Half of the last batch is no damage: the next resume cuts it off.
    if let onward_core::journal::Rest::Damaged(_) = tail.rest {
        let line = tail.mark.next_seq + 1;
        scan(&bytes[found.prefix_bytes..], tail.mark.next_seq, line, &mut found);
    }
    Ok(found)
}

/// Looks at each line behind the prefix, for what it is worth by itself. Numbers tell the order,
/// wherever a line stands.
fn scan(bytes: &[u8], next_seq: u64, first_line: u64, found: &mut Readable) {
    let mut records: BTreeMap<u64, Option<Record>> = BTreeMap::new();
    let mut highest = next_seq;
    for (line, text) in (first_line..).zip(bytes.split(|byte| *byte == b'\n')) {
        let Some(text) = without_nuls(text) else { continue };
        let mut damaged = |why: String| found.damage.push(Damaged { line, why });
        let record = match last_record(text) {
            Ok(record) => record,
            Err(error) => {
                damaged(error.to_string());
                continue;
            }
        };
        let seq = record.seq;
        if seq < highest {
            damaged(format!("record {seq} stands where record {highest} should be"));
        }
        highest = highest.max(seq + 1);
        // The run was opened once; whatever opens it again is not of this run.
        let opens_again = seq > 0 && matches!(record.event, Event::RunOpened(_));
        if seq < next_seq || opens_again {
            continue;
        }
        match records.get_mut(&seq) {
            None => {
                records.insert(seq, Some(record));
            }
            // Two that say the same are one; two that do not are none.
            Some(other) if other.as_ref() != Some(&record) => *other = None,
            Some(_) => {}
        }
    }
    add(records.into_values().flatten(), next_seq, found);
}

/// Takes records in the order of their numbers, and notes what is missing between them.
fn add(records: impl Iterator<Item = Record>, next_seq: u64, found: &mut Readable) {
    let unreadable = found.damage.len() as u64;
    let mut expected = next_seq;
    let mut epoch = 0;
    for record in records {
        // A driver that had been replaced wrote it.
        if record.epoch < epoch {
            continue;
        }
        epoch = record.epoch;
        let missing = record.seq - expected;
        // As many lines cannot be read: those are they.
        if missing > unreadable {
            let line = expected + 1;
            let why = format!("records {expected} to {} are missing", record.seq - 1);
            found.damage.push(Damaged { line, why });
        }
        expected = record.seq + 1;
        found.later.push(Later { record, after_gap: missing > 0 });
    }
    found.damage.sort_by_key(|it| it.line);
}

/// The bytes between NULs that come last; `None` for a line of nothing else.
fn without_nuls(line: &[u8]) -> Option<&[u8]> {
    line.split(|byte| *byte == 0).rev().find(|part| !part.is_empty())
}

/// The record of a line, or the one at its end whose newline was lost.
fn last_record(line: &[u8]) -> Result<Record, onward_core::journal::LineError> {
    const START: &[u8] = br#"{"seq":"#;
    decode_line(line).or_else(|error| {
        let starts = (1..line.len()).filter(|at| line[*at..].starts_with(START));
        starts.rev().find_map(|at| decode_line(&line[at..]).ok()).ok_or(error)
    })
}

#[cfg(test)]
mod tests {
    use onward_core::{journal::encode, time::Timestamp};

    use super::*;

    fn note(seq: u64) -> Vec<u8> {
        let event = Event::Note { text: format!("note {seq}"), step: None };
        line(seq, event)
    }

    fn line(seq: u64, event: Event) -> Vec<u8> {
        let at = Timestamp::from_micros(7);
        let mut line = Vec::new();
        encode(&Record { seq, at, epoch: 1, batch: seq + 1, event }, &mut line).unwrap();
        line
    }

    fn journal() -> Vec<Vec<u8>> {
        let opened = onward_core::event::RunOpened {
            format: 1,
            run: "r-1".parse().unwrap(),
            workflow: "w".into(),
            workflow_hash: onward_core::digest::Digest::of(b"w"),
            file: None,
            inputs: [].into(),
            git: None,
            engine: "0".into(),
            boot_id: "b".into(),
            mode: onward_core::event::Mode::Autopilot,
        };
        let first = line(0, Event::RunOpened(Box::new(opened)));
        std::iter::once(first).chain((1..8).map(note)).collect()
    }

    /// `0 1 2 | 4 5` with a bar where something is missing.
    fn told(bytes: &[u8]) -> String {
        let found = read(bytes).unwrap();
        let mut words: Vec<String> = found.prefix.iter().map(|it| it.seq.to_string()).collect();
        for later in &found.later {
            words.extend(later.after_gap.then(|| "|".to_owned()));
            words.push(later.record.seq.to_string());
        }
        words.join(" ")
    }

    #[test]
    fn a_whole_journal_is_all_prefix() {
        assert_eq!(told(&journal().concat()), "0 1 2 3 4 5 6 7");
        assert_eq!(told(b""), "");
        assert_eq!(read(&journal().concat()).unwrap().damage, []);
    }

    #[test]
    fn whatever_is_readable_behind_the_damage_is_found() {
        let lines = journal();
        for lost in 0..7 {
            let mut flipped = lines.clone();
            flipped[lost][30] ^= 1;
            let mut expected: Vec<String> = (0..8).map(|it: usize| it.to_string()).collect();
            expected[lost] = "|".to_owned();
            assert_eq!(told(&flipped.concat()), expected.join(" "));
            let found = read(&flipped.concat()).unwrap();
            assert_eq!(found.damage.len(), 1);
            assert_eq!(found.damage[0].line, lost as u64 + 1);
        }
        let middle = [lines[..2].concat(), lines[5..].concat()].concat();
        assert_eq!(told(&middle), "0 1 | 5 6 7");
    }

    #[test]
    fn a_lost_newline_or_a_block_of_nuls_hides_no_other_record() {
        let mut lines = journal();
        lines[2].pop();
        assert_eq!(told(&lines.concat()), "0 1 | 3 4 5 6 7");
        let mut lines = journal();
        lines[2].fill(0);
        lines[3][..10].fill(0);
        assert_eq!(told(&lines.concat()), "0 1 | 4 5 6 7");
    }

    #[test]
    fn a_record_that_comes_again_is_not_taken_twice() {
        let mut lines = journal();
        lines.insert(4, note(1));
        assert_eq!(told(&lines.concat()), "0 1 2 3 4 5 6 7");
        assert_eq!(read(&lines.concat()).unwrap().damage.len(), 1);
        // Two that claim one number and differ are none.
        let mut lines = journal();
        lines.insert(6, line(5, Event::Note { text: "another".into(), step: None }));
        assert_eq!(told(&lines.concat()), "0 1 2 3 4 5 6 7", "the first was in order");
        lines[3][30] ^= 1;
        assert_eq!(told(&lines.concat()), "0 1 2 | 4 | 6 7");
    }

    #[test]
    fn lines_in_the_wrong_order_are_put_right() {
        let mut lines = journal();
        lines.swap(2, 6);
        assert_eq!(told(&lines.concat()), "0 1 2 3 4 5 6 7");
        assert!(!read(&lines.concat()).unwrap().damage.is_empty());
    }

    #[test]
    fn half_a_last_record_is_no_damage() {
        let mut bytes = journal().concat();
        bytes.truncate(bytes.len() - 5);
        assert_eq!(told(&bytes), "0 1 2 3 4 5 6");
        assert_eq!(read(&bytes).unwrap().damage, []);
    }
}
