//! Quiet hours: a part of each day in which no agent is started.
//!
//! Invariant: a pure function of a moment and a time zone. Hours that begin in the evening end in
//! the morning of the next day.

use std::fmt;

use jiff::{Timestamp as Moment, civil::Time, tz::TimeZone};
use onward_core::time::Timestamp;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quiet {
    from: Time,
    until: Time,
    zone: TimeZone,
}

impl Quiet {
    /// `22:00-07:00`; `None` for anything else.
    pub fn parse(text: &str, zone: TimeZone) -> Option<Self> {
        let (from, until) = text.split_once('-')?;
        let time = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
        };
        let (from, until) = (time(from)?, time(until)?);
        (from != until).then_some(Self { from, until, zone })
    }

    /// When something that takes so long may be started: `None` = now. It is not started in quiet
    /// hours, nor where they would begin before it is through.
    pub fn until(&self, now: Timestamp, takes_ms: u64) -> Option<Timestamp> {
        let moment = |it: Timestamp| Moment::from_microsecond(it.as_micros()).ok();
        let begins = moment(now)?;
        let ends = moment(now.plus_ms(takes_ms))?;
        let today = begins.to_zoned(self.zone.clone()).date();
        let days = [today.yesterday().ok()?, today, today.tomorrow().ok()?];
        days.into_iter().find_map(|day| {
            let next = if self.until <= self.from { day.tomorrow().ok()? } else { day };
            let at = |date: jiff::civil::Date, time: Time| {
                Some(date.to_datetime(time).to_zoned(self.zone.clone()).ok()?.timestamp())
            };
            let (from, until) = (at(day, self.from)?, at(next, self.until)?);
            let is_in = from <= begins && begins < until;
            let runs_into = begins < from && from < ends;
            (is_in || runs_into).then(|| Timestamp::from_micros(until.as_microsecond()))
        })
    }
}

impl fmt::Display for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, until, .. } = self;
        let (hour, minute) = (from.hour(), from.minute());
        write!(f, "{hour:02}:{minute:02}-{:02}:{:02}", until.hour(), until.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(hours: &str, now: &str, takes_minutes: u64) -> Option<String> {
        let quiet = Quiet::parse(hours, TimeZone::get("Europe/Stockholm").unwrap()).unwrap();
        let now: Moment = now.parse().unwrap();
        let now = Timestamp::from_micros(now.as_microsecond());
        let found = quiet.until(now, takes_minutes * 60_000)?;
        Some(Moment::from_microsecond(found.as_micros()).unwrap().to_string())
    }

    #[test]
    fn nothing_starts_in_quiet_hours_or_runs_into_them() {
        for (hours, now, minutes, expected) in [
            // Stockholm is an hour ahead of universal time in November.
            ("22:00-07:00", "2026-11-16T20:59:00Z", 0, None),
            ("22:00-07:00", "2026-11-16T20:59:00Z", 2, Some("2026-11-17T06:00:00Z")),
            ("22:00-07:00", "2026-11-16T21:00:00Z", 0, Some("2026-11-17T06:00:00Z")),
            ("22:00-07:00", "2026-11-17T05:59:00Z", 0, Some("2026-11-17T06:00:00Z")),
            ("22:00-07:00", "2026-11-17T06:00:00Z", 0, None),
            ("09:00-17:00", "2026-11-17T12:00:00Z", 0, Some("2026-11-17T16:00:00Z")),
            ("09:00-17:00", "2026-11-17T17:00:00Z", 60, None),
        ] {
            assert_eq!(until(hours, now, minutes).as_deref(), expected, "{hours} {now} {minutes}");
        }
    }

    #[test]
    fn hours_are_two_times_of_a_day() {
        for text in ["", "22:00", "22-7", "25:00-07:00", "07:00-07:00", "a:b-c:d"] {
            assert_eq!(Quiet::parse(text, TimeZone::UTC), None, "{text}");
        }
        let quiet = Quiet::parse(" 9:30 - 17:00", TimeZone::UTC).unwrap();
        assert_eq!(quiet.to_string(), "09:30-17:00");
    }
}
