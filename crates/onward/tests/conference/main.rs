//! Whole conferences, through the real program: scripted agents, real worktrees, a real evaluator.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod adopted;
mod hall;
mod kills;
mod protocol;
mod rehearsed;
mod saved;
#[expect(dead_code, reason = "the kill tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod told;

use support::{bench, leash, terminal};
