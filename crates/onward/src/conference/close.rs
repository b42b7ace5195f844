//! After the last round: the two pages, the person's choice about the trees, the closing event.

use onward_engine::dialects::conference::{deed::What, facts};
use serde_json::{Value, json};

use super::{CallError, With, repo::Repo, round::whole_draft, seat::Seat};

pub(super) fn synthesis(with: &With) -> Result<Value, CallError> {
    let seat = Seat::take(&with.dir)?;
    let conference = seat.read()?;
    let synthesis = whole_draft(&seat, "synthesis.md")?;
    let report = whole_draft(&seat, "final_report.md")?;
    if conference.has_worktrees() {
        // What comes next is a choice about this branch.
        Repo::of(&seat.dir)?.best(&facts::researchers(&conference))?;
    }
    let after = seat.add(&conference, What::Synthesised { synthesis, report })?;
    seat.draw(&after)?;
    Ok(json!({"synthesis": "synthesis.md", "report": "final_report.md"}))
}

pub(super) fn close(with: &With) -> Result<Value, CallError> {
    let seat = Seat::take(&with.dir)?;
    let conference = seat.read()?;
    let has_trees = conference.has_worktrees() && !conference.history.completed;
    if has_trees {
        let repo = Repo::of(&seat.dir)?;
        match with.choice.as_str() {
            "merge" => repo.merge_best()?,
            "delete" => repo.delete(&facts::researchers(&conference))?,
            _ => {}
        }
        repo.forget()?;
    }
    let after = seat.add(&conference, What::Completed)?;
    seat.draw(&after)?;
    Ok(json!({"worktrees": with.choice, "iterations": after.history.iterations()}))
}
