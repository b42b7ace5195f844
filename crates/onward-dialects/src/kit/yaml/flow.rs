//! A value set between brackets: `{status: active, waves: {1: {status: pending}}}`, in one line or
//! in several, in the manner of JSON or not.
//!
//! Invariant: what stands between the brackets stays, and so do remarks and the ends of lines.

use std::ops::Range;

use serde_json::Value;

use super::scalar;

/// Sets a value in the collection that opens at this byte.
pub(super) fn set(text: &str, open: usize, path: &[&str], value: &str) -> Option<String> {
    let (key, rest) = path.split_first()?;
    let all = Collection::read(text, open)?;
    let quotes = all.entries.iter().any(|it| text[it.key.clone()].starts_with('"'));
    let found = if all.is_map {
        all.entries.iter().find(|it| bare(&text[it.key.clone()]) == *key)
    } else {
        key.parse().ok().and_then(|it: usize| all.entries.get(it))
    };
    let Some(entry) = found else {
        let is_next = key.parse() == Ok(all.entries.len());
        return (all.is_map || is_next && !rest.is_empty()).then(|| {
            let new = if all.is_map {
                let name = if quotes { Value::from(*key).to_string() } else { scalar(key) };
                format!("{name}: {}", nested(rest, value, quotes))
            } else {
                nested(rest, value, quotes)
            };
            all.with(text, &new)
        });
    };
    let said = &text[entry.value.clone()];
    if said.starts_with(['{', '[']) && !rest.is_empty() {
        return set(text, entry.value.start, rest, value);
    }
    if said.starts_with(['{', '[', '&', '*', '!', '|', '>']) || all.is_map && !entry.has_value {
        return None;
    }
    let new = if all.is_map || rest.is_empty() {
        nested(rest, value, quotes)
    } else {
        named(said, rest, value)
    };
    let gap = if said.is_empty() { " " } else { "" };
    let Range { start, end } = entry.value;
    Some([&text[..start], gap, &new, &text[end..]].concat())
}

/// The value below these keys: `{1: {status: approved}}`; the value itself without keys.
pub(super) fn nested(path: &[&str], value: &str, quotes: bool) -> String {
    let is_plain = |it: &str| it.parse::<u64>().is_ok() || matches!(it, "true" | "false" | "null");
    let name = |it: &str| if quotes { Value::from(it).to_string() } else { scalar(it) };
    let last = if is_plain(value) { value.to_owned() } else { name(value) };
    path.iter().rev().fold(last, |inner, key| format!("{{{}: {inner}}}", name(key)))
}

/// An item that was nothing but its name, with something about it.
pub(super) fn named(item: &str, path: &[&str], value: &str) -> String {
    let more = nested(path, value, false);
    format!("{{id: {item}, {}", more.strip_prefix('{').unwrap_or(&more))
}

fn bare(key: &str) -> &str {
    key.trim().trim_matches(['"', '\''])
}

struct Collection {
    is_map: bool,
    open: usize,
    entries: Vec<Entry>,
}

/// Where an entry stands. In a list the key is empty.
struct Entry {
    key: Range<usize>,
    value: Range<usize>,
    /// There is a colon.
    has_value: bool,
}

impl Collection {
    fn read(text: &str, open: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let is_map = *bytes.get(open)? == b'{';
        let mut all = Self { is_map, open, entries: Vec::new() };
        let (mut at, mut depth) = (open + 1, 0_usize);
        // Of the entry that is being read: its first byte, its colon, and where it ends so far.
        let (mut start, mut colon, mut end) = (None, None, open + 1);
        let mut last = b',';
        while let Some(byte) = bytes.get(at) {
            let is_first = matches!(last, b',' | b':' | b'{' | b'[');
            let ends = depth == 0 && matches!(byte, b',' | b'}' | b']');
            if ends {
                all.entries.extend(entry(text, is_map, start, colon, end));
                (start, colon) = (None, None);
            }
            match byte {
                b'}' | b']' if depth == 0 => return Some(all),
                b'#' if bytes[at - 1].is_ascii_whitespace() => {
                    at += text[at..].find('\n').unwrap_or(text.len() - at);
                    continue;
                }
                b' ' | b'\t' | b'\r' | b'\n' => {
                    at += 1;
                    continue;
                }
                b'}' | b']' => depth -= 1,
                b'{' | b'[' => depth += 1,
                b':' if depth == 0 && colon.is_none() && splits(bytes, at, last) => {
                    colon = Some(at);
                }
                _ => {}
            }
            if !ends {
                start = start.or(Some(at));
                let quote = matches!(byte, b'"' | b'\'') && is_first;
                at = if quote { quoted(bytes, at)? } else { at };
                end = at + 1;
            }
            last = *byte;
            at += 1;
        }
        None
    }

    /// One more entry behind the last one, in a line of its own where that has one.
    fn with(&self, text: &str, new: &str) -> String {
        let Some(entry) = self.entries.last() else {
            return [&text[..=self.open], new, &text[self.open + 1..]].concat();
        };
        let start = if self.is_map { entry.key.start } else { entry.value.start };
        let line = text[..start].rfind('\n').map_or(0, |it| it + 1);
        let pad = &text[line..start];
        let has_own = line > self.open && pad.bytes().all(|it| it.is_ascii_whitespace());
        let gap = if has_own { format!(",\n{pad}") } else { ", ".to_owned() };
        let end = entry.value.end;
        [&text[..end], &gap, new, &text[end..]].concat()
    }
}

fn entry(
    text: &str,
    is_map: bool,
    start: Option<usize>,
    colon: Option<usize>,
    end: usize,
) -> Option<Entry> {
    let start = start?;
    let Some(colon) = colon.filter(|_| is_map) else {
        let key = if is_map { start..end } else { start..start };
        let value = if is_map { end..end } else { start..end };
        return Some(Entry { key, value, has_value: false });
    };
    let from = colon + 1;
    let space = text[from..end.max(from)].len() - text[from..end.max(from)].trim_start().len();
    let value = (from + space).min(end.max(from))..end.max(from);
    Some(Entry { key: start..colon, value, has_value: true })
}

/// Whether this colon ends a key.
fn splits(bytes: &[u8], at: usize, last: u8) -> bool {
    let next = bytes.get(at + 1).copied().unwrap_or(b' ');
    next.is_ascii_whitespace() || b",}]".contains(&next) || matches!(last, b'"' | b'\'')
}

/// The byte that ends a text in quotes.
fn quoted(bytes: &[u8], open: usize) -> Option<usize> {
    let quote = bytes[open];
    let mut at = open + 1;
    loop {
        match bytes.get(at)? {
            b'\\' if quote == b'"' => at += 1,
            b'\'' if quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') => at += 1,
            byte if *byte == quote => return Some(at),
            _ => {}
        }
        at += 1;
    }
}
