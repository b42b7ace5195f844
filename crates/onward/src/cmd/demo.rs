//! `onward demo NAME`: a real run, a real SIGKILL, and the proof that nothing finished ran twice.
//!
//! One line of the table is one demo; `stage` is what all of them play on. Invariant: a demo says
//! that its proof holds only when what it checked is on disk, written by others than the engine.

mod agent_memory;
mod book;
mod conference;
mod dotagent;
mod pipeline;
mod sdlc;
mod stage;

use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::{cmd::Context, error::Error};

/// Every demo: its name, what is killed and resumed, and what plays it.
const DEMOS: &[(&str, &str, Play)] = &[
    ("book", "A workflow of fifteen steps, one of them a gate", book::run),
    ("agent-memory", "Three tasks, one of which fails its verification", agent_memory::run),
    ("conference", "Three researchers in two rounds, each in a git worktree", conference::run),
    ("dotagent", "Five phases from a wish to verified work, with a checkpoint", dotagent::run),
    ("sdlc", "An epic of four stories in two waves, each in a git worktree", sdlc::run),
    ("pipeline", "Fifteen tasks in seven phases, up to the commit", pipeline::run),
];

type Play = fn(&mut Context) -> Result<ExitCode, Error>;

/// Watch a run being killed and resumed, in a temporary directory
///
/// Scripted agents do the work. The engine is killed with SIGKILL half way, the run is resumed, and
/// what the steps themselves wrote down proves that no finished one ran again. Needs no key and no
/// network.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward demo\n  onward demo conference")]
pub(crate) struct DemoArgs {
    /// What is killed and resumed
    #[arg(value_name = "NAME", default_value = "book", value_parser = known())]
    name: String,
}

fn known() -> PossibleValuesParser {
    DEMOS
        .iter()
        .map(|(name, about, _)| PossibleValue::new(*name).help(*about))
        .collect::<Vec<_>>()
        .into()
}

pub(crate) fn run(cx: &mut Context, args: &DemoArgs) -> Result<ExitCode, Error> {
    let demo = DEMOS.iter().find(|(name, ..)| *name == args.name);
    demo.map_or_else(|| Err(Error::Demo("there is no such demo".into())), |(.., play)| play(cx))
}
