//! A value set in a tree of blocks: keys one a line, and items behind dashes.
//!
//! Invariant: lines that do not hold the value stay as they are.

use std::{fmt::Write as _, ops::Range};

use super::{flow, scalar};

pub(super) fn set(text: &str, path: &[&str], value: &str) -> Option<String> {
    inside(text, 0..text.split_inclusive('\n').count(), None, path, value)
}

/// Within these lines, which are what a parent at that indentation holds.
fn inside(
    text: &str,
    range: Range<usize>,
    parent: Option<usize>,
    path: &[&str],
    value: &str,
) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (key, rest) = path.split_first()?;
    let Some(first) = range.clone().find(|at| is_content(lines[*at])) else {
        let indent = parent.map_or(0, |it| it + 2);
        return Some(inserted(&lines, range.end, &block(path, value, indent)));
    };
    let indent = indent_of(lines[first]);
    let body = lines[first].trim_start();
    if body.starts_with(['{', '[']) {
        return flow::set(text, offset(&lines, first) + indent, path, value);
    }
    if is_item(body) {
        return item(text, &lines, range, path, value);
    }
    if parent.is_some_and(|it| indent <= it) {
        return None;
    }
    let Some(at) = find(&lines, range.clone(), indent, key) else {
        return Some(inserted(&lines, range.end, &block(path, value, indent)));
    };
    let ends = |line: &str| {
        let own = indent_of(line);
        is_content(line) && (own < indent || own == indent && !is_item(line.trim_start()))
    };
    let end = (at + 1..range.end).find(|it| ends(lines[*it])).unwrap_or(range.end);
    let said = after_key(lines[at])?;
    let is_silent = said.is_empty() || said.starts_with('#');
    if is_silent && !rest.is_empty() {
        return inside(text, at + 1..end, Some(indent), rest, value);
    }
    if said.starts_with(['{', '[']) && !rest.is_empty() {
        let start = offset(&lines, at) + lines[at].find(said)?;
        return flow::set(text, start, rest, value);
    }
    let has_more = lines[at + 1..end].iter().any(|line| is_content(line));
    if has_more || said.starts_with(['|', '>', '&', '*', '!', '[', '{']) {
        return None;
    }
    let new = if rest.is_empty() { scalar(value) } else { flow::nested(rest, value, false) };
    let key = &lines[at][..=lines[at].find(':')?];
    Some(replaced(&lines, at, &format!("{key} {new}{}", comment(said))))
}

/// Within a list. The first of the keys is the number of an item; one more than there are is a new
/// one.
fn item(
    text: &str,
    lines: &[&str],
    range: Range<usize>,
    path: &[&str],
    value: &str,
) -> Option<String> {
    let (number, rest) = path.split_first()?;
    let number: usize = number.parse().ok()?;
    let first = range.clone().find(|at| is_content(lines[*at]))?;
    let indent = indent_of(lines[first]);
    let is_head = |at: &usize| {
        let line = lines[*at];
        is_content(line) && indent_of(line) == indent && is_item(line.trim_start())
    };
    let heads: Vec<usize> = range.clone().filter(is_head).collect();
    let pad = " ".repeat(indent);
    let Some(at) = heads.get(number).copied() else {
        let is_next = number == heads.len() && !rest.is_empty();
        let line = || format!("{pad}- {}\n", flow::nested(rest, value, false));
        return is_next.then(|| inserted(lines, range.end, &line()));
    };
    let end = heads.get(number + 1).copied().unwrap_or(range.end);
    let said = lines[at].trim_start().strip_prefix('-')?.trim();
    if said.is_empty() || said.starts_with('#') {
        return inside(text, at + 1..end, Some(indent), rest, value);
    }
    let start = offset(lines, at);
    if said.starts_with(['{', '[']) {
        return flow::set(text, start + lines[at].find(said)?, rest, value);
    }
    let is_quoted = said.starts_with(['"', '\'']) && said.ends_with(['"', '\'']);
    if after_key(said).is_some() && !is_quoted {
        // Without its dash an item is a block like any other.
        let dash = start + indent..start + indent + 1;
        let mut bare = text.to_owned();
        bare.replace_range(dash.clone(), " ");
        let mut after = inside(&bare, at..end, Some(indent), rest, value)?;
        after.replace_range(dash, "-");
        return Some(after);
    }
    let has_more = lines[at + 1..end].iter().any(|line| is_content(line));
    if rest.is_empty() || has_more || said.starts_with(['|', '>', '&', '*', '!']) {
        return None;
    }
    let remark = comment(said);
    let named = flow::named(said.strip_suffix(remark)?.trim(), rest, value);
    Some(replaced(lines, at, &format!("{pad}- {named}{remark}")))
}

/// What is new, one key a line.
fn block(path: &[&str], value: &str, indent: usize) -> String {
    let mut block = String::new();
    for (depth, key) in path.iter().enumerate() {
        let pad = " ".repeat(indent + 2 * depth);
        let end =
            if depth + 1 == path.len() { format!(" {}", scalar(value)) } else { String::new() };
        let _ = writeln!(block, "{pad}{}:{end}", scalar(key));
    }
    block
}

/// Another line in the place of this one, which ends as that does.
fn replaced(lines: &[&str], at: usize, line: &str) -> String {
    let end = if lines[at].ends_with("\r\n") { "\r\n" } else { "\n" };
    [&lines[..at].concat(), line, end, &lines[at + 1..].concat()].concat()
}

/// Before the blank lines that end a block, with lines that end as the others do.
fn inserted(lines: &[&str], at: usize, block: &str) -> String {
    let is_empty = |line: &&&str| line.trim().is_empty();
    let blank = lines[..at].iter().rev().take_while(is_empty).count();
    let (before, after) = lines.split_at(at - blank);
    let is_dos = lines.first().is_some_and(|line| line.ends_with("\r\n"));
    let block = if is_dos { block.replace('\n', "\r\n") } else { block.to_owned() };
    let before = before.concat();
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    format!("{before}{gap}{block}{}", after.concat())
}

fn offset(lines: &[&str], at: usize) -> usize {
    lines[..at].iter().map(|line| line.len()).sum()
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_content(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#') && text != "---"
}

fn is_item(body: &str) -> bool {
    body.starts_with("- ") || body.trim_end() == "-"
}

fn find(lines: &[&str], range: Range<usize>, indent: usize, key: &str) -> Option<usize> {
    let is_it = |line: &str| {
        let name = line.trim_start().split(':').next().unwrap_or_default();
        is_content(line)
            && indent_of(line) == indent
            && after_key(line).is_some()
            && name.trim().trim_matches(['"', '\'']) == key
    };
    range.into_iter().find(|at| is_it(lines[*at]))
}

/// What stands behind `key:`.
fn after_key(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(':')?;
    (rest.trim().is_empty() || rest.starts_with(' ')).then(|| rest.trim())
}

/// The remark behind a value, with the space before it.
fn comment(said: &str) -> &str {
    let quote = said.chars().next().filter(|it| "\"'".contains(*it));
    let from = match quote {
        Some(quote) => said.rfind(quote).unwrap_or(0),
        None => 0,
    };
    said[from..].find(" #").map_or("", |start| &said[from + start..])
}
