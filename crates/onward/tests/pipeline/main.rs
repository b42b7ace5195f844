//! Whole pipelines, through the real program: scripted agents, a real repository, real task lists.
//!
//! Every wait is for a file or the end of a process, never for a time.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod adopted;
mod doubts;
mod gone;
mod kills;
mod kitchen;
mod left;
mod lists;
mod locks;
mod proved;
mod real;
#[expect(dead_code, reason = "the kill tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod tiers;
mod whose;

use support::{bench, boundaries, leash, terminal};
