//! The first thing that a resume writes into the conference's own files.
//!
//! Invariant: additive. `conference.resumed` is the first new line of the log; after it come the
//! events of rows that are kept without one, and results that only the log still knows.

use onward_core::{plan::Plan, time::Timestamp};

use super::{
    deed::{Deed, Iterated, What},
    rebuild,
    recovery::{self, Code},
    revert,
    rows::numbered,
    state::{Conference, Part, import},
    transfer, write,
};
use crate::{File, Files};

pub fn resumed(
    files: &Files,
    conference: &Conference,
    plan: &Plan,
    at: Timestamp,
) -> Vec<(String, Vec<u8>)> {
    let point = &plan.recovery_point;
    let what = What::Resumed {
        recovery_point: point.code.clone(),
        round: point.round,
        reverted: reverted(plan),
    };
    let mut after = conference.after(&Deed { at, what });
    let inferred = inferred(conference, at);
    let is_unheard_of = |round: &u32| conference.history.round(*round).is_none();
    if let Some(round) = point.round.filter(is_unheard_of).filter(|_| !inferred.is_empty()) {
        // Rows of it are there, so it has begun, although nobody said so.
        let researchers = conference.researchers_of(round);
        after = after.after(&Deed { at, what: What::RoundStarted { round, researchers } });
    }
    for deed in inferred {
        after = after.after(&deed);
    }
    // Whoever was interrupted before the end of the rounds was logged has it logged now.
    if point.code == Code::Synthesis.as_str()
        && let Some(what) = transfer::ending(&after)
    {
        after = after.after(&Deed { at, what });
    }
    let mut with_tables = super::state::export(&after);
    for (name, text) in rebuild::tables(&after) {
        with_tables.insert(name, File { bytes: text.into_bytes(), modified: None });
    }
    let after = import(&with_tables).unwrap_or(after);
    write::changes(files, &after)
}

/// The researchers that lost something to the resume.
fn reverted(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for revert in &plan.reverts {
        let file = revert.path.rsplit('/').next().unwrap_or_default();
        let part = Part::of(file);
        let of_tree = file.strip_prefix("researcher-").map(str::to_owned);
        let name = part.as_ref().and_then(Part::researcher).map(str::to_owned).or(of_tree);
        names.extend(name);
    }
    names.sort();
    names.dedup();
    names
}

/// Iterations whose rows show them to be finished, as deeds.
fn inferred(conference: &Conference, at: Timestamp) -> Vec<Deed> {
    let point = recovery::point(conference);
    let mut deeds = Vec::new();
    for it in revert::inferred(conference, &point) {
        let segments = conference.segments(&it.researcher);
        let segment = segments.iter().find(|segment| segment.round == it.round);
        let rows = segment.map(|segment| numbered(&segment.rows)).unwrap_or_default();
        let Some((_, row)) = rows.into_iter().find(|(number, _)| *number == it.iteration) else {
            continue;
        };
        let cell = |index: usize| row.text.split('\t').nth(index).unwrap_or("-").to_owned();
        let iterated = Iterated {
            researcher: it.researcher,
            round: it.round,
            iteration: it.iteration,
            metric: row.trial.metric.map_or_else(|| "-".to_owned(), |metric| metric.to_string()),
            status: row.trial.status,
            description: cell(5),
            evaluator: cell(6),
            hypothesis: "-".to_owned(),
            analysis: "inferred from its row".to_owned(),
        };
        deeds.push(Deed { at, what: What::Iterated(iterated) });
    }
    deeds
}
