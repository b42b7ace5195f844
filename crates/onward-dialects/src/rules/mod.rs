//! What the built-in workflows do, as pure functions: one folder for each system.

pub mod conference;
