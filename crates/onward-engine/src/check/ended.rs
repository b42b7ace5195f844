//! Attempts that ended while no driver lived, judged as the resume will judge them.

use onward_core::{
    event::AttemptFinished,
    evidence::{Cause, Outcome},
    judge,
    launch::Seal,
    run::Run,
    said::Said,
};

use crate::{
    check::collect,
    revert::Unfinished,
    world::{Stop, World},
};

/// What is known of an attempt before the resume takes its end in.
#[derive(Default)]
pub(super) struct Ended {
    /// How it came to nothing.
    pub(super) failed: Option<(Cause, String)>,
    /// The record of one that ended well.
    pub(super) finished: Option<Box<AttemptFinished>>,
    /// Outputs that are not there.
    pub(super) gone: Vec<String>,
}

/// How an attempt of which the end is on disk will be judged. What an agent said of its own end is
/// heard only when the resume takes it in, and so is what becomes of a worktree.
pub(super) fn look<W: World>(
    world: &mut W,
    run: &Run,
    one: &Unfinished<'_>,
    seal: &Seal,
) -> Result<Ended, Stop> {
    let failed = judge::failure(&seal.ending);
    let (Some(id), Some(started), None) =
        (run.graph.find(one.step), one.entry.started.as_deref(), &failed)
    else {
        return Ok(Ended { failed, ..Ended::default() });
    };
    let def = run.graph.node(id).def;
    let step = run.defs.step(def);
    let (attempt, writes) = (one.entry.attempts, &started.writes);
    let reads_stdout = run.defs.stdout_is_read(def);
    let seen = collect::collect(world, step, one.step, attempt, writes, reads_stdout)?;
    let check_agrees = seal.check.as_ref().is_none_or(|it| judge::failure(it).is_none());
    let is_silent = run.worker(id).is_some();
    let gone = if check_agrees { seen.missing.clone() } else { Vec::new() };
    let finished = judge::judge(step, seal, seen, &Said::default());
    Ok(match &finished.outcome {
        Outcome::Failed { cause, detail } if !is_silent || !gone.is_empty() => {
            Ended { failed: Some((*cause, detail.clone())), finished: None, gone }
        }
        Outcome::Done if !is_silent && started.cwd.is_empty() => {
            Ended { failed: None, finished: Some(Box::new(finished)), gone }
        }
        Outcome::Failed { .. } | Outcome::Done => Ended { failed: None, finished: None, gone },
    })
}
