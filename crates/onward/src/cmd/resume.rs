//! `onward resume`: takes an interrupted run up again. It never starts a new one.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use onward_core::{
    address::Address,
    event::Mode,
    finding::RUN_OVER,
    plan::{Plan, Status, run_info},
    policy::{Accept, Choices, Depth, EnterAt},
    state::State,
    survey::Survey,
    view::view,
};
use onward_engine::{
    drive::Options,
    engine::{self, EngineError, How, Looking, Outcome, compare_run, examine_run, resume_run},
    load::checkpoint::Folded,
    locate::{FindError, LockError, TakeOver, holder},
    world::{
        real::{News, Sink, wall_clock},
        seen::Seen,
    },
};

use crate::{
    attend::Attendant,
    cmd::{Context, adopt, closing, plan},
    command::{in_text, onward},
    consult::{Subject, Way, consult},
    error::{self, Error},
    meant::{self, Wanted},
    next,
    open::Found,
    outlook,
    progress::{self, Asks, Telling},
    prompt::Person,
    session::{Driving, Session, Which, id_of, open_run, state_of, with_workflow},
    style::{ago, fraction},
};

/// Continue an interrupted run
///
/// Finished steps are kept. Interrupted ones are adopted if they finished meanwhile, waited for if
/// they still run, or else undone (with a copy saved) and run again. `onward plan` shows first what
/// would happen.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward resume\n  onward resume release-20261115-k3fq\n  \
    onward resume --all --yes")]
#[expect(clippy::struct_excessive_bools, reason = "one per flag")]
pub(crate) struct ResumeArgs {
    /// Which run: its id, a prefix of it, its directory, or one in which another system left a run
    #[arg(add = crate::complete::run())]
    run: Option<String>,
    /// Every interrupted run, one after the other
    #[arg(long, conflicts_with = "run")]
    all: bool,
    /// Accept a finding, by its code
    #[arg(long, value_name = "CODE[@STEP]")]
    #[arg(add = crate::complete::code())]
    accept: Vec<Accept>,
    /// Continue at this step or phase instead of where the run stopped
    #[arg(long, value_name = "STEP|PHASE", conflicts_with = "all", add = crate::complete::step())]
    from: Option<String>,
    /// Resume a cancelled run, or one that failed in another system; with --from: skip unfinished
    /// steps too
    #[arg(long)]
    force: bool,
    /// Keep a finished step although what it was asked, or made from, changed
    #[arg(long, value_name = "STEP", add = crate::complete::step())]
    keep: Vec<String>,
    /// Run a finished step again
    #[arg(long, value_name = "STEP", add = crate::complete::step())]
    redo: Vec<String>,
    /// Leave what an interrupted step changed in the tree, and undo nothing of it
    #[arg(long, value_name = "STEP", add = crate::complete::step())]
    leave: Vec<String>,
    /// Continue with the run's own copy of the workflow, not with the edited file
    #[arg(long)]
    pinned: bool,
    /// Take the run over from a driver on another machine that is gone for good
    #[arg(long)]
    take_over: bool,
    /// Which system wrote it, where that is in doubt
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// A task list, or the directory of all task lists, instead of Claude Code's own
    #[arg(long, value_name = "DIR", conflicts_with_all = ["run", "all"])]
    tasks: Option<PathBuf>,
    /// The plan was agreed to before this driver was started in the background
    #[arg(long, hide = true)]
    agreed: bool,
    /// Leave it running in the background and return at once
    #[arg(long, conflicts_with = "all")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) driving: Driving,
}

impl ResumeArgs {
    /// What was agreed to, for a driver in the background that is told by flags.
    pub(crate) fn flags(choices: &Choices, pinned: bool, take_over: bool) -> Vec<String> {
        let mut flags = Vec::new();
        let mut flag = |name: &str, value: String| flags.extend([name.to_owned(), value]);
        choices.accepted.iter().for_each(|it| flag("--accept", it.to_string()));
        choices.keep.iter().for_each(|it| flag("--keep", it.to_string()));
        choices.redo.iter().for_each(|it| flag("--redo", it.to_string()));
        choices.leave.iter().for_each(|it| flag("--leave", it.to_string()));
        if let Some(from) = &choices.from {
            flag("--from", from.step.clone());
        }
        let force = choices.revive || choices.from.as_ref().is_some_and(|it| it.force);
        for (name, is_set) in [
            ("--force", force),
            ("--yes", choices.yes),
            ("--pinned", pinned),
            ("--take-over", take_over),
        ] {
            if is_set {
                flags.push(name.to_owned());
            }
        }
        flags
    }

    pub(crate) fn choices(&self) -> Choices {
        let steps = |given: &[String]| given.iter().map(|it| Address::from_text(it)).collect();
        Choices {
            accepted: self.accept.clone(),
            yes: self.driving.yes,
            from: self.from.clone().map(|step| EnterAt { step, force: self.force }),
            keep: steps(&self.keep),
            redo: steps(&self.redo),
            leave: steps(&self.leave),
            revive: self.force,
        }
    }
}

pub(crate) fn run(cx: &mut Context, args: &ResumeArgs) -> Result<ExitCode, Error> {
    let mut given = Choices { yes: false, revive: false, ..args.choices() };
    // No word settles that, as its own hint says.
    given.accepted.retain(|it| it.code != RUN_OVER);
    let flags = ResumeArgs::flags(&given, args.pinned, args.take_over);
    resumed(cx, args).map_err(|error| error.given(flags))
}

fn resumed(cx: &mut Context, args: &ResumeArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &args.driving)?;
    if args.all {
        return all(cx, &session, args);
    }
    let mut person = Person::at_terminal(cx, &args.driving);
    person.heed_interrupts();
    let wanted = Wanted {
        run: args.run.as_deref(),
        dialect: args.dialect.as_deref(),
        tasks: args.tasks.as_deref(),
        newest: false,
        command: "resume",
    };
    let which = match wanted {
        Wanted { run: None, dialect: None, tasks: None, .. } => {
            match adopt::choose(cx, &session, &mut person, args.driving.yes) {
                Err(Error::NothingToResume | Error::LastIsCancelled { .. }) if args.force => {
                    last_cancelled(&session)
                }
                Ok(None) => {
                    let fresh = in_text("`onward run WORKFLOW` starts a new run");
                    writeln!(cx.err, "nothing was done; {fresh}")?;
                    return Ok(ExitCode::SUCCESS);
                }
                Ok(Some(chosen)) => Ok(chosen),
                Err(error) => Err(error),
            }
        }
        wanted => session.which(cx, &wanted),
    };
    let which = match which {
        Err(Error::NoPermanentTask(looked)) if person.is_there() => {
            return adopt::make_permanent(cx, &session, person, looked);
        }
        which => which?,
    };
    let dir = match which {
        Which::Ours(dir) => dir,
        Which::Foreign(found) => return adopt::resume(cx, person, &found, args),
    };
    let folded = session.folded_of(&dir);
    let session = session.of_run(cx, &dir, &args.driving)?;
    adopt::refuse_complete(&session, &dir)?;
    if person.is_there() {
        refuse_driven(&dir, args)?;
    }
    let mode = session.mode_of(&dir);
    let status = match &folded {
        Some(folded) => Status::of(&folded.state, false),
        None => Status::of(&state_of(&dir)?, false),
    };
    let is_cancelled = status == Status::Cancelled;
    let seen = Seen::default();
    let way = if person.is_there() && !args.driving.yes {
        let pinned = args.pinned;
        let subject = Subject { session: &session, dir: &dir, mode, pinned, seen: &seen };
        // A person who is asked, and says yes, takes up a cancelled run too.
        let choices = args.choices();
        let revive = choices.revive || is_cancelled;
        consult(cx, &mut person, &subject, Choices { revive, ..choices })?
    } else if is_cancelled && !args.force {
        return Err(Error::Cancelled { run: id_of(&dir) });
    } else {
        refuse_unread(cx, &session, &dir, args)?;
        Way::GoOn(args.choices())
    };
    let command = format!("resume {}", id_of(&dir));
    let again = onward!("{command}");
    if person.leave_interrupts() {
        return Err(Error::Interrupted { command });
    }
    match way {
        Way::GoOn(choices) if args.detach => {
            let flags = ResumeArgs::flags(&choices, args.pinned, args.take_over);
            super::attach::leave(cx, &session, &dir, &flags)
        }
        Way::GoOn(choices) => {
            // What a person was asked about may have changed meanwhile.
            let folded = folded.filter(|_| !person.is_there());
            take_up(cx, &session, person, (&dir, folded), args, (&choices, seen))
        }
        Way::Restart => super::run::again(cx, &session, &dir, person),
        Way::End => {
            engine::cancel(&dir, &session.machine)?;
            writeln!(cx.err, "run {} was cancelled; its files stay", id_of(&dir))?;
            Ok(ExitCode::from(error::RUN_FAILED))
        }
        Way::Nothing => {
            writeln!(cx.err, "nothing was done\n{again}")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// With `--force`, and where nothing is unfinished, the last run is meant if it was cancelled.
fn last_cancelled(session: &Session) -> Result<Which, Error> {
    let last = session.project.last_run().map_err(|_| Error::NothingToResume)?;
    match Status::of(&open_run(&last.dir)?.state, false) {
        Status::Cancelled => Ok(Which::Ours(last.dir)),
        Status::Fresh
        | Status::Running
        | Status::Interrupted
        | Status::Waiting
        | Status::Parked
        | Status::OverBudget
        | Status::Completed
        | Status::Failed => Err(Error::NothingToResume),
    }
}

/// In preflight mode another system's run continues at the user's word alone, and that after the
/// report, with a terminal or without.
fn refuse_unread(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    args: &ResumeArgs,
) -> Result<(), Error> {
    let is_preflight = session.mode_of(dir) == Mode::Preflight;
    let is_over = || Found::is_complete(dir);
    if !is_preflight || args.driving.yes || args.agreed || holder(dir).is_some() || is_over()? {
        return Ok(());
    }
    let choices = args.choices();
    let from = choices.from.as_ref();
    let Some(preflight) = compare_run(dir, from, &session.machine)? else { return Ok(()) };
    if !cx.global.json {
        let seen = Seen::default();
        let (depth, pinned) = (Depth::Quick, args.pinned);
        let looking = Looking { choices: &choices, depth, pinned, seen: &seen };
        let plan = examine_run(dir, &session.machine, &looking)?;
        plan::show(cx, session, &Plan { preflight: Some(preflight), ..plan }, &choices)?;
    }
    let flags = ResumeArgs::flags(&args.choices(), args.pinned, args.take_over);
    Err(Error::NotConfirmed { run: id_of(dir), flags })
}

/// A run that another process drives is not talked about first, and refused then.
fn refuse_driven(dir: &Path, args: &ResumeArgs) -> Result<(), Error> {
    let Some(holder) = holder(dir).filter(|_| !args.take_over) else { return Ok(()) };
    let Some(run) = open_run(dir)?.state.opened.as_ref().map(|it| it.run.clone()) else {
        return Ok(());
    };
    let held = LockError::RunHeld { run, holder: Some(Box::new(holder)) };
    Err(Error::Engine(EngineError::Lock(held)))
}

fn all(cx: &mut Context, session: &Session, args: &ResumeArgs) -> Result<ExitCode, Error> {
    let runs = session.unfinished()?;
    let strangers = adopt::strangers(cx, session, args.force)?;
    if runs.is_empty() && strangers.is_empty() {
        return Err(session.beside_lists(Error::NothingToResume));
    }
    let mut codes = Vec::new();
    for found in runs {
        let person = Person::at_terminal(cx, &args.driving);
        let chosen = (&args.choices(), Seen::default());
        let dir = &found.dir.dir;
        let code = refuse_unread(cx, session, dir, args)
            .and_then(|()| take_up(cx, session, person, (dir, None), args, chosen));
        // One run that cannot go on is told of, and the others go on.
        codes.push(code.unwrap_or_else(|error| cx.report(&error)));
    }
    for found in strangers {
        let person = Person::at_terminal(cx, &args.driving);
        let code = adopt::resume(cx, person, &found, args);
        codes.push(code.unwrap_or_else(|error| cx.report(&error)));
    }
    Ok(codes.into_iter().rfind(|it| *it != ExitCode::SUCCESS).unwrap_or(ExitCode::SUCCESS))
}

/// No run can be resumed: why.
pub(crate) fn none_left(session: &Session) -> Error {
    // One that lost its journal is no reason to start another.
    let lost = session.project.last_run().err();
    let lost = lost.filter(|it| matches!(it, FindError::LostJournal { .. }));
    let nothing = || session.beside_lists(meant::none_unfinished(session));
    lost.map_or_else(nothing, Error::Find)
}

/// Id, workflow, where it stands, how long ago.
pub(crate) fn in_a_line(session: &Session, found: Found) -> Result<String, Error> {
    let survey = Survey { now: session.now, ..Survey::default() };
    let (dir, status) = (found.dir.dir.display().to_string(), found.status);
    let run = found.run()?;
    let view = view(&run, run_info(&run.state, &survey, status, &dir));
    let (run, counts) = (&view.run, view.counts);
    let at = view.phase.as_deref().map_or(String::new(), |phase| format!(" at {phase}"));
    let (id, workflow, status) = (&run.id, &run.workflow, run.status.as_str());
    let (done, age) = (fraction(counts), ago(run.age_seconds));
    Ok(format!("{id}  {workflow}, {status}{at}, {done} done, {age}"))
}

fn take_up(
    cx: &mut Context,
    session: &Session,
    person: Person,
    (dir, folded): (&Path, Option<Arc<Folded>>),
    args: &ResumeArgs,
    (choices, seen): (&Choices, Seen),
) -> Result<ExitCode, Error> {
    let take_over = if args.take_over { TakeOver::Yes } else { TakeOver::No };
    let (mode, pinned) = (session.mode_of(dir), args.pinned);
    let is_told = !cx.global.json && !cx.global.quiet;
    let state = folded.as_ref().filter(|_| is_told).map(|it| it.state.clone());
    let how = How { mode, pinned, take_over, seen, folded, ..session.how(choices.clone()) };
    let driven = drive(cx, session, how, person, (dir, state), |how, sink| {
        resume_run(dir, &session.machine, &how, Some(sink))
    });
    if let Err(error) = &driven
        && matches!(error.exit_code(), error::CONFLICTS | error::DAMAGED)
        && !cx.global.json
        && let Ok(plan) = examine_run(
            dir,
            &session.machine,
            &Looking { choices, depth: Depth::Quick, pinned, seen: &Seen::default() },
        )
    {
        // A user who is stopped here is told what of the run stands, and the ways out.
        outlook::show(&mut *cx.err, &plan)?;
    }
    driven
}

/// Drives a run, lets a person at the terminal answer its gates, and says how it went. `state` is
/// what the journal folds to, where the caller has read it already.
pub(crate) fn drive(
    cx: &mut Context,
    session: &Session,
    how: How,
    person: Person,
    (dir, state): (&Path, Option<State>),
    go: impl FnOnce(How, Sink) -> Result<Outcome, EngineError>,
) -> Result<ExitCode, Error> {
    let attended = person.is_there();
    let screen = person.screen().clone();
    let since = wall_clock();
    let sink: Sink = if cx.global.json {
        progress::sink(Telling::Json)
    } else if cx.global.quiet && !attended {
        // The end is told below, and nothing before it but why nothing happens.
        let screen = screen.clone();
        Box::new(move |news| match news {
            News::Lines(_) => {}
            News::Waits(words) => screen.line(words),
        })
    } else {
        let run = with_workflow(dir, state.map_or_else(|| state_of(dir), Ok)?)?;
        let asks = if attended {
            Asks::Here(Attendant::new(person, &run, dir, session.user()))
        } else {
            Asks::Never
        };
        progress::sink(progress::telling(cx, session, screen.clone(), dir, run, (asks, since)))
    };
    let options = Options { attended, ..how.options };
    let outcome = go(How { options, ..how }, sink);
    screen.end();
    let of_run = |error| Error::OfRun { run: id_of(dir), error: Box::new(Error::Engine(error)) };
    let mut outcome = outcome.map_err(of_run)?;
    let run = outcome.left.take().map_or_else(|| open_run(dir), Ok)?;
    let became = next::became(outcome.status, &run);
    screen.notify(&format!("onward: run {} {became}", outcome.run));
    let code = closing::tell(cx, &outcome, &run, since);
    // The process ends: nothing is given back piece by piece.
    std::mem::forget(run);
    code
}
