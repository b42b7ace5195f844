//! What a researcher is told before an iteration.
//!
//! Invariant: a function of the conference and of the researcher's own rows in this round. What
//! the others do meanwhile is not in it: they meet between rounds.

use std::fmt::Write as _;

use super::{keep, results};
use crate::conference::{Conference, read::settings::Mode};

/// `devil` is the prompt of the devil's advocate.
pub fn brief(
    conference: &Conference,
    round: u32,
    researcher: &str,
    iteration: u32,
    devil: &str,
) -> String {
    let settings = &conference.settings;
    let turns = conference.iterations_in(round).unwrap_or(1).saturating_sub(1);
    let mut text = String::new();
    let mut add = |line: String| writeln!(text, "{line}").expect("a string takes all");
    add(format!(
        "You are researcher {researcher}. Round {round}, iteration {iteration} of {turns}."
    ));
    add(format!("\nGoal: {}", settings.goal.as_deref().unwrap_or("see conference.md")));
    add(measure(conference));
    for title in ["Allowed Changes", "Forbidden Changes"] {
        let key = title.to_lowercase();
        let pair = conference.document.pairs().into_iter().find(|pair| pair.key == key);
        let section = conference.document.section(title).map(|it| it.body.trim().to_owned());
        let told = pair.map(|pair| pair.value.to_owned()).or(section);
        if let Some(told) = told.filter(|it| !it.is_empty()) {
            add(format!("{title}: {told}"));
        }
    }
    if let Some(guard) = guard(conference) {
        add(format!("Guard (it holds, whatever a change would gain): {guard}"));
    }
    if let Some(focus) = results::focus(conference, researcher) {
        add(format!("\nYour focus: {focus}"));
    }
    if is_devils_advocate(conference, researcher) {
        add(format!("\n{}", devil.trim()));
    }
    add(format!("\n{}", so_far(conference, round, researcher)));
    add(knowledge(conference, round));
    if let Some(told) = stuck(conference.stuck_level(round, researcher)) {
        add(format!("\n{told}"));
    }
    if results::is_last(conference, round) {
        add("\nENDGAME: this is the last round. Finish what is promising; begin nothing new."
            .to_owned());
    }
    add("\nWork in the directory you are in, and nowhere else. The conference's files are in \
         $CONFERENCE_DIR, to be read only. Write your report as one JSON object to the file that \
         $ONWARD_RESULT names."
        .to_owned());
    text
}

/// What must hold whatever the metric says. A template's own words, in braces, are no guard.
fn guard(conference: &Conference) -> Option<String> {
    let text = conference.document.section("Guard")?.body.trim().to_owned();
    (!text.is_empty() && !text.starts_with('{')).then_some(text)
}

/// The last of several, where conference.md asks for one.
pub fn is_devils_advocate(conference: &Conference, researcher: &str) -> bool {
    let all = conference.settings.researchers();
    conference.settings.devils_advocate == Some(true)
        && all.len() > 1
        && all.last().is_some_and(|last| last == researcher)
}

fn measure(conference: &Conference) -> String {
    let settings = &conference.settings;
    if settings.mode == Some(Mode::Qualitative) {
        return "There is no evaluator: score your own state from 0 to 10 by the success criteria \
                of conference.md, and put it into your report as `score`."
            .to_owned();
    }
    let metric = settings.metric.as_deref().unwrap_or("the metric");
    let direction = settings.direction_or_default().as_str();
    let target = settings.target.map(|it| format!(" (target {})", it.value)).unwrap_or_default();
    match &settings.evaluator {
        Some(evaluator) => {
            format!("Metric: {direction} {metric}{target}, as `{evaluator}` measures it.")
        }
        None => format!(
            "Metric: {direction} {metric}{target}. There is no evaluator command: measure it \
             yourself, and put the value into your report as `score`."
        ),
    }
}

fn so_far(conference: &Conference, round: u32, researcher: &str) -> String {
    let told = conference.history.round(round);
    let trials = told.into_iter().flat_map(|it| it.trials_of(researcher));
    let lines = trials.map(|(number, trial)| {
        let metric = trial.metric.map_or_else(|| "-".to_owned(), |it| it.to_string());
        format!("  {number}: {} {metric}", trial.status.as_str())
    });
    let lines: Vec<String> = lines.collect();
    let standing = keep::standing(conference, round, researcher);
    let standing = standing.map_or_else(|| "-".to_owned(), |it| it.to_string());
    format!("Your iterations in this round:\n{}\nYou stand at {standing}.", lines.join("\n"))
}

/// What was shared before this round.
fn knowledge(conference: &Conference, round: u32) -> String {
    let shared = conference.document.section("Shared Knowledge").map(|it| it.whole.trim());
    match shared.filter(|text| !text.is_empty() && round > 1) {
        Some(shared) => format!("\nShared knowledge:\n{shared}"),
        None => "\nNothing is shared yet.".to_owned(),
    }
}

fn stuck(level: u32) -> Option<&'static str> {
    match level {
        0 => None,
        1 => {
            Some("STUCK, level 1: three iterations in a row brought nothing. Switch the strategy.")
        }
        _ => Some(
            "STUCK, level 2: five iterations in a row brought nothing. Give up this line \
             altogether and begin from another assumption.",
        ),
    }
}
