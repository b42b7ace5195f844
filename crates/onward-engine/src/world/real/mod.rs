//! The real world: this machine's files, processes, clock and people.
//!
//! - [`RealWorld`] is the [`World`](crate::world::World) that the engine drives runs in.
//! - `disk` and `appender` write, `look` reads, `trees` records, `grip` holds the supervisor,
//!   `inputs` waits, `child` runs short commands; `schema` and `probe` do what their names say.
//!
//! Invariant: the environment comes in as a value, once; nothing here asks for it again.

use std::ffi::{OsStr, OsString};

mod appender;
pub(crate) mod child;
mod clock;
pub(crate) mod disk;
mod grip;
mod inputs;
mod interrupts;
mod look;
pub(crate) mod probe;
mod schema;
mod secrets;
pub(crate) mod site;
pub mod stand_in;
mod trees;
mod worktrees;
mod world;

pub use clock::{file_time, wall_clock};
pub use grip::{look, place_from_args};
pub use interrupts::Interrupts;
pub use secrets::Redactor;
pub use trees::{SnapshotArgs, snapshot_from_args};
pub use world::{RealWorld, Setup, Sink};

/// The value of a variable; an empty one is as good as none.
pub fn variable<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let found = env.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
}
