//! Each row of the recovery tables of agent-memory and dotagent, and each scenario of the systems'
//! own resume protocols, as a directory that `plan --json` looks at.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "support/program.rs"]
mod program;

use std::{fs, path::Path};

use program::Said;
use serde_json::{Value, json};
use tempfile::TempDir;

const NOW: &str = "2026-04-11T10:00:00Z";
const RUN: &str = ".agent-memory/runs/20260411-0800-rows-k3x9";

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What a plan says of the directory: code, phase, steps, status, codes of findings.
struct Planned {
    point: String,
    status: String,
    codes: Vec<String>,
    plan: Value,
}

#[track_caller]
fn planned(root: &Path, what: &str) -> Planned {
    planned_by(root, "plan --json", what)
}

#[track_caller]
fn planned_by(root: &Path, arguments: &str, what: &str) -> Planned {
    fs::create_dir_all(root.join(".onward")).unwrap();
    let mut command = program::onward(root, arguments);
    let said = Said::of(&command.env("ONWARD_NOW", NOW).output().unwrap());
    assert_eq!(said.code, 0, "{what}: {said:?}");
    let plan = said.json();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let point = &plan["recovery_point"];
    let steps = point["steps"].as_array().unwrap().iter().map(text).collect::<Vec<_>>().join(" ");
    let line = format!("{} {} {steps}", text(&point["code"]), text(&point["phase"]));
    let findings = plan["findings"].as_array().unwrap();
    Planned {
        point: line.trim_end().to_owned(),
        status: text(&plan["run"]["status"]),
        codes: findings.iter().map(|it| text(&it["code"])).collect(),
        plan,
    }
}

/// The events of an actor: `kind task`, a minute after each other, from nine o'clock on.
fn log(events: &[&str]) -> String {
    let line = |(minute, words): (usize, &&str)| {
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        let at = format!("2026-04-11T09:{minute:02}:00Z");
        let event = match kind {
            "phase" => json!({"type": "phase_transition", "to_phase": rest.parse::<u32>().unwrap(),
                "timestamp": at}),
            _ => json!({"event_type": kind, "task_id": rest, "timestamp": at}),
        };
        format!("{event}\n")
    };
    events.iter().enumerate().map(line).collect()
}

/// A run of agent-memory: its artifacts, and its events.
fn agent_memory(artifacts: &[&str], events: &[&str]) -> TempDir {
    let project = TempDir::new().unwrap();
    let root = project.path().join(RUN);
    fs::create_dir_all(&root).unwrap();
    for name in artifacts {
        let tasks = json!({"tasks": [
            {"id": "T001", "title": "a", "dependencies": []},
            {"id": "T002", "title": "b", "dependencies": ["T001"]},
            {"id": "T003", "title": "c", "dependencies": ["T001"]}]});
        let text = if *name == "task-graph.json" { tasks.to_string() } else { "# x\n".to_owned() };
        put(&root, name, &text);
    }
    if !events.is_empty() {
        put(&root, "events/executor/20260411-0900.jsonl", &log(events));
    }
    project
}

const PRD: &[&str] = &["prd.md"];
const PLAN: &[&str] = &["prd.md", "plan.md"];
const READY: &[&str] = &["prd.md", "plan.md", "task-graph.json"];
const BUILDING: &[&str] = &["prd.md", "plan.md", "task-graph.json", "constitution.md"];
const PREPARED: &[&str] =
    &["prd.md", "plan.md", "task-graph.json", "constitution.md", "pr-description.md"];
const OVER: &[&str] = &["prd.md", "plan.md", "task-graph.json", "constitution.md", "summary.md"];
const DONE: &[&str] =
    &["phase 2", "task-completed T001", "task-completed T002", "task-completed T003"];

#[test]
fn every_row_of_agent_memory() {
    let failed = ["task-claimed T001", "task-failed T001"];
    for (artifacts, events, point, status) in [
        (&[][..], &["run-started"][..], "intake 0 intake", "interrupted"),
        (PRD, &[], "planning 1 plan", "interrupted"),
        (PLAN, &[], "planning 1 tasks", "interrupted"),
        (READY, &[], "approval 1 approve", "waiting"),
        (READY, &["phase 2"], "approval 1 approve", "waiting"),
        (BUILDING, &[], "execute 2 execute[T001]", "interrupted"),
        (BUILDING, &["phase 2", "task_started T001"], "execute 2 execute[T001]", "interrupted"),
        (
            BUILDING,
            &["task-implemented T001"],
            "execute 2 execute[T002] execute[T003]",
            "interrupted",
        ),
        (
            BUILDING,
            &["task-completed T001", "task_failed T002"],
            "execute 2 execute[T002] execute[T003]",
            "interrupted",
        ),
        (
            BUILDING,
            &["task-implemented T001", "task-implemented T002", "task-implemented T003"],
            "verify 2 verify",
            "interrupted",
        ),
        (
            BUILDING,
            &["task-completed T001", "task-completed T002", "task-implemented T003"],
            "verify 2 verify",
            "interrupted",
        ),
        (BUILDING, &["task-blocked T001"], "blocked 2 rework", "interrupted"),
        (BUILDING, &failed.repeat(3), "blocked 2 rework", "interrupted"),
        (BUILDING, DONE, "cleanup 3 cleanup", "interrupted"),
        (BUILDING, &[DONE, &["phase 3"]].concat(), "cleanup 3 cleanup", "interrupted"),
        (PREPARED, &[DONE, &["phase 4"]].concat(), "consolidate 4 consolidate", "interrupted"),
        (BUILDING, &[DONE, &["run-completed"]].concat(), "complete -", "completed"),
        (OVER, DONE, "complete -", "completed"),
        (BUILDING, &["run-failed"], "execute 2 execute[T001]", "failed"),
        (BUILDING, &["run-cancelled"], "execute 2 execute[T001]", "failed"),
    ] {
        let project = agent_memory(artifacts, events);
        let what = format!("{artifacts:?} {events:?}");
        // What is over is meant by its path alone.
        let seen = planned_by(project.path(), &format!("plan --json {RUN}"), &what);
        assert_eq!((seen.point.as_str(), seen.status.as_str()), (point, status), "{what}");
        let can = seen.plan["can_resume"].as_bool().unwrap();
        let blocked = ["attempts-used-up", "run-over", "prerequisite-missing"];
        let stands = seen.codes.iter().any(|it| blocked.contains(&it.as_str()));
        assert!(can || status == "completed" || stands, "{what}: {:#}", seen.plan);
    }
}

#[test]
fn the_edge_cases_of_agent_memory() {
    let broken = agent_memory(BUILDING, &["task-completed T001"]);
    let path = broken.path().join(RUN).join("events/executor/20260411-0900.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{{\"event_type\":\"task-comp\n\0\0\0\n")).unwrap();
    let seen = planned(broken.path(), "a corrupted log");
    assert_eq!(seen.point, "execute 2 execute[T002] execute[T003]");
    assert!(seen.codes.contains(&"broken-line".to_owned()), "{:?}", seen.codes);
    let old = agent_memory(BUILDING, &[]);
    let event = json!({"event_type": "task-completed", "task_id": "T001",
        "timestamp": "2026-03-01T09:00:00Z"});
    put(&old.path().join(RUN), "events/a/20260301-0900.jsonl", &format!("{event}\n"));
    let seen = planned(old.path(), "a very old run");
    assert!(seen.codes.contains(&"stale-age".to_owned()), "{:?}", seen.codes);
    let lost = agent_memory(&["plan.md", "task-graph.json", "constitution.md"], DONE);
    let seen = planned(lost.path(), "a missing artifact");
    assert_eq!(seen.point, "intake 0 intake");
    assert!(seen.codes.contains(&"missing-artifact".to_owned()), "{:?}", seen.codes);
}

const PHASES: [&str; 5] =
    ["REQUIREMENTS", "ARCHITECTURE", "IMPLEMENTATION", "VERIFICATION", "REFLECTION"];

/// A run of dotagent: `phase status approved|-`, reports, and tasks as `id status attempts`.
fn dotagent(state: &str, reports: &[(&str, &str)], tasks: &[&str]) -> TempDir {
    let project = TempDir::new().unwrap();
    let words: Vec<&str> = state.split(' ').collect();
    let at = "2026-04-11T09:00:00Z";
    let done = PHASES.iter().take_while(|it| **it != words[0]);
    let done: Vec<Value> = done.map(|it| json!({"phase": it, "completed_at": at})).collect();
    let said = json!([{"phase": "REQUIREMENTS", "approved_at": at}]);
    let phase = json!({
        "workflow_id": "wf-1", "started_at": at, "last_updated": at, "current_phase": words[0],
        "phase_status": words[1], "completed_phases": done, "interruption_safe": true,
        "user_checkpoints": if words[2] == "approved" { said } else { json!([]) },
    });
    put(project.path(), "memory/state/phase.json", &phase.to_string());
    let task = |line: &&str| {
        let words: Vec<&str> = line.split(' ').collect();
        json!({"id": words[0], "status": words[1], "attempts": words[2].parse::<u32>().unwrap(),
            "output": format!("memory/tasks/{}/output.json", words[0])})
    };
    if !tasks.is_empty() {
        let tasks: Vec<Value> = tasks.iter().map(task).collect();
        let text = json!({"workflow_id": "wf-1", "tasks": tasks}).to_string();
        put(project.path(), "memory/state/execution.json", &text);
    }
    for (name, text) in reports {
        put(project.path(), &format!("memory/{name}"), text);
    }
    project
}

#[test]
#[expect(clippy::too_many_lines, reason = "the rows of a table")]
fn every_row_of_dotagent() {
    let demand = ("reports/demand.json", r#"{"goal":"x"}"#);
    let design = ("reports/designs/a.json", r#"{"summary":"x"}"#);
    let last = ("reports/final_design.json", r#"{"contracts":[]}"#);
    let output = ("tasks/t1/output.json", r#"{"status":"pre_complete"}"#);
    let verdict = |word: &'static str| ("reports/verification.json", word);
    let reflection = ("reflections/wf-1.json", r#"{"workflow_id":"wf-1"}"#);
    let (good, bad) = (r#"{"verdict":"PASS"}"#, r#"{"verdict":"FAIL"}"#);
    for (state, reports, tasks, point, status) in [
        (
            "REQUIREMENTS pending -",
            &[][..],
            &[][..],
            "requirements REQUIREMENTS requirements",
            "fresh",
        ),
        (
            "REQUIREMENTS in_progress -",
            &[],
            &[],
            "requirements REQUIREMENTS requirements",
            "interrupted",
        ),
        (
            "REQUIREMENTS in_progress -",
            &[("reports/demand.json", "{")],
            &[],
            "requirements REQUIREMENTS requirements",
            "interrupted",
        ),
        ("REQUIREMENTS in_progress -", &[demand], &[], "approval REQUIREMENTS approve", "waiting"),
        (
            "REQUIREMENTS complete approved",
            &[demand],
            &[],
            "architects ARCHITECTURE architects",
            "interrupted",
        ),
        (
            "ARCHITECTURE in_progress approved",
            &[demand],
            &[],
            "architects ARCHITECTURE architects",
            "interrupted",
        ),
        (
            "ARCHITECTURE in_progress approved",
            &[demand, design],
            &[],
            "roundtable ARCHITECTURE roundtable",
            "interrupted",
        ),
        (
            "ARCHITECTURE complete approved",
            &[demand, design, last],
            &[],
            "implementation IMPLEMENTATION plan",
            "interrupted",
        ),
        (
            "IMPLEMENTATION in_progress approved",
            &[demand, last],
            &["t1 pending 0", "t2 pending 0"],
            "implementation IMPLEMENTATION implementation[t1] implementation[t2]",
            "interrupted",
        ),
        (
            "IMPLEMENTATION complete approved",
            &[demand, last, output],
            &["t1 verified 1"],
            "verification VERIFICATION verification",
            "interrupted",
        ),
        (
            "VERIFICATION in_progress approved",
            &[demand, last],
            &["t1 verified 1"],
            "verification VERIFICATION verification",
            "interrupted",
        ),
        (
            "VERIFICATION in_progress approved",
            &[demand, last, verdict("{\"ver")],
            &["t1 verified 1"],
            "verification VERIFICATION verification",
            "interrupted",
        ),
        (
            "VERIFICATION in_progress approved",
            &[demand, last, verdict(bad)],
            &["t1 verified 1"],
            "implementation IMPLEMENTATION repair",
            "interrupted",
        ),
        (
            "VERIFICATION complete approved",
            &[demand, last, verdict(good)],
            &["t1 verified 1"],
            "reflection REFLECTION reflection",
            "interrupted",
        ),
        (
            "REFLECTION complete approved",
            &[demand, last, verdict(good)],
            &["t1 verified 1"],
            "reflection REFLECTION reflection",
            "interrupted",
        ),
        (
            "REFLECTION complete approved",
            &[demand, last, verdict(good), reflection],
            &["t1 verified 1"],
            "complete -",
            "completed",
        ),
        (
            "IMPLEMENTATION failed approved",
            &[demand, last],
            &["t1 failed 1"],
            "implementation IMPLEMENTATION implementation[t1]",
            "failed",
        ),
    ] {
        let project = dotagent(state, reports, tasks);
        let what = format!("{state} {reports:?} {tasks:?}");
        let seen = planned(project.path(), &what);
        assert_eq!((seen.point.as_str(), seen.status.as_str()), (point, status), "{what}");
    }
}

/// The scenarios of the system's own page, and each state of a task that was under way.
#[test]
fn the_scenarios_of_dotagent() {
    let output = |status: &str| format!(r#"{{"task_id":"t1","status":"{status}"}}"#);
    let at = "IMPLEMENTATION in_progress approved";
    for (task, left, code, word) in [
        // Ctrl-C while an agent worked.
        ("t1 running 1", None, "orphan-task", "attempt 2"),
        ("t1 running 3", None, "attempts-used-up", "3 attempts"),
        ("t1 running 1", Some("{\"status\":".to_owned()), "orphan-task", "attempt 2"),
        // A crash after the output, before the checkpoint.
        ("t1 running 1", Some(output("pre_complete")), "status-disagrees", "`pre_complete`"),
        ("t1 running 1", Some(output("blocked")), "status-disagrees", "`blocked`"),
        ("t1 running 1", Some(output("failed")), "status-disagrees", "`failed`"),
    ] {
        let reports: Vec<(&str, &str)> =
            left.iter().map(|text| ("tasks/t1/output.json", text.as_str())).collect();
        let project = dotagent(at, &reports, &[task]);
        let what = format!("{task} {left:?}");
        let seen = planned(project.path(), &what);
        assert_eq!(seen.point, "implementation IMPLEMENTATION implementation[t1]", "{what}");
        let findings = seen.plan["findings"].as_array().unwrap();
        let found =
            findings.iter().find(|it| it["code"] == code && it["step"] == "implementation[t1]");
        let found = found.unwrap_or_else(|| panic!("{what}: {findings:#?}"));
        assert!(found["message"].as_str().unwrap().contains(word), "{what}: {found:#}");
    }
    // Interrupted at the user's approval: no architect runs again.
    let design = ("reports/designs/a.json", r#"{"summary":"x"}"#);
    let asked = dotagent("ARCHITECTURE in_progress approved", &[design], &[]);
    let seen = planned(asked.path(), "designs");
    let steps = seen.plan["steps"].as_array().unwrap();
    let architects = steps.iter().find(|it| it["step"] == "architects").unwrap();
    assert!(architects["verdict"] == "keep" || architects["verdict"] == "adopt", "{architects:#}");
    // A state of more than seven days ago.
    let old = dotagent(at, &[], &["t1 pending 0"]);
    let path = old.path().join("memory/state/phase.json");
    let text = fs::read_to_string(&path).unwrap().replace("2026-04-11T09", "2026-04-01T09");
    fs::write(&path, text).unwrap();
    let seen = planned(old.path(), "an old state");
    assert!(seen.codes.contains(&"stale-age".to_owned()), "{:?}", seen.codes);
    let stale =
        seen.plan["findings"].as_array().unwrap().iter().find(|it| it["code"] == "stale-age");
    assert!(stale.unwrap()["hint"].as_str().unwrap().contains("archive"), "{stale:?}");
}
