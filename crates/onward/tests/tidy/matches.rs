//! Just enough reading of `match` to see which patterns its arms have.
//!
//! Invariant: it is given code without comments and literals, so that brackets are in pairs.

/// A `match` over a tuple.
pub(crate) struct TupleMatch {
    pub(crate) line: usize,
    /// The pattern of each arm, without its guard.
    pub(crate) patterns: Vec<String>,
}

pub(crate) fn tuple_matches(code: &str) -> Vec<TupleMatch> {
    let mut found = Vec::new();
    for (at, word) in code.match_indices("match (") {
        let tuple = &code[at + word.len() - 1..];
        let (inside, after) = tuple.split_at(end_of_pair(tuple));
        let body = after.trim_start();
        // `match (a.b)(c) {` and `match (a) {` are no tuples.
        if split_outside(&inside[1..inside.len() - 1], ',').len() < 2 || !body.starts_with('{') {
            continue;
        }
        let body = &body[1..end_of_pair(body) - 1];
        let line = code[..at].matches('\n').count() + 1;
        found.push(TupleMatch { line, patterns: patterns(body) });
    }
    found
}

/// The enums whose variants a pattern names: `Role` in `(Role::Leaf, None)`.
pub(crate) fn enums_in(pattern: &str) -> Vec<String> {
    let words: Vec<&str> = pattern.split("::").collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_uppercase());
    let last = |word: &str| {
        let start = word.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        word[start..].to_owned()
    };
    let named = pairs.filter(|(_, variant)| is_name(variant)).map(|(name, _)| last(name));
    named.filter(|name| is_name(name)).collect()
}

/// Whether a pattern matches whatever comes: `_`, `(_, _)`, `(_, other)`.
pub(crate) fn takes_anything(pattern: &str) -> bool {
    let is_any = |part: &str| {
        let part = part.trim();
        part == "_" || part == ".." || is_binding(part)
    };
    let inside = pattern.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    match inside {
        Some(inside) => split_outside(inside, ',')
            .into_iter()
            .all(|part| part.trim().is_empty() || is_any(part)),
        None => is_any(pattern),
    }
}

fn is_binding(part: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !part.is_empty()
        && part.chars().all(word)
        && !matches!(part, "true" | "false")
        && !part.starts_with(|c: char| c.is_ascii_digit())
}

/// The patterns of the arms in the body of a `match`.
fn patterns(body: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = body.trim_start();
    while let Some(arrow) = outside(rest).find(|at| rest[*at..].starts_with("=>")) {
        let pattern = rest[..arrow].split(" if ").next().unwrap_or_default();
        found.push(pattern.split_whitespace().collect::<Vec<_>>().join(" "));
        let arm = rest[arrow + 2..].trim_start();
        let end = if arm.starts_with('{') {
            end_of_pair(arm)
        } else {
            outside(arm).find(|at| arm[*at..].starts_with(',')).unwrap_or(arm.len())
        };
        rest = arm[end..].trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    }
    found
}

/// Where the bracket that `text` begins with is closed: the place after it.
fn end_of_pair(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + c.len_utf8();
        }
    }
    text.len()
}

fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let cuts: Vec<usize> = outside(text).filter(|at| text[*at..].starts_with(separator)).collect();
    let starts = std::iter::once(0).chain(cuts.iter().map(|at| at + separator.len_utf8()));
    let ends = cuts.iter().copied().chain(std::iter::once(text.len()));
    starts.zip(ends).map(|(start, end)| &text[start..end]).collect()
}

/// The places in `text` that are inside of no bracket.
fn outside(text: &str) -> impl Iterator<Item = usize> {
    let mut depth = 0_i32;
    text.char_indices().filter_map(move |(at, c)| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        (depth == 0).then_some(at)
    })
}
