//! What the built-in workflows do, as pure functions: one folder for each system.

pub mod agent_memory;
pub mod conference;
pub mod dotagent;
pub mod pipeline;
pub mod sdlc;
