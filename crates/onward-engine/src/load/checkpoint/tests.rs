//! What is kept and what follows it, against the whole; and what is not ours.

use std::{fs, io::Write as _};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptFinished, AttemptStarted, Event, Mode, Record, RunOpened},
    evidence::{Cause, Evidence, FileProof, Outcome, Stat},
    journal::{FORMAT, Rest, encode},
    time::Timestamp,
};

use super::*;

fn opened() -> Event {
    Event::RunOpened(Box::new(RunOpened {
        format: FORMAT,
        run: "r-1".parse().unwrap(),
        workflow: "w".into(),
        workflow_hash: Digest::of(b"w"),
        file: None,
        inputs: [].into(),
        git: None,
        engine: "0".into(),
        boot_id: "b".into(),
        mode: Mode::Autopilot,
    }))
}

fn finished(step: &Address, outcome: Outcome) -> Event {
    let stat = Stat { size: 3, mtime_ns: 17, inode: 5 };
    let file = FileProof { path: format!("o/{step}"), hash: Digest::of(b"x"), stat };
    Event::AttemptFinished(Box::new(AttemptFinished {
        step: step.clone(),
        attempt: 1,
        outcome,
        ending: None,
        evidence: Evidence { files: vec![file], ..Evidence::default() },
        result: None,
        stdout: None,
        after: None,
        footprint: Vec::new(),
        tolerated: false,
        head: None,
        ended: None,
        waited: 0,
    }))
}

/// So many steps that are done, then one that failed and one that runs.
fn journal(steps: usize) -> Vec<u8> {
    let step = |index: usize| Address::from_text(&format!("s{index}"));
    let started = |index| Event::AttemptStarted(Box::new(AttemptStarted::bare(step(index), 1)));
    let mut events = vec![opened()];
    for index in 0..steps {
        events.extend([started(index), finished(&step(index), Outcome::Done)]);
    }
    let failed = Outcome::Failed { cause: Cause::Crash, detail: "it is over".into() };
    events.extend([started(steps), finished(&step(steps), failed), started(steps + 1)]);
    let mut lines = Vec::new();
    for (seq, event) in (0..).zip(events) {
        let at = Timestamp::from_micros(1_000_000 * i64::try_from(seq).unwrap());
        let record = Record { seq, at, epoch: 1, batch: seq + 1, event };
        encode(&record, &mut lines).unwrap();
    }
    lines
}

fn ends(journal: &[u8]) -> impl Iterator<Item = usize> {
    journal.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1)
}

#[track_caller]
fn is_as_folded(journal: &[u8], kept: &[u8]) {
    let (whole, loaded) = (load(journal).unwrap(), load_from(journal, Some(kept)).unwrap());
    assert_eq!((loaded.state, loaded.tail), (whole.state, whole.tail));
}

#[test]
fn what_is_kept_and_the_tail_fold_as_the_whole() {
    let journal = journal(1);
    for end in ends(&journal) {
        let kept = of(&journal[..end]).unwrap();
        assert_eq!(unpack(&kept, &journal).unwrap().1, end);
        for cut in (end..=journal.len()).step_by(17) {
            is_as_folded(&journal[..cut], &kept);
        }
        let free = [&journal[..], &[0; 4096]].concat();
        is_as_folded(&free, &kept);
        assert!(of(&journal[..end - 1]).is_none(), "its last line may still be written");
    }
}

#[test]
fn what_this_process_folded_before_counts_for_exactly_those_bytes() {
    let (journal, other) = (journal(2), journal(3));
    let whole = load(&journal).unwrap();
    for end in ends(&journal) {
        let before = &journal[..end];
        let folded = folded_of(before).unwrap();
        assert!(is_of(&folded, &journal));
        assert_eq!(folded.part.length, end as u64);
        let loaded = load_rest(folded.state.clone(), end as u64, &journal[end..]).unwrap();
        assert_eq!((&loaded.state, &loaded.tail), (&whole.state, &whole.tail));
        let mut spoilt = journal.clone();
        spoilt[end / 2] ^= 1;
        let shorter = &journal[..end - 1];
        for journal in [&spoilt[..], shorter] {
            assert!(!is_of(&folded, journal), "folded up to {end}");
        }
        assert!(folded_of(shorter).is_none(), "its last line may still be written");
    }
    assert!(!is_of(&folded_of(&journal).unwrap(), &other));
}

/// Read in pieces that end anywhere.
fn is_of(folded: &Folded, journal: &[u8]) -> bool {
    let piece = |offset: u64| {
        let rest = journal.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        Ok::<_, ()>(rest[..rest.len().min(97)].to_vec())
    };
    folded.begins(piece).unwrap()
}

/// The journal on a disk, cut and spoilt at any place behind and in front of what is kept.
#[test]
fn a_journal_that_is_read_in_pieces_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let me = vec![("XDG_STATE_HOME".into(), dir.path().join("me").into())];
    let journal = journal(900);
    let middle = ends(&journal).nth(1500).unwrap();
    assert!(middle > JOURNAL_BYTES_MIN.max(PIECE_BYTES));
    let kept = shared::sealed(&me, PURPOSE, of(&journal[..middle]).unwrap()).unwrap();
    fs::write(dir.path().join(CHECKPOINT), kept).unwrap();
    let same = |bytes: &[u8]| {
        fs::write(dir.path().join(JOURNAL), bytes).unwrap();
        let looked = load_looking(dir.path(), &me, None).unwrap();
        match (load(bytes), looked) {
            (Ok(whole), Ok(looked)) => {
                let Looked { loaded, part, .. } = looked;
                assert_eq!((&loaded.state, &loaded.tail), (&whole.state, &whole.tail));
                let whole = Part::of(bytes, &whole);
                assert_eq!(part.map(|it| (it.length, it.crc)), whole.map(|it| (it.length, it.crc)));
            }
            (whole, looked) => assert!(whole.is_err() && looked.is_err()),
        }
    };
    same(&journal);
    same(&[&journal[..], &[0; 4096]].concat());
    for cut in [0, 1, middle - 1, middle, middle + 1, middle + 300, journal.len() - 1] {
        same(&journal[..cut]);
    }
    for at in [10, middle - 20, middle + 20, journal.len() - 20] {
        let mut spoilt = journal.clone();
        spoilt[at] ^= 1;
        same(&spoilt);
    }
}

/// What is kept next is what the whole journal folds to, whatever was kept before.
#[test]
fn what_is_folded_from_the_file_is_what_the_journal_folds_to() {
    let journal = journal(3);
    let read = |bytes: &[u8], before| {
        let piece = |offset, bytes_max: usize| {
            let rest = &bytes[usize::try_from(offset).unwrap().min(bytes.len())..];
            // The disk may give less than was asked for.
            Ok(rest[..rest.len().min(bytes_max).min(100)].to_vec())
        };
        folded_from(piece, before)
    };
    let before = |end: usize| {
        let Folded { part, state, .. } = folded_of(&journal[..end]).unwrap();
        Before { part, state, has_graph: false }
    };
    let ends: Vec<usize> = ends(&journal).collect();
    let torn_off = |end: usize| &journal[..end - 5];
    for &end in &ends {
        let whole = load(&journal[..end]).unwrap();
        let expected = Some((Part::of(&journal[..end], &whole).unwrap(), whole.state));
        let free = [&journal[..end], &[0; 300]].concat();
        // Behind free space stands nothing that counts.
        let behind = [&free[..], b"{\"seq\":"].concat();
        for bytes in [&journal[..end], &free, &behind] {
            assert_eq!(read(bytes, None), expected);
            for &kept in ends.iter().filter(|kept| **kept <= end) {
                assert_eq!(read(bytes, Some(before(kept))), expected, "kept up to {kept}");
            }
        }
        assert_eq!(read(torn_off(end), None), None, "its last line is not whole");
        let mut spoilt = journal[..end].to_vec();
        spoilt[end / 2] ^= 1;
        assert_eq!(read(&spoilt, None), None, "a line of it is damaged");
        let blank = [&journal[..end], b"\n", &journal[end..]].concat();
        assert_eq!(read(&blank, None), None, "a line of it is no record");
    }
}

/// A second look in one command: it goes on where the first one ended, in the same file only.
#[test]
fn a_second_look_goes_on_in_the_same_file_and_in_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(JOURNAL);
    let (journal, other) = (journal(4), journal(5));
    let looked = |folded: Option<&Folded>| {
        let folded = folded.cloned().map(Arc::new);
        load_looking(dir.path(), &[], folded).unwrap().unwrap()
    };
    let is_whole = |looked: &Looked, bytes: &[u8]| {
        let whole = load(bytes).unwrap();
        assert_eq!((&looked.loaded.state, &looked.loaded.tail), (&whole.state, &whole.tail));
    };
    for end in ends(&journal) {
        fs::write(&path, &journal[..end]).unwrap();
        let folded = looked(None).folded().unwrap();
        is_whole(&looked(Some(&folded)), &journal[..end]);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&journal[end..]).unwrap();
        let second = looked(Some(&folded));
        is_whole(&second, &journal);
        // It is told from a first look by what it did not read again.
        let mut spoilt = journal.clone();
        spoilt[end / 2] ^= 1;
        fs::write(&path, &spoilt).unwrap();
        let is_read_on = folded.which.is_some();
        if is_read_on {
            is_whole(&looked(Some(&folded)), &journal);
        }
        // What was cut off, and another file in its place, are read from the beginning.
        fs::write(&path, &journal[..end - 1]).unwrap();
        is_whole(&looked(Some(&folded)), &journal[..end - 1]);
        fs::write(dir.path().join("other"), &other).unwrap();
        fs::rename(dir.path().join("other"), &path).unwrap();
        is_whole(&looked(Some(&folded)), &other);
        // And so is where it goes on a third time.
        let third = second.folded().unwrap();
        assert_eq!((third.part.length, third.which), (journal.len() as u64, folded.which));
    }
}

fn folded_of(journal: &[u8]) -> Option<Folded> {
    let loaded = load(journal).unwrap();
    let part = Part::of(journal, &loaded);
    Looked { loaded, part, which: None }.folded()
}

#[test]
fn damage_is_found_where_it_is_whatever_was_kept() {
    let journal = journal(2);
    let middle = ends(&journal).nth(3).unwrap();
    let kept = of(&journal[..middle]).unwrap();
    for at in (0..journal.len()).step_by(5).filter(|at| journal[*at] != b'\n') {
        let mut spoilt = journal.clone();
        spoilt[at] ^= 1;
        assert_eq!(unpack(&kept, &spoilt).is_some(), at >= middle, "at {at}");
        let (whole, loaded) = (load(&spoilt), load_from(&spoilt, Some(&kept)));
        let (Ok(whole), Ok(loaded)) = (&whole, &loaded) else {
            assert!(whole.is_err() && loaded.is_err(), "at {at}");
            continue;
        };
        assert_eq!((&loaded.state, &loaded.tail), (&whole.state, &whole.tail), "at {at}");
        assert_ne!(whole.tail.rest, Rest::Clean, "at {at}");
    }
}

#[test]
fn what_is_torn_or_of_another_journal_is_passed_over() {
    let (journal, other) = (journal(5), journal(6));
    let kept = of(&journal).unwrap();
    for cut in 0..kept.len() {
        assert!(unpack(&kept[..cut], &journal).is_none(), "cut at {cut}");
    }
    for journal in [&other[..], &journal[..journal.len() - 1], b""] {
        assert!(unpack(&kept, journal).is_none());
    }
    let mut newer = kept;
    newer[1] ^= 1;
    assert!(unpack(&newer, &journal).is_none(), "of another version");
    is_as_folded(&journal, &newer);
}

#[test]
fn only_what_this_user_sealed_counts() {
    let dir = tempfile::tempdir().unwrap();
    let user = |name: &str| vec![("XDG_STATE_HOME".into(), dir.path().join(name).into())];
    let (me, stranger) = (user("me"), user("stranger"));
    let path = dir.path().join(CHECKPOINT);
    let journal = journal(700);
    assert!(journal.len() >= JOURNAL_BYTES_MIN);
    let kept = of(&journal).unwrap();
    let good = shared::sealed(&me, PURPOSE, kept.clone()).unwrap();
    let foreign = shared::sealed(&stranger, PURPOSE, kept.clone()).unwrap();
    let other = shared::sealed(&me, "another purpose", kept).unwrap();
    let mut spoilt = good.clone();
    *spoilt.last_mut().unwrap() ^= 1;
    let torn = good[..good.len() / 2].to_vec();
    let whole = load(&journal).unwrap();
    fs::write(dir.path().join(JOURNAL), &journal).unwrap();
    let looked =
        |env: &[(OsString, OsString)]| load_looking(dir.path(), env, None).unwrap().unwrap();
    for (bytes, counts) in
        [(good, true), (foreign, false), (other, false), (spoilt, false), (torn, false)]
    {
        fs::write(&path, bytes).unwrap();
        let sealed = || fs::read(&path).unwrap();
        let kept = |env| kept_of(sealed(), env);
        assert_eq!(kept(&me).is_some(), counts);
        assert!(kept(&[]).is_none(), "no one without a home has a seal");
        let Looked { loaded, part, .. } = looked(&me);
        assert_eq!((&loaded.state, &loaded.tail), (&whole.state, &whole.tail));
        assert!(part.is_some_and(|it| it.begins(&journal) == Some(journal.len())));
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(looked(&me).loaded.state, whole.state);
    assert!(!path.exists(), "a look writes nothing");
}
