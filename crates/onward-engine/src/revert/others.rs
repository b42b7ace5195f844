//! What other attempts did to a tree while one ran in it: theirs is not undone with it.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    digest::Digest,
    graph::Word,
    run::Run,
    state::{Phase, StepState},
    time::Timestamp,
    worktree::worktree_path,
};
use serde_json::{Map, Value};

use super::Footprint;
use crate::world::Change;

/// What others did to a tree while an attempt ran in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Others {
    /// Paths that another step declares.
    owned: BTreeMap<String, Owned>,
    /// Paths that others changed without declaring them.
    changed: BTreeSet<String>,
    /// Until then some of them changed what is not known, and the attempt was told to change
    /// nothing.
    unknown_until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owned {
    /// By an attempt that has not finished: it is undone with that one, if at all.
    Unfinished,
    /// Finished work is this.
    Done(Digest),
}

impl Owned {
    fn is(self, change: &Change) -> bool {
        match self {
            Self::Unfinished => true,
            Self::Done(hash) => change.left.is_some_and(|(left, _)| left == hash),
        }
    }
}

/// An attempt that has not finished, and what it changed.
#[derive(Clone, Debug)]
pub struct Unfinished<'a> {
    pub step: &'a Address,
    pub entry: &'a StepState,
    pub left: Footprint,
}

impl Others {
    pub const NONE: Self =
        Self { owned: BTreeMap::new(), changed: BTreeSet::new(), unknown_until: None };

    /// The attempts that shared the tree with one at `step` while that ran.
    pub fn of(run: &Run, me: &Unfinished<'_>, all: &[Unfinished<'_>]) -> Self {
        let mut others = Self::default();
        let since = me.entry.started_at;
        for (step, entry) in &run.state.steps {
            if entry.phase == Phase::Done && entry.ended_at > since && step != me.step {
                let files = entry.evidence.files.iter();
                let owned = files.map(|file| (file.path.clone(), Owned::Done(file.hash)));
                others.owned.extend(owned);
                others.owned.extend(held(entry));
            }
        }
        for (step, paths) in &run.state.shared {
            let ended_at = run.state.step(step).map(|entry| entry.ended_at);
            if step != me.step && ended_at.is_some_and(|it| it > since) {
                others.changed.extend(paths.iter().cloned());
            }
        }
        let ends = |entry: &StepState| match entry.phase {
            Phase::Running => Timestamp::MAX,
            Phase::Pending
            | Phase::Waiting
            | Phase::Done
            | Phase::Failed
            | Phase::Tolerated
            | Phase::Skipped
            | Phase::Lost
            | Phase::Stale => entry.ended_at,
        };
        for other in all.iter().filter(|other| other.step != me.step) {
            if ends(other.entry) > since && ends(me.entry) > other.entry.started_at {
                let declared = other.left.declared.iter().cloned();
                others.owned.extend(declared.map(|path| (path, Owned::Unfinished)));
                let paths = other.left.changes.iter().map(|change| change.path.clone());
                others.changed.extend(paths);
            }
        }
        if is_asked_to_edit_nothing(run, me) {
            others.unknown_until = silent_company(run, me, all);
        }
        others
    }

    /// It is as another one of them left it.
    pub(super) fn owns(&self, change: &Change) -> bool {
        self.owned.get(&change.path).is_some_and(|owned| owned.is(change))
    }

    /// Another one of them may have made it what it is.
    pub(super) fn has_claim(&self, change: &Change, is_declared: bool) -> bool {
        let until_ns = self.unknown_until.map(|at| at.as_micros().saturating_mul(1000));
        let may_be_theirs =
            until_ns.is_some_and(|until| change.changed_ns.is_none_or(|at| at <= until));
        let is_shared = may_be_theirs || self.changed.contains(&change.path);
        self.owned.contains_key(&change.path) || is_shared && !is_declared
    }
}

/// Its step may change nothing beyond its outputs, in the project's own tree.
fn is_asked_to_edit_nothing(run: &Run, me: &Unfinished<'_>) -> bool {
    let in_tree = me.entry.started.as_deref().is_some_and(|it| it.cwd.is_empty());
    in_tree && !edits(run, me.step)
}

fn edits(run: &Run, step: &Address) -> bool {
    let node = run.graph.find(step);
    node.is_some_and(|id| run.defs.brief(run.graph.node(id).def).edits())
}

/// Until when another attempt, or another run, was at work in the tree that did not tell all that
/// it changed there. A call tells it with its result.
fn silent_company(run: &Run, me: &Unfinished<'_>, all: &[Unfinished<'_>]) -> Option<Timestamp> {
    // A run in which no step may edit leaves the tree to other runs, too.
    if !run.defs.edit_the_tree() {
        return Some(Timestamp::MAX);
    }
    let (from, is_running) = (me.entry.started_at, |it: &StepState| it.phase == Phase::Running);
    let until = if is_running(me.entry) { Timestamp::MAX } else { me.entry.ended_at };
    let company = run.state.steps.iter().filter(|(step, entry)| {
        let is_over = entry.phase.is_settled() || entry.phase == Phase::Failed;
        let overlaps = entry.started_at < until
            && (is_running(entry) || is_over && entry.attempts > 0 && entry.ended_at > from);
        if *step == me.step || !overlaps {
            return false;
        }
        let Some(id) = run.graph.find(step) else { return false };
        let brief = run.defs.brief(run.graph.node(id).def);
        let entry: &StepState = entry;
        let tells = match brief.word() {
            Word::Run | Word::Agent => {
                let mut unfinished = all.iter().filter(|it| it.step == *step);
                let has_base = |it: &Unfinished<'_>| {
                    it.entry.started.as_deref().is_some_and(|started| started.base.is_some())
                };
                brief.edits() || unfinished.any(has_base)
            }
            Word::Call => brief.edits() || !is_running(entry) && told(entry).is_some(),
            Word::Gate | Word::Group | Word::Sub => true,
        };
        !tells && worktree_path(run, id).is_empty()
    });
    company.map(|(_, it)| if is_running(it) { Timestamp::MAX } else { it.ended_at }).max()
}

/// What a call says to have written into the project, or to be as its work left it.
fn held(entry: &StepState) -> impl Iterator<Item = (String, Owned)> + '_ {
    told(entry).into_iter().flatten().filter_map(|(path, digest)| {
        Some((path.clone(), Owned::Done(Digest::parse(digest.as_str()?.as_bytes())?)))
    })
}

fn told(entry: &StepState) -> Option<&Map<String, Value>> {
    entry.result.as_deref()?.get("held")?.as_object()
}
