//! Just enough reading of Rust and TOML to tell a word that is used from one that is mentioned.
//!
//! Invariant: [`code_of`] keeps every line where it was, so that a complaint can name it.

/// One complaint for each word that `code` contains, as it stands or put together by a `use`.
pub(crate) fn forbid(code: &str, words: &[&str], why: &str) -> Vec<String> {
    let lines: Vec<_> = code.lines().map(str::to_owned).zip(1..).chain(imports(code)).collect();
    let first = |word: &&str| lines.iter().find(|(line, _)| contains_word(line, word));
    let found = words.iter().filter_map(|word| Some((word, first(word)?.1)));
    found.map(|(word, number)| format!("line {number}: `{word}` {why}")).collect()
}

/// The names under every `dependencies` table but `dev-dependencies`, which are not shipped.
pub(crate) fn dependencies(manifest: &str) -> Vec<String> {
    named_in(manifest, |table| !table.contains("dev-dependencies"))
}

/// The names under every `dependencies` table.
pub(crate) fn all_dependencies(manifest: &str) -> Vec<String> {
    named_in(manifest, |_| true)
}

fn named_in(manifest: &str, is_asked: fn(&str) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.split(']').next().unwrap_or_default();
            let counts = is_asked(table);
            inside = counts && table.ends_with("dependencies");
            let own_table = table.split_once("dependencies.").filter(|_| counts);
            names.extend(own_table.map(|(_, name)| name.to_owned()));
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            names.push(name.trim_matches(['"', '\'']).to_owned());
        }
    }
    names
}

pub(crate) fn contains_word(line: &str, word: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !(word.starts_with(continues) && before.ends_with(continues)
            || word.ends_with(continues) && after.starts_with(continues))
    })
}

/// Every path that a `use` brings in, whole, with its line: `use std::{fmt, fs}` is `std::fmt` and
/// `std::fs`.
pub(crate) fn imports(code: &str) -> Vec<(String, usize)> {
    let mut paths = Vec::new();
    for (at, word) in code.match_indices("use ") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let tree = code[at + word.len()..].split(';').next().unwrap_or_default();
        let line = code[..at].matches('\n').count() + 1;
        paths.extend(branches("", tree).into_iter().map(|path| (path, line)));
    }
    paths
}

fn branches(stem: &str, tree: &str) -> Vec<String> {
    let Some((head, inner)) = tree.trim().split_once('{') else {
        return vec![format!("{stem}{}", tree.trim())];
    };
    let stem = format!("{stem}{}", head.trim());
    let mut depth = 0_i32;
    let at_top = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth <= 0 && (c == ',' || depth < 0)
    };
    let parts: Vec<_> = inner.split(at_top).collect();
    parts.iter().filter(|it| !it.trim().is_empty()).flat_map(|it| branches(&stem, it)).collect()
}

/// Every text literal with where it begins.
pub(crate) fn literals(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(first) = text[at..].chars().next() {
        let length = not_code(&text[at..]);
        let is_text = length > 0 && matches!(first, '"' | 'r');
        if is_text {
            found.push((at, &text[at..at + length]));
        }
        at += if length > 0 { length } else { first.len_utf8() };
    }
    found
}

/// The text with comments and literals blanked, line for line: to mention is not to use.
pub(crate) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (blank, next) = match not_code(rest) {
            0 => (false, first.len_utf8()),
            length => (true, length),
        };
        let (piece, after) = rest.split_at(next);
        code.extend(piece.chars().map(|c| if blank && c != '\n' { ' ' } else { c }));
        rest = after;
    }
    code
}

/// How many bytes of comment or literal `rest` begins with.
fn not_code(rest: &str) -> usize {
    let until = |from: usize, end: &str| {
        rest[from..].find(end).map_or(rest.len(), |length| from + length + end.len())
    };
    let hashes = rest.strip_prefix('r').map(|it| it.len() - it.trim_start_matches('#').len());
    match hashes {
        Some(count) if rest[1 + count..].starts_with('"') => {
            until(count + 2, &format!("\"{}", "#".repeat(count)))
        }
        _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
        _ if rest.starts_with("/*") => until(2, "*/"),
        _ if rest.starts_with('"') => quoted(rest),
        _ if rest.starts_with("'\\") => quoted(rest),
        // `'a'` is a literal, `'a` a lifetime.
        _ if rest.starts_with('\'') => match rest.char_indices().nth(2) {
            Some((at, '\'')) => at + 1,
            Some(_) | None => 0,
        },
        _ => 0,
    }
}

/// The length of a literal that ends where its first character comes again without a backslash.
fn quoted(rest: &str) -> usize {
    let mut chars = rest.char_indices();
    let quote = chars.next().map(|(_, c)| c);
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if Some(c) == quote {
            return at + c.len_utf8();
        }
    }
    rest.len()
}
