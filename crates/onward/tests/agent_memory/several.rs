//! Several runs side by side, and what a user is told of each.

use std::{fs, os::unix::fs::symlink, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::desk::Desk;

/// So many minutes before now.
fn ago(minutes: u32) -> String {
    let at = Command::new("date")
        .args(["-u", "-d", &format!("{minutes} minutes ago"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output();
    String::from_utf8(at.unwrap().stdout).unwrap().trim().to_owned()
}

/// A run of the original with one of two tasks done, last active so many minutes ago.
fn left(desk: &Desk, name: &str, minutes: u32, more: &[Value]) {
    let at = desk.bench.path(".agent-memory/runs").join(name);
    fs::create_dir_all(at.join("events/executor")).unwrap();
    fs::create_dir_all(at.join("tasks")).unwrap();
    for file in ["prd.md", "plan.md", "constitution.md", "tasks/T001.md", "tasks/T002.md"] {
        fs::write(at.join(file), "# Written by the original\n").unwrap();
    }
    let tasks = json!([{"id": "T001", "title": "Count", "dependencies": []},
        {"id": "T002", "title": "Limit", "dependencies": ["T001"]}]);
    fs::write(at.join("task-graph.json"), json!({"tasks": tasks}).to_string()).unwrap();
    let event = |kind: &str| json!({"type": kind, "task_id": "T001", "timestamp": ago(minutes)});
    let mut lines = vec![event("task-claimed"), event("task-completed")];
    lines.extend(more.iter().cloned());
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let text = lines.join("\n") + "\n";
    fs::write(at.join("events/executor/20260302-0900.jsonl"), text).unwrap();
}

#[test]
fn several_runs_are_listed_newest_first_and_chosen_by_name_or_by_autopilot() {
    let desk = Desk::new();
    left(&desk, "20260302-0900-old-aaaa", 50, &[]);
    left(&desk, "20260302-0900-new-bbbb", 5, &[]);
    let over = json!({"type": "run-completed", "timestamp": ago(1)});
    left(&desk, "20260302-0900-over-cccc", 1, &[over]);
    let doubt = desk.bench.exits("resume --no-input", 16);
    let place = |name: &str| doubt.err.find(name).unwrap_or_else(|| panic!("{name}: {doubt:?}"));
    assert!(place("-new-bbbb") < place("-old-aaaa"), "{doubt:?}");
    assert!(!doubt.err.contains("-over-cccc"), "what is over is no question: {doubt:?}");
    for run in ["20260302-0900-old-aaaa", ".agent-memory/runs/20260302-0900-old-aaaa"] {
        let plan = desk.bench.exits(&format!("plan --json {run}"), 0).json();
        assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T002]"]), "{plan:#}");
        assert!(plan["run"]["dir"].as_str().unwrap().ends_with("-old-aaaa"), "{plan:#}");
    }
    // What only looks takes the last active one, as among runs of ours.
    let plan = desk.bench.exits("plan --json", 0).json();
    assert!(plan["run"]["dir"].as_str().unwrap().ends_with("-new-bbbb"), "{plan:#}");
    let part = desk.bench.exits("plan --json 20260302-0900-o", 0).json();
    assert!(part["run"]["dir"].as_str().unwrap().ends_with("-old-aaaa"), "{part:#}");
    let why = desk.bench.exits("why 20260302-0900-old-aaaa execute[T001]", 0);
    assert!(why.out.starts_with("execute[T001]: keep"), "{why:?}");
    desk.bench.exits("why execute[T009]", 1);
    desk.bench.exits("resume --no-input --yes --mode autopilot", 0);
    let events = |name: &str| desk.bench.path(&format!(".agent-memory/runs/{name}/events/onward"));
    assert!(events("20260302-0900-new-bbbb").exists());
    assert!(!events("20260302-0900-old-aaaa").exists());
}

#[test]
fn all_runs_are_resumed_one_after_the_other() {
    let desk = Desk::new();
    desk.bench.exits("resume --no-input --yes --all", 17);
    let runs = ["20260302-0900-old-aaaa", "20260302-0900-new-bbbb"];
    for (run, minutes) in runs.iter().zip([50, 5]) {
        left(&desk, run, minutes, &[]);
        // Each stops at its approval.
        let constitution = format!(".agent-memory/runs/{run}/constitution.md");
        fs::remove_file(desk.bench.path(&constitution)).unwrap();
    }
    desk.bench.exits("resume --no-input --yes --all", 11);
    for run in runs {
        let ours = desk.bench.path(&format!(".agent-memory/runs/{run}/events/onward"));
        assert!(ours.exists(), "{run}");
    }
}

#[test]
fn where_every_run_is_over_there_is_nothing_to_resume() {
    let desk = Desk::new();
    let over = json!({"type": "run-completed", "timestamp": ago(1)});
    left(&desk, "20260302-0900-over-cccc", 1, &[over]);
    let none = desk.bench.exits("resume --no-input", 17);
    assert!(none.err.contains("onward run") || none.err.contains("complete"), "{none:?}");
}

#[test]
fn the_report_of_the_system_is_shown_before_anything_is_done() {
    let desk = Desk::new();
    left(&desk, "20260302-0900-new-bbbb", 5, &[]);
    let plan = desk.bench.exits("plan", 0);
    for line in [
        "Run: 20260302-0900-new-bbbb",
        "Phase: 2",
        "Tasks: 1/2 complete",
        "Last activity: ",
        "Last completed: T001 - Count",
        "Next: execute T002",
    ] {
        assert!(plan.out.contains(line), "{line}: {}", plan.out);
    }
}

#[test]
fn the_last_task_is_the_same_in_a_plan_and_in_a_status() {
    let desk = Desk::new();
    left(&desk, "20260302-0900-new-bbbb", 5, &[]);
    let last = |desk: &Desk| desk.bench.exits("status --json", 0).json()["last_completed"].clone();
    assert_eq!(last(&desk)["step"], "execute[T001]");
    let failed = json!({"type": "task-failed", "task_id": "T001", "timestamp": ago(1)});
    left(&desk, "20260302-0900-new-bbbb", 5, &[failed]);
    let plan = desk.bench.exits("plan", 0);
    assert!(plan.out.contains("Last completed: none"), "{}", plan.out);
    assert_eq!(last(&desk), Value::Null);
    // And of a run of ours that goes on with it.
    desk.bench.exits("resume --no-input --yes --from approval", 11);
    assert_eq!(last(&desk), Value::Null);
}

#[test]
fn a_command_for_runs_of_ours_names_the_one_that_the_original_left() {
    let desk = Desk::new();
    for empty in ["log", "verify", "cancel", "approve"] {
        let none = desk.bench.exits(empty, 17);
        assert!(none.err.contains("there is no run here"), "{none:?}");
    }
    left(&desk, "20260302-0900-old-aaaa", 50, &[]);
    left(&desk, "20260302-0900-new-bbbb", 5, &[]);
    for command in ["log", "attach", "verify", "approve", "cancel", "pause", "done execute[T002]"] {
        let said = desk.bench.exits(command, 1);
        let place = desk.bench.path(".agent-memory/runs/20260302-0900-new-bbbb");
        let paste = format!("`onward resume {}`", place.display());
        assert!(said.err.contains(&paste), "{command}: {said:?}");
    }
    let over = json!({"type": "run-completed", "timestamp": ago(1)});
    left(&desk, "20260302-0900-old-aaaa", 50, std::slice::from_ref(&over));
    left(&desk, "20260302-0900-new-bbbb", 5, &[over]);
    desk.bench.exits("log", 17);
}

#[test]
fn a_file_that_cannot_be_read_is_not_missing_too() {
    let desk = Desk::new();
    left(&desk, "20260302-0900-new-bbbb", 5, &[]);
    let plan = desk.bench.path(".agent-memory/runs/20260302-0900-new-bbbb/plan.md");
    fs::rename(&plan, desk.bench.path("kept.md")).unwrap();
    symlink("../../../kept.md", &plan).unwrap();
    let plan = desk.bench.exits("plan --json", 0).json();
    let about = plan["findings"].as_array().unwrap().iter();
    let about = about.filter(|it| it["path"].as_str().is_some_and(|it| it.ends_with("/plan.md")));
    let codes: Vec<&str> = about.map(|it| it["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["state-unreadable"], "{plan:#}");
}

#[test]
fn the_directory_of_a_run_may_be_a_link_that_stays_in_the_project() {
    let desk = Desk::new();
    let (name, runs) = ("20260302-0900-kept-aaaa", ".agent-memory/runs");
    left(&desk, name, 5, &[]);
    fs::rename(desk.bench.path(runs).join(name), desk.bench.path("kept")).unwrap();
    symlink("../../kept", desk.bench.path(runs).join(name)).unwrap();
    for run in ["", " 20260302-0900-kept-aaaa", " .agent-memory/runs/20260302-0900-kept-aaaa"] {
        let plan = desk.bench.exits(&format!("plan --json{run}"), 0).json();
        assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T002]"]), "{plan:#}");
    }
    desk.bench.exits("resume --no-input --yes", 0);
    assert!(desk.bench.path("kept/summary.md").exists());
    let own = fs::read_dir(desk.bench.path("kept/events/onward")).unwrap();
    assert_eq!(own.count(), 1);
}

#[test]
fn a_run_that_lies_outside_of_the_project_is_planned_and_nothing_is_written_there() {
    let (desk, elsewhere) = (Desk::new(), TempDir::new().unwrap());
    let (name, runs) = ("20260302-0900-away-aaaa", ".agent-memory/runs");
    left(&desk, name, 5, &[]);
    let away = elsewhere.path().join("away");
    fs::create_dir(&away).unwrap();
    // The directory of the run, and one above it.
    for (inner, link) in [(name, format!("{runs}/{name}")), ("", ".agent-memory".to_owned())] {
        let to = away.join(if inner.is_empty() { "memory" } else { inner });
        let status = Command::new("cp").args(["-rL"]).arg(desk.bench.path(&link)).arg(&to).status();
        assert!(status.unwrap().success());
        fs::remove_dir_all(desk.bench.path(&link)).unwrap();
        symlink(&to, desk.bench.path(&link)).unwrap();
        let plan = desk.bench.exits("plan --json", 0).json();
        assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T002]"]), "{plan:#}");
        let found = plan["findings"].as_array().unwrap().iter();
        let found = found.filter(|it| it["code"] == "prerequisite-missing").collect::<Vec<_>>();
        let said = found[0]["message"].as_str().unwrap();
        assert!(said.ends_with("leads out of the project"), "{plan:#}");
        let refused = desk.bench.exits("resume --no-input --yes", 16);
        assert!(refused.err.contains("leads out of the project"), "{refused:?}");
        assert!(!to.join("events/onward").exists());
        assert!(!to.join(format!("runs/{name}/events/onward")).exists());
        assert!(desk.bench.project().runs().unwrap().is_empty(), "{refused:?}");
    }
}

/// Events may lie in folders of folders; what stands in the place of the folder is told.
#[test]
fn events_count_however_deep_they_lie_and_a_file_in_their_place_is_a_finding() {
    let desk = Desk::new();
    let name = "20260302-0900-deep-aaaa";
    left(&desk, name, 5, &[]);
    let events = desk.bench.path(".agent-memory/runs").join(name).join("events");
    let deep = events.join("a/b/c/d/e/f/g/h/i");
    fs::create_dir_all(&deep).unwrap();
    let done = json!({"type": "task-completed", "task_id": "T002", "timestamp": ago(2)});
    fs::write(deep.join("20260302-0910.jsonl"), done.to_string() + "\n").unwrap();
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "cleanup", "{plan:#}");
    fs::remove_dir_all(&events).unwrap();
    fs::write(&events, "not a folder").unwrap();
    let plan = desk.bench.exits("plan --json", 0).json();
    let is_it = |it: &&Value| it["code"] == "state-unreadable";
    let told = plan["findings"].as_array().unwrap().iter().find(is_it);
    assert!(told.unwrap()["path"].as_str().unwrap().ends_with("/events"), "{plan:#}");
    desk.bench.exits("resume --no-input --yes", 16);
}

/// A run that is over hides no run that is not.
#[test]
fn what_failed_or_was_cancelled_is_not_among_those_that_can_be_resumed() {
    for end in ["run-cancelled", "run-failed"] {
        let desk = Desk::new();
        left(&desk, "20260302-0900-live-aaaa", 50, &[]);
        let over = json!({"type": end, "timestamp": ago(1)});
        left(&desk, "20260302-0900-over-bbbb", 2, &[over]);
        for command in ["", "status", "plan"] {
            let out = desk.bench.exits(command, 0);
            let next = out.out.lines().find(|it| it.contains("onward resume")).unwrap();
            assert!(next.contains("-live-aaaa"), "{command}: {out:?}");
        }
        desk.bench.exits("resume --no-input --yes --mode autopilot", 0);
        let events =
            |name: &str| desk.bench.path(&format!(".agent-memory/runs/{name}/events/onward"));
        assert!(events("20260302-0900-live-aaaa").exists());
        assert!(!events("20260302-0900-over-bbbb").exists());
    }
}
