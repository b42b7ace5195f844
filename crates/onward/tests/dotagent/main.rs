//! Whole runs of dotagent, through the real program: scripted agents, a real repository, real
//! worktrees, and checkpoints that the original could take over.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod adopted;
mod between;
mod cut_off;
mod entered;
mod handed;
mod kills;
mod lost;
mod office;
mod other;
#[expect(dead_code, reason = "the kill tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod whole;

use support::{bench, leash};
