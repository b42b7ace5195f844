//! What a life leaves: everything that must come out the same, and what must be readable at any
//! moment.

use std::collections::BTreeMap;

use onward_engine::world::files::is_temporary;
use serde_json::Value;

use crate::{breaks::is_of_person, systems::stage::held, world::SimWorld};

/// State files of the systems are whole whatever happened. Only the last line of our own log may be
/// torn: a log is appended to.
pub(super) fn check_that_files_parse(world: &SimWorld) {
    for (path, bytes) in held(&world.disk).into_iter().filter(|it| !is_temporary(&it.0)) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_state = matches!(name, "phase.json" | "execution.json" | "loop-status.json")
            || path.starts_with('/');
        let lines: Vec<&[u8]> = if path.rsplit('.').next() == Some("jsonl") {
            let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
            bytes[..end].split(|byte| *byte == b'\n').filter(|it| !it.is_empty()).collect()
        } else if is_state {
            vec![&bytes]
        } else {
            Vec::new()
        };
        for line in lines {
            let parsed = serde_json::from_slice::<Value>(line);
            assert!(parsed.is_ok(), "{path}: {parsed:?}: {}", world.story);
        }
    }
}

/// The files at the end, without what tells when and how often something happened.
pub(super) fn left(world: &SimWorld) -> BTreeMap<String, String> {
    let files = held(&world.disk).into_iter().filter(|(path, _)| !is_of_person(path));
    let of = |(path, bytes): (String, Vec<u8>)| {
        let text = String::from_utf8(bytes).unwrap();
        let text = match path.rsplit('.').next() {
            Some("jsonl") => {
                let lines = text.lines().filter(|it| counts(it)).map(uncounted);
                lines.collect::<Vec<_>>().join("\n")
            }
            Some("json") => uncounted(&text),
            _ => text,
        };
        (timeless(&path), timeless(&text))
    };
    files.map(of).collect()
}

/// A line that tells of the work; how often it was taken up is none.
fn counts(line: &str) -> bool {
    let event: Value = serde_json::from_str(line).unwrap_or_default();
    let is_again = !event["details"]["cut_off"].is_null();
    !event.is_null() && event["event_type"] != "session-resumed" && !is_again
}

fn uncounted(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    forget(&mut value);
    value.to_string()
}

fn forget(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in ["attempts", "attempt", "resume_count"] {
                map.remove(key);
            }
            map.values_mut().for_each(forget);
        }
        Value::Array(all) => all.iter_mut().for_each(forget),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The text with `@` for every moment, day or stamp in it.
fn timeless(text: &str) -> String {
    let mut rest = text;
    let mut made = String::new();
    while let Some(next) = rest.chars().next() {
        match moment(rest) {
            0 => {
                made.push(next);
                rest = &rest[next.len_utf8()..];
            }
            length => {
                made.push('@');
                rest = &rest[length..];
            }
        }
    }
    made
}

/// How long the moment is that a text begins with: `2026-11-17T12:00:00.5Z`, `2026-11-17`,
/// `20261117-120000`, `20261117T120000Z`.
fn moment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize, count: usize| {
        bytes.len() >= from + count && bytes[from..from + count].iter().all(u8::is_ascii_digit)
    };
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let day = match () {
        () if digits(0, 4) && is(4, b'-') && digits(5, 2) && is(7, b'-') && digits(8, 2) => 10,
        () if digits(0, 8) && (is(8, b'-') || is(8, b'T')) => 8,
        () => return 0,
    };
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"T:.-Z".contains(byte);
    day + bytes[day..].iter().take_while(|byte| is_part(byte)).count()
}
