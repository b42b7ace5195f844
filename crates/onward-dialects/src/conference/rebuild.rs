//! A researcher's results, rebuilt from the log when the file is gone.
//!
//! Invariant: minimal. A cell that the log does not know is `-`; nothing is made up.

use std::collections::BTreeMap;

use super::{
    state::{Conference, Part},
    tsv::RESEARCHER_COLUMNS,
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
    lost.map(table).collect()
}

fn rebuilt(conference: &Conference, researcher: &str) -> String {
    let mut text = format!("{}\n", RESEARCHER_COLUMNS.join("\t"));
    for round in conference.history.rounds.values() {
        for (iteration, trial) in round.trials_of(researcher) {
            let metric = trial.metric.map_or_else(|| "-".to_owned(), |metric| metric.to_string());
            let delta = trial.delta.as_deref().unwrap_or("-");
            let at = trial.at.map_or_else(|| "-".to_owned(), |at| at.to_string());
            let cells = [
                iteration.to_string(),
                metric,
                delta.replace(['\t', '\n', '\r'], " "),
                "-".to_owned(),
                trial.status.as_str().to_owned(),
                "rebuilt from the event log".to_owned(),
                "-".to_owned(),
                at,
            ];
            text.push_str(&cells.join("\t"));
            text.push('\n');
        }
    }
    text
}
