//! The real program, real processes, a real disk: kill it anywhere, nothing finished runs twice.
//!
//! Every wait is for a record of the journal, a file or the end of a process, never for a time.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod bench;
mod broken_worktrees;
mod choices;
mod cut_short;
mod day_one;
mod disk;
mod edits;
mod features;
mod findings;
mod journal;
mod kills;
mod locks;
mod menu;
mod people;
mod proof;
mod repo;
mod sessions;
mod signals;
mod terminal;
mod waits;
mod worktrees;
