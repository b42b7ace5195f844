//! What the steps of the built-in workflow tell each other: the results of its calls.
//!
//! Invariant: a function of the conference alone, so that a call that ran and a step that was
//! adopted from the files give the same.

use serde_json::{Value, json};

use super::{converge, gate};
use crate::conference::Conference;

/// What the start gate shows, and what the rest of the workflow is laid out by.
pub fn opening(conference: &Conference) -> Value {
    let settings = &conference.settings;
    let researchers = researchers(conference);
    let rounds = settings.max_rounds.unwrap_or(1).max(conference.last_round_on_disk()).max(1);
    json!({
        "researchers": researchers,
        "max_rounds": rounds,
        "worktrees": conference.has_worktrees(),
        "confirmed": settings.confirmed || conference.history.started,
        "partition": settings.assigned && !unassigned(conference).is_empty(),
        "question": gate::question(conference),
    })
}

/// Those that conference.md asks for, or those of the first round.
pub fn researchers(conference: &Conference) -> Vec<String> {
    let asked = conference.settings.researchers();
    if asked.is_empty() { conference.researchers_of(1) } else { asked }
}

/// Those without a `### Researcher X Focus`.
pub fn unassigned(conference: &Conference) -> Vec<String> {
    let has_focus = |it: &String| focus(conference, it).is_some();
    conference.settings.researchers().into_iter().filter(|it| !has_focus(it)).collect()
}

/// The part of the search space that conference.md gives a researcher.
pub fn focus(conference: &Conference, researcher: &str) -> Option<String> {
    let section = conference.document.section(&format!("Researcher {researcher} Focus"))?;
    let text = section.body.trim();
    (!text.is_empty() && !text.starts_with('{')).then(|| text.to_owned())
}

/// The round's part of the workflow.
pub fn beginning(conference: &Conference, round: u32) -> Value {
    let told = conference.history.round(round);
    let trials = told.into_iter().flat_map(|it| it.trials.values());
    let logged = trials.filter_map(|it| it.keys().next_back().copied()).max().unwrap_or(0);
    let planned = conference.iterations_in(round).unwrap_or(1).saturating_sub(1);
    json!({"round": round, "turns": planned.max(logged), "last": is_last(conference, round)})
}

/// No round can follow: the budget does not allow it.
pub fn is_last(conference: &Conference, round: u32) -> bool {
    let settings = &conference.settings;
    let rounds = settings.max_rounds.is_some_and(|max| round >= max);
    let before = conference.history.rounds.range(..round).map(|(_, it)| it.iterations());
    let used: usize = before.sum();
    let people = conference.researchers_of(round).len();
    let here = people * conference.iterations_in(round).unwrap_or(1) as usize;
    rounds || settings.max_iterations.is_some_and(|max| used + here >= max as usize)
}

/// What became of one iteration, and whether its researcher goes on.
pub fn settled(conference: &Conference, round: u32, researcher: &str, iteration: u32) -> Value {
    let told = conference.history.round(round);
    let trials = told.and_then(|it| it.trials.get(researcher));
    let trial = trials.and_then(|it| it.get(&iteration));
    let is_last = trials.and_then(|it| it.keys().next_back()).is_none_or(|it| *it <= iteration);
    let over = conference.finish(round, researcher).is_some()
        || conference.is_past_research(round)
        || converge::over(conference).is_some();
    json!({
        "status": trial.map_or("-", |it| it.status.as_str()),
        "metric": trial.and_then(|it| it.metric),
        "finished": is_last && over,
        "stuck": conference.stuck_level(round, researcher),
        "failed": false,
    })
}

/// Whether the rounds are over, and why.
pub fn converged(conference: &Conference) -> Value {
    match converge::over(conference) {
        Some(over) => json!({"over": true, "reason": over.reason.as_str(), "detail": over.detail}),
        None => json!({"over": false, "reason": "none", "detail": "another round may help"}),
    }
}
