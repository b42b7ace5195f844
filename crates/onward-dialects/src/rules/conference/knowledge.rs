//! What a knowledge transfer writes: Shared Knowledge, verdicts, the Conference Log.
//!
//! Invariant: check and complete. Each function looks whether its part is there already and adds
//! only what is missing, so that a transfer may be begun again anywhere.

use crate::{
    conference::{
        read::{log::Status, rows::Results},
        write::happening::Verdict,
    },
    kit::markdown::{Document, one_line, table},
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
        Some(own) => document.with_in(&own, &lines.join("\n")),
        None => document.with_in(&section, &format!("\n### {title}\n{}", lines.join("\n"))),
    }
}

/// With a row in the Conference Log, unless round and researcher have one.
pub fn noted(document: &Document, cells: [&str; 5]) -> Document {
    let Some(section) = document.section("Conference Log") else { return document.clone() };
    let rows = table(section.body);
    let cells = cells.map(|cell| one_line(cell).replace('|', "/"));
    let is_this = |row: &Vec<&str>| row.iter().take(2).eq(cells.iter().take(2));
    if rows.iter().any(is_this) {
        return document.clone();
    }
    let row = format!("| {} |", cells.join(" | "));
    let header = "| Round | Researcher | Best Metric | Key Finding | Status |\n\
                  |-------|-----------|-------------|-------------|--------|";
    let lines = if rows.is_empty() { format!("{header}\n{row}") } else { row };
    document.with_in(&section, &lines)
}

/// With the verdict in every row of the researcher and round that has none. A baseline claims
/// nothing, so nothing is said of it.
pub fn judged(results: &Results, round: u32, researcher: &str, verdict: Verdict) -> Results {
    let Some(column) = results.table.column("peer_review_verdict") else { return results.clone() };
    let rows = results.rows.iter().filter(|row| {
        row.round == Some(round)
            && row.researcher.as_deref() == Some(researcher)
            && row.verdict.is_none()
            && row.trial.status != Status::Baseline
    });
    let lines = rows.map(|row| row.line).collect();
    Results::read(&results.table.with_cell(&lines, column, verdict.as_str()))
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
