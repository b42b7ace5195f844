//! The rooms of the engine: its folders, from the bottom up, and which of them each may use.
//!
//! Invariant: a room uses only rooms that stand before it in [`ROOMS`], so that no two of them need
//! each other, by whichever way round.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    code::{code_of, imports},
    rules::is_rust,
};

/// Every room, the lowest first, and the rooms that it may use.
pub(crate) const ROOMS: &[(&str, &[&str])] = &[
    ("agents", &[]),
    ("world", &["agents"]),
    ("load", &["world"]),
    ("locate", &["load", "world", "agents"]),
    ("revert", &["world"]),
    ("check", &["revert", "world", "agents"]),
    ("foreign", &["check", "revert", "load", "locate", "world"]),
    ("drive", &["foreign", "check", "revert", "load", "world", "agents"]),
    ("resume", &["drive", "foreign", "check", "revert", "locate", "load", "world", "agents"]),
    (
        "engine",
        &["resume", "drive", "foreign", "check", "revert", "locate", "load", "world", "agents"],
    ),
    ("play", &["world", "locate", "load"]),
    (
        "care",
        &[
            "engine", "resume", "drive", "foreign", "check", "revert", "locate", "load", "world",
            "agents",
        ],
    ),
];

const SOURCES: &str = "crates/onward-engine/src/";

/// A room that reaches up into a later one cannot be read, tested or replaced without it.
pub(crate) fn rooms_use_rooms_below(path: &str, text: &str) -> Vec<String> {
    let Some(inside) = path.strip_prefix(SOURCES).filter(|_| is_rust(path)) else {
        return Vec::new();
    };
    let Some((room, _)) = inside.split_once('/') else {
        let is_door = inside == "lib.rs";
        let complaint = "belongs into a room: only `lib.rs` stands before them".to_owned();
        return if is_door { Vec::new() } else { vec![complaint] };
    };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("`{room}` has no place yet: give it one in `ROOMS`")];
    };
    let is_wrong = |used: &str| !allowed.contains(&used);
    let used = rooms_used(path, text).into_iter().filter(|(used, _)| is_wrong(used));
    used.map(|(used, line)| format!("line {line}: `{room}` must not use `{used}`")).collect()
}

/// The other rooms that the code of a file names, its tests left out, and where first.
pub(crate) fn rooms_used(path: &str, text: &str) -> BTreeMap<&'static str, usize> {
    let mut used = BTreeMap::new();
    let Some((room, rest)) = path.strip_prefix(SOURCES).and_then(|it| it.split_once('/')) else {
        return used;
    };
    if rest.ends_with("tests.rs") || rest.contains("tests/") {
        return used;
    }
    let code = code_of(text);
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    // How far it is up to the crate itself.
    let depth = 1 + rest.split('/').filter(|it| *it != "mod.rs").count();
    let up = "super::".repeat(depth);
    let lines = code.lines().map(str::to_owned).zip(1..);
    for (line, number) in lines.chain(imports(code)) {
        for start in ["crate::", up.as_str()] {
            for (at, _) in line.match_indices(start) {
                let named = |(name, _): &&(&'static str, _)| {
                    let after = line[at + start.len()..].trim_start().strip_prefix(*name);
                    after.is_some_and(|it| {
                        !it.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                    })
                };
                if let Some((name, _)) = ROOMS.iter().find(named).filter(|(name, _)| *name != room)
                {
                    used.entry(*name).or_insert(number);
                }
            }
        }
    }
    used
}

/// Rooms that need each other, by the way that leads round, if there are any.
pub(crate) fn round_trip<'r>(edges: &BTreeSet<(&'r str, &'r str)>) -> Option<Vec<&'r str>> {
    let mut ways: Vec<Vec<&str>> = edges.iter().map(|(from, to)| vec![*from, *to]).collect();
    while let Some(way) = ways.pop() {
        let last = way[way.len() - 1];
        if way[0] == last {
            return Some(way);
        }
        let next = edges.iter().filter(|(from, to)| {
            // Once round is enough.
            *from == last && (*to == way[0] || !way.contains(to))
        });
        ways.extend(next.map(|(_, to)| [way.as_slice(), &[*to]].concat()));
    }
    None
}
