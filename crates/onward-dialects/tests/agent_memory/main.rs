//! The dialect `agent-memory` from the outside: files in, standing and steps out.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod builder;
mod checks;
mod entering;
mod junk;
mod laws;
mod recovery;
#[path = "../support/rows.rs"]
mod rows;
mod sites;
mod spellings;
