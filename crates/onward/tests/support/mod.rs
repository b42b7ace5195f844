//! What the tests of the program share: the program itself, projects to run it in, a repository
//! with an agent in it, an engine on a leash, a run that is killed at every boundary, and a
//! terminal to sit at.

pub(crate) mod bench;
pub(crate) mod boundaries;
pub(crate) mod glass;
pub(crate) mod leash;
pub(crate) mod program;
pub(crate) mod repo;
pub(crate) mod screens;
pub(crate) mod terminal;
