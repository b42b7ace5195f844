//! Statuses and verdicts in any spelling: `in_progress`, `In Progress` and `IN-PROGRESS` are one.

use serde_json::Value;

/// How far a task or phase is, in the words that most systems use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Pending,
    Running,
    /// The work is done, and was not looked at yet.
    PreComplete,
    Blocked,
    Failed,
    Done,
    Verified,
}

#[rustfmt::skip]
const SPELLINGS: [(&str, Progress); 24] = [
    ("pending",     Progress::Pending),
    ("todo",        Progress::Pending),
    ("open",        Progress::Pending),
    ("queued",      Progress::Pending),
    ("ready",       Progress::Pending),
    ("notstarted",  Progress::Pending),
    ("running",     Progress::Running),
    ("inprogress",  Progress::Running),
    ("started",     Progress::Running),
    ("active",      Progress::Running),
    ("precomplete", Progress::PreComplete),
    ("precompleted", Progress::PreComplete),
    ("blocked",     Progress::Blocked),
    ("failed",      Progress::Failed),
    ("failure",     Progress::Failed),
    ("error",       Progress::Failed),
    ("errored",     Progress::Failed),
    ("aborted",     Progress::Failed),
    ("complete",    Progress::Done),
    ("completed",   Progress::Done),
    ("done",        Progress::Done),
    ("finished",    Progress::Done),
    ("closed",      Progress::Done),
    ("verified",    Progress::Verified),
];

/// `None` for a word that is no status.
pub fn progress(text: &str) -> Option<Progress> {
    let word = bare(text);
    SPELLINGS.iter().find(|(known, _)| *known == word).map(|(_, progress)| *progress)
}

/// Letters and digits only, in lower case.
pub fn bare(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a verdict is good. Everything that is not known to be good is not.
pub fn is_good(verdict: &Value) -> bool {
    match verdict {
        Value::Bool(good) => *good,
        Value::String(text) => matches!(bare(text).as_str(), "pass" | "passed" | "approved" | "ok"),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_known_in_any_spelling() {
        for text in ["in_progress", "In Progress", "IN-PROGRESS", "inProgress"] {
            assert_eq!(progress(text), Some(Progress::Running), "{text}");
        }
        assert_eq!(progress("pre_complete"), Some(Progress::PreComplete));
        assert_eq!(progress("perhaps"), None);
        assert_eq!(progress(""), None);
    }

    #[test]
    fn only_what_is_known_to_be_good_is_good() {
        for good in [json!("PASS"), json!("passed"), json!("Approved"), json!("ok"), json!(true)] {
            assert!(is_good(&good), "{good}");
        }
        for bad in [json!("FAIL"), json!("pass?no"), json!(1), json!(null), json!({}), json!(false)]
        {
            assert!(!is_good(&bad), "{bad}");
        }
    }
}
