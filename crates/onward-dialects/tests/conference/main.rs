//! The dialect `conference` from the outside: files in, plan out.

mod builder;
mod checks;
mod converges;
mod laws;
mod prefixes;
mod recovery;
mod reverts;
mod spellings;
