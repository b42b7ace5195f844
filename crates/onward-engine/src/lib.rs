//! Makes it so, and makes it last: journal, drive, revert, survey, and the worlds they run in.
//!
//! Invariant: nothing here prints, colours or parses arguments, and the drive loop reaches the
//! outside only through [`world::World`].

pub mod adopt;
pub mod archive;
pub mod brief;
pub mod care;
pub mod collect;
pub mod config;
pub mod doctor;
mod doubts;
pub mod drive;
pub mod engine;
pub mod files;
pub mod follow;
pub mod foreign;
pub mod gate;
pub mod git;
pub mod harness;
pub mod inbox;
pub mod journal;
mod needs;
mod outcome;
pub mod person;
mod prepare;
pub mod real;
pub mod rehearse;
mod relieve;
pub mod repair;
pub mod rescue;
pub mod rescues;
pub mod resume;
pub mod revert;
pub mod store;
pub mod supervisor;
pub mod survey;
pub mod verify;
mod worktrees;
pub mod world;

/// What front ends may know of other systems.
pub use onward_dialects as dialects;
