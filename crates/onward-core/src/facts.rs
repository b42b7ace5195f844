//! What the decider must know of the outside, and what it was told.
//!
//! Invariant: the decider never guesses a fact. One it lacks comes back as a [`Need`]; the engine
//! answers and asks again. The answers that were used are journaled in the attempt's key.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    address::Address, evidence::FileProof, time::Timestamp, workflow::template::FileTexts,
};

/// Answers so far, kept per step until it has started, so that each start sees the files as they
/// are then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub by_step: BTreeMap<Address, StepFacts>,
    /// Nothing new may start: a person or a signal asked the driver to stop.
    pub draining: bool,
    /// So many first attempts at plain commands may be announced before there is a slot for them.
    pub ahead: u32,
    /// A person is there to answer gates, so an open gate is no reason to let go of the run.
    pub attended: bool,
    /// Steps that a person must look at before they are tried again.
    pub held: BTreeSet<Address>,
    /// Steps that are not to start before a moment: quiet hours, as a rule.
    pub deferred: BTreeMap<Address, Timestamp>,
    /// The driver waits in place until a limit is lifted, instead of letting go of the run.
    pub waits: bool,
    /// The agent that stands in while the limit of another one holds, by the name or the program of
    /// the other.
    pub stand_ins: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepFacts {
    pub texts: FileTexts,
    /// Pattern, and the files that match it in path order.
    pub globs: BTreeMap<String, Vec<FileProof>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The text of a file, for a template that reads it.
    Text(String),
    /// The files that match a pattern, with their hashes.
    Glob(String),
}

/// What must be known, step by step, before more can be said.
pub type Lacking = BTreeMap<Address, BTreeSet<Need>>;

impl Facts {
    /// What is known about a step, to be added to.
    pub fn at(&mut self, step: &Address) -> &mut StepFacts {
        self.by_step.entry(step.clone()).or_default()
    }

    pub(crate) fn of(&self, step: &Address) -> &StepFacts {
        const NONE: &StepFacts = &StepFacts { texts: BTreeMap::new(), globs: BTreeMap::new() };
        self.by_step.get(step).unwrap_or(NONE)
    }
}

impl StepFacts {
    /// The files of all `patterns`, or the patterns that have not been looked at yet.
    pub(crate) fn files(&self, patterns: &[String]) -> Result<Vec<&FileProof>, BTreeSet<Need>> {
        let unknown = patterns.iter().filter(|pattern| !self.globs.contains_key(*pattern));
        let needs: BTreeSet<Need> = unknown.cloned().map(Need::Glob).collect();
        if needs.is_empty() {
            Ok(patterns.iter().filter_map(|pattern| self.globs.get(pattern)).flatten().collect())
        } else {
            Err(needs)
        }
    }
}
