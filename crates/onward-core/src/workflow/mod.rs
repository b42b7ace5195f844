//! The workflow language: what a person declares.
//!
//! `bytes -> yaml -> parse (fields, steps, includes) -> names and order checked -> model`. [`load`]
//! does all of it; what it returns needs no further check.

pub mod model;
pub mod schema;
pub mod template;

pub(crate) mod dir;
pub(crate) mod duration;
mod fields;
mod graph;
mod keys;
mod names;
mod nearest;
mod outline;
mod parallel;
mod parse;
mod parse_head;
mod parse_many;
mod parse_options;
mod parse_step;
mod problem;
mod refs;
mod shell;
mod source;
mod yaml;

pub use parse::{ADAPTERS, Loaded, TEXT_BYTES_MAX, load, reload};
pub use parse_head::fits;
pub use problem::{Problem, Severity};
