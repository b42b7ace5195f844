//! What another system has to say to an examination: of its own files, and of steps that attempts
//! of ours were killed in.
//!
//! Invariant: its word counts only where agents of ours write nothing that it tells of.

use onward_core::{
    digest::Digest,
    evidence::Evidence,
    recovery::AttemptFacts,
    run::Run,
    survey::{InFlight, Proof},
    told::{StepTold, Told},
};

use crate::revert::{Unfinished, theirs::Theirs};

/// Nothing without another system.
#[derive(Clone, Default)]
pub struct Elsewhere<'a> {
    pub theirs: Theirs,
    pub told: Option<&'a dyn Told>,
}

impl Elsewhere<'_> {
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
