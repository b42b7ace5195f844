//! Going on with a conference that another system began: what its files are without half-done work,
//! and where else a person may enter.
//!
//! Invariant: a file that is not named here is not touched, and the event log is never named.

use onward_core::{address::Address, plan::PlannedRevert};
use serde_json::json;

use super::{
    done::{self, Place},
    event_log::StuckLevel,
    recovery::{self, Code},
    revert,
    state::{Conference, EVENTS, Part, export, import},
    step, worktree, write,
};
use crate::{Entering, Entry, Files, NoEntry, Undone};

pub fn undone(files: &Files) -> Vec<Undone> {
    let Ok(conference) = import(files) else { return Vec::new() };
    let point = recovery::point(&conference);
    let round = point.round.unwrap_or_else(|| round_meant(&conference));
    let undone = revert::undone(&conference, &point);
    let after = export(&undone.after);
    let of = |path: &String| Undone {
        path: path.clone(),
        after: after.bytes(path).map(<[u8]>::to_vec),
        step: step_of(path, round),
    };
    undone.rescued.keys().map(of).collect()
}

/// The researcher's own part of the round, for a tree that goes back to its branch.
pub fn whose(conference: &Conference, revert: &PlannedRevert) -> Option<Address> {
    let trees = conference.git.iter().flat_map(|git| &git.worktrees);
    let tree = trees.into_iter().find(|tree| tree.path == revert.path)?;
    let researcher = worktree::researcher_of(tree.branch.as_deref()?)?;
    let point = recovery::point(conference);
    Some(step::research(point.round.unwrap_or_else(|| round_meant(conference)), researcher))
}

/// Whose work a file is, in the round that is under way.
fn step_of(path: &str, round: u32) -> Address {
    match Part::of(path) {
        Some(Part::ResearcherResults(id) | Part::ResearcherLog(id)) => step::research(round, &id),
        Some(Part::Poster(number)) => step::in_round(number, "poster"),
        Some(Part::Review(number)) => step::in_round(number, "review"),
        Some(Part::Synthesis | Part::Report) => step::synthesis(),
        Some(Part::Document | Part::Events | Part::Results | Part::LoopPid) | None => {
            step::round(round)
        }
    }
}

/// The first six are of the round under way.
pub const PLACES: [&str; 8] = [
    Code::RoundStart.as_str(),
    Code::ResearchRestart.as_str(),
    Code::ResearchContinue.as_str(),
    Code::PosterSession.as_str(),
    Code::PeerReview.as_str(),
    Code::KnowledgeTransfer.as_str(),
    Code::Synthesis.as_str(),
    Code::Close.as_str(),
];

/// `None` when that is where the conference goes on anyway.
pub fn enter(files: &Files, at: &Entering<'_>) -> Result<Option<Entry>, NoEntry> {
    let unknown = || NoEntry::Unknown(at.place.to_owned());
    let conference = import(files).map_err(|_| unknown())?;
    let (code, round) = meant(&conference, at.place).ok_or_else(unknown)?;
    let point = recovery::point(&conference);
    let here = position(point.code, point.round);
    let there = position(code, Some(round));
    if there == here {
        return Ok(None);
    }
    // To end the rounds is a person's right; any other phase needs what comes before it.
    if there > here && !(at.force && code == Code::Synthesis) {
        let (wanted, now) = (code.as_str(), point.summary());
        let hint = if code == Code::Synthesis { "; `--force` ends the rounds" } else { "" };
        let message = format!("{wanted} lies ahead of what is done ({now}){hint}");
        return Err(NoEntry::Ahead(message));
    }
    let payload = json!({
        "recovery_point": code.as_str(),
        "round": (code.phase() != Some("11")).then_some(round),
        "reverted_researchers": [],
        "redo": true,
    });
    let time = write::seconds(at.now);
    let line = json!({"event": "conference.resumed", "timestamp": time, "payload": payload});
    let mut bytes = conference.log.bytes().to_vec();
    if bytes.last().is_some_and(|byte| *byte != b'\n') {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(line.to_string().as_bytes());
    bytes.push(b'\n');
    Ok(Some(Entry { path: EVENTS.to_owned(), bytes }))
}

/// A code, in the round under way; or a step of the workflow.
fn meant(conference: &Conference, place: &str) -> Option<(Code, u32)> {
    if let Some(code) = Code::parse(place).filter(|code| PLACES.contains(&code.as_str())) {
        return Some((code, round_meant(conference)));
    }
    if let Some(number) = place.strip_prefix("round[").and_then(|it| it.strip_suffix(']')) {
        return Some((Code::RoundStart, number.parse().ok()?));
    }
    let (code, round) = match done::place(&Address::from_text(place))? {
        Place::Top(id) => {
            let code = Code::parse(id.split('/').next()?)?;
            (Some(code).filter(|it| it.phase() == Some("11"))?, 0)
        }
        Place::InRound(round, id) => {
            let code = match id.split('/').next()? {
                "begin" => Code::RoundStart,
                "research" => Code::ResearchRestart,
                "roll" | "poster" => Code::PosterSession,
                "review" => Code::PeerReview,
                "transfer" => Code::KnowledgeTransfer,
                _ => return None,
            };
            (code, round)
        }
        Place::Iteration(..) => return None,
    };
    let known = round == 0 || conference.history.round(round).is_some();
    known.then_some((code, round))
}

/// Places in the order in which a conference comes to them.
fn position(code: Code, round: Option<u32>) -> (u32, u32) {
    let round = round.unwrap_or(0);
    match code {
        Code::RoundStart => (round, 0),
        Code::ResearchRestart | Code::ResearchContinue => (round, 1),
        Code::PosterSession => (round, 2),
        Code::PeerReview => (round, 3),
        Code::KnowledgeTransfer => (round, 4),
        Code::Synthesis => (u32::MAX, 5),
        Code::Close => (u32::MAX, 6),
        Code::Complete => (u32::MAX, 7),
    }
}

/// An agent changes the tree, and an evaluator works in it; the iteration's end says what stays.
pub fn leaves_work(step: &Address) -> bool {
    matches!(done::place(step), Some(Place::Iteration(_, _, _, "propose" | "score")))
}

/// The steps that write what the conference itself goes by.
pub fn witnesses(step: &Address) -> bool {
    match done::place(step) {
        Some(Place::Top(id)) => matches!(id, "start" | "synthesis/publish" | "close"),
        Some(Place::InRound(_, id)) => {
            matches!(id, "begin" | "poster/publish" | "review/publish" | "transfer")
        }
        Some(Place::Iteration(_, _, _, what)) => what == "settle",
        None => false,
    }
}

/// A proposal in a round that the log knows nothing of (any more), or of a researcher that failed
/// with all the others: no row or event is left of it, and whoever goes on asks for another.
pub fn came_to_nothing(conference: &Conference, step: &Address) -> bool {
    let Some(Place::Iteration(round, researcher, _, "propose")) = done::place(step) else {
        return false;
    };
    let Some(told) = conference.history.round(round) else { return true };
    let has_failed = told.stuck.get(&researcher) == Some(&StuckLevel::TimedOut);
    conference.history.failed && has_failed && conference.finish(round, &researcher).is_none()
}

/// The round under way, or else the last one that was completed.
fn round_meant(conference: &Conference) -> u32 {
    let history = &conference.history;
    history.open_round().unwrap_or_else(|| history.last_completed().max(1))
}
