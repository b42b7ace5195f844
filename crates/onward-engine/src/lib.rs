//! Makes it so, and makes it last.

pub mod supervisor;
