//! What another system has to say to an examination: of its own files, and of steps that attempts
//! of ours were killed in.
//!
//! Invariant: its word counts only where agents of ours write nothing that it tells of.

use onward_core::{
    digest::Digest,
    event::AttemptStarted,
    evidence::Evidence,
    recovery::AttemptFacts,
    run::Run,
    state::Phase,
    survey::{InFlight, Proof},
    told::{StepTold, Told},
};

use super::worktrees;
use crate::{
    revert::{AFTERGLOW_MS, Footprint, Unfinished, theirs::Theirs},
    world::{Stop, World, files},
};

/// Nothing without another system.
#[derive(Clone, Default)]
pub struct Elsewhere<'a> {
    pub theirs: Theirs,
    pub told: Option<&'a dyn Told>,
}

impl Elsewhere<'_> {
    /// What is no half-done work of an attempt, whether the run or a person changed it.
    pub(super) fn leave_to_others(
        &self,
        all: &mut [Unfinished<'_>],
        run: &Run,
        worktrees: &[worktrees::Seen],
    ) {
        for one in all {
            one.left.leave_to(&self.theirs);
            // A worktree that the resume makes again is looked into when it is there.
            let cwd = one.entry.started.as_ref().map_or("", |started| started.cwd.as_str());
            if one.left.is_lost && worktrees::is_mended(worktrees, cwd) {
                one.left = Footprint::default();
            }
            one.left.leave_workflow(run);
        }
    }

    /// What was changed after the last sign of life, and is none of the role's own, is a person's:
    /// it is asked about, and not undone. Nothing but time would tell otherwise, and it does not.
    pub(super) fn doubt<W: World>(
        &self,
        world: &mut W,
        all: &mut [Unfinished<'_>],
        limit_ns: &dyn Fn(&Unfinished<'_>, &AttemptStarted) -> Option<i64>,
    ) -> Result<(), Stop> {
        let Some(told) = self.told else { return Ok(()) };
        for one in all.iter_mut().filter(|it| it.entry.phase == Phase::Running) {
            let started = one.entry.started.as_deref().filter(|it| it.cwd.is_empty());
            let limit_ns = started.and_then(|it| limit_ns(one, it));
            if let Some(limit_ns) = limit_ns {
                doubt(world, told, one, limit_ns)?;
            }
        }
        Ok(())
    }

    /// The other system has done meanwhile what an agent of ours began in the same tree: what that
    /// left there is part of the work now. A step with outputs of its own rests on those; where
    /// nothing was left, the step is given up and adopted as any other.
    pub(super) fn heard(&self, run: &Run, one: &Unfinished<'_>, seen: InFlight) -> InFlight {
        let Some(started) = one.entry.started.as_deref() else { return seen };
        let is_agents = run.graph.find(one.step).is_some_and(|id| run.worker(id).is_some());
        let is_shared = is_agents && started.cwd.is_empty() && started.writes.is_empty();
        let is_due = is_shared && seen.facts.dirty && !seen.facts.proof;
        let told = self.told.filter(|it| is_due && it.vouches(one.step));
        let Some(StepTold::Done(done)) = told.map(|it| it.step(one.step)) else { return seen };
        let result = Some(Digest::of(done.result.to_string().as_bytes()));
        let evidence = Evidence { result, ..Evidence::default() };
        let proof = Some(Proof { evidence, result: Some(done.result) });
        let facts = AttemptFacts { proof: true, ..seen.facts };
        InFlight { facts, proof, unchecked: None, ..seen }
    }
}

fn doubt<W: World>(
    world: &mut W,
    told: &dyn Told,
    one: &mut Unfinished<'_>,
    limit_ns: i64,
) -> Result<(), Stop> {
    let glow_ns = i64::try_from(AFTERGLOW_MS).unwrap_or_default().saturating_mul(1_000_000);
    let Footprint { changes, declared, .. } = &mut one.left;
    for change in changes.iter_mut().filter(|it| !declared.contains(&it.path)) {
        let is_late = change.changed_ns.is_some_and(|it| it > limit_ns - glow_ns);
        let may_be = is_late && told.guards(one.step, &change.path);
        let (Some((base, _)), true) = (change.base, may_be) else { continue };
        let saved = files::saved(world, base)?;
        let before = if saved.is_some() { saved } else { world.base_content(base)? };
        let (Some(before), Some((after, _))) = (before, world.content(&change.path)?) else {
            continue;
        };
        change.moved |= told.is_beyond(one.step, &before, &after);
    }
    Ok(())
}
