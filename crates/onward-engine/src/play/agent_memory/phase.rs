//! From one phase to the next, and the end.

use onward_dialects::agent_memory::{read::End, write::Entry};
use serde_json::{Value, json};

use super::{CallError, Order, desk::Desk};

pub(super) fn phase(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (state, _) = desk.look()?;
    let from = state.hint.unwrap_or(order.phase.saturating_sub(1));
    if from != order.phase || state.hint.is_none() {
        let details = desk.details(json!({}));
        desk.log(&[Entry::phase(from, order.phase, "phase_complete", "", details)])?;
    }
    Ok(json!({ "phase": order.phase }))
}

pub(super) fn close(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (state, _) = desk.look()?;
    if state.end != Some(End::Completed) {
        let details = desk.details(json!({ "outcome": "success" }));
        desk.log(&[Entry::new("run-complete", details)])?;
    }
    Ok(json!({}))
}
