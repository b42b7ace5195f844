//! Agents through the real binary, played by scripts: every way in which they end, limits,
//! sessions, briefs, words and money.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod ends;
mod examples;
mod limits;
mod matrix;
mod money;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../support/program.rs"]
mod program;
mod quiet;
mod roles;
mod stage;
mod waiting;
mod words;
