//! The logic of the built-in workflow `agent-memory`, not of its files: what an outcome means, what
//! a verdict says, which quality task it makes, and the pages that are written.
//!
//! Invariant: pure; what an agent wrote is data and is quoted as such.

pub mod outcome;
pub mod page;
pub mod quality;
pub mod verdict;
