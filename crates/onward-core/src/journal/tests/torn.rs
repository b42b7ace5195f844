//! What a power cut or a bad disk leaves: told apart, and never read as something else.

use proptest::prelude::*;

use super::{is_damaged, read, told, written};
use crate::journal::{LineError, ReadError, Rest, Tail, decode_line};

#[test]
fn a_journal_cut_anywhere_loads_as_a_prefix_and_truncation_is_stable() {
    let journal = written(&[0, 1, 1, 2]);
    let bytes = journal.bytes();
    for cut in 0..=bytes.len() {
        let loaded = read(&bytes[..cut]);
        if cut < journal.lines[0].len() - 1 {
            assert!(matches!(loaded, Err(ReadError::Empty | ReadError::FirstLine(_))), "{cut}");
            continue;
        }
        let (records, tail) = loaded.unwrap();
        // A line counts with or without its newline.
        let whole = (1..=4).filter(|line| journal.offset(*line) - 1 <= cut).count();
        assert_eq!(records, journal.records[..whole], "cut at {cut}");
        assert!(!is_damaged(&tail), "cut at {cut}");
        assert_eq!(tail.missing_newline, cut == journal.offset(whole) - 1, "cut at {cut}");

        let kept = usize::try_from(tail.mark.offset).unwrap();
        let (again, stable) = read(&bytes[..kept]).unwrap();
        assert_eq!(again, records);
        assert_eq!(stable, Tail { rest: Rest::Clean, ..tail }, "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_never_changes_a_record_and_before_the_last_batch_it_is_damage() {
    let journal = written(&[0, 1, 2, 2, 3, 4, 4]);
    let bytes = journal.bytes();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let hit = journal.line_at(bit / 8);
        let Ok((records, tail)) = read(flipped.as_slice()) else {
            assert_eq!(hit, 0, "bit {bit}");
            continue;
        };
        assert_ne!(hit, 0, "bit {bit}");
        assert!(journal.records.starts_with(&records), "bit {bit}");
        // Where the newline became a NUL, the line before it still counts.
        assert!(records.len() == hit || records.len() == hit + 1, "bit {bit}");
        match &tail.rest {
            Rest::Clean => panic!("bit {bit} went unseen"),
            Rest::Torn(torn) => {
                assert_eq!(torn.line, hit as u64 + 1, "bit {bit}");
                assert_eq!(journal.records[hit].batch, 4, "bit {bit} was safe on disk");
            }
            Rest::Damaged(lines) => {
                assert_eq!((lines.listed.len(), lines.more), (1, 0), "bit {bit}: {lines:?}");
                assert_eq!(lines.listed[0].line, hit as u64 + 1, "bit {bit}");
                assert_ne!(hit, 6, "nothing follows bit {bit}");
            }
        }
    }
}

#[test]
fn nuls_at_the_end_are_free_space() {
    let journal = written(&[0, 1, 2]);
    for nuls in [1, 4096, 300_000] {
        let mut bytes = journal.bytes();
        bytes.resize(bytes.len() + nuls, 0);
        assert_eq!(told(&bytes), format!("3 records, {nuls} NULs, clean"));
    }
    let mut bytes = journal.bytes();
    bytes.pop();
    assert_eq!(told(&bytes), "3 records, no newline, clean");
    bytes.extend([0; 9]);
    assert_eq!(told(&bytes), "3 records, no newline, 9 NULs, clean");
    bytes.splice(journal.offset(2) + 5.., [0; 9]);
    assert_eq!(told(&bytes), "2 records, 9 NULs, torn on line 3: it does not end in a checksum");
}

#[test]
fn torn_bytes_end_where_free_space_begins() {
    let mut bytes = written(&[0, 1]).bytes();
    let (offset, end) = (bytes.len() as u64, bytes.len() as u64 + 4);
    bytes.extend(b"{\"se\0\0\0");
    let Rest::Torn(torn) = read(bytes.as_slice()).unwrap().1.rest else { panic!() };
    assert_eq!((torn.offset, torn.end), (offset, end));
}

#[test]
fn a_nul_block_in_the_middle_is_damage_wherever_it_lies() {
    let journal = written(&[0, 1, 2, 3, 4, 5]);
    let bytes = journal.bytes();
    // What it covers ends with line 3 at the latest, so that lines 4 and 5 prove it was safe.
    for start in journal.offset(1)..journal.offset(4) {
        for len in [1, 7, 64, 150] {
            if start + len > journal.offset(4) {
                continue;
            }
            let mut holed = bytes.clone();
            holed[start..start + len].fill(0);
            let (records, tail) = read(holed.as_slice()).unwrap();
            assert!(journal.records.starts_with(&records));
            assert!(is_damaged(&tail), "{len} NULs at {start}: {}", told(&holed));
        }
    }
}

#[test]
fn any_lost_pages_of_the_last_batch_are_a_torn_tail() {
    // The last batch is six records; what came before is safe.
    let journal = written(&[0, 1, 2, 3, 3, 3, 3, 3, 3]);
    let bytes = journal.bytes();
    let safe = journal.offset(3);
    for page in [64, 100, 256] {
        // Pages lie on the file's grid; the one that holds the end of the safe part is kept so far.
        let first_page = safe / page;
        let pages: Vec<_> = (first_page..bytes.len().div_ceil(page)).collect();
        for lost in 1_u32..1 << pages.len() {
            let mut left = bytes.clone();
            for (bit, number) in pages.iter().enumerate() {
                if lost >> bit & 1 == 1 {
                    let from = (number * page).max(safe);
                    left[from..bytes.len().min((number + 1) * page)].fill(0);
                }
            }
            let (records, tail) = read(left.as_slice()).unwrap();
            assert!(journal.records.starts_with(&records));
            assert!(records.len() >= 3, "pages {lost:b} of {page}");
            assert!(!is_damaged(&tail), "pages {lost:b} of {page}: {}", told(&left));
        }
    }
}

#[test]
fn lost_pages_before_a_later_batch_are_damage() {
    let journal = written(&[0, 1, 2, 2, 2, 3]);
    for lost in 2..5 {
        let mut bytes = journal.bytes();
        bytes[journal.offset(lost)..journal.offset(lost + 1)].fill(0);
        // Between two records of batch 2 it is certain; right before batch 3 it might be its pages.
        let told = told(&bytes);
        assert_eq!(told.contains("damaged"), lost != 4, "{told}");
    }
}

#[test]
fn unreadable_bytes_between_two_batches_are_damage_unless_pages_were_lost() {
    let journal = written(&[0, 1, 2, 2]);
    let mut bytes = journal.bytes();
    bytes[journal.offset(2) + 9] ^= 1;
    assert!(
        told(&bytes).starts_with("2 records, damaged line 3: its checksum"),
        "{}",
        told(&bytes)
    );
    bytes[journal.offset(2) + 9] = 0;
    assert!(told(&bytes).starts_with("2 records, torn on line 3"), "{}", told(&bytes));
}

#[test]
fn good_lines_of_the_last_batch_after_bad_ones_are_torn_too() {
    let journal = written(&[0, 1, 2, 2, 2, 2]);
    let mut bytes = journal.bytes();
    bytes[journal.offset(3) + 9] ^= 1;
    let (records, tail) = read(bytes.as_slice()).unwrap();
    assert_eq!(records, journal.records[..3]);
    let Rest::Torn(torn) = tail.rest else { panic!("{:?}", tail.rest) };
    assert_eq!((torn.offset, torn.end), (journal.offset(3) as u64, bytes.len() as u64));
}

#[test]
fn each_damaged_line_is_listed_once_and_a_gap_after_it_by_itself() {
    let journal = written(&[0, 1, 2, 3, 4, 5, 6]);
    let mut bytes = journal.bytes();
    bytes[journal.offset(2) + 9] = 0;
    bytes[journal.offset(2) + 19] = 0;
    bytes.drain(journal.offset(4)..journal.offset(5));
    let gap = "record 4 is missing before record 5";
    assert_eq!(
        told(&bytes),
        format!(
            "2 records, damaged line 3: it does not end in a checksum; line 5: {gap} and 0 more"
        )
    );
}

#[test]
fn a_torn_tail_after_damage_is_not_listed_as_damage() {
    let journal = written(&[0, 1, 2, 3, 4, 5, 5]);
    let mut bytes = journal.bytes();
    bytes[journal.offset(2) + 9] ^= 1;
    bytes[journal.offset(4) + 9] ^= 1;
    bytes[journal.offset(6) + 9] ^= 1;
    let Rest::Damaged(lines) = read(bytes.as_slice()).unwrap().1.rest else { panic!() };
    let numbers: Vec<_> = lines.listed.iter().map(|damage| damage.line).collect();
    assert_eq!(numbers, [3, 5]);
}

#[test]
fn a_record_whose_newline_was_lost_still_proves_that_a_later_batch_was_written() {
    let journal = written(&[0, 1, 2, 3]);
    let mut bytes = journal.bytes();
    bytes[journal.offset(3) - 1] = b' ';
    assert_eq!(
        told(&bytes),
        "2 records, damaged line 3: its checksum should be 00000000 and 0 more"
            .replace("00000000", &wrong_checksum(&bytes[journal.offset(2)..]))
    );
}

/// The checksum that a joined line should have had.
fn wrong_checksum(joined: &[u8]) -> String {
    match decode_line(joined.trim_ascii_end()) {
        Err(LineError::WrongChecksum { should }) => format!("{should:08x}"),
        other => panic!("{other:?}"),
    }
}

/// What may happen to a file.
#[derive(Clone, Debug)]
enum Mishap {
    Put(prop::sample::Index, u8),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Zero(prop::sample::Index, usize),
    Cut(prop::sample::Index),
}

fn mishap() -> impl Strategy<Value = Mishap> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Mishap::Put(at, byte)),
        (index(), 1..300_usize).prop_map(|(at, len)| Mishap::Remove(at, len)),
        (index(), 1..300_usize).prop_map(|(at, len)| Mishap::Repeat(at, len)),
        (index(), 1..300_usize).prop_map(|(at, len)| Mishap::Zero(at, len)),
        index().prop_map(Mishap::Cut),
    ]
}

impl Mishap {
    fn befall(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let bytes_len = bytes.len();
        let span = |at: &prop::sample::Index, len: usize| {
            let at = at.index(bytes_len);
            at..bytes_len.min(at + len)
        };
        match self {
            Self::Put(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Remove(at, len) => drop(bytes.drain(span(at, *len))),
            Self::Repeat(at, len) => {
                let span = span(at, *len);
                let again = bytes[span.clone()].to_vec();
                drop(bytes.splice(span.end..span.end, again));
            }
            Self::Zero(at, len) => bytes[span(at, *len)].fill(0),
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_befalls_a_journal_its_reader_gives_out_a_prefix_and_cutting_there_heals_it(
        mishaps in prop::collection::vec(mishap(), 0..4),
    ) {
        let journal = written(&[0, 1, 2, 2, 2, 3, 4, 4]);
        let mut bytes = journal.bytes();
        for mishap in &mishaps {
            mishap.befall(&mut bytes);
        }
        if let Ok((records, tail)) = read(bytes.as_slice()) {
            prop_assert!(journal.records.starts_with(&records));
            let kept = usize::try_from(tail.mark.offset).unwrap();
            let (again, healed) = read(&bytes[..kept]).unwrap();
            prop_assert_eq!(again, records);
            prop_assert_eq!(healed.rest, Rest::Clean);
        }
    }
}
