//! The workflow language: what a person declares.
//!
//! `bytes -> yaml -> parse (fields, steps, includes) -> names and order checked -> model`. [`load`]
//! does all of it; what it returns needs no further check.

pub mod answer;
pub mod model;
pub mod permissions;
pub mod schema;
pub mod template;

mod begun;
mod bounded;
pub(crate) mod dir;
pub(crate) mod duration;
mod fields;
mod graph;
mod keys;
mod names;
mod outline;
pub(crate) mod packed;
mod parallel;
mod parse;
mod parse_head;
mod parse_many;
mod parse_options;
mod parse_step;
pub mod pattern;
mod problem;
mod refs;
pub mod shell;
mod source;
mod yaml;

pub use parse::{ADAPTERS, HEAD_BYTES, Loaded, TEXT_BYTES_MAX, begins_as_workflow, load, reload};
pub use parse_head::fits;
pub use problem::{Problem, Severity};
pub use yaml::foreign as foreign_yaml;
