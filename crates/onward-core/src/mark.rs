//! Which start an end belongs to.
//!
//! Invariant: no two start records have the same nonce, not even where a journal lost its end and
//! the same attempt of the same step was started once more.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{digest::Digest, time::Timestamp, words};

/// The nonce of one `attempt.started`: 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nonce(u64);

impl Nonce {
    /// Of the record that gets this number, in this opening of the journal, at this moment.
    pub fn of(run: &str, epoch: u32, seq: u64, at: Timestamp) -> Self {
        let (epoch, seq) = (epoch.to_le_bytes(), seq.to_le_bytes());
        let at = at.as_micros().to_le_bytes();
        let digest = Digest::of_parts([run.as_bytes(), &epoch, &seq, &at]);
        let mut first = [0; 8];
        first.copy_from_slice(&digest.as_bytes()[..8]);
        Self(u64::from_be_bytes(first))
    }

    /// Reads the 16 digits of `Display`; lower case only, as we write it.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 16] = text.as_bytes().try_into().ok()?;
        let [high, low] = digits.as_chunks().0 else { return None };
        Some(Self(u64::from(words::hex(*high)?) << 32 | u64::from(words::hex(*low)?)))
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("expected 16 hex digits"))
    }
}

/// What the supervisor writes into every line about an attempt: whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub run: String,
    /// The opening of the journal in which it was spawned.
    pub epoch: u32,
    pub nonce: Nonce,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_comes_again_has_another_nonce() {
        let nonce = |epoch, seq, at| Nonce::of("r-1", epoch, seq, Timestamp::from_micros(at));
        let first = nonce(1, 4, 1_000);
        assert_eq!(first, nonce(1, 4, 1_000));
        for other in [nonce(2, 4, 1_000), nonce(1, 5, 1_000), nonce(1, 4, 1_001)] {
            assert_ne!(first, other);
        }
        assert_ne!(first, Nonce::of("r-2", 1, 4, Timestamp::from_micros(1_000)));
    }

    #[test]
    fn a_nonce_is_read_as_it_is_written_and_nothing_else_is() {
        let nonce = Nonce(0xab);
        assert_eq!(nonce.to_string(), "00000000000000ab");
        assert_eq!(Nonce::parse(&nonce.to_string()), Some(nonce));
        for text in ["", "ab", "00000000000000AB", "+0000000000000ab", "00000000000000abc"] {
            assert_eq!(Nonce::parse(text), None, "{text}");
        }
    }
}
