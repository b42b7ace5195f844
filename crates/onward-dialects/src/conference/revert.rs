//! What a resume undoes first: rows that nothing proves, and worktrees left in mid-iteration.
//!
//! Invariant: data only. A row that a logged iteration proves is never here, nor is anything when
//! there is no research left to do; `conference/best` and the event log are never here at all.

use onward_core::{address::Address, plan::PlannedRevert};

use super::{
    event_log::Status,
    recovery::{Code, Point},
    rows::{Comparison, numbered},
    state::{Conference, Part, RESULTS},
    step,
    tsv::Row,
};

/// An iteration that its row shows to be finished although no event says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    pub researcher: String,
    pub round: u32,
    pub iteration: u32,
}

/// Rows that stay without an event: up to the last kept one of an unfinished researcher.
pub fn inferred(conference: &Conference, point: &Point) -> Vec<Inferred> {
    let Some(round) = researching(point) else { return Vec::new() };
    let of = |researcher: &String| -> Vec<Inferred> {
        let rows = rows_of(conference, researcher, round);
        let kept = kept_len(&rows);
        let unlogged = unlogged(conference, researcher, round, &rows[..kept]);
        let iteration = |iteration| Inferred { researcher: researcher.clone(), round, iteration };
        unlogged.into_iter().map(iteration).collect()
    };
    point.researchers.iter().flat_map(of).collect()
}

pub fn reverts(conference: &Conference, point: &Point) -> Vec<PlannedRevert> {
    let Some(round) = point.round else { return Vec::new() };
    let mut reverts = Vec::new();
    let mut dropped: Vec<(u32, String, u32)> = Vec::new();
    for researcher in conference.researchers.keys() {
        let rows = dropped_rows(conference, point, researcher, round);
        if rows.is_empty() {
            continue;
        }
        let path = Part::ResearcherResults(researcher.clone()).file_name();
        let shown = rows.iter().map(|(_, _, row)| row.text.clone()).collect();
        reverts.push(truncation(path, shown, &step::research(round, researcher)));
        let gone = rows.iter().map(|(round, number, _)| (*round, researcher.clone(), *number));
        dropped.extend(gone);
    }
    let shared = conference.results.iter().flat_map(|table| &table.rows);
    let is_dropped = |row: &&Row| {
        let iteration = row.trial.iteration.unwrap_or(0);
        dropped.iter().any(|(round, researcher, number)| {
            row.round == Some(*round)
                && row.researcher.as_ref() == Some(researcher)
                && iteration == *number
        })
    };
    let shared: Vec<String> = shared.filter(is_dropped).map(|row| row.text.clone()).collect();
    if !shared.is_empty() {
        reverts.push(truncation(RESULTS.to_owned(), shared, &step::round(round)));
    }
    reverts.extend(worktrees(conference, point, round));
    reverts
}

/// The round whose research is about to go on.
fn researching(point: &Point) -> Option<u32> {
    match point.code {
        Code::ResearchContinue | Code::ResearchRestart => point.round,
        Code::Complete
        | Code::Close
        | Code::Synthesis
        | Code::RoundStart
        | Code::KnowledgeTransfer
        | Code::PeerReview
        | Code::PosterSession => None,
    }
}

/// Round, iteration and row of all that goes: in the round under way what comes after the last kept
/// state, and every row of a round that the log has not heard of.
fn dropped_rows<'a>(
    conference: &'a Conference,
    point: &Point,
    researcher: &str,
    round: u32,
) -> Vec<(u32, u32, &'a Row)> {
    let mut dropped = Vec::new();
    for segment in conference.segments(researcher) {
        let numbered = numbered(&segment.rows);
        let keeps = if segment.round < round {
            numbered.len()
        } else if segment.round > round {
            0
        } else if researching(point).is_none() {
            let is_start = point.code == Code::RoundStart;
            if is_start { baselines(&segment.rows) } else { numbered.len() }
        } else if point.researchers.iter().any(|it| it == researcher) {
            kept_len(&segment.rows)
        } else {
            numbered.len()
        };
        let unlogged = unlogged_or_baseline(conference, researcher, segment.round, &segment.rows);
        for (number, row) in numbered.into_iter().skip(keeps) {
            if unlogged.contains(&number) {
                dropped.push((segment.round, number, row));
            }
        }
    }
    dropped
}

fn rows_of<'a>(conference: &'a Conference, researcher: &str, round: u32) -> Vec<&'a Row> {
    let segment = conference.segments(researcher).into_iter().find(|it| it.round == round);
    segment.map(|segment| segment.rows).unwrap_or_default()
}

/// How many rows there are up to the last one to stand on.
fn kept_len(rows: &[&Row]) -> usize {
    rows.iter().rposition(|row| row.trial.status.stands()).map_or(0, |last| last + 1)
}

fn baselines(rows: &[&Row]) -> usize {
    rows.iter().take_while(|row| row.trial.status == Status::Baseline).count()
}

fn unlogged(conference: &Conference, researcher: &str, round: u32, rows: &[&Row]) -> Vec<u32> {
    let trials = conference.history.round(round).and_then(|it| it.trials.get(researcher));
    Comparison::of(rows, trials).unlogged
}

fn unlogged_or_baseline(
    conference: &Conference,
    researcher: &str,
    round: u32,
    rows: &[&Row],
) -> Vec<u32> {
    let trials = conference.history.round(round).and_then(|it| it.trials.get(researcher));
    let is_logged = |number: &u32| trials.is_some_and(|trials| trials.contains_key(number));
    numbered(rows).into_iter().map(|(number, _)| number).filter(|it| !is_logged(it)).collect()
}

fn truncation(path: String, rows: Vec<String>, step: &Address) -> PlannedRevert {
    let rescue = format!("rescue/{}", step.file_name());
    PlannedRevert { kind: "truncate-rows".to_owned(), path, rows, rescue }
}

/// Trees of researchers that were caught in the middle: back to the head of their branch.
fn worktrees(conference: &Conference, point: &Point, round: u32) -> Vec<PlannedRevert> {
    if researching(point).is_none() || !conference.has_worktrees() {
        return Vec::new();
    }
    let of = |researcher: &String| {
        let branch = format!("conference/researcher-{researcher}");
        let trees = conference.git.iter().flat_map(|git| &git.worktrees);
        let mut trees = trees.filter(|tree| tree.branch.as_deref() == Some(branch.as_str()));
        let tree = trees.find(|tree| !tree.changes.is_empty())?;
        Some(PlannedRevert {
            kind: "reset-worktree".to_owned(),
            path: tree.path.clone(),
            rows: tree.changes.clone(),
            rescue: format!("rescue/{}", step::research(round, researcher).file_name()),
        })
    };
    point.researchers.iter().filter_map(of).collect()
}
