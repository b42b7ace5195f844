//! Names that come from foreign files: of researchers, agents, runs.
//!
//! Invariant: untrusted. A name that passed [`checked`] is one component of a path, of a branch and
//! of an address, and can be printed as it is. Nothing else may become one of these.

use serde_json::Value;

/// Longer ones make paths that file systems refuse.
const BYTES_MAX: usize = 64;

/// Why a text is not taken for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAName {
    #[error("a name is empty")]
    Empty,
    #[error("a name is longer than {BYTES_MAX} bytes")]
    TooLong,
    #[error("a name holds a control character")]
    Control,
    #[error("a name holds a separator of paths")]
    Separator,
    #[error("a name holds `..`")]
    Climbs,
}

/// The text, if it can be a name.
pub fn checked(text: &str) -> Result<&str, NotAName> {
    let is_separator = |c: char| matches!(c, '/' | '\\');
    match text {
        _ if text.trim().is_empty() => Err(NotAName::Empty),
        _ if text.len() > BYTES_MAX => Err(NotAName::TooLong),
        _ if text.contains(is_unprintable) => Err(NotAName::Control),
        _ if text.contains(is_separator) => Err(NotAName::Separator),
        _ if text == "." || text.contains("..") => Err(NotAName::Climbs),
        _ => Ok(text),
    }
}

/// The names in a JSON value, unchecked: of a list of texts, of a list of objects that have one of
/// these keys, or the keys of an object. A text may have a state behind a colon, as in `A:ready`.
pub fn names_in<'a>(value: &'a Value, keys: &[&str]) -> Vec<&'a str> {
    let name = |value: &'a Value| match value {
        Value::Object(object) => keys.iter().find_map(|key| object.get(*key))?.as_str(),
        Value::String(text) => text.split(':').next(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    match value {
        Value::Array(all) => all.iter().filter_map(name).collect(),
        Value::Object(all) => all.keys().map(String::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Control characters, and marks that change the direction or the ends of lines.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || c == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_printable_component() {
        for name in ["A", "Mira", "team 2", "v1.2", "é", "a-b_c", &"x".repeat(64)] {
            assert_eq!(checked(name), Ok(name));
        }
        for (text, why) in [
            ("", NotAName::Empty),
            (" \t", NotAName::Empty),
            (&*"x".repeat(65), NotAName::TooLong),
            ("a\0b", NotAName::Control),
            ("a\nb", NotAName::Control),
            ("a\u{202e}b", NotAName::Control),
            ("a/b", NotAName::Separator),
            ("a\\b", NotAName::Separator),
            ("/etc", NotAName::Separator),
            ("..", NotAName::Climbs),
            (".", NotAName::Climbs),
            ("a..b", NotAName::Climbs),
        ] {
            assert_eq!(checked(text), Err(why), "{text:?}");
        }
    }
}
