//! Bytes to records and back.

/// Major version of the journal format. A journal of a newer major is refused.
pub const FORMAT: u32 = 1;
