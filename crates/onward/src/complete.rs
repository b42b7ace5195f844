//! What a shell offers when the user presses Tab: run ids, steps, open gates, finding codes.
//!
//! Invariant: completing reads and never fails. What cannot be read is not offered.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use clap::CommandFactory as _;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use onward_core::{finding::Code, run::Run};
use onward_engine::locate::{Project, RunDir, builtin_names};

use crate::{cli::Cli, session::open_run};

/// So many steps are offered; a longer list cannot be read.
const STEPS_MAX: usize = 500;

pub(crate) fn run() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| matching(typed, run_ids()))
}

/// The step of a flag: one of the run that is named, or of the last active one.
pub(crate) fn step() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| matching(typed, steps()))
}

/// `[RUN] STEP`: either may be meant.
pub(crate) fn run_or_step() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut all = steps();
        all.extend(run_ids());
        matching(typed, all)
    })
}

/// `[RUN] GATE OPTION`
pub(crate) fn run_or_gate() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut all = gates();
        all.extend(run_ids());
        matching(typed, all)
    })
}

/// `[RUN] N`
pub(crate) fn run_or_rescue() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut all = rescues();
        all.extend(run_ids());
        matching(typed, all)
    })
}

/// A workflow file, a directory on the way to one, or a built-in workflow.
pub(crate) fn workflow() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let is_yaml = |it: &Path| it.extension().is_some_and(|it| it == "yaml" || it == "yml");
        let files =
            PathCompleter::any().current_dir(here()).filter(move |it| is_yaml(it) || it.is_dir());
        let names = builtin_names().map(|it| (it.to_owned(), "built-in workflow".to_owned()));
        let mut all = files.complete(typed);
        all.extend(matching(typed, names.collect()));
        all
    })
}

/// One of the commands that a person types.
pub(crate) fn command() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let all = visible();
        let names = all.get_subcommands().map(|it| {
            (it.get_name().to_owned(), it.get_about().map(ToString::to_string).unwrap_or_default())
        });
        matching(typed, names.collect())
    })
}

/// What is completed: every command but the internal ones.
pub(crate) fn visible() -> clap::Command {
    let all = Cli::command();
    let commands = all.get_subcommands().filter(|it| !it.is_hide_set()).cloned();
    clap::Command::new("onward").args(all.get_arguments().cloned()).subcommands(commands)
}

/// `CODE[@STEP]`
pub(crate) fn code() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut codes: Vec<Offer> =
            Code::ALL.iter().map(|code| (code.as_str().to_owned(), String::new())).collect();
        codes.retain(|(code, _)| Code::can_be_accepted(code));
        codes.sort();
        codes.dedup();
        matching(typed, codes)
    })
}

/// What is offered, and what it is.
type Offer = (String, String);

fn matching(typed: &OsStr, all: Vec<Offer>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fits = all.into_iter().filter(|(text, _)| text.starts_with(&*typed));
    fits.map(|(text, what)| {
        let help = (!what.is_empty()).then(|| what.into());
        CompletionCandidate::new(text).help(help)
    })
    .collect()
}

/// The command line so far, as the shell hands it over behind `--`.
fn typed_words() -> Vec<OsString> {
    std::env::args_os().skip_while(|word| word != "--").skip(1).collect()
}

/// The directory that `--cwd` names, or else the current one.
fn here() -> PathBuf {
    let words = typed_words();
    let named = words.iter().enumerate().find_map(|(at, word)| {
        let word = word.to_str()?;
        match word.strip_prefix("--cwd") {
            Some("") => words.get(at + 1).map(PathBuf::from),
            Some(rest) => rest.strip_prefix('=').map(PathBuf::from),
            None => None,
        }
    });
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    named.map_or_else(|| here.clone(), |dir| here.join(dir))
}

/// The runs of the project, the last active one first.
fn runs() -> Vec<RunDir> {
    Project::locate(&here()).map(|it| it.runs().unwrap_or_default()).unwrap_or_default()
}

fn run_ids() -> Vec<Offer> {
    runs().into_iter().map(|run| (run.id.to_string(), "run".to_owned())).collect()
}

/// The run that the command line names already, or else the last active one.
fn meant() -> Option<RunDir> {
    let words = typed_words();
    let mut runs = runs();
    let is_named = |run: &RunDir| words.iter().any(|word| *word == *run.id.as_str());
    let at = runs.iter().position(is_named).unwrap_or(0);
    (at < runs.len()).then(|| runs.swap_remove(at))
}

fn last() -> Option<Run> {
    open_run(&meant()?.dir).ok()
}

fn steps() -> Vec<Offer> {
    let Some(run) = last() else { return Vec::new() };
    let known = run.state.steps.iter().take(STEPS_MAX);
    known.map(|(step, entry)| (step.to_string(), entry.phase.as_str().to_owned())).collect()
}

/// Rescues by their numbers.
fn rescues() -> Vec<Offer> {
    let dir = meant().and_then(|run| std::fs::read_dir(run.dir.join("rescue")).ok());
    let names = dir.into_iter().flatten().flatten().map(|it| it.file_name());
    let mut all: Vec<(u32, Offer)> = names
        .filter_map(|name| {
            let (number, step) = name.to_str()?.split_once('-')?;
            Some((number.parse().ok()?, (number.to_owned(), format!("rescue of {step}"))))
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, offer)| offer).collect()
}

fn gates() -> Vec<Offer> {
    let Some(run) = last() else { return Vec::new() };
    let mut offers = Vec::new();
    for id in run.graph.open_gates() {
        let step = &run.graph.node(id).address;
        offers.push((step.to_string(), "open gate".to_owned()));
        let gate = run.state.step(step).and_then(|entry| entry.gate.as_ref());
        let options = gate.map(|gate| gate.options.clone()).unwrap_or_default();
        offers.extend(options.into_iter().map(|option| (option, "answer".to_owned())));
    }
    offers
}
