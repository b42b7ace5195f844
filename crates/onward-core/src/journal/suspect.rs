//! What comes after the first unreadable byte: a torn tail, or damage?
//!
//! A batch is one write and one sync, and the next one waits for it. A power cut can therefore take
//! any pages of the last batch, and of no other. So bytes that cannot be read are
//!
//! - a *torn tail* when no readable record of a later batch follows them,
//! - *damage* when one does: they had been safe on disk.
//!
//! The batch of unreadable bytes is known when the readable records around them are of the same
//! one. Where they stand between two batches it is not; then bytes that touch a run of NULs are
//! taken for lost pages of the later batch (that is what unwritten pages look like), and any others
//! for damage to the earlier one, which is the more careful reading.
//!
//! Invariant: nothing in here ever becomes part of the run. It only decides whether what follows
//! the valid prefix may be cut off.

use memchr::memmem;

use super::{
    decode::{LineError, decode_line},
    pieces::{EndedBy, Piece, Span},
    read::Mark,
};
use crate::event::Record;

/// Why bytes are not the next record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("it is longer than any record")]
    TooLong,
    #[error("NUL bytes stand in its place")]
    Nuls,
    #[error("record {expected} is missing before record {found}")]
    Gap { expected: u64, found: u64 },
    #[error("record {found} stands where record {expected} should be")]
    Repeat { expected: u64, found: u64 },
    #[error("its epoch {found} is lower than {before}")]
    LowerEpoch { before: u32, found: u32 },
    #[error("its batch {found} is lower than {before}")]
    LowerBatch { before: u64, found: u64 },
}

/// One line that cannot be read although later ones can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Counted from 1, as editors do.
    pub line: u64,
    /// Bytes before the first unreadable one.
    pub offset: u64,
    pub why: Fault,
}

/// The damaged lines in their order: the first ones, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedLines {
    pub listed: Vec<Damage>,
    pub more: u64,
}

/// What a power cut left of the last batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Counted from 1, as editors do.
    pub line: u64,
    /// The torn bytes are those from `offset` to `end`.
    pub offset: u64,
    pub end: u64,
    pub why: Fault,
}

/// What follows the valid prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing, or free space.
    Clean,
    /// May be cut off, once it is saved.
    Torn(Torn),
    /// Must be repaired before anything is appended.
    Damaged(DamagedLines),
}

/// How many damaged lines are described one by one.
const DAMAGE_LISTED_MAX: usize = 100;

/// How many places of one unreadable line are tried as the beginning of a record.
const HIDDEN_TRIES_MAX: usize = 64;

impl DamagedLines {
    fn add(&mut self, damage: Damage) {
        // One line in several pieces is one damaged line.
        if self.listed.last().is_some_and(|last| last.line == damage.line) {
            return;
        }
        if self.listed.len() < DAMAGE_LISTED_MAX {
            self.listed.push(damage);
        } else {
            self.more += 1;
        }
    }

    fn append(&mut self, later: Self) {
        later.listed.into_iter().for_each(|damage| self.add(damage));
        self.more += later.more;
    }
}

/// The judge of all pieces from the first unreadable one on.
pub(super) struct Suspects {
    torn: Torn,
    /// The last readable record.
    last: Mark,
    /// Unreadable bytes since then.
    since: Since,
    /// The earliest batch that unreadable bytes may belong to.
    earliest: Option<(u32, u64)>,
    /// Lines that a later batch follows, and lines that none follows so far.
    damaged: DamagedLines,
    pending: DamagedLines,
    after_nuls: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Nothing,
    LostPages,
    Unexplained,
}

impl Suspects {
    /// `last` is where the valid prefix ends.
    pub(super) fn new(last: Mark, place: Span, why: Fault) -> Self {
        let Span { line, offset, .. } = place;
        let (damaged, pending) = <(DamagedLines, DamagedLines)>::default();
        let torn = Torn { line, offset, end: offset, why };
        let since = Since::Nothing;
        Self { torn, last, since, earliest: None, damaged, pending, after_nuls: false }
    }

    pub(super) fn take(&mut self, place: Span, piece: &Piece<'_>) {
        let follows_nuls = std::mem::replace(&mut self.after_nuls, false);
        let touches_nuls = |ended_by: EndedBy| follows_nuls || ended_by == EndedBy::Nul;
        match *piece {
            Piece::Nuls { reach_the_end: true, .. } => return,
            Piece::Nuls { reach_the_end: false, .. } => {
                self.after_nuls = true;
                self.unreadable(place, Fault::Nuls, true);
            }
            Piece::TooLong { ended_by } => {
                self.unreadable(place, Fault::TooLong, touches_nuls(ended_by));
            }
            Piece::Line { bytes, ended_by } => match decode_line(bytes) {
                Ok(record) => self.readable(place, &record),
                Err(error) => {
                    self.unreadable(place, error.into(), touches_nuls(ended_by));
                    if let Some(record) = hidden_record(bytes) {
                        self.readable(place, &record);
                    }
                }
            },
        }
        self.torn.end = place.end;
    }

    fn unreadable(&mut self, place: Span, why: Fault, are_lost_pages: bool) {
        let Span { line, offset, .. } = place;
        self.pending.add(Damage { line, offset, why });
        if !are_lost_pages {
            self.since = Since::Unexplained;
        } else if self.since == Since::Nothing {
            self.since = Since::LostPages;
        }
    }

    /// A record that can be read, though it may be out of order.
    fn readable(&mut self, place: Span, record: &Record) {
        match self.last.fault_of(record) {
            None => {}
            // Unreadable bytes explain missing numbers, but not a step back.
            Some(Fault::Gap { .. }) if self.since != Since::Nothing => {}
            Some(gap @ Fault::Gap { .. }) => self.unreadable(place, gap, false),
            Some(
                why @ (Fault::Line(_)
                | Fault::TooLong
                | Fault::Nuls
                | Fault::Repeat { .. }
                | Fault::LowerEpoch { .. }
                | Fault::LowerBatch { .. }),
            ) => return self.unreadable(place, why, false),
        }
        let batch = (record.epoch, record.batch);
        let of_unreadable = match self.since {
            Since::Nothing => None,
            Since::LostPages => Some(batch),
            Since::Unexplained => Some((self.last.epoch, self.last.batch)),
        };
        self.earliest = self.earliest.or(of_unreadable);
        if self.earliest.is_some_and(|earliest| earliest < batch) {
            self.damaged.append(std::mem::take(&mut self.pending));
        }
        self.since = Since::Nothing;
        self.last.follow(record);
    }

    pub(super) fn verdict(self) -> Rest {
        if self.damaged.listed.is_empty() {
            Rest::Torn(self.torn)
        } else {
            Rest::Damaged(self.damaged)
        }
    }
}

/// A record at the end of an unreadable line: the newline before it is what was lost.
fn hidden_record(line: &[u8]) -> Option<Record> {
    let beginnings = memmem::find_iter(line, br#"{"seq":"#).filter(|at| *at > 0);
    beginnings.take(HIDDEN_TRIES_MAX).find_map(|at| decode_line(&line[at..]).ok())
}
