//! Makes it so, and makes it last: journal, drive, revert, survey, and the worlds they run in.
//!
//! Invariant: nothing here prints, colours or parses arguments, and the drive loop reaches the
//! outside only through [`world::World`].

pub mod brief;
pub mod collect;
pub mod config;
pub mod drive;
pub mod engine;
pub mod files;
pub mod follow;
pub mod gate;
pub mod harness;
pub mod inbox;
pub mod journal;
mod needs;
pub mod person;
pub mod real;
mod relieve;
pub mod resume;
pub mod revert;
pub mod store;
pub mod supervisor;
pub mod survey;
pub mod world;
