//! Moments in foreign files: read in the spellings that programs use, held against the clock.

use onward_core::{
    finding::{Code, Finding},
    plan::AgeBand,
    time::Timestamp,
};

/// Clocks of two machines may differ by this much.
const SLACK_MS: u64 = 120_000;
/// No foreign moment is written longer.
const TEXT_BYTES_MAX: usize = 64;

/// RFC 3339; a space for the `T` and a missing zone (then UTC) are forgiven.
pub fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let parse = |text: &str| text.parse::<Timestamp>().ok();
    let joined = || text.replacen(' ', "T", 1);
    parse(text).or_else(|| parse(&joined())).or_else(|| parse(&format!("{}Z", joined())))
}

/// To the second, as most systems write times.
pub fn seconds(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('.').map_or_else(|| text.clone(), |(whole, _)| format!("{whole}Z"))
}

/// `20260302-095230`, for names
pub fn stamp(at: Timestamp) -> String {
    let text = at.to_string();
    let digits = |part: &str| part.chars().filter(char::is_ascii_digit).collect::<String>();
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    format!("{}-{}", digits(day), digits(time).chars().take(6).collect::<String>())
}

pub fn is_future(now: Timestamp, moment: Timestamp) -> bool {
    moment > now.plus_ms(SLACK_MS)
}

/// A moment that has not come yet: the clock is wrong, or the file is.
pub fn future(now: Timestamp, what: &str, moment: Timestamp) -> Option<Finding> {
    let hint = "set the clock right, or the file was damaged";
    let message = || format!("{what} is in the future: {moment}");
    is_future(now, moment).then(|| Finding::new(Code::ClockInFuture, message()).with_hint(hint))
}

/// Nothing has happened for more than seven days.
pub fn stale(now: Timestamp, last: Timestamp) -> Option<Finding> {
    let age_seconds = now.ms_since(last) / 1000;
    let hint = "look at the plan with care, or archive the state and start a new run";
    let message = || format!("nothing has happened for {} days", age_seconds / 86_400);
    let is_stale = AgeBand::of_seconds(age_seconds) == AgeBand::Stale;
    is_stale.then(|| Finding::new(Code::StaleAge, message()).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_in_three_spellings() {
        let expected = moment("2026-04-11T08:00:00Z");
        assert!(expected.is_some());
        assert_eq!(moment("2026-04-11 08:00:00"), expected);
        assert_eq!(moment("2026-04-11T10:00:00+02:00"), expected);
        for bad in ["", "yesterday", "2026-99-11T08:00:00Z", &"9".repeat(1000)] {
            assert_eq!(moment(bad), None, "{bad}");
        }
    }

    #[test]
    fn seven_days_are_not_stale_and_one_second_more_is() {
        let then = Timestamp::from_micros(0);
        let week_ms = 7 * 86_400_000;
        assert_eq!(stale(then.plus_ms(week_ms), then), None);
        assert!(stale(then.plus_ms(week_ms + 1000), then).is_some());
        assert_eq!(stale(then, then.plus_ms(week_ms)), None, "a future moment is not old");
        assert!(future(then, "it", then.plus_ms(SLACK_MS + 1)).is_some());
        assert_eq!(future(then, "it", then.plus_ms(SLACK_MS)), None);
    }
}
