//! Rules about words: comments name who acts, messages need no second reading.

use crate::rules::{complain_if, is_rust};

/// Words that leave the reader to guess who acts: the driver, the engine, the agent or a person.
pub(crate) fn prose_names_its_actor(path: &str, text: &str) -> Vec<String> {
    const VAGUE: [&str; 4] = ["somebody", "whoever", "nobody", "anew"];
    // Names of files and of people in tests, and what a demo writes, are not prose.
    let is_product = path.contains("/src/") && !path.contains("/tests") && !path.contains("/demo/");
    let is_page = path.starts_with("docs/") || path == "README.md" || path == "ARCHITECTURE.md";
    if !is_product && !is_page {
        return Vec::new();
    }
    let is_vague = |word: &str| VAGUE.iter().any(|vague| word.eq_ignore_ascii_case(vague));
    let mut complaints = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let found = line.split(|c: char| !c.is_alphabetic()).find(|word| is_vague(word));
        complaints.extend(found.map(|word| format!("line {number}: `{word}`: name who acts")));
    }
    complaints
}

/// Turns of phrase that a reader has to read twice, and what to write instead. Comments are ours.
pub(crate) fn messages_are_plain(path: &str, text: &str) -> Vec<String> {
    const PHRASES: [(&str, &str); 5] = [
        ("is no", "is not a"),
        ("go on", "continue"),
        ("goes on", "continues"),
        ("went on", "continued"),
        ("see whether", "check whether"),
    ];
    if !is_rust(path) || !path.contains("/src/") || path.contains("/tests") {
        return Vec::new();
    }
    let (text, _) = text.split_once("#[cfg(test)]").unwrap_or((text, ""));
    let mut complaints = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let said = line.find('"').filter(|_| !line.trim_start().starts_with("//"));
        let said = said.map_or("", |at| &line[at..]);
        for (phrase, plain) in PHRASES {
            let is_meant = |(at, _): (usize, &str)| {
                let (before, after) = (&said[..at], &said[at + phrase.len()..]);
                let there = before.to_lowercase().ends_with("there ");
                let no_longer = ["longer", "more"].iter().any(|it| after.trim().starts_with(it));
                after.starts_with(' ') && !there && !no_longer
            };
            let is_found = said.match_indices(phrase).any(is_meant);
            let complaint = || format!("line {number}: for `{phrase}` write `{plain}`");
            complaints.extend(complain_if(is_found, complaint));
        }
    }
    complaints
}
