//! `onward resume`: takes an interrupted run up again. It never starts a new one.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{
    event::Mode,
    plan::{Status, run_info},
    survey::Survey,
    view::{Counts, view},
};
use onward_engine::{
    engine::{EngineError, How, Outcome, plan_run, resume_run},
    real::Sink,
    store::TakeOver,
};
use serde_json::json;

use crate::{
    attend::Attendant,
    cmd::{Context, plan, run::exit_code},
    error::Error,
    progress::{self, Telling},
    prompt::Person,
    session::{Driving, Found, Session, id_of, open_run, word},
};

/// Go on with an interrupted run
///
/// Finished steps are kept; half-done ones are adopted, waited for, or undone into the rescue and
/// run again. See first what would happen with `onward plan`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward resume\n  onward resume release-20261115-k3fq\n  \
    onward resume --all --yes")]
pub(crate) struct ResumeArgs {
    /// Which run: its id, a prefix of it, or its directory
    run: Option<String>,
    /// Every interrupted run, one after the other
    #[arg(long, conflicts_with = "run")]
    all: bool,
    /// Accept a finding, by its code
    #[arg(long, value_name = "CODE[@STEP]")]
    accept: Vec<String>,
    /// Take the run over from a driver on another machine that is gone for good
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    driving: Driving,
}

pub(crate) fn run(cx: &mut Context, args: &ResumeArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &args.driving)?;
    if args.all {
        return all(cx, &session, args);
    }
    let mut person = Person::at_terminal(cx, &args.driving);
    let dir = match &args.run {
        Some(wanted) => session.named(cx, wanted)?,
        None => choose(&session, &mut person)?,
    };
    if person.is_there() && !args.driving.yes && !confirmed(cx, &session, &mut person, &dir)? {
        writeln!(cx.err, "nothing was done\nonward resume {}", id_of(&dir))?;
        return Ok(ExitCode::SUCCESS);
    }
    take_up(cx, &session, person, &dir, args)
}

fn all(cx: &mut Context, session: &Session, args: &ResumeArgs) -> Result<ExitCode, Error> {
    let runs = session.unfinished()?;
    if runs.is_empty() {
        return Err(Error::NothingToResume);
    }
    let mut worst = ExitCode::SUCCESS;
    for found in runs {
        let person = Person::at_terminal(cx, &args.driving);
        let code = take_up(cx, session, person, &found.dir.dir, args)?;
        if code != ExitCode::SUCCESS {
            worst = code;
        }
    }
    Ok(worst)
}

/// Which of the unfinished runs.
fn choose(session: &Session, person: &mut Person) -> Result<PathBuf, Error> {
    let mut runs = session.unfinished()?;
    match runs.len() {
        0 => return Err(Error::NothingToResume),
        1 => return Ok(runs.remove(0).dir.dir),
        _ => {}
    }
    if session.config.mode.value == Mode::Autopilot {
        return Ok(runs.remove(0).dir.dir);
    }
    let list: Vec<String> = runs.iter().map(|found| in_a_line(session, found)).collect();
    if person.is_there() {
        person.screen().line("Several runs can be resumed:");
    }
    match person.choose("Which one?", &list) {
        Some(index) => Ok(runs.swap_remove(index).dir.dir),
        None => Err(Error::SeveralRuns { list, first: runs.remove(0).dir.id }),
    }
}

/// Id, workflow, where it stands, how long ago.
fn in_a_line(session: &Session, found: &Found) -> String {
    let survey = Survey { now: session.now, ..Survey::default() };
    let dir = found.dir.dir.display().to_string();
    let view = view(&found.run, run_info(&found.run.state, &survey, found.status, &dir));
    let (run, counts) = (&view.run, view.counts);
    let at = view.phase.as_deref().map_or(String::new(), |phase| format!(" at {phase}"));
    let (id, workflow, status) = (&run.id, &run.workflow, run.status.as_str());
    let (done, total, age) = (counts.done, counts.total, plan::age(run.age_seconds));
    format!("{id}  {workflow}, {status}{at}, {done}/{total} done, {age} ago")
}

/// Shows what a resume would do, and asks.
fn confirmed(
    cx: &mut Context,
    session: &Session,
    person: &mut Person,
    dir: &Path,
) -> Result<bool, Error> {
    let plan = plan_run(dir, &session.machine)?;
    if !plan.can_resume || plan.run.status == Status::Fresh {
        // What stands in the way is said when it is met.
        return Ok(true);
    }
    plan::show(cx, &plan)?;
    match person.confirm("Proceed?") {
        Some(answer) => Ok(answer),
        None => Err(Error::NotConfirmed { run: id_of(dir) }),
    }
}

fn take_up(
    cx: &mut Context,
    session: &Session,
    person: Person,
    dir: &Path,
    args: &ResumeArgs,
) -> Result<ExitCode, Error> {
    let take_over = if args.take_over { TakeOver::Yes } else { TakeOver::No };
    drive(cx, session, args.accept.clone(), person, dir, |how, sink| {
        resume_run(dir, &session.machine, &How { take_over, ..how }, Some(sink))
    })
}

/// Drives a run, with whoever is there to answer its gates, and says how it went.
pub(crate) fn drive(
    cx: &mut Context,
    session: &Session,
    accepted: Vec<String>,
    person: Person,
    dir: &Path,
    go: impl FnOnce(How, Sink) -> Result<Outcome, EngineError>,
) -> Result<ExitCode, Error> {
    let attended = person.is_there();
    let screen = person.screen().clone();
    let telling = if cx.global.json {
        Telling::Json
    } else {
        let run = open_run(dir)?;
        let Counts { done, total } = onward_core::view::counts(&run);
        let attendant = attended.then(|| Attendant::new(person, &run, dir, session.user()));
        let quiet = cx.global.quiet;
        Telling::Words { done, total, screen: screen.clone(), attendant, quiet }
    };
    let outcome = go(session.how(accepted, attended), progress::sink(telling));
    if attended {
        screen.withdraw();
    }
    tell(cx, &outcome?)
}

/// The last words: what became of the run, and what to type next.
pub(crate) fn tell(cx: &mut Context, outcome: &Outcome) -> Result<ExitCode, Error> {
    let code = exit_code(outcome.status);
    let (id, status) = (outcome.run.as_str(), outcome.status.as_str());
    if cx.global.json {
        let dir = outcome.dir.display().to_string();
        let until = outcome.until.map(|until| until.to_string());
        let object = json!({
            "schema": "onward.outcome/1", "run": {"id": id, "dir": dir},
            "status": status, "until": until, "exit": code,
        });
        writeln!(cx.out, "{object}")?;
        return Ok(ExitCode::from(code));
    }
    if let Some(why) = &outcome.not_notified {
        writeln!(cx.err, "nobody was notified: {why}")?;
    }
    let next = match outcome.status {
        Status::Completed | Status::Cancelled | Status::Waiting => None,
        Status::Parked
        | Status::OverBudget
        | Status::Failed
        | Status::Interrupted
        | Status::Fresh
        | Status::Running => Some(format!("onward resume {id}")),
    };
    let until = outcome.until.map(|until| format!(" until {until}")).unwrap_or_default();
    writeln!(cx.err, "run {id} is {status}{until}")?;
    if outcome.status == Status::Failed {
        let run = open_run(&outcome.dir)?;
        for (step, entry) in &run.state.steps {
            if let Some(failure) =
                entry.failure.as_ref().filter(|_| entry.phase == onward_core::state::Phase::Failed)
            {
                writeln!(cx.err, "  {step}: {}, {}", failure.0.as_str(), failure.1)?;
                let last = entry.attempts;
                writeln!(cx.err, "    onward log {id} --step '{step}'   # attempt {last}")?;
            }
        }
    }
    if outcome.status == Status::Waiting {
        name_gates(cx, outcome)?;
    }
    if let Some(next) = next {
        writeln!(cx.err, "{next}")?;
    }
    Ok(ExitCode::from(code))
}

/// Each open gate, with the commands that answer it.
fn name_gates(cx: &mut Context, outcome: &Outcome) -> Result<(), Error> {
    let (run, id) = (open_run(&outcome.dir)?, outcome.run.as_str());
    for gate in run.graph.open_gates() {
        let step = &run.graph.node(gate).address;
        let Some(gate) = run.state.step(step).and_then(|it| it.gate.as_deref()) else { continue };
        writeln!(cx.err, "{step} waits for an answer: {}", gate.prompt)?;
        for path in &gate.shows {
            writeln!(cx.err, "  look at {path}")?;
        }
        for option in &gate.options {
            writeln!(cx.err, "onward decide {id} {} {}", word(step.as_str()), word(option))?;
        }
    }
    Ok(())
}
