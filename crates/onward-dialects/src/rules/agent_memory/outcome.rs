//! What came of executing a task.

use serde_json::{Value, json};

/// The classes of an executor's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Implemented,
    /// Tried again while attempts remain: it failed, or only a part was done.
    Failed,
    /// Not tried again before a person has said so.
    Blocked,
}

impl Outcome {
    /// `cause` is `done`, or why the agent failed; `result` is what it said itself.
    pub fn of(cause: &str, result: &Value) -> Self {
        match (cause, result["status"].as_str()) {
            ("done", Some("SUCCESS")) => Self::Implemented,
            ("done", Some("BLOCKED")) => Self::Blocked,
            _ => Self::Failed,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Implemented => "implemented",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }

    /// The event that tells it.
    pub const fn event(self) -> &'static str {
        match self {
            Self::Implemented => "task-implemented",
            Self::Failed => "task-failed",
            Self::Blocked => "task-blocked",
        }
    }

    pub fn details(self, cause: &str, result: &Value) -> Value {
        let files = result["files"].as_array().cloned().unwrap_or_default();
        let status = if cause == "done" { result["status"].as_str() } else { Some(cause) };
        json!({ "status": status, "summary": result["summary"], "files_modified": files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_success_of_an_agent_that_ended_well_counts() {
        let of = |cause: &str, status: &str| Outcome::of(cause, &json!({ "status": status }));
        assert_eq!(of("done", "SUCCESS"), Outcome::Implemented);
        assert_eq!(of("timeout", "SUCCESS"), Outcome::Failed);
        assert_eq!(of("done", "PARTIAL"), Outcome::Failed);
        assert_eq!(of("done", "BLOCKED"), Outcome::Blocked);
        assert_eq!(Outcome::of("done", &Value::Null), Outcome::Failed);
    }
}
