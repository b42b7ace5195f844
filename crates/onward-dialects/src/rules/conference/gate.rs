//! The start gate: what a start must know exactly, and what it asks the user.
//!
//! Invariant: stricter than going on. A number with words around it is good enough to go on by, and
//! not to start with.

use crate::{
    conference::{
        Conference,
        read::settings::{COUNT, ITERATIONS, Mode, ROUNDS, Settings},
    },
    kit::markdown::pair_in,
};

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
    settings.missing().into_iter().chain(missing).chain(vague(conference)).collect()
}

/// The most iterations that the conference can take.
pub fn budget(settings: &Settings) -> u64 {
    let rounds = settings.max_rounds.unwrap_or(0);
    let each = settings.iterations.as_ref().map_or(0, |it| it.total(rounds));
    let all = each.saturating_mul(u64::from(settings.count.unwrap_or(0)));
    settings.max_iterations.map_or(all, |max| all.min(u64::from(max)))
}

pub fn question(conference: &Conference) -> String {
    let settings = &conference.settings;
    let number = |it: Option<u32>| it.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let (count, rounds) = (number(settings.count), number(settings.max_rounds));
    let iterations = number(settings.iterations.as_ref().map(|it| it.in_round(1)));
    let goal = settings.goal.as_deref().unwrap_or("?").lines().next().unwrap_or_default();
    let devil = match settings.devils_advocate {
        Some(true) => "one of them the devil's advocate",
        Some(false) | None => "none of them the devil's advocate",
    };
    let metric = settings.metric.as_ref().filter(|_| settings.mode == Some(Mode::Metric));
    let success = match metric {
        Some(metric) => {
            let direction = settings.direction_or_default().as_str();
            let target = settings.target.map(|it| format!(", target {}", it.value));
            format!("{direction} {metric}{}", target.unwrap_or_default())
        }
        None => "the success criteria of conference.md".to_owned(),
    };
    let budget = budget(settings);
    let s = |number: &str| if number == "1" { "" } else { "s" };
    format!(
        "Start this conference?\nGoal: {goal}\nSuccess: {success}\n{count} researcher{} ({devil}), \
         {iterations} iteration{} per round, at most {rounds} round{}.\n\
         Budget: at most {budget} iteration{}.",
        s(&count),
        s(&iterations),
        s(&rounds),
        s(&budget.to_string())
    )
}

/// What is there and not exact.
fn vague(conference: &Conference) -> Vec<&'static str> {
    let pairs = conference.document.pairs();
    let is_vague = |keys: &[&str], exact: fn(&str) -> bool| {
        pair_in(&pairs, "researchers", keys).is_some_and(|pair| !exact(pair.value))
    };
    let asked = [
        (is_vague(&COUNT, is_exact), "exact researcher count"),
        (is_vague(&ITERATIONS, is_exact_schedule), "exact iterations per round"),
        (is_vague(&ROUNDS, is_exact), "exact max rounds"),
    ];
    asked.into_iter().filter(|(vague, _)| *vague).map(|(_, name)| name).collect()
}

/// One number and nothing else.
fn is_exact(text: &str) -> bool {
    let text = text.trim().trim_matches('`');
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The same, or a number for each of some rounds.
fn is_exact_schedule(text: &str) -> bool {
    let of_rounds = |part: &str| {
        let (number, rest) = part.trim().split_once(' ').unwrap_or((part.trim(), ""));
        let rest = rest.trim();
        is_exact(number) && (rest.is_empty() || rest.to_lowercase().starts_with("(round"))
    };
    text.split([',', ';']).all(of_rounds)
}
