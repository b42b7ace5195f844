//! `onward resume` where another system left a run: the plan is shown and confirmed, then a run of
//! ours goes on with it.
//!
//! Invariant: until somebody, or the policy, has agreed to the plan, nothing is made anywhere.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{
    address::Address,
    event::Mode,
    finding::{Code, Finding, Severity},
    plan::{Plan, Status},
    policy::{self, Asking, Choices},
};
use onward_engine::{
    adopt,
    engine::EngineError,
    foreign,
    resume::ResumeError,
    store::{FindError, TakeOver},
};

use crate::{
    cmd::{
        Context, plan,
        resume::{self, ResumeArgs, drive},
        run,
    },
    error::Error,
    prompt::Person,
    session::{Session, Which, word},
};

/// The run in this very directory; or else one of those that can be resumed here and below.
pub(crate) fn choose(cx: &Context, session: &Session, person: &mut Person) -> Result<Which, Error> {
    let here = std::path::absolute(&cx.global.cwd)
        .map_err(|source| Error::CannotRead { path: cx.global.cwd.clone(), source })?;
    if foreign::below(&here).contains(&here) {
        let plan = session.foreign_plan(&here, None);
        let is_over = plan.is_ok_and(|plan| plan.run.status == Status::Completed);
        // What is over here does not stand in the way of what is not, such as its shipping.
        let ours = if is_over { session.unfinished()? } else { Vec::new() };
        if !ours.is_empty() {
            return resume::choose(session, person, ours).map(Which::Ours);
        }
        return session.adopted_or_foreign(here, None);
    }
    let strangers = unfinished(session, &here)?;
    let ours = session.unfinished()?;
    match (ours.as_slice(), strangers.as_slice()) {
        ([], []) if foreign::at(&here, None)?.is_some() => {
            Ok(Which::Foreign { dir: here, dialect: None })
        }
        ([], [only]) => Ok(Which::Foreign { dir: only.clone(), dialect: None }),
        // Ours first: a dialect's own run waits for a word.
        ([_, ..], _) if session.config.mode.value == Mode::Autopilot => {
            resume::choose(session, person, ours).map(Which::Ours)
        }
        (_, []) => resume::choose(session, person, ours).map(Which::Ours),
        (_, [_, ..]) => {
            let ours = ours.iter().map(|it| it.dir.id.to_string());
            let theirs = strangers.iter().map(|it| it.display().to_string());
            let list: Vec<String> = ours.chain(theirs).collect();
            let first = list.first().cloned().unwrap_or_default();
            match person.choose("Which one?", &list) {
                Some(index) => session.which(cx, Some(&list[index]), None),
                None if person.was_interrupted() => {
                    Err(Error::Interrupted { command: "onward resume".to_owned() })
                }
                None => Err(Error::SeveralRuns { list, first }),
            }
        }
    }
}

fn unfinished(session: &Session, here: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut strangers = session.strangers(here)?;
    strangers.retain(|dir| {
        let plan = session.foreign_plan(dir, None);
        plan.is_ok_and(|plan| plan.run.status != Status::Completed)
    });
    Ok(strangers)
}

pub(crate) fn resume(
    cx: &mut Context,
    mut person: Person,
    dir: &Path,
    dialect: Option<&str>,
    args: &ResumeArgs,
) -> Result<ExitCode, Error> {
    // Its runs are kept in the project that it lies in.
    let session = Session::at(cx, dir, &args.driving)?;
    let found = foreign::at(dir, dialect)?.ok_or(FindError::NoRuns)?;
    let choices = args.choices();
    let plan = found.plan_from(session.now, choices.from.as_ref())?;
    if plan.run.status == Status::Completed {
        return Err(EngineError::Resume(ResumeError::Complete).into());
    }
    let agreed = agree(cx, &session, &mut person, &plan, choices, args.driving.yes)?;
    let Some(choices) = agreed else {
        writeln!(cx.err, "nothing was done\nonward resume {}", word(&plan.run.dir))?;
        return Ok(ExitCode::SUCCESS);
    };
    if person.leave_interrupts() {
        let command = format!("onward resume {}", word(&plan.run.dir));
        return Err(Error::Interrupted { command });
    }
    let workflow = run::load(cx, Path::new(found.workflow()))?;
    let mode = session.config.mode.value;
    let begun = adopt::begin(&session.project, &found, &workflow, &session.machine, mode)?;
    if !cx.global.json && !cx.global.quiet {
        let id = begun.dir.file_name().unwrap_or_default().to_string_lossy();
        writeln!(cx.err, "run {id} goes on with {}", plan.run.dir)?;
    }
    let how = onward_engine::engine::How { take_over: TakeOver::No, ..session.how(choices) };
    drive(cx, &session, how, person, &begun.dir.clone(), |how, sink| {
        begun.drive(&session.machine, &how, Some(sink))
    })
}

/// What was agreed to, or nothing; an error when nobody was there to agree.
fn agree(
    cx: &mut Context,
    session: &Session,
    person: &mut Person,
    plan: &Plan,
    mut choices: Choices,
    yes: bool,
) -> Result<Option<Choices>, Error> {
    let mut findings = plan.findings.clone();
    findings.extend(unproved(plan));
    let standing = policy::standing(&findings, plan.run.age_band, &choices);
    let asks = policy::preset(session.config.mode.value).1 == Asking::Always && !yes;
    let can_be_settled = standing.iter().all(|it| Code::can_be_accepted(&it.code));
    if person.is_there() && can_be_settled && (asks || !standing.is_empty()) {
        plan::show(cx, plan)?;
        for finding in &standing {
            let line = format!("Going on accepts {}: {}", finding.code, finding.message);
            person.screen().line(&line);
        }
        return match person.confirm("Proceed?") {
            Some(true) => {
                choices.accept_all(&standing);
                Ok(Some(choices))
            }
            Some(false) => Ok(None),
            None if person.was_interrupted() => {
                let command = format!("onward resume {}", word(&plan.run.dir));
                Err(Error::Interrupted { command })
            }
            None => Err(Error::NotConfirmed { run: plan.run.dir.clone() }),
        };
    }
    if standing.is_empty() {
        return Ok(Some(choices));
    }
    Err(EngineError::Resume(ResumeError::Conflicts(standing)).into())
}

/// What needs a person's word although nothing is wrong.
fn unproved(plan: &Plan) -> Option<Finding> {
    let need = plan.needs.first().filter(|_| plan.can_resume)?;
    let step = plan.recovery_point.steps.first()?;
    let mut finding = Finding::new(Code::ArtifactUnproved, need.clone());
    finding.severity = Severity::Blocking;
    Some(finding.at_step(&Address::from_text(step)))
}
