//! Attempts that ended while no driver lived, judged as the resume will judge them.

use onward_core::{
    event::{AttemptFinished, Event},
    evidence::{Cause, Outcome},
    judge::{self, Collected, ResultSeen},
    launch::Seal,
    run::Run,
};

use crate::{
    check::{collect, hear},
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
    /// What the resume journals of its agent's words before that, without a price of ours.
    pub(super) heard: Vec<Event>,
    /// Outputs that are not there.
    pub(super) gone: Vec<String>,
}

/// How an attempt of which the end is on disk will be judged, also by what its agent said of it.
/// What becomes of a worktree is known only when the resume takes it in.
pub(super) fn look<W: World>(
    world: &mut W,
    run: &Run,
    one: &Unfinished<'_>,
    seal: &Seal,
) -> Result<Ended, Stop> {
    let failed = judge::failure(&seal.ending);
    let (Some(id), Some(started)) = (run.graph.find(one.step), one.entry.started.as_deref()) else {
        return Ok(Ended { failed, ..Ended::default() });
    };
    let said = hear::said_until(world, run, one.step, seal.at)?;
    if failed.is_some() && said.is_none() {
        return Ok(Ended { failed, ..Ended::default() });
    }
    let said = said.unwrap_or_default();
    let heard = hear::news((one.step, one.entry.attempts, one.entry), &said, None);
    let def = run.graph.node(id).def;
    let step = run.defs.step(def);
    let (attempt, writes) = (one.entry.attempts, &started.writes);
    let reads_stdout = run.defs.stdout_is_read(def);
    let mut seen = if failed.is_none() {
        collect::collect(world, step, one.step, attempt, writes, reads_stdout)?
    } else {
        Collected::default()
    };
    if hear::answers_in_words(&said) {
        seen.stdout = seen.stdout.map(|_| hear::answer(&said).unwrap_or_default());
    }
    let in_words = hear::result(&said, step.result.is_some());
    if let Some(result) = in_words.filter(|_| failed.is_none() && seen.result == ResultSeen::Absent)
    {
        seen.result = collect::held(world, step, result);
    }
    let check_agrees = seal.check.as_ref().is_none_or(|it| judge::failure(it).is_none());
    let missing = if check_agrees { seen.missing.clone() } else { Vec::new() };
    let finished = judge::judge(step, seal, seen, &said);
    // Where it failed for another reason, they are no more than what it did not come to.
    let is_proof = |cause: Cause| cause == Cause::Unproved;
    let gone = match &finished.outcome {
        Outcome::Failed { cause, .. } if !is_proof(*cause) => Vec::new(),
        Outcome::Failed { .. } | Outcome::Done => missing,
    };
    Ok(match &finished.outcome {
        Outcome::Failed { cause, detail } => {
            // An agent's words may hold what no screen shows.
            let detail = world.cleaned(detail.clone());
            Ended { failed: Some((*cause, detail)), finished: None, heard, gone }
        }
        Outcome::Done if started.cwd.is_empty() => {
            Ended { failed: None, finished: Some(Box::new(finished)), heard, gone }
        }
        Outcome::Done => Ended { failed: None, finished: None, heard, gone },
    })
}
