//! The dialect `sdlc` from the outside: files in, sites, standing and steps out.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod builder;
mod checks;
mod entering;
mod examples;
mod junk;
mod recovery;
#[path = "../support/rows.rs"]
mod rows;
mod sites;
mod ways;
