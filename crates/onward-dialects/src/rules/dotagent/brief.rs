//! What an implementer is told: everything, because it remembers nothing and may not see `memory/`.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{Scene, failure::advice};

const CONTRACTS: &str = "memory/contracts/";
/// Longer contracts are cut in a brief; the file has them whole.
const CONTRACT_CHARS_MAX: usize = 8000;

pub(super) fn task_text(
    scene: &Scene<'_>,
    id: &str,
    task: &Map<String, Value>,
    number: u32,
) -> String {
    let said = ["description", "summary", "title", "name"];
    let what = said.iter().find_map(|key| task.get(*key).and_then(Value::as_str));
    let mut text = format!("Do the task {id}: {}\n", what.unwrap_or("as the design says"));
    let files = list(task, "files");
    if !files.is_empty() {
        let _ = writeln!(text, "\nYour files, and no others: {}", files.join(", "));
    }
    text.push_str(&contracts(scene));
    text.push_str(&earlier(task, number));
    text
}

pub(super) fn repair_text(task: &Map<String, Value>, failures: &[String]) -> String {
    let mut text = String::from(
        "The verification of the whole failed. Mend what it names, and nothing beside it:\n",
    );
    for failure in failures {
        let _ = writeln!(text, "- {failure}");
    }
    let number = super::tasks::attempts(task);
    text.push_str(&earlier(task, number));
    text
}

/// What is known from the tries before this one.
fn earlier(task: &Map<String, Value>, number: u32) -> String {
    if number < 2 {
        return String::new();
    }
    let strategy = task.get("retry_strategy").and_then(Value::as_str).unwrap_or("simple_retry");
    let mut text = format!("\nThis is try {number} of three. {}\n", advice(strategy));
    for line in list(task, "context_added") {
        let _ = writeln!(text, "- {line}");
    }
    if let Some(error) = task.get("last_error").and_then(Value::as_str) {
        let _ = writeln!(text, "The last try ended with: {error}");
    }
    text
}

fn contracts(scene: &Scene<'_>) -> String {
    let mut text = String::new();
    for (path, file) in scene.files.iter() {
        let name = path.strip_prefix(CONTRACTS).filter(|it| !it.starts_with("resolution_"));
        if name.is_none() {
            continue;
        }
        let content: String =
            String::from_utf8_lossy(&file.bytes).chars().take(CONTRACT_CHARS_MAX).collect();
        let _ = writeln!(text, "\nContract, from {path}:\n{}", content.trim_end());
    }
    text
}

fn list<'t>(task: &'t Map<String, Value>, key: &str) -> Vec<&'t str> {
    let list = task.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).collect()
}
