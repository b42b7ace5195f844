//! The workflow language: what a person declares.

pub mod model;
pub mod template;
