//! Directories of systems that onward reads and plans, through the real program.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

const NOW: &str = "2026-04-11T10:00:00Z";

const CONFERENCE: &str = "\
# Conference: Tea

## Goal
Steep it better.

## Mode
metric

## Success Metric
- **Metric:** taste
- **Target:** >= 90
- **Direction:** maximize

## Researchers
- **Count:** 2
- **Iterations per round:** 3
- **Max rounds:** 3
";
const CONFERENCE_BEGAN: &str = r#"{"event":"conference.started","timestamp":"2026-04-11T08:00:00Z",
"payload":{"researchers":2}}"#;

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
fn a_run_whose_story_is_gone_is_not_resumed_and_the_ways_out_are_shown() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let turn = r#"{"iteration":1,"reviewedAt":"2026-02-17T09:20:00Z","verdict":"REJECT"}"#;
    let head = r#""storyId":"2.1","currentIteration":1,"maxIterations":5"#;
    let status = format!(r#"{{{head},"status":"in_progress","history":[{turn}]}}"#);
    fs::create_dir_all(project.path().join("qa")).unwrap();
    fs::write(project.path().join("qa/loop-status.json"), status).unwrap();
    fs::create_dir_all(project.path().join(".onward")).unwrap();
    let config = "[agents.claude]\ncommand = [\"true\"]\n";
    fs::write(project.path().join(".onward/config.toml"), config).unwrap();
    let before = everything(project.path());
    let said = onward(project.path(), home.path(), &["resume", "--yes", "--no-input"]);
    assert_eq!(said.code, 16, "{}", said.err);
    for part in [
        "missing-artifact",
        "Ways out",
        "onward run qa-loop --input story=2.1",
        "--from qa-loop:review",
    ] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    assert_eq!(everything(project.path()), before);
    assert!(!project.path().join(".onward/runs").exists(), "no run was made");
}

/// How to leave one run of each system behind.
type Leave = fn(&Path, &Path);

const LEAVE: [(&str, Leave); 6] = [
    ("dotagent", |at, _| dotagent(at)),
    ("sdlc", |at, _| stories(at)),
    ("agent-memory", |at, _| agent_memory(at, "20260411-0900-limiter-k3x9", 9)),
    ("pipeline", |_, home| {
        let list = home.join("tasks/session-12345678");
        fs::create_dir_all(&list).unwrap();
        pipeline(&list);
    }),
    ("conference", |at, _| {
        text(at, "tea/conference.md", CONFERENCE);
        text(at, "tea/conference_events.jsonl", &(CONFERENCE_BEGAN.replace('\n', "") + "\n"));
    }),
    ("onward", |at, home| {
        text(at, "w.yaml", "onward: 1\nname: own\nsteps:\n  - { id: a, run: \"false\" }\n");
        assert_eq!(onward(at, home, &["run", "w.yaml", "--no-input"]).code, 10);
    }),
];

/// Where no run is named, in whichever company: what is shown is what is continued, or the first of
/// those that are offered.
#[test]
fn plan_status_and_resume_mean_the_same_run() {
    for present in 1_u32..1 << LEAVE.len() {
        // Every pair, all but one, and all: what stands beside what.
        if !matches!(present.count_ones(), 2 | 5 | 6) {
            continue;
        }
        let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (at, home) = (project.path(), home.path());
        let is_there = |(bit, _): &(usize, &(&str, Leave))| present & (1 << *bit) != 0;
        let left: Vec<&str> = LEAVE
            .iter()
            .enumerate()
            .filter(is_there)
            .map(|(_, (name, leave))| {
                leave(at, home);
                *name
            })
            .collect();
        for words in
            ["init --quiet", "-c user.name=a -c user.email=a@b commit -qm left --allow-empty"]
        {
            let done = Command::new("git").args(words.split(' ')).current_dir(at).status();
            assert!(done.unwrap().success(), "{words}");
        }
        let plan = json_of(at, home, &["plan", "--json"]);
        let status = json_of(at, home, &["status", "--json"]);
        assert_eq!(plan["run"]["id"], status["run"]["id"], "{left:?}");
        let meant = plan["run"]["id"].as_str().unwrap();
        // Its agent fails: the run is named all the same.
        text(at, ".onward/config.toml", "[agents.claude]\ncommand = [\"false\"]\n");
        let said = onward(at, home, &["resume", "--no-input"]);
        let first = said.err.lines().find(|it| it.trim_start().starts_with("1. "));
        let dir = plan["run"]["dir"].as_str().unwrap();
        let is_named = match first {
            Some(first) => first.contains(meant),
            None => said.err.contains(meant) || said.err.contains(dir),
        };
        assert!(is_named, "{left:?}: {meant}: {}", said.err);
    }
}

#[test]
fn runs_of_all_five_systems_and_our_own_are_listed_by_their_names() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (at, home) = (project.path(), home.path());
    for (_, leave) in LEAVE {
        leave(at, home);
    }
    let list = json_of(at, home, &["list", "--json"]);
    let runs = list["runs"].as_array().unwrap();
    let dialects = |name: &str| runs.iter().filter(|it| it["dialect"] == name).count();
    for (name, count) in
        [("agent-memory", 1), ("conference", 1), ("dotagent", 1), ("pipeline", 1), ("sdlc", 2)]
    {
        assert_eq!(dialects(name), count, "{name}: {list:#}");
    }
    assert_eq!(runs.len(), 7, "and one of ours: {list:#}");
    let is_named =
        |name: &str| runs.iter().any(|it| it["id"].as_str().is_some_and(|id| id.starts_with(name)));
    for name in ["sdc-4.2", "qa-loop-2.1", "own-", "20260411-0900-limiter-k3x9"] {
        assert!(is_named(name), "{name}: {list:#}");
    }
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

fn text(at: &Path, path: &str, text: &str) {
    let path = at.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A story that is being implemented, and a QA loop of another one.
fn stories(at: &Path) {
    let story = |id: &str, status: &str| {
        format!("# Story {id}: Log in\n\n**Status:** {status}\n\n## Tasks\n\n- [x] a\n- [ ] b\n")
    };
    text(at, "docs/stories/4.2.story.md", &story("4.2", "In Progress"));
    text(at, "docs/stories/2.1.story.md", &story("2.1", "Ready for Review"));
    let state = "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\nmode: preflight\n\
                 updated_at: 2026-04-11T09:15:00Z\n";
    text(at, ".nexos/workflow-state/4-state.yaml", state);
    let turn = json!({"iteration": 1, "verdict": "REJECT", "fixedAt": null});
    let qa = json!({"storyId": "2.1", "currentIteration": 1, "maxIterations": 5,
        "status": "in_progress", "updatedAt": "2026-04-09T09:00:00Z", "history": [turn]});
    write(at, "qa/2.1/loop-status.json", &qa);
}

#[test]
fn several_runs_of_one_project_are_listed_and_each_is_planned_by_its_name() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    stories(project.path());
    let before = everything(project.path());
    let list = json_of(project.path(), home.path(), &["list", "--json"]);
    let runs = list["runs"].as_array().unwrap();
    let ids: Vec<&Value> = runs.iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["sdc-4.2", "qa-loop-2.1"], "{list:#}");
    assert!(runs.iter().all(|it| it["dialect"] == "sdlc"), "{list:#}");
    let plan = json_of(project.path(), home.path(), &["plan", "--json"]);
    assert_eq!(plan["run"]["workflow"], "sdc", "the most recently updated: {plan:#}");
    assert_eq!(plan["recovery_point"]["code"], "sdc:implement", "{plan:#}");
    assert_eq!(plan["recovery_point"]["phase"], "3", "{plan:#}");
    assert_eq!(plan["run"]["age_band"], "fresh", "{plan:#}");
    let named = json_of(project.path(), home.path(), &["plan", "qa-loop-2.1", "--json"]);
    assert_eq!(named["recovery_point"]["code"], "qa-loop:fix", "{named:#}");
    assert_eq!(named["recovery_point"]["phase"], "1", "{named:#}");
    assert_eq!(named["recovery_point"]["steps"], json!(["fix[1]"]), "{named:#}");
    let rows = named["steps"].as_array().unwrap().iter();
    let mut rows = rows.filter(|it| it["step"] == "review[1]");
    assert_eq!(rows.next().unwrap()["verdict"], "keep", "{named:#}");
    let words = onward(project.path(), home.path(), &["plan"]);
    assert!(words.out.contains("first open task: b"), "{}{}", words.out, words.err);
    assert_eq!(everything(project.path()), before);
}

#[test]
fn a_run_that_is_over_is_complete_by_its_path_and_no_candidate_otherwise() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    text(project.path(), "docs/stories/4.2.story.md", "# Story 4.2: x\n\n**Status:** Done\n");
    let path = project.path().display().to_string();
    let plan = json_of(project.path(), home.path(), &["plan", &path, "--json"]);
    assert_eq!(plan["recovery_point"]["code"], "complete", "{plan:#}");
    assert_eq!(plan["run"]["status"], "completed", "{plan:#}");
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    let none = onward(project.path(), home.path(), &["plan", "--json"]);
    assert_eq!(none.code, 17, "{}{}", none.out, none.err);
    let none = onward(project.path(), home.path(), &["resume", "--no-input"]);
    assert_eq!(none.code, 17, "{}{}", none.out, none.err);
}

#[test]
fn a_run_that_is_worked_on_is_blocked_by_its_lock() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    stories(project.path());
    let lock = |pid: u32| {
        let lock = format!(
            "pid: {pid}\nowner: dev\ncreated_at: 2026-04-11T09:58:00Z\nttl_seconds: 300\nresource: \
             4.2\n"
        );
        text(project.path(), ".aiox/locks/story.lock", &lock);
        json_of(project.path(), home.path(), &["plan", "sdc-4.2", "--json"])
    };
    let live = lock(std::process::id());
    let has = |plan: &Value, code: &str| {
        plan["findings"].as_array().unwrap().iter().any(|it| it["code"] == code)
    };
    assert!(has(&live, "still-running"), "{live:#}");
    assert_eq!(live["can_resume"], false, "{live:#}");
    let dead = lock(u32::MAX - 1);
    assert!(!has(&dead, "still-running") && has(&dead, "stale-lock"), "{dead:#}");
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

/// A run of agent-memory with its first task done and its second one caught under way.
fn agent_memory(project: &Path, id: &str, hour: u32) {
    let at = project.join(".agent-memory/runs").join(id);
    for name in ["prd.md", "plan.md", "constitution.md"] {
        fs::create_dir_all(&at).unwrap();
        fs::write(at.join(name), "# Text\n").unwrap();
    }
    let task = |id: &str, after: &[&str]| {
        let title = format!("Do {id}");
        json!({"id": id, "title": title, "phase": 1, "dependencies": after})
    };
    let tasks = [task("T001", &[]), task("T002", &["T001"]), task("T003", &["T002"])];
    write(&at, "task-graph.json", &json!({"tasks": tasks}));
    for id in ["T001", "T002", "T003"] {
        write(&at, &format!("tasks/{id}.md"), &json!("contract"));
    }
    let event = |kind: &str, task: &str, minute: u32| {
        json!({"event_type": kind, "task_id": task, "actor": "executor", "details": {},
            "timestamp": format!("2026-04-11T{hour:02}:{minute:02}:00Z")})
        .to_string()
    };
    let moved = r#"{"type":"phase_transition","from_phase":1,"to_phase":2}"#.to_owned();
    let lines = [
        moved,
        event("task-claimed", "T001", 1),
        event("task-implemented", "T001", 2),
        event("task-verified", "T001", 3),
        event("task-claimed", "T002", 4),
    ];
    let log = at.join("events/executor");
    fs::create_dir_all(&log).unwrap();
    fs::write(log.join(format!("20260411-{hour:02}00.jsonl")), lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_run_of_agent_memory_is_recognised_planned_and_listed_and_nothing_changes() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (project, home) = (project.path(), home.path());
    agent_memory(project, "20260411-0900-limiter-k3x9", 9);
    let before = everything(project);
    let run = project.join(".agent-memory/runs/20260411-0900-limiter-k3x9");
    let (relative, absolute) =
        (".agent-memory/runs/20260411-0900-limiter-k3x9", run.display().to_string());
    for arguments in [
        vec!["plan", "--json"],
        vec!["plan", relative, "--json"],
        vec!["plan", &absolute, "--json"],
    ] {
        let plan = json_of(project, home, &arguments);
        assert_eq!(plan["run"]["dialect"], "agent-memory", "{arguments:?} {plan:#}");
        assert_eq!(plan["run"]["status"], "interrupted", "{plan:#}");
        assert_eq!(plan["recovery_point"]["code"], "execute", "{plan:#}");
        assert_eq!(plan["recovery_point"]["phase"], "2");
        assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T002]"]), "{plan:#}");
        let verdict = |step: &str| {
            let mut rows = plan["steps"].as_array().unwrap().iter();
            rows.find(|it| it["step"] == step).map_or(Value::Null, |it| it["verdict"].clone())
        };
        for kept in ["intake", "plan", "approve", "execute[T001]"] {
            assert_eq!(verdict(kept), "keep", "{kept} {plan:#}");
        }
        assert_eq!(verdict("execute[T002]"), "run", "{plan:#}");
    }
    let words = onward(project, home, &["plan"]);
    for line in ["Tasks: 1/3 complete", "Last completed: T001 - Do T001", "Next: execute T002"] {
        assert!(words.out.contains(line), "{line}: {}{}", words.out, words.err);
    }
    assert_eq!(everything(project), before);
}

#[test]
fn of_several_runs_of_agent_memory_the_newest_comes_first_and_the_open_one_is_meant() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (project, home) = (project.path(), home.path());
    agent_memory(project, "20260411-0600-a-aaaa", 6);
    agent_memory(project, "20260411-0800-b-bbbb", 8);
    agent_memory(project, "20260411-0700-c-cccc", 7);
    let list = json_of(project, home, &["list", "--json"]);
    let dirs: Vec<&str> =
        list["runs"].as_array().unwrap().iter().map(|it| it["dir"].as_str().unwrap()).collect();
    assert_eq!(dirs.len(), 3, "{list:#}");
    for (dir, name) in dirs.iter().zip(["b-bbbb", "c-cccc", "a-aaaa"]) {
        assert!(dir.ends_with(name), "{dirs:?}");
    }
    let newest = json_of(project, home, &["plan", "--json"]);
    assert!(newest["run"]["dir"].as_str().unwrap().ends_with("b-bbbb"), "{newest:#}");
    let several = onward(project, home, &["resume", "--no-input"]);
    assert_eq!(several.code, 16);
    let place = |name: &str| several.err.find(name).unwrap();
    assert!(place("b-bbbb") < place("c-cccc") && place("c-cccc") < place("a-aaaa"));
    for over in ["20260411-0800-b-bbbb", "20260411-0700-c-cccc"] {
        let summary = project.join(".agent-memory/runs").join(over).join("summary.md");
        fs::write(summary, "outcome: success\n").unwrap();
    }
    let plan = json_of(project, home, &["plan", "--json"]);
    assert!(plan["run"]["dir"].as_str().unwrap().ends_with("a-aaaa"), "{plan:#}");
}

/// Each command knows the same runs, the last active one first.
#[test]
fn in_a_directory_of_several_systems_the_last_active_run_is_meant_and_all_are_offered() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (project, home) = (project.path(), home.path());
    agent_memory(project, "20260411-0600-a-aaaa", 6);
    stories(project);
    let names = |said: &Said| {
        let lines = said.err.lines().filter(|it| it.trim_start().starts_with(['1', '2', '3']));
        let word =
            |it: &str| it.split_whitespace().nth(1).unwrap().rsplit('/').next().unwrap().to_owned();
        lines.map(word).collect::<Vec<String>>()
    };
    let offered = onward(project, home, &["resume", "--no-input"]);
    assert_eq!(offered.code, 16, "{}", offered.err);
    assert_eq!(names(&offered), ["sdc-4.2", "20260411-0600-a-aaaa", "qa-loop-2.1"]);
    let plan = json_of(project, home, &["plan", "--json"]);
    assert_eq!(plan["run"]["id"], "sdc-4.2", "{plan:#}");
    let status = json_of(project, home, &["status", "--json"]);
    assert_eq!(status["run"]["id"], "sdc-4.2", "{status:#}");
    // A run deeper down is one of them.
    let talk = project.join("talks/tea");
    text(&talk, "conference.md", CONFERENCE);
    let began = CONFERENCE_BEGAN.replace('\n', "").replace("T08:", "T09:");
    text(&talk, "conference_events.jsonl", &format!("{}\n", began.replace("09:00:00", "09:59:00")));
    let plan = json_of(project, home, &["plan", "--json"]);
    assert_eq!(plan["run"]["dialect"], "conference", "{plan:#}");
}

#[test]
fn a_mutated_run_of_agent_memory_is_no_panic_and_loses_no_file() {
    let (project, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (project, home) = (project.path(), home.path());
    agent_memory(project, "20260411-0900-limiter-k3x9", 9);
    let at = project.join(".agent-memory/runs/20260411-0900-limiter-k3x9");
    let log = "events/executor/20260411-0900.jsonl";
    let answers = |what: &str| {
        for arguments in [&["plan", "--json"][..], &["list", "--json"], &["status", "--json"]] {
            let said = onward(project, home, arguments);
            assert!(said.code < 100, "{what} {arguments:?}: {}{}", said.out, said.err);
            let answer: Result<Value, _> = serde_json::from_str(&said.out);
            assert!(answer.is_ok(), "{what} {arguments:?}: {}{}", said.out, said.err);
        }
    };
    for name in ["task-graph.json", log] {
        let whole = fs::read(at.join(name)).unwrap();
        let (half, nuls, numbers) = (whole[..whole.len() / 2].to_vec(), vec![0; 100], "7\n[]\n");
        for junk in [Vec::new(), half, nuls, numbers.into(), b"\xff\xfe{".to_vec()] {
            fs::write(at.join(name), &junk).unwrap();
            answers(name);
            assert_eq!(fs::read(at.join(name)).unwrap(), junk);
        }
        fs::remove_file(at.join(name)).unwrap();
        fs::create_dir(at.join(name)).unwrap();
        answers("a directory in the place of a file");
        fs::remove_dir(at.join(name)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at.join(name)).unwrap();
        answers("a link that leads out");
        fs::remove_file(at.join(name)).unwrap();
        fs::write(at.join(name), whole).unwrap();
    }
    let plan = json_of(project, home, &["plan", "--json"]);
    assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T002]"]), "{plan:#}");
}
