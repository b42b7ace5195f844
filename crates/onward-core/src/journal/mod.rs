//! Bytes to records and back.
//!
//! Invariant: what [`encode`] wrote, [`decode_line`] reads back as the same record, and bytes that
//! are not exactly what was written never become a record. The format is told in
//! `docs/journal.md`.

mod cursor;
mod decode;
mod encode;
mod pieces;
mod read;
mod scan;
mod suspect;

#[cfg(test)]
pub(crate) mod arbitrary;
#[cfg(test)]
mod tests;

pub use decode::{LineError, decode_line};
pub use encode::{EncodeError, encode, is_flat_enough};
pub use read::{Mark, ReadError, Reader, Tail};
pub use suspect::{Damage, DamagedLines, Fault, Rest, Torn};

/// Major version of the journal format. A journal of a newer major is refused.
pub const FORMAT: u32 = 1;

/// A longer line is not written, and not read: it bounds the memory of a reader.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// Values (inputs, items, results) are not nested deeper: any JSON parser can read a record.
pub const VALUE_DEPTH_MAX: usize = 100;
