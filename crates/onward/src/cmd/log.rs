//! `onward log` and `onward attach`: what happened, and what is happening.

use std::{path::Path, process::ExitCode, time::Duration};

use onward_core::{
    event::{Event, Record},
    evidence::{Cause, Outcome},
    journal::encode,
    plan::Status,
    policy::Choices,
    run::Run,
    state::State,
    time::Timestamp,
};
use onward_engine::{
    engine::plan_run,
    load::follow::Follower,
    locate::holder,
    world::real::{Interrupts, News},
};

use crate::{
    cmd::{Context, attach, closing, output},
    command::onward,
    diagnostic::printable,
    error::Error,
    gates, meant,
    next::{self, Next},
    progress::{self, Asks, Telling},
    prompt::Person,
    screen::Screen,
    session::{Driving, Session, id_of, is_driven, open_run, state_of},
    style::{self, BAD, DIM, GOOD, WARN},
    undone,
};

/// Show the events of a run, or what a step printed
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward log -f\n  onward log --step 'draft[ann]' -f")]
pub(crate) struct LogArgs {
    /// Which run; without it the last active one
    #[arg(add = crate::complete::run())]
    run: Option<String>,
    /// Keep showing what comes, until the run or the step ends
    #[arg(short, long)]
    follow: bool,
    /// Show what this step printed
    #[arg(long, value_name = "STEP", add = crate::complete::step())]
    step: Option<String>,
    /// With --step: in this attempt, not in the last one
    #[arg(long, value_name = "N", requires = "step")]
    attempt: Option<u32>,
    /// With --step: what an agent printed, byte for byte, not its words and tools
    #[arg(long, requires = "step")]
    raw: bool,
}

/// How often a watcher looks for more.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(cx: &mut Context, args: &LogArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, args.run.as_deref());
    let dir = dir.map_err(|error| meant::run_of_step(&session, args.run.as_deref(), error))?;
    if let Some(step) = &args.step {
        let (attempt, follow, raw) = (args.attempt, args.follow, args.raw);
        let wanted = output::Wanted { step, attempt, follow, raw };
        return output::show(cx, &session, &dir, &wanted);
    }
    let mut follower = Follower::new(&dir);
    loop {
        // Asked before reading, so that what a driver wrote last is not missed.
        let driven = is_driven(&dir);
        for record in follower.poll()? {
            show(cx, &record, &id_of(&dir))?;
        }
        cx.out.flush()?;
        if !args.follow || !driven {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn show(cx: &mut Context, record: &Record, run: &str) -> Result<(), Error> {
    let mut line = Vec::new();
    if cx.global.json {
        encode(record, &mut line).map_err(std::io::Error::other)?;
        cx.out.write_all(&line)?;
        return Ok(());
    }
    let (seq, at, kind) = (record.seq, record.at, record.event.kind());
    let value = serde_json::to_value(&record.event).map_err(std::io::Error::other)?;
    let mut rest = Vec::new();
    for name in ["step", "attempt", "turn", "option", "status", "cause", "outcome", "text"] {
        if name == "outcome" && is_stopped(&record.event) {
            rest.push("stopped by the user".to_owned());
        } else if let Some(why) = failed(cx, &record.event).filter(|_| name == "outcome") {
            rest.push(why);
        } else if let Some(value) = value.get(name) {
            rest.push(in_words(value));
        }
    }
    rest.extend(limit(cx, &record.event, at));
    let style = style_of(&record.event);
    let rest = printable(&rest.join(" "));
    let width = if rest.is_empty() { 0 } else { 17 };
    let line = if cx.global.verbose > 0 {
        format!("{seq:>5} {at} {style}{kind:<width$}{style:#} {rest}")
    } else {
        format!("{seq:>5} {} {style}{kind:<width$}{style:#} {rest}", style::seconds(at))
    };
    let width = style::columns();
    writeln!(cx.out, "{}", style::wrap(line.trim_end(), width, 0, INDENT))?;
    for (why, line) in undone::lines(&record.event, run, (width, 13, INDENT)) {
        let word = match why {
            undone::Why::Undone => "undone",
            undone::Why::Replaced => "saved ",
        };
        writeln!(cx.out, "      {WARN}{word}{WARN:#} {line}")?;
    }
    Ok(())
}

/// What does not fit into a line goes on below the event's name.
const INDENT: usize = 15;

/// The user stopped the attempt: it did not fail.
fn is_stopped(event: &Event) -> bool {
    let Event::AttemptFinished(it) = event else { return false };
    matches!(it.outcome, Outcome::Failed { cause: Cause::Interrupted, .. })
}

/// Why an attempt failed, or what it waits for.
fn failed(cx: &Context, event: &Event) -> Option<String> {
    let Event::AttemptFinished(it) = event else { return None };
    let Outcome::Failed { cause, detail } = &it.outcome else { return None };
    let why = if cx.global.verbose > 0 {
        format!("{}: {detail}", cause.in_words())
    } else {
        style::failure(*cause, detail, None)
    };
    Some(format!("{}: {why}", if cause.is_limit() { "parked" } else { "failed" }))
}

/// Whose limit was met, and until when it holds.
fn limit(cx: &Context, event: &Event, now: Timestamp) -> Option<String> {
    let Event::LimitHit { provider, agent, resets_at, .. } = event else { return None };
    let until = match resets_at {
        None => "the provider does not say until when".to_owned(),
        Some(at) if cx.global.verbose > 0 => format!("until {at}"),
        Some(at) => format!("until {}", style::clock(*at, now)),
    };
    Some(format!("{} {until}", agent.as_ref().unwrap_or(provider)))
}

fn style_of(event: &Event) -> crate::ink::Style {
    match event {
        Event::AttemptFinished(_) if is_stopped(event) => WARN,
        Event::AttemptFinished(it) => match &it.outcome {
            Outcome::Done => GOOD,
            Outcome::Failed { cause, .. } if cause.is_limit() => WARN,
            Outcome::Failed { .. } => BAD,
        },
        Event::AttemptAdopted(_) | Event::GateDecided { .. } | Event::RunEnded { .. } => GOOD,
        Event::AttemptLost { .. }
        | Event::StepInvalidated { .. }
        | Event::GateOpened { .. }
        | Event::LimitHit { .. }
        | Event::BudgetHit { .. }
        | Event::RunPaused { .. }
        | Event::JournalRepaired { .. } => WARN,
        Event::RunOpened(_)
        | Event::RunAdopted { .. }
        | Event::RunResumed(_)
        | Event::RunArchived { .. }
        | Event::GroupExpanded { .. }
        | Event::LoopTurned { .. }
        | Event::LoopEnded { .. }
        | Event::StepSkipped { .. }
        | Event::AttemptStarted(_)
        | Event::AttemptSession { .. }
        | Event::AttemptSpent { .. }
        | Event::AttemptVerified(_)
        | Event::EffectIntended { .. }
        | Event::EffectSettled { .. }
        | Event::NativeExported { .. }
        | Event::WorkflowChanged { .. }
        | Event::Note { .. } => DIM,
    }
}

/// Texts as they are; `{"failed": {"cause": …, "detail": …}}` as its parts.
fn in_words(value: &serde_json::Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let Some(fields) = value.as_object() else { return value.to_string() };
    let parts = fields.iter().map(|(name, value)| {
        if value.is_object() { format!("{name}: {}", in_words(value)) } else { in_words(value) }
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Come back to a run that continues without a terminal
///
/// Shows its progress until it is over, and asks its gates, also those of a run that waits without
/// a driver: with the answers it continues. Ctrl-C stops the watching, not the run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward attach\n  onward attach release-20261115-k3fq")]
pub(crate) struct AttachArgs {
    /// Which run; without it the last active one
    #[arg(add = crate::complete::run())]
    run: Option<String>,
    /// Never ask anything
    #[arg(long)]
    no_input: bool,
}

pub(crate) fn attach(cx: &mut Context, args: &AttachArgs) -> Result<ExitCode, Error> {
    let driving = Driving { no_input: args.no_input, ..Driving::default() };
    let session = Session::new(cx, &driving)?;
    let dir = session.named_or_last(cx, args.run.as_deref())?;
    if !is_driven(&dir) && !cx.global.json {
        let run = open_run(&dir)?;
        let status = Status::of(&run.state, false);
        let is_over = matches!(status, Status::Completed | Status::Cancelled);
        let asks = status == Status::Waiting && Person::at_terminal(cx, &driving).is_there();
        if !is_over && !asks {
            let id = id_of(&dir);
            writeln!(cx.err, "run {id} is not running now ({})", status.as_str())?;
            let waits = status == Status::Waiting;
            let answers = if waits { gates::answers(&session, &dir, &run)? } else { Vec::new() };
            for answer in &answers {
                writeln!(cx.err, "{answer}")?;
            }
            if answers.is_empty() {
                let plan = plan_run(&dir, &session.machine, &Choices::default())?;
                let is_terminal = Person::at_terminal(cx, &driving).is_there();
                let next = match next::of_plan(&plan, is_terminal) {
                    Some(Next::Command(command)) => command,
                    // What stands in the way is read first.
                    Some(Next::Anyway(_)) | None => onward!("plan {id}"),
                };
                writeln!(cx.err, "{next}")?;
            }
            return Ok(ExitCode::from(crate::cmd::run::exit_code(status)));
        }
    }
    watch(cx, &session, &dir, &driving)
}

#[cfg(feature = "watch")]
pub(crate) fn follow(cx: &mut Context, session: &Session, dir: &Path) -> Result<ExitCode, Error> {
    watch(cx, session, dir, &Driving::default())
}

/// Shows a run that another process drives until it is over, and asks its gates.
fn watch(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    driving: &Driving,
) -> Result<ExitCode, Error> {
    let mut follower = Follower::new(dir);
    // From the beginning: what happened before is told first.
    let mut known = State::default();
    let since = holder(dir).map_or(open_run(dir)?.state.opened_at, |it| it.since);
    // Where that cannot be had, Ctrl-C ends the program as it ends any other.
    let interrupts = if cx.global.json { None } else { Interrupts::heed().ok() };
    let wanted = || interrupts.as_ref().is_none_or(|it| !it.came());
    loop {
        // One for each time that the run is driven: nothing moves any more on the one before.
        let screen = Screen::of_stderr();
        let mut person = Person::at_terminal(cx, driving);
        let telling = if cx.global.json {
            Telling::Json
        } else {
            let run = Run::new(open_run(dir)?.defs, known);
            let asks = if person.is_there() { Asks::Later } else { Asks::Never };
            progress::telling(cx, session, screen.clone(), dir, run, (asks, since))
        };
        let Some(status) = until_left(dir, &mut follower, telling, &wanted)? else {
            screen.end();
            let id = id_of(dir);
            return Err(Error::Interrupted { command: format!("attach {id}") });
        };
        screen.end();
        known = state_of(dir)?;
        if status == Status::Waiting
            && person.is_there()
            && gates::ask_all(session, &mut person, dir, &wanted)?
        {
            let ended = attach::start(session, dir, &[])?;
            if let Some(code) = ended.filter(|code| !attach::has_begun(*code)) {
                write!(cx.err, "{}", attach::said(dir))?;
                return Ok(ExitCode::from(code));
            }
            continue;
        }
        if !wanted() {
            return Err(Error::Interrupted { command: format!("resume {}", id_of(dir)) });
        }
        let (run, exit) = (open_run(dir)?, crate::cmd::run::exit_code(status));
        if cx.global.json {
            cx.print_json(&closing::shape_of(dir, &run, status, exit)?)?;
        } else {
            screen.notify(&format!("onward: run {} {}", id_of(dir), next::became(status, &run)));
            closing::words(cx, dir, &run, status, since)?;
        }
        return Ok(ExitCode::from(exit));
    }
}

/// Until no engine drives it any more; `None` when the person leaves with Ctrl-C.
fn until_left(
    dir: &Path,
    follower: &mut Follower,
    telling: Telling,
    wanted: &dyn Fn() -> bool,
) -> Result<Option<Status>, Error> {
    let mut sink = progress::sink(telling);
    loop {
        let driven = is_driven(dir);
        let mut lines = Vec::new();
        for record in follower.poll()? {
            encode(&record, &mut lines).map_err(std::io::Error::other)?;
        }
        sink(News::Lines(&lines));
        if !driven {
            break;
        }
        if !wanted() {
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    drop(sink);
    Ok(Some(Status::of(&open_run(dir)?.state, false)))
}
