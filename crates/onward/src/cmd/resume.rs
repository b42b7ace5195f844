//! `onward resume`: takes an interrupted run up again. It never starts a new one.

use std::{
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{
    address::Address,
    plan::Status,
    policy::{Accept, Choices, EnterAt},
};
use onward_engine::{
    engine::{How, Outcome, plan_run, resume_run},
    real::Sink,
};
use serde_json::json;

use crate::{
    cmd::{Context, plan, run::exit_code},
    error::Error,
    progress::{self, Telling},
    session::{Driving, Found, Session, can_ask, open_run},
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
    accept: Vec<Accept>,
    /// Enter at this step or phase, not where the run would go on by itself
    #[arg(long, value_name = "STEP|PHASE", conflicts_with = "all")]
    from: Option<String>,
    /// With --from: over unfinished work too
    #[arg(long, requires = "from")]
    force: bool,
    /// Keep a finished step although its definition changed
    #[arg(long, value_name = "STEP")]
    keep: Vec<String>,
    /// Go on with the copy of the workflow that the run keeps, not with its edited file
    #[arg(long)]
    pinned: bool,
    #[command(flatten)]
    driving: Driving,
}

impl ResumeArgs {
    fn choices(&self) -> Choices {
        Choices {
            accepted: self.accept.clone(),
            yes: self.driving.yes,
            from: self.from.clone().map(|step| EnterAt { step, force: self.force }),
            keep: self.keep.iter().map(|step| Address::from_text(step)).collect(),
        }
    }
}

pub(crate) fn run(cx: &mut Context, args: &ResumeArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &args.driving)?;
    let ask = can_ask(cx, &args.driving) && !args.driving.yes;
    if args.all {
        let runs = session.unfinished()?;
        if runs.is_empty() {
            return Err(Error::NothingToResume);
        }
        let mut worst = ExitCode::SUCCESS;
        for found in runs {
            let code = drive(
                cx,
                &session,
                &found.dir.dir,
                &session.how(args.choices(), args.pinned),
                false,
            )?;
            if code != ExitCode::SUCCESS {
                worst = code;
            }
        }
        return Ok(worst);
    }
    let dir = match &args.run {
        Some(wanted) => session.named(cx, wanted)?,
        None => choose(cx, &session, ask)?,
    };
    drive(cx, &session, &dir, &session.how(args.choices(), args.pinned), ask)
}

/// Which of the unfinished runs.
fn choose(cx: &mut Context, session: &Session, ask: bool) -> Result<PathBuf, Error> {
    let mut runs = session.unfinished()?;
    match runs.len() {
        0 => return Err(Error::NothingToResume),
        1 => return Ok(runs.remove(0).dir.dir),
        _ => {}
    }
    let autopilot = session.config.mode.value == onward_core::event::Mode::Autopilot;
    if autopilot {
        return Ok(runs.remove(0).dir.dir);
    }
    let line = |(index, found): (usize, &Found)| {
        let (id, status) = (&found.dir.id, found.status.as_str());
        format!("  {}. {id}  {status}, last active {}", index + 1, found.dir.last_activity)
    };
    let list: Vec<String> = runs.iter().enumerate().map(line).collect();
    if !ask {
        return Err(Error::SeveralRuns { list });
    }
    writeln!(cx.err, "Several runs can be resumed:\n{}", list.join("\n"))?;
    let answer = question(cx, "Which one? ")?;
    let picked = answer.trim().parse::<usize>().ok().and_then(|it| it.checked_sub(1));
    match picked.filter(|index| *index < runs.len()) {
        Some(index) => Ok(runs.swap_remove(index).dir.dir),
        None => Err(Error::SeveralRuns { list }),
    }
}

fn question(cx: &mut Context, text: &str) -> Result<String, Error> {
    write!(cx.err, "{text}")?;
    cx.err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer)
}

/// Drives a run and says how it went.
pub(crate) fn drive(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    how: &How,
    ask: bool,
) -> Result<ExitCode, Error> {
    if ask {
        let plan = plan_run(dir, &session.machine, &how.choices)?;
        if plan.run.status != Status::Fresh && plan.run.status != Status::Completed {
            plan::show(cx, &plan)?;
            let answer = question(cx, "Proceed? [Y/n] ")?;
            if !matches!(answer.trim(), "" | "y" | "Y" | "yes") {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    let telling = if cx.global.json {
        Telling::Json
    } else if cx.global.quiet {
        Telling::Nothing
    } else {
        let counts = onward_core::view::counts(&open_run(dir)?);
        Telling::Words { done: counts.done, total: counts.total }
    };
    let sink: Sink = progress::sink(telling);
    let outcome = resume_run(dir, &session.machine, how, Some(sink), None)?;
    tell(cx, &outcome)
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
        Status::Completed | Status::Cancelled => None,
        Status::Waiting => Some(format!("onward status {id}   # then: onward approve {id} GATE")),
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
    if let Some(next) = next {
        writeln!(cx.err, "{next}")?;
    }
    Ok(ExitCode::from(code))
}
