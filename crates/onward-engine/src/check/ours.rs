//! Which changes of the tree are the run's own.

use std::collections::BTreeSet;

use onward_core::{run::Run, time::Timestamp};

/// What the run itself changed is no drift.
pub(super) struct Ours<'r> {
    pub(super) run: &'r Run,
    /// What is not as the last snapshot has it.
    pub(super) moved: BTreeSet<String>,
    /// Worktrees whose files say nothing.
    pub(super) silent: BTreeSet<String>,
}

impl Ours<'_> {
    /// Whether a later attempt changed the path without declaring it, and no one since; or whether
    /// nothing can be said of it, because its whole worktree is not what it was.
    pub(super) fn is(&self, path: &str, since: Timestamp) -> bool {
        let touched = self.run.state.touched.get(path);
        touched.is_some_and(|at| *at > since) && !self.moved.contains(path)
            || self.silent.iter().any(|tree| path.starts_with(tree))
    }
}
