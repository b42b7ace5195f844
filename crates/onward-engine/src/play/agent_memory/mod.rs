//! The functions of the workflow `agent-memory`.
//!
//! - `desk` is the run's directory: held, read, written.
//! - `open`, `task`, `judge` and `phase` are the functions, in the order of a run.
//!
//! Invariant: events go to `events/onward` alone, after the files that they speak of; an event that
//! a step has written already is not written again.

mod desk;
mod judge;
mod open;
mod phase;
mod task;

use super::{CallError, Function, Order};

pub(super) const FUNCTIONS: [(&str, Function); 12] = [
    ("agent-memory.open", open::open),
    ("agent-memory.check", open::check),
    ("agent-memory.approve", open::approve),
    ("agent-memory.lost", open::lost),
    ("agent-memory.whole", |_| Ok(serde_json::json!({}))),
    ("agent-memory.claim", task::claim),
    ("agent-memory.record", task::record),
    ("agent-memory.judge", judge::judge),
    ("agent-memory.survey", task::survey),
    ("agent-memory.settle", task::settle),
    ("agent-memory.phase", phase::phase),
    ("agent-memory.close", phase::close),
];
