//! What the readers of several systems need: lines of JSON, tables, Markdown, statuses in any
//! spelling, numbers, ages, names, and the worktrees of git.
//!
//! Invariant: total and pure. What cannot be read is reported or left out, never guessed; nothing
//! here knows one system from another.

pub mod age;
pub mod code;
pub mod decision;
pub mod edit;
pub mod json;
pub mod jsonl;
pub mod markdown;
pub mod name;
pub mod number;
pub mod order;
pub mod path;
pub mod status;
pub mod trees;
pub mod tsv;
pub mod yaml;

/// A line of a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Counted from 1.
    pub line: usize,
    /// In words, fit for "line 7 cannot be read: …".
    pub why: String,
}

impl Broken {
    pub fn new(line: usize, why: impl Into<String>) -> Self {
        Self { line, why: why.into() }
    }
}

/// The file with one line more, which ends as the lines of the file do. A last line that was not
/// ended is ended first.
pub fn with_line(bytes: &[u8], line: &str) -> Vec<u8> {
    let first = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let end = if first.ends_with(b"\r\n") { "\r\n" } else { "\n" };
    let mut all = bytes.to_vec();
    if all.last().is_some_and(|byte| *byte != b'\n') {
        all.extend_from_slice(end.as_bytes());
    }
    all.extend_from_slice(line.replace('\n', end).as_bytes());
    all.extend_from_slice(end.as_bytes());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_as_the_others_do() {
        assert_eq!(with_line(b"a\r\nb", "c\nd"), b"a\r\nb\r\nc\r\nd\r\n");
        assert_eq!(with_line(b"", "c"), b"c\n");
    }
}
