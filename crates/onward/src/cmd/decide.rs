//! `onward decide`, `approve`, `reject`, `done`, `pause` and `cancel`: what a person says to a run.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{address::Address, digest::Digest, plan::Status, run::Run};
use onward_engine::{
    drive::{
        gate::{Answer, Refused},
        offline::DecideError,
    },
    engine::{self, Decided},
    locate::{FindError, Misnamed, RunDir},
    world::{Request, inbox::write_request, real::wall_clock},
};

use crate::{
    cmd::{Context, resume::in_a_line, run_and_rest},
    command::onward,
    confirm::{self, confirm},
    diagnostic::printable,
    error::{self, Error},
    gates::Gate,
    seen,
    session::{Driving, Session, id_of, is_driven, open_run, word},
    shapes, style,
};

/// Answer a gate
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Example:\n  onward decide publish revise --comment \"shorter, please\"")]
#[command(override_usage = "onward decide [OPTIONS] [RUN] GATE OPTION")]
pub(crate) struct DecideArgs {
    /// `[RUN] GATE OPTION`
    #[arg(required = true, num_args = 2..=3, value_names = ["RUN", "GATE", "OPTION"])]
    #[arg(add = crate::complete::run_or_gate())]
    words: Vec<String>,
    /// A comment to record with the answer
    #[arg(long)]
    comment: Option<String>,
    /// The content you saw, as `status --json` shows it; refused if it has changed
    #[arg(long)]
    hash: Option<String>,
}

pub(crate) fn run(cx: &mut Context, args: &DecideArgs) -> Result<ExitCode, Error> {
    let (option, words) = args.words.split_last().expect("clap wants two at least");
    let (run, gate) = run_and_rest(words);
    answer(cx, run, Some(gate), option, args.comment.clone(), args.hash.as_deref())
}

/// Answer a gate with `approve`, or with `reject`
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct YesNoArgs {
    /// `[RUN] [GATE]`: needed when there are several
    #[arg(num_args = 0..=2, value_names = ["RUN", "GATE"])]
    #[arg(add = crate::complete::run_or_gate())]
    words: Vec<String>,
    /// A comment to record with the answer
    #[arg(long)]
    comment: Option<String>,
    /// The content you saw, as `status --json` shows it; refused if it has changed
    #[arg(long)]
    hash: Option<String>,
}

pub(crate) fn yes_no(cx: &mut Context, args: &YesNoArgs, option: &str) -> Result<ExitCode, Error> {
    let (run, gate) = match args.words.as_slice() {
        [] => (None, None),
        [one] => {
            // One word is a gate when it names one, else a run.
            let session = Session::new(cx, &Driving::default())?;
            match session.named(cx, one) {
                Ok(_) => (Some(one.as_str()), None),
                Err(_) => (None, Some(one.as_str())),
            }
        }
        [run, gate, ..] => (Some(run.as_str()), Some(gate.as_str())),
    };
    answer(cx, run, gate, option, args.comment.clone(), args.hash.as_deref())
}

fn open_gates(run: &Run) -> Vec<Address> {
    run.graph.open_gates().map(|id| run.graph.node(id).address.clone()).collect()
}

/// The run that is meant when none is named: the only one with such a gate open.
fn the_one_that_waits(
    cx: &Context,
    session: &Session,
    gate: Option<&str>,
    option: &str,
) -> Result<PathBuf, Error> {
    let mut waiting = Vec::new();
    for run in session.project.runs()? {
        if Misnamed::is_copy(&run.dir) {
            continue;
        }
        // One that cannot be read waits for no answer.
        let Ok(folded) = open_run(&run.dir) else { continue };
        if matches!(Status::of(&folded.state, false), Status::Cancelled | Status::Completed) {
            continue;
        }
        let mut open = open_gates(&folded);
        open.retain(|it| gate.is_none_or(|gate| it.as_str() == gate));
        if let Some(step) = open.first()
            && !session.is_superseded(&run, &folded.state)
        {
            waiting.push((run, step.clone()));
        }
    }
    match waiting.as_slice() {
        [] => session.named_or_last(cx, None),
        [(only, _)] => Ok(only.dir.clone()),
        [(run, step), ..] => {
            let (step, option) = (word(step.as_str()), word(option));
            let first = format!("decide {} {step} {option}", run.id);
            let line = |(run, step): &(RunDir, Address)| format!("{} at {step}", run.id);
            Err(Error::SeveralWait { list: waiting.iter().map(line).collect(), first })
        }
    }
}

/// A person who answers has a run: it is in another place.
fn in_wrong_place(session: &Session, error: Error) -> Error {
    if matches!(error, Error::Find(FindError::NoRuns)) {
        return Error::NoRunIn { dir: session.project.root().to_owned() };
    }
    error
}

fn answer(
    cx: &mut Context,
    run: Option<&str>,
    gate: Option<&str>,
    option: &str,
    comment: Option<String>,
    hash: Option<&str>,
) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = match run {
        Some(_) => session.named_or_last(cx, run),
        None => the_one_that_waits(cx, &session, gate, option),
    };
    let dir = dir.map_err(|error| in_wrong_place(&session, error))?;
    let said = Spoken { gate, option, comment, hash };
    let of_run = |error| Error::OfRun { run: id_of(&dir), error: Box::new(error) };
    record(cx, &session, &dir, said).map_err(of_run)
}

/// An answer as it was typed.
struct Spoken<'a> {
    gate: Option<&'a str>,
    option: &'a str,
    comment: Option<String>,
    hash: Option<&'a str>,
}

fn record(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    Spoken { gate, option, comment, hash }: Spoken<'_>,
) -> Result<ExitCode, Error> {
    let folded = open_run(dir)?;
    let open = open_gates(&folded);
    let step = match (gate, open.as_slice()) {
        (Some(gate), _) => Address::from_text(gate),
        (None, [only]) => only.clone(),
        (None, []) => {
            let answered = engine::person::last_answered(dir, &folded).map(Error::from);
            return Err(answered.unwrap_or(Error::WhichGate { asked: None, open: Vec::new() }));
        }
        (None, _) => {
            let open = that_answer(session, (dir, &folded), option);
            return Err(Error::WhichGate { asked: None, open });
        }
    };
    let shown = folded.state.step(&step).and_then(|entry| entry.gate.as_ref()).map(|it| it.hash);
    let hash = match hash {
        None => shown,
        Some(text) => Some(in_full(session, dir, &folded, shown, text)?),
    };
    let by = session.user();
    let answer = Answer { step: step.clone(), option: option.to_owned(), comment, by, hash };
    keep_seen(session, dir, &folded, &answer);
    let decided = engine::decide(dir, &answer, &session.machine)
        .map_err(|error| not_open(session, (dir, &folded), option, error))?;
    let id = dir.file_name().unwrap_or_default().to_string_lossy();
    let (how, next) = match decided {
        Decided::Journaled => ("journaled", onward!("resume {id}")),
        Decided::Taken => ("taken by the driver", onward!("attach {id}")),
    };
    if cx.global.json {
        let (run, step) = (id.into_owned(), step.to_string());
        let (schema, option) = ("onward.decided/1".to_owned(), option.to_owned());
        let how = how.to_owned();
        return cx.print_json(&shapes::Decided { schema, run, step, option, how });
    }
    if !cx.global.quiet {
        let (step, option) = (printable(step.as_str()), printable(option));
        match decided {
            Decided::Journaled => {
                writeln!(cx.err, "gate {step}: recorded \"{option}\" for run {id}\n{next}")?;
            }
            Decided::Taken => {
                writeln!(cx.err, "gate {step}: the running engine took \"{option}\"\n{next}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The commands that answer the gates that wait, with what the person wanted to say where a gate
/// has that option.
fn that_answer(session: &Session, (dir, run): (&Path, &Run), option: &str) -> Vec<String> {
    let gates = engine::person::gates_now(dir, run, &session.machine).unwrap_or_default();
    let answer = |gate: Gate| {
        let known = gate.options.iter().find(|it| *it == option).or(gate.options.first());
        let (step, option) = (word(gate.step.as_str()), word(known.map_or(option, String::as_str)));
        format!("decide {} {step} {option}", id_of(dir))
    };
    gates.iter().filter_map(Gate::of).map(answer).collect()
}

/// An answer to what does not wait for one is told what does.
fn not_open(
    session: &Session,
    of: (&Path, &Run),
    option: &str,
    error: engine::EngineError,
) -> Error {
    let engine::EngineError::Decide(DecideError::Refused(Refused::NotOpen { step, .. })) = error
    else {
        return error.into();
    };
    let is_gate = |id| of.1.defs.brief(of.1.graph.node(id).def).is_gate();
    let asked = match of.1.graph.find(&step) {
        Some(id) if !is_gate(id) => format!("`{step}` is a step, not a gate"),
        Some(_) | None => format!("there is no open gate `{step}`"),
    };
    Error::WhichGate { asked: Some(asked), open: that_answer(session, of, option) }
}

/// For the question that comes next: what is shown now, if the answer is about that.
fn keep_seen(session: &Session, dir: &Path, run: &Run, answer: &Answer) {
    let Ok(now) = engine::person::gates_now(dir, run, &session.machine) else { return };
    let is_it = |gate: &Gate| gate.step == answer.step && Some(gate.hash) == answer.hash;
    if let Some(gate) = now.iter().filter_map(Gate::of).find(is_it) {
        seen::keep(dir, session.project.root(), &gate);
    }
}

/// A hash as `status` shows it, or its beginning.
fn in_full(
    session: &Session,
    dir: &Path,
    run: &Run,
    shown: Option<Digest>,
    text: &str,
) -> Result<Digest, Error> {
    const SHORT: usize = 6;
    if let Some(whole) = Digest::parse(text.as_bytes()) {
        return Ok(whole);
    }
    let now = engine::person::gates_now(dir, run, &session.machine)?;
    let now = now.iter().filter_map(Gate::of).map(|gate| gate.hash);
    let mut known = shown.into_iter().chain(now);
    let is_it = |it: &Digest| text.len() >= SHORT && it.to_string().starts_with(text);
    known.find(is_it).ok_or_else(|| Error::Usage {
        message: format!("`{text}` is not the hash of what an open gate shows"),
        hint: "see `onward status`".into(),
    })
}

/// Ask the driver of a run for something
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AskArgs {
    /// Which run; without it the last active one
    #[arg(add = crate::complete::run())]
    run: Option<String>,
}

pub(crate) fn pause(cx: &mut Context, args: &AskArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, args.run.as_deref())?;
    ask(cx, &session, &dir, &Request::Pause)
}

/// Stop everything and end the run for good
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward cancel\n  onward cancel release-20261115-k3fq")]
pub(crate) struct CancelArgs {
    /// Which run; without it the only one that is not over, after a question
    #[arg(add = crate::complete::run())]
    run: Option<String>,
    /// End it without asking
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn cancel(cx: &mut Context, args: &CancelArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = match args.run.as_deref() {
        Some(run) => session.named(cx, run)?,
        None => the_one_to_cancel(cx, &session)?,
    };
    // A person who names the run means it.
    if args.run.is_none() && !cx.global.json {
        let question = format!("End run {} for good? Its files stay.", id_of(&dir));
        if confirm(cx, args.yes, &question) == confirm::Answer::No {
            writeln!(cx.err, "nothing was done")?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    ask(cx, &session, &dir, &Request::Cancel)
}

/// The run that is meant when none is named: the only one that is not over. The one that was active
/// last may be over, and another one go on.
fn the_one_to_cancel(cx: &Context, session: &Session) -> Result<PathBuf, Error> {
    let mut open = session.unfinished()?;
    match open.len() {
        0 => session.named_or_last(cx, None),
        1 => Ok(open.remove(0).dir.dir),
        _ => {
            let first = open[0].dir.id.to_string();
            let lines = open.into_iter().map(|found| in_a_line(session, found));
            let list = lines.collect::<Result<Vec<String>, Error>>()?;
            Err(Error::SeveralRuns { list, first, command: error::CANCEL })
        }
    }
}

fn ask(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    request: &Request,
) -> Result<ExitCode, Error> {
    let id = id_of(dir);
    let how = if is_driven(dir) {
        write_request(dir, request, wall_clock()).map_err(engine::EngineError::from)?;
        "sent to the running engine"
    } else {
        match request {
            Request::Cancel => {
                engine::cancel(dir, &session.machine)?;
                "cancelled; its files stay"
            }
            Request::Pause | Request::Unattended | Request::Decide { .. } => {
                "no engine is running it"
            }
        }
    };
    if cx.global.json {
        let (schema, how) = ("onward.asked/1".to_owned(), how.to_owned());
        return cx.print_json(&shapes::Asked { schema, run: id, how });
    }
    writeln!(cx.err, "run {id}: {how}")?;
    Ok(ExitCode::SUCCESS)
}

/// The steps and groups beside it that it needs, and that are not done.
fn unfinished_before(run: &Run, step: &Address) -> Vec<String> {
    let Some(id) = run.graph.find(step) else { return Vec::new() };
    let open = run.graph.effective_needs(id).into_iter().map(|it| run.graph.node(it));
    open.filter(|it| !it.is_settled()).map(|it| printable(it.address.as_str())).collect()
}

/// Record that you finished a step by hand
///
/// Its declared outputs must exist; its check must pass.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward done publish\n  \
    onward done release-20261115-k3fq 'draft[ann]/write'")]
#[command(override_usage = "onward done [OPTIONS] [RUN] STEP")]
pub(crate) struct DoneArgs {
    /// `[RUN] STEP`
    #[arg(required = true, num_args = 1..=2, value_name = "STEP")]
    #[arg(add = crate::complete::run_or_step())]
    words: Vec<String>,
}

pub(crate) fn done(cx: &mut Context, args: &DoneArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let (run, step) = run_and_rest(&args.words);
    let dir = session.named_or_last(cx, run).map_err(|error| in_wrong_place(&session, error))?;
    let by = session.user();
    engine::done(&dir, &Address::from_text(step), by, &session.machine)?;
    if cx.global.json {
        let (schema, step) = ("onward.done/1".to_owned(), step.to_owned());
        return cx.print_json(&shapes::Done { schema, run: id_of(&dir), step });
    }
    writeln!(cx.err, "{step} now counts as done")?;
    let run = open_run(&dir)?;
    let before = unfinished_before(&run, &Address::from_text(step));
    if !before.is_empty() {
        let said = format!("note: it needs steps that are not done yet: {}", before.join(", "));
        writeln!(cx.err, "{}", style::wrap(&said, style::columns_of_errors(), 0, 2))?;
    }
    writeln!(cx.err, "{}", onward!("resume {}", id_of(&dir)))?;
    Ok(ExitCode::SUCCESS)
}
