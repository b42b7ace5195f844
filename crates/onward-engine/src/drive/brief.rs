//! The brief: what an attempt should know that its command line does not say.
//!
//! Every attempt gets `ONWARD_BRIEF` and `ONWARD_RESULT`. A step with nothing behind it shares one
//! brief that says so, which keeps ten thousand small commands from making ten thousand files.

use std::fmt::Write as _;

use onward_core::{event::Revert, launch::Launch, run::Run};

use crate::{
    world::out_name,
    world::{At, Stop, World},
};

/// More paths are only counted.
const PATHS_MAX: usize = 50;
/// The brief of a first attempt with nothing to tell.
const PLAIN: &str = "out/plain.brief";

/// What an attempt has behind it.
#[derive(Clone, Copy, Debug)]
pub struct Behind<'a> {
    /// What is undone before it.
    pub reverts: &'a [Revert],
    /// It goes on in the session of the one before it.
    pub continues: bool,
}

/// Writes the brief where there is something to say, and names it in the environment.
pub fn attach<W: World>(
    world: &mut W,
    run: &Run,
    launch: &mut Launch,
    behind: &Behind<'_>,
) -> Result<(), Stop> {
    let text = text(run, launch, behind, &world.absolute(At::Run("")));
    let name = if let Some(text) = text {
        let name = out_name(&launch.step, launch.attempt, "brief");
        world.write(At::Run(&name), text.as_bytes())?;
        name
    } else {
        PLAIN.to_owned()
    };
    let result = out_name(&launch.step, launch.attempt, "result");
    for (variable, name) in [("ONWARD_BRIEF", name), ("ONWARD_RESULT", result)] {
        let path = world.absolute(At::Run(&name));
        launch.env.insert(variable.to_owned(), path);
    }
    Ok(())
}

/// Makes the shared brief, once per run.
pub fn write_plain<W: World>(world: &mut W) -> Result<(), Stop> {
    world.write(At::Run(PLAIN), b"# Brief\n\nThis is the first attempt at this step.\n")
}

fn text(run: &Run, launch: &Launch, behind: &Behind<'_>, run_dir: &str) -> Option<String> {
    let entry = run.state.step(&launch.step);
    let before = entry.filter(|entry| entry.attempts > 0)?;
    let mut text = format!("# Brief\n\nStep {}, attempt {}.\n", launch.step, launch.attempt);
    let failure = before.failure.as_ref();
    if let Some(failure) = failure {
        let (cause, detail) = (failure.0.as_str(), &failure.1);
        let attempt = launch.attempt.saturating_sub(1);
        let line = format!("\nAttempt {attempt} did not finish: {cause} ({detail}).\n");
        text.push_str(&line);
    }
    if behind.continues {
        text.push_str("\nIts session is continued, and what it changed is still in place.\n");
    }
    // What a resume undid, or what is undone between two tries.
    let resumed = run.state.resumed.as_ref().map_or(&[][..], |resumed| &resumed.reverts);
    let is_of_step = |revert: &&Revert| revert.step.as_ref() == Some(&launch.step);
    let undone: Vec<&Revert> = match behind.reverts {
        [] => resumed.iter().filter(is_of_step).collect(),
        reverts => reverts.iter().collect(),
    };
    if let Some(first) = undone.first() {
        let dir = run_dir.trim_end_matches('/');
        let rescue = &first.rescue;
        text.push_str("\nWhat it changed was undone:\n");
        for revert in undone.iter().take(PATHS_MAX) {
            writeln!(text, "- {}", revert.path).expect("a string takes all");
        }
        if undone.len() > PATHS_MAX {
            let more = undone.len() - PATHS_MAX;
            writeln!(text, "- and {more} more").expect("a string takes all");
        }
        writeln!(text, "\nIt is kept in {dir}/{rescue}, the files as they were in files/.")
            .expect("a string takes all");
    }
    Some(text)
}
