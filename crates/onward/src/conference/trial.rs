//! One iteration of one researcher: told what to do, tried, measured, settled.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use onward_core::address::Address;
use onward_engine::dialects::{
    builtin,
    conference::{
        Conference, brief as briefing,
        deed::{Iterated, What},
        done::{Place, place},
        event_log::{Status, StuckLevel},
        facts, keep,
    },
};
use onward_engine::locate::Project;
use serde_json::{Value, json};

use super::{
    Attempt, CallError, With, evaluate,
    ground::{Ground, Which},
    repo::Repo,
    round::with_rescued,
    seat::Seat,
};

/// What an iteration may take where conference.md does not say.
const TIMEOUT: Duration = Duration::from_mins(30);
/// An agent that fails this often has failed.
const ATTEMPTS_MAX: u32 = 2;
const DEVIL: &str = "prompts/conference/devils-advocate.md";

fn which(with: &With) -> Which<'_> {
    let With { round, researcher, iteration, .. } = with;
    Which { round: *round, researcher, iteration: *iteration }
}

/// The prompt of an iteration. The researcher's ground is as it stands.
pub(super) fn brief(with: &With) -> Result<Value, CallError> {
    let seat = Seat::take(&with.dir)?;
    let conference = seat.read()?;
    let ground = Ground::of(&seat, &conference, &with.researcher)?;
    let rescued = ground.prepare(which(with))?;
    let devil = prompt(&seat.dir, DEVIL);
    let With { round, researcher, iteration, .. } = with;
    let text = briefing::brief(&conference, *round, researcher, *iteration, &devil);
    Ok(with_rescued(json!({"text": text}), &rescued))
}

/// The project's own version of a prompt, or ours.
fn prompt(dir: &Path, path: &str) -> String {
    let project = Project::locate(dir).ok();
    let own = project.map(|project| project.onward_dir().join(path));
    let own = own.and_then(|path| std::fs::read_to_string(path).ok());
    own.unwrap_or_else(|| builtin::file(path).unwrap_or_default().to_owned())
}

/// Starts the researcher's agent on its ground, and saves what it proposes.
///
/// An agent that fails is tried again by the engine; one that keeps failing, or takes too long, is
/// an answer, too: the researcher has failed in this round.
pub(super) fn propose(attempt: &Attempt, program: &[OsString]) -> Result<Value, CallError> {
    let step = Address::from_text(&attempt.step);
    let Some(Place::Iteration(round, researcher, iteration, _)) = place(&step) else {
        return Err(CallError::new(format!("`{step}` is no iteration of a conference")));
    };
    let Some(dir) = &attempt.conference else {
        return Err(CallError::new("CONFERENCE_DIR does not say where the conference is"));
    };
    let which = Which { round, researcher: &researcher, iteration };
    let seat = Seat::take(dir)?;
    let conference = seat.read()?;
    let ground = Ground::of(&seat, &conference, &researcher)?;
    let dir = seat.dir.clone();
    drop(seat);
    let rescued = ground.rescue(which)?;
    let limit = conference.settings.researcher_timeout_ms.map_or(TIMEOUT, Duration::from_millis);
    let Some((name, args)) = program.split_first() else {
        return Err(CallError::new("no agent to start"));
    };
    let mut child = Command::new(program_at(name))
        .args(args)
        .current_dir(ground.path())
        .env("CONFERENCE_DIR", &dir)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(CallError::io("start", Path::new(name)))?;
    match evaluate::wait(&mut child, limit)? {
        None => {
            let why = format!("it took longer than {} s", limit.as_secs());
            return Ok(with_rescued(json!({"outcome": "timeout", "why": why}), &rescued));
        }
        Some(status) if status.success() => {}
        Some(status) => {
            let why = format!("the agent of researcher {researcher} ended with {status}");
            if attempt.number < ATTEMPTS_MAX {
                return Err(CallError::new(why));
            }
            return Ok(with_rescued(json!({"outcome": "failed", "why": why}), &rescued));
        }
    }
    let seat = Seat::take(&dir)?;
    ground.mend()?;
    drop(seat);
    let mut result = report(attempt);
    result["outcome"] = "done".into();
    result["state"] = ground.save(which)?.into();
    Ok(with_rescued(result, &rescued))
}

/// A relative path means the directory that we were started in, not the researcher's.
fn program_at(name: &OsString) -> PathBuf {
    let path = PathBuf::from(name);
    let is_path = path.components().count() > 1 && path.is_relative();
    if is_path { std::env::current_dir().unwrap_or_default().join(path) } else { path }
}

/// What the agent left as its result. Whatever is no object says nothing.
fn report(attempt: &Attempt) -> Value {
    let bytes = attempt.result.as_ref().and_then(|path| std::fs::read(path).ok());
    let bytes = bytes.unwrap_or_default();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if value.is_object() { value } else { json!({}) }
}

/// Measures the state that is proposed, or the one that stands for iteration 0.
pub(super) fn score(with: &With) -> Result<Value, CallError> {
    let seat = Seat::take(&with.dir)?;
    let conference = seat.read()?;
    let ground = Ground::of(&seat, &conference, &with.researcher)?;
    let no = |why: &str| json!({"ok": false, "why": why});
    let saved = with.proposal["state"].as_str();
    let mut rescued = Vec::new();
    match saved {
        None if with.iteration > 0 => return Ok(no("nothing was proposed")),
        None => rescued = at_baseline(&seat, &conference, &ground, which(with))?,
        Some(saved) => ground.show(saved)?,
    }
    let dir = seat.dir.clone();
    drop(seat);
    let Some(command) = &conference.settings.evaluator else {
        let told = with.proposal["score"].as_f64();
        let told = told.map(|score| json!({"ok": true, "value": score.to_string()}));
        return Ok(told.unwrap_or_else(|| no("the researcher gave no score")));
    };
    let env = [
        ("CONFERENCE_DIR", dir.display().to_string()),
        ("CONFERENCE_RESEARCHER", with.researcher.clone()),
        ("CONFERENCE_ROUND", with.round.to_string()),
        ("CONFERENCE_ITERATION", with.iteration.to_string()),
    ];
    let runs = conference.settings.noise_runs.unwrap_or(1);
    match evaluate::measure(command, runs, ground.path(), &env)? {
        Ok(value) => Ok(with_rescued(json!({"ok": true, "value": value}), &rescued)),
        // Without a first number nothing that follows can be judged.
        Err(why) if with.iteration == 0 => {
            let who = &with.researcher;
            let message = format!("the evaluator does not work for researcher {who}: {why}");
            Err(CallError::new(message).hint(format!("it is `{command}`, in conference.md")))
        }
        Err(why) => Ok(no(&why)),
    }
}

/// Ready to be measured at the start of a round. Says where that is which was in the way.
fn at_baseline(
    seat: &Seat,
    conference: &Conference,
    ground: &Ground,
    which: Which<'_>,
) -> Result<Vec<String>, CallError> {
    let told = conference.history.round(which.round);
    let is_under_way = told.is_some_and(|told| told.trials.contains_key(which.researcher));
    if is_under_way || !conference.has_worktrees() {
        return ground.rescue(which);
    }
    let best = Repo::of(&seat.dir)?.best(&conference.researchers_of(which.round))?;
    ground.begin(which, &best)
}

/// Keeps or reverts, and writes down which.
pub(super) fn settle(with: &With) -> Result<Value, CallError> {
    let seat = Seat::take(&with.dir)?;
    let mut conference = seat.read()?;
    let With { round, researcher, iteration, .. } = with;
    let told = conference.history.round(*round).and_then(|it| it.trials.get(researcher));
    let is_logged = told.is_some_and(|trials| trials.contains_key(iteration));
    let ground = Ground::of(&seat, &conference, researcher)?;
    let outcome = with.proposal["outcome"].as_str();
    if !is_logged && matches!(outcome, Some("failed" | "timeout")) {
        let rescued = ground.rescue(which(with))?;
        let (round, level) = (*round, StuckLevel::TimedOut);
        let what = What::Stuck { researcher: researcher.clone(), round, level };
        seat.add(&conference, what)?;
        let result = json!({"status": "failed", "finished": true, "failed": true});
        return Ok(with_rescued(result, &rescued));
    }
    if !is_logged {
        let iterated = judged(&conference, with);
        match (with.proposal["state"].as_str(), iterated.status) {
            (Some(saved), Status::Kept) => {
                ground.keep(saved, which(with), &iterated.description)?;
            }
            _ => ground.restore()?,
        }
        conference = seat.add(&conference, What::Iterated(iterated))?;
    }
    let level = facts::stuck_level(&conference, *round, researcher);
    if level >= 2 {
        let (researcher, level) = (researcher.clone(), StuckLevel::Level(level));
        conference = seat.add(&conference, What::Stuck { researcher, round: *round, level })?;
    }
    Ok(facts::settled(&conference, *round, researcher, *iteration))
}

fn judged(conference: &Conference, with: &With) -> Iterated {
    let With { round, researcher, iteration, .. } = with;
    let settings = &conference.settings;
    let value = with.score["value"].as_str().filter(|_| with.score["ok"] == true);
    let number = value.and_then(onward_engine::dialects::conference::words::number);
    let text = |key: &str, otherwise: &str| {
        let told = with.proposal[key].as_str().unwrap_or_default();
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        if told.is_empty() { otherwise.to_owned() } else { told }
    };
    let baseline = keep::baseline(conference, *round, researcher);
    let standing = keep::standing(conference, *round, researcher);
    let status = match number {
        _ if *iteration == 0 => Status::Baseline,
        Some(number) if keep::improves(settings, baseline, standing, number) => Status::Kept,
        Some(_) | None => Status::Reverted,
    };
    let why = with.score["why"].as_str().unwrap_or_default();
    let (described, analysed) = match (*iteration, why) {
        (0, _) => ("the state at the start of the round", "-"),
        (_, "") => ("-", "-"),
        (_, why) => (why, why),
    };
    let mut analysis = text("analysis", analysed);
    if !why.is_empty() && analysis != why {
        // What the researcher says of its attempt does not say why there is no number.
        analysis = format!("no result: {why}; {analysis}");
    }
    let evaluator = settings.evaluator.as_ref().map(|command| format!("command:{command}"));
    Iterated {
        researcher: researcher.clone(),
        round: *round,
        iteration: *iteration,
        metric: value.unwrap_or("-").to_owned(),
        status,
        description: text("description", described),
        evaluator: evaluator.unwrap_or_else(|| "self-reported".to_owned()),
        hypothesis: text("hypothesis", "-"),
        analysis,
    }
}
