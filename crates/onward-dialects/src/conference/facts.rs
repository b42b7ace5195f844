//! What the steps of the built-in workflow tell each other: the results of its calls.
//!
//! Invariant: a function of the conference alone, so that a call that ran and a step that was
//! adopted from the files give the same.

use serde_json::{Value, json};

use super::{
    config::{Mode, Settings},
    converge,
    event_log::{Status, StuckLevel},
    state::Conference,
};

/// Iterations without improvement, and the level of being stuck that they make.
const STUCK: [(u32, u32); 3] = [(7, 3), (5, 2), (3, 1)];

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
        "question": question(conference),
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

/// What a start must know exactly and conference.md does not say.
pub fn unready(conference: &Conference) -> Vec<&'static str> {
    let settings = &conference.settings;
    let metric = settings.mode == Some(Mode::Metric);
    let criteria = conference.document.section("Success Criteria").is_some();
    let needed = [
        (settings.count.is_none_or(|count| count <= 26), "researcher count of at most 26"),
        (settings.iterations.is_some(), "iterations per round"),
        (!metric || settings.metric.is_some(), "metric"),
        (!metric || settings.direction.is_some(), "direction of the metric"),
        (!metric || settings.evaluator.is_some(), "evaluator command"),
        (metric || criteria || settings.mode.is_none(), "section Success Criteria"),
        (settings.devils_advocate.is_some(), "Devil's Advocate (yes or no)"),
    ];
    let missing = needed.into_iter().filter(|(there, _)| !there).map(|(_, name)| name);
    let vague = settings.vague.iter().copied();
    settings.missing().into_iter().chain(missing).chain(vague).collect()
}

/// The most iterations that the conference can take.
pub fn budget(settings: &Settings) -> u64 {
    let rounds = 1..=settings.max_rounds.unwrap_or(0);
    let of = |round| settings.iterations.as_ref().map_or(0, |it| it.in_round(round));
    let each: u64 = rounds.map(|round| u64::from(of(round))).sum();
    let all = each * u64::from(settings.count.unwrap_or(0));
    settings.max_iterations.map_or(all, |max| all.min(u64::from(max)))
}

fn question(conference: &Conference) -> String {
    let settings = &conference.settings;
    let number = |it: Option<u32>| it.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let (count, rounds) = (number(settings.count), number(settings.max_rounds));
    let iterations = number(settings.iterations.as_ref().map(|it| it.in_round(1)));
    let goal = settings.goal.as_deref().unwrap_or("?").lines().next().unwrap_or_default();
    let devil = match settings.devils_advocate {
        Some(true) => "one of them the devil's advocate",
        Some(false) | None => "none of them the devil's advocate",
    };
    let success = match (settings.mode, &settings.metric) {
        (Some(Mode::Metric), Some(metric)) => {
            let direction = settings.direction_or_default().as_str();
            let target = settings.target.map(|it| format!(", target {}", it.value));
            format!("{direction} {metric}{}", target.unwrap_or_default())
        }
        _ => "the success criteria of conference.md".to_owned(),
    };
    let budget = budget(settings);
    format!(
        "Start this conference?\nGoal: {goal}\nSuccess: {success}\n{count} researchers ({devil}), \
         {iterations} iterations per round, at most {rounds} rounds.\n\
         Budget: at most {budget} iterations."
    )
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
        || is_past_research(conference, round)
        || converge::over(conference).is_some();
    json!({
        "status": trial.map_or("-", |it| it.status.as_str()),
        "metric": trial.and_then(|it| it.metric),
        "finished": is_last && over,
        "stuck": stuck_level(conference, round, researcher),
        "failed": false,
    })
}

/// Later phases of the round, or of the conference, have begun.
pub fn is_past_research(conference: &Conference, round: u32) -> bool {
    let history = &conference.history;
    let told = history.round(round);
    told.is_some_and(|it| it.poster || it.review || it.completed.is_some())
        || history.rounds.keys().next_back().is_some_and(|last| *last > round)
        || history.completed
}

/// How many of the researcher's last iterations of the round did not improve anything.
pub fn fruitless(conference: &Conference, round: u32, researcher: &str) -> u32 {
    let told = conference.history.round(round);
    let trials: Vec<Status> =
        told.into_iter().flat_map(|it| it.trials_of(researcher)).map(|it| it.1.status).collect();
    let count = trials.iter().rev().take_while(|status| !status.stands()).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// 0 to 3.
pub fn stuck_level(conference: &Conference, round: u32, researcher: &str) -> u32 {
    let fruitless = fruitless(conference, round, researcher);
    let reached = STUCK.iter().find(|(count, _)| fruitless >= *count).map_or(0, |(_, it)| *it);
    let told = conference.history.round(round).and_then(|it| it.stuck.get(researcher));
    match told {
        Some(StuckLevel::Level(level)) => reached.max(*level),
        Some(StuckLevel::TimedOut) | None => reached,
    }
}

/// Whether the rounds are over, and why.
pub fn converged(conference: &Conference) -> Value {
    match converge::over(conference) {
        Some(over) => json!({"over": true, "reason": over.reason.as_str(), "detail": over.detail}),
        None => json!({"over": false, "reason": "none", "detail": "another round may help"}),
    }
}
