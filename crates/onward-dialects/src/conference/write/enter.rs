//! Where else a person may enter a conference, and what the log says then.
//!
//! Invariant: the log only grows. What it said about the place and what follows counts no more from
//! the new line on; see [`History`](crate::conference::read::history::History).

use onward_core::{
    address::Address,
    told::{Change, Entering, NoEntry},
};
use serde_json::json;

use super::{log_line, seconds};
use crate::{
    conference::{Conference, Point, PointCode, read::EVENTS, step::Spot},
    kit::with_line,
};

/// The codes that a person can enter at; the first six are of the round under way.
#[rustfmt::skip]
pub const ENTRIES: [&str; 8] = [
    "round-start", "research-restart", "research-continue", "poster-session", "peer-review",
    "knowledge-transfer", "synthesis", "close",
];

/// Nothing when that is where the conference goes on anyway.
pub(in crate::conference) fn enter(
    conference: &Conference,
    point: &Point,
    at: &Entering<'_>,
) -> Result<Vec<Change>, NoEntry> {
    let unknown = || NoEntry::Unknown(at.place.to_owned());
    let (code, round) = meant(conference, at.place).ok_or_else(unknown)?;
    let here = Point::position(point.code, point.round);
    let there = Point::position(code, Some(round));
    if there == here {
        return Ok(Vec::new());
    }
    // To end the rounds is a person's right; any other phase needs what comes before it.
    if there > here && !(at.force && code == PointCode::Synthesis) {
        let (wanted, now) = (code.as_str(), point.summary());
        let hint = if code == PointCode::Synthesis { "; `--force` ends the rounds" } else { "" };
        let message = format!("{wanted} lies ahead of what is done ({now}){hint}");
        return Err(NoEntry::Ahead(message));
    }
    let payload = [
        ("recovery_point", json!(code.as_str())),
        ("round", json!((code.phase() != Some("11")).then_some(round))),
        ("reverted_researchers", json!([])),
        ("redo", json!(true)),
    ];
    let line = log_line("conference.resumed", &seconds(at.now), &payload);
    let old = conference.log.bytes();
    let bytes = with_line(old, &line).split_off(old.len());
    Ok(vec![Change::Append { path: EVENTS.to_owned(), bytes }])
}

/// A code, in the round under way; or a step of the workflow.
fn meant(conference: &Conference, place: &str) -> Option<(PointCode, u32)> {
    if let Some(code) = PointCode::parse(place).filter(|code| ENTRIES.contains(&code.as_str())) {
        let history = &conference.history;
        let round = history.open_round().unwrap_or_else(|| history.last_completed().max(1));
        return Some((code, round));
    }
    if let Some(number) = place.strip_prefix("round[").and_then(|it| it.strip_suffix(']')) {
        return Some((PointCode::RoundStart, number.parse().ok()?));
    }
    let (code, round) = match Spot::of(&Address::from_text(place))? {
        Spot::Top(id) => {
            let code = PointCode::parse(id.split('/').next()?)?;
            (Some(code).filter(|it| it.phase() == Some("11"))?, 0)
        }
        Spot::InRound(round, id) => {
            let code = match id.split('/').next()? {
                "begin" => PointCode::RoundStart,
                "research" => PointCode::ResearchRestart,
                "roll" | "poster" => PointCode::PosterSession,
                "review" => PointCode::PeerReview,
                "transfer" => PointCode::KnowledgeTransfer,
                _ => return None,
            };
            (code, round)
        }
        Spot::Iteration(..) => return None,
    };
    let is_known = round == 0 || conference.history.round(round).is_some();
    is_known.then_some((code, round))
}
