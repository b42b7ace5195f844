//! `onward resume` where another system left a run: the plan is shown and confirmed, then a run of
//! ours goes on with it.
//!
//! Invariant: until somebody, or the policy, has agreed to the plan, nothing is made anywhere.

use std::{path::Path, process::ExitCode};

use onward_core::{
    event::Mode,
    finding::{Code, Finding},
    plan::{Plan, Status},
    policy::{self, Asking, Choices, Depth, EnterAt},
};
use onward_engine::{
    engine::{EngineError, adopt},
    locate::{FoundSite, TakeOver},
    resume::ResumeError,
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
    session::{Found, Session, Which, word},
};

/// The run in this very directory; or else one of those that can be resumed here and below.
pub(crate) fn choose(cx: &Context, session: &Session, person: &mut Person) -> Result<Which, Error> {
    let here = std::path::absolute(&cx.global.cwd)
        .map_err(|source| Error::CannotRead { path: cx.global.cwd.clone(), source })?;
    let cannot_read = |source| Error::CannotRead { path: here.clone(), source };
    let (mut at_hand, others): (Vec<Glanced>, Vec<Glanced>) =
        unfinished(session, &here)?.into_iter().partition(|it| it.found.dir == here);
    let ours = session.unfinished()?;
    if at_hand.len() == 1 {
        return Ok(Which::Foreign(Box::new(at_hand.remove(0).found)));
    }
    let strangers: Vec<Glanced> = at_hand.into_iter().chain(others).collect();
    match (ours.as_slice(), strangers.as_slice()) {
        ([], []) => {
            let here = session.search(None).at(&here, None).map_err(cannot_read)?;
            match here.into_iter().next() {
                // What is over, or lacks a file, is said when it is met.
                Some(found) => session.adopted_or_foreign(found),
                None => resume::choose(session, person, ours).map(Which::Ours),
            }
        }
        ([], [only]) => Ok(Which::Foreign(Box::new(only.found.clone()))),
        // Ours first: a dialect's own run waits for a word.
        ([_, ..], _) if session.config.mode.value == Mode::Autopilot => {
            resume::choose(session, person, ours).map(Which::Ours)
        }
        ([], [newest, ..]) if session.config.mode.value == Mode::Autopilot => {
            Ok(Which::Foreign(Box::new(newest.found.clone())))
        }
        ([_, ..], []) => resume::choose(session, person, ours).map(Which::Ours),
        (_, [_, ..]) => {
            let own = ours.iter().map(|it| it.dir.id.to_string());
            let theirs = strangers.iter().map(Glanced::in_a_line);
            let list: Vec<String> = own.chain(theirs).collect();
            let first = ours.first().map(|it| it.dir.id.to_string());
            let first = first.unwrap_or_else(|| strangers[0].found.dir.display().to_string());
            match person.choose("Which one?", &list) {
                Some(index) if index < ours.len() => Ok(Which::Ours(ours[index].dir.dir.clone())),
                Some(index) => {
                    Ok(Which::Foreign(Box::new(strangers[index - ours.len()].found.clone())))
                }
                None if person.was_interrupted() => {
                    Err(Error::Interrupted { command: "onward resume".to_owned() })
                }
                None => Err(Error::SeveralRuns { list, first }),
            }
        }
    }
}

/// Another system's run, and how it stands.
struct Glanced {
    found: FoundSite,
    plan: Plan,
}

impl Glanced {
    /// Place, system, phase and age.
    fn in_a_line(&self) -> String {
        let Plan { run, recovery_point, .. } = &self.plan;
        let phase = recovery_point.phase.as_deref().unwrap_or("-");
        let (age, dir) = (plan::age(run.age_seconds), self.found.dir.display());
        format!("{dir}  {}, {}, phase {phase}, {age} ago", run.dialect, run.status.as_str())
    }
}

/// Runs of other systems that are not over and belong here, the last active one first.
fn unfinished(session: &Session, here: &Path) -> Result<Vec<Glanced>, Error> {
    let mut glanced = Vec::new();
    for found in session.strangers(here)? {
        if let Ok(plan) = session.glance(&found)
            && plan.run.status != Status::Completed
            && !found.site.elsewhere
        {
            glanced.push(Glanced { found, plan });
        }
    }
    glanced.sort_by_key(|it| it.plan.run.age_seconds);
    Ok(glanced)
}

pub(crate) fn resume(
    cx: &mut Context,
    mut person: Person,
    found: &FoundSite,
    args: &ResumeArgs,
) -> Result<ExitCode, Error> {
    // Its runs are kept in the project that it lies in.
    let session = Session::at(cx, found.project.root(), &args.driving)?;
    let again = format!("onward resume {}", word(&found.dir.display().to_string()));
    let talk = Talk { session: &session, found, again: &again };
    let Some(choices) = talk.agree(cx, &mut person, args)? else {
        writeln!(cx.err, "nothing was done\n{again}")?;
        return Ok(ExitCode::SUCCESS);
    };
    if person.leave_interrupts() {
        return Err(Error::Interrupted { command: again });
    }
    let workflow = run::load(cx, Path::new(found.site.workflow))?;
    let mode = session.config.mode.value;
    let begun = adopt::adopt(found, &workflow, &session.machine, mode)?;
    if !cx.global.json && !cx.global.quiet {
        let id = begun.dir.file_name().unwrap_or_default().to_string_lossy();
        writeln!(cx.err, "run {id} goes on with {}", found.dir.display())?;
    }
    let how = onward_engine::engine::How { take_over: TakeOver::No, ..session.how(choices) };
    drive(cx, &session, how, person, &begun.dir.clone(), |how, sink| {
        begun.drive(&session.machine, &how, Some(sink))
    })
}

/// The conversation before it.
struct Talk<'a> {
    session: &'a Session,
    found: &'a FoundSite,
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
            let plan = self.session.foreign_plan(self.found, &choices, depth)?;
            if plan.run.status == Status::Completed {
                return Err(Error::AlreadyComplete { what: plan.recovery_point.summary });
            }
            let standing = policy::standing(&plan.findings, plan.run.age_band, &choices);
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
        let places = self.found.card().entries.join(", ");
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

    /// Why the run cannot be entered there, as what comes before it is not done.
    fn ahead(&self, step: &str, force: bool) -> Result<Option<String>, Error> {
        let from = Some(EnterAt { step: step.to_owned(), force });
        let choices = Choices { from, ..Choices::default() };
        let plan = self.session.foreign_plan(self.found, &choices, Depth::Quick)?;
        let ahead = Finding::new(Code::EntersAhead, "");
        let is_ahead = |it: &Finding| it.code == ahead.code && it.severity() == ahead.severity();
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

/// A run that is over in the other system's own words: where its outputs are is said.
pub(crate) fn refuse_complete(session: &Session, run: &Path) -> Result<(), Error> {
    let Some((dialect, dir)) = adopt::adopted_from(&session.project, run) else { return Ok(()) };
    let found = session.search(None).at(&dir, Some(&dialect)).ok();
    let found = found.and_then(|it| it.into_iter().next());
    let plan = found.and_then(|it| session.glance(&it).ok());
    match plan.filter(|plan| plan.run.status == Status::Completed) {
        Some(plan) if Found::is_complete(run)? => {
            Err(Error::AlreadyComplete { what: plan.recovery_point.summary })
        }
        Some(_) | None => Ok(()),
    }
}
