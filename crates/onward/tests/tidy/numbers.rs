//! The table of docs/testing.md that leads from the number of a finding to its tests.

use std::collections::BTreeSet;

/// The findings of the attack: so many lines under each letter.
const FINDINGS: [(char, u32); 3] = [('A', 27), ('B', 9), ('C', 8)];

/// Numbers without a row, and tests that are named in a row and nowhere else.
pub(crate) fn unproved_findings(files: &[(String, String)], table: &str) -> Vec<String> {
    let rows: Vec<(&str, &str)> = table.lines().filter_map(row).collect();
    let tests: BTreeSet<&str> = files.iter().flat_map(|(_, text)| tests_of(text)).collect();
    let mut complaints = Vec::new();
    for (letter, last) in FINDINGS {
        let missing = (1..=last).map(|it| format!("{letter}{it}"));
        let missing = missing.filter(|it| rows.iter().all(|(number, _)| number != it));
        complaints.extend(missing.map(|it| format!("docs/testing.md: no row for {it}")));
    }
    for (number, named) in rows {
        let names = named.split('`').skip(1).step_by(2).map(|it| it.trim_end_matches('*'));
        let is_there = |name: &&str| tests.iter().any(|it| it.starts_with(name));
        let gone = names.filter(|it| !is_there(it));
        complaints.extend(gone.map(|it| format!("docs/testing.md: {number} has no test `{it}`")));
    }
    complaints
}

/// A line `| A1 | `a1_…` |`.
fn row(line: &str) -> Option<(&str, &str)> {
    let (number, tests) = line.strip_prefix("| ")?.split_once(" | ")?;
    let is_number = number.starts_with(['A', 'B', 'C', 'D'])
        && number.len() > 1
        && number[1..].chars().all(|it| it.is_ascii_digit());
    is_number.then_some((number, tests))
}

fn tests_of(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
    lines.filter_map(|line| line.split('(').next())
}
