//! The last words about a run that is driven or watched no more: what became of it, what a person
//! must do, and the command to go on with.
//!
//! Invariant: told from the run as its journal has it, so that the driver, a watcher and
//! `status` say the same.

use onward_engine::world::open;
use std::{path::Path, process::ExitCode};

use onward_core::{
    address::Address,
    plan::{Status, run_info},
    run::Run,
    state::{GateState, Phase},
    survey::Survey,
    time::Timestamp,
};
use onward_engine::{
    engine::Outcome,
    world::{out_name, real::wall_clock},
};

use crate::{
    cmd::{Context, run::exit_code},
    command::onward,
    diagnostic::printable,
    error::Error,
    next,
    session::{id_of, word},
    shapes, style, summary,
};

/// So many letters of a complaint are shown; all of it is in the log.
const WORDS_MAX: usize = 200;

/// What a person must do, each thing in one line.
fn needs(outcome: &Outcome) -> Vec<String> {
    if outcome.status != Status::Waiting {
        return Vec::new();
    }
    let gates = outcome.gates.iter().map(|(step, _)| format!("{step} waits for your answer"));
    let failed = outcome
        .failed
        .iter()
        .map(|it| format!("{} needs you: {} ({})", it.step, it.cause.in_words(), it.detail));
    gates.chain(failed).collect()
}

/// For scripts.
pub(crate) fn shape(outcome: &Outcome, exit: u8) -> shapes::Outcome {
    shapes::Outcome {
        schema: "onward.outcome/1".to_owned(),
        run: shapes::RunRef { id: outcome.run.to_string(), dir: outcome.dir.display().to_string() },
        status: outcome.status,
        until: outcome.until.map(|until| until.to_string()),
        exit,
        needs: needs(outcome),
    }
}

/// For scripts that left the run to another driver, or watched one.
pub(crate) fn shape_of(
    dir: &Path,
    run: &Run,
    status: Status,
    exit: u8,
) -> Result<shapes::Outcome, Error> {
    let opened = run.state.opened.as_ref().ok_or(Error::NothingToResume)?;
    let outcome = Outcome::new(status, opened.run.clone(), dir.to_owned()).of(run);
    Ok(shape(&outcome, exit))
}

/// For the command that drove it, with the run as it left it. `since` = when this drive began.
pub(crate) fn tell(
    cx: &mut Context,
    outcome: &Outcome,
    run: &Run,
    since: Timestamp,
) -> Result<ExitCode, Error> {
    let code = exit_code(outcome.status);
    if cx.global.json {
        cx.print_json(&shape(outcome, code))?;
        return Ok(ExitCode::from(code));
    }
    if let Some(why) = &outcome.not_notified {
        writeln!(cx.err, "the notify command failed: {}", printable(why))?;
    }
    // As they would be shown now: what a gate showed when it was opened may have been edited.
    let gates: Vec<_> = outcome.gates.iter().map(|(step, gate)| (step, gate)).collect();
    closing(cx, &outcome.dir, run, outcome.status, since, &gates)?;
    Ok(ExitCode::from(code))
}

/// For every command that showed it. The last line is the command to go on with.
pub(crate) fn words(
    cx: &mut Context,
    dir: &Path,
    run: &Run,
    status: Status,
    since: Timestamp,
) -> Result<(), Error> {
    closing(cx, dir, run, status, since, &open_gates(run))
}

fn closing(
    cx: &mut Context,
    dir: &Path,
    run: &Run,
    status: Status,
    since: Timestamp,
    gates: &[(&Address, &GateState)],
) -> Result<(), Error> {
    let id = id_of(dir);
    for line in &summary::lines(&id, dir, run, status, since, cx.global.quiet) {
        writeln!(cx.err, "{}", style::wrap(line, style::columns_of_errors(), 0, 4))?;
    }
    let now = wall_clock();
    let survey = Survey { now, ..Survey::default() };
    let info = run_info(&run.state, &survey, status, &dir.display().to_string());
    if let Some(until) = next::until(&info, now).filter(|_| status == Status::Parked) {
        writeln!(cx.err, "  {until}")?;
    }
    if status == Status::Failed || status == Status::Waiting {
        failures(cx, dir, run)?;
    }
    if status == Status::Waiting && !gates.is_empty() {
        return name_gates(cx, &id, gates);
    }
    for first in next::first(run, status) {
        writeln!(cx.err, "{first}")?;
    }
    if let Some(next) = next::command(&id, status) {
        writeln!(cx.err, "{next}")?;
    }
    Ok(())
}

/// The steps that are why it stands still, with their complaints.
fn failures(cx: &mut Context, dir: &Path, run: &Run) -> Result<(), Error> {
    let id = id_of(dir);
    for (step, entry) in run.state.steps.noteworthy() {
        let failure = entry.failure.as_deref().filter(|_| entry.phase == Phase::Failed);
        let Some((cause, detail)) = failure else { continue };
        let (attempt, ms) = (entry.attempts, entry.ended_at.ms_since(entry.started_at));
        let why = printable(&style::failure(*cause, detail, Some(ms)));
        let width = style::columns_of_errors();
        let line = format!("  {}: {why}", printable(step.as_str()));
        writeln!(cx.err, "{}", style::wrap(&line, width, 0, 4))?;
        if let Some(words) = last_words(dir, step, attempt) {
            writeln!(cx.err, "    {}", style::wrap(&words, width, 4, 4))?;
        }
        let step = word(step.as_str());
        let log = onward!("log {id} --step {step}");
        writeln!(cx.err, "    {log}   # attempt {attempt}")?;
    }
    Ok(())
}

/// What an attempt complained of: its first line that says `error`, or else its last one.
fn last_words(dir: &Path, step: &Address, attempt: u32) -> Option<String> {
    let bytes = open::read_own(dir, out_name(step, attempt, "err"), open::LOG_BYTES_MAX).ok()?;
    let text = crate::plain::text(&String::from_utf8_lossy(&bytes));
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let said = lines.clone().find(|line| line.starts_with("error")).or(lines.next_back())?;
    Some(printable(&said.chars().take(WORDS_MAX).collect::<String>()))
}

fn open_gates(run: &Run) -> Vec<(&Address, &GateState)> {
    let steps = run.graph.open_gates().map(|id| &run.graph.node(id).address);
    let gates = steps.filter_map(|step| Some((step, run.state.step(step)?.gate.as_deref()?)));
    gates.collect()
}

/// Each open gate, with the commands that answer it.
fn name_gates(cx: &mut Context, id: &str, gates: &[(&Address, &GateState)]) -> Result<(), Error> {
    for (step, gate) in gates {
        let prompt = style::paragraph(&gate.prompt, step.as_str().len() + 25, 2);
        writeln!(cx.err, "{step} waits for your answer: {prompt}")?;
        for path in &gate.shows {
            writeln!(cx.err, "  look at {}", printable(path))?;
        }
        // As much of the hash as tells two apart.
        let hash: String = gate.hash.to_string().chars().take(12).collect();
        for option in &gate.options {
            let (step, option) = (word(step.as_str()), word(option));
            writeln!(cx.err, "{}", onward!("decide {id} {step} {option} --hash {hash}"))?;
        }
    }
    Ok(())
}
