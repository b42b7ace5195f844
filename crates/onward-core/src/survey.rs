//! The world as it was found when a person asked to resume: the input of the plan.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use serde_json::Value;

use crate::{
    address::Address,
    digest::Digest,
    event::{AttemptFinished, Edit, Exported, GitHead, Item, Revert},
    evidence::{Cause, Evidence, FileProof},
    finding::Finding,
    key::Difference,
    recovery::{AttemptFacts, Probed},
    state::{FileKept, Glance, Phase, State},
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
    pub contested_of_failed: BTreeMap<Address, Contested>,
    /// What an earlier resume announced to undo before it was cut short.
    pub cut_short: Vec<Revert>,
    /// Lost attempts whose session was to be continued, and still can be.
    pub sessions: BTreeSet<Address>,
    /// Outputs of done steps that are not as they were.
    pub outputs: BTreeMap<Address, Vec<OutputSeen>>,
    /// Read files of done steps, and of attempts that have ended, that are not as they were, and
    /// not because of the run itself.
    pub reads: BTreeMap<Address, Vec<ReadSeen>>,
    /// The same of files that only the `when` of a done or skipped step read, where it is decided
    /// otherwise now.
    pub whens: BTreeMap<Address, ReadSeen>,
    /// Outputs as a person left them, of steps that ran before: each is kept under the name of a
    /// rescue before the step may replace it.
    pub by_hand: BTreeMap<Address, Vec<Revert>>,
    /// The same of paths that no step of the run made, and that a step to come writes.
    pub strange_by_hand: Vec<Revert>,
    /// What done steps that are to be done again changed in place, to be undone first.
    pub redone: BTreeMap<Address, Vec<Revert>>,
    /// What a person had not committed, and an unfinished attempt replaced by a commit: kept in a
    /// rescue, whatever becomes of the attempt.
    pub overlaid: BTreeMap<Address, Vec<Revert>>,
    /// For each path of the former two: the steps that may write it.
    pub overwriters: BTreeMap<String, Vec<Overwriter>>,
    /// Groups that were opened, and would have other items now.
    pub relisted: BTreeMap<Address, Relisted>,
    /// Done steps of items that such a list has again: how each would be asked for differently now.
    pub returning: BTreeMap<Address, Vec<Difference>>,
    /// The project's branch and tree; `None` outside git.
    pub git: Option<GitSeen>,
    /// Done steps for which another witness says otherwise, and what it says.
    pub disagreements: BTreeMap<Address, String>,
    /// Those of them of which another finding tells.
    pub explained: BTreeSet<Address>,
    /// Done steps that are done again because a person entered before them, and where.
    pub reentered: BTreeMap<Address, String>,
    /// Loops that used up their turns, and for which another witness says that they are through.
    pub through: BTreeSet<Address>,
    /// Answered gates whose content has moved before anything was done on the strength of them.
    pub outdated_approvals: Vec<Address>,
    /// The workflow file, where it is no longer the one the run keeps a copy of.
    pub edited: Option<Edited>,
    /// Effects in flight that an earlier resume found to be asked for differently, part by part.
    pub begun: BTreeMap<Address, Vec<Difference>>,
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

/// A step that may write a path, or the loop or group in which such a step is to come.
#[derive(Clone, Debug, PartialEq)]
pub struct Overwriter {
    pub step: Address,
    pub how: Writes,
}

/// How it is known that a step may write a path, the surest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writes {
    /// What fills the holes of its template decides.
    Perhaps,
    /// It changed the path when it last ran, without declaring it.
    Before,
    /// It names the path.
    Named,
}

/// The items of an `each` as they would be listed now.
#[derive(Clone, Debug, PartialEq)]
pub struct Relisted {
    pub items: Vec<Item>,
    /// The files that list them; none = the workflow file itself was edited.
    pub files: Vec<String>,
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
    pub failed: Option<(Cause, String)>,
    /// How the resume will judge it, where it ended well and no agent's word counts.
    pub finished: Option<Box<AttemptFinished>>,
    /// What it changed, to be undone.
    pub reverts: Vec<Revert>,
    pub contested: Contested,
    /// What it left that proves itself, for [`AttemptFacts::proof`].
    pub proof: Option<Proof>,
    /// What proves itself but for the step's `check`, which a resume runs first.
    pub unchecked: Option<Proof>,
    /// What that check said; `None` while it has not been run.
    pub checked: Option<Probed>,
    /// Declared outputs of an attempt that ended well, of which nothing is there.
    pub gone: Vec<String>,
    /// The same of those that were emptied after its end: no person does that.
    pub emptied: Vec<String>,
    /// `None` while the probe has not been asked.
    pub probed: Option<Probed>,
    /// Why the agent's own session cannot go on, where there is one.
    pub session_lacks: Option<String>,
    /// What it did, or may have done, that no undo takes back: a line for each kind.
    pub stays: Vec<String>,
}

impl InFlight {
    /// What is undone when it is given up: all or nothing.
    pub fn undone_if_lost(&self) -> &[Revert] {
        if self.contested.is_empty() { &self.reverts } else { &[] }
    }
}

impl Survey {
    /// What is there is no work, neither a step's nor a person's.
    pub fn is_damaged(&self, path: &str) -> bool {
        self.outputs.values().flatten().any(|it| it.path == path && it.damage.is_some())
    }

    /// What other hands made of the outputs of a step.
    pub fn kept_of(&self, step: &Address) -> &[Revert] {
        self.by_hand.get(step).map_or(&[], Vec::as_slice)
    }

    /// How a done step would be asked for differently now.
    pub fn redefined(&self, step: &Address) -> Option<&Vec<Difference>> {
        let edited = self.edited.as_ref().and_then(|it| it.redefined.get(step));
        edited.or_else(|| self.returning.get(step))
    }
}

/// What of an attempt is not undone before a person has said which version counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contested {
    /// Paths that were changed since by other hands.
    pub paths: Vec<String>,
    /// Git has lost the snapshot from before it: what it changed cannot be told.
    pub snapshot_lost: bool,
}

impl Contested {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.snapshot_lost
    }

    /// `why` where its own changes are known.
    pub fn why<'a>(&self, why: &'a str) -> &'a str {
        if self.snapshot_lost {
            "git has lost the snapshot from before it, so what it changed cannot be told"
        } else {
            why
        }
    }
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
    /// What is there is no work, neither the step's nor a person's.
    pub damage: Option<Damage>,
}

/// What became of an output that was not on the disk when the machine went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is empty, or nothing but NUL bytes, and was not.
    Emptied,
    /// The machine was restarted since, it had not been synced, and nothing changed it after the
    /// step that made it.
    Torn,
}

impl OutputSeen {
    /// Only the step itself can bring it back.
    pub fn is_lost(&self) -> bool {
        self.now.is_none() || self.damage.is_some()
    }
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
    /// Done steps that the new file asks for differently, part by part, and loops that may turn
    /// again by it.
    pub redefined: BTreeMap<Address, Vec<Difference>>,
    /// Attempts in flight that the new file asks for differently, part by part.
    pub begun: BTreeMap<Address, Vec<Difference>>,
    /// Steps, as they were declared, that the new file does not have.
    pub gone: BTreeSet<String>,
}

/// Each output of each done step with the place of that, in the order in which they were made.
pub fn outputs_kept(state: &State) -> Vec<(usize, FileKept<'_>)> {
    let mut all = Vec::with_capacity(state.steps.len());
    for (place, (_, glance)) in state.steps.glances().enumerate() {
        match glance {
            Glance::Plain(plain) => all.extend(plain.files().map(|file| (place, file))),
            Glance::Whole(entry) if entry.phase == Phase::Done => {
                all.extend(entry.evidence.files.iter().map(|file| (place, FileKept::of(file))));
            }
            Glance::Whole(_) => {}
        }
    }
    all
}

/// The outputs worth a look, in the order of their paths: of each, the proof of the step that wrote
/// it last. What a later step replaced says nothing about the earlier one.
pub fn outputs_to_check(state: &State) -> Vec<(&Address, &FileProof)> {
    let mut all = outputs_as_made(state);
    all.sort_unstable_by_key(|(_, file)| &file.path);
    all
}

/// The same in the order in which they were first made.
pub fn outputs_as_made(state: &State) -> Vec<(&Address, &FileProof)> {
    outputs_where(state, |_, _| true)
}

/// Those of them that fit.
pub fn outputs_where(
    state: &State,
    fits: impl Fn(usize, &str) -> bool,
) -> Vec<(&Address, &FileProof)> {
    type Last<'a> = IndexMap<&'a str, (Timestamp, usize), FixedState>;
    let mut last = Last::with_capacity_and_hasher(state.steps.len(), FixedState::default());
    for (place, file) in outputs_kept(state) {
        let ended_at = state.steps.glance_at(place).ended_at();
        let known = last.entry(file.path).or_insert((ended_at, place));
        if known.0 <= ended_at {
            *known = (ended_at, place);
        }
    }
    let proof = |(path, (_, place)): (&str, (Timestamp, usize))| {
        let address = state.steps.name(place).filter(|_| fits(place, path))?;
        let files = &state.steps[place].evidence.files;
        files.iter().find(|file| file.path == path).map(|file| (address, file))
    };
    last.into_iter().filter_map(proof).collect()
}

/// When a step of the run last wrote each path, declared or not. What lies there now says nothing
/// about a step that read it before.
pub fn last_written(state: &State) -> BTreeMap<String, Timestamp> {
    let mut last = state.touched.clone();
    let mut note = |path: &str, at: Timestamp| match last.get_mut(path) {
        Some(known) => *known = at.max(*known),
        None => {
            last.insert(path.to_owned(), at);
        }
    };
    for (_, glance) in state.steps.glances() {
        let at = glance.ended_at();
        match glance {
            Glance::Plain(plain) => plain.files().for_each(|file| note(file.path, at)),
            Glance::Whole(entry) => {
                entry.evidence.files.iter().for_each(|file| note(&file.path, at));
            }
        }
    }
    last
}

/// Whether `path` is a log of the other system, with this content when the run last wrote to it.
pub fn was_logged_by_the_run(state: &State, path: &str, hash: Digest) -> bool {
    let Some(adopted) = &state.adopted else { return false };
    let within = match adopted.source.as_str() {
        "." => Some(path),
        source => path.strip_prefix(source).and_then(|rest| rest.strip_prefix('/')),
    };
    let is_log = |it: &&Exported| it.offset.is_some() && Some(it.path.as_str()) == within;
    state.exported.iter().filter(is_log).any(|it| it.hash == hash)
}

/// Whether `path` counts as the work of a step with this content, though a person may have made it.
pub fn counts_as_made(state: &State, path: &str, hash: Digest) -> bool {
    state.steps.glances().any(|(_, glance)| match glance {
        Glance::Plain(plain) => plain.files().any(|it| it.path == path && it.hash == hash),
        Glance::Whole(entry) => {
            entry.evidence.files.iter().any(|it| it.path == path && it.hash == hash)
        }
    })
}

/// Whether some step of the run left `path` with this content: then it is no drift.
pub fn was_made_by_the_run(state: &State, path: &str, hash: Digest) -> bool {
    state.steps.glances().any(|(_, glance)| match glance {
        Glance::Plain(plain) => plain.files().any(|it| it.path == path && it.hash == hash),
        Glance::Whole(entry) => {
            let by_hand = entry.by_hand.get(path) == Some(&hash);
            !by_hand && entry.evidence.files.iter().any(|it| it.path == path && it.hash == hash)
        }
    })
}
