//! A try that came to nothing: which class of failure it was, and how the next try differs.
//!
//! Invariant: no task is tried more than three times without a person; what each try came to stays
//! in execution.json.

use onward_core::told::Change;
use serde_json::{Map, Value, json};

use super::{Refused, Scene};
use crate::dotagent::{ATTEMPTS_MAX, write::Checkpoint};

/// The classes, as the system knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The agent itself failed: nothing is known against the task.
    Transient,
    /// It lacked something that can be told.
    ContextGap,
    /// It was too much at once.
    Complexity,
    /// Its files or contracts stand in the way.
    Boundary,
}

impl Class {
    /// What execution.json calls the next try, and what the implementer is told.
    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Transient => ("simple_retry", "Try it again."),
            Self::ContextGap => {
                ("context_enhancement", "Read first what went wrong, and mend that.")
            }
            Self::Complexity => (
                "scope_reduction",
                "Split it: do the smallest part that can be verified first, then the rest.",
            ),
            Self::Boundary => {
                ("escalation", "The contract was looked at since: keep to it as it is now.")
            }
        }
    }

    pub(super) const fn strategy(self) -> &'static str {
        self.row().0
    }

    /// By what the implementer says of its own failure; a reason that is not known lacks context.
    pub(super) fn of_word(word: &str) -> Self {
        match crate::kit::status::bare(word).as_str() {
            "transient" | "timeout" | "network" => Self::Transient,
            "complexity" | "toolarge" => Self::Complexity,
            "boundary" | "boundaryviolation" | "contract" | "contractchange"
            | "dependencyissue" => Self::Boundary,
            _ => Self::ContextGap,
        }
    }
}

/// The advice for a try that follows this strategy.
pub(super) fn advice(strategy: &str) -> &'static str {
    let all = [Class::Transient, Class::ContextGap, Class::Complexity, Class::Boundary];
    let known = all.into_iter().find(|it| it.strategy() == strategy);
    known.unwrap_or(Class::ContextGap).row().1
}

/// What a task takes from a try that failed.
pub(super) fn lesson(task: &Map<String, Value>, class: Class, error: &str) -> Value {
    let mut context = task.get("context_added").and_then(Value::as_array).cloned();
    let context = context.get_or_insert_default();
    if !error.is_empty() && !context.iter().any(|it| it == error) {
        context.push(error.into());
    }
    json!({ "last_error": error, "retry_strategy": class.strategy(), "context_added": context })
}

/// One more try, or none any more.
pub(super) fn fail(
    scene: &Scene<'_>,
    checkpoint: &mut Checkpoint,
    id: &str,
    class: Class,
    error: &str,
) -> Result<(), Refused> {
    let task = checkpoint.task(id).cloned().unwrap_or_default();
    let attempts = super::tasks::attempts(&task);
    let mut fields = lesson(&task, class, error);
    if attempts < ATTEMPTS_MAX {
        fields["status"] = "pending".into();
        fields["attempts"] = (attempts + 1).into();
        checkpoint.set_task(id, fields);
        return Ok(());
    }
    fields["status"] = "failed".into();
    checkpoint.set_task(id, fields);
    let tried = json!({"strategy": class.strategy(), "result": error});
    let mut recovery =
        checkpoint.execution.get("recovery_attempted").and_then(Value::as_array).cloned();
    let recovery = recovery.get_or_insert_default();
    if recovery.last() != Some(&tried) {
        recovery.push(tried);
    }
    let report = json!({
        "failure_reason": format!("{id}: {error}"), "attempts_made": attempts,
        "recovery_attempted": recovery,
        "recommendation": "look at the task's outputs, mend what stands in the way, then resume",
    });
    if let Value::Object(report) = report {
        checkpoint.execution.extend(report);
    }
    checkpoint.stamp(scene.at);
    let changes: Vec<Change> = checkpoint.changes(scene.files);
    let message = format!("{id} has failed after {attempts} attempts: {error}");
    let hint = "mend what stands in the way, then `onward resume --accept attempts-used-up`";
    Err(Refused { changes, ..Refused::new(message, hint) })
}
