//! Attempts that ended while no driver lived, judged as the resume will judge them.

use onward_core::{
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

/// How an attempt came to nothing, and outputs that are not there.
type Ended = (Option<(Cause, String)>, Vec<String>);

/// How an attempt of which the end is on disk came to nothing, and which of its outputs are not
/// there. What an agent said of its own end is heard only when the resume takes it in.
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
        return Ok((failed, Vec::new()));
    };
    let step = run.defs.step(run.graph.node(id).def);
    let (attempt, writes) = (one.entry.attempts, &started.writes);
    let seen = collect::collect(world, step, one.step, attempt, writes, false)?;
    let check_agrees = seal.check.as_ref().is_none_or(|it| judge::failure(it).is_none());
    let is_silent = run.worker(id).is_some();
    let gone = if check_agrees { seen.missing.clone() } else { Vec::new() };
    let outcome = judge::judge(step, seal, seen, &Said::default()).outcome;
    let failed = match outcome {
        Outcome::Failed { cause, detail } if !is_silent || !gone.is_empty() => {
            Some((cause, detail))
        }
        Outcome::Failed { .. } | Outcome::Done => None,
    };
    Ok((failed, gone))
}
