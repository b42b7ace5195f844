//! The results, one row an iteration: of one researcher, or of all.
//!
//! A researcher's own file has no column for the round: iterations begin again with each, mostly
//! with a `baseline` row. Invariant: every row is in exactly one segment, and the rounds of
//! segments only go up.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    history::History,
    log::{ITERATIONS_MAX, Status, Trial},
    spelling::{self, Spelling, Spellings},
};
use crate::kit::{
    Broken, number,
    tsv::{self, Form, Table},
};

/// The columns of `researcher_<ID>_results.tsv`.
#[rustfmt::skip]
pub const RESEARCHER_COLUMNS: [&str; 8] = [
    "iteration", "metric_value", "delta", "delta_pct", "status",
    "description", "evaluator_source", "timestamp",
];

/// The columns of `conference_results.tsv`.
#[rustfmt::skip]
pub const CONFERENCE_COLUMNS: [&str; 11] = [
    "round", "researcher", "iteration", "metric_value", "delta", "delta_pct", "status",
    "description", "evaluator_source", "peer_review_verdict", "timestamp",
];

const FORM: Form = Form {
    header_has: "iteration",
    usual: &[&RESEARCHER_COLUMNS, &CONFERENCE_COLUMNS],
    needs: &["status", "outcome"],
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    pub table: Table,
    pub rows: Vec<Row>,
    pub broken: Vec<Broken>,
    pub met: Spellings,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Counted from 1, the header included.
    pub line: usize,
    /// The whole line, without its end.
    pub text: String,
    /// Where the file has such columns.
    pub round: Option<u32>,
    pub researcher: Option<String>,
    pub verdict: Option<String>,
    pub trial: Trial,
}

impl Results {
    pub fn read(bytes: &[u8]) -> Self {
        let table = Table::read(bytes, &FORM);
        let mut met = Spellings::new();
        if table.column("outcome").is_some() {
            met.insert(Spelling::OutcomeForStatus);
        }
        let (mut rows, mut broken) = (Vec::new(), table.broken.clone());
        for own in &table.rows {
            match row(&table, own, &mut met) {
                Ok(row) => rows.push(row),
                Err(why) => broken.push(Broken::new(own.line, why)),
            }
        }
        Self { table, rows, broken, met }
    }

    pub fn bytes(&self) -> &[u8] {
        self.table.bytes()
    }
}

fn row(table: &Table, own: &tsv::Row, met: &mut Spellings) -> Result<Row, String> {
    let cell = |name: &str| table.cell(own, name);
    let whole = |name: &str| cell(name).and_then(number::whole_and_rest).map(|(it, _)| it);
    let researcher = cell("researcher").map(spelling::researcher).transpose();
    let status = cell("status").or_else(|| cell("outcome")).unwrap_or_default();
    let moment = cell("timestamp").or_else(|| cell("ts")).and_then(number::moment);
    let iteration = whole("iteration");
    if iteration.is_some_and(|it| it > ITERATIONS_MAX) {
        return Err("no round has that many iterations".to_owned());
    }
    Ok(Row {
        line: own.line,
        text: own.text.clone(),
        round: whole("round"),
        researcher: researcher.map_err(|why| why.to_string())?,
        verdict: cell("peer_review_verdict").map(str::to_lowercase),
        trial: Trial {
            iteration,
            metric: cell("metric_value").and_then(number::number),
            delta: cell("delta").map(str::to_owned),
            status: Status::parse(status),
            at: spelling::at(moment, met),
            is_inferred: false,
        },
    })
}

/// The rows of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<'a> {
    pub round: u32,
    pub rows: Vec<&'a Row>,
}

pub fn segments<'a>(results: &'a Results, history: &History, researcher: &str) -> Vec<Segment<'a>> {
    let cut = cut(&results.rows);
    let (mut round, mut left) = (0, cut.len());
    let mut segments = Vec::with_capacity(cut.len());
    for rows in cut {
        round = next_round(&rows, history, researcher, round, left);
        segments.push(Segment { round, rows });
        left -= 1;
    }
    segments
}

/// A new segment begins at a baseline, or where the iterations start again.
fn cut(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut segments: Vec<Vec<&Row>> = Vec::new();
    // The system's own setup writes a baseline row without a value; the real one follows.
    let mut is_measured = false;
    for row in rows {
        let before = segments.last().and_then(|rows| rows.last());
        let starts_again = before.is_some_and(|before| {
            let is_lower = row.trial.iteration <= before.trial.iteration;
            row.trial.status == Status::Baseline || row.trial.iteration.is_some() && is_lower
        });
        match segments.last_mut() {
            Some(last) if !starts_again || !is_measured => last.push(row),
            Some(_) | None => {
                segments.push(vec![row]);
                is_measured = false;
            }
        }
        is_measured |= row.trial.metric.is_some();
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
        let trials = || trials.into_iter().flatten().filter(|(_, trial)| !trial.is_inferred);
        let logged: BTreeMap<u32, &Trial> = trials().map(|(number, it)| (*number, it)).collect();
        let mut comparison = Self::default();
        for (iteration, row) in &numbered {
            match logged.get(iteration) {
                Some(trial) if differs(&row.trial, trial) => comparison.different.push(*iteration),
                None if row.trial.status != Status::Baseline => {
                    comparison.unlogged.push(*iteration);
                }
                Some(_) | None => {}
            }
        }
        let with_row: BTreeSet<u32> = numbered.iter().map(|(number, _)| *number).collect();
        let rowless = logged.into_keys().filter(|iteration| !with_row.contains(iteration));
        comparison.rowless = rowless.collect();
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

/// How many rows there are up to the last one to stand on.
pub fn standing_len(rows: &[&Row]) -> usize {
    rows.iter().rposition(|row| row.trial.status.stands()).map_or(0, |last| last + 1)
}

/// In one file the first row of a later round is `baseline`, in the other it is `kept`.
fn differs(row: &Trial, event: &Trial) -> bool {
    let known = row.status != Status::Unknown && event.status != Status::Unknown;
    !same(row.metric, event.metric) || known && row.status.stands() != event.status.stands()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conference::read::log::EventLog;

    fn results(rows: &[(&str, &str, &str)]) -> Results {
        let row = |(iteration, metric, status): &(&str, &str, &str)| {
            format!("{iteration}\t{metric}\t-\t-\t{status}\tx\ty\t2026-05-04T20:00:00Z\n")
        };
        let rows: String = rows.iter().map(row).collect();
        let results = Results::read(rows.as_bytes());
        assert_eq!(results.broken, []);
        results
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

    fn rounds(results: &Results, history: &History) -> Vec<(u32, usize)> {
        let segments = segments(results, history, "A");
        segments.iter().map(|segment| (segment.round, segment.rows.len())).collect()
    }

    #[test]
    fn a_baseline_or_a_falling_iteration_begins_a_round() {
        let results = results(&[
            ("0", "5", "baseline"),
            ("1", "6", "kept"),
            ("0", "6", "baseline"),
            ("1", "7", "kept"),
            ("1", "8", "kept"),
        ]);
        assert_eq!(rounds(&results, &History::default()), [(1, 2), (2, 2), (3, 1)]);
    }

    #[test]
    fn the_placeholder_of_the_setup_is_part_of_the_first_round() {
        let results =
            results(&[("0", "TBD", "baseline"), ("0", "5", "baseline"), ("1", "6", "kept")]);
        assert_eq!(rounds(&results, &History::default()), [(1, 3)]);
    }

    #[test]
    fn a_round_that_the_researcher_missed_is_passed_over() {
        let results =
            results(&[("0", "5", "baseline"), ("1", "6", "kept"), ("0", "9", "baseline")]);
        let told = history(&[(1, 0, 5.0), (1, 1, 6.0), (3, 0, 9.0)]);
        assert_eq!(rounds(&results, &told), [(1, 2), (3, 1)]);
        let told = history(&[(1, 0, 5.0), (1, 1, 6.0), (3, 0, 8.0)]);
        assert_eq!(rounds(&results, &told), [(1, 2), (2, 1)], "other rows than those of round 3");
        let told = history(&[(2, 0, 5.0)]);
        assert_eq!(
            rounds(&results, &told),
            [(1, 2), (2, 1)],
            "two segments, one round that is told"
        );
    }

    #[test]
    fn rows_and_events_are_compared_by_iteration() {
        let results =
            results(&[("0", "5", "baseline"), ("1", "6", "reverted"), ("3", "7", "kept")]);
        let rows: Vec<&Row> = results.rows.iter().collect();
        let told = history(&[(1, 1, 6.0), (1, 2, 6.5)]);
        let trials = told.round(1).unwrap().trials.get("A");
        let expected = Comparison { unlogged: vec![3], rowless: vec![2], different: vec![1] };
        assert_eq!(Comparison::of(&rows, trials), expected);
        assert_eq!(Comparison::of(&rows, None).unlogged, [1, 3], "a baseline needs no event");
    }

    #[test]
    fn the_first_row_may_be_baseline_here_and_kept_there() {
        let results = results(&[("0", "6.0", "baseline")]);
        let rows: Vec<&Row> = results.rows.iter().collect();
        let told = history(&[(2, 0, 6.0)]);
        let trials = told.round(2).unwrap().trials.get("A");
        assert_eq!(Comparison::of(&rows, trials), Comparison::default());
    }

    #[test]
    fn a_row_is_read_with_or_without_its_header() {
        let header = format!("{}\n", RESEARCHER_COLUMNS.join("\t"));
        let row = "1\t40.5\t+6.0\t+17.4%\tkept\tshorter\tscore.sh\t2026-05-04T20:10:00Z\n";
        let read = |text: &str| Results::read(text.as_bytes());
        let named = &read(&format!("{header}{row}")).rows[0].trial;
        assert_eq!(&read(row).rows[0].trial, named);
        assert_eq!((named.iteration, named.metric), (Some(1), Some(40.5)));
        assert_eq!((named.delta.as_deref(), named.status), (Some("+6.0"), Status::Kept));
        let outcome = read(&format!("{}{row}", header.replace("status", "outcome")));
        assert_eq!(
            (&outcome.rows[0].trial, outcome.met),
            (named, [Spelling::OutcomeForStatus].into())
        );
        let eleven = "2\tb\t1\t9\t-\t-\tkept\tx\ty\tvalidated\t2026-05-04T20:10:00Z\n";
        let row = &read(eleven).rows[0];
        assert_eq!((row.round, row.researcher.as_deref()), (Some(2), Some("B")));
        assert_eq!(row.verdict.as_deref(), Some("validated"));
        let climbs = read(&eleven.replace("\tb\t", "\t../b\t"));
        assert_eq!((climbs.rows.len(), climbs.broken.len()), (0, 1));
    }
}
