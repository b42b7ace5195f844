//! Task files in the forms that Claude Code writes: read, merged and written, byte for byte.

use std::fs;

use serde_json::json;

use crate::kitchen::Kitchen;

/// As Claude Code writes them: two spaces, no newline at the end, `owner` before `status`.
const TASKS: [(&str, &str); 3] = [
    (
        "1",
        "{\n  \"id\": \"1\",\n  \"subject\": \"[PERMANENT] Send a ping — to both\",\n  \
         \"description\": \"Tier TRIVIAL.\",\n  \"owner\": \"\",\n  \
         \"status\": \"in_progress\",\n  \"blocks\": [],\n  \"blockedBy\": []\n}",
    ),
    (
        "2",
        "{\n  \"id\": \"2\",\n  \"subject\": \"Task A: reply PING-A\",\n  \"description\": \"Send \
         exactly \\\"PING-A\\\" — nothing else.\",\n  \"owner\": \"alpha\",\n  \"status\": \
         \"completed\",\n  \"blocks\": [\n    \"3\"\n  ],\n  \"blockedBy\": [],\n  \"metadata\": \
         {\n    \"phase\": \"P6\"\n  }\n}",
    ),
    (
        "3",
        "{\n  \"id\": \"3\",\n  \"subject\": \"Task B\",\n  \"description\": \"-\",\n  \"status\": \
         \"pending\",\n  \"blocks\": [],\n  \"blockedBy\": [\n    \"2\"\n  ],\n  \
         \"metadata\": {\n    \"phase\": \"P6\",\n    \"files\": [\n      \
         \"src/b.txt\"\n    ]\n  }\n}",
    ),
];

#[test]
fn only_what_changed_differs_from_what_claude_code_wrote() {
    let kitchen = Kitchen::new("-");
    let list = kitchen.home.join("tasks/session-5a22f79a");
    fs::create_dir_all(&list).unwrap();
    for (id, text) in TASKS {
        fs::write(list.join(format!("{id}.json")), text).unwrap();
    }
    kitchen.exits("resume --yes --no-input", 11);
    let now = |id: &str| fs::read_to_string(list.join(format!("{id}.json"))).unwrap();
    let head = TASKS[0].1.trim_end_matches("\n}");
    assert!(now("1").starts_with(head), "{}", now("1"));
    assert!(!now("1").ends_with('\n'));
    // Verified, because its phase was mixed: completed as before, and it says by whom.
    let head = TASKS[1].1.trim_end_matches("\n  }\n}");
    assert!(now("2").starts_with(head), "{}", now("2"));
    let task: serde_json::Value = serde_json::from_str(&now("3")).unwrap();
    assert_eq!(task["status"], "completed");
    assert_eq!(task["blockedBy"], json!(["2"]));
    assert_eq!(task["metadata"]["files"], json!(["src/b.txt"]));
}
