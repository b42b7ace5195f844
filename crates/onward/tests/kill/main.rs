//! The real program, real processes, real files: kill it anywhere, nothing finished runs twice.
//!
//! Every wait is for a record of the journal, a file or the end of a process, never for a time.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod broken_worktrees;
mod choices;
mod cut_short;
mod day_one;
mod directories;
mod disk;
mod edits;
mod features;
mod findings;
mod journal;
mod kills;
mod locks;
mod menu;
mod own_log;
mod people;
mod proof;
mod sessions;
mod signals;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod waits;
mod words;
mod worktrees;

use support::{bench, leash, repo, terminal};
