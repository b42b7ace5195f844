//! The project's git repository: snapshots of the tree, what changed since one, what was committed.
//!
//! - `command` runs git, past `locks` that a killed one left.
//! - `repo` finds the repository, `head` reads where the branch stands.
//! - `snapshot` records the tree on the run's own chain, `compare` holds trees against each other.
//! - `hidden` sees what git was told not to look at, in copies of the person's index.
//! - `history` reads commits and who made them, `since` what became of some files,
//!   `rescue` keeps what is about to be undone.
//! - `refs` finds what git keeps for a run, and lets go of it when the run is gone.
//! - `worktree` makes, mends and commits to the worktrees of a run.
//!
//! Invariant: the person's index, head, branches, hooks and configuration are never touched. What
//! is written is objects, refs under `refs/onward/`, and worktrees on branches `onward/…`;
//! looking writes nothing at all.

mod command;
mod compare;
mod facts;
mod fifos;
mod head;
mod hidden;
mod history;
mod locks;
mod refs;
mod repo;
mod rescue;
mod since;
mod snapshot;
#[cfg(test)]
pub(crate) mod tests;
mod worktree;

pub use command::{Answer, Git, GitError, LOOKS_ONLY};
pub use compare::{Compared, Difference, Now, Side};
pub use facts::{as_of, facts, heads};
pub use head::head;
pub(crate) use head::{git_dir, ref_commit};
pub use history::{Commit, Made, reflog_action, trailers};
pub use repo::{Env, Repo};
pub use rescue::{Rescued, Undoing};
pub use since::since;
pub(crate) use snapshot::copy_index;
pub(crate) use snapshot::link_above;
pub use snapshot::{ALL_BYTES_MAX, Chain, FILE_BYTES_MAX, Taken, index_of};
pub use worktree::Condition;
pub(crate) use worktree::{ADD_ALL, START};
