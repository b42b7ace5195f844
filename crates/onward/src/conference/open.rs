//! Before the first round: what is asked for, the person's word, and how all is set up.

use onward_dialects::conference::facts;
use serde_json::Value;

use super::{CallError, With, seat::Seat};

/// What the start gate shows. Refused while conference.md leaves something open.
pub(super) fn open(with: &With) -> Result<Value, CallError> {
    let seat = Seat::take(&with.dir)?;
    let conference = seat.read()?;
    let missing = facts::unready(&conference);
    if !conference.history.started && !missing.is_empty() {
        let list = missing.join(", ");
        return Err(CallError::new(format!("conference.md does not say: {list}"))
            .hint("add it, or write a new one with `onward init --from conference`"));
    }
    if conference.has_worktrees() {
        super::repo::Repo::of(&seat.dir)?.head()?;
    }
    Ok(facts::opening(&conference))
}
