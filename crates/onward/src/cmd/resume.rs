//! `onward resume`: takes an interrupted run up again. It never starts a new one.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{
    address::Address,
    event::Mode,
    plan::{Status, run_info},
    policy::{Accept, Choices, Depth, EnterAt},
    survey::Survey,
    view::view,
};
use onward_engine::{
    drive::Options,
    engine::{self, EngineError, FailedStep, How, Outcome, examine_run, resume_run},
    locate::{FindError, RunDir, TakeOver},
    world::out_name,
    world::real::Sink,
};
use serde_json::json;

use crate::{
    attend::Attendant,
    cmd::{Context, adopt, plan, run::exit_code},
    consult::{Subject, Way, consult},
    diagnostic::printable,
    error::{self, Error},
    outlook,
    progress::{self, Counter, Telling},
    prompt::Person,
    session::{Driving, Found, Session, Wanted, Which, id_of, open_run, word},
};

/// Go on with an interrupted run
///
/// Finished steps are kept; half-done ones are adopted, waited for, or undone into the rescue and
/// run again. See first what would happen with `onward plan`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward resume\n  onward resume release-20261115-k3fq\n  \
    onward resume --all --yes")]
#[expect(clippy::struct_excessive_bools, reason = "one per flag")]
pub(crate) struct ResumeArgs {
    /// Which run: its id, a prefix of it, its directory, or one in which another system left a run
    run: Option<String>,
    /// Every interrupted run, one after the other
    #[arg(long, conflicts_with = "run")]
    all: bool,
    /// Accept a finding, by its code
    #[arg(long, value_name = "CODE[@STEP]")]
    accept: Vec<Accept>,
    /// Enter at this step or phase, not where the run would go on by itself
    #[arg(long, value_name = "STEP|PHASE", conflicts_with = "all")]
    from: Option<String>,
    /// With --from: over unfinished work too
    #[arg(long, requires = "from")]
    force: bool,
    /// Keep a finished step although what it was asked, or made from, changed
    #[arg(long, value_name = "STEP")]
    keep: Vec<String>,
    /// Run a finished step again
    #[arg(long, value_name = "STEP")]
    redo: Vec<String>,
    /// Leave what an interrupted step changed in the tree, and undo nothing of it
    #[arg(long, value_name = "STEP")]
    leave: Vec<String>,
    /// Go on with the copy of the workflow that the run keeps, not with its edited file
    #[arg(long)]
    pinned: bool,
    /// Take the run over from a driver on another machine that is gone for good
    #[arg(long)]
    take_over: bool,
    /// Which system wrote it, where that is in doubt
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    #[command(flatten)]
    pub(crate) driving: Driving,
}

impl ResumeArgs {
    pub(crate) fn choices(&self) -> Choices {
        let steps = |given: &[String]| given.iter().map(|it| Address::from_text(it)).collect();
        Choices {
            accepted: self.accept.clone(),
            yes: self.driving.yes,
            from: self.from.clone().map(|step| EnterAt { step, force: self.force }),
            keep: steps(&self.keep),
            redo: steps(&self.redo),
            leave: steps(&self.leave),
        }
    }
}

pub(crate) fn run(cx: &mut Context, args: &ResumeArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &args.driving)?;
    if args.all {
        return all(cx, &session, args);
    }
    let mut person = Person::at_terminal(cx, &args.driving);
    person.heed_interrupts();
    let which = match (&args.run, &args.dialect) {
        (None, None) => adopt::choose(cx, &session, &mut person)?,
        (run, dialect) => {
            let (run, dialect) = (run.as_deref(), dialect.as_deref());
            session.which(cx, &Wanted { run, dialect, tasks: None })?
        }
    };
    let dir = match which {
        Which::Ours(dir) => dir,
        Which::Foreign(found) => return adopt::resume(cx, person, &found, args),
    };
    let session = session.of_run(cx, &dir, &args.driving)?;
    adopt::refuse_complete(&session, &dir)?;
    let mode = session.mode_of(&dir);
    let way = if person.is_there() && !args.driving.yes {
        let subject = Subject { session: &session, dir: &dir, mode, pinned: args.pinned };
        consult(cx, &mut person, &subject, args.choices())?
    } else {
        Way::GoOn(args.choices())
    };
    let again = format!("onward resume {}", id_of(&dir));
    if person.leave_interrupts() {
        return Err(Error::Interrupted { command: again });
    }
    match way {
        Way::GoOn(choices) => take_up(cx, &session, person, &dir, args, &choices),
        Way::Restart => super::run::again(cx, &session, &dir, person),
        Way::End => {
            engine::cancel(&dir, &session.machine)?;
            writeln!(cx.err, "run {} is cancelled; its files stay", id_of(&dir))?;
            Ok(ExitCode::from(error::RUN_FAILED))
        }
        Way::Nothing => {
            writeln!(cx.err, "nothing was done\n{again}")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn all(cx: &mut Context, session: &Session, args: &ResumeArgs) -> Result<ExitCode, Error> {
    let runs = session.unfinished()?;
    if runs.is_empty() {
        return Err(Error::NothingToResume);
    }
    let mut worst = ExitCode::SUCCESS;
    for found in runs {
        let person = Person::at_terminal(cx, &args.driving);
        let code = take_up(cx, session, person, &found.dir.dir, args, &args.choices())?;
        if code != ExitCode::SUCCESS {
            worst = code;
        }
    }
    Ok(worst)
}

/// Which of these unfinished runs.
pub(crate) fn choose(
    session: &Session,
    person: &mut Person,
    mut runs: Vec<Found>,
) -> Result<PathBuf, Error> {
    match runs.len() {
        0 => {
            // One that lost its journal is no reason to start another.
            let lost = session.project.last_run().err();
            let lost = lost.filter(|it| matches!(it, FindError::LostJournal { .. }));
            return Err(lost.map_or(Error::NothingToResume, Error::Find));
        }
        1 => return Ok(runs.remove(0).dir.dir),
        _ => {}
    }
    if session.config.mode.value == Mode::Autopilot {
        return Ok(runs.remove(0).dir.dir);
    }
    let dirs: Vec<RunDir> = runs.iter().map(|found| found.dir.clone()).collect();
    let lines = runs.into_iter().map(|found| in_a_line(session, found));
    let list = lines.collect::<Result<Vec<String>, Error>>()?;
    if person.is_there() {
        person.screen().line("Several runs can be resumed:");
    }
    match person.choose("Which one?", &list) {
        Some(index) => Ok(dirs[index].dir.clone()),
        None if person.was_interrupted() => {
            Err(Error::Interrupted { command: "onward resume".to_owned() })
        }
        None => Err(Error::SeveralRuns { list, first: dirs[0].id.to_string() }),
    }
}

/// Id, workflow, where it stands, how long ago.
fn in_a_line(session: &Session, found: Found) -> Result<String, Error> {
    let survey = Survey { now: session.now, ..Survey::default() };
    let (dir, status) = (found.dir.dir.display().to_string(), found.status);
    let run = found.run()?;
    let view = view(&run, run_info(&run.state, &survey, status, &dir));
    let (run, counts) = (&view.run, view.counts);
    let at = view.phase.as_deref().map_or(String::new(), |phase| format!(" at {phase}"));
    let (id, workflow, status) = (&run.id, &run.workflow, run.status.as_str());
    let (done, total, age) = (counts.done, counts.total, plan::age(run.age_seconds));
    Ok(format!("{id}  {workflow}, {status}{at}, {done}/{total} done, {age} ago"))
}

fn take_up(
    cx: &mut Context,
    session: &Session,
    person: Person,
    dir: &Path,
    args: &ResumeArgs,
    choices: &Choices,
) -> Result<ExitCode, Error> {
    let take_over = if args.take_over { TakeOver::Yes } else { TakeOver::No };
    let (mode, pinned) = (session.mode_of(dir), args.pinned);
    let how = How { mode, pinned, take_over, ..session.how(choices.clone()) };
    let driven = drive(cx, session, how, person, dir, |how, sink| {
        resume_run(dir, &session.machine, &how, Some(sink))
    });
    if let Err(error) = &driven
        && matches!(error.exit_code(), error::CONFLICTS | error::DAMAGED)
        && !cx.global.json
        && let Ok(plan) = examine_run(dir, &session.machine, choices, Depth::Quick, pinned)
    {
        // Whoever is stopped here is told what of the run stands, and the ways out.
        outlook::show(&mut *cx.err, &plan)?;
    }
    driven
}

/// Drives a run, with whoever is there to answer its gates, and says how it went.
pub(crate) fn drive(
    cx: &mut Context,
    session: &Session,
    how: How,
    person: Person,
    dir: &Path,
    go: impl FnOnce(How, Sink) -> Result<Outcome, EngineError>,
) -> Result<ExitCode, Error> {
    let attended = person.is_there();
    let screen = person.screen().clone();
    let telling = if cx.global.json {
        Telling::Json
    } else if !attended && !screen.moves() {
        Telling::Lines { screen: screen.clone(), quiet: cx.global.quiet }
    } else {
        let run = open_run(dir)?;
        let attendant = attended.then(|| Attendant::new(person, &run, dir, session.user()));
        let (counter, quiet) = (Counter::new(dir.to_owned(), run), cx.global.quiet);
        Telling::Words { counter, screen: screen.clone(), attendant, quiet }
    };
    let options = Options { attended, ..how.options };
    let outcome = go(How { options, ..how }, progress::sink(telling));
    if attended {
        screen.withdraw();
    }
    tell(cx, &outcome?)
}

/// So many letters of a complaint are shown; all of it is in the log.
const WORDS_MAX: usize = 200;

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
    if outcome.status == Status::OverBudget
        && let Ok(run) = open_run(&outcome.dir)
        && let Some(limit) = run.defs.limits().usd
    {
        let (spent, limit) = (run.state.spent.dollars(), limit.dollars());
        writeln!(cx.err, "  ${spent:.2} are spent, and `limits.usd` is {limit:.2}")?;
    }
    if outcome.status == Status::Failed {
        for FailedStep { step, attempt, cause, detail } in &outcome.failed {
            writeln!(cx.err, "  {step}: {}, {detail}", cause.as_str())?;
            if let Some(words) = last_words(&outcome.dir, step, *attempt) {
                writeln!(cx.err, "    {words}")?;
            }
            writeln!(cx.err, "    onward log {id} --step '{step}'   # attempt {attempt}")?;
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

/// What an attempt complained of: its first line that says `error`, or else its last one.
fn last_words(dir: &Path, step: &Address, attempt: u32) -> Option<String> {
    let bytes = std::fs::read(dir.join(out_name(step, attempt, "err"))).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let said = lines.clone().find(|line| line.starts_with("error")).or(lines.next_back())?;
    Some(printable(&said.chars().take(WORDS_MAX).collect::<String>()))
}

/// Each open gate, with the commands that answer it.
fn name_gates(cx: &mut Context, outcome: &Outcome) -> Result<(), Error> {
    let id = outcome.run.as_str();
    for (step, gate) in &outcome.gates {
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
