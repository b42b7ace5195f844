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
            waited: 7,
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

/// What the journal has: `a` and `b` done by their first attempt, `c` running.
fn told() -> State {
    use onward_core::state::{Phase, StepState};
    let mut state = State::default();
    for (step, phase) in [("a", Phase::Done), ("b", Phase::Done), ("c", Phase::Running)] {
        let entry = StepState { phase, attempts: 1, ..StepState::default() };
        state.steps.insert(Address::from_text(step), entry);
    }
    state
}

fn start(step: &str, attempt: u32) -> Line {
    let (step, at) = (Address::from_text(step), Timestamp::from_micros(5));
    Line::Spawning(Spawning { step, attempt, at, of: None })
}

fn end(step: &str, attempt: u32, code: i32) -> Line {
    let (step, at) = (Address::from_text(step), Timestamp::from_micros(9));
    let (ending, of) = (Ending::Exited { code }, None);
    Line::Exited(Seal {
        step,
        attempt,
        at,
        ending,
        check: None,
        after: None,
        of,
        settled: false,
        waited: 0,
    })
}

#[test]
fn start_and_end_of_what_the_journal_has_as_done_are_passed_over() {
    let snapshot = |step: &str| {
        let (step, at) = (Address::from_text(step), Timestamp::from_micros(10));
        let after = Some("x".to_owned());
        Line::Snapshot(Snapshot { step, attempt: 1, at, after, why: None })
    };
    let log = [
        opened("boot-1"),
        start("a", 1),
        start("b", 1),
        end("a", 1, 0),
        start("c", 1),
        snapshot("a"),
        end("c", 1, 0),
    ];
    let read = decode_beyond(&told(), &encoded(&log));
    let left = [&log[0], &log[2], &log[4], &log[6]].map(Clone::clone);
    assert_eq!(read.lines, left, "b has no end, and c is running");
    assert_eq!(read.last_passed, Some(Timestamp::from_micros(9)));
    assert!(read.passed_starts);
    let all = [&log[..], &[opened("boot-1")]].concat();
    assert!(!decode_beyond(&told(), &encoded(&all)).passed_starts, "the next life has none");
}

#[test]
fn nothing_else_is_passed_over() {
    for log in [
        // Another attempt: its start is not in the journal.
        vec![opened("boot-1"), start("a", 2), end("a", 2, 0)],
        // An end that contradicts the journal.
        vec![opened("boot-1"), start("a", 1), end("a", 1, 3)],
        // Two lives: the second one may hold it.
        vec![opened("boot-1"), end("a", 1, 0), opened("boot-1"), start("a", 1)],
        vec![opened("boot-1"), start("a", 1), opened("boot-1"), end("a", 1, 0)],
        // A step that the journal does not know, and one that is running.
        vec![opened("boot-1"), start("x", 1), end("x", 1, 0), start("c", 1), end("c", 1, 0)],
    ] {
        let read = decode_beyond(&told(), &encoded(&log));
        assert_eq!((&read.lines, read.last_passed), (&log, None));
    }
}

#[test]
fn what_cannot_be_read_is_the_same_whatever_is_passed_over() {
    let log = [opened("boot-1"), start("a", 1), end("a", 1, 0), start("b", 1), end("b", 1, 0)];
    let bytes = encoded(&log);
    for at in 0..bytes.len() {
        let mut spoilt = bytes.clone();
        spoilt[at] ^= 1;
        for log in [&bytes[..at], &spoilt] {
            let (all, beyond) = (decode(log), decode_beyond(&told(), log));
            assert_eq!((&all.damaged, &all.torn), (&beyond.damaged, &beyond.torn), "byte {at}");
            assert_eq!(all.doubtful(), beyond.doubtful());
            let is_left = |line: &Line| all.lines.contains(line);
            assert!(beyond.lines.iter().all(is_left), "byte {at}");
        }
    }
}

/// A log of two lives: `a` and `b` are done, `c` is not, and one end has its snapshot later.
fn two_lives() -> Vec<Line> {
    let snapshot = |step: &str, after: &str| {
        let (step, at) = (Address::from_text(step), Timestamp::from_micros(10));
        Line::Snapshot(Snapshot { step, attempt: 1, at, after: Some(after.into()), why: None })
    };
    vec![
        opened("boot-1"),
        start("a", 1),
        start("b", 1),
        end("a", 1, 0),
        start("c", 1),
        snapshot("a", "x"),
        end("b", 1, 0),
        opened("boot-1"),
        start("c", 2),
        snapshot("b", "y"),
        end("c", 2, 3),
    ]
}

#[test]
fn what_was_seen_before_is_not_read_again_and_changes_nothing() {
    let (log, told) = (two_lives(), told());
    let whole = encoded(&log);
    let mut kept = 0;
    for lines in 0..=log.len() {
        let before = encoded(&log[..lines]);
        let Some(seen) = Seen::of(&before, &told) else { continue };
        assert_eq!(Seen::unpack(&seen.pack()).as_ref(), Some(&seen));
        assert!(seen.fits(&told));
        kept += usize::from(seen.kept.len() < before.len());
        // What follows may be torn or spoilt anywhere.
        let rest = &whole[before.len()..];
        let spoilt = (0..rest.len()).map(|at| {
            let mut other = rest.to_vec();
            other[at] ^= 1;
            other
        });
        for rest in (0..=rest.len()).map(|cut| rest[..cut].to_vec()).chain(spoilt) {
            let all = decode_beyond(&told, &[&before[..], &rest].concat());
            assert_eq!(seen.decode(&told, &[&seen.kept[..], &rest].concat()), all, "{lines}");
        }
    }
    assert!(kept > 4, "start and end of `a` were passed over");
}

#[test]
fn what_was_seen_counts_for_this_log_and_this_journal_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("exits.jsonl");
    let (whole, told) = (encoded(&two_lives()), told());
    let seen = Seen::of(&whole, &told).unwrap();
    let read = |state: &State, bytes_max| {
        let with = read_seals_beyond(state, &path, bytes_max, Some(&seen)).unwrap();
        assert_eq!(with, read_seals_beyond(state, &path, bytes_max, None).unwrap());
    };
    assert_eq!(read_seals_beyond(&told, &path, None, Some(&seen)).unwrap(), Seals::default());
    for at in 0..whole.len() {
        let mut other = whole.clone();
        other[at] ^= 1;
        for log in [&whole[..at], &other] {
            std::fs::write(&path, log).unwrap();
            read(&told, None);
        }
    }
    std::fs::write(&path, &whole).unwrap();
    read(&told, None);
    read(&told, Some(whole.len() as u64 / 2));
    // The journal has not, or not any more, what was passed over.
    let mut again = told.clone();
    again.steps.get_mut("a").unwrap().attempts = 2;
    read(&again, None);
    read(&State::default(), None);
    // Whatever stands in it, it does not panic.
    let packed = seen.pack();
    for at in 0..packed.len() {
        let _ = Seen::unpack(&packed[..at]);
    }
    // One that cannot be read whole is not kept at all.
    assert_eq!(Seen::of(&[&whole[..], b"x\n"].concat(), &told), None);
    assert_eq!(Seen::of(&[&whole[..], &encoded(&[end("a", 1, 0)])].concat(), &told), None);
}
