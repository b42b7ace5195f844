//! What was read of a long log before: what saves reading all of it at every look.
//!
//! Invariant: it is a cache, and nothing rests on it. It counts only in front of a log that begins
//! with exactly these bytes, and only for a journal that has the steps that were passed over done
//! by the very same attempts. With it a log reads as without it: [`Seen::of`] has tried that, and
//! keeps nothing where it is not so, nor of a log in which anything cannot be read.

use std::{
    fs::File,
    io::{self, Read as _},
};

use onward_core::{
    state::{Phase, State},
    time::Timestamp,
};

use crate::world::open::PIECE_BYTES;

use super::{Seals, checked, decode_beyond, decode_from, quick, told::Told};

/// A shorter log is read as soon.
pub(crate) const LOG_BYTES_MIN: usize = 256 << 10;
/// Another one whenever anything in here, or in what is passed over, is written differently.
const LAYOUT: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "/1").as_bytes();
const NO_MOMENT: i64 = i64::MIN;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The part of the log that was read: up to the end of a line.
    pub(super) length: u64,
    crc: u32,
    pub(super) lines: u64,
    /// The latest end that was passed over, and whether the last life has starts that were.
    pub(super) last_end: Option<Timestamp>,
    pub(super) passed_starts: bool,
    /// By the place of a step in the journal: the attempt that was passed over, 0 = none.
    pub(super) attempts: Vec<u32>,
    /// The lines that were not, as they stand in the log.
    pub(super) kept: Vec<u8>,
}

impl Seen {
    /// What one who has the journal has read of this log; `None` where it is to be read whole.
    pub(crate) fn of(log: &[u8], state: &State) -> Option<Self> {
        let log = &log[..=memchr::memrchr(b'\n', log)?];
        let all = decode_beyond(state, log);
        if !all.damaged.is_empty() || !all.torn.is_empty() {
            return None;
        }
        let told = Told::look(log, state, None);
        let mut seen = Self {
            length: log.len() as u64,
            crc: crc32fast::hash(log),
            lines: 0,
            last_end: all.last_passed,
            passed_starts: all.passed_starts,
            attempts: Vec::with_capacity(state.steps.len()),
            kept: Vec::new(),
        };
        for place in 0..state.steps.len() {
            let attempt = state.steps.glance_at(place).attempts();
            seen.attempts.push(if told.has_step(place) { attempt } else { 0 });
        }
        for (number, line) in log.split_inclusive(|byte| *byte == b'\n').enumerate() {
            seen.lines += 1;
            if told.has(number) {
                continue;
            }
            let body = checked(line.strip_suffix(b"\n")?)?;
            // One more line of what was passed over: the two are for those who read all.
            if quick::glance(body).is_some_and(|it| told.has_seal(state, it.step, it.attempt)) {
                return None;
            }
            seen.kept.extend_from_slice(line);
        }
        (seen.decode(state, &seen.kept) == all).then_some(seen)
    }

    /// The whole log, of which `mini` is what is kept and what follows.
    pub(super) fn decode(&self, state: &State, mini: &[u8]) -> Seals {
        decode_from(state, mini, Some(self))
    }

    /// Whether all that was passed over is still done by the same attempts.
    pub(super) fn fits(&self, state: &State) -> bool {
        let is_done = |(place, attempt): (usize, &u32)| {
            let step = state.steps.glance_at(place);
            *attempt == 0 || (step.phase() == Phase::Done && step.attempts() == *attempt)
        };
        self.attempts.len() <= state.steps.len() && self.attempts.iter().enumerate().all(is_done)
    }

    /// What is kept and what follows in this log; `None` for any other log.
    pub(super) fn and_rest(&self, log: File, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(rest_max) = bytes_max.checked_sub(self.length) else { return Ok(None) };
        let (mut sum, mut left) = (crc32fast::Hasher::new(), self.length);
        let mut piece = vec![0; PIECE_BYTES];
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let read = (&log).read(&mut piece[..wanted])?;
            if read == 0 {
                return Ok(None);
            }
            sum.update(&piece[..read]);
            left -= read as u64;
        }
        if sum.finalize() != self.crc {
            return Ok(None);
        }
        let mut mini = self.kept.clone();
        log.take(rest_max).read_to_end(&mut mini)?;
        Ok(Some(mini))
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut to = LAYOUT.to_vec();
        to.extend(self.length.to_le_bytes());
        to.extend(self.crc.to_le_bytes());
        to.extend(self.lines.to_le_bytes());
        to.extend(self.last_end.map_or(NO_MOMENT, Timestamp::as_micros).to_le_bytes());
        to.push(u8::from(self.passed_starts));
        to.extend((self.attempts.len() as u64).to_le_bytes());
        to.extend(self.attempts.iter().flat_map(|it| it.to_le_bytes()));
        to.extend(&self.kept);
        to
    }

    /// Takes the bytes that [`pack`](Self::pack) gave. That they are as they were written is for
    /// the caller to know; what is cut short gives `None`.
    pub(crate) fn unpack(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.strip_prefix(LAYOUT)?.split_first_chunk()?;
        let (crc, rest) = rest.split_first_chunk()?;
        let (lines, rest) = rest.split_first_chunk()?;
        let (last_end, rest) = rest.split_first_chunk()?;
        let (passed_starts, rest) = rest.split_first()?;
        let (count, rest) = rest.split_first_chunk()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let (attempts, kept) = rest.split_at_checked(count.checked_mul(4)?)?;
        let last_end = i64::from_le_bytes(*last_end);
        Some(Self {
            length: u64::from_le_bytes(*length),
            crc: u32::from_le_bytes(*crc),
            lines: u64::from_le_bytes(*lines),
            last_end: (last_end != NO_MOMENT).then(|| Timestamp::from_micros(last_end)),
            passed_starts: *passed_starts != 0,
            attempts: attempts.as_chunks().0.iter().map(|it| u32::from_le_bytes(*it)).collect(),
            kept: kept.to_vec(),
        })
    }
}
