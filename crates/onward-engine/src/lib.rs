//! Makes it so, and makes it last: the stages of a resume, and the world they run in.
//!
//! One folder is one room; `ARCHITECTURE.md` lists them from the bottom up. Invariant: nothing
//! here prints, colours or parses arguments; a room uses only rooms below it (`tests/tidy` has the
//! list); and the drive loop reaches the outside only through [`world::World`].

pub mod agents;
pub mod care;
pub mod check;
pub mod drive;
pub mod engine;
pub mod foreign;
pub mod load;
pub mod locate;
pub mod play;
pub mod resume;
pub mod revert;
pub mod world;

/// What front ends may know of other systems.
pub use onward_dialects as dialects;
