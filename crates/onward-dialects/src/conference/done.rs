//! Which steps of the built-in workflow the files of a conference prove to be done.
//!
//! Invariant: agrees with the recovery table. Whoever takes every step that is done here for done,
//! leaves out what is passed over and starts the first of the others, stands at the recovery point.
//! What was passed over because the conference is over is never done.

use onward_core::address::Address;
use serde_json::{Value, json};

use super::{
    converge, facts,
    recovery::{self, Code},
    revert,
    state::Conference,
};
use crate::Done;

/// A step of the workflow, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    Top(&'a str),
    InRound(u32, &'a str),
    /// Round, researcher, iteration, and what is done in it.
    Iteration(u32, String, u32, &'a str),
}

/// `None` for an address that the workflow does not have.
pub fn place(step: &Address) -> Option<Place<'_>> {
    let (first, rest) = match step.as_str().split_once('/') {
        Some((first, rest)) if first.starts_with("round[") => (first, rest),
        Some(_) | None => return Some(Place::Top(step.as_str())),
    };
    let round = first.strip_prefix("round[")?.strip_suffix(']')?.parse().ok()?;
    let Some(rest) = rest.strip_prefix("research[") else {
        return Some(Place::InRound(round, rest));
    };
    let (researcher, rest) = rest.split_once("]/")?;
    let researcher = researcher.to_owned();
    if let Some(what) = rest.strip_prefix("baseline/") {
        return Some(Place::Iteration(round, researcher, 0, what));
    }
    let (iteration, what) = rest.strip_prefix("iterate[")?.split_once("]/")?;
    Some(Place::Iteration(round, researcher, iteration.parse().ok()?, what))
}

pub fn done(conference: &Conference, step: &Address) -> Option<Done> {
    match place(step)? {
        Place::Top(id) => top(conference, id),
        Place::InRound(round, id) => in_round(conference, round, id),
        Place::Iteration(round, researcher, iteration, what) => {
            in_iteration(conference, round, &researcher, iteration, what)
        }
    }
}

/// Recorded when the log has it, inferred when it only follows.
fn told(is_logged: bool, result: Value) -> Done {
    if is_logged { Done::recorded(result) } else { Done::inferred(result) }
}

/// Why a step of the round under way will not run: the conference is over in its midst.
pub fn passed_over(conference: &Conference, step: &Address) -> Option<String> {
    let round = match place(step)? {
        Place::Top(_) => return None,
        Place::InRound(round, _) | Place::Iteration(round, ..) => round,
    };
    let under_way = conference.history.open_round() == Some(round);
    if !under_way || done(conference, step).is_some() {
        return None;
    }
    let over = converge::over(conference)?;
    Some(format!("the conference goes to its synthesis: {}", over.detail))
}

fn top(conference: &Conference, id: &str) -> Option<Done> {
    let is_logged = conference.history.started;
    let started = is_logged || !conference.history.rounds.is_empty();
    let code = recovery::point(conference).code;
    let is_written = matches!(code, Code::Close | Code::Complete);
    let is_complete = code == Code::Complete;
    match id {
        "open" => started.then(|| told(is_logged, facts::opening(conference))),
        "confirm" => started.then(|| told(is_logged, json!({"option": "approve"}))),
        "partition" => started.then(|| Done::inferred(json!({}))),
        "start" => started.then(|| told(is_logged, json!({}))),
        "synthesis/draft" | "synthesis/publish" => is_written.then(|| told(is_complete, json!({}))),
        "worktrees" => is_complete.then(|| Done::inferred(json!({"option": "keep"}))),
        "close" => is_complete.then(|| Done::recorded(json!({}))),
        _ => None,
    }
}

fn in_round(conference: &Conference, round: u32, id: &str) -> Option<Done> {
    let known = conference.history.round(round);
    let after = is_after(conference, round);
    let over = converge::over(conference).is_some();
    let is = |what: bool, is_logged: bool| (after || what).then(|| told(is_logged, json!({})));
    let (posted, reviewed) = known.map_or((false, false), |it| (it.poster, it.review));
    let has_poster = conference.posters.contains_key(&round);
    let has_review = conference.reviews.contains_key(&round);
    match id {
        "begin" => {
            let point = recovery::point(conference);
            let inferred =
                || revert::inferred(conference, &point).iter().any(|it| it.round == round);
            let begun = known.is_some_and(|it| it.started || it.iterations() > 0) || inferred();
            let result = || facts::beginning(conference, round);
            let is_logged = known.is_some_and(|it| it.started);
            (after || begun || over && known.is_some()).then(|| told(is_logged, result()))
        }
        "roll" => is(posted || reviewed, false),
        // After the review nobody reads the poster again before the synthesis.
        "poster/draft" | "poster/publish" => is(posted && (has_poster || over) || reviewed, posted),
        "review/judge" | "review/publish" => is(reviewed && (has_review || over), reviewed),
        "transfer" => is(false, known.is_some_and(|it| it.completed.is_some())),
        "converge" => {
            let later = conference.history.rounds.keys().any(|number| *number > round);
            let is_logged = conference.history.end.is_some();
            match (later, over) {
                (true, _) => Some(Done::inferred(json!({"over": false}))),
                (false, true) if after => Some(told(is_logged, facts::converged(conference))),
                (false, _) => None,
            }
        }
        _ => None,
    }
}

/// Nothing of the round is left to do: it is completed, or a later one has begun.
fn is_after(conference: &Conference, round: u32) -> bool {
    let history = &conference.history;
    let completed = history.round(round).is_some_and(|it| it.completed.is_some());
    let later = history.rounds.keys().any(|number| *number > round);
    completed || later
}

fn in_iteration(
    conference: &Conference,
    round: u32,
    researcher: &str,
    iteration: u32,
    what: &str,
) -> Option<Done> {
    let known = conference.history.round(round);
    let trials = known.and_then(|it| it.trials.get(researcher));
    let logged = trials.and_then(|it| it.keys().next_back()).is_some_and(|it| *it >= iteration);
    let point = recovery::point(conference);
    let inferred = || {
        let mut all = revert::inferred(conference, &point).into_iter();
        all.any(|it| it.researcher == researcher && it.round == round && it.iteration >= iteration)
    };
    let past = facts::is_past_research(conference, round) || is_after(conference, round);
    let finished = || conference.finish(round, researcher).is_some();
    if !(past || logged || known.is_some() && finished() || inferred()) {
        return None;
    }
    let result = match what {
        "brief" => json!({"text": ""}),
        "propose" => json!({"outcome": "adopted"}),
        "score" => json!({"ok": false, "adopted": true}),
        "settle" => facts::settled(conference, round, researcher, iteration),
        _ => return None,
    };
    Some(told(trials.is_some_and(|it| it.contains_key(&iteration)), result))
}
