//! A log cut after every line, with its tables or without: what each prefix means, written down by
//! hand from the rulings.
//!
//! The log has the shape of a real one: 37 events of an older release, without `round.started`,
//! posters, reviews or endings, deltas as text, rounds of four, four and three iterations. The real
//! files belong to their user; where `ONWARD_REAL_CONFERENCE` names their directory, they are read.

use std::{fmt::Write as _, path::PathBuf};

use onward_core::time::Timestamp;
use onward_dialects::{File, Files};

use crate::builder::plan_of;

/// Prefixes of so many events, the code, the round, and whose research is next.
type Expected = [(std::ops::RangeInclusive<usize>, &'static str, Option<u32>, &'static str)];

/// With the budget of two hours that the file asks for. The clock says so at event 15: it comes
/// exactly two hours after the first, and a budget that is reached is over.
#[rustfmt::skip]
const WITH_BUDGET: &Expected = &[
    (0..=1,   "round-start",       Some(1), "A B C"), // nothing, or only the start
    (2..=4,   "research-continue", Some(1), "A B C"), // A has 1 to 3 of 4
    (5..=8,   "research-continue", Some(1), "B C"),   // A has 4; B has 0 to 3
    (9..=12,  "research-continue", Some(1), "C"),     // B has 4; C has 0 to 3
    (13..=13, "poster-session",    Some(1), ""),      // everybody has 4
    (14..=14, "round-start",       Some(2), "A B C"), // best 65, target 80
    (15..=36, "synthesis",         None,    ""),      // the time budget is over
    (37..=37, "close",             None,    ""),      // 3 of 3 rounds, both outputs whole
];

/// The same without a time budget, which shows the rest of the table. Iterations that reach the
/// target of 80: A's 3 (event 18), B's 2 (event 21), C's 2 (event 25).
#[rustfmt::skip]
const WITHOUT_BUDGET: &Expected = &[
    (0..=1,   "round-start",       Some(1), "A B C"),
    (2..=4,   "research-continue", Some(1), "A B C"),
    (5..=8,   "research-continue", Some(1), "B C"),
    (9..=12,  "research-continue", Some(1), "C"),
    (13..=13, "poster-session",    Some(1), ""),
    (14..=14, "round-start",       Some(2), "A B C"),
    (15..=17, "research-continue", Some(2), "A B C"),
    (18..=20, "research-continue", Some(2), "B C"),   // A has 4
    (21..=24, "research-continue", Some(2), "C"),     // B is at the target with its third
    (25..=26, "poster-session",    Some(2), ""),      // C too
    (27..=27, "synthesis",         None,    ""),      // target reached; files know of a round 3
    (28..=29, "research-continue", Some(3), "A B C"), // they went on all the same: 3 each
    (30..=32, "research-continue", Some(3), "B C"),
    (33..=35, "research-continue", Some(3), "C"),
    (36..=36, "poster-session",    Some(3), ""),
    (37..=37, "close",             None,    ""),
];

/// The same where the tables have all rows from the beginning, so that kept rows run ahead of the
/// log: A's of round 1 end in a reverted one, which is dropped; the others come to their end.
#[rustfmt::skip]
const WITH_ROWS_AHEAD: &Expected = &[
    (0..=1,   "round-start",       Some(1), "A"),     // B and C have all four rows
    (2..=4,   "research-continue", Some(1), "A"),
    (5..=13,  "poster-session",    Some(1), ""),      // the log has A's fourth
    (14..=26, "poster-session",    Some(2), ""),      // four rows, or the target
    (27..=27, "synthesis",         None,    ""),
    (28..=36, "poster-session",    Some(3), ""),      // three rows each
    (37..=37, "close",             None,    ""),
];

/// The tables as they were when so much was logged.
fn cut_tables(files: &mut Files, log: &str) {
    let names: Vec<String> = files.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        let Some(id) = name.strip_prefix("researcher_") else { continue };
        let Some(id) = id.strip_suffix("_results.tsv") else { continue };
        let logged = log.matches(&format!("\"researcher\": \"{id}\"")).count();
        let bytes = files.bytes(&name).unwrap();
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let bytes = lines[..=logged].concat();
        files.insert(name, File { bytes, modified: None });
    }
}

fn check(files: &Files, with_tables: bool, expected: &Expected) {
    let log = String::from_utf8(files.bytes("conference_events.jsonl").unwrap().to_vec()).unwrap();
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 37);
    let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let mut wrong = Vec::new();
    for count in 0..=lines.len() {
        let mut cut = files.clone();
        let log = lines[..count].concat();
        if with_tables {
            cut_tables(&mut cut, &log);
        }
        let bytes = log.into_bytes();
        cut.insert("conference_events.jsonl", File { bytes, modified: None });
        let point = plan_of(&cut, now).recovery_point;
        let letter = |step: &String| {
            let (_, rest) = step.split_once("/research[")?;
            Some(rest.trim_end_matches(']').to_owned())
        };
        let researchers: Vec<String> = point.steps.iter().filter_map(letter).collect();
        let seen = (point.code, point.round, researchers.join(" "));
        let row = expected.iter().find(|(range, ..)| range.contains(&count)).unwrap();
        let wanted = (row.1.to_owned(), row.2, row.3.to_owned());
        if seen != wanted {
            wrong.push(format!("after {count} events: {seen:?}, expected {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn without_time_budget(files: &Files) -> Files {
    let document = String::from_utf8(files.bytes("conference.md").unwrap().to_vec()).unwrap();
    let kept = document.lines().filter(|line| !line.contains("Time budget"));
    let document = kept.fold(String::new(), |text, line| format!("{text}{line}\n"));
    let mut files = files.clone();
    files.insert("conference.md", File { bytes: document.into_bytes(), modified: None });
    files
}

#[test]
fn every_prefix_of_a_log_in_the_old_shape_has_the_point_of_the_rulings() {
    check(&synthetic(), true, WITH_BUDGET);
    check(&without_time_budget(&synthetic()), true, WITHOUT_BUDGET);
    check(&without_time_budget(&synthetic()), false, WITH_ROWS_AHEAD);
}

#[test]
fn every_prefix_of_a_real_log_has_the_point_of_the_rulings() {
    // Without the real files, the log of the same shape stands for them.
    let files = std::env::var_os("ONWARD_REAL_CONFERENCE").map_or_else(synthetic, |dir| {
        let entries = std::fs::read_dir(PathBuf::from(dir)).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.path().is_file());
        let read = |entry: std::fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        };
        files.map(read).collect()
    });
    check(&files, true, WITH_BUDGET);
    check(&without_time_budget(&files), true, WITHOUT_BUDGET);
}

/// Values of three researchers, round by round; the first of each round is its baseline.
const VALUES: [[&[f64]; 3]; 3] = [
    [&[31.0, 38.5, 61.5, 30.0], &[61.5, 47.0, 30.0, 62.0], &[31.0, 31.0, 38.5, 62.0]],
    [&[62.0, 62.0, 62.0, 97.5], &[71.5, 74.5, 97.5, 97.0], &[71.5, 74.5, 97.5, 97.5]],
    [&[97.5, 97.0, 97.5], &[97.5, 97.5, 97.5], &[97.5, 97.5, 97.5]],
];

fn synthetic() -> Files {
    let start: Timestamp = "2026-02-10T09:00:00Z".parse().unwrap();
    let mut at = start;
    let payload = r#"{"researchers": 3, "mode": "metric", "goal": "Fold better paper boats"}"#;
    let line = |log: &mut String, event: &str, at: Timestamp, payload: &str| {
        writeln!(log, r#"{{"event": "{event}", "timestamp": "{at}", "payload": {payload}}}"#)
            .unwrap();
    };
    let mut log = String::new();
    line(&mut log, "conference.started", at, payload);
    let mut tables = [const { String::new() }; 3];
    for (round, researchers) in VALUES.iter().enumerate() {
        for (who, values) in researchers.iter().enumerate() {
            let letter = ["A", "B", "C"][who];
            let mut best = values[0];
            for (iteration, value) in values.iter().enumerate() {
                let kept = *value >= best;
                best = best.max(*value);
                let status = if kept { "kept" } else { "reverted" };
                // The log calls the first row of later rounds `kept`, the table `baseline`.
                let first = iteration == 0;
                let logged = if first && round == 0 { "baseline" } else { status };
                let written = if first { "baseline" } else { status };
                let delta = if logged == "baseline" { "-".into() } else { format!("{value:+.1}") };
                let number = round + 1;
                let payload = format!(
                    "{{\"researcher\": \"{letter}\", \"round\": {number}, \
                     \"iteration\": {iteration}, \"metric_value\": {value:.1}, \
                     \"delta\": \"{delta}\", \"status\": \"{logged}\"}}"
                );
                line(&mut log, "researcher.iteration", at, &payload);
                let row =
                    format!("{iteration}\t{value}\t{delta}\t-\t{written}\tfold\tlook\t{at}\n");
                tables[who].push_str(&row);
                at = at.plus_ms(600_000);
            }
        }
        // Rounds end five minutes before the next begins, on the hour.
        let number = round + 1;
        let end = start.plus_ms([115, 235, 325][round] * 60_000);
        line(
            &mut log,
            &format!("round.{number}.completed"),
            end,
            &format!("{{\"round\": {number}}}"),
        );
        at = start.plus_ms(120 * 60_000 * number as u64);
    }
    let document = "# Conference: Boats\n\n## Goal\nFold boats that float.\n\n## Mode\nmetric\n\n\
        ## Success Metric\n- **Metric:** minutes afloat\n- **Target:** >= 80\n\
        - **Direction:** maximize\n\n## Researchers\n- **Count:** 3\n\
        - **Iterations per round:** 4 (round 1-2), 3 (round 3)\n- **Max rounds:** 3\n\n\
        ## Constraints\n- **Max total iterations:** 33\n- **Time budget:** 2h\n\n\
        ## Shared Knowledge\n\n## Conference Log\n";
    let page = "# Page\n\nWords.\n";
    let mut files: Vec<(String, String)> = vec![
        ("conference.md".into(), document.into()),
        ("conference_events.jsonl".into(), log),
        ("synthesis.md".into(), page.into()),
        ("final_report.md".into(), page.into()),
    ];
    for (who, rows) in tables.into_iter().enumerate() {
        let name = format!("researcher_{}_results.tsv", ["A", "B", "C"][who]);
        files.push((name, format!("{}{rows}", crate::builder::COLUMNS)));
    }
    for number in 1..=3 {
        files.push((format!("poster_session_round_{number}.md"), page.into()));
        files.push((format!("peer_review_round_{number}.md"), page.into()));
    }
    files.into_iter().collect()
}
