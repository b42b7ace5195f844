//! Worktrees of git that a system keeps its work in, one for each branch.
//!
//! Invariant: says what there is; what that means is for the system to say.

use crate::{Git, Worktree};

/// What there is of one branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree<'a> {
    NoBranch,
    /// The branch exists, and no worktree is on it.
    NoTree,
    /// A worktree whose path ends as its branch does, and that is on no branch any more.
    Detached(&'a Worktree),
    /// Git has it on its list, and its directory is gone.
    Gone(&'a Worktree),
    There(&'a Worktree),
}

/// Looks for the worktree of a branch such as `conference/researcher-A`.
pub fn tree_of<'a>(git: &'a Git, branch: &str) -> Tree<'a> {
    if !git.branches.contains_key(branch) {
        return Tree::NoBranch;
    }
    let is_on = |tree: &&Worktree| tree.branch.as_deref() == Some(branch);
    let ending = branch.rsplit('/').next().unwrap_or(branch);
    let is_left = |tree: &&Worktree| tree.branch.is_none() && tree.path.ends_with(ending);
    match git.worktrees.iter().find(is_on) {
        Some(tree) if tree.missing => Tree::Gone(tree),
        Some(tree) => Tree::There(tree),
        None => git.worktrees.iter().find(is_left).map_or(Tree::NoTree, Tree::Detached),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Branch;

    #[test]
    fn a_branch_has_its_tree_or_something_is_wrong_with_it() {
        let tree = |path: &str, branch: Option<&str>, missing: bool| Worktree {
            path: path.to_owned(),
            branch: branch.map(str::to_owned),
            missing,
            ..Worktree::default()
        };
        let worktrees = vec![
            tree("t/a", Some("x/a"), false),
            tree("t/b", Some("x/b"), true),
            tree("t/c", None, false),
        ];
        let branch = |name: &str| (format!("x/{name}"), Branch::default());
        let branches = ["a", "b", "c", "d"].map(branch).into();
        let git = Git { branches, worktrees, ..Git::default() };
        assert_eq!(tree_of(&git, "x/a"), Tree::There(&git.worktrees[0]));
        assert_eq!(tree_of(&git, "x/b"), Tree::Gone(&git.worktrees[1]));
        assert_eq!(tree_of(&git, "x/c"), Tree::Detached(&git.worktrees[2]));
        assert_eq!(tree_of(&git, "x/d"), Tree::NoTree);
        assert_eq!(tree_of(&git, "x/e"), Tree::NoBranch);
    }
}
