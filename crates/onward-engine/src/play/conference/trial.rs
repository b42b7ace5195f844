//! One iteration of one researcher: its brief before the agent, its score and its end after it.
//!
//! The agent itself is an ordinary step of the workflow that works in the researcher's ground.
//! Invariant: when `brief` returns, the ground is as it stands; when `score` returns, the proposal
//! is saved, whatever becomes of the ground.

use crate::world::open;
use std::path::Path;

use onward_dialects::{
    builtin,
    conference::{
        Conference,
        read::log::{Status, StuckLevel},
        write::happening::{Iterated, What},
    },
    kit::number::number,
    rules::conference::{brief as briefing, keep, results},
};
use serde_json::{Value, json};

use super::{
    CallError, Name, Order, evaluate,
    ground::{Ground, Which},
    round::with_rescued,
    seat::Seat,
};
use crate::locate::Project;

/// What an iteration may take where conference.md does not say.
const TIMEOUT_MS: u64 = 30 * 60 * 1000;
/// The most that a workflow's `timeout` can be: a year.
const TIMEOUT_MS_MAX: u64 = 366 * 86_400_000;
const DEVIL: &str = "prompts/conference/devils-advocate.md";
/// What the workflow says of an agent that ended well; else it gives the cause of the failure.
const DONE: &str = "done";

fn which<'a>(order: &Order, researcher: &'a Name) -> Which<'a> {
    Which { round: order.round, researcher, iteration: order.iteration }
}

fn is_logged(conference: &Conference, order: &Order) -> bool {
    conference.history.is_logged(order.round, &order.researcher, order.iteration)
}

/// Makes the ground ready, and gives the prompt, the directory to work in and the time limit.
pub(super) fn brief(order: &Order) -> Result<Value, CallError> {
    let researcher = Name::checked(&order.researcher)?;
    let seat = Seat::take(order)?;
    let conference = seat.read()?;
    let ground = Ground::of(&seat, &conference, &researcher)?;
    let rescued = if is_logged(&conference, order) {
        Vec::new()
    } else {
        ground.prepare(which(order, &researcher))?
    };
    let devil = prompt(&seat.dir, DEVIL);
    let Order { round, iteration, .. } = order;
    let text = briefing::brief(&conference, *round, &order.researcher, *iteration, &devil);
    let timeout_ms = conference.settings.researcher_timeout_ms.unwrap_or(TIMEOUT_MS);
    let result = json!({
        "text": text,
        "dir": below_project(ground.path(), &order.attempt.project)?,
        "conference": seat.dir.display().to_string(),
        "timeout": format!("{}ms", timeout_ms.clamp(1, TIMEOUT_MS_MAX)),
    });
    Ok(with_rescued(result, &rescued))
}

/// The ground as the workflow's `dir` names it.
fn below_project(ground: &Path, project: &Path) -> Result<String, CallError> {
    let root = std::fs::canonicalize(project).map_err(CallError::io("find", project))?;
    let inside = ground.strip_prefix(&root).ok().and_then(Path::to_str);
    inside.filter(|it| !it.is_empty()).map(str::to_owned).ok_or_else(|| {
        let ground = ground.display();
        CallError::new(format!("the researcher's directory `{ground}` is not in the project"))
            .hint(format!("move it there: `git worktree move {ground} .worktrees/`"))
    })
}

/// The project's own version of a prompt, or ours.
fn prompt(dir: &Path, path: &str) -> String {
    let project = Project::locate(dir).ok();
    let own = project.map(|project| project.onward_dir().join(path));
    let own = own.and_then(|path| open::text_named(&path, open::FILE_BYTES_MAX).ok());
    own.unwrap_or_else(|| builtin::file(path).unwrap_or_default().to_owned())
}

/// Saves and measures the state that is proposed. In iteration 0, measures the one that stands.
pub(super) fn score(order: &Order) -> Result<Value, CallError> {
    let researcher = Name::checked(&order.researcher)?;
    let which = which(order, &researcher);
    let no = |why: &str| json!({"ok": false, "why": why});
    if order.iteration > 0 && order.outcome != DONE {
        return Ok(no(&format!("nothing was proposed: the agent ended with {}", order.outcome)));
    }
    let seat = Seat::take(order)?;
    let conference = seat.read()?;
    let ground = Ground::of(&seat, &conference, &researcher)?;
    let mut rescued = Vec::new();
    let mut state = Value::Null;
    if order.iteration == 0 {
        rescued = at_baseline(&seat, &conference, &ground, which)?;
    } else {
        let saved = ground.save(which)?;
        ground.show(&saved)?;
        state = saved.into();
    }
    let dir = seat.dir.clone();
    drop(seat);
    let told = |mut result: Value| {
        if !state.is_null() {
            result["state"] = state.clone();
        }
        with_rescued(result, &rescued)
    };
    // The iteration is spent, and what was proposed is not judged: the user should know at once.
    let unscored = |why: &str, who: &str| {
        let warning = format!("nothing was measured, the iteration counts: {who}{why}");
        json!({"ok": false, "why": why, "warning": warning})
    };
    let Some(command) = &conference.settings.evaluator else {
        let given = order.proposal["score"].as_f64();
        let given = given.map(|score| json!({"ok": true, "value": score.to_string()}));
        return Ok(told(given.unwrap_or_else(|| unscored("the researcher gave no score", ""))));
    };
    let env = [
        ("CONFERENCE_DIR", dir.display().to_string()),
        ("CONFERENCE_RESEARCHER", order.researcher.clone()),
        ("CONFERENCE_ROUND", order.round.to_string()),
        ("CONFERENCE_ITERATION", order.iteration.to_string()),
    ];
    let runs = conference.settings.noise_runs.unwrap_or(1);
    match evaluate::measure(command, runs, ground.path(), &env)? {
        Ok(value) => Ok(told(json!({"ok": true, "value": value}))),
        // Without a first number nothing that follows can be judged.
        Err(why) if order.iteration == 0 => {
            let message = format!("the evaluator does not work for researcher {researcher}: {why}");
            Err(CallError::new(message).hint(format!("it is `{command}`, in conference.md")))
        }
        Err(why) => Ok(told(unscored(&why, "the evaluator: "))),
    }
}

/// Makes the ground ready to be measured at the start of a round. Gives the places of what was
/// kept aside.
fn at_baseline(
    seat: &Seat,
    conference: &Conference,
    ground: &Ground,
    which: Which<'_>,
) -> Result<Vec<String>, CallError> {
    let told = conference.history.round(which.round);
    let is_under_way = told.is_some_and(|told| told.trials.contains_key(which.researcher.as_str()));
    if is_under_way || !conference.has_worktrees() {
        return ground.rescue(which);
    }
    let (repo, researchers) = (seat.repo()?, conference.researchers_of(which.round));
    if conference.history.iterations() == 0 {
        repo.follow_user(&researchers)?;
    }
    ground.begin(which, &repo.best(&researchers)?)
}

/// Keeps or reverts the proposal, and logs which. An agent that failed costs its researcher the
/// round.
pub(super) fn settle(order: &Order) -> Result<Value, CallError> {
    let checked = Name::checked(&order.researcher)?;
    let which = which(order, &checked);
    let seat = Seat::take(order)?;
    let mut conference = seat.read()?;
    let Order { round, researcher, iteration, .. } = order;
    let is_logged = is_logged(&conference, order);
    let ground = Ground::of(&seat, &conference, &checked)?;
    if !is_logged && *iteration > 0 && order.outcome != DONE {
        let rescued = ground.rescue(which)?;
        let (round, level) = (*round, StuckLevel::TimedOut);
        let what = What::Stuck { researcher: researcher.clone(), round, level };
        seat.add(&conference, what)?;
        let result = json!({"status": "failed", "finished": true, "failed": true});
        return Ok(with_rescued(result, &rescued));
    }
    if !is_logged {
        let iterated = judged(&conference, order);
        let saved = order.score["state"].as_str();
        match saved.filter(|_| iterated.status == Status::Kept) {
            Some(saved) => ground.keep(saved, which, &iterated.description)?,
            None => ground.restore()?,
        }
        conference = seat.add(&conference, What::Iterated(iterated))?;
    }
    let level = conference.stuck_level(*round, researcher);
    if level >= 2 {
        let (researcher, level) = (researcher.clone(), StuckLevel::Level(level));
        conference = seat.add(&conference, What::Stuck { researcher, round: *round, level })?;
    }
    Ok(results::settled(&conference, *round, researcher, *iteration))
}

fn judged(conference: &Conference, order: &Order) -> Iterated {
    let Order { round, researcher, iteration, .. } = order;
    let settings = &conference.settings;
    let value = order.score["value"].as_str().filter(|_| order.score["ok"] == true);
    let metric = value.and_then(number);
    let text = |key: &str, otherwise: &str| {
        let told = order.proposal[key].as_str().unwrap_or_default();
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        if told.is_empty() { otherwise.to_owned() } else { told }
    };
    let baseline = keep::baseline(conference, *round, researcher);
    let standing = keep::standing(conference, *round, researcher);
    let status = match metric {
        _ if *iteration == 0 => Status::Baseline,
        Some(metric) if keep::improves(settings, baseline, standing, metric) => Status::Kept,
        Some(_) | None => Status::Reverted,
    };
    let why = order.score["why"].as_str().unwrap_or_default();
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
