//! Results, rebuilt from the log when their file is gone; those of all also from the researchers'
//! own.
//!
//! Invariant: minimal. A cell that no file knows is `-`; nothing is made up.

use std::collections::{BTreeMap, BTreeSet};

use super::{happening::Verdict, percent, seconds, shared_cells};
use crate::{
    conference::read::{
        Conference,
        history::Round,
        log::{Status, Trial},
        rows::{CONFERENCE_COLUMNS, RESEARCHER_COLUMNS, Results, numbered},
    },
    kit::tsv::cell,
    rules::conference::review,
};

/// The conference with the results that it lost.
pub(super) fn rebuilt(conference: &Conference) -> Conference {
    let mut own_rows: BTreeMap<&String, String> = BTreeMap::new();
    let mut shared_rows = String::new();
    let tried = conference.history.rounds.values().flat_map(|round| round.trials.keys());
    let lost: BTreeSet<&String> =
        tried.filter(|researcher| conference.results_of(researcher).is_none()).collect();
    let rows = conference.all_rows();
    for (number, round) in &conference.history.rounds {
        let judged = conference.reviews.get(number).map(review::judgements).unwrap_or_default();
        for researcher in round.trials.keys() {
            let verdict = review::overall(&judged, researcher).map_or("-", Verdict::as_str);
            let own = rows.get(researcher.as_str()).and_then(|it| it.get(number));
            let own = numbered(own.map(Vec::as_slice).unwrap_or_default());
            for (iteration, trial) in round.trials_of(researcher) {
                let row = own.iter().find(|(number, _)| *number == iteration);
                let row = row.map(|(_, row)| row.text.split('\t').map(str::to_owned));
                let row = row.and_then(|row| row.collect::<Vec<_>>().try_into().ok());
                let cells: [String; 8] =
                    row.unwrap_or_else(|| logged(round, researcher, iteration, trial));
                let add = |rows: &mut String, cells: &[String]| {
                    rows.push_str(&cells.join("\t"));
                    rows.push('\n');
                };
                if lost.contains(researcher) {
                    add(own_rows.entry(researcher).or_default(), &cells);
                }
                add(&mut shared_rows, &shared_cells(*number, researcher, cells, verdict));
            }
        }
    }
    let results = |columns: &[&str], rows: &str| {
        Some(Results::read(format!("{}\n{rows}", columns.join("\t")).as_bytes()))
    };
    let mut after = conference.clone();
    for (researcher, rows) in own_rows {
        let files = after.researchers.entry(researcher.clone()).or_default();
        files.results = results(&RESEARCHER_COLUMNS, &rows);
    }
    if conference.results.is_none() && !shared_rows.is_empty() {
        after.results = results(&CONFERENCE_COLUMNS, &shared_rows);
    }
    after
}

/// The cells of a researcher's row, as far as the log knows them.
fn logged(round: &Round, researcher: &str, iteration: u32, trial: &Trial) -> [String; 8] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let first = round.trials_of(researcher).next().and_then(|(_, first)| first.metric);
    let both = first.zip(trial.metric).filter(|_| trial.status != Status::Baseline);
    [
        iteration.to_string(),
        or_dash(trial.metric.map(|metric| metric.to_string())),
        cell(trial.delta.as_deref().unwrap_or("-")),
        or_dash(both.map(|(baseline, metric)| percent(baseline, metric))),
        trial.status.as_str().to_owned(),
        "rebuilt from the event log".to_owned(),
        "-".to_owned(),
        or_dash(trial.at.map(seconds)),
    ]
}
