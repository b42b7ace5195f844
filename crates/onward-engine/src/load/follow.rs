//! Watching a run by reading its journal, as it grows.
//!
//! Invariant: what was given out is never taken back: only whole records that end in their newline
//! are given out, and a writer cuts the file only behind them.

use crate::world::open;
use std::{
    io::{self, ErrorKind, Seek as _, SeekFrom},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use onward_core::{
    event::Record,
    journal::{Mark, ReadError, Reader, Rest},
};

use crate::load::journal::JOURNAL;

/// Gives out each record once. Ask it as often as you like: nothing new costs one small read.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    mark: Mark,
}

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error("cannot read the journal {path}")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the journal is damaged after record {}", .0.next_seq)]
    Damaged(Mark),
    #[error("the journal became shorter than what was read of it")]
    Shrunk,
}

impl Follower {
    /// From the beginning.
    pub fn new(run_dir: &Path) -> Self {
        Self::resume_at(run_dir, Mark::default())
    }

    /// From where an earlier look ended.
    pub fn resume_at(run_dir: &Path, mark: Mark) -> Self {
        Self { path: run_dir.join(JOURNAL), mark }
    }

    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Every record that has come since.
    pub fn poll(&mut self) -> Result<Vec<Record>, FollowError> {
        let mut file = match open::at(&self.path, open::To::Read) {
            Ok(file) => file,
            // A run that is being archived, or not made yet.
            Err(error) if error.kind() == ErrorKind::NotFound && self.mark.next_seq == 0 => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(self.io(error)),
        };
        let mut next = [0];
        let count = file.read_at(&mut next, self.mark.offset).map_err(|it| self.io(it))?;
        if count == 0 && file.metadata().map_err(|it| self.io(it))?.len() < self.mark.offset {
            return Err(FollowError::Shrunk);
        }
        // The end, or the free space at it.
        if count == 0 || next == [0] {
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(self.mark.offset)).map_err(|it| self.io(it))?;
        let mut reader = Reader::resume_at(file, self.mark);
        let mut records = Vec::new();
        let mut before_last = self.mark;
        loop {
            let mark = reader.mark();
            match reader.next_record()? {
                Some(record) => records.push(record),
                None => break,
            }
            before_last = mark;
        }
        let tail = reader.tail()?;
        if tail.missing_newline {
            // It counts, but the next one could not be read on from here.
            records.pop();
            self.mark = before_last;
        } else {
            self.mark = tail.mark;
        }
        match tail.rest {
            Rest::Damaged(_) if records.is_empty() => Err(FollowError::Damaged(self.mark)),
            // Torn: the driver is writing the rest at this moment.
            Rest::Clean | Rest::Torn(_) | Rest::Damaged(_) => Ok(records),
        }
    }

    fn io(&self, source: io::Error) -> FollowError {
        FollowError::Io { path: self.path.display().to_string(), source }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write as _};

    use onward_core::{
        digest::Digest,
        event::{Event, Mode, RunOpened},
        journal::{FORMAT, encode},
        time::Timestamp,
    };

    use super::*;

    fn line(seq: u64) -> Vec<u8> {
        let opened = RunOpened {
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
        };
        let event = match seq {
            0 => Event::RunOpened(Box::new(opened)),
            _ => Event::Note { text: format!("note {seq}"), step: None },
        };
        let record = Record { seq, at: Timestamp::default(), epoch: 1, batch: seq + 1, event };
        let mut line = Vec::new();
        encode(&record, &mut line).unwrap();
        line
    }

    struct Bench {
        dir: tempfile::TempDir,
        follower: Follower,
    }

    impl Bench {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let follower = Follower::new(dir.path());
            Self { dir, follower }
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join(JOURNAL)
        }

        fn add(&self, bytes: &[u8]) {
            let mut options = OpenOptions::new();
            let mut file = options.append(true).create(true).open(self.path()).unwrap();
            file.write_all(bytes).unwrap();
        }

        fn cut(&self, length: usize) {
            let file = OpenOptions::new().write(true).open(self.path()).unwrap();
            file.set_len(length as u64).unwrap();
        }

        fn seen(&mut self) -> Vec<u64> {
            self.follower.poll().unwrap().iter().map(|record| record.seq).collect()
        }
    }

    #[test]
    fn every_record_comes_once_and_free_space_is_nothing() {
        let mut bench = Bench::new();
        assert_eq!(bench.seen(), [0_u64; 0], "no journal yet");
        let first = [line(0), line(1)].concat();
        bench.add(&first);
        bench.add(&[0; 5000]);
        assert_eq!(bench.seen(), [0, 1]);
        assert_eq!(bench.seen(), [0_u64; 0]);
        bench.cut(first.len());
        bench.add(&line(2));
        assert_eq!(bench.seen(), [2]);
        let mut later = Follower::resume_at(bench.dir.path(), bench.follower.mark());
        bench.add(&line(3));
        assert_eq!(later.poll().unwrap().len(), 1);
    }

    #[test]
    fn a_record_that_is_cut_anywhere_waits_until_it_is_whole() {
        let whole = line(1);
        for cut in 0..whole.len() {
            let mut bench = Bench::new();
            bench.add(&line(0));
            bench.add(&whole[..cut]);
            assert_eq!(bench.seen(), [0], "cut at {cut}");
            bench.add(&whole[cut..]);
            assert_eq!(bench.seen(), [1], "cut at {cut}");
        }
    }

    #[test]
    fn a_torn_tail_is_mended_behind_our_back() {
        let mut bench = Bench::new();
        let good = [line(0), line(1)].concat();
        bench.add(&good);
        bench.add(&line(2)[..20]);
        assert_eq!(bench.seen(), [0, 1]);
        bench.cut(good.len());
        bench.add(&line(2));
        assert_eq!(bench.seen(), [2]);
        bench.cut(3);
        assert!(matches!(bench.follower.poll(), Err(FollowError::Shrunk)));
    }

    #[test]
    fn damage_is_told_after_everything_before_it() {
        let mut bench = Bench::new();
        let mut bad = line(1);
        bad[20] ^= 1;
        bench.add(&[line(0), bad, line(2), line(3)].concat());
        assert_eq!(bench.seen(), [0]);
        assert!(matches!(bench.follower.poll(), Err(FollowError::Damaged(_))));
    }
}
