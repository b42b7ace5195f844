//! The workflows of `sdlc` with scripted agents in real repositories: whole, killed at every step,
//! and gone on with where another orchestrator stopped.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod ahead;
mod ends;
mod handed;
mod kills;
mod meanwhile;
mod modes;
mod named;
mod proved;
mod real;
mod styles;
#[expect(dead_code, reason = "the kill tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod whole;
mod yard;

use support::{bench, boundaries, terminal};
