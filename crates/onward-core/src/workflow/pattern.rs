//! Names and patterns of files: what `reads`, `writes` and `shows` may say.
//!
//! Invariant: what [`matcher`] takes can be matched. A template may fill a pattern with any text,
//! so that one which is none has to be told apart before the engine looks for files: it is the
//! step's failure, and never the run's.

use globset::{Glob, GlobBuilder, GlobMatcher};

/// No file has a longer path, nor a part of it a longer name.
const BYTES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 255;
/// Braces in braces. The matcher is a regular expression, and has a bound of its own that it
/// panics at.
const BRACES_MAX: usize = 20;

/// Whether it is a pattern and not the name of one file.
pub fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}

/// What matches a pattern; or why it is none. `*` crosses no `/` where `separators` count.
pub fn matcher(pattern: &str, separators: bool) -> Result<GlobMatcher, String> {
    glob(pattern, separators).map(|it| it.compile_matcher())
}

/// Refuses a pattern that is none, and a name that no file can have.
pub(crate) fn understood(pattern: &str) -> Result<(), String> {
    if is_glob(pattern) {
        return glob(pattern, true).map(drop);
    }
    let is_too_long = |name: &str| name.len() > NAME_BYTES_MAX;
    if pattern.len() > BYTES_MAX || pattern.split('/').any(is_too_long) {
        return Err(format!("no file can have a name of {} bytes", pattern.len()));
    }
    if pattern.contains('\0') { Err(format!("{pattern:?} names no file")) } else { Ok(()) }
}

fn glob(pattern: &str, separators: bool) -> Result<Glob, String> {
    if pattern.len() > BYTES_MAX {
        return Err(format!("a pattern of {} bytes, more than {BYTES_MAX}", pattern.len()));
    }
    if braces(pattern) > BRACES_MAX {
        return Err(format!("`{pattern}` has braces in more than {BRACES_MAX} others"));
    }
    let glob = GlobBuilder::new(pattern).literal_separator(separators).build();
    glob.map_err(|error| format!("`{pattern}` is not a pattern: {}", error.kind()))
}

/// How deep braces stand in each other, at most: one that is escaped or in brackets counts too.
fn braces(pattern: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in pattern.bytes() {
        match byte {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_understood_or_refused_with_a_reason() {
        let braces = |levels: usize| format!("{}x{}", "{a,".repeat(levels), "}".repeat(levels));
        for (pattern, refused) in [
            ("a.md".to_owned(), None),
            ("a}b".to_owned(), None),
            ("docs/**/*.md".to_owned(), None),
            ("{a,{b,c}}".to_owned(), None),
            ("[[]a].md".to_owned(), None),
            (braces(BRACES_MAX), None),
            ("*a".repeat(BYTES_MAX / 2), None),
            ("[!x]".repeat(BYTES_MAX / 4), None),
            ("{é,ü}".repeat(BYTES_MAX / 8), None),
            ("x".repeat(NAME_BYTES_MAX), None),
            ("a[b.md".to_owned(), Some("unclosed character class")),
            ("a{b.md".to_owned(), Some("unclosed alternate group")),
            ("[z-a]".to_owned(), Some("invalid range")),
            (braces(300), Some("braces in more than")),
            ("{".repeat(BYTES_MAX), Some("braces in more than")),
            ("*".repeat(BYTES_MAX + 1), Some("more than 4096")),
            (format!("a/{}", "x".repeat(NAME_BYTES_MAX + 1)), Some("a name of 258 bytes")),
            ("a/".repeat(BYTES_MAX), Some("a name of 8192 bytes")),
            ("a\0b".to_owned(), Some("names no file")),
        ] {
            match (understood(&pattern), refused) {
                // And it can be compiled.
                (Ok(()), None) => assert!(!is_glob(&pattern) || matcher(&pattern, true).is_ok()),
                (Err(why), Some(wanted)) => assert!(why.contains(wanted), "{why}"),
                (found, _) => panic!("{pattern}: {found:?}"),
            }
        }
    }
}
