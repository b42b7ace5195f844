//! What does a foreign run directory mean?
//!
//! One module per system, each a [`Dialect`]. Invariant: nothing here writes, spawns or knows about
//! the engine; a dialect is a pure function of the files it is shown.

use std::collections::BTreeMap;

/// The files of a foreign run, read once: path relative to its directory, and content.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Another system's way of writing a run on disk.
pub trait Dialect {
    /// The name used in `--dialect`, in `run.adopted` and in reports, such as `conference`.
    fn name(&self) -> &'static str;

    /// Whether these files look like a run of this system. Cheap: it looks at names only.
    fn recognises(&self, files: &Files) -> bool;
}

/// Every dialect this build knows, in the order in which doubt is settled.
pub fn dialects() -> &'static [&'static dyn Dialect] {
    &[]
}
