//! Reading a whole journal, or its next part, with bounded memory.
//!
//! Invariant: a record is given out only when every byte before it was readable and in order, so
//! what was given out is a prefix of what was written and never has to be taken back. Whatever
//! follows the first unreadable byte is looked at, to tell a torn tail from damage, and never given
//! out.

use std::io::{self, Read};

use super::{
    FORMAT,
    decode::{decode_line, format_of_opening},
    pieces::{EndedBy, Piece, Pieces},
    suspect::{Fault, Rest, Suspects},
};
use crate::event::Record;

/// How far a journal was read: where it goes on, and what must come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Bytes read, the last newline included.
    pub offset: u64,
    pub next_seq: u64,
    /// Of the last record.
    pub epoch: u32,
    /// Of the last record.
    pub batch: u64,
}

impl Mark {
    /// Why `record` cannot come next; batches begin at 0 in each epoch, or go on.
    pub(super) fn fault_of(&self, record: &Record) -> Option<Fault> {
        let (expected, found) = (self.next_seq, record.seq);
        if found < expected {
            Some(Fault::Repeat { expected, found })
        } else if record.epoch < self.epoch {
            Some(Fault::LowerEpoch { before: self.epoch, found: record.epoch })
        } else if record.epoch == self.epoch && record.batch < self.batch {
            Some(Fault::LowerBatch { before: self.batch, found: record.batch })
        } else if found > expected {
            Some(Fault::Gap { expected, found })
        } else {
            None
        }
    }

    pub(super) fn follow(&mut self, record: &Record) {
        self.next_seq = record.seq.saturating_add(1);
        self.epoch = record.epoch;
        self.batch = record.batch;
    }
}

/// What the end of a journal is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The end of the valid prefix. To go on writing, cut the file there.
    pub mark: Mark,
    /// The last record has no newline; write one before the next record.
    pub missing_newline: bool,
    /// Free space at the very end.
    pub trailing_nuls: u64,
    pub rest: Rest,
}

/// Why there is no run in these bytes.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the journal cannot be read")]
    Source(#[from] io::Error),
    #[error("the journal is empty")]
    Empty,
    #[error("the first line of the journal is unreadable: {0}")]
    FirstLine(Fault),
    #[error("the first record of the journal is not `run.opened`")]
    NotOpened,
    #[error("the journal has format {found}, and this version knows formats up to {known}")]
    NewerFormat { found: u32, known: u32 },
}

impl ReadError {
    /// The file is there, and what it must begin with is not.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Empty | Self::FirstLine(_) => true,
            Self::Source(_) | Self::NotOpened | Self::NewerFormat { .. } => false,
        }
    }

    /// The next thing to try.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Source(_) => "check the disk, and the permissions of the file",
            Self::Empty | Self::FirstLine(_) => {
                "rebuild the run from its evidence with `onward repair`"
            }
            Self::NotOpened => "check whether this file is a journal of onward",
            Self::NewerFormat { .. } => "use the version of onward that wrote it, or a newer one",
        }
    }
}

/// Gives out the records of a journal, and at the end says what the end is like.
pub struct Reader<R> {
    pieces: Pieces<R>,
    mark: Mark,
    missing_newline: bool,
    tail: Option<Tail>,
}

impl<R: Read> Reader<R> {
    /// Reads a journal from its beginning.
    pub fn new(source: R) -> Self {
        Self::resume_at(source, Mark::default())
    }

    /// Reads on behind the newline at `mark`, where `source` must stand.
    pub fn resume_at(source: R, mark: Mark) -> Self {
        // Up to the mark, each line is a record.
        let pieces = Pieces::new(source, mark.next_seq.saturating_add(1), mark.offset);
        Self { pieces, mark, missing_newline: false, tail: None }
    }

    /// The end of what was given out so far.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// The next record; `None` once the valid prefix is over, for good.
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        // Nearly always the next line is at hand and in order.
        if self.mark.next_seq > 0
            && self.tail.is_none()
            && let Some(line) = self.pieces.line_at_hand()
            && let Ok(record) = decode_line(line)
            && self.mark.fault_of(&record).is_none()
        {
            let len = line.len();
            self.pieces.pass_line(len);
            self.mark.follow(&record);
            self.mark.offset += len as u64 + 1;
            self.missing_newline = false;
            return Ok(Some(record));
        }
        self.next_with_care()
    }

    #[cold]
    fn next_with_care(&mut self) -> Result<Option<Record>, ReadError> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let is_first = self.mark.next_seq == 0;
        let Some((place, piece)) = self.pieces.next()? else { return self.end(0, Rest::Clean) };
        let fault = match piece {
            Piece::Line { bytes, ended_by } => {
                if is_first {
                    check_opening(bytes)?;
                }
                match decode_line(bytes) {
                    Ok(record) => match self.mark.fault_of(&record) {
                        None => {
                            self.mark.follow(&record);
                            self.mark.offset = place.end;
                            self.missing_newline = ended_by != EndedBy::Newline;
                            return Ok(Some(record));
                        }
                        Some(fault) => fault,
                    },
                    Err(error) => error.into(),
                }
            }
            Piece::Nuls { count, reach_the_end: true } => return self.end(count, Rest::Clean),
            Piece::Nuls { reach_the_end: false, .. } => Fault::Nuls,
            Piece::TooLong { .. } => Fault::TooLong,
        };
        if is_first {
            return Err(ReadError::FirstLine(fault));
        }
        let mut suspects = Suspects::new(self.mark, place, fault);
        suspects.take(place, &piece);
        self.judge(suspects)
    }

    /// What the end is like. Reads up to it, and drops the records on the way.
    pub fn tail(mut self) -> Result<Tail, ReadError> {
        while self.next_record()?.is_some() {}
        Ok(self.tail.expect("the tail is known when no record comes any more"))
    }

    #[cold]
    fn judge(&mut self, mut suspects: Suspects) -> Result<Option<Record>, ReadError> {
        let mut trailing_nuls = 0;
        while let Some((place, piece)) = self.pieces.next()? {
            suspects.take(place, &piece);
            if let Piece::Nuls { count, reach_the_end: true } = piece {
                trailing_nuls = count;
            }
        }
        self.end(trailing_nuls, suspects.verdict())
    }

    fn end(&mut self, trailing_nuls: u64, rest: Rest) -> Result<Option<Record>, ReadError> {
        let Self { mark, missing_newline, .. } = *self;
        if mark.next_seq == 0 {
            return Err(ReadError::Empty);
        }
        self.tail = Some(Tail { mark, missing_newline, trailing_nuls, rest });
        Ok(None)
    }
}

/// Before anything else is made of the first line: a newer one may be beyond us altogether.
fn check_opening(line: &[u8]) -> Result<(), ReadError> {
    match format_of_opening(line) {
        Some(found) if found > FORMAT => Err(ReadError::NewerFormat { found, known: FORMAT }),
        Some(_) => Ok(()),
        None => match decode_line(line) {
            Ok(record) if Mark::default().fault_of(&record).is_none() => Err(ReadError::NotOpened),
            // What is wrong with it is found next.
            Ok(_) | Err(_) => Ok(()),
        },
    }
}
