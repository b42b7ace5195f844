//! From bytes to the state of a run: the journal, written and read, and a watcher of it.

pub mod checkpoint;
pub mod follow;
pub mod journal;
