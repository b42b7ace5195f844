//! What a resume would undo: for sure, or only where something turns out so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Resumption;
use crate::{
    address::Address,
    event::Revert,
    survey::{InFlight, Survey},
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedRevert {
    pub kind: RevertKind,
    pub path: String,
    pub rows: Vec<String>,
    pub rescue: String,
    /// Whose half-done work it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Only then; without it, for sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<String>,
}

/// What an undo does to its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RevertKind {
    /// The file becomes what it was before the attempt.
    RestoreFile,
    /// The attempt made the file: it goes.
    RemoveFile,
    /// A person changed the file, and the step that made it makes it again.
    ReplaceFile,
    /// A table of another system loses the rows that belong to unfinished work.
    TruncateRows,
    /// A worktree of another system goes back to the head of its branch.
    ResetWorktree,
}

/// All of it. What is undone only if an answer comes out so is named with that answer.
pub(super) fn planned(made: &Resumption, survey: &Survey) -> Vec<PlannedRevert> {
    let mut reverts: Vec<PlannedRevert> =
        made.reverts.iter().map(|revert| planned_revert(revert, None)).collect();
    let of_failed = |step: &Address| {
        let left = survey.left_by_failed.get(step).map_or(&[][..], Vec::as_slice);
        if survey.contested_of_failed.contains_key(step) { &[] } else { left }
    };
    let seen = |step: &Address| survey.in_flight.get(step).map(InFlight::undone_if_lost);
    for (asked, only_if) in [
        (&made.to_probe, "the probe says that it did not happen"),
        (&made.to_check, "the check does not agree"),
        (&made.to_accept, "it is accepted that it may be tried again"),
    ] {
        let left = asked.iter().flat_map(|step| seen(step).unwrap_or_else(|| of_failed(step)));
        reverts.extend(left.map(|revert| planned_revert(revert, Some(only_if))));
    }
    reverts
}

fn planned_revert(revert: &Revert, only_if: Option<&str>) -> PlannedRevert {
    PlannedRevert {
        kind: match revert.base {
            Some(_) if revert.keeps_in_place() => RevertKind::ReplaceFile,
            Some(_) => RevertKind::RestoreFile,
            None => RevertKind::RemoveFile,
        },
        path: revert.path.clone(),
        rows: Vec::new(),
        rescue: revert.rescue.clone(),
        step: revert.step.as_ref().map(ToString::to_string),
        only_if: only_if.map(str::to_owned),
    }
}
