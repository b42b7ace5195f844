//! What the built-in workflows write into stories, gates and the status of loops, and who may edit
//! which section.
//!
//! Invariant: pure, text in and text out; what is not named stays as it was, byte for byte.

pub mod edit;
pub mod gate;
pub mod join;
pub mod sections;
pub mod turn;
pub mod wave;
