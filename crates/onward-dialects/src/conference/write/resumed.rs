//! The first thing that a resume writes into the conference's own files.
//!
//! Invariant: additive. `conference.resumed` is the first new line of the log; after it come the
//! events of rows that are kept without one, and results that only the log still knows.

use onward_core::{
    plan::RecoveryPoint,
    time::Timestamp,
    told::{Change, Undo, UndoWhat},
};

use super::{
    changes,
    happening::{Happening, Iterated, What},
    rebuild,
};
use crate::{
    File,
    conference::{
        Conference, PointCode, export, import,
        read::{history::Round, rows::numbered},
        step,
    },
    rules::conference::transfer,
};

pub(in crate::conference) fn resumed(
    conference: &Conference,
    at: Timestamp,
    point: &RecoveryPoint,
    undone: &[Undo],
) -> Vec<Change> {
    let conference = &without(conference, undone);
    let what = What::Resumed {
        recovery_point: point.code.clone(),
        round: point.round,
        reverted: reverted(conference, point, undone),
    };
    let mut after = conference.after(&Happening { at, what });
    let inferred = inferred(conference);
    // Rows of the round are there, so it has begun, although the log does not say so.
    let is_unheard_of =
        |round: &u32| !conference.history.round(*round).is_some_and(Round::is_logged);
    if let Some(round) = point.round.filter(is_unheard_of).filter(|_| !inferred.is_empty()) {
        let researchers = conference.researchers_of(round);
        after = after.after(&Happening { at, what: What::RoundStarted { round, researchers } });
    }
    for what in inferred {
        after = after.after(&Happening { at, what });
    }
    // The interruption may have come before the end of the rounds was logged.
    if point.code == PointCode::Synthesis.as_str()
        && let Some(what) = transfer::ending(&after)
    {
        after = after.after(&Happening { at, what });
    }
    changes(&export(conference), &rebuild::rebuilt(&after))
}

/// What is undone counts no more, whether it was undone before the files were read or after.
fn without(conference: &Conference, undone: &[Undo]) -> Conference {
    let mut files = export(conference);
    for Undo { path, what, .. } in undone {
        match what {
            UndoWhat::Rows { after, .. } => {
                files.insert(path, File { bytes: after.clone(), modified: None });
            }
            UndoWhat::Remove => drop(files.remove(path)),
            UndoWhat::Worktree { .. } => {}
        }
    }
    import(&files).unwrap_or_else(|_| conference.clone())
}

/// The researchers that lose rows or changes in their tree to the resume.
fn reverted(conference: &Conference, point: &RecoveryPoint, undone: &[Undo]) -> Vec<String> {
    let round = point.round.unwrap_or(0);
    let mut all = conference.researchers_of(round);
    all.retain(|who| {
        let own = step::research(round, who);
        undone.iter().any(|it| it.step == own && it.what != UndoWhat::Remove)
    });
    all
}

/// Iterations of which only rows tell, as the system would have logged them.
fn inferred(conference: &Conference) -> Vec<What> {
    let mut all = Vec::new();
    let rows = conference.all_rows();
    for (round, told) in &conference.history.rounds {
        for (researcher, trials) in &told.trials {
            let rows = rows.get(researcher.as_str()).and_then(|it| it.get(round));
            let rows = numbered(rows.map(Vec::as_slice).unwrap_or_default());
            for (iteration, trial) in trials.iter().filter(|(_, it)| it.is_inferred) {
                let row = rows.iter().find(|(number, _)| number == iteration);
                let cell = |index: usize| {
                    let cell = row.and_then(|(_, row)| row.text.split('\t').nth(index));
                    cell.unwrap_or("-").to_owned()
                };
                all.push(What::Iterated(Iterated {
                    researcher: researcher.clone(),
                    round: *round,
                    iteration: *iteration,
                    metric: trial.metric.map_or_else(|| "-".to_owned(), |it| it.to_string()),
                    status: trial.status,
                    description: cell(5),
                    evaluator: cell(6),
                    hypothesis: "-".to_owned(),
                    analysis: "inferred from its row".to_owned(),
                }));
            }
        }
    }
    all
}
