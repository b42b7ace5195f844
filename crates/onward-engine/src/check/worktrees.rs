//! The worktrees of a run as a resume finds them: deleted, pruned, on another branch, in the middle
//! of a rebase; and what is done about it.
//!
//! Invariant: [`look`] changes nothing, and [`mend`] only what loses nothing.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    finding::{Code, Finding},
    graph::{NodeId, Role},
    run::Run,
    state::Phase,
    survey::GitSeen,
    worktree::{WorktreePlace, worktree_of},
};

use crate::world::{Condition, Stop, WorktreeHead, World};

/// A worktree that was worked in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) place: WorktreePlace,
    pub(crate) condition: Condition,
    /// Some step has still to work in it.
    is_needed: bool,
}

/// Every worktree of the run. One that is no longer needed may be in any condition.
pub(crate) fn look<W: World>(world: &mut W, run: &Run) -> Result<Vec<Seen>, Stop> {
    if !run.defs.ids().any(|id| run.defs.brief(id).has_worktree()) {
        return Ok(Vec::new());
    }
    let nodes = run.graph.in_order();
    let has_one = |id: &NodeId| {
        let node = run.graph.node(*id);
        node.role != Role::Root && run.defs.brief(node.def).has_worktree()
    };
    if !nodes.iter().any(has_one) {
        return Ok(Vec::new());
    }
    let mut places: BTreeMap<WorktreePlace, bool> = BTreeMap::new();
    for id in nodes {
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
        Condition::Missing { has_branch: true } => {
            let hint = format!("it is made again from {branch}; what was not committed is gone");
            Finding::new(Code::WorktreeMissing, format!("{path} is gone")).with_hint(hint)
        }
        Condition::Missing { has_branch: false } => {
            let message = format!("{path} is gone, and so is {branch}");
            let hint = "it is made again from the tree as it is";
            Finding::new(Code::WorktreeMissing, message).with_hint(hint)
        }
        Condition::Unregistered { has_branch: true } => {
            let message = format!("{path} is there, but git does not know it any more");
            let hint = "git is told of it again; its files stay as they are";
            Finding::new(Code::WorktreeMissing, message).with_hint(hint)
        }
        Condition::Unregistered { has_branch: false } => {
            let message = format!("{path} is there, but {branch} is gone");
            let hint = "the branch starts over; the files stay as they are";
            Finding::new(Code::WorktreeMissing, message).with_hint(hint)
        }
        Condition::Elsewhere(head) => {
            let message = format!("{path} is not on {branch}, but on {head}");
            let hint = format!(
                "`git -C {path} switch {branch}`; or accept it: the branch is moved on to there, \
                 if that follows from it"
            );
            Finding::new(Code::WorktreeDetached, message).with_hint(hint)
        }
        Condition::Busy(what) => {
            let message = format!("{path} was left in the middle of a {what}");
            let hint = match *what {
                "bisect" => format!("`git -C {path} bisect reset`, and resume again"),
                _ => format!("`git -C {path} {what} --continue`, or `--abort`, and resume again"),
            };
            Finding::new(Code::WorktreeMidRebase, message).with_hint(hint)
        }
    };
    Some(found.at_path(path))
}

/// Makes those that are gone, or unknown to git, again. What a person must decide is left alone,
/// and one that lost its branch gets a new one only when a step is about to work in it.
pub(crate) fn mend<W: World>(world: &mut W, seen: &[Seen]) -> Result<(), Stop> {
    for one in seen.iter().filter(|one| one.is_needed) {
        match one.condition {
            Condition::Missing { has_branch: true }
            | Condition::Unregistered { has_branch: true } => {
                // Why not is found, and said, when a step is about to work in it.
                let _ = world.worktree(&one.place)?;
            }
            Condition::Missing { has_branch: false }
            | Condition::Unregistered { has_branch: false }
            | Condition::Fine
            | Condition::Unmade
            | Condition::Elsewhere(_)
            | Condition::Busy(_) => {}
        }
    }
    Ok(())
}

/// Whether [`mend`] makes the worktree in this directory again.
pub(crate) fn is_mended(seen: &[Seen], path: &str) -> bool {
    let mut of_path = seen.iter().filter(|one| one.is_needed && one.place.path == path);
    of_path.any(|one| match one.condition {
        Condition::Missing { has_branch } | Condition::Unregistered { has_branch } => has_branch,
        Condition::Fine | Condition::Unmade | Condition::Elsewhere(_) | Condition::Busy(_) => false,
    })
}

/// Directories whose files say nothing of what is on the branch, because they are gone with it, or
/// are those of something else: only the commits do.
pub(crate) fn silent(seen: &[Seen]) -> BTreeSet<String> {
    let is_silent = |one: &&Seen| match one.condition {
        Condition::Missing { has_branch: false } | Condition::Elsewhere(_) | Condition::Busy(_) => {
            true
        }
        Condition::Missing { has_branch: true }
        | Condition::Unregistered { .. }
        | Condition::Unmade
        | Condition::Fine => false,
    };
    seen.iter().filter(is_silent).map(|one| format!("{}/", one.place.path)).collect()
}

/// The trees whose files a step may still work on.
pub(crate) fn trees(seen: &[Seen]) -> impl Iterator<Item = &str> {
    let is_there = |one: &&Seen| one.is_needed && one.condition == Condition::Fine;
    seen.iter().filter(is_there).map(|one| one.place.path.as_str())
}

/// Notes done steps whose commit no branch has any more.
pub(crate) fn look_for_commits<W: World>(
    world: &mut W,
    run: &Run,
    git: &mut GitSeen,
) -> Result<(), Stop> {
    // Commits on the project's own branch: what the run last knew there is not all there now.
    let steps = || run.state.steps.noteworthy().filter(|(_, entry)| entry.phase == Phase::Done);
    for (step, entry) in steps() {
        let gone = |head: &&str| git.missing.iter().any(|commit| commit.id == **head);
        if let Some(head) = entry.head.as_deref().filter(gone) {
            git.lost_heads.insert(step.clone(), head.to_owned());
        }
    }
    let mut heads = BTreeMap::new();
    for (step, entry) in steps() {
        if let Some(commit) = entry.evidence.branch_head.clone() {
            heads.insert(step.clone(), WorktreeHead { attempt: entry.attempts, commit });
        }
    }
    if heads.is_empty() {
        return Ok(());
    }
    let lost = world.lost_commits(&heads)?;
    heads.retain(|step, _| lost.contains(step));
    git.lost_heads.extend(heads.into_iter().map(|(step, head)| (step, head.commit)));
    Ok(())
}
