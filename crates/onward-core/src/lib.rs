//! What is true about a run, and what next?
//!
//! Invariant: nothing in this crate touches a file, a clock, a process, an environment variable, a
//! thread or a random number. What it must know of the outside comes in as a value; what it wants
//! done goes out as a value.

pub mod address;
pub mod bill;
pub mod decide;
pub mod digest;
pub mod event;
pub mod evidence;
pub mod facts;
pub mod finding;
pub mod graph;
pub mod history;
pub mod id;
pub mod journal;
pub mod judge;
pub mod kept;
pub mod key;
pub mod launch;
mod listed;
pub mod mark;
pub mod name;
pub mod nearest;
pub mod overwritten;
pub mod plan;
pub mod plural;
pub mod policy;
pub mod recovery;
pub mod run;
pub mod said;
mod scope;
pub mod state;
pub mod survey;
#[cfg(test)]
mod testing;
pub mod time;
pub mod told;
pub mod view;
mod words;
pub mod workflow;
pub mod worktree;
