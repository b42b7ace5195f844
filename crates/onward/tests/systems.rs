//! Directories of systems that onward reads and plans, through the real program.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

const NOW: &str = "2026-04-11T10:00:00Z";

struct Said {
    code: i32,
    out: String,
    err: String,
}

/// Claude Code's directory is a temporary one, so that a person's own task lists never count.
fn onward(project: &Path, home: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
    command.arg("--now").arg(NOW).args(arguments).current_dir(project);
    command.env("CLAUDE_CONFIG_DIR", home).env("HOME", home).env("NO_COLOR", "1");
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn json_of(project: &Path, home: &Path, arguments: &[&str]) -> Value {
    let said = onward(project, home, arguments);
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err))
}

fn write(at: &Path, path: &str, value: &Value) {
    let path = at.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, value.to_string()).unwrap();
}

/// Every file below, with its content and time.
fn everything(at: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let mut all = Vec::new();
    let mut level = vec![at.to_owned()];
    while let Some(dir) = level.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            if meta.is_dir() {
                level.push(path);
            } else {
                let name = path.display().to_string();
                all.push((name, fs::read(&path).unwrap(), meta.modified().unwrap()));
            }
        }
    }
    all.sort();
    all
}

/// In the middle of its implementation: one task is verified, one was caught running.
fn dotagent(at: &Path) {
    let done = |phase: &str, output: &str| {
        let at = "2026-04-11T08:41:00Z";
        json!({"phase": phase, "completed_at": at, "output": output})
    };
    write(
        at,
        "memory/state/phase.json",
        &json!({
            "workflow_id": "wf-20260411-auth", "started_at": "2026-04-11T08:00:00Z",
            "last_updated": "2026-04-11T09:12:40Z", "current_phase": "IMPLEMENTATION",
            "phase_status": "in_progress", "interruption_safe": true,
            "completed_phases": [
                done("REQUIREMENTS", "memory/reports/demand.json"),
                done("ARCHITECTURE", "memory/reports/final_design.json"),
            ],
            "user_checkpoints": [
                {"phase": "REQUIREMENTS", "approved_at": "2026-04-11T08:10:00Z"},
                {"phase": "ARCHITECTURE", "approved_at": "2026-04-11T08:42:00Z"},
            ],
        }),
    );
    let task = |id: &str, status: &str| {
        json!({"id": id, "status": status, "attempts": 1, "started_at": "2026-04-11T08:50:00Z",
            "completed_at": null, "output": format!("memory/tasks/{id}/output.json")})
    };
    write(
        at,
        "memory/state/execution.json",
        &json!({"workflow_id": "wf-20260411-auth",
            "tasks": [task("task-001", "verified"), task("task-002", "running")]}),
    );
    write(at, "memory/reports/demand.json", &json!({"title": "log in"}));
    write(at, "memory/reports/designs/one.json", &json!({"contracts": []}));
    write(at, "memory/reports/final_design.json", &json!({"contracts": []}));
    let output = json!({"task_id": "task-001", "status": "pre_complete"});
    write(at, "memory/tasks/task-001/output.json", &output);
    write(at, "memory/tasks/task-001/verification.json", &json!({"verdict": "PASS"}));
}

/// A pipeline of the middle tier, with its execution half done.
fn pipeline(list: &Path) {
    let task = |id: u32, subject: &str, status: &str, metadata: Value| {
        let (id, none) = (id.to_string(), Vec::<String>::new());
        json!({"id": id, "subject": subject, "description": "-", "status": status,
            "blocks": none, "blockedBy": none, "metadata": metadata})
    };
    let work = |phase: &str| json!({"type": "work", "phase": phase, "parent": "1"});
    let permanent = json!({"type": "permanent", "tier": "STANDARD", "current_phase": "P6",
        "commit_status": "pending"});
    write(list, "1.json", &task(1, "[PERMANENT] Rate limiter", "in_progress", permanent));
    for (id, phase) in [(2, "P0"), (3, "P1"), (4, "P2"), (5, "P3")] {
        let (path, subject) = (format!("{id}.json"), format!("work of {phase}"));
        write(list, &path, &task(id, &subject, "completed", work(phase)));
    }
    write(list, "6.json", &task(6, "Implement it", "in_progress", work("P6")));
    fs::write(list.join(".lock"), "").unwrap();
}

#[test]
fn a_dotagent_directory_is_recognised_planned_and_listed_and_nothing_changes() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    dotagent(project.path());
    let before = everything(project.path());
    let plan = json_of(project.path(), home.path(), &["plan", "--json"]);
    assert_eq!(plan["run"]["dialect"], "dotagent", "{plan:#}");
    let found = plan["findings"].as_array().unwrap().iter();
    let mut missing = found.filter(|it| it["code"] == "prerequisite-missing");
    let says = |it: &Value| it["message"].as_str().unwrap().contains("cannot drive them yet");
    assert!(missing.any(says), "{plan:#}");
    assert_eq!(plan["recovery_point"]["code"], "implementation", "{plan:#}");
    assert_eq!(plan["recovery_point"]["phase"], "IMPLEMENTATION", "{plan:#}");
    assert_eq!(plan["recovery_point"]["steps"], json!(["implementation[task-002]"]), "{plan:#}");
    let verdict = |step: &str| {
        let mut rows = plan["steps"].as_array().unwrap().iter();
        rows.find(|it| it["step"] == step).map_or(Value::Null, |it| it["verdict"].clone())
    };
    assert_eq!(verdict("implementation[task-001]"), "keep", "{plan:#}");
    let counts: u64 = plan["counts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(usize::try_from(counts).unwrap(), plan["steps"].as_array().unwrap().len());
    let list = json_of(project.path(), home.path(), &["list", "--json"]);
    assert_eq!(list["runs"][0]["dialect"], "dotagent", "{list:#}");
    assert_eq!(list["runs"][0]["status"], plan["run"]["status"]);
    assert_eq!(list["runs"][0]["phase"], plan["recovery_point"]["phase"]);
    let status = json_of(project.path(), home.path(), &["status", "--json"]);
    assert_eq!(status["run"]["status"], plan["run"]["status"]);
    assert_eq!(everything(project.path()), before);
}

#[test]
fn a_run_that_onward_cannot_continue_yet_says_so_and_is_left_alone() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    dotagent(project.path());
    fs::create_dir_all(project.path().join(".onward")).unwrap();
    let config = "[agents.claude]\ncommand = [\"true\"]\n";
    fs::write(project.path().join(".onward/config.toml"), config).unwrap();
    let before = everything(&project.path().join("memory"));
    let said = onward(project.path(), home.path(), &["resume", "--yes", "--no-input"]);
    assert_eq!(said.code, 16, "{}", said.err);
    assert!(said.err.contains("cannot drive them yet"), "{}", said.err);
    let said = onward(project.path(), home.path(), &["run", "dotagent", "--no-input"]);
    assert_eq!(said.code, 16, "{}", said.err);
    assert_eq!(everything(&project.path().join("memory")), before);
    assert!(!project.path().join(".onward/runs").exists(), "no run was made");
}

#[test]
fn a_pipeline_is_found_in_the_users_task_lists_and_in_one_that_is_named() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let list = home.path().join("tasks/session-12345678");
    fs::create_dir_all(&list).unwrap();
    pipeline(&list);
    let before = everything(home.path());
    let named = list.display().to_string();
    let root = home.path().join("tasks").display().to_string();
    for arguments in [
        vec!["plan", "--json"],
        vec!["plan", &named, "--json"],
        vec!["plan", "--tasks", &named, "--json"],
        vec!["plan", "--tasks", &root, "--json"],
    ] {
        let plan = json_of(project.path(), home.path(), &arguments);
        assert_eq!(plan["run"]["dialect"], "pipeline", "{arguments:?}: {plan:#}");
        assert_eq!(plan["recovery_point"]["code"], "restart-phase", "{arguments:?}: {plan:#}");
        assert_eq!(plan["recovery_point"]["phase"], "P6", "{arguments:?}: {plan:#}");
    }
    let list = json_of(project.path(), home.path(), &["list", "--json"]);
    assert_eq!(list["runs"][0]["dialect"], "pipeline", "{list:#}");
    let l1 = onward(project.path(), home.path(), &["plan", "--format", "l1"]);
    assert!(l1.out.contains("resume_phase") && l1.out.contains("P6"), "{}{}", l1.out, l1.err);
    assert_eq!(everything(home.path()), before);
}

#[test]
fn junk_in_the_place_of_a_run_is_no_panic() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let state = project.path().join("memory/state");
    fs::create_dir_all(&state).unwrap();
    for junk in ["", "{", "[]", "null", "{\"current_phase\": 7}", "\0\0\0\0"] {
        fs::write(state.join("phase.json"), junk).unwrap();
        for arguments in [&["plan", "--json"][..], &["list", "--json"], &["status", "--json"]] {
            let said = onward(project.path(), home.path(), arguments);
            assert!(said.code < 100, "{junk:?} {arguments:?}: {}{}", said.out, said.err);
            let answer: Result<Value, _> = serde_json::from_str(&said.out);
            assert!(answer.is_ok(), "{junk:?} {arguments:?}: {}{}", said.out, said.err);
        }
    }
}
