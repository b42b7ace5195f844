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
    policy::{self, Asking, Choices, EnterAt},
};
use onward_engine::{
    engine::EngineError,
    foreign::{self, Foreign, ForeignError, adopt},
    locate::{FindError, TakeOver},
    resume::ResumeError,
    world::real::agents,
};

use crate::{
    cmd::{
        Context, plan,
        resume::{self, ResumeArgs, drive},
        run,
    },
    consult,
    diagnostic::printable,
    error::Error,
    prompt::{First, Person},
    session::{Driving, Found, Session, Which, word},
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
    let again = format!("onward resume {}", word(&dir.display().to_string()));
    let talk = Talk { session: &session, found: &found, again: &again };
    let Some(choices) = talk.agree(cx, &mut person, args)? else {
        writeln!(cx.err, "nothing was done\n{again}")?;
        return Ok(ExitCode::SUCCESS);
    };
    if person.leave_interrupts() {
        return Err(Error::Interrupted { command: again });
    }
    let workflow = run::load(cx, Path::new(found.workflow()))?;
    let mode = session.config.mode.value;
    let begun = adopt::begin(&session.project, &found, &workflow, &session.machine, mode)?;
    if !cx.global.json && !cx.global.quiet {
        let id = begun.dir.file_name().unwrap_or_default().to_string_lossy();
        writeln!(cx.err, "run {id} goes on with {}", dir.display())?;
    }
    let how = onward_engine::engine::How { take_over: TakeOver::No, ..session.how(choices) };
    drive(cx, &session, how, person, &begun.dir.clone(), |how, sink| {
        begun.drive(&session.machine, &how, Some(sink))
    })
}

/// The conversation before it.
struct Talk<'a> {
    session: &'a Session,
    found: &'a Foreign<'a>,
    /// The command that leads back here.
    again: &'a str,
}

#[derive(Clone, Copy)]
enum Choice {
    Resume,
    Point,
    Cancel,
}

impl Talk<'_> {
    /// What was agreed to, or nothing; an error when nobody was there to agree.
    fn agree(
        &self,
        cx: &mut Context,
        person: &mut Person,
        args: &ResumeArgs,
    ) -> Result<Option<Choices>, Error> {
        let (depth, asking) = policy::preset(self.session.config.mode.value);
        let mut asks = asking == Asking::Always && !args.driving.yes;
        let mut choices = args.choices();
        loop {
            let plan = self.found.plan_from(self.session.now, choices.from.as_ref())?;
            if plan.run.status == Status::Completed {
                return Err(Error::AlreadyComplete { what: plan.recovery_point.summary });
            }
            let mut findings = plan.findings.clone();
            findings.extend(unproved(&plan));
            let standing = policy::standing(&findings, plan.run.age_band, &choices);
            let can_be_settled = standing.iter().all(|it| Code::can_be_accepted(&it.code));
            let has_a_word = asks || !standing.is_empty();
            if !(person.is_there() && can_be_settled && has_a_word) {
                return if standing.is_empty() {
                    Ok(Some(choices))
                } else {
                    Err(EngineError::Resume(ResumeError::Conflicts(standing)).into())
                };
            }
            asks = true;
            plan::show(cx, &plan)?;
            for Finding { code, message, .. } in &standing {
                let message = printable(message);
                person.screen().line(&format!("Going on accepts {code}: {message}"));
            }
            let ways = [
                (Choice::Resume, consult::go_on(depth), consult::counts(&plan)),
                (Choice::Point, "point", consult::OTHER_POINT.to_owned()),
                (Choice::Cancel, "cancel", "leave everything as it is".to_owned()),
            ];
            let picked = consult::menu(person, consult::first(depth, &standing), &ways);
            match self.answered(person, picked)? {
                Choice::Resume => {
                    choices.accept_all(&standing);
                    return Ok(Some(choices));
                }
                Choice::Point => {
                    if let Some(point) = self.point(person)? {
                        choices.from = Some(point);
                    }
                }
                Choice::Cancel => return Ok(None),
            }
        }
    }

    /// Where a person says that it was interrupted; nothing if they leave it at what was found.
    fn point(&self, person: &mut Person) -> Result<Option<EnterAt>, Error> {
        let places = self.found.places().join(", ");
        person.screen().line(&format!("A place is one of {places}, or a step of the plan."));
        loop {
            let typed = person.until("Enter where? (return goes back) ", |it| Some(it.to_owned()));
            let step = self.answered(person, typed)?;
            if step.is_empty() {
                return Ok(None);
            }
            match self.ahead(&step, false) {
                Err(error) => person.screen().line(&error.to_string()),
                Ok(None) => return Ok(Some(EnterAt { step, force: false })),
                Ok(Some(why)) => {
                    person.screen().line(&why);
                    if self.ahead(&step, true)?.is_none() && self.is_sure(person)? {
                        return Ok(Some(EnterAt { step, force: true }));
                    }
                }
            }
        }
    }

    /// Why nobody can enter there, as what comes before it is not done.
    fn ahead(&self, step: &str, force: bool) -> Result<Option<String>, ForeignError> {
        let at = EnterAt { step: step.to_owned(), force };
        let plan = self.found.plan_from(self.session.now, Some(&at))?;
        let is_ahead = |it: &Finding| {
            it.code == Code::PhaseAheadOfEvidence.as_str() && it.severity == Severity::Blocking
        };
        Ok(plan.findings.into_iter().find(is_ahead).map(|it| it.message))
    }

    fn is_sure(&self, person: &mut Person) -> Result<bool, Error> {
        let words = ["no", "yes"].map(str::to_owned);
        let picked = person.pick("Enter there all the same?", &words, First::ByDefault);
        Ok(self.answered(person, picked)? == 1)
    }

    fn answered<T>(&self, person: &Person, answer: Option<T>) -> Result<T, Error> {
        answer.ok_or_else(|| {
            if person.was_interrupted() {
                Error::Interrupted { command: self.again.to_owned() }
            } else {
                Error::NotConfirmed { run: self.found.dir.display().to_string() }
            }
        })
    }
}

/// What a resume would do, and whether the agents that it takes are there.
pub(crate) fn plan(cx: &mut Context, dir: &Path, dialect: Option<&str>) -> Result<Plan, Error> {
    let session = Session::at(cx, dir, &Driving::default())?;
    let found = foreign::at(dir, dialect)?.ok_or(FindError::NoRuns)?;
    let mut plan = found.plan(session.now)?;
    if found.needs_agents()? {
        let workflow = run::load(cx, Path::new(found.workflow()))?.workflow;
        let missing = agents::missing(&workflow, &session.machine.agents);
        plan.findings.extend(missing.map(|error| {
            let finding = Finding::new(Code::PrerequisiteMissing, error.to_string());
            // The files themselves stand against nothing: a line of configuration settles it.
            Finding { severity: Severity::Warning, ..finding.with_hint(error.hint()) }
        }));
    }
    Ok(plan)
}

/// A run that is over in the other system's own words: where its outputs are is said.
pub(crate) fn refuse_complete(session: &Session, run: &Path) -> Result<(), Error> {
    let Some(dir) = adopt::is_of(&session.project, run) else { return Ok(()) };
    let plan = session.foreign_plan(&dir, None).ok();
    match plan.filter(|plan| plan.run.status == Status::Completed) {
        Some(plan) if Found::is_complete(run)? => {
            Err(Error::AlreadyComplete { what: plan.recovery_point.summary })
        }
        Some(_) | None => Ok(()),
    }
}

/// What needs a person's word although nothing is wrong.
fn unproved(plan: &Plan) -> Option<Finding> {
    let need = plan.needs.first().filter(|_| plan.can_resume)?;
    let step = plan.recovery_point.steps.first()?;
    let mut finding = Finding::new(Code::ArtifactUnproved, need.clone());
    finding.severity = Severity::Blocking;
    Some(finding.at_step(&Address::from_text(step)))
}
