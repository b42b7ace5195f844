//! `onward log` and `onward attach`: what happened, and what is happening.

use std::{path::Path, process::ExitCode, time::Duration};

use onward_core::{address::Address, event::Record, journal::encode, plan::Status};
use onward_engine::load::follow::Follower;

use crate::{
    cmd::Context,
    error::Error,
    progress::{self, Counter, Telling},
    screen::Screen,
    session::{Driving, Session, is_driven, open_run},
};

/// Show the events of a run, or what a step printed
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct LogArgs {
    /// Which run; without it the last active one
    run: Option<String>,
    /// Go on as the run goes on
    #[arg(short, long)]
    follow: bool,
    /// Show what this step printed in its last attempt
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
}

/// How often a watcher looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(cx: &mut Context, args: &LogArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, args.run.as_deref())?;
    if let Some(step) = &args.step {
        return output(cx, &dir, step);
    }
    let mut follower = Follower::new(&dir);
    loop {
        // Asked before reading, so that what a driver wrote last is not missed.
        let driven = is_driven(&dir);
        for record in follower.poll()? {
            show(cx, &record)?;
        }
        cx.out.flush()?;
        if !args.follow || !driven {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn show(cx: &mut Context, record: &Record) -> Result<(), Error> {
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
        if let Some(value) = value.get(name) {
            rest.push(in_words(value));
        }
    }
    let line = format!("{seq:>5} {at} {kind:<17} {}", rest.join(" "));
    writeln!(cx.out, "{}", line.trim_end())?;
    Ok(())
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

/// What a step wrote to its standard output and error, as it is.
fn output(cx: &mut Context, dir: &Path, step: &str) -> Result<ExitCode, Error> {
    let run = open_run(dir)?;
    let address = Address::from_text(step);
    let Some(entry) = run.state.step(&address) else {
        let known = run.state.steps.keys().map(ToString::to_string).collect();
        return Err(Error::NoSuchStep { step: step.to_owned(), known });
    };
    for ending in ["out", "err"] {
        let name = onward_engine::world::out_name(&address, entry.attempts, ending);
        if let Ok(bytes) = std::fs::read(dir.join(name)) {
            cx.out.write_all(&bytes)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Come back to a run that goes on without a terminal
///
/// Shows its progress until it is over. Ctrl-C stops the watching, not the run.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AttachArgs {
    /// Which run; without it the last active one
    run: Option<String>,
}

pub(crate) fn attach(cx: &mut Context, args: &AttachArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, args.run.as_deref())?;
    watch(cx, &dir)
}

/// Shows a run that somebody else drives until nobody does.
pub(crate) fn watch(cx: &mut Context, dir: &Path) -> Result<ExitCode, Error> {
    let run = open_run(dir)?;
    let telling = if cx.global.json {
        Telling::Json
    } else {
        let (screen, quiet) = (Screen::of_stderr(), cx.global.quiet);
        let counter = Counter::new(dir.to_owned(), run);
        Telling::Words { counter, screen, attendant: None, quiet }
    };
    let mut sink = progress::sink(telling);
    let mut follower = Follower::new(dir);
    loop {
        let driven = is_driven(dir);
        let mut lines = Vec::new();
        for record in follower.poll()? {
            encode(&record, &mut lines).map_err(std::io::Error::other)?;
        }
        sink(&lines);
        if !driven {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let run = open_run(dir)?;
    let status = Status::of(&run.state, false);
    let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !cx.global.json {
        writeln!(cx.err, "run {id} is {}", status.as_str())?;
    }
    Ok(ExitCode::from(crate::cmd::run::exit_code(status)))
}
