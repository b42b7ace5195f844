//! A name from a foreign file that becomes part of a path and of a git ref.

use std::fmt;

use super::CallError;

/// Longer names fit neither a screen nor every file system.
const CHARS_MAX: usize = 64;

/// Fit to be one component of a path and of a ref: it cannot lead anywhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(String);

impl Name {
    /// Letters and digits of any script, `-`, `_`, and single dots in the middle.
    pub(super) fn checked(text: &str) -> Result<Self, CallError> {
        let fits = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let is_good = !text.is_empty()
            && text.chars().count() <= CHARS_MAX
            && text.chars().all(fits)
            && !text.starts_with(['-', '.'])
            && !text.ends_with('.')
            && !text.contains("..")
            && !text.to_lowercase().ends_with(".lock");
        if is_good {
            return Ok(Self(text.to_owned()));
        }
        let message = format!("{text:?} cannot name a directory and a branch");
        Err(CallError::new(message).hint("use letters, digits, `-` and `_`"))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_anywhere_else() {
        for good in ["A", "B2", "researcher_1", "Zoë", "a.b"] {
            assert_eq!(Name::checked(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(65);
        for bad in [
            "", ".", "..", "../x", "a/b", "/etc", "-f", "a b", "a..b", "a.", "x.LOCK", "a\0", &long,
        ] {
            assert!(Name::checked(bad).is_err(), "{bad:?}");
        }
    }
}
