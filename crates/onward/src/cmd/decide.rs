//! `onward decide`, `approve`, `reject`, `done`, `pause` and `cancel`: what a person says to a run.

use std::process::ExitCode;

use onward_core::address::Address;
use onward_engine::{
    drive::gate::Answer,
    engine::{self, Decided},
    world::{Request, inbox::write_request, real::wall_clock},
};
use serde_json::json;

use crate::{
    cmd::{Context, run_and_rest},
    error::Error,
    session::{Driving, Session, is_driven, open_run},
};

/// Answer a gate
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DecideArgs {
    /// `[RUN] GATE OPTION`
    #[arg(required = true, num_args = 2..=3, value_names = ["RUN", "GATE", "OPTION"])]
    words: Vec<String>,
    /// A word to go with it
    #[arg(long)]
    comment: Option<String>,
    /// The content you saw, as `status --json` shows it; refused if it has moved
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
    words: Vec<String>,
    /// A word to go with it
    #[arg(long)]
    comment: Option<String>,
    /// The content you saw, as `status --json` shows it; refused if it has moved
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

fn answer(
    cx: &mut Context,
    run: Option<&str>,
    gate: Option<&str>,
    option: &str,
    comment: Option<String>,
    hash: Option<&str>,
) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, run)?;
    let folded = open_run(&dir)?;
    let open: Vec<Address> =
        folded.graph.open_gates().map(|id| folded.graph.node(id).address.clone()).collect();
    let step = match (gate, open.as_slice()) {
        (Some(gate), _) => Address::from_text(gate),
        (None, [only]) => only.clone(),
        (None, _) => {
            let open = open.iter().map(ToString::to_string).collect();
            return Err(Error::WhichGate { open });
        }
    };
    let shown = folded.state.step(&step).and_then(|entry| entry.gate.as_ref()).map(|it| it.hash);
    let hash = match hash {
        None => shown,
        Some(text) => {
            Some(onward_core::digest::Digest::parse(text.as_bytes()).ok_or_else(|| {
                Error::Usage {
                    message: format!("`{text}` is not a hash"),
                    hint: "take it from `onward status --json`".into(),
                }
            })?)
        }
    };
    let by = session.user();
    let answer = Answer { step: step.clone(), option: option.to_owned(), comment, by, hash };
    let decided = engine::decide(&dir, answer, &session.machine)?;
    let id = dir.file_name().unwrap_or_default().to_string_lossy();
    let (word, next) = match decided {
        Decided::Journaled => ("journaled", format!("onward resume {id}")),
        Decided::Left => ("left for the driver", format!("onward attach {id}")),
    };
    if cx.global.json {
        let object = json!({"schema": "onward.decided/1", "run": id, "step": step,
            "option": option, "how": word});
        writeln!(cx.out, "{object}")?;
    } else {
        writeln!(cx.err, "{step}: {option} ({word})\n{next}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ask the driver of a run for something
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AskArgs {
    /// Which run; without it the last active one
    run: Option<String>,
}

pub(crate) fn pause(cx: &mut Context, args: &AskArgs) -> Result<ExitCode, Error> {
    ask(cx, args, &Request::Pause)
}

pub(crate) fn cancel(cx: &mut Context, args: &AskArgs) -> Result<ExitCode, Error> {
    ask(cx, args, &Request::Cancel)
}

fn ask(cx: &mut Context, args: &AskArgs, request: &Request) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, args.run.as_deref())?;
    let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let how = if is_driven(&dir) {
        write_request(&dir, request, wall_clock()).map_err(engine::EngineError::from)?;
        "left for the driver"
    } else {
        match request {
            Request::Cancel => engine::cancel(&dir, &session.machine)?,
            Request::Pause | Request::Unattended | Request::Decide { .. } => {}
        }
        "nobody drives it"
    };
    if cx.global.json {
        let object = json!({"schema": "onward.asked/1", "run": id, "how": how});
        writeln!(cx.out, "{object}")?;
    } else {
        writeln!(cx.err, "run {id}: {how}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Count a step as done that a person finished by hand
///
/// Its declared outputs must be there; then it counts.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DoneArgs {
    /// `[RUN] STEP`
    #[arg(required = true, num_args = 1..=2, value_names = ["RUN", "STEP"])]
    words: Vec<String>,
}

pub(crate) fn done(cx: &mut Context, args: &DoneArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let (run, step) = run_and_rest(&args.words);
    let dir = session.named_or_last(cx, run)?;
    let by = session.user();
    engine::done(&dir, &Address::from_text(step), by, &session.machine)?;
    if cx.global.json {
        writeln!(cx.out, "{}", json!({"schema": "onward.done/1", "step": step}))?;
    } else {
        writeln!(cx.err, "{step} counts as done")?;
    }
    Ok(ExitCode::SUCCESS)
}
