//! After the last round: the two pages, the user's choice about the trees, the closing event.

use onward_dialects::{conference::write::happening::What, rules::conference::results};
use serde_json::{Value, json};

use super::{CallError, Order, round::whole_draft, seat::Seat};

pub(super) fn synthesis(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let conference = seat.read()?;
    let synthesis = whole_draft(&seat, "synthesis.md")?;
    let report = whole_draft(&seat, "final_report.md")?;
    if conference.has_worktrees() {
        // The gate that follows offers to merge this branch.
        seat.repo()?.best(&results::researchers(&conference))?;
    }
    let after = seat.add(&conference, What::Synthesised { synthesis, report })?;
    seat.draw(&after)?;
    Ok(json!({"synthesis": "synthesis.md", "report": "final_report.md"}))
}

pub(super) fn close(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let conference = seat.read()?;
    let has_trees = conference.has_worktrees() && !conference.history.completed;
    if has_trees {
        let repo = seat.repo()?;
        match order.choice.as_str() {
            "merge" => repo.merge_best()?,
            "delete" => repo.delete(&results::researchers(&conference))?,
            _ => {}
        }
        repo.forget()?;
    }
    let after = seat.add(&conference, What::Completed)?;
    seat.draw(&after)?;
    Ok(json!({"worktrees": order.choice, "iterations": after.history.iterations()}))
}
