//! YAML of foreign files: read whole, and changed one value at a time.
//!
//! Invariant: a change touches one line; comments, order and every key that is not known here stay
//! as they were. A file that is not written as a plain tree of blocks is not changed.

use std::fmt::Write as _;

use onward_core::workflow::foreign_yaml;
use serde_json::{Map, Value};

/// The map that a file holds, or why it holds none.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    if text.contains('\0') {
        return Err("it holds NUL bytes".to_owned());
    }
    match foreign_yaml(text)? {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("it holds no map".to_owned())
        }
    }
}

/// The text with a plain value at this path of keys. Keys that are missing are added, indented as
/// their neighbours are. `None` when the file is not written so that this could be done.
pub fn with_value(text: &str, path: &[&str], value: &str) -> Option<String> {
    let (last, above) = path.split_last()?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut from, mut to, mut indent) =
        (0, lines.len(), child_indent(&lines, 0, lines.len(), None)?);
    for (depth, key) in above.iter().enumerate() {
        let Some(at) = find(&lines, from, to, indent, key) else {
            let pad = " ".repeat(indent);
            let mut block = String::new();
            for (more, key) in path[depth..].iter().enumerate() {
                let pad = format!("{pad}{}", "  ".repeat(more));
                let is_last = depth + more + 1 == path.len();
                let end = if is_last { format!(" {}", scalar(value)) } else { String::new() };
                let _ = writeln!(block, "{pad}{}:{end}", scalar(key));
            }
            return Some(inserted(&lines, to, &block));
        };
        let end = (at + 1..to).find(|line| is_at_most(lines[*line], indent)).unwrap_or(to);
        let rest = after_key(lines[at]).unwrap_or_default();
        if !rest.is_empty() && !rest.starts_with('#') {
            return None;
        }
        (from, to) = (at + 1, end);
        indent = child_indent(&lines, from, to, Some(indent))?;
    }
    let Some(at) = find(&lines, from, to, indent, last) else {
        let line = format!("{}{}: {}\n", " ".repeat(indent), scalar(last), scalar(value));
        return Some(inserted(&lines, to, &line));
    };
    let rest = after_key(lines[at])?;
    if rest.starts_with(['|', '>', '&', '[', '{']) || is_parent(&lines, at, to, indent) {
        return None;
    }
    let key = &lines[at][..=lines[at].find(':')?];
    let comment = rest.find(" #").map_or("", |start| rest[start..].trim_end());
    let line_end = if lines[at].ends_with("\r\n") { "\r\n" } else { "\n" };
    let line = format!("{key} {}{comment}{line_end}", scalar(value));
    Some([lines[..at].concat(), line, lines[at + 1..].concat()].concat())
}

/// Before the blank lines and comments that end a block.
fn inserted(lines: &[&str], at: usize, block: &str) -> String {
    let is_empty = |line: &&&str| line.trim().is_empty();
    let blank = lines[..at].iter().rev().take_while(is_empty).count();
    let (before, after) = lines.split_at(at - blank);
    let before = before.concat();
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    format!("{before}{gap}{block}{}", after.concat())
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_content(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#') && text != "---"
}

fn is_at_most(line: &str, indent: usize) -> bool {
    is_content(line) && indent_of(line) <= indent
}

/// How deep the children of a block stand; two deeper than their parent where there are none.
fn child_indent(lines: &[&str], from: usize, to: usize, parent: Option<usize>) -> Option<usize> {
    let first = lines[from..to].iter().find(|line| is_content(line));
    match (first.map(|line| (line, indent_of(line))), parent) {
        (Some((line, _)), _) if line.trim_start().starts_with("- ") => None,
        (Some((_, indent)), Some(parent)) if indent <= parent => None,
        (Some((_, indent)), _) => Some(indent),
        (None, parent) => Some(parent.map_or(0, |it| it + 2)),
    }
}

fn find(lines: &[&str], from: usize, to: usize, indent: usize, key: &str) -> Option<usize> {
    let is_it = |line: &str| {
        let name = line.trim_start().split(':').next().unwrap_or_default();
        is_content(line)
            && indent_of(line) == indent
            && after_key(line).is_some()
            && name.trim().trim_matches(['"', '\'']) == key
    };
    (from..to).find(|at| is_it(lines[*at]))
}

/// What stands behind `key:`.
fn after_key(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(':')?;
    (rest.trim().is_empty() || rest.starts_with(' ')).then(|| rest.trim())
}

fn is_parent(lines: &[&str], at: usize, to: usize, indent: usize) -> bool {
    let next = lines[at + 1..to].iter().find(|line| is_content(line));
    let is_item = |line: &&&str| line.trim_start().starts_with('-') && indent_of(line) >= indent;
    next.is_some_and(|line| indent_of(line) > indent || is_item(&line))
}

/// A value as YAML: plain where that is safe, or else in quotes.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_plain);
    let means_something = ["true", "false", "null", "yes", "no", "on", "off"];
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_taken = means_something.contains(&text.to_ascii_lowercase().as_str());
    if is_word && !is_taken || is_number || matches!(text, "true" | "false" | "null") {
        return text.to_owned();
    }
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# made by a program
epic_state:
  epicId: 3   # a name
  status: paused
  waves:
    1:
      status: completed
    2:
      status: in_progress
      stories:
        3.4:
          status: pending

  other: [a, b]
";

    #[test]
    fn one_line_changes_and_the_rest_stays() {
        let path = ["epic_state", "waves", "2", "stories", "3.4", "status"];
        let after = with_value(TEXT, &path, "completed").unwrap();
        assert_eq!(after, TEXT.replace("status: pending", "status: completed"));
        let after = with_value(TEXT, &["epic_state", "epicId"], "7").unwrap();
        assert_eq!(after, TEXT.replace("epicId: 3   # a name", "epicId: 7 # a name"));
    }

    #[test]
    fn what_is_missing_is_added_where_its_neighbours_are() {
        let path = ["epic_state", "waves", "2", "stories", "3.4", "completed_at"];
        let after = with_value(TEXT, &path, "2026-02-01T00:00:00Z").unwrap();
        let added = "status: pending\n          completed_at: \"2026-02-01T00:00:00Z\"\n";
        assert_eq!(after, TEXT.replace("status: pending\n", added));
        let after = with_value(TEXT, &["epic_state", "gate_verdicts", "1", "status"], "approved");
        let map = object(after.unwrap().as_bytes()).unwrap();
        assert_eq!(map["epic_state"]["gate_verdicts"]["1"]["status"], "approved");
        assert_eq!(map["epic_state"]["other"][1], "b");
        assert_eq!(with_value("a: 1", &["b"], "x y").unwrap(), "a: 1\nb: \"x y\"\n");
    }

    #[test]
    fn what_is_no_plain_tree_is_not_changed() {
        for text in ["a: {b: 1}\n", "a: [1]\n", "a:\n  - b: 1\n", "a: |\n  b: 1\n"] {
            assert_eq!(with_value(text, &["a", "b"], "2"), None, "{text}");
        }
        assert_eq!(with_value("a:\n  b: 1\n", &["a"], "2"), None);
        assert!(object(b"- 1\n").is_err() && object(&[0xff]).is_err() && object(b"\0").is_err());
    }
}
