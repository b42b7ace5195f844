//! What a resume undoes first: rows and pages that nothing proves, and worktrees that are not as
//! their branch is.
//!
//! Invariant: data only. A row that a logged iteration proves is never here, nor is anything but
//! pages when there is no round left; `conference/best` and the event log are never here at all.

use std::{cmp::Ordering, collections::BTreeSet};

use onward_core::{
    address::Address,
    told::{Undo, UndoWhat},
};

use super::{
    Conference, Point, PointCode, check,
    read::{
        Part, RESULTS,
        log::Status,
        rows::{Results, Row, numbered, standing_len},
    },
    step,
};
use crate::kit::trees::{Tree, tree_of};

pub(super) fn undo(conference: &Conference, point: &Point) -> Vec<Undo> {
    if point.code == PointCode::Complete {
        return Vec::new();
    }
    let rows = point.round.map(|round| rows(conference, point, round)).unwrap_or_default();
    let pages = check::unproved_pages(conference, point).into_iter();
    let pages = pages.map(|(path, step)| Undo { step, path, what: UndoWhat::Remove });
    let trees = point.round.map(|round| worktrees(conference, round)).unwrap_or_default();
    rows.into_iter().chain(pages).chain(trees).collect()
}

/// Files of researchers, then the shared results, which lose the same rows. A row that was cut
/// short at the end of a file goes with them, or the next one would come after it.
fn rows(conference: &Conference, point: &Point, round: u32) -> Vec<Undo> {
    let mut all = Vec::new();
    let mut iterations: BTreeSet<(u32, &str, u32)> = BTreeSet::new();
    for (researcher, files) in &conference.researchers {
        let Some(results) = &files.results else { continue };
        let dropped = dropped(conference, point, researcher, round);
        iterations
            .extend(dropped.iter().map(|(round, number, _)| (*round, &**researcher, *number)));
        let path = Part::ResearcherResults(researcher.clone()).file_name();
        let rows = dropped.into_iter().map(|(_, _, row)| row);
        all.extend(without(results, path, rows, step::research(round, researcher)));
    }
    if let Some(results) = &conference.results {
        let is_dropped = |row: &&Row| {
            let own = row.round.zip(row.researcher.as_deref());
            let iteration = row.trial.iteration.unwrap_or(0);
            own.is_some_and(|(round, who)| iterations.contains(&(round, who, iteration)))
        };
        let rows = results.rows.iter().filter(is_dropped);
        all.extend(without(results, RESULTS.to_owned(), rows, step::round(round)));
    }
    all
}

fn without<'a>(
    results: &Results,
    path: String,
    rows: impl Iterator<Item = &'a Row>,
    step: Address,
) -> Option<Undo> {
    let mut lines: Vec<(usize, String)> = rows.map(|row| (row.line, row.text.clone())).collect();
    lines.extend(results.table.torn().map(|row| (row.line, row.text)));
    let (numbers, rows): (BTreeSet<usize>, Vec<String>) = lines.into_iter().unzip();
    let after = results.table.without(&numbers);
    (!rows.is_empty()).then_some(Undo { step, path, what: UndoWhat::Rows { rows, after } })
}

/// Round, iteration and row of all that goes: in the round under way what comes after the last
/// state to stand on, and every row of a round that the log has not heard of.
fn dropped<'a>(
    conference: &'a Conference,
    point: &Point,
    researcher: &str,
    round: u32,
) -> Vec<(u32, u32, &'a Row)> {
    let goes_on = point.researchers.iter().any(|it| it == researcher);
    let is_known = conference.history.round(round).is_some();
    let baselines =
        |rows: &[&Row]| rows.iter().take_while(|row| row.trial.status == Status::Baseline).count();
    let mut dropped = Vec::new();
    for segment in conference.segments(researcher) {
        let keeps = match segment.round.cmp(&round) {
            Ordering::Greater => 0,
            Ordering::Equal if !is_known => baselines(&segment.rows),
            Ordering::Equal if goes_on => standing_len(&segment.rows),
            Ordering::Less | Ordering::Equal => segment.rows.len(),
        };
        let unkept = numbered(&segment.rows).into_iter().skip(keeps);
        let is_logged =
            |number: u32| conference.history.is_logged(segment.round, researcher, number);
        let unproved = unkept.filter(|(number, _)| !is_logged(*number));
        dropped.extend(unproved.map(|(number, row)| (segment.round, number, row)));
    }
    dropped
}

/// Trees that are not as their branch is: research goes on from the branch, and a next round begins
/// with clean trees. What is in them is shown and rescued before that.
fn worktrees(conference: &Conference, round: u32) -> Vec<Undo> {
    let git = conference.git.as_ref().filter(|_| conference.has_worktrees());
    let Some(git) = git else { return Vec::new() };
    let of = |researcher: &String| {
        let Tree::There(tree) = tree_of(git, &check::branch_of(researcher)) else { return None };
        let what = UndoWhat::Worktree { changes: tree.changes.clone() };
        let undo =
            || Undo { step: step::research(round, researcher), path: tree.path.clone(), what };
        (!tree.changes.is_empty()).then(undo)
    };
    conference.researchers_of(round).iter().filter_map(of).collect()
}
