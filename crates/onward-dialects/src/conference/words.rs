//! How people and agents spell numbers, moments, spans, words and commands in the files of a
//! conference.
//!
//! Invariant: every function here is total. What cannot be read is `None`, never a guess.

use std::collections::BTreeSet;

use onward_core::time::Timestamp;
use serde_json::Value;

/// A way of writing that differs from the system's own reference, and is understood all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spelling {
    TypeForEvent,
    TsForTimestamp,
    TimeForTimestamp,
    MomentWithoutZone,
    OutcomeForStatus,
    RoundNumberInName,
    NumberAsText,
    FieldsWithoutPayload,
    BareKeys,
    TextAfterNumber,
}

/// Those that were met.
pub type Spellings = BTreeSet<Spelling>;

impl Spelling {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TypeForEvent => "`type` for `event`",
            Self::TsForTimestamp => "`ts` for `timestamp`",
            Self::TimeForTimestamp => "`time` for `timestamp`",
            Self::MomentWithoutZone => "a moment without a time zone, read as UTC",
            Self::OutcomeForStatus => "`outcome` for `status`",
            Self::RoundNumberInName => "`round.N.completed` for `round.completed`",
            Self::NumberAsText => "a number as text",
            Self::FieldsWithoutPayload => "fields beside the event instead of in `payload`",
            Self::BareKeys => "bare `key: value` lines in conference.md",
            Self::TextAfterNumber => "text after a number in conference.md",
        }
    }
}

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

fn whole_of(number: f64) -> Option<u32> {
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
pub fn number_in(value: &Value, spellings: &mut Spellings) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Value::String(text) => {
            let number = number(text)?;
            spellings.insert(Spelling::NumberAsText);
            Some(number)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

pub fn whole_in(value: &Value, spellings: &mut Spellings) -> Option<u32> {
    whole_of(number_in(value, spellings)?)
}

/// RFC 3339; also with a space for the `T`, without a zone, or as seconds since 1970.
pub fn moment_in(value: &Value, spellings: &mut Spellings) -> Option<Timestamp> {
    match value {
        Value::String(text) => moment(text, spellings),
        Value::Number(number) => {
            let seconds = number.as_i64().filter(|seconds| (0..=99_999_999_999).contains(seconds));
            seconds.map(|seconds| Timestamp::from_micros(seconds * 1_000_000))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

pub fn moment(text: &str, spellings: &mut Spellings) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    let with_t = text.replacen(' ', "T", 1);
    let without_zone = || format!("{with_t}Z").parse().ok();
    let moment = with_t.parse().ok().or_else(without_zone)?;
    spellings.insert(Spelling::MomentWithoutZone);
    Some(moment)
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

/// A researcher's letter, however it is written: `A`, `a`, `Researcher A`, `researcher_A`.
pub fn researcher(text: &str) -> Option<String> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let name = match lower.strip_prefix("researcher") {
        Some(rest) if !rest.is_empty() => &text[text.len() - rest.len()..],
        Some(_) | None => text,
    };
    let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '_' | '-' | ':'));
    let is_letter = name.len() == 1 && name.as_bytes()[0].is_ascii_alphabetic();
    match name {
        "" => None,
        name if is_letter => Some(name.to_ascii_uppercase()),
        name => Some(name.to_owned()),
    }
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

/// Without the marks of a code span, where one encloses the whole of it: a command may well end in
/// a backtick of its own.
pub fn out_of_code(text: &str) -> &str {
    let text = text.trim();
    let marks = text.len() - text.trim_start_matches('`').len();
    let inner = text.get(marks..text.len().saturating_sub(marks)).unwrap_or_default();
    let is_run = |run: &str| run.len() == marks;
    let mut runs = inner.split(|c: char| c != '`').filter(|run| !run.is_empty());
    let encloses = text.ends_with(&text[..marks]) && !inner.trim().is_empty();
    if marks > 0 && encloses && !runs.any(is_run) { inner.trim() } else { text }
}

/// In a code span that can hold it.
pub fn in_code(text: &str) -> String {
    let runs = text.split(|c: char| c != '`').map(str::len);
    let marks = "`".repeat(runs.max().unwrap_or(0) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{space}{text}{space}{marks}")
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
        let mut met = Spellings::new();
        assert_eq!(whole_and_rest("4 (rounds)"), Some((4, " (rounds)")));
        assert_eq!(whole_and_rest("4.5"), None);
        assert_eq!(whole_and_rest("-4"), None);
        assert_eq!(whole_in(&json!(3), &mut met), Some(3));
        assert!(met.is_empty());
        assert_eq!(whole_in(&json!("3"), &mut met), Some(3));
        assert_eq!(met, [Spelling::NumberAsText].into());
        assert_eq!(whole_in(&json!(5e10), &mut met), None);
    }

    #[test]
    fn a_moment_without_a_zone_is_utc_and_is_said_to_be_so() {
        let mut met = Spellings::new();
        let expected = "2026-05-04T20:00:00Z".parse::<Timestamp>().ok();
        assert_eq!(moment("2026-05-04T22:00:00+02:00", &mut met), expected);
        assert!(met.is_empty());
        assert_eq!(moment("2026-05-04 20:00:00", &mut met), expected);
        assert_eq!(met, [Spelling::MomentWithoutZone].into());
        assert_eq!(moment("last night", &mut met), None);
        assert_eq!(moment_in(&json!(1_777_924_800), &mut met), expected);
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
    fn a_researcher_has_one_name() {
        for text in ["A", "a", " A ", "Researcher A", "researcher_A", "Researcher A:"] {
            assert_eq!(researcher(text).as_deref(), Some("A"), "{text}");
        }
        assert_eq!(researcher("Mira").as_deref(), Some("Mira"));
        assert_eq!(researcher("  "), None);
        assert_eq!(researcher("researcher"), Some("researcher".to_owned()));
    }

    #[test]
    fn a_command_loses_only_the_marks_that_enclose_all_of_it() {
        for command in ["sh score.sh", "echo `cat v`", "`cat v`", "echo ``", "`a` `b`"] {
            assert_eq!(out_of_code(&in_code(command)), command);
        }
        assert_eq!(out_of_code("echo `cat v`"), "echo `cat v`");
        assert_eq!(out_of_code("`echo 1`"), "echo 1");
        assert_eq!(out_of_code("`a` `b`"), "`a` `b`");
        assert_eq!(out_of_code("`` echo `cat v` ``"), "echo `cat v`");
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
