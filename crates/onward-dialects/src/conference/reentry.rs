//! Going on with a conference that another system began: what its files are without half-done work,
//! and which step a recovery code means.
//!
//! Invariant: a file that is not named here is not touched, and the event log is never named.

use onward_core::address::Address;

use super::{
    done::{self, Place},
    recovery::{self, Code},
    revert,
    state::{Conference, Part, export, import},
    step,
};
use crate::{Files, Undone};

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

pub fn entry(files: &Files, code: &str) -> Option<Address> {
    let conference = import(files).ok()?;
    let round = round_meant(&conference);
    Some(match Code::parse(code)? {
        Code::Complete => return None,
        Code::Close => step::close(),
        Code::Synthesis => step::synthesis(),
        Code::KnowledgeTransfer => step::in_round(round, "transfer"),
        Code::PeerReview => step::in_round(round, "review"),
        Code::PosterSession => step::in_round(round, "poster"),
        Code::ResearchContinue | Code::ResearchRestart => step::in_round(round, "research"),
        Code::RoundStart => step::round(round),
    })
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

/// The round under way, or else the last one that was completed.
fn round_meant(conference: &Conference) -> u32 {
    let history = &conference.history;
    history.open_round().unwrap_or_else(|| history.last_completed().max(1))
}
