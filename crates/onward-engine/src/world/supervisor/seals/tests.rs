//! The log cut, flipped and continued.

use onward_core::{evidence::Ending, mark::Nonce};

use super::*;

fn opened(boot_id: &str) -> Line {
    Line::Opened(Opened {
        pid: 7,
        start_time: 70,
        boot_id: boot_id.into(),
        version: "1".into(),
        at: Timestamp::from_micros(1),
        spot: Spot::of(Path::new("/")).ok(),
    })
}

fn lines() -> Vec<Line> {
    let step = Address::from_text("round[1]/a");
    let at = Timestamp::from_micros(1_794_766_801_123_456);
    let check = Some(Ending::NotStarted { why: "line\nbreak, \u{2028} and \"crc\":\"".into() });
    let nonce = Nonce::of("r-1", 1, 7, at);
    let mark = Mark { run: "r-1".into(), epoch: 1, nonce };
    vec![
        opened("boot-1"),
        Line::Spawning(Spawning { step: step.clone(), attempt: 1, at, of: Some(mark.clone()) }),
        Line::Spawned(Spawned { step: step.clone(), attempt: 1, pid: 9, start_time: 90, at }),
        Line::OutputLost(OutputLost {
            step: step.clone(),
            attempt: 1,
            stream: "out".into(),
            why: "full".into(),
        }),
        Line::Exited(Seal {
            step,
            attempt: 1,
            at,
            ending: Ending::Exited { code: 0 },
            check,
            after: None,
            of: Some(mark.clone()),
            settled: true,
        }),
    ]
}

fn encoded(lines: &[Line]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        encode(line, &mut bytes);
    }
    bytes
}

#[test]
fn a_log_cut_at_any_byte_reads_as_a_prefix() {
    let lines = lines();
    let bytes = encoded(&lines);
    for cut in 0..=bytes.len() {
        let read = decode(&bytes[..cut]);
        assert!(lines.starts_with(&read.lines), "cut at {cut}");
        assert!(read.damaged.is_empty(), "cut at {cut}");
        // A last line whose checksum is right needs no newline.
        let whole = bytes[..cut].split(|byte| *byte == b'\n').count() - 1;
        let only_newline_missing = bytes.get(cut) == Some(&b'\n');
        assert_eq!(read.lines.len(), whole + usize::from(only_newline_missing), "cut at {cut}");
        let torn = cut > 0 && bytes[cut - 1] != b'\n' && !only_newline_missing;
        assert_eq!(read.torn.len(), usize::from(torn), "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_never_goes_unseen() {
    let lines = lines();
    let bytes = encoded(&lines);
    for (index, bit) in (0..bytes.len()).flat_map(|index| (0..8).map(move |bit| (index, bit))) {
        let mut flipped = bytes.clone();
        flipped[index] ^= 1 << bit;
        let read = decode(&flipped);
        let seen = !read.damaged.is_empty() || !read.torn.is_empty();
        assert!(seen || read.lines == lines, "byte {index} bit {bit}: {:?}", read.lines);
        assert!(read.lines.iter().all(|line| lines.contains(line)), "byte {index} bit {bit}");
    }
}

#[test]
fn bad_bytes_inside_a_life_are_damage_and_at_its_end_only_torn() {
    let all = lines();
    let offset = encoded(&all[..1]).len() as u64;
    let bad = Unreadable { line: 2, offset, bytes: 4, is_cut: true };
    let inside = [encoded(&all[..1]), b"\0\0{\n".to_vec(), encoded(&all[1..])].concat();
    let read = decode(&inside);
    assert_eq!((read.lines, read.damaged, read.torn), (all.clone(), vec![bad], vec![]));
    let between = [encoded(&all[..1]), b"\0\0{\n".to_vec(), encoded(&all)].concat();
    let read = decode(&between);
    assert_eq!((read.damaged, read.torn), (vec![], vec![bad]));
}

#[test]
fn a_line_that_may_have_been_a_seal_is_doubted() {
    let all = lines();
    let doubtful = |bytes: &[u8]| decode(bytes).doubtful();
    let whole = encoded(&all);
    assert_eq!(doubtful(&whole), [0_u64; 0]);
    let seal = encoded(&all[..4]).len();
    for (at, bit) in (seal..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << bit;
        let is_read = decode(&flipped).lines == all;
        assert!(is_read || !doubtful(&flipped).is_empty(), "byte {at} bit {bit}");
    }
    for cut in seal..whole.len() - 3 {
        assert_eq!(doubtful(&whole[..cut]), [0_u64; 0], "it was never written: {cut}");
    }
}

#[test]
fn a_new_life_after_a_torn_end_loses_nothing_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("exits.jsonl");
    let all = lines();
    let bytes = encoded(&all);
    for cut in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let before = read_seals(&path, None).unwrap().lines;
        let Line::Opened(opened) = opened("boot-2") else { unreachable!() };
        let mut log = Log::open(&path, || false, opened.clone()).unwrap();
        log.append(&all[1]).unwrap();
        assert_eq!(log.bytes(), std::fs::metadata(&path).unwrap().len());
        let after = read_seals(&path, None).unwrap();
        let expected = [before, vec![Line::Opened(opened), all[1].clone()]].concat();
        assert_eq!(after.lines, expected, "cut at {cut}");
        assert!(after.damaged.is_empty(), "cut at {cut}");
    }
}

#[test]
fn a_log_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("exits.jsonl");
    let Line::Opened(opened) = opened("b") else { unreachable!() };
    let first = Log::open(&path, || true, opened.clone()).unwrap();
    assert!(matches!(Log::open(&path, || true, opened.clone()), Err(OpenError::Held)));
    drop(first);
    assert!(Log::open(&path, || false, opened).is_ok());
}

/// As one leaves it that is killed between the fork and the execution of a child.
#[test]
fn a_log_that_no_living_supervisor_keeps_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("exits.jsonl");
    let Line::Opened(opened) = opened("b") else { unreachable!() };
    let left = std::cell::Cell::new(Some(Log::open(&path, || true, opened.clone()).unwrap()));
    let is_kept = || {
        drop(left.take());
        false
    };
    assert!(Log::open(&path, is_kept, opened).is_ok());
}

#[test]
fn an_unknown_kind_is_kept_and_an_older_boot_proves_nothing() {
    let mut bytes = b"{\"kind\":\"later\",\"tree\":\"t\",".to_vec();
    let crc = crc32fast::hash(&bytes);
    bytes.extend(format!("\"crc\":\"{crc:08x}\"}}\n").bytes());
    assert_eq!(decode(&bytes).lines, [Line::Unknown("later".into())]);
    let read = decode(&encoded(&lines()));
    let kin = |boot: &str, dir: &str| read.kin_since_boot(boot, Path::new(dir)).0.len();
    assert_eq!([kin("boot-1", "/"), kin("boot-2", "/"), kin("boot-1", "/proc")], [1, 0, 0]);
    assert_eq!(read.seals().count(), 1);
}

#[test]
fn b1_after_a_restart_a_success_counts_only_if_what_it_left_was_on_the_disk() {
    let counts = |settled, code, boot: &str| {
        let mut lines = lines();
        if let Some(Line::Exited(seal)) = lines.last_mut() {
            (seal.settled, seal.ending, seal.check) = (settled, Ending::Exited { code }, None);
        }
        // A later life says nothing about the seals of an earlier one.
        lines.push(opened("boot-2"));
        let read = decode(&encoded(&lines));
        let (counting, unsettled) = read.seals_in_boot(boot);
        assert_eq!(counting.len() + unsettled.len(), 1);
        counting.len() == 1
    };
    for boot in ["boot-1", "boot-2"] {
        assert!(counts(true, 0, boot) && counts(false, 3, boot), "{boot}");
    }
    assert!(counts(false, 0, "boot-1"));
    assert!(!counts(false, 0, "boot-2"));
}

#[test]
fn the_tree_after_an_attempt_is_read_as_part_of_its_seal() {
    let step = Address::from_text("round[1]/a");
    let mut lines = lines();
    let at = Timestamp::default();
    let after = Some("0123".to_owned());
    let snapshot = |attempt, after| Snapshot { step: step.clone(), attempt, at, after, why: None };
    lines.push(Line::Snapshot(snapshot(2, Some("of another".into()))));
    let sealed = |lines: &[Line]| decode(&encoded(lines)).seals().next().unwrap().after.clone();
    assert_eq!(sealed(&lines), None);
    lines.push(Line::Snapshot(snapshot(1, after.clone())));
    assert_eq!(sealed(&lines), after);
}

#[test]
fn a_missing_log_is_empty_and_a_welcome_sees_only_its_own_part() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("exits.jsonl");
    assert_eq!(read_seals(&path, None).unwrap(), Seals::default());
    let all = lines();
    std::fs::write(&path, encoded(&all)).unwrap();
    let part = encoded(&all[..2]).len() as u64;
    assert_eq!(read_seals(&path, Some(part)).unwrap().lines, all[..2]);
}
