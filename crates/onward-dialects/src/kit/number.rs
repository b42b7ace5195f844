//! How people and agents spell numbers, moments, spans of time, and yes or no.
//!
//! Invariant: every function here is total. What cannot be read is `None`, never a guess.

use onward_core::time::Timestamp;
use serde_json::Value;

/// The number that `text` begins with, and what follows it.
pub fn number_and_rest(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start().trim_start_matches(['~', '≈']).trim_start();
    let bytes = text.as_bytes();
    let (negative, unsigned) = match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let start = text.len() - unsigned.len();
    let mut digits = String::new();
    let mut end = start;
    let mut seen_point = false;
    while let Some(byte) = bytes.get(end) {
        let next_is_digit = bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        match byte {
            b'0'..=b'9' => digits.push(char::from(*byte)),
            b'.' if !seen_point && next_is_digit => {
                seen_point = true;
                digits.push('.');
            }
            // A comma between groups of three, as in 1,250.
            b',' if !seen_point && !digits.is_empty() && is_group(&bytes[end + 1..]) => {}
            b'_' if !digits.is_empty() && next_is_digit => {}
            b'e' | b'E' if !digits.is_empty() => {
                let exponent = exponent(&text[end + 1..]);
                let Some(exponent) = exponent else { break };
                digits.push('e');
                digits.push_str(exponent);
                end += 1 + exponent.len();
                break;
            }
            _ => break,
        }
        end += 1;
    }
    if !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: f64 = digits.parse().ok()?;
    let number = if negative { -number } else { number };
    number.is_finite().then(|| (number, &text[end..]))
}

fn is_group(bytes: &[u8]) -> bool {
    bytes.len() >= 3
        && bytes[..3].iter().all(u8::is_ascii_digit)
        && !bytes.get(3).is_some_and(u8::is_ascii_digit)
}

/// The digits of `e-3`, with their sign.
fn exponent(text: &str) -> Option<&str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = unsigned.len() - unsigned.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (digits > 0).then(|| &text[..text.len() - unsigned.len() + digits])
}

/// The number that `text` begins with.
pub fn number(text: &str) -> Option<f64> {
    number_and_rest(text).map(|(number, _)| number)
}

/// The whole number that `text` begins with, and what follows it.
pub fn whole_and_rest(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = number_and_rest(text)?;
    Some((whole_of(number)?, rest))
}

/// The number, if it counts something.
pub fn whole_of(number: f64) -> Option<u32> {
    let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was found to be a whole number in range on the line before"
    )]
    let whole = number as u32;
    is_whole.then_some(whole)
}

/// A JSON number, or text that begins with one.
pub fn in_json(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Value::String(text) => number(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

pub fn whole_in_json(value: &Value) -> Option<u32> {
    whole_of(in_json(value)?)
}

/// A point in time, and how it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub at: Timestamp,
    /// It names no zone and is read as UTC.
    pub is_zoneless: bool,
}

/// RFC 3339; also with a space for the `T`, or without a zone.
pub fn moment(text: &str) -> Option<Moment> {
    let text = text.trim();
    if let Ok(at) = text.parse() {
        return Some(Moment { at, is_zoneless: false });
    }
    let with_t = text.replacen(' ', "T", 1);
    let without_zone = || format!("{with_t}Z").parse().ok();
    let at = with_t.parse().ok().or_else(without_zone)?;
    Some(Moment { at, is_zoneless: true })
}

/// The same as JSON text, or as seconds since 1970.
pub fn moment_in_json(value: &Value) -> Option<Moment> {
    match value {
        Value::String(text) => moment(text),
        Value::Number(number) => {
            let seconds = number.as_i64().filter(|seconds| (0..=99_999_999_999).contains(seconds));
            let at = seconds.map(|seconds| Timestamp::from_micros(seconds * 1_000_000));
            at.map(|at| Moment { at, is_zoneless: false })
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A span such as `2h`, `90 min` or `1h30m`, in milliseconds. A number without a unit is none.
pub fn span_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim_start();
    let mut total_ms = 0.0;
    let mut found = false;
    while let Some((amount, after)) = number_and_rest(rest) {
        let after = after.trim_start();
        let unit_len = after.len() - after.trim_start_matches(|c: char| c.is_alphabetic()).len();
        let unit_ms = match after[..unit_len].to_ascii_lowercase().as_str() {
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
            "d" | "day" | "days" => 86_400_000.0,
            "w" | "week" | "weeks" => 604_800_000.0,
            _ => break,
        };
        if amount < 0.0 {
            return None;
        }
        total_ms += amount * unit_ms;
        found = true;
        rest = after[unit_len..].trim_start();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and a cast from a float stops at the end of the range"
    )]
    let total_ms = total_ms as u64;
    found.then_some(total_ms)
}

/// By its first word; anything else is neither.
pub fn yes_or_no(text: &str) -> Option<bool> {
    const YES: [&str; 7] = ["yes", "y", "true", "on", "enabled", "enable", "active"];
    const NO: [&str; 8] = ["no", "n", "false", "off", "disabled", "disable", "none", "inactive"];
    let lower = text.trim_matches(['`', '*', '"', ' ']).to_lowercase();
    let word = lower.split(|c: char| !c.is_alphabetic()).next()?;
    let is = |words: &[&str]| words.contains(&word);
    if is(&YES) { Some(true) } else { is(&NO).then_some(false) }
}

/// A JSON `true`, or text that says yes.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::String(text) => yes_or_no(text) == Some(true),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_read_through_signs_units_and_groups() {
        for (text, expected) in [
            ("71.2", Some(71.2)),
            ("+6.0", Some(6.0)),
            ("-30.5", Some(-30.5)),
            ("−4", Some(-4.0)),
            ("4 (round 1-2), 3 (round 3)", Some(4.0)),
            ("50ms", Some(50.0)),
            ("+17.4%", Some(17.4)),
            ("1,250.5 rows", Some(1250.5)),
            ("1,25", Some(1.0)),
            ("1_000", Some(1000.0)),
            ("2e-3", Some(0.002)),
            ("3 east", Some(3.0)),
            ("8/10", Some(8.0)),
            ("~ 12", Some(12.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("-", None),
            ("", None),
            ("TBD", None),
            ("1e999", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    #[test]
    fn only_a_whole_number_counts_things() {
        assert_eq!(whole_and_rest("4 (rounds)"), Some((4, " (rounds)")));
        assert_eq!(whole_and_rest("4.5"), None);
        assert_eq!(whole_and_rest("-4"), None);
        assert_eq!(whole_in_json(&json!(3)), Some(3));
        assert_eq!(whole_in_json(&json!("3")), Some(3));
        assert_eq!(whole_in_json(&json!(5e10)), None);
    }

    #[test]
    fn a_moment_without_a_zone_is_utc_and_is_said_to_be_so() {
        let at: Timestamp = "2026-05-04T20:00:00Z".parse().unwrap();
        let zoned = Some(Moment { at, is_zoneless: false });
        assert_eq!(moment("2026-05-04T22:00:00+02:00"), zoned);
        assert_eq!(moment("2026-05-04 20:00:00"), Some(Moment { at, is_zoneless: true }));
        assert_eq!(moment("last night"), None);
        assert_eq!(moment_in_json(&json!(1_777_924_800)), zoned);
    }

    #[test]
    fn a_span_needs_a_unit() {
        for (text, minutes) in [
            ("2h", Some(120)),
            ("90 min", Some(90)),
            ("1h30m", Some(90)),
            ("1 hour 30 minutes (hard)", Some(90)),
            ("1.5h", Some(90)),
            ("2 days", Some(2880)),
            ("120", None),
            ("none", None),
            ("-2h", None),
        ] {
            assert_eq!(span_ms(text), minutes.map(|it: u64| it * 60_000), "{text}");
        }
        assert_eq!(span_ms("45s"), Some(45_000));
    }

    #[test]
    fn yes_and_no_have_many_spellings_and_maybe_is_neither() {
        for yes in ["yes", "Enabled (B)", "true", "on", "active"] {
            assert_eq!(yes_or_no(yes), Some(true), "{yes}");
        }
        for no in ["no", "disabled", "None", "off — not needed", "false"] {
            assert_eq!(yes_or_no(no), Some(false), "{no}");
        }
        for vague in ["maybe", "only if needed", "not sure", "?"] {
            assert_eq!(yes_or_no(vague), None, "{vague}");
        }
    }
}
