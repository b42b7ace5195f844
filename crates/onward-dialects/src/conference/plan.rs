//! The whole plan for a conference: what `onward plan` shows before anything is adopted.
//!
//! Invariant: a pure function of the files and of what time it is.

use std::{collections::BTreeMap, path::Path};

use onward_core::{
    finding::Severity,
    plan::{AgeBand, LastEvent, Plan, PlanCost, PlannedStep, RecoveryPoint, RunInfo, Status},
    time::Timestamp,
};

use super::{
    check::{self, Age},
    converge,
    recovery::{self, Code, Point},
    revert,
    state::{Conference, EVENTS, REPORT, SYNTHESIS, import},
    step, steps,
};
use crate::{Asked, Files, MissingMark};

pub fn plan(files: &Files, asked: &Asked<'_>) -> Result<Plan, MissingMark> {
    let conference = import(files)?;
    let written = files.file(EVENTS).and_then(|file| file.modified);
    Ok(plan_for(&conference, written, asked))
}

/// `written` is when the log was last written to, for logs that say no time.
pub fn plan_for(conference: &Conference, written: Option<Timestamp>, asked: &Asked<'_>) -> Plan {
    let point = recovery::point(conference);
    let age = Age { last: conference.history.last_at.or(written), now: asked.now };
    let findings = check::findings(conference, &point, age);
    let steps = steps::steps(conference, &point);
    let blocking = || findings.iter().filter(|finding| finding.severity == Severity::Blocking);
    let mut needs: Vec<String> = blocking().map(|finding| finding.message.clone()).collect();
    if point.code == Code::Close {
        needs.push("say whether synthesis.md and final_report.md are the final ones".to_owned());
    }
    Plan {
        cost: PlanCost::default(),
        schema: "onward.plan/1".to_owned(),
        run: run_info(conference, &point, age, asked),
        summary: summary(conference, &point, asked),
        recovery_point: RecoveryPoint {
            code: point.code.as_str().to_owned(),
            phase: point.code.phase().map(str::to_owned),
            round: point.round,
            steps: entry_steps(&point),
            summary: in_words(conference, &point, asked.dir),
        },
        reverts: revert::reverts(conference, &point),
        counts: counts(&steps),
        can_resume: point.code != Code::Complete && blocking().next().is_none(),
        needs,
        findings,
        steps,
    }
}

fn counts(steps: &[PlannedStep]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for step in steps {
        *counts.entry(step.verdict.as_str().to_owned()).or_insert(0) += 1;
    }
    counts
}

fn run_info(conference: &Conference, point: &Point, age: Age, asked: &Asked<'_>) -> RunInfo {
    let history = &conference.history;
    let text = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    let loop_is_alive = conference.loop_pid.is_some_and(|pid| conference.alive.contains(&pid));
    let status = if point.code == Code::Complete {
        Status::Completed
    } else if loop_is_alive {
        Status::Running
    } else if history.failed {
        Status::Failed
    } else if history.rounds.is_empty() {
        Status::Fresh
    } else {
        Status::Interrupted
    };
    let age_seconds = age.ms() / 1000;
    let name = Path::new(asked.dir).file_name().map(|name| name.to_string_lossy().into_owned());
    RunInfo {
        id: name.unwrap_or_else(|| asked.dir.to_owned()),
        dialect: "conference".to_owned(),
        workflow: "conference".to_owned(),
        dir: asked.dir.to_owned(),
        status,
        started_at: text(history.first_at.or(age.last)),
        last_event: LastEvent {
            kind: history.last_name.clone().unwrap_or_default(),
            at: text(age.last),
        },
        age_seconds,
        age_band: AgeBand::of_seconds(age_seconds),
        resume_count: history.resumes,
    }
}

/// The state in plain words.
fn summary(conference: &Conference, point: &Point, asked: &Asked<'_>) -> Vec<String> {
    let history = &conference.history;
    let completed = history.rounds.values().filter(|round| round.completed.is_some()).count();
    let last = match (&history.last_name, history.last_at) {
        (Some(name), Some(at)) => format!("{name} at {at}"),
        (Some(name), None) => name.clone(),
        (None, _) => "none".to_owned(),
    };
    let round = history.rounds.keys().next_back().copied();
    let researchers = conference.researchers_of(round.unwrap_or(1)).join(", ");
    let researchers = match round {
        Some(round) => format!("{researchers} (round {round})"),
        None => format!("{researchers} (no round has begun)"),
    };
    let converged = match &point.over {
        Some(over) if over.reason.is_budget() => format!("no, but {}", over.detail),
        Some(over) => format!("yes, {}", over.detail),
        None => "no".to_owned(),
    };
    let mut lines = vec![
        format!("Rounds completed: {completed}"),
        format!("Last completed event: {last}"),
        format!("Researchers in the last round: {researchers}"),
        format!("Convergence reached: {converged}"),
        format!("Interruption point: {}", in_words(conference, point, asked.dir)),
    ];
    lines.extend(time_line(conference, point, asked.now));
    lines
}

fn in_words(conference: &Conference, point: &Point, dir: &str) -> String {
    match point.code {
        Code::Complete => outputs(conference, dir),
        Code::Close
        | Code::Synthesis
        | Code::RoundStart
        | Code::KnowledgeTransfer
        | Code::PeerReview
        | Code::PosterSession
        | Code::ResearchContinue
        | Code::ResearchRestart => point.summary(),
    }
}

/// That it is over, and where what came of it is: only files that are there.
fn outputs(conference: &Conference, dir: &str) -> String {
    let all = [(SYNTHESIS, &conference.synthesis), (REPORT, &conference.report)];
    let there = all.iter().filter(|(_, page)| page.is_some());
    let there: Vec<String> = there.map(|(name, _)| format!("{dir}/{name}")).collect();
    match there.as_slice() {
        [] => "This conference is already complete. Its outputs are not there any more".to_owned(),
        _ => format!("This conference is already complete. Outputs are in {}", there.join(" and ")),
    }
}

/// The line that a resume logs is an event too: with it the time budget may be over.
fn time_line(conference: &Conference, point: &Point, now: Timestamp) -> Option<String> {
    if point.over.is_some() || point.code == Code::Complete {
        return None;
    }
    let used = converge::time_used(conference, now)?;
    Some(format!(
        "Time budget: over with this resume ({used}), which then goes straight to the synthesis; \
         to go on with the research, raise it in conference.md first"
    ))
}

/// The steps that start first.
fn entry_steps(point: &Point) -> Vec<String> {
    let round = point.round.unwrap_or(0);
    let one = |id: &str| vec![step::in_round(round, id).to_string()];
    match point.code {
        Code::Complete => Vec::new(),
        Code::Close => vec![step::close().to_string()],
        Code::Synthesis => vec![step::synthesis().to_string()],
        Code::KnowledgeTransfer => one("transfer"),
        Code::PeerReview => one("review"),
        Code::PosterSession => one("poster"),
        Code::RoundStart | Code::ResearchContinue | Code::ResearchRestart => {
            let of = |researcher: &String| step::research(round, researcher).to_string();
            point.researchers.iter().map(of).collect()
        }
    }
}
