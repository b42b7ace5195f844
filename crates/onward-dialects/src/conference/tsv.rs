//! The results as tab-separated values: one row an iteration, of one researcher or of all.
//!
//! Invariant: the bytes are kept as they came, and a row knows its own text, so that what is shown
//! before it is dropped is what stood there.

use onward_core::time::Timestamp;

use super::{
    event_log::{Status, Trial},
    words::{self, Spelling, Spellings},
};

/// The columns of `researcher_<ID>_results.tsv`.
pub const RESEARCHER_COLUMNS: [&str; 8] = [
    "iteration",
    "metric_value",
    "delta",
    "delta_pct",
    "status",
    "description",
    "evaluator_source",
    "timestamp",
];

/// The columns of `conference_results.tsv`.
pub const CONFERENCE_COLUMNS: [&str; 11] = [
    "round",
    "researcher",
    "iteration",
    "metric_value",
    "delta",
    "delta_pct",
    "status",
    "description",
    "evaluator_source",
    "peer_review_verdict",
    "timestamp",
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    bytes: Vec<u8>,
    /// In lower case; the usual ones where the header is lost.
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
    /// Lines with fewer cells than a status needs.
    pub broken: Vec<usize>,
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

impl Table {
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut table = Self { bytes: bytes.to_owned(), ..Self::default() };
        for (index, line) in text.split('\n').enumerate() {
            let line = line.trim_end_matches(['\r', '\0']);
            if line.trim().is_empty() {
                continue;
            }
            let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
            if table.columns.is_empty() {
                if let Some(named) = header(&cells) {
                    if named.iter().any(|name| name == "outcome") {
                        table.met.insert(Spelling::OutcomeForStatus);
                    }
                    table.columns = named;
                    continue;
                }
                table.columns = usual_columns(cells.len());
            }
            match row(&table.columns, index + 1, line, &cells, &mut table.met) {
                Some(row) => table.rows.push(row),
                None => table.broken.push(index + 1),
            }
        }
        table
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The last line, if it is a row that was cut short while it was written: its number and text.
    pub fn torn(&self) -> Option<(usize, String)> {
        let line = self.broken.last().copied()?;
        let is_last = self.rows.last().is_none_or(|row| row.line < line);
        let text = self.bytes.split(|byte| *byte == b'\n').nth(line - 1)?;
        let text = String::from_utf8_lossy(text).trim_end_matches(['\r', '\0']).to_owned();
        is_last.then_some((line, text))
    }

    /// The same without these lines, counted from 1.
    #[must_use]
    pub fn without(&self, lines: &[usize]) -> Self {
        let all = self.bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        let kept = all.filter(|(index, _)| !lines.contains(&(index + 1))).map(|(_, line)| line);
        Self::read(&kept.collect::<Vec<_>>().concat())
    }
}

fn header(cells: &[&str]) -> Option<Vec<String>> {
    let names: Vec<String> = cells.iter().map(|cell| cell.to_lowercase()).collect();
    names.iter().any(|name| name == "iteration").then_some(names)
}

/// A file that lost its header.
fn usual_columns(cells: usize) -> Vec<String> {
    let usual: &[&str] =
        if cells >= CONFERENCE_COLUMNS.len() { &CONFERENCE_COLUMNS } else { &RESEARCHER_COLUMNS };
    usual.iter().map(|name| (*name).to_owned()).collect()
}

fn row(
    columns: &[String],
    line: usize,
    text: &str,
    cells: &[&str],
    met: &mut Spellings,
) -> Option<Row> {
    let cell = |name: &str| -> Option<&str> {
        let at = columns.iter().position(|column| column == name)?;
        cells.get(at).copied().filter(|cell| !cell.is_empty() && *cell != "-")
    };
    let status = cell("status").or_else(|| cell("outcome"))?;
    let at: Option<Timestamp> =
        cell("timestamp").or_else(|| cell("ts")).and_then(|text| words::moment(text, met));
    let whole = |name: &str| cell(name).and_then(|text| words::whole_and_rest(text)).map(|it| it.0);
    Some(Row {
        line,
        text: text.to_owned(),
        round: whole("round"),
        researcher: cell("researcher").and_then(words::researcher),
        verdict: cell("peer_review_verdict").map(str::to_lowercase),
        trial: Trial {
            iteration: whole("iteration"),
            metric: cell("metric_value").and_then(words::number),
            delta: cell("delta").map(str::to_owned),
            status: Status::parse(status),
            at,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "\
iteration\tmetric_value\tdelta\tdelta_pct\tstatus\tdescription\tevaluator_source\ttimestamp
0\t34.5\t-\t-\tbaseline\tas it was\tscript:score.sh\t2026-05-04T20:00:00Z
1\t40.5\t+6.0\t+17.4%\tkept\tshorter\tscript:score.sh\t2026-05-04T20:10:00Z
";

    #[test]
    fn a_row_is_read_by_the_names_in_the_header() {
        let table = Table::read(ROWS.as_bytes());
        assert_eq!((table.rows.len(), table.broken.len()), (2, 0));
        let row = &table.rows[1];
        assert_eq!((row.line, row.round, row.researcher.as_deref()), (3, None, None));
        assert_eq!((row.trial.iteration, row.trial.metric), (Some(1), Some(40.5)));
        assert_eq!(row.trial.delta.as_deref(), Some("+6.0"));
        assert_eq!(row.trial.status, Status::Kept);
        assert_eq!(table.rows[0].trial.delta, None);
        assert!(row.text.starts_with("1\t40.5"));
        assert_eq!(table.bytes(), ROWS.as_bytes());
    }

    #[test]
    fn a_lost_header_is_made_good_by_the_number_of_columns() {
        let without = ROWS.split_once('\n').unwrap().1;
        let read = |text: &str| Table::read(text.as_bytes()).rows;
        assert_eq!(read(without)[1].trial, read(ROWS)[1].trial);
        let eleven = "2\tB\t1\t9\t-\t-\tkept\tx\ty\tvalidated\t2026-05-04T20:10:00Z\n";
        let row = &read(eleven)[0];
        assert_eq!((row.round, row.researcher.as_deref()), (Some(2), Some("B")));
        assert_eq!(row.verdict.as_deref(), Some("validated"));
    }

    #[test]
    fn a_torn_row_is_named_and_an_odd_column_is_met() {
        let table = Table::read(format!("{ROWS}2\t41").as_bytes());
        assert_eq!((table.rows.len(), table.broken), (2, vec![4]));
        let table = Table::read(ROWS.replace("\tstatus\t", "\toutcome\t").as_bytes());
        assert_eq!(table.rows[1].trial.status, Status::Kept);
        assert_eq!(table.met, [Spelling::OutcomeForStatus].into());
    }
}
