//! When a limit is lifted, from the words that say so.
//!
//! `resets 7:54pm (UTC)`, `resets Nov 20, 9am (Europe/Stockholm)`, `try again at 7:19 PM`,
//! `try again in 2 hours 5 minutes`, `usage limit reached|1794772478`. A time of day without a date
//! is the next one of that name; a time without a zone is in the zone that is handed in.
//!
//! Invariant: words that are not understood give no moment. A moment is later than the notice, and
//! never more than `AHEAD_MAX` later.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp as Moment, Zoned, civil, tz::TimeZone};
use onward_core::time::Timestamp;

/// No window of a provider is longer.
const AHEAD_MAX: Duration = Duration::from_hours(32 * 24);

/// Agents leave the seconds out, and their clocks are not ours: a reset that was a moment ago is
/// one that is near, and not the one of tomorrow.
const JUST_NOW: SignedDuration = SignedDuration::from_mins(10);
/// When such a limit is met again, at the earliest.
const AGAIN: SignedDuration = SignedDuration::from_mins(1);

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The moment in a text that was printed at `at`, by a program that lives in the zone `local`.
pub fn moment(text: &str, at: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let text = text.replace('\u{2019}', "'").to_lowercase();
    let now = Moment::from_microsecond(at.as_micros()).ok()?;
    let found = epoch(&text).or_else(|| written(&text, now, local))?;
    let is_now = found <= now && now.duration_since(found) < JUST_NOW;
    let found = if is_now { now.checked_add(AGAIN).ok()? } else { found };
    let ahead = found.duration_since(now);
    let fits = ahead > SignedDuration::ZERO && ahead.unsigned_abs() <= AHEAD_MAX;
    fits.then(|| Timestamp::from_micros(found.as_microsecond()))
}

/// Seconds since 1970 behind a bar.
fn epoch(text: &str) -> Option<Moment> {
    let digits: String =
        text.split_once('|')?.1.trim().chars().take_while(char::is_ascii_digit).collect();
    Moment::from_second(digits.parse().ok()?).ok()
}

fn written(text: &str, now: Moment, local: &TimeZone) -> Option<Moment> {
    const AFTER: [&str; 7] = [
        "try again in ",
        "resets in ",
        "reset in ",
        "reset after ",
        "retry after ",
        "retry in ",
        "retrying after ",
    ];
    const AT: [&str; 6] =
        ["try again at ", "resets at ", "resets on ", "resets ", "reset at ", "available at "];
    let behind = |openings: &[&str]| {
        openings.iter().find_map(|opening| Some(&text[text.find(opening)? + opening.len()..]))
    };
    if let Some(rest) = behind(&AFTER)
        && let Some(span) = span(rest)
    {
        return now.checked_add(span).ok();
    }
    let rest = behind(&AT)?;
    let first = rest.split_whitespace().next()?.trim_end_matches(['.', ',']);
    if let Ok(moment) = first.to_uppercase().parse::<Moment>() {
        return Some(moment);
    }
    let zone = match rest.split_once('(').and_then(|(_, zone)| zone.split_once(')')) {
        Some((name, _)) => zone(name)?,
        None => local.clone(),
    };
    clock(rest.split('(').next()?, &now.to_zoned(zone))
}

/// Names of zones do not mind their case.
fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name.trim()).ok()
}

/// `2 hours 5 minutes`, `1h30m`, `45s`, `34.07s`, `11259ms`.
fn span(text: &str) -> Option<SignedDuration> {
    let mut rest = text.trim_start();
    let mut total = SignedDuration::ZERO;
    let mut any = false;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(count) = rest[..digits].parse::<i64>() else { break };
        rest = &rest[digits..];
        let thousandths = fraction(&mut rest);
        rest = rest.trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let millis = match &rest[..letters] {
            "ms" => 1,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000,
            "d" | "day" | "days" => 86_400_000,
            _ => break,
        };
        let whole = count.checked_mul(millis)?.checked_add(millis * thousandths / 1_000)?;
        total = total.checked_add(SignedDuration::from_millis(whole))?;
        any = true;
        rest = rest[letters..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
    }
    any.then_some(total)
}

/// Takes what stands behind a point, in thousandths.
fn fraction(rest: &mut &str) -> i64 {
    let Some(part) = rest.strip_prefix('.') else { return 0 };
    let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
    let Ok(thousandths) = format!("{:0<3.3}", &part[..digits]).parse() else { return 0 };
    *rest = &part[digits..];
    thousandths
}

/// A date, or none, and a time of day, the next one after `now`.
fn clock(text: &str, now: &Zoned) -> Option<Moment> {
    let mut month = None;
    let mut day = None;
    let mut weekday = None;
    let mut year = None;
    let mut time = None;
    let words =
        text.split([' ', ',']).map(|it| it.trim_end_matches('.')).filter(|it| !it.is_empty());
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let prefix = word.get(..3).unwrap_or("");
        if let Some(at) = MONTHS.iter().position(|it| *it == prefix) {
            month = Some(i8::try_from(at + 1).ok()?);
            continue;
        }
        if let Some(at) = DAYS.iter().position(|it| *it == prefix) {
            weekday = Some(i8::try_from(at + 1).ok()?);
            continue;
        }
        let next = words.peek().copied().filter(|it| ["am", "pm"].contains(it));
        if let Some(found) = hour(word, next) {
            time = Some(found);
            break;
        }
        let number = word.trim_end_matches(['s', 't', 'h', 'n', 'd', 'r']);
        match number.parse::<i16>() {
            Ok(it) if (2000..3000).contains(&it) => year = Some(it),
            Ok(it) if (1..=31).contains(&it) && month.is_some() => {
                day = Some(i8::try_from(it).ok()?);
            }
            Ok(_) | Err(_) if word == "at" => {}
            Ok(_) | Err(_) => break,
        }
    }
    let (time, today) = (time?, now.date());
    let zone = now.time_zone();
    let at =
        |date: civil::Date| Some(date.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp());
    let just_now = now.timestamp().checked_sub(JUST_NOW).ok()?;
    let is_next = |it: &Moment| *it > just_now;
    match (month, day, weekday) {
        (Some(month), Some(day), _) => {
            let of = |year: i16| at(civil::Date::new(year, month, day).ok()?);
            match year {
                Some(year) => of(year),
                None => of(today.year()).filter(is_next).or_else(|| of(today.year() + 1)),
            }
        }
        (_, _, Some(weekday)) => (0..=7).find_map(|ahead| {
            let date = today.checked_add(jiff::Span::new().days(ahead)).ok()?;
            (date.weekday().to_monday_one_offset() == weekday).then(|| at(date))?.filter(is_next)
        }),
        _ => at(today).filter(is_next).or_else(|| at(today.tomorrow().ok()?)),
    }
}

/// `9pm`, `7:54pm`, `7:19` before `pm`, `19:05`.
fn hour(word: &str, next: Option<&str>) -> Option<civil::Time> {
    let (digits, half) = match word.strip_suffix("am") {
        Some(digits) => (digits, Some("am")),
        None => match word.strip_suffix("pm") {
            Some(digits) => (digits, Some("pm")),
            None => (word, next),
        },
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    if half.is_none() && !digits.contains(':') {
        return None;
    }
    let (hours, minutes): (i8, i8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let hours = match half {
        None => hours,
        Some(_) if !(1..=12).contains(&hours) => return None,
        Some("am") => hours % 12,
        Some(_) => hours % 12 + 12,
    };
    civil::Time::new(hours, minutes, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Monday.
    const AT: &str = "2026-11-16T18:30:00Z";

    fn found(text: &str) -> Option<String> {
        let at: Moment = AT.parse().unwrap();
        let at = Timestamp::from_micros(at.as_microsecond());
        let local = TimeZone::get("America/New_York").unwrap();
        let moment = moment(text, at, &local)?;
        Some(Moment::from_microsecond(moment.as_micros()).unwrap().to_string())
    }

    #[test]
    fn words_of_every_shape_give_their_moment() {
        for (text, moment) in [
            ("You've hit your 5-hour limit · resets 7:54pm (UTC)", "2026-11-16T19:54:00Z"),
            ("You've hit your limit, resets 9pm (Europe/Stockholm)", "2026-11-16T20:00:00Z"),
            ("You've hit your limit · resets 7pm (Europe/Stockholm)", "2026-11-17T18:00:00Z"),
            ("resets Nov 20, 9am (Asia/Tokyo)", "2026-11-20T00:00:00Z"),
            ("resets Dec 2 at 9am (UTC)", "2026-12-02T09:00:00Z"),
            // A moment ago.
            ("resets 6:30pm (UTC)", "2026-11-16T18:31:00Z"),
            ("resets 6:25pm (UTC)", "2026-11-16T18:31:00Z"),
            ("resets 6:15pm (UTC)", "2026-11-17T18:15:00Z"),
            ("usage limit reached|1794853500", "2026-11-16T18:31:00Z"),
            ("resets Thu 9am (UTC)", "2026-11-19T09:00:00Z"),
            ("resets Mon 9am (UTC)", "2026-11-23T09:00:00Z"),
            ("or try again at 7:19 PM.", "2026-11-17T00:19:00Z"),
            ("try again at Nov 21st, 2026 7:19 PM.", "2026-11-22T00:19:00Z"),
            ("try again in 2 hours 5 minutes.", "2026-11-16T20:35:00Z"),
            ("Please try again in 1s.", "2026-11-16T18:30:01Z"),
            ("Please retry in 34.5s.", "2026-11-16T18:30:34.5Z"),
            ("Please retry in 34.074824224s.", "2026-11-16T18:30:34.074Z"),
            ("Your quota will reset after 1h30m15s.", "2026-11-16T20:00:15Z"),
            ("Claude AI usage limit reached|1794857400", "2026-11-16T19:30:00Z"),
            ("resets 2026-11-17T09:00:00Z", "2026-11-17T09:00:00Z"),
            ("resets at 19:05 (UTC)", "2026-11-16T19:05:00Z"),
            ("resets 12am (UTC)", "2026-11-17T00:00:00Z"),
        ] {
            assert_eq!(found(text).as_deref(), Some(moment), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_gives_no_moment() {
        for text in [
            "",
            "You've hit your limit",
            "resets soon",
            "resets 9pm (Mars/Olympus)",
            "resets 25pm (UTC)",
            "resets 9 (UTC)",
            "usage limit reached|1",
            "usage limit reached|99999999999999999999",
            "try again in a while",
            "try again in 400 days",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
