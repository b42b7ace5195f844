//! Moments and spans, as data. Core never asks what time it is.
//!
//! Invariant: a moment lies in the years 0000 to 9999, so each one has exactly one text of 27
//! bytes, and texts sort as the moments do. Arithmetic stops at the ends instead of leaving them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::words::{self, Pattern};

/// A moment in UTC, in microseconds since 1970. Shown as `2026-11-15T18:20:01.123456Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Length of the text of any moment.
pub const TEXT_LEN: usize = 27;

const DAY_MICROS: u64 = 86_400_000_000;
const DAYS_BEFORE_MONTH: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl Timestamp {
    /// The first moment of the year 0000.
    pub const MIN: Self = Self(-62_167_219_200_000_000);
    /// The last moment of the year 9999.
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// A moment outside of the years 0000 to 9999 becomes the nearest one inside.
    pub const fn from_micros(micros: i64) -> Self {
        if micros < Self::MIN.0 {
            Self::MIN
        } else if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment `span_ms` later.
    #[must_use]
    pub const fn plus_ms(self, span_ms: u64) -> Self {
        Self::from_micros(self.0.saturating_add_unsigned(span_ms.saturating_mul(1000)))
    }

    /// How long after `earlier` this is; nothing when it is not after it.
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0) / 1000).unwrap_or(0)
    }

    /// The text of `Display`, without its price.
    pub fn text(self) -> [u8; TEXT_LEN] {
        let micros = self.0.abs_diff(Self::MIN.0);
        let (days, of_day) = (micros / DAY_MICROS, micros % DAY_MICROS);
        let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
        let (year, month, day) = date_of(days);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        write_digits(&mut text[0..4], year);
        write_digits(&mut text[5..7], month);
        write_digits(&mut text[8..10], day);
        write_digits(&mut text[11..13], seconds / 3600);
        write_digits(&mut text[14..16], seconds / 60 % 60);
        write_digits(&mut text[17..19], seconds % 60);
        write_digits(&mut text[20..26], fraction);
        text
    }

    /// Reads exactly what [`Timestamp::text`] writes, and nothing else.
    #[inline]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        const DATE: Pattern = Pattern::of(*b"0000-00-");
        const TIME: Pattern = Pattern::of(*b"00T00:00");
        const SECOND: Pattern = Pattern::of(*b":00.0000");
        const FRACTION: Pattern = Pattern::of(*b".000000Z");
        let text: &[u8; TEXT_LEN] = text.try_into().ok()?;
        let part = |from: usize, pattern: Pattern| {
            let text = text[from..].first_chunk().expect("eight bytes or more");
            pattern.digit_values(*text).map(|it| words::pairs(it).to_le_bytes())
        };
        let [century, _, year, _, _, month, ..] = part(0, DATE)?;
        let [day, _, _, hour, _, _, minute, _] = part(8, TIME)?;
        let [_, second, ..] = part(16, SECOND)?;
        let [_, first, _, next, _, last, ..] = part(19, FRACTION)?;
        let [hour, minute, second] = [u64::from(hour), u64::from(minute), u64::from(second)];
        let [first, next, last] = [u64::from(first), u64::from(next), u64::from(last)];
        let year = u64::from(century) * 100 + u64::from(year);
        let days = days_of(year, u64::from(month), u64::from(day))?;
        let fraction = (first * 100 + next) * 100 + last;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let seconds = (hour * 60 + minute) * 60 + second;
        let micros = days * DAY_MICROS + seconds * 1_000_000 + fraction;
        Some(Self(Self::MIN.0.saturating_add_unsigned(micros)))
    }
}

/// Year, month and day of the day that comes `days` after the first of January 0000.
fn date_of(days: u64) -> (u64, u64, u64) {
    // Years are counted from the first of March, so that the leap day is the last of its year, and
    // from 400 years early, so that nothing is negative: 146,097 days, less January and February.
    let shifted = days + 146_097 - 60;
    let (cycle, of_cycle) = (shifted / 146_097, shifted % 146_097);
    let leaps = of_cycle / 1_460 + of_cycle / 146_096 - of_cycle / 36_524;
    let year = (of_cycle - leaps) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let is_next_year = month_from_march >= 10;
    let month = if is_next_year { month_from_march - 9 } else { month_from_march + 3 };
    (year + cycle * 400 + u64::from(is_next_year) - 400, month, day)
}

/// The inverse of [`date_of`]; `None` for a date that is not in the calendar.
fn days_of(year: u64, month: u64, day: u64) -> Option<u64> {
    let month_index = usize::try_from(month.checked_sub(1)?).ok()?;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let month_len = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let before_month = DAYS_BEFORE_MONTH.get(month_index)?;
    if day == 0 || day > month_len {
        return None;
    }
    let leap_years_before = year.div_ceil(4) + year.div_ceil(400) - year.div_ceil(100);
    let leap_day = u64::from(is_leap && month > 2);
    Some(year * 365 + leap_years_before + before_month + leap_day + day - 1)
}

fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(as_str(&self.text()))
    }
}

fn as_str(text: &[u8; TEXT_LEN]) -> &str {
    std::str::from_utf8(text).expect("digits and punctuation")
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    /// Any RFC 3339 moment of the years 0000 to 9999.
    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let general = || {
            let micros = text.parse::<jiff::Timestamp>().ok()?.as_microsecond();
            (Self::MIN.0..=Self::MAX.0).contains(&micros).then_some(Self(micros))
        };
        let moment = Self::from_text(text.as_bytes()).or_else(general);
        moment.ok_or_else(|| BadTimestamp(text.to_owned()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a moment such as 2026-11-15T18:20:01Z")]
pub struct BadTimestamp(String);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(as_str(&self.text()))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_moment_has_six_decimals_and_reads_back() {
        let text = "2026-11-15T18:20:01.123456Z";
        let moment: Timestamp = text.parse().unwrap();
        assert_eq!(moment.to_string(), text);
        let whole: Timestamp = "2026-11-15T19:20:01+01:00".parse().unwrap();
        assert_eq!(whole.to_string(), "2026-11-15T18:20:01.000000Z");
        assert!("yesterday".parse::<Timestamp>().is_err());
        assert!("-000001-01-01T00:00:00Z".parse::<Timestamp>().is_err());
    }

    #[test]
    fn spans_never_run_backwards() {
        let (early, late) = (Timestamp::from_micros(1_000), Timestamp::from_micros(9_000));
        assert_eq!(late.ms_since(early), 8);
        assert_eq!(early.ms_since(late), 0);
        assert_eq!(early.plus_ms(8), late);
    }

    #[test]
    fn time_ends_with_the_year_9999_and_begins_with_the_year_0000() {
        assert_eq!(Timestamp::from_micros(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_micros(i64::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::default().plus_ms(u64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.to_string(), "0000-01-01T00:00:00.000000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999999Z");
        for end in [Timestamp::MIN, Timestamp::MAX] {
            assert_eq!(Timestamp::from_text(&end.text()), Some(end));
        }
    }

    #[test]
    fn every_day_of_ten_thousand_years_reads_back_and_follows_the_day_before() {
        let mut before = [b' '; TEXT_LEN];
        for days in 0..=3_652_424 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), Some(days));
            let start = Timestamp::MIN.0.saturating_add_unsigned(days * DAY_MICROS);
            let text = Timestamp::from_micros(start).text();
            assert!(text > before, "{}", as_str(&text));
            before = text;
        }
        assert!(before.starts_with(b"9999-12-31"));
    }

    #[test]
    fn what_is_not_in_the_calendar_or_on_the_clock_is_no_moment() {
        for bad in [
            "2026-02-29T00:00:00.000000Z",
            "1900-02-29T00:00:00.000000Z",
            "2026-00-10T00:00:00.000000Z",
            "2026-13-10T00:00:00.000000Z",
            "2026-04-31T00:00:00.000000Z",
            "2026-04-00T00:00:00.000000Z",
            "2026-04-01T24:00:00.000000Z",
            "2026-04-01T00:60:00.000000Z",
            "2026-04-01T00:00:61.000000Z",
            "2026-04-01T00:00:00.00000aZ",
            "2026-04-01T00:00:00,000000Z",
            "2026-04-01 00:00:00.000000Z",
            "2026-04-01T00:00:00.000000z",
            "2026-04-01T00:00:00.00000Z",
        ] {
            assert_eq!(Timestamp::from_text(bad.as_bytes()), None, "{bad}");
        }
        assert!(Timestamp::from_text(b"2000-02-29T23:59:59.999999Z").is_some());
    }

    /// What the library for times prints and reads, which knows the calendar better than we do.
    /// Its range ends a little before ours.
    fn jiff_micros() -> std::ops::RangeInclusive<i64> {
        Timestamp::MIN.0..=jiff::Timestamp::MAX.as_microsecond()
    }

    proptest! {
        #[test]
        fn the_text_is_the_one_jiff_writes(micros in jiff_micros()) {
            let theirs = jiff::Timestamp::from_microsecond(micros).unwrap();
            prop_assert_eq!(Timestamp(micros).to_string(), format!("{theirs:.6}"));
        }

        #[test]
        fn every_moment_reads_back_from_its_text(micros in Timestamp::MIN.0..=Timestamp::MAX.0) {
            let moment = Timestamp(micros);
            prop_assert_eq!(Timestamp::from_text(&moment.text()), Some(moment));
        }

        #[test]
        fn what_both_read_they_read_alike(micros in jiff_micros()) {
            let text = Timestamp(micros).to_string();
            let theirs: jiff::Timestamp = text.parse().unwrap();
            prop_assert_eq!(theirs.as_microsecond(), micros);
        }
    }
}
