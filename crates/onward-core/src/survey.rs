//! The world as it was found when a person asked to resume: the input of the plan.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    address::Address,
    digest::Digest,
    event::{Edit, GitHead, Revert},
    evidence::{Evidence, FileProof},
    finding::Finding,
    key::Difference,
    recovery::{AttemptFacts, Probed},
    state::{Phase, State},
    time::Timestamp,
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    pub now: Timestamp,
    /// A driver holds the run at this moment.
    pub driven: bool,
    /// For each attempt the journal says is running.
    pub in_flight: BTreeMap<Address, InFlight>,
    /// For each failed step: what its last attempt left, to be undone before another.
    pub left_by_failed: BTreeMap<Address, Vec<Revert>>,
    /// For each failed step: what is not undone, because it was changed since by other hands.
    pub contested_of_failed: BTreeMap<Address, Vec<String>>,
    /// What an earlier resume announced to undo before it was cut short.
    pub cut_short: Vec<Revert>,
    /// Lost attempts whose session was to be continued, and still can be.
    pub sessions: BTreeSet<Address>,
    /// Outputs of done steps that are not as they were.
    pub outputs: BTreeMap<Address, Vec<OutputSeen>>,
    /// Read files of done steps that are not as they were, and not because of the run itself.
    pub reads: BTreeMap<Address, Vec<ReadSeen>>,
    /// The project's branch and tree; `None` outside git.
    pub git: Option<GitSeen>,
    /// Done steps for which another witness says otherwise, and what it says.
    pub disagreements: BTreeMap<Address, String>,
    /// Done steps that are done again because a person entered before them, and where.
    pub reentered: BTreeMap<Address, String>,
    /// Answered gates whose content has moved before anything was done on the strength of them.
    pub outdated_approvals: Vec<Address>,
    /// The workflow file, where it is no longer the one the run keeps a copy of.
    pub edited: Option<Edited>,
    /// What the layers below found: torn tail, damage, another driver.
    pub findings: Vec<Finding>,
}

/// The project as git sees it, next to what the run last knew of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GitSeen {
    /// As the run was opened, or last resumed.
    pub known: GitHead,
    pub now: GitHead,
    /// Commits that lead from `known` to `now`, newest first.
    pub commits: Vec<CommitSeen>,
    /// Commits the run knew that `now` does not lead to, newest first.
    pub missing: Vec<CommitSeen>,
    /// Paths that are not as the run last left or saw them, without those of attempts in flight or
    /// failed ones. Empty where the run takes no snapshots.
    pub changed: Vec<String>,
    /// Done steps whose commit no branch has any more.
    pub lost_heads: BTreeMap<Address, String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommitSeen {
    pub id: String,
    pub subject: String,
    /// The attempt of this run that made it, by its trailers or by the reflog.
    pub by: Option<(Address, u32)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct InFlight {
    pub facts: AttemptFacts,
    /// How it came to nothing, where its end is on disk and says so.
    pub failed: Option<String>,
    /// What it changed, to be undone.
    pub reverts: Vec<Revert>,
    /// Paths that were changed since by other hands.
    pub contested: Vec<String>,
    /// What it left that proves itself, for [`AttemptFacts::proof`].
    pub proof: Option<Proof>,
    /// `None` while the probe has not been asked.
    pub probed: Option<Probed>,
    /// Why the agent's own session cannot go on, where there is one.
    pub session_lacks: Option<String>,
}

/// Work that speaks for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    pub evidence: Evidence,
    pub result: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OutputSeen {
    pub path: String,
    /// `None` = it is gone.
    pub now: Option<FileProof>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReadSeen {
    pub path: String,
    /// `None` = it was not there, and matches what the step reads.
    pub was: Option<Digest>,
    pub now: Option<Digest>,
}

/// A workflow file that was edited since it was pinned.
#[derive(Clone, Debug, PartialEq)]
pub struct Edited {
    pub hash: Digest,
    pub edits: Vec<Edit>,
    /// Done steps that the new file asks for differently, part by part.
    pub redefined: BTreeMap<Address, Vec<Difference>>,
}

/// The outputs worth a look: of each path, the proof of the step that wrote it last. What a later
/// step replaced says nothing about the earlier one.
pub fn outputs_to_check(state: &State) -> Vec<(&Address, &FileProof)> {
    let mut last: BTreeMap<&str, (Timestamp, &Address, &FileProof)> = BTreeMap::new();
    for (address, entry) in &state.steps {
        if entry.phase != Phase::Done {
            continue;
        }
        for file in &entry.evidence.files {
            let known = last.get(file.path.as_str()).map(|(at, ..)| *at);
            if known.is_none_or(|at| at <= entry.ended_at) {
                last.insert(&file.path, (entry.ended_at, address, file));
            }
        }
    }
    last.into_values().map(|(_, address, file)| (address, file)).collect()
}

/// Whether some step of the run left `path` with this content: then it is no drift.
pub fn was_made_by_the_run(state: &State, path: &str, hash: Digest) -> bool {
    let mut files = state.steps.values().flat_map(|entry| &entry.evidence.files);
    files.any(|file| file.path == path && file.hash == hash)
}
