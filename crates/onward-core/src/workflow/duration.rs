//! Lengths of time as people write them: `250ms`, `5s`, `30m`, `1h30m`, `2d`.

const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// One year: an author who wants more wants no limit.
const DURATION_MS_MAX: u64 = 366 * 86_400_000;

/// In milliseconds. The larger unit comes first, and each at most once.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut units = UNITS.iter();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let (unit, tail) = tail.split_at(letters);
        let (_, ms) = units.find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*ms)?)?;
        rest = tail;
    }
    (!text.trim().is_empty() && total <= DURATION_MS_MAX).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_numbers_with_units_from_large_to_small() {
        for (text, ms) in [
            ("250ms", Some(250)),
            ("5s", Some(5000)),
            ("30m", Some(1_800_000)),
            ("1h30m", Some(5_400_000)),
            ("1d2h3m4s5ms", Some(93_784_005)),
            ("0s", Some(0)),
            ("", None),
            ("30", None),
            ("m", None),
            ("30m1h", None),
            ("1m1m", None),
            ("1.5h", None),
            ("-1s", None),
            ("1 h", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
            ("1000d", None),
        ] {
            assert_eq!(parse(text), ms, "{text}");
        }
    }
}
