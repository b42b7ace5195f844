//! Whether a conference is over: what was logged, then the four rules in their order.
//!
//! Invariant: the same files give the same answer, and the first rule that holds gives it. A round
//! that is open is finished first, as it would be without an interruption: only a logged
//! `conference.converged` and the time budget end a conference in its midst.

use onward_core::time::Timestamp;

use super::review::scores;
use crate::conference::{
    Conference,
    read::{history::End, log::Status, settings::Mode},
};

/// The conference has no further round, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    pub reason: Reason,
    /// In words, fit for "the conference is over: …".
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The log says that it converged.
    Logged,
    Target,
    Rounds,
    Iterations,
    Time,
    Stalled,
    Plateau,
    Quality,
}

impl Reason {
    /// The word for it in the log and in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logged => "logged",
            Self::Target => "target_reached",
            Self::Rounds => "max_rounds",
            Self::Iterations => "max_total_iterations",
            Self::Time => "time_budget",
            Self::Stalled => "stalled",
            Self::Plateau => "metric_plateau",
            Self::Quality => "review_scores",
        }
    }

    pub const fn is_budget(self) -> bool {
        match self {
            Self::Rounds | Self::Iterations | Self::Time => true,
            Self::Logged | Self::Target | Self::Stalled | Self::Plateau | Self::Quality => false,
        }
    }
}

pub fn over(conference: &Conference) -> Option<Over> {
    let is_between_rounds = conference.history.open_round().is_none();
    let by_rule = || rule(conference).filter(|_| is_between_rounds);
    let logged = logged(conference);
    let counts = |over: &Over| is_between_rounds || over.reason == Reason::Logged;
    logged.filter(counts).or_else(by_rule).or_else(|| time(conference))
}

/// The rule that holds between rounds, whatever was logged.
pub fn rule(conference: &Conference) -> Option<Over> {
    target(conference)
        .or_else(|| budget(conference))
        .or_else(|| stalled(conference))
        .or_else(|| plateau(conference))
        .or_else(|| quality(conference))
}

fn because(reason: Reason, detail: impl Into<String>) -> Over {
    Over { reason, detail: detail.into() }
}

fn logged(conference: &Conference) -> Option<Over> {
    let history = &conference.history;
    match &history.end {
        Some(End::Converged { reason }) => {
            let reason = reason.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
            return Some(because(Reason::Logged, format!("it is logged as converged{reason}")));
        }
        Some(End::Stalled) => return Some(because(Reason::Stalled, "it is logged as stalled")),
        None => {}
    }
    let (number, last) = history.rounds.last_key_value()?;
    let converged = last.completed.as_ref().is_some_and(|completed| completed.converged);
    converged.then(|| because(Reason::Logged, format!("round {number} is logged as converged")))
}

fn target(conference: &Conference) -> Option<Over> {
    let mut rounds = conference.history.rounds.iter();
    let (number, _) = rounds.find(|(_, round)| conference.meets_target(round))?;
    Some(because(Reason::Target, format!("the target was reached in round {number}")))
}

fn budget(conference: &Conference) -> Option<Over> {
    let (settings, history) = (&conference.settings, &conference.history);
    let completed = history.last_completed();
    if let Some(max) = settings.max_rounds.filter(|max| *max > 0 && completed >= *max) {
        return Some(because(Reason::Rounds, format!("{completed} of {max} rounds are completed")));
    }
    if let Some(max) = settings.max_iterations.filter(|_| conference.is_out_of_iterations()) {
        let detail = format!("{} of {max} iterations are used", history.iterations());
        return Some(because(Reason::Iterations, detail));
    }
    time(conference)
}

fn time(conference: &Conference) -> Option<Over> {
    let used = time_used(conference, conference.history.last_at?)?;
    Some(because(Reason::Time, format!("the time budget is over: {used}")))
}

/// In words, when the time budget is over for an event at `at`.
pub fn time_used(conference: &Conference, at: Timestamp) -> Option<String> {
    let used_ms = conference.history.ms_until(at)?;
    let budget_ms = conference.settings.time_budget_ms.filter(|budget| used_ms >= *budget)?;
    Some(format!("{} of {} are used", span(used_ms), span(budget_ms)))
}

/// All researchers at level 2 or more in the last round.
fn stalled(conference: &Conference) -> Option<Over> {
    let (number, _) = conference.history.rounds.last_key_value()?;
    let detail = format!("every researcher is stuck in round {number}");
    conference.is_stalled_in(*number).then(|| because(Reason::Stalled, detail))
}

/// Two rounds in a row that did not better the one before them.
fn plateau(conference: &Conference) -> Option<Over> {
    if conference.settings.mode == Some(Mode::Qualitative) {
        return None;
    }
    let last = conference.history.last_completed();
    let (first, second) = (last.checked_sub(2).filter(|it| *it > 0)?, last - 1);
    let best = |round| conference.best_of(round);
    let (first_best, second_best, last_best) = (best(first)?, best(second)?, best(last)?);
    let direction = conference.settings.direction_or_default();
    let threshold = noise_threshold(conference);
    // A gain of exactly the threshold must not count because of how fractions are stored.
    let slack = 1e-9 * first_best.abs().max(last_best.abs());
    let improved = |new, old| direction.gain(new, old) > threshold + slack;
    let flat = !improved(second_best, first_best) && !improved(last_best, second_best);
    let detail = format!("the best metric did not improve in rounds {second} and {last}");
    flat.then(|| because(Reason::Plateau, detail))
}

/// What a metric may move by without meaning anything.
fn noise_threshold(conference: &Conference) -> f64 {
    let settings = &conference.settings;
    if let Some(noise) = settings.noise {
        return noise;
    }
    let rounds = conference.history.rounds.values();
    let trials = rounds.flat_map(|round| round.trials.values().flat_map(|it| it.values()));
    let metrics: Vec<f64> = trials.clone().filter_map(|trial| trial.metric).collect();
    if !metrics.is_empty() && metrics.iter().all(|metric| metric.fract() == 0.0) {
        return 0.0;
    }
    let name = settings.metric.as_deref().unwrap_or_default().to_lowercase();
    let percent = settings.target.is_some_and(|target| target.percent);
    if percent || name.contains('%') || name.contains("percent") {
        return 0.1;
    }
    let baseline = trials.clone().find(|trial| trial.status == Status::Baseline);
    let baseline = baseline.and_then(|trial| trial.metric).or(metrics.first().copied());
    baseline.unwrap_or(0.0).abs() * 0.001
}

/// Eight or more of ten for all researchers, two rounds in a row.
fn quality(conference: &Conference) -> Option<Over> {
    if conference.settings.mode != Some(Mode::Qualitative) {
        return None;
    }
    let last = conference.history.last_completed();
    let before = last.checked_sub(1).filter(|it| *it > 0)?;
    let good = |round: u32| {
        let scores = conference.reviews.get(&round).map(scores).unwrap_or_default();
        let enough = scores.len() >= conference.researchers_of(round).len();
        !scores.is_empty() && enough && scores.iter().all(|score| *score >= 8.0)
    };
    let detail = format!("the reviewer gave at least 8 of 10 to all in rounds {before} and {last}");
    (good(before) && good(last)).then(|| because(Reason::Quality, detail))
}

/// A span in the two largest units that matter.
pub fn span(ms: u64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        0..60 => format!("{minutes} min"),
        60..1_440 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1_440, minutes / 60 % 24),
    }
}
