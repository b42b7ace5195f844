//! The dialect `conference` from the outside: files in, what they tell out.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod builder;
mod checks;
mod converges;
mod cuts;
mod dones;
mod gaps;
mod laws;
mod prefixes;
mod recovery;
mod reentry;
mod reverts;
mod rounds;
mod rulings;
mod spellings;
mod walk;
mod writes;
