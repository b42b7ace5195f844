//! The verdict on every step of a conference, with its reason.
//!
//! Invariant: a step is listed once. Finished iterations are listed one by one; what has not begun
//! is one line for each researcher, phase or round.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    plan::{PlannedStep, Verdict, Why},
};

use super::{
    event_log::Trial,
    recovery::{Code, Point},
    revert::{self, Inferred},
    state::{Conference, Finish},
    step,
    write::seconds,
};

pub fn steps(conference: &Conference, point: &Point) -> Vec<PlannedStep> {
    let mut steps = Vec::new();
    let history = &conference.history;
    let current = match point.code {
        Code::RoundStart => point.round,
        Code::Complete
        | Code::Close
        | Code::Synthesis
        | Code::KnowledgeTransfer
        | Code::PeerReview
        | Code::PosterSession
        | Code::ResearchContinue
        | Code::ResearchRestart => history.open_round(),
    };
    for number in history.rounds.keys().copied().filter(|number| Some(*number) != current) {
        finished_round(conference, number, &mut steps);
    }
    if let Some(number) = current {
        round_under_way(conference, point, number, &mut steps);
        let more = conference.settings.max_rounds.is_none_or(|max| number < max);
        if more && point.over.is_none() && point.code != Code::Complete {
            let next = step::round(number.saturating_add(1));
            steps.push(planned(&next, Verdict::Run, "pending", "unless it converges before"));
        }
    }
    steps.extend(ending(conference, point));
    steps
}

fn planned(step: &Address, verdict: Verdict, cause: &str, detail: &str) -> PlannedStep {
    let why = vec![Why::because(cause, detail)];
    PlannedStep { step: step.to_string(), verdict, why, cost_usd: None }
}

fn finished_round(conference: &Conference, number: u32, steps: &mut Vec<PlannedStep>) {
    let Some(round) = conference.history.round(number) else { return };
    for researcher in round.trials.keys() {
        logged_iterations(conference, number, researcher, steps);
    }
    let done = format!("round {number} is completed");
    let alone = round.trials.len() == 1;
    for id in ["poster", "review", "transfer"] {
        let step = step::in_round(number, id);
        steps.push(match id {
            "poster" if alone => planned(&step, Verdict::Skip, "alone", "nothing to compare"),
            _ => planned(&step, Verdict::Keep, "done", &done),
        });
    }
}

fn logged_iterations(
    conference: &Conference,
    number: u32,
    researcher: &str,
    steps: &mut Vec<PlannedStep>,
) {
    let Some(round) = conference.history.round(number) else { return };
    for (iteration, trial) in round.trials_of(researcher) {
        let step = step::iteration(number, researcher, iteration);
        steps.push(planned(&step, Verdict::Keep, "done", &in_words(trial)));
    }
}

fn in_words(trial: &Trial) -> String {
    let metric = trial.metric.map(|metric| format!(" {metric}")).unwrap_or_default();
    let at = trial.at.map(|at| format!(" at {}", seconds(at))).unwrap_or_default();
    format!("{}{metric}{at}", trial.status.as_str())
}

fn round_under_way(
    conference: &Conference,
    point: &Point,
    number: u32,
    steps: &mut Vec<PlannedStep>,
) {
    let inferred = revert::inferred(conference, point);
    for researcher in conference.researchers_of(number) {
        logged_iterations(conference, number, &researcher, steps);
        let of = |it: &&Inferred| it.researcher == researcher;
        // Two rows of one number are one iteration.
        let inferred: BTreeSet<u32> = inferred.iter().filter(of).map(|it| it.iteration).collect();
        for iteration in &inferred {
            let step = step::iteration(number, &researcher, *iteration);
            let detail = "its row is there and kept; the event is inferred";
            steps.push(planned(&step, Verdict::Adopt, "inferred", detail));
        }
        if point.researchers.contains(&researcher) {
            steps.push(next_work(conference, point, number, &researcher, &inferred));
        } else if let Some(finish) = conference.finish(number, &researcher)
            && finish != Finish::Count
        {
            let step = step::research(number, &researcher);
            steps.push(planned(&step, Verdict::Keep, "done", finish_in_words(finish)));
        }
    }
    phases(conference, point, number, steps);
}

fn finish_in_words(finish: Finish) -> &'static str {
    match finish {
        Finish::Count => "all its iterations are logged",
        Finish::Final => "its last iteration is marked final",
        Finish::Stuck => "it is stuck at level 3 and stops for this round",
        Finish::Target => "it reached the target",
        Finish::Budget => "no iteration is left in the whole conference",
        Finish::Stalled => "everybody is stuck, so nobody goes on in this round",
    }
}

/// What an unfinished researcher does first.
fn next_work(
    conference: &Conference,
    point: &Point,
    number: u32,
    researcher: &str,
    inferred: &BTreeSet<u32>,
) -> PlannedStep {
    let logged = conference.history.round(number).into_iter();
    let logged = logged.flat_map(|round| round.trials_of(researcher).map(|(number, _)| number));
    let last = logged.chain(inferred.iter().copied()).max();
    let is_begun = point.code != Code::RoundStart || !inferred.is_empty();
    let Some(last) = last.filter(|_| is_begun) else {
        let step = step::research(number, researcher);
        return planned(&step, Verdict::Run, "pending", "nothing of it is logged");
    };
    let Some(next) = last.checked_add(1) else {
        let step = step::research(number, researcher);
        return planned(&step, Verdict::Run, "pending", "no number is left for an iteration");
    };
    let step = step::iteration(number, researcher, next);
    let of = conference.iterations_in(number).map(|it| format!(" of {it}")).unwrap_or_default();
    let done = conference.finished_iterations(number, researcher);
    let detail = format!("{done}{of} iterations are logged");
    planned(&step, Verdict::Run, "pending", &detail)
}

fn phases(conference: &Conference, point: &Point, number: u32, steps: &mut Vec<PlannedStep>) {
    let round = conference.history.round(number);
    let is_posted = round.is_some_and(|round| round.poster);
    let is_reviewed = round.is_some_and(|round| round.review);
    let has_poster = conference.posters.contains_key(&number);
    let has_review = conference.reviews.contains_key(&number);
    let alone = conference.researchers_of(number).len() == 1;
    let poster = step::in_round(number, "poster");
    steps.push(match () {
        () if alone && !is_posted => planned(&poster, Verdict::Skip, "alone", "nothing to compare"),
        // After the review nobody reads the poster again before the synthesis.
        () if is_reviewed => planned(&poster, Verdict::Keep, "done", "the review came after it"),
        () => phase(&poster, point, is_posted, has_poster),
    });
    let review = step::in_round(number, "review");
    steps.push(phase(&review, point, is_reviewed, has_review));
    let transfer = step::in_round(number, "transfer");
    steps.push(if point.over.is_some() {
        planned(&transfer, Verdict::Skip, "over", "the conference goes to its synthesis")
    } else {
        planned(&transfer, Verdict::Run, "pending", "each of its parts adds what is missing")
    });
}

fn phase(step: &Address, point: &Point, logged: bool, on_disk: bool) -> PlannedStep {
    let over = point.over.is_some();
    match (logged, on_disk) {
        (true, true) => planned(step, Verdict::Keep, "done", "it is logged"),
        (true, false) if over => planned(step, Verdict::Keep, "done", "it is logged"),
        (true, false) => planned(step, Verdict::Rerun, "missing-artifact", "its file is gone"),
        (false, _) if over => {
            planned(step, Verdict::Skip, "over", "the conference goes to its synthesis")
        }
        (false, true) => planned(step, Verdict::Verify, "unproved", "a file, but no event"),
        (false, false) => planned(step, Verdict::Run, "pending", "it has not run yet"),
    }
}

fn ending(conference: &Conference, point: &Point) -> [PlannedStep; 2] {
    let (synthesis, close) = (step::synthesis(), step::close());
    let on_disk = conference.synthesis.is_some() || conference.report.is_some();
    let last = match point.code {
        Code::Complete => (Verdict::Keep, "done", "the conference is complete"),
        Code::Close => (Verdict::Adopt, "whole", "both outputs are there and whole"),
        Code::Synthesis
        | Code::RoundStart
        | Code::KnowledgeTransfer
        | Code::PeerReview
        | Code::PosterSession
        | Code::ResearchContinue
        | Code::ResearchRestart
            if on_disk =>
        {
            (Verdict::Verify, "unproved", "a file, but no event")
        }
        Code::Synthesis
        | Code::RoundStart
        | Code::KnowledgeTransfer
        | Code::PeerReview
        | Code::PosterSession
        | Code::ResearchContinue
        | Code::ResearchRestart => (Verdict::Run, "pending", "it has not run yet"),
    };
    let closing = match point.code {
        Code::Complete => (Verdict::Keep, "done", "conference.completed is logged"),
        Code::Close => (Verdict::Ask, "unproved", "are these the final outputs?"),
        Code::Synthesis
        | Code::RoundStart
        | Code::KnowledgeTransfer
        | Code::PeerReview
        | Code::PosterSession
        | Code::ResearchContinue
        | Code::ResearchRestart => (Verdict::Run, "pending", "it has not run yet"),
    };
    [planned(&synthesis, last.0, last.1, last.2), planned(&close, closing.0, closing.1, closing.2)]
}
