//! Programs that print one JSON event a line: the part that is the same for all of them.
//!
//! Invariant: a line that is no JSON is passed over when it is understood, unless the whole of it
//! is the notice of a limit, and shown as it is when it is told.

use onward_core::{evidence::Cause, said::Said};
use serde_json::Value;

use super::notice;

/// Hands every event in `lines` to `take`.
pub(super) fn each(
    provider: &str,
    lines: &[u8],
    said: &mut Said,
    mut take: impl FnMut(&Value, &mut Said),
) {
    for line in lines.split(|byte| *byte == b'\n') {
        if let Some(event) = parsed(line) {
            take(&event, said);
            continue;
        }
        let text = String::from_utf8_lossy(line);
        // Without JSON at all, as a program prints that was not asked for it.
        if notice::is_limit_notice(&text) {
            notice::end_with(said, provider, Cause::UsageLimit, &text);
        }
    }
}

/// The event of a line, also where a tool's output put bytes into it that are no UTF-8.
pub(super) fn parsed(line: &[u8]) -> Option<Value> {
    let event = serde_json::from_slice(line);
    event.or_else(|_| serde_json::from_str(&String::from_utf8_lossy(line))).ok()
}

/// One line in words.
pub(super) fn told(line: &str, words: impl FnOnce(&Value) -> Vec<String>) -> Vec<String> {
    match serde_json::from_str(line) {
        Ok(event) => words(&event),
        Err(_) => vec![line.to_owned()],
    }
}

/// What it said, if that is anything.
pub(super) fn said(event: &Value, pointer: &str) -> Vec<String> {
    let words = text(event, pointer).filter(|it| !it.trim().is_empty());
    words.map(str::to_owned).into_iter().collect()
}

/// A tool that it calls, with the one argument that a person wants to see.
pub(super) fn tool(name: Option<&str>, input: Option<&Value>) -> String {
    let line = format!("> {} {}", name.unwrap_or("a tool"), argument(input));
    line.trim_end().to_owned()
}

pub(super) fn ended_badly(words: Option<&str>) -> String {
    format!("(ended badly: {})", notice::shortened(words.unwrap_or("no words")))
}

fn argument(input: Option<&Value>) -> String {
    const TELLING: [&str; 8] =
        ["command", "file_path", "filePath", "path", "pattern", "query", "url", "description"];
    let Some(input) = input else { return String::new() };
    let found = TELLING.iter().find_map(|name| input.get(name));
    let found = found.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    notice::shortened(&found.unwrap_or_else(|| input.to_string()))
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// A count in an event; 0 where there is none.
pub(super) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// An option for each value that is there.
pub(super) fn options(pairs: &[(&str, Option<&str>)]) -> Vec<String> {
    let given = pairs.iter().filter_map(|(flag, value)| value.map(|value| [*flag, value]));
    given.flatten().map(str::to_owned).collect()
}
