//! What the verifier said of one task.

use serde_json::Value;

/// One verdict, as it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Said<'a> {
    pub passed: bool,
    /// `PASSED`, `FAILED` or `BLOCKED`.
    pub result: &'a str,
    pub summary: &'a str,
    pub issues: Vec<&'a Value>,
}

impl Said<'_> {
    /// The verifier could not tell: nothing is to be mended, and a person is asked.
    pub fn is_blocked(&self) -> bool {
        self.result == "BLOCKED"
    }
}

/// The last verdict on this task; `None` when there is none, and then it waits for the next one.
pub fn said<'a>(verdicts: &'a Value, id: &str) -> Option<Said<'a>> {
    let all = verdicts["verdicts"].as_array()?;
    let verdict = all.iter().rev().find(|it| it["task"].as_str() == Some(id))?;
    let result = verdict["result"].as_str()?;
    Some(Said {
        passed: result == "PASSED",
        result,
        summary: verdict["summary"].as_str().unwrap_or_default(),
        issues: verdict["issues"].as_array().into_iter().flatten().collect(),
    })
}
