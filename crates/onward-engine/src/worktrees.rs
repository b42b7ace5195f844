//! The worktrees of a run as a resume finds them: deleted, pruned, on another branch, in the middle
//! of a rebase; and what is done about it.
//!
//! Invariant: [`look`] changes nothing, and [`mend`] only what loses nothing.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    finding::{Code, Finding},
    graph::Role,
    run::Run,
    state::Phase,
    survey::GitSeen,
    worktree::{WorktreePlace, worktree_of},
};

use crate::world::{Condition, Stop, World};

/// A worktree that somebody has worked in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) place: WorktreePlace,
    pub(crate) condition: Condition,
    /// Some step has still to work in it.
    is_needed: bool,
}

/// Every worktree of the run. One that is no longer needed may be in any condition.
pub(crate) fn look<W: World>(world: &mut W, run: &Run) -> Result<Vec<Seen>, Stop> {
    if !run.defs.ids().any(|id| run.defs.step(id).worktree.is_some()) {
        return Ok(Vec::new());
    }
    let mut places: BTreeMap<WorktreePlace, bool> = BTreeMap::new();
    for id in run.graph.in_order() {
        let node = run.graph.node(id);
        if node.role != Role::Leaf {
            continue;
        }
        let Ok(Some(place)) = worktree_of(run, id) else { continue };
        *places.entry(place).or_default() |= !node.is_settled();
    }
    let mut seen = Vec::new();
    for (place, is_needed) in places {
        let condition = world.worktree_condition(&place)?;
        seen.push(Seen { place, condition, is_needed });
    }
    Ok(seen)
}

/// What a person should know of them.
pub(crate) fn findings(seen: &[Seen]) -> Vec<Finding> {
    seen.iter().filter(|one| one.is_needed).filter_map(finding).collect()
}

fn finding(one: &Seen) -> Option<Finding> {
    let WorktreePlace { path, branch } = &one.place;
    let found = match &one.condition {
        Condition::Fine | Condition::Unmade => return None,
        Condition::Missing { has_branch } => {
            let hint = if *has_branch {
                format!("it is made again from {branch}; what was not committed is gone")
            } else {
                format!("{branch} is gone too: it is made again from the tree as it is")
            };
            Finding::new(Code::WorktreeMissing, format!("{path} is gone")).with_hint(hint)
        }
        Condition::Unregistered => {
            let message = format!("{path} is there, but git does not know it any more");
            let hint = "git is told of it again; its files stay as they are";
            Finding::new(Code::WorktreeMissing, message).with_hint(hint)
        }
        Condition::Elsewhere(head) => {
            let message = format!("{path} is not on {branch}, but on {head}");
            let hint = format!("`git -C {path} switch {branch}`, or accept it to go on from there");
            Finding::new(Code::WorktreeDetached, message).with_hint(hint)
        }
        Condition::Busy(what) => {
            let message = format!("{path} was left in the middle of {what}");
            let hint = "end it, one way or the other, and resume again";
            Finding::new(Code::WorktreeMidRebase, message).with_hint(hint)
        }
    };
    Some(found.at_path(path))
}

/// Makes those that are gone, or unknown to git, again. What a person must decide is left alone.
pub(crate) fn mend<W: World>(world: &mut W, seen: &[Seen]) -> Result<(), Stop> {
    for one in seen.iter().filter(|one| one.is_needed) {
        match one.condition {
            Condition::Missing { has_branch: true } | Condition::Unregistered => {
                world.worktree(&one.place)?;
            }
            Condition::Missing { has_branch: false }
            | Condition::Fine
            | Condition::Unmade
            | Condition::Elsewhere(_)
            | Condition::Busy(_) => {}
        }
    }
    Ok(())
}

/// Directories whose files say nothing, because they are gone: the commits on the branch do.
pub(crate) fn gone(seen: &[Seen]) -> BTreeSet<String> {
    let gone = seen.iter().filter(|one| matches!(one.condition, Condition::Missing { .. }));
    gone.map(|one| format!("{}/", one.place.path)).collect()
}

/// Notes done steps whose commit no branch has any more.
pub(crate) fn look_for_commits<W: World>(
    world: &mut W,
    run: &Run,
    git: &mut GitSeen,
) -> Result<(), Stop> {
    let mut heads = BTreeMap::new();
    for (step, entry) in &run.state.steps {
        if let Some(head) = entry.evidence.branch_head.as_ref()
            && entry.phase == Phase::Done
        {
            heads.insert(step.clone(), head.clone());
        }
    }
    if heads.is_empty() {
        return Ok(());
    }
    let lost = world.lost_commits(&heads.values().cloned().collect())?;
    heads.retain(|_, head| lost.contains(head));
    git.lost_heads = heads;
    Ok(())
}
