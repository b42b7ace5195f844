//! Makes it so, and makes it last: journal, drive, revert, survey, and the worlds they run in.
//!
//! Invariant: nothing here prints, colours or parses arguments, and nothing reaches the outside but
//! through [`world::World`].

mod brief;
mod collect;
pub mod drive;
mod files;
pub mod gate;
pub mod journal;
pub mod resume;
mod revert;
pub mod survey;
pub mod world;
