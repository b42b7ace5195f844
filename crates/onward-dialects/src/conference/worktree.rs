//! The trees in which researchers change code: are they there, and are they clean?
//!
//! Invariant: asked only where the conference has such trees at all.

use onward_core::finding::Finding;

use super::{
    check::Code,
    recovery::Point,
    state::{Conference, Part},
};
use crate::{Git, Worktree};

/// Where validated work is gathered. Nothing touches it before the review of its round.
pub const BEST: &str = "conference/best";

pub fn branch_of(researcher: &str) -> String {
    format!("conference/researcher-{researcher}")
}

pub fn researcher_of(branch: &str) -> Option<&str> {
    branch.strip_prefix("conference/researcher-")
}

pub fn findings(conference: &Conference, point: &Point) -> Vec<Finding> {
    if !conference.has_worktrees() {
        return Vec::new();
    }
    let last = conference.history.rounds.keys().next_back().copied().unwrap_or(1);
    let researchers = conference.researchers_of(point.round.unwrap_or(last));
    let Some(git) = &conference.git else {
        let message = "researchers change code here, but this is no git repository";
        return vec![missing(message, "run it where its branches are")];
    };
    if !git.branches.keys().any(|name| name.starts_with("conference/")) {
        let message = "none of the branches conference/… exists";
        return vec![missing(message, "they are made again from the current branch")];
    }
    let hint = match point.round {
        Some(_) => "they are saved to the rescue before the tree goes back to its branch",
        None => "they are left as they are: no round comes that would need the tree",
    };
    let mut findings: Vec<Finding> = researchers.iter().flat_map(|it| of(git, it, hint)).collect();
    if !git.branches.contains_key(BEST) {
        let message = format!("the branch {BEST} does not exist");
        findings.push(missing(&message, "it is made again from the current branch"));
    }
    findings
}

fn missing(message: &str, hint: &str) -> Finding {
    Code::WorktreeMissing.found(message).with_hint(hint).at_path(Part::Document.file_name())
}

/// What is wrong with one researcher's branch and tree.
fn of(git: &Git, researcher: &str, if_dirty: &str) -> Vec<Finding> {
    let branch = branch_of(researcher);
    if !git.branches.contains_key(&branch) {
        let message = format!("the branch {branch} does not exist");
        return vec![missing(&message, &format!("it is made again from {BEST}"))];
    }
    let trees = || git.worktrees.iter();
    let Some(tree) = trees().find(|tree| tree.branch.as_deref() == Some(branch.as_str())) else {
        let ending = format!("researcher-{researcher}");
        let detached = trees().find(|it| it.branch.is_none() && it.path.ends_with(&ending));
        return vec![match detached {
            Some(tree) => at(Code::WorktreeDetached, tree, "is not on its branch any more")
                .with_hint(format!("see what it holds, then `git switch {branch}` in it")),
            None => missing(&format!("no worktree has the branch {branch}"), "it is made again"),
        }];
    };
    if tree.missing {
        let finding = at(Code::WorktreeMissing, tree, "is registered, but gone");
        return vec![finding.with_hint(format!("it is made again from {branch}"))];
    }
    let unfinished = tree.unfinished.iter().map(|what| {
        at(Code::WorktreeMidRebase, tree, &format!("was left in the middle of a {what}"))
            .with_hint("finish or abort it")
    });
    let count = tree.changes.len();
    let dirty =
        at(Code::DirtyTree, tree, &format!("has {count} uncommitted changes")).with_hint(if_dirty);
    unfinished.chain((count > 0).then_some(dirty)).collect()
}

fn at(code: Code, tree: &Worktree, what: &str) -> Finding {
    code.found(format!("the worktree {} {what}", tree.path)).at_path(tree.path.as_str())
}
