//! A conference that another system began, gone on with through the real program.
//!
//! Every wait is for a file or the end of a process, never for a time.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod agreed;
mod asked;
mod elsewhere;
mod entering;
#[expect(dead_code, reason = "the conference tests use the rest")]
#[path = "../conference/hall.rs"]
mod hall;
mod kills;
mod late;
mod laws;
mod ours;
mod prefixes;
mod reads;
mod repaired;
mod shown;
#[expect(dead_code, reason = "the kill tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod tea;
mod twice;
mod undo;

use support::{bench, leash, terminal};
