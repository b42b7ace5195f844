//! Looking at the world before anything is decided: attempts in flight, finished work, worktrees,
//! files that the decider lacks. Reads only, except that a `check` of a step is a command.

pub mod collect;
pub(crate) mod doubts;
pub mod hear;
pub(crate) mod needs;
pub mod survey;
pub(crate) mod worktrees;
