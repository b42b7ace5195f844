//! Results, rebuilt from the log when their file is gone; those of all also from the researchers'
//! own.
//!
//! Invariant: minimal. A cell that nobody knows is `-`; nothing is made up.

use std::collections::BTreeMap;

use super::{
    deed::Verdict,
    event_log::{Status, Trial},
    history::Round,
    review,
    rows::numbered,
    state::{Conference, Part, RESULTS},
    tsv::{CONFERENCE_COLUMNS, RESEARCHER_COLUMNS},
    write::{percent, seconds},
};

/// The files that a resume can rebuild, by name.
pub fn tables(conference: &Conference) -> BTreeMap<String, String> {
    let rounds = conference.history.rounds.values();
    let logged = rounds.flat_map(|round| round.trials.keys());
    let has_table = |id: &str| conference.researchers.get(id).is_some_and(|it| it.table.is_some());
    let lost = logged.filter(|researcher| !has_table(researcher));
    let table = |researcher: &String| {
        let name = Part::ResearcherResults(researcher.clone()).file_name();
        (name, rebuilt(conference, researcher))
    };
    let mut tables: BTreeMap<String, String> = lost.map(table).collect();
    if conference.results.is_none() && conference.history.iterations() > 0 {
        tables.insert(RESULTS.to_owned(), shared(conference));
    }
    tables
}

fn rebuilt(conference: &Conference, researcher: &str) -> String {
    let mut text = format!("{}\n", RESEARCHER_COLUMNS.join("\t"));
    for round in conference.history.rounds.values() {
        for (iteration, trial) in round.trials_of(researcher) {
            text.push_str(&logged(round, researcher, iteration, trial).join("\t"));
            text.push('\n');
        }
    }
    text
}

/// The cells of a researcher's row, as far as the log knows them.
fn logged(round: &Round, researcher: &str, iteration: u32, trial: &Trial) -> [String; 8] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let first = round.trials_of(researcher).next().and_then(|(_, first)| first.metric);
    let both = first.zip(trial.metric).filter(|_| trial.status != Status::Baseline);
    [
        iteration.to_string(),
        or_dash(trial.metric.map(|metric| metric.to_string())),
        trial.delta.as_deref().unwrap_or("-").replace(['\t', '\n', '\r'], " "),
        or_dash(both.map(|(baseline, metric)| percent(baseline, metric))),
        trial.status.as_str().to_owned(),
        "rebuilt from the event log".to_owned(),
        "-".to_owned(),
        or_dash(trial.at.map(seconds)),
    ]
}

/// The results of all: what the log has, in the words of each researcher's own row.
fn shared(conference: &Conference) -> String {
    let mut text = format!("{}\n", CONFERENCE_COLUMNS.join("\t"));
    for (number, round) in &conference.history.rounds {
        let judged = conference.reviews.get(number).map(review::judgements).unwrap_or_default();
        for researcher in round.trials.keys() {
            let segments = conference.segments(researcher);
            let own = segments.iter().find(|segment| segment.round == *number);
            let own = own.map(|segment| numbered(&segment.rows)).unwrap_or_default();
            let verdict = review::overall(&judged, researcher).map_or("-", Verdict::as_str);
            for (iteration, trial) in round.trials_of(researcher) {
                let row = own.iter().find(|(number, _)| *number == iteration);
                let cells = row.map(|(_, row)| row.text.split('\t').collect::<Vec<_>>());
                let logged = logged(round, researcher, iteration, trial);
                let cells = cells.filter(|cells| cells.len() == RESEARCHER_COLUMNS.len());
                let cells = cells.unwrap_or_else(|| logged.iter().map(String::as_str).collect());
                let (last, cells) = cells.split_last().unwrap_or((&"-", &[]));
                let number = number.to_string();
                let all: Vec<&str> = [number.as_str(), researcher]
                    .into_iter()
                    .chain(cells.iter().copied())
                    .chain([verdict, last])
                    .collect();
                text.push_str(&all.join("\t"));
                text.push('\n');
            }
        }
    }
    text
}
