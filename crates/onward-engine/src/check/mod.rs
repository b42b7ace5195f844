//! Looking at the world before anything is decided: attempts in flight, finished work, worktrees,
//! files that the decider asks for. Reads only, except that a `check` of a step is a command.

pub(crate) mod by_hand;
pub mod collect;
pub(crate) mod doubts;
pub mod elsewhere;
mod emptied;
mod ended;
pub(crate) mod foresee;
pub mod hear;
pub(crate) mod lists;
pub(crate) mod needs;
mod ours;
mod outputs;
mod overwriters;
mod proof;
mod reads;
mod stays;
pub mod survey;
mod to_come;
mod whens;
pub(crate) mod witness;
pub(crate) mod worktrees;
