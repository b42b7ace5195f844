//! The real world: this machine's files, processes, clock and people.
//!
//! - [`RealWorld`] is the [`World`](crate::world::World) that the engine drives runs in.
//! - `disk` and `appender` write, `look` reads, `trees` records, `grip` holds the supervisor,
//!   `inputs` waits, `held` for other programs' locks, `news` is what a driver tells, `child` runs
//!   short commands; `said` is where our words go; `schema` and `probe` do what their names say;
//!   `shared` is what all runs of a machine know.
//!
//! Invariant: the environment comes in as a value, once; nothing here asks for it again.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use jiff::tz::TimeZone;

use crate::world::open;

mod appender;
pub(crate) mod child;
mod clock;
pub(crate) mod disk;
mod grip;
pub(crate) mod held;
mod inputs;
mod interrupts;
mod look;
mod news;
pub(crate) mod probe;
mod said;
mod schema;
mod setup;
pub(crate) mod shared;
pub(crate) mod site;
pub mod stand_in;
mod stats;
mod trees;
mod worktrees;
mod world;

pub use clock::{file_time, wall_clock};
pub use grip::{look, place_from_args};
pub(crate) use inputs::Waited;
pub use interrupts::Interrupts;
pub use news::{News, Sink};
pub use setup::Setup;
pub use trees::{SnapshotArgs, snapshot_from_args};
pub use world::RealWorld;

pub use super::secrets::Redactor;

/// The time zone of the person who started us.
pub fn zone_of(env: &[(OsString, OsString)]) -> TimeZone {
    if env.iter().all(|(name, _)| name != "TZ") {
        return zone_of_machine();
    }
    let named = variable(env, "TZ").and_then(|it| TimeZone::get(it.to_str()?).ok());
    named.unwrap_or_else(TimeZone::system)
}

/// The time zone of this machine, where `TZ` does not say another one. One file has its rules; to
/// find out how it is called, the library for times would look through the database of all zones.
pub fn zone_of_machine() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let rules = || open::read_named(Path::new(LOCAL_ZONE), open::SMALL_BYTES_MAX);
    let own = || TimeZone::tzif("local", &rules().ok()?).ok();
    ZONE.get_or_init(|| own().unwrap_or_else(TimeZone::system)).clone()
}

/// The rules of the machine's own zone.
const LOCAL_ZONE: &str = "/etc/localtime";

/// Where a program lies that is on the PATH.
pub fn on_path(env: &[(OsString, OsString)], program: &str) -> Option<PathBuf> {
    let path = variable(env, "PATH")?;
    std::env::split_paths(path).map(|dir| dir.join(program)).find(|it| it.is_file())
}

/// The value of a variable; an empty one is as good as none.
pub fn variable<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let found = env.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
}
