//! The dialect `dotagent` from the outside: files in, standing and steps out.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod builder;
mod checks;
mod junk;
mod recovery;
#[path = "../support/rows.rs"]
mod rows;
mod sites;
mod tasks;
mod walk;
mod writes;
