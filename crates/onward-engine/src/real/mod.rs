//! The real world: this machine's files, processes, clock and people.
//!
//! - [`RealWorld`] is the [`World`](crate::world::World) that the engine drives runs in.
//! - `disk` and `appender` write, `look` reads, `trees` records, `grip` holds the supervisor,
//!   `inputs` waits, `agents`, `schema` and `probe` do what their names say.
//!
//! Invariant: the environment comes in as a value, once; nothing here asks for it again.

pub mod agents;
mod appender;
mod clock;
pub(crate) mod disk;
mod grip;
mod inputs;
mod interrupts;
mod look;
pub(crate) mod probe;
mod schema;
mod secrets;
mod sessions;
pub mod transcripts;
mod trees;
mod worktrees;
mod world;

pub use clock::{file_time, wall_clock};
pub use grip::{Look, has_orphans, look, place_from_args};
pub use interrupts::Interrupts;
pub use secrets::Redactor;
pub use trees::{SnapshotArgs, snapshot_from_args};
pub use world::{RealWorld, Setup, Sink};
