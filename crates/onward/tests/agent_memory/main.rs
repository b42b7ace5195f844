//! Whole runs of agent-memory, through the real program: scripted agents in a real repository.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod cut_off;
mod desk;
mod handover;
mod kills;
mod lost;
mod rework;
mod runs;
mod several;
#[expect(dead_code, reason = "the kill tests use the rest")]
#[path = "../support/mod.rs"]
mod support;

use support::{bench, leash};
