//! What a resume undoes first: rows that nothing proves, and worktrees that are not as their branch
//! is.
//!
//! Invariant: data only. A row that a logged iteration proves is never here, nor is anything when
//! there is no round left; `conference/best` and the event log are never here at all.

use std::collections::BTreeMap;

use onward_core::{address::Address, plan::PlannedRevert};

use super::{
    event_log::{Status, Trial},
    history::Round,
    recovery::{Code, Point},
    rows::{Comparison, numbered},
    state::{Conference, Page, Part},
    step,
    tsv::{Row, Table},
};

/// An iteration that its row shows to be finished although no event says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    pub researcher: String,
    pub round: u32,
    pub iteration: u32,
}

/// Rows that stay without an event: up to the last kept one of an unfinished researcher. A baseline
/// is among them only while nothing after it is logged: many logs never mention theirs.
pub fn inferred(conference: &Conference, point: &Point) -> Vec<Inferred> {
    let Some(round) = researching(conference, point) else { return Vec::new() };
    let of = |researcher: &String| -> Vec<Inferred> {
        let rows = rows_of(conference, researcher, round);
        let stays = &rows[..kept_len(&rows)];
        let trials = trials_of(conference, researcher, round);
        let is_measured = |row: &&&Row| row.trial.metric.is_some();
        let baseline = stays.iter().find(|row| row.trial.status == Status::Baseline);
        let baseline = baseline.filter(is_measured).filter(|_| trials.is_none()).map(|_| 0);
        let unlogged = Comparison::of(stays, trials).unlogged;
        let iterations = baseline.into_iter().chain(unlogged);
        let inferred = |iteration| Inferred { researcher: researcher.clone(), round, iteration };
        iterations.map(inferred).collect()
    };
    point.researchers.iter().flat_map(of).collect()
}

pub fn reverts(conference: &Conference, point: &Point) -> Vec<PlannedRevert> {
    let Some(round) = point.round else { return Vec::new() };
    let truncation = |(part, lines): (Part, Vec<Line>)| {
        let step = part.researcher().map(|researcher| step::research(round, researcher));
        let step = step.unwrap_or_else(|| step::round(round));
        let rows = lines.into_iter().map(|(_, text)| text).collect();
        truncation(part.file_name(), rows, &step)
    };
    let rows = dropped(conference, point, round).into_iter().map(truncation);
    rows.chain(worktrees(conference, round)).collect()
}

/// The conference without what nothing proves, and what goes to the rescue instead, by file name:
/// the rows of [`reverts`], and pages that no event vouches for. Worktrees are not files of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Undone {
    pub after: Conference,
    pub rescued: BTreeMap<String, Vec<u8>>,
}

pub fn undone(conference: &Conference, point: &Point) -> Undone {
    let mut undone = Undone { after: conference.clone(), rescued: BTreeMap::new() };
    let rows = point.round.map(|round| dropped(conference, point, round)).unwrap_or_default();
    for (part, rows) in rows {
        let lines: Vec<usize> = rows.iter().map(|(line, _)| *line).collect();
        let mut text = rows.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        text.push('\n');
        undone.rescued.insert(part.file_name(), text.into_bytes());
        let table = match part.researcher() {
            Some(researcher) => {
                undone.after.researchers.get_mut(researcher).and_then(|it| it.table.as_mut())
            }
            None => undone.after.results.as_mut(),
        };
        if let Some(table) = table {
            *table = table.without(&lines);
        }
    }
    let history = &conference.history;
    let is_vouched_for = |round: u32, logged: fn(&Round) -> bool| {
        round <= history.last_completed() || history.round(round).is_some_and(logged)
    };
    let (posters, reviews) = (&mut undone.after.posters, &mut undone.after.reviews);
    let posters = posters.extract_if(.., |round, _| !is_vouched_for(*round, |it| it.poster));
    let posters = posters.map(|(round, page)| (Part::Poster(round), page));
    let reviews = reviews.extract_if(.., |round, _| !is_vouched_for(*round, |it| it.review));
    let reviews = reviews.map(|(round, page)| (Part::Review(round), page));
    let mut pages: Vec<(Part, Page)> = posters.chain(reviews).collect();
    if !matches!(point.code, Code::Complete | Code::Close) {
        let synthesis = undone.after.synthesis.take().map(|page| (Part::Synthesis, page));
        let report = undone.after.report.take().map(|page| (Part::Report, page));
        pages.extend(synthesis.into_iter().chain(report));
    }
    let rescued = pages.into_iter().map(|(part, page)| (part.file_name(), page.bytes));
    undone.rescued.extend(rescued);
    undone
}

/// A line of a table, by its number.
type Line = (usize, String);

/// The rows that go, file by file: the researchers' own, then those of the shared results. A row
/// that was cut short at the end of a file goes with them, or the next one would come after it.
fn dropped(conference: &Conference, point: &Point, round: u32) -> Vec<(Part, Vec<Line>)> {
    let mut files = Vec::new();
    let mut iterations: Vec<(u32, &String, u32)> = Vec::new();
    let line = |row: &Row| (row.line, row.text.clone());
    for (researcher, own) in &conference.researchers {
        let rows = dropped_rows(conference, point, researcher, round);
        iterations.extend(rows.iter().map(|(round, number, _)| (*round, researcher, *number)));
        let mut lines: Vec<Line> = rows.into_iter().map(|(_, _, row)| line(row)).collect();
        lines.extend(own.table.as_ref().and_then(Table::torn));
        if !lines.is_empty() {
            files.push((Part::ResearcherResults(researcher.clone()), lines));
        }
    }
    let is_dropped = |row: &&Row| {
        let iteration = row.trial.iteration.unwrap_or(0);
        let mut dropped = iterations.iter();
        dropped.any(|(round, researcher, number)| {
            row.round == Some(*round)
                && row.researcher.as_ref() == Some(researcher)
                && iteration == *number
        })
    };
    let shared = conference.results.iter().flat_map(|table| &table.rows);
    let mut shared: Vec<Line> = shared.filter(is_dropped).map(line).collect();
    shared.extend(conference.results.as_ref().and_then(Table::torn));
    if !shared.is_empty() {
        files.push((Part::Results, shared));
    }
    files
}

/// The round whose research is about to go on: one that was begun, or one that nobody logged the
/// beginning of and that has a kept row all the same.
fn researching(conference: &Conference, point: &Point) -> Option<u32> {
    match point.code {
        Code::ResearchContinue | Code::ResearchRestart => point.round,
        Code::RoundStart if conference.history.restarted == point.round => None,
        Code::RoundStart => point.round.filter(|round| {
            let mut rows = point.researchers.iter().flat_map(|it| rows_of(conference, it, *round));
            rows.any(|row| row.trial.status == Status::Kept)
        }),
        Code::Complete
        | Code::Close
        | Code::Synthesis
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
        } else if researching(conference, point).is_none() {
            let is_start = point.code == Code::RoundStart;
            if is_start { baselines(&segment.rows) } else { numbered.len() }
        } else if point.researchers.iter().any(|it| it == researcher) {
            kept_len(&segment.rows)
        } else {
            numbered.len()
        };
        let trials = trials_of(conference, researcher, segment.round);
        let is_logged = |number: u32| trials.is_some_and(|trials| trials.contains_key(&number));
        let unproved = numbered.into_iter().skip(keeps).filter(|(number, _)| !is_logged(*number));
        dropped.extend(unproved.map(|(number, row)| (segment.round, number, row)));
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

fn trials_of<'a>(
    conference: &'a Conference,
    researcher: &str,
    round: u32,
) -> Option<&'a BTreeMap<u32, Trial>> {
    conference.history.round(round).and_then(|it| it.trials.get(researcher))
}

fn truncation(path: String, rows: Vec<String>, step: &Address) -> PlannedRevert {
    let rescue = format!("rescue/{}", step.file_name());
    PlannedRevert { kind: "truncate-rows".to_owned(), path, rows, rescue }
}

/// Trees that are not as their branch is, of whoever takes part: research goes on from the branch,
/// and a next round begins with clean trees. What is in them is shown and rescued before that.
fn worktrees(conference: &Conference, round: u32) -> Vec<PlannedRevert> {
    if !conference.has_worktrees() {
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
    conference.researchers_of(round).iter().filter_map(of).collect()
}
