//! Which rows of a researcher's results belong to which round, and whether the log knows them.
//!
//! The file has no column for the round: iterations begin anew in each, mostly with a `baseline`
//! row. Invariant: every row is in exactly one segment, and the rounds of segments only go up.

use std::collections::BTreeMap;

use super::{
    event_log::{Status, Trial},
    history::History,
    tsv::{Row, Table},
};

/// The rows of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<'a> {
    pub round: u32,
    pub rows: Vec<&'a Row>,
}

pub fn segments<'a>(table: &'a Table, history: &History, researcher: &str) -> Vec<Segment<'a>> {
    let cut = cut(&table.rows);
    let mut round = 0;
    let mut segments = Vec::with_capacity(cut.len());
    for (index, rows) in cut.iter().enumerate() {
        let left = cut.len() - index;
        round = next_round(rows, history, researcher, round, left);
        segments.push(Segment { round, rows: rows.clone() });
    }
    segments
}

/// A new segment begins at a baseline, or where the iterations start again.
fn cut(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut segments: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let begins = match segments.last().and_then(|rows| rows.last()) {
            None => true,
            Some(before) => {
                row.trial.status == Status::Baseline
                    || row.trial.iteration.is_some()
                        && row.trial.iteration <= before.trial.iteration
            }
        };
        // The system's own setup writes a baseline row without a value; the real one follows.
        let only_placeholders =
            |rows: &Vec<&Row>| rows.iter().all(|row| row.trial.metric.is_none());
        match segments.last_mut() {
            Some(last) if !begins || only_placeholders(last) => last.push(row),
            Some(_) | None => segments.push(vec![row]),
        }
    }
    segments
}

/// The round after `before`, unless the researcher had no part in that one and the rows are those
/// of a later round.
fn next_round(
    rows: &[&Row],
    history: &History,
    researcher: &str,
    before: u32,
    segments_left: usize,
) -> u32 {
    let next = before.saturating_add(1);
    let trials = |round: u32| history.round(round).and_then(|it| it.trials.get(researcher));
    if trials(next).is_some() {
        return next;
    }
    let later: Vec<u32> = history.rounds.range(next..).map(|(number, _)| *number).collect();
    let later: Vec<u32> = later.into_iter().filter(|round| trials(*round).is_some()).collect();
    let of_a_later_round = later.iter().find(|round| {
        let trials = trials(**round).into_iter().flatten();
        trials.into_iter().any(|(number, trial)| {
            rows.iter().any(|row| {
                row.trial.iteration == Some(*number) && same(row.trial.metric, trial.metric)
            })
        })
    });
    match of_a_later_round {
        Some(round) if later.len() >= segments_left => *round,
        Some(_) | None => next,
    }
}

/// Two ways of writing one number.
pub fn same(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(other.abs()),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// How the rows of one round compare with the iterations that were logged for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Iterations with a row and no event. A baseline row needs no event.
    pub unlogged: Vec<u32>,
    /// Iterations with an event and no row.
    pub rowless: Vec<u32>,
    /// Iterations whose row says something else than their event.
    pub different: Vec<u32>,
}

impl Comparison {
    pub fn of(rows: &[&Row], trials: Option<&BTreeMap<u32, Trial>>) -> Self {
        let numbered = numbered(rows);
        let logged = |iteration: u32| trials.and_then(|trials| trials.get(&iteration));
        let mut comparison = Self::default();
        for (iteration, row) in &numbered {
            match logged(*iteration) {
                Some(trial) if differs(&row.trial, trial) => comparison.different.push(*iteration),
                None if row.trial.status != Status::Baseline => {
                    comparison.unlogged.push(*iteration);
                }
                Some(_) | None => {}
            }
        }
        let has_row = |iteration: &u32| numbered.iter().any(|(number, _)| number == iteration);
        let logged = trials.into_iter().flatten().map(|(iteration, _)| *iteration);
        comparison.rowless = logged.filter(|iteration| !has_row(iteration)).collect();
        comparison
    }
}

/// Each row with its iteration; one that does not say it comes after the one before.
pub fn numbered<'a>(rows: &[&'a Row]) -> Vec<(u32, &'a Row)> {
    let mut next = 0;
    let number = |row: &&'a Row| {
        let iteration = row.trial.iteration.unwrap_or(next);
        next = iteration.saturating_add(1);
        (iteration, *row)
    };
    rows.iter().map(number).collect()
}

/// In one file the first row of a later round is `baseline`, in the other it is `kept`.
fn differs(row: &Trial, event: &Trial) -> bool {
    let known = row.status != Status::Unknown && event.status != Status::Unknown;
    !same(row.metric, event.metric) || known && row.status.stands() != event.status.stands()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conference::event_log::EventLog;

    fn table(rows: &[(&str, &str, &str)]) -> Table {
        let row = |(iteration, metric, status): &(&str, &str, &str)| {
            format!("{iteration}\t{metric}\t-\t-\t{status}\tx\ty\t2026-05-04T20:00:00Z\n")
        };
        let rows: String = rows.iter().map(row).collect();
        let table = Table::read(rows.as_bytes());
        assert_eq!(table.broken, Vec::<usize>::new());
        table
    }

    fn history(events: &[(u32, u32, f64)]) -> History {
        let line = |(round, iteration, metric): &(u32, u32, f64)| {
            format!(
                "{{\"event\":\"researcher.iteration\",\"payload\":{{\"researcher\":\"A\",\
                 \"round\":{round},\"iteration\":{iteration},\"metric_value\":{metric},\
                 \"status\":\"kept\"}}}}\n"
            )
        };
        let lines: String = events.iter().map(line).collect();
        History::of(&EventLog::read(lines.as_bytes()))
    }

    fn rounds(table: &Table, history: &History) -> Vec<(u32, usize)> {
        let segments = segments(table, history, "A");
        segments.iter().map(|segment| (segment.round, segment.rows.len())).collect()
    }

    #[test]
    fn a_baseline_or_a_falling_iteration_begins_a_round() {
        let table = table(&[
            ("0", "5", "baseline"),
            ("1", "6", "kept"),
            ("0", "6", "baseline"),
            ("1", "7", "kept"),
            ("1", "8", "kept"),
        ]);
        assert_eq!(rounds(&table, &History::default()), [(1, 2), (2, 2), (3, 1)]);
    }

    #[test]
    fn the_placeholder_of_the_setup_is_part_of_the_first_round() {
        let table = table(&[("0", "TBD", "baseline"), ("0", "5", "baseline"), ("1", "6", "kept")]);
        assert_eq!(rounds(&table, &History::default()), [(1, 3)]);
    }

    #[test]
    fn a_round_that_the_researcher_missed_is_passed_over() {
        let table = table(&[("0", "5", "baseline"), ("1", "6", "kept"), ("0", "9", "baseline")]);
        let told = history(&[(1, 0, 5.0), (1, 1, 6.0), (3, 0, 9.0)]);
        assert_eq!(rounds(&table, &told), [(1, 2), (3, 1)]);
        let told = history(&[(1, 0, 5.0), (1, 1, 6.0), (3, 0, 8.0)]);
        assert_eq!(rounds(&table, &told), [(1, 2), (2, 1)], "other rows than those of round 3");
        let told = history(&[(2, 0, 5.0)]);
        assert_eq!(rounds(&table, &told), [(1, 2), (2, 1)], "two segments, one round that is told");
    }

    #[test]
    fn rows_and_events_are_compared_by_iteration() {
        let table = table(&[("0", "5", "baseline"), ("1", "6", "reverted"), ("3", "7", "kept")]);
        let rows: Vec<&Row> = table.rows.iter().collect();
        let told = history(&[(1, 1, 6.0), (1, 2, 6.5)]);
        let trials = told.round(1).unwrap().trials.get("A");
        let expected = Comparison { unlogged: vec![3], rowless: vec![2], different: vec![1] };
        assert_eq!(Comparison::of(&rows, trials), expected);
        assert_eq!(Comparison::of(&rows, None).unlogged, [1, 3], "a baseline needs no event");
    }

    #[test]
    fn the_first_row_may_be_baseline_here_and_kept_there() {
        let table = table(&[("0", "6.0", "baseline")]);
        let rows: Vec<&Row> = table.rows.iter().collect();
        let told = history(&[(2, 0, 6.0)]);
        let trials = told.round(2).unwrap().trials.get("A");
        assert_eq!(Comparison::of(&rows, trials), Comparison::default());
    }
}
