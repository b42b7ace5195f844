//! `onward log --step`: what an attempt printed, or is printing.

use std::{
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{address::Address, graph::Role, run::Run, state::Phase};
use onward_engine::{
    engine::voice_of,
    world::{open, out_name},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::{Context, log::LOOK_EVERY},
    command::onward,
    diagnostic::printable,
    error::Error,
    ink,
    session::{Session, id_of, is_driven, open_run, word},
    speech::Speech,
    style::DIM,
};

pub(crate) struct Wanted<'a> {
    pub(crate) step: &'a str,
    pub(crate) attempt: Option<u32>,
    pub(crate) follow: bool,
    /// Byte for byte, and not in the agent's words.
    pub(crate) raw: bool,
}

/// `onward log --step --json`; with `-f` one such object for each piece, as it comes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    schema: String,
    run: String,
    step: String,
    attempt: u32,
    /// The attempt is over: nothing more comes.
    ended: bool,
    stdout: String,
    stderr: String,
}

pub(crate) fn show(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    wanted: &Wanted<'_>,
) -> Result<ExitCode, Error> {
    let address = Address::from_text(wanted.step);
    let run = open_run(dir)?;
    let last = attempts(&run, &address, wanted.step)?;
    if last == 0 && wanted.attempt.is_none() {
        return nothing(cx, &run, dir, (&address, wanted.follow));
    }
    let voice = voice_of(&run, &address, &session.machine).filter(|_| !wanted.raw);
    let mut speech = voice.map(Speech::of);
    let attempt = wanted.attempt.unwrap_or(last);
    if attempt == 0 || attempt > last {
        let tried = onward_core::plural::count(last as usize, "attempt");
        return Err(Error::Usage {
            message: format!("{} has {tried}, not {attempt}", wanted.step),
            hint: "leave `--attempt` out for the last one".into(),
        });
    }
    let file = |ending| Tail::of(dir.join(out_name(&address, attempt, ending)));
    let (mut out, mut err) = (file("out"), file("err"));
    let (mut empty, mut wordless) = (true, speech.is_some());
    loop {
        // Asked before reading, so that its last words are not missed.
        let ended = is_over(dir, &address, attempt)?;
        let (printed, complained) = (out.more(), err.more());
        empty &= printed.is_empty() && complained.is_empty();
        if cx.global.json {
            if ended || !wanted.follow || !(printed.is_empty() && complained.is_empty()) {
                cx.print_json(&Output {
                    schema: "onward.output/1".to_owned(),
                    run: id_of(dir),
                    step: wanted.step.to_owned(),
                    attempt,
                    ended,
                    stdout: String::from_utf8_lossy(&printed).into_owned(),
                    stderr: String::from_utf8_lossy(&complained).into_owned(),
                })?;
            }
        } else {
            match &mut speech {
                Some(speech) => {
                    let words = speech.words(&printed, ended || !wanted.follow);
                    wordless &= words.is_empty() && complained.is_empty();
                    for line in words {
                        writeln!(cx.out, "{line}")?;
                    }
                }
                None => ink::as_it_is(&mut *cx.out, &printed)?,
            }
            ink::as_it_is(&mut *cx.out, &complained)?;
        }
        cx.out.flush()?;
        if ended || !wanted.follow {
            if empty && !cx.global.json {
                let so_far = if ended { "printed nothing" } else { "has printed nothing so far" };
                let step = wanted.step;
                writeln!(cx.err, "{DIM}{step}, attempt {attempt}, {so_far}{DIM:#}")?;
            } else if wordless && !cx.global.json {
                let (id, step) = (id_of(dir), word(wanted.step));
                let raw = onward!("log {id} --step {step} --raw");
                writeln!(
                    cx.err,
                    "{DIM}the agent printed no words for people; all of its output: {raw}{DIM:#}"
                )?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn attempts(run: &Run, address: &Address, step: &str) -> Result<u32, Error> {
    if let Some(entry) = run.state.step(address) {
        return Ok(entry.attempts);
    }
    if run.graph.find(address).is_some() {
        return Ok(0);
    }
    let leaves = run.graph.in_order().into_iter().map(|id| run.graph.node(id));
    let leaves = leaves.filter(|node| node.role == Role::Leaf);
    let known = leaves.map(|node| node.address.to_string()).collect();
    Err(Error::NoSuchStep { step: step.to_owned(), known })
}

/// Why there is no output: it has not started, or there is nothing that could print.
fn nothing(
    cx: &mut Context,
    run: &Run,
    dir: &Path,
    (step, follow): (&Address, bool),
) -> Result<ExitCode, Error> {
    if cx.global.json {
        return cx.print_json(&Output {
            schema: "onward.output/1".to_owned(),
            run: id_of(dir),
            step: step.to_string(),
            attempt: 0,
            ended: !is_driven(dir),
            stdout: String::new(),
            stderr: String::new(),
        });
    }
    let name = printable(step.as_str());
    let node = run.graph.find(step).map(|id| run.graph.node(id));
    let is_gate = node.is_some_and(|it| run.defs.brief(it.def).is_gate());
    let why = match node.map(|it| it.role) {
        Some(Role::Leaf) if is_gate => "is a gate, and prints nothing",
        Some(Role::Leaf) | None if run.state.phase(step) == Phase::Skipped => "was skipped",
        Some(Role::Leaf) | None => "has not started",
        Some(Role::Root | Role::Group | Role::Each | Role::Item | Role::Loop | Role::Turn) => {
            return steps_of(cx, run, dir, (step, follow));
        }
    };
    writeln!(cx.err, "{DIM}{name} {why}{DIM:#}")?;
    Ok(ExitCode::SUCCESS)
}

/// So many steps of a group are named.
const NAMED_MAX: usize = 10;

/// A group prints nothing itself: the commands that show its steps, those that print first.
fn steps_of(
    cx: &mut Context,
    run: &Run,
    dir: &Path,
    (group, follow): (&Address, bool),
) -> Result<ExitCode, Error> {
    let nodes = run.graph.in_order().into_iter().map(|id| run.graph.node(id));
    let mut inside: Vec<(bool, &Address)> = nodes
        .filter(|it| it.role == Role::Leaf && it.address.is_within(group))
        .filter(|it| !run.defs.brief(it.def).is_gate())
        .map(|it| (run.state.phase(&it.address) != Phase::Running, &it.address))
        .collect();
    inside.sort_by_key(|(is_still, _)| *is_still);
    let name = printable(group.as_str());
    if inside.is_empty() {
        writeln!(cx.err, "{DIM}{name} is a group, and no step of it is known yet{DIM:#}")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(cx.err, "{DIM}{name} is a group; one of its steps:{DIM:#}")?;
    for (_, step) in inside.iter().take(NAMED_MAX) {
        let follow = if follow { " -f" } else { "" };
        let (id, step) = (id_of(dir), word(step.as_str()));
        writeln!(cx.err, "{}", onward!("log {id} --step {step}{follow}"))?;
    }
    let more = inside.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        writeln!(cx.err, "{DIM}and {more} more{DIM:#}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Nothing more is written by this attempt: it ended, another one followed, or no engine is there.
fn is_over(dir: &Path, address: &Address, attempt: u32) -> Result<bool, Error> {
    if !is_driven(dir) {
        return Ok(true);
    }
    let run = open_run(dir)?;
    let entry = run.state.step(address);
    Ok(entry.is_none_or(|it| it.attempts != attempt || it.phase != Phase::Running))
}

/// A file that grows.
pub(crate) struct Tail {
    path: PathBuf,
    read: u64,
}

impl Tail {
    pub(crate) fn of(path: PathBuf) -> Self {
        Self { path, read: 0 }
    }

    /// What was added since; a file that is not there yet has nothing.
    fn more(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Ok(mut file) = open::at(&self.path, open::To::Read)
            && file.seek(SeekFrom::Start(self.read)).is_ok()
            && file.read_to_end(&mut bytes).is_ok()
        {
            self.read += bytes.len() as u64;
        }
        bytes
    }
}
