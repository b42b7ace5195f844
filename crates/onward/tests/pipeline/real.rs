//! Task files in the forms that Claude Code writes: read, merged and written, byte for byte.

use std::{fs, path::PathBuf};

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

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn skipped() {
    eprintln!("not tested: ONWARD_REAL_TASKS names no directory with real task lists");
}

/// The lists of real sessions, where they are at hand. They belong to their authors;
/// `ONWARD_REAL_TASKS` names the directory that holds them.
#[test]
fn lists_of_real_sessions_stay_as_they_are_where_nothing_changes() {
    let Some(dir) = std::env::var_os("ONWARD_REAL_TASKS").map(PathBuf::from) else {
        skipped();
        return;
    };
    // By hand from the rulings: three pending tasks that name no phase are the execution; three
    // completed ones that name none prove nothing, so that the pipeline begins.
    for (list, code, phase, completed) in [
        ("tasks-session-489655e5", "restart-phase", "P6", 0),
        ("tasks-session-5a22f79a", "restart-phase", "P0", 3),
    ] {
        let kitchen = Kitchen::new("TRIVIAL");
        if completed == 0 {
            // Tasks that name no file: there is nothing to write.
            let agent = kitchen.bench.text("agent.sh");
            let idle = "case \"$ONWARD_STEP\" in P6*/work) exit 0 ;; esac\n";
            kitchen.bench.write("agent.sh", &format!("{idle}{agent}"));
        }
        let own = kitchen.home.join("tasks/session-1");
        fs::create_dir_all(&own).unwrap();
        let mut before = Vec::new();
        for id in ["1", "2", "3"] {
            let text = fs::read(dir.join(list).join(format!("{id}.json"))).unwrap();
            fs::write(own.join(format!("{id}.json")), &text).unwrap();
            before.push((id, text));
        }
        let named = own.display().to_string();
        let none = kitchen.exits("plan --dialect pipeline", 17);
        assert!(none.err.contains(&named), "{none:#?}");
        let permanent = json!({"id": "4", "subject": "[PERMANENT] Ping", "description": "-",
            "status": "in_progress", "blocks": [], "blockedBy": [],
            "metadata": {"type": "permanent", "tier": "TRIVIAL"}});
        fs::write(own.join("4.json"), format!("{permanent:#}")).unwrap();
        let plan = kitchen.exits(&format!("plan --json {named}"), 0).json();
        assert_eq!(plan["recovery_point"]["code"], code, "{plan:#}");
        assert_eq!(plan["recovery_point"]["phase"], phase, "{plan:#}");
        let l1 = kitchen.exits(&format!("plan --format l1 {named}"), 0).out;
        let counts = format!("total_tasks: 3\ncompleted_tasks: {completed}\n");
        assert!(l1.contains(&counts) && l1.contains(&format!("resume_phase: \"{phase}\"")), "{l1}");
        kitchen.exits(&format!("resume --yes --no-input {named}"), 11);
        for (id, text) in before {
            let now = fs::read(own.join(format!("{id}.json"))).unwrap();
            if completed == 3 {
                assert_eq!(now, text, "{list}/{id}: nothing of it changed");
                continue;
            }
            // What was worked on: its status, its owner, and what is added behind everything else.
            let (now, text) = (String::from_utf8(now).unwrap(), String::from_utf8(text).unwrap());
            let text = text.replace("\"status\": \"pending\"", "\"status\": \"completed\"");
            let text = text.replace("\"owner\": \"\"", "\"owner\": \"onward\"");
            assert!(now.starts_with(text.trim_end_matches("\n}")), "{list}/{id}: {now}");
        }
    }
}
