//! What a knowledge transfer writes: Shared Knowledge, verdicts, the Conference Log.
//!
//! Invariant: check and complete. Each function looks whether its part is there already and adds
//! only what is missing, so that a transfer may be begun again anywhere.

use super::{
    deed::Verdict,
    document::{Document, Section},
    event_log::Status,
    tsv::Table,
};

/// With the findings under `### Round N Validated Findings`, numbered on from those before.
pub fn learned(document: &Document, round: u32, findings: &[String]) -> Document {
    let Some(section) = document.section("Shared Knowledge") else { return document.clone() };
    let known: Vec<String> = section.whole.lines().map(essence).collect();
    let mut missing: Vec<String> = Vec::new();
    for finding in findings {
        let finding = one_line(finding);
        let is_known = known.contains(&essence(&finding)) || missing.contains(&finding);
        if !is_known && !essence(&finding).is_empty() {
            missing.push(finding);
        }
    }
    if missing.is_empty() {
        return document.clone();
    }
    let title = format!("Round {round} Validated Findings");
    let numbers = section.whole.lines().filter_map(|line| line.trim_start().split_once(". "));
    let last = numbers.filter_map(|(number, _)| number.parse::<u32>().ok()).max().unwrap_or(0);
    let numbered = missing.iter().zip(last.saturating_add(1)..);
    let lines: Vec<String> = numbered.map(|(text, number)| format!("{number}. {text}")).collect();
    let own = document.sections().into_iter().find(|it| {
        let inside = it.start >= section.start && it.start <= section.start + section.whole.len();
        inside && it.title == title
    });
    match own {
        Some(own) => appended(document, &own, &lines.join("\n")),
        None => appended(document, &section, &format!("\n### {title}\n{}", lines.join("\n"))),
    }
}

/// With a row in the Conference Log, unless round and researcher have one.
pub fn noted(document: &Document, cells: [&str; 5]) -> Document {
    let Some(section) = document.section("Conference Log") else { return document.clone() };
    let rows = section.body.lines().filter(|line| line.trim_start().starts_with('|'));
    let cells = cells.map(|cell| one_line(cell).replace('|', "/"));
    let is_this = |line: &&str| {
        let mut own = line.trim().trim_matches('|').split('|').map(str::trim);
        own.next() == Some(&cells[0]) && own.next() == Some(&cells[1])
    };
    if rows.clone().any(|line| is_this(&line)) {
        return document.clone();
    }
    let row = format!("| {} |", cells.join(" | "));
    let header = "| Round | Researcher | Best Metric | Key Finding | Status |\n\
                  |-------|-----------|-------------|-------------|--------|";
    match rows.count() {
        0 => appended(document, &section, &format!("{header}\n{row}")),
        _ => appended(document, &section, &row),
    }
}

/// With the verdict in every row of the researcher and round that has none. A baseline claims
/// nothing, so nothing is said of it.
pub fn judged(table: &Table, round: u32, researcher: &str, verdict: Verdict) -> Table {
    let column = table.columns.iter().position(|name| name == "peer_review_verdict");
    let Some(column) = column else { return table.clone() };
    let is_own = |line: usize| {
        table.rows.iter().any(|row| {
            row.line == line
                && row.round == Some(round)
                && row.researcher.as_deref() == Some(researcher)
                && row.verdict.is_none()
                && row.trial.status != Status::Baseline
        })
    };
    let mut bytes = Vec::with_capacity(table.bytes().len());
    for (index, line) in table.bytes().split_inclusive(|byte| *byte == b'\n').enumerate() {
        if !is_own(index + 1) {
            bytes.extend_from_slice(line);
            continue;
        }
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let length = line.iter().position(is_end).unwrap_or(line.len());
        let (row, end) = line.split_at(length);
        let mut cells: Vec<&[u8]> = row.split(|byte| *byte == b'\t').collect();
        if let Some(cell) = cells.get_mut(column) {
            *cell = verdict.as_str().as_bytes();
        }
        bytes.extend_from_slice(&cells.join(&b'\t'));
        bytes.extend_from_slice(end);
    }
    Table::read(&bytes)
}

/// With `text` as the last lines of the section of this title; as a new section where there is
/// none.
pub(super) fn under(document: &Document, title: &str, text: &str) -> Document {
    if let Some(section) = document.section(title) {
        return appended(document, &section, text);
    }
    let all = document.text();
    if all.as_bytes() != document.bytes() {
        return document.clone();
    }
    Document::read(format!("{}\n\n## {title}\n{text}\n", all.trim_end()).as_bytes())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A finding without its number and marks, to tell whether two are the same.
fn essence(line: &str) -> String {
    let line = line.trim_start();
    let unnumbered = match line.split_once(". ") {
        Some((number, rest)) if number.parse::<u32>().is_ok() => rest,
        Some(_) | None => line.trim_start_matches(['-', '+']),
    };
    let letters = unnumbered.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// With `text` as the last lines of the section, before the blank lines and rule that end it. A
/// file that is no UTF-8 is left alone: what could not be read must not be rewritten.
fn appended(document: &Document, section: &Section<'_>, text: &str) -> Document {
    let all = document.text();
    if all.as_bytes() != document.bytes() {
        return document.clone();
    }
    let body = section.whole.trim_end().trim_end_matches("---").trim_end();
    let end = section.start + body.len();
    let rest = &all[end..];
    let before = &all[..end];
    let gap = if before.ends_with('\n') || before.is_empty() { "" } else { "\n" };
    // A rule right below a line would make a heading of it.
    let after = match rest {
        _ if rest.trim().is_empty() => {
            if rest.starts_with('\n') {
                ""
            } else {
                "\n"
            }
        }
        _ if rest.starts_with("\n\n") || rest.starts_with("\n\r\n") => "",
        _ if rest.starts_with('\n') => "\n",
        _ => "\n\n",
    };
    Document::read(format!("{before}{gap}{text}{after}{rest}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_stays_apart_from_the_heading_or_rule_below() {
        for (below, wanted) in [
            ("\n## Conference Log\n", "1. Hot\n\n## Conference Log\n"),
            ("0. Cold\n---\n", "1. Hot\n\n---\n"),
            ("\n\n---\n", "1. Hot\n\n---\n"),
            ("", "1. Hot\n"),
        ] {
            let document = Document::read(format!("## Shared Knowledge\n{below}").as_bytes());
            let after = learned(&document, 1, &["Hot".to_owned()]);
            let text = after.text();
            assert!(text.ends_with(wanted), "{text}");
            assert_eq!(learned(&after, 1, &["Hot".to_owned()]).bytes(), after.bytes());
        }
    }
}
