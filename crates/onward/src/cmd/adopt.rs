//! `onward resume` where another system left a run: the plan is shown and confirmed, then a run of
//! ours goes on with it.
//!
//! Invariant: until the user, or the policy, has agreed to the plan, nothing is made anywhere.

use std::{path::Path, process::ExitCode};

use onward_core::{
    event::Mode,
    finding::{Code, Finding, Severity, told},
    plan::{Plan, Status},
    plural::count,
    policy::{self, Asking, Choices, Depth, EnterAt},
};
use onward_engine::{
    care::clean,
    engine::{EngineError, adopt, compare_site},
    locate::{FoundSite, TakeOver},
    resume::ResumeError,
};
use serde_json::Value;

use crate::{
    cmd::{
        Context, archive, attach, plan,
        resume::{self, ResumeArgs, drive},
        run,
    },
    command::onward,
    consult,
    diagnostic::printable,
    error::{self, Error},
    meant::{self, Looked},
    open::{self, Found, Open, Reach},
    outlook,
    prompt::{Chosen, First, Person},
    session::{Session, Which, found_in_commands},
    style::ago,
};

/// Which of the runs that can be resumed here; nothing when the user wants none of them.
pub(crate) fn choose(
    cx: &Context,
    session: &Session,
    person: &mut Person,
    yes: bool,
) -> Result<Option<Which>, Error> {
    let mut open = open::here(cx, session, Reach::All)?;
    let is_autopilot = session.config.mode.value == Mode::Autopilot;
    match open.as_slice() {
        [] => nothing(cx, session).map(Some),
        // What may be another project's is gone on with by a person's word alone.
        [first, ..] if !first.is_sure(yes) => match first {
            Open::Theirs(it) if open.len() == 1 => it.is_ours(person).map(Some),
            Open::Theirs(_) | Open::Ours(_) => which_of(session, person, open),
        },
        [_] => Ok(Some(open.remove(0).which())),
        [_, ..] if is_autopilot => Ok(Some(open.remove(0).which())),
        [_, ..] => which_of(session, person, open),
    }
}

/// What is over, or lacks a file, is said when it is met.
fn nothing(cx: &Context, session: &Session) -> Result<Which, Error> {
    let here = meant::here(cx, session)?;
    let cannot_read = |source| Error::CannotRead { path: here.clone(), source };
    let found = session.search(None).at(&here, None).map_err(cannot_read)?;
    // What was never begun is meant only by the person who names it.
    let is_meant = |it: &FoundSite| !it.site.by_name_only || session.is_over(it);
    match found.into_iter().find(is_meant) {
        Some(found) => session.adopted_or_foreign(found),
        None => Err(resume::none_left(session)),
    }
}

/// One of several, the one that is meant first.
fn which_of(
    session: &Session,
    person: &mut Person,
    mut open: Vec<Open>,
) -> Result<Option<Which>, Error> {
    let lines = open.iter().map(|it| it.in_a_line(session));
    let list = lines.collect::<Result<Vec<String>, Error>>()?;
    if person.is_there() {
        person.screen().line("Several runs can be resumed:");
    }
    match person.choose("Which one?", &list) {
        Some(Chosen::One(index)) => Ok(Some(open.swap_remove(index).which())),
        Some(Chosen::None) => Ok(None),
        None if person.was_interrupted() => {
            Err(Error::Interrupted { command: "resume".to_owned() })
        }
        None => {
            let first = open.swap_remove(0).name();
            Err(Error::SeveralRuns { list, first, command: "resume" })
        }
    }
}

/// Runs of other systems here that are surely this project's, each to be resumed. What failed or
/// was cancelled is taken up by `force` alone.
pub(crate) fn strangers(
    cx: &Context,
    session: &Session,
    force: bool,
) -> Result<Vec<FoundSite>, Error> {
    let here = meant::here(cx, session)?;
    let all = open::theirs(session, &here)?.into_iter().filter(|it| force || !it.is_over());
    Ok(all.map(|it| it.found).filter(|it| !it.site.unsure).collect())
}

/// No list has a `[PERMANENT]` task: says where it was looked for, and offers to make one.
pub(crate) fn make_permanent(
    cx: &mut Context,
    session: &Session,
    mut person: Person,
    looked: Looked,
) -> Result<ExitCode, Error> {
    person.screen().line("No task of this project begins with [PERMANENT]. Searched:");
    let searched = if looked.lists.is_empty() { looked.root.as_slice() } else { &looked.lists };
    for list in searched {
        person.screen().line(&format!("  {}", printable(&list.display().to_string())));
    }
    for list in &looked.others {
        let list = printable(&list.display().to_string());
        person.screen().line(&format!("  {list}  another project's"));
    }
    let question = "Make one from git log and the working tree, and start its pipeline?";
    let words = ["no", "yes"].map(str::to_owned);
    match person.pick(question, &words, First::ByDefault) {
        Some(1) => {
            let list = looked.lists.first().map(|it| Value::from(it.display().to_string()));
            let inputs = list.map(|it| ("dir".to_owned(), it)).into_iter().collect();
            run::builtin(cx, session, "pipeline", inputs, person)
        }
        None if person.was_interrupted() => {
            Err(Error::Interrupted { command: "resume".to_owned() })
        }
        Some(_) | None => Err(Error::NoPermanentTask(looked)),
    }
}

pub(crate) fn resume(
    cx: &mut Context,
    mut person: Person,
    found: &FoundSite,
    args: &ResumeArgs,
) -> Result<ExitCode, Error> {
    // Its runs are kept in the project that it lies in.
    let session = Session::at(cx, found.project.root(), &args.driving)?;
    let command = format!("resume {}", found_in_commands(found));
    let again = onward!("{command}");
    let talk = Talk { session: &session, found, again: &again };
    let agreed = talk.agree(cx, &mut person, args);
    if let Err(error) = &agreed
        && error.exit_code() == error::CONFLICTS
        && !matches!(error, Error::NotConfirmed { .. })
        && !cx.global.json
        && let Ok(plan) = session.foreign_plan(found, &args.choices(), Depth::Quick)
    {
        // A user who is stopped here is told the ways out.
        let (way, can_be_given_up) = ((&*again, &args.choices()), talk.to_put_away().is_some());
        outlook::ways_out(&mut *cx.err, &plan, found, way, can_be_given_up)?;
    }
    let (choices, how_old) = match agreed? {
        Agreed::GoOn(choices, how_old) => (choices, how_old),
        Agreed::GiveUp => return archive::give_up(cx, found, true, session.now),
        Agreed::Restart => {
            archive::give_up(cx, found, true, session.now)?;
            let mut inputs = found.site.inputs.clone();
            inputs.remove("state");
            return run::builtin(cx, &session, found.site.workflow, inputs, person);
        }
        Agreed::Nothing => {
            writeln!(cx.err, "nothing was done\n{again}")?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    if person.leave_interrupts() {
        return Err(Error::Interrupted { command });
    }
    let workflow = run::load(cx, Path::new(found.site.workflow), &session.machine.cast)?;
    let mode = session.mode_at(found);
    let begun = adopt::adopt(found, &workflow, &session.machine, mode)?;
    if !cx.global.json && !cx.global.quiet {
        let id = begun.dir.file_name().unwrap_or_default().to_string_lossy();
        writeln!(cx.err, "run {id} continues {}: {how_old}", found.dir.display())?;
    }
    if args.detach {
        let flags = ResumeArgs::flags(&choices, false, false);
        return attach::leave(cx, &session, &begun.leave(), &flags);
    }
    let how = onward_engine::engine::How { mode, take_over: TakeOver::No, ..session.how(choices) };
    drive(cx, &session, how, person, (&begun.dir.clone(), None), |how, sink| {
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
    Restart,
    Clean,
    Cancel,
}

/// What came of it.
enum Agreed {
    /// With the age of its state, and what was found.
    GoOn(Choices, String),
    /// Its state is put away, and a new run begins in its place.
    Restart,
    /// Its state is put away.
    GiveUp,
    Nothing,
}

/// What giving a run up means.
struct PutAway {
    lines: Vec<String>,
    /// The same can be started over: the run says what is wanted.
    restarts: bool,
}

impl Talk<'_> {
    /// How the run can be put away, where the system keeps a state of it or an archive.
    fn to_put_away(&self) -> Option<PutAway> {
        let machine = &self.session.machine;
        if let Some(clean) = clean::look(self.found, machine, self.session.now).ok().flatten() {
            return Some(PutAway { lines: archive::lines(&clean), restarts: true });
        }
        // What is wanted instead is for a new run to say.
        let line = format!("its state is kept in the archive of {}", self.found.card().name);
        let is_kept = adopt::retires(self.found, machine).is_ok_and(|it| it);
        is_kept.then(|| PutAway { lines: vec![line], restarts: false })
    }

    /// What was agreed to; an error when no person was there to agree.
    fn agree(
        &self,
        cx: &mut Context,
        person: &mut Person,
        args: &ResumeArgs,
    ) -> Result<Agreed, Error> {
        let (depth, asking) = policy::preset(self.session.mode_at(self.found));
        let mut asks = asking == Asking::Always && !args.driving.yes;
        let mut choices = args.choices();
        loop {
            let mut plan = self.session.foreign_plan(self.found, &choices, depth)?;
            if plan.run.status == Status::Completed {
                return Err(Error::AlreadyComplete { what: over(&plan) });
            }
            if depth == Depth::Full {
                plan.preflight =
                    compare_site(self.found, choices.from.as_ref(), &self.session.machine)?;
            }
            let standing = policy::standing(&plan.findings, plan.run.age_band, &choices);
            let can_be_settled = standing.iter().all(Finding::can_be_accepted);
            let has_a_word = asks || !standing.is_empty();
            let clean = if person.is_there() { self.to_put_away() } else { None };
            let has_a_way = can_be_settled || clean.is_some();
            if !(person.is_there() && has_a_way && has_a_word) {
                // A system that has such a report wants a word, with a terminal or without.
                let wants_word = plan.preflight.is_some() && !args.driving.yes;
                if wants_word && !cx.global.json {
                    plan::show(cx, self.session, &plan, &choices)?;
                }
                return match () {
                    () if !standing.is_empty() => {
                        Err(EngineError::Resume(ResumeError::Conflicts(standing)).into())
                    }
                    () if wants_word => {
                        let flags = ResumeArgs::flags(&choices, false, false);
                        Err(Error::NotConfirmed { run: found_in_commands(self.found), flags })
                    }
                    () => Ok(Agreed::GoOn(choices, how_old(&plan))),
                };
            }
            asks = true;
            plan::show(cx, self.session, &plan, &choices)?;
            let mut ways = Vec::new();
            if can_be_settled {
                for it in told(&standing) {
                    consult::say_accepted(person, &it);
                }
                ways.push((Choice::Resume, consult::go_on(depth), consult::counts(&plan)));
                ways.push((Choice::Point, "point", consult::OTHER_POINT.to_owned()));
            }
            ways.push((Choice::Cancel, "cancel", "leave everything as it is".to_owned()));
            if let Some(PutAway { restarts, .. }) = clean {
                let over = "put its state away and start over; nothing is deleted".to_owned();
                ways.extend(restarts.then_some((Choice::Restart, "restart", over)));
                let clean = "put its state away and end it; nothing is deleted".to_owned();
                ways.push((Choice::Clean, "clean", clean));
            }
            let picked = consult::menu(person, consult::first(depth, &standing), &ways);
            if picked.is_none() && !person.was_interrupted() {
                let run = found_in_commands(self.found);
                return Err(consult::unanswered(run, &choices, &standing, false));
            }
            match self.answered(person, picked)? {
                Choice::Resume => {
                    choices.accept_all(&standing);
                    return Ok(Agreed::GoOn(choices, how_old(&plan)));
                }
                picked @ (Choice::Restart | Choice::Clean) => {
                    let lines = clean.iter().flat_map(|it| &it.lines);
                    lines.for_each(|line| person.screen().line(&printable(line)));
                    if self.is_sure(person, "Do that?")? {
                        let restarts = matches!(picked, Choice::Restart);
                        return Ok(if restarts { Agreed::Restart } else { Agreed::GiveUp });
                    }
                }
                Choice::Point => {
                    if let Some(point) = self.point(person)? {
                        choices.from = Some(point);
                    }
                }
                Choice::Cancel => return Ok(Agreed::Nothing),
            }
        }
    }

    /// Where a person says that it was interrupted; nothing if they leave it at what was found.
    fn point(&self, person: &mut Person) -> Result<Option<EnterAt>, Error> {
        let places = self.found.card().entries.join(", ");
        person.screen().line(&format!("A place is one of {places}, or a step of the plan."));
        loop {
            let typed = person.until("Continue where? (Return goes back) ", |it| Ok(it.to_owned()));
            let step = self.answered(person, typed)?;
            if step.is_empty() {
                return Ok(None);
            }
            match self.ahead(&step, false) {
                Err(error) => person.screen().line(&error.to_string()),
                Ok(None) => return Ok(Some(EnterAt { step, force: false })),
                Ok(Some(why)) => {
                    person.screen().line(&why);
                    if self.ahead(&step, true)?.is_none()
                        && self.is_sure(person, "Continue there anyway?")?
                    {
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

    fn is_sure(&self, person: &mut Person, question: &str) -> Result<bool, Error> {
        let words = ["no", "yes"].map(str::to_owned);
        let picked = person.pick(question, &words, First::ByDefault);
        Ok(self.answered(person, picked)? == 1)
    }

    fn answered<T>(&self, person: &Person, answer: Option<T>) -> Result<T, Error> {
        answer.ok_or_else(|| {
            if person.was_interrupted() {
                Error::Interrupted { command: self.again.to_owned() }
            } else {
                let (run, flags) = (found_in_commands(self.found), Vec::new());
                Error::NotConfirmed { run, flags }
            }
        })
    }
}

/// `interrupted 45 min ago, validation clean`.
fn how_old(plan: &Plan) -> String {
    let of = |severity| plan.findings.iter().filter(|it| it.severity() == severity).count();
    let counted = [(of(Severity::Blocking), "conflict"), (of(Severity::Warning), "warning")];
    let counted = counted.into_iter().filter(|(many, _)| *many > 0);
    let counted: Vec<String> = counted.map(|(many, what)| count(many, what)).collect();
    let found = match counted.as_slice() {
        [] => "clean".to_owned(),
        [..] => format!("found {}", counted.join(", ")),
    };
    format!("{} {}, validation {found}", plan.run.status.as_str(), ago(plan.run.age_seconds))
}

/// What a run that is over says of itself, with what speaks against it.
fn over(plan: &Plan) -> String {
    let against = plan.findings.iter().filter(|it| it.severity() == Severity::Blocking);
    let against = against.map(|it| format!("\n  {}: {}", it.code, printable(&it.message)));
    format!("{}{}", plan.recovery_point.summary, against.collect::<String>())
}

/// A run that is over in the other system's own words: where its outputs are is said.
pub(crate) fn refuse_complete(session: &Session, run: &Path) -> Result<(), Error> {
    let Some((dialect, dir)) = adopt::adopted_from(&session.project, run) else { return Ok(()) };
    if !Found::is_complete(run)? {
        return Ok(());
    }
    let found = session.search(None).at(&dir, Some(&dialect)).ok().unwrap_or_default();
    let is_ours = |it: &FoundSite| {
        let adopter = adopt::adopter(&it.project, it).ok().flatten();
        adopter.is_some_and(|it| it.run.dir.file_name() == run.file_name())
    };
    let found = found.into_iter().find(is_ours);
    let plan = found.and_then(|it| session.glance(&it).ok());
    match plan.filter(|plan| plan.run.status == Status::Completed) {
        Some(plan) => Err(Error::AlreadyComplete { what: plan.recovery_point.summary }),
        None => Ok(()),
    }
}
