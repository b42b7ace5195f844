//! Moments and spans, as data. Core never asks what time it is.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A moment in UTC, in microseconds since 1970. Shown as `2026-11-15T18:20:01.123456Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment `span_ms` later.
    #[must_use]
    pub const fn plus_ms(self, span_ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(span_ms.saturating_mul(1000)))
    }

    /// How long after `earlier` this is; nothing when it is not after it.
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0) / 1000).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => write!(f, "{moment:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    /// Any RFC 3339 moment.
    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let moment = text.parse::<jiff::Timestamp>();
        moment.map(|it| Self(it.as_microsecond())).map_err(|_| BadTimestamp(text.to_owned()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a moment such as 2026-11-15T18:20:01Z")]
pub struct BadTimestamp(String);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_six_decimals_and_reads_back() {
        let text = "2026-11-15T18:20:01.123456Z";
        let moment: Timestamp = text.parse().unwrap();
        assert_eq!(moment.to_string(), text);
        let whole: Timestamp = "2026-11-15T19:20:01+01:00".parse().unwrap();
        assert_eq!(whole.to_string(), "2026-11-15T18:20:01.000000Z");
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[test]
    fn spans_never_run_backwards() {
        let (early, late) = (Timestamp::from_micros(1_000), Timestamp::from_micros(9_000));
        assert_eq!(late.ms_since(early), 8);
        assert_eq!(early.ms_since(late), 0);
        assert_eq!(early.plus_ms(8), late);
    }
}
