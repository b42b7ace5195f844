//! How far the original had come when onward was called: files of each system, written as it
//! writes them.

use onward_core::time::Timestamp;
use serde_json::{Value, json};

use super::{
    agents::{MEMORY, STORY, design, graph},
    stage::{Held, Stage},
    system::System,
};

/// A run to go on with.
pub(crate) struct Start {
    pub(crate) name: &'static str,
    pub(crate) code: &'static str,
    pub(crate) files: Held,
}

impl Start {
    fn new(name: &'static str, code: &'static str, files: &[(&str, String)]) -> Self {
        let file = |(path, text): &(&str, String)| ((*path).to_owned(), text.clone().into_bytes());
        Self { name, code, files: files.iter().map(file).collect() }
    }
}

/// `now` is when onward is called.
pub(crate) fn starts(stage: &Stage, now: Timestamp) -> Vec<Start> {
    let ago = |minutes: i64| Timestamp::from_micros(now.as_micros() - minutes * 60_000_000);
    let ago = |minutes: i64| ago(minutes).to_string();
    match stage.system {
        System::AgentMemory => agent_memory(&ago),
        System::Dotagent => dotagent(&ago),
        System::Pipeline => pipeline(stage),
        System::Sdlc => sdlc(&ago),
    }
}

type Ago<'a> = &'a dyn Fn(i64) -> String;

fn agent_memory(ago: Ago<'_>) -> Vec<Start> {
    let log = "events/orchestrator/20260302-0930.jsonl";
    let event = |kind: &str, task: &str, minutes: i64| {
        json!({"event_type": kind, "task_id": task, "timestamp": ago(minutes), "actor": "executor",
            "details": {}})
        .to_string()
            + "\n"
    };
    let phase = |to: u32, minutes: i64| {
        json!({"type": "phase_transition", "from_phase": to - 1, "to_phase": to,
            "timestamp": ago(minutes), "trigger": "user_approval"})
        .to_string()
            + "\n"
    };
    let of = |name, code, with: usize, events: String| {
        let all = [
            ("prd.md", "# Wanted\n".to_owned()),
            (log, events),
            ("plan.md", "# Plan\n".to_owned()),
            ("task-graph.json", graph()),
            ("tasks/T001.md", "so\n".to_owned()),
            ("tasks/T002.md", "so\n".to_owned()),
            ("tasks/T003.md", "so\n".to_owned()),
            ("constitution.md", "# Approved\n".to_owned()),
        ];
        let all = all.into_iter().take(with);
        let files = all.map(|(path, text)| (format!("{MEMORY}/{path}"), text.into_bytes()));
        Start { name, code, files: files.collect() }
    };
    let run = || event("run-started", "", 60);
    let orphan = [
        run(),
        phase(2, 50),
        event("task-claimed", "T001", 40),
        event("task-implemented", "T001", 35),
        event("task-verified", "T001", 34),
        event("task-claimed", "T002", 30),
    ];
    let built: String = ["T001", "T002", "T003"]
        .iter()
        .flat_map(|id| [event("task-claimed", id, 40), event("task-implemented", id, 30)])
        .collect();
    vec![
        of("requirements alone", "planning", 2, run()),
        of("a task was under way", "execute", 8, orphan.concat()),
        of("implemented, not verified", "verify", 8, [run(), phase(2, 50), built].concat()),
    ]
}

fn dotagent(ago: Ago<'_>) -> Vec<Start> {
    let state = |phase: &str, done: &[&str], yes: &[&str]| {
        let done = done.iter().map(|it| json!({"phase": it, "completed_at": ago(40)}));
        let yes = yes.iter().map(|it| json!({"phase": it, "approved_at": ago(39)}));
        json!({"workflow_id": "wf-1", "started_at": ago(60), "last_updated": ago(30),
            "current_phase": phase, "phase_status": "in_progress",
            "completed_phases": done.collect::<Vec<Value>>(),
            "user_checkpoints": yes.collect::<Vec<Value>>(), "interruption_safe": true})
        .to_string()
    };
    let demand = || json!({"title": "x", "goal": "y", "requirements": ["z"]}).to_string();
    let task = |id: &str, status: &str, attempts: u32| {
        json!({"id": id, "status": status, "attempts": attempts, "summary": id,
            "output": format!("memory/tasks/{id}/output.json")})
    };
    let execution = |tasks: &[Value]| json!({"workflow_id": "wf-1", "tasks": tasks}).to_string();
    let output = json!({"task_id": "t1", "status": "pre_complete"}).to_string();
    let both = ["REQUIREMENTS", "ARCHITECTURE"];
    vec![
        Start::new(
            "a demand waits for its yes",
            "approval",
            &[
                ("memory/state/phase.json", state("REQUIREMENTS", &[], &[])),
                ("memory/reports/demand.json", demand()),
            ],
        ),
        Start::new(
            "a crash in the implementation",
            "implementation",
            &[
                ("memory/state/phase.json", state("IMPLEMENTATION", &both, &both)),
                ("memory/reports/demand.json", demand()),
                ("memory/reports/final_design.json", design().to_string()),
                (
                    "memory/state/execution.json",
                    execution(&[task("t1", "running", 1), task("t2", "running", 1)]),
                ),
                ("memory/tasks/t1/output.json", output),
            ],
        ),
    ]
}

fn pipeline(stage: &Stage) -> Vec<Start> {
    let permanent = |tier: &str| {
        json!({"id": "1", "subject": "[PERMANENT] Rate limiter", "description": "so",
            "status": "in_progress", "blocks": [], "blockedBy": [],
            "metadata": {"type": "permanent", "tier": tier, "current_phase": "P0",
                "commit_status": "pending"}})
    };
    let task = |id: u32, phase: &str, status: &str| {
        json!({"id": id.to_string(), "subject": format!("do {id}"), "description": "so",
            "status": status, "blocks": [], "blockedBy": [],
            "metadata": {"type": "work", "phase": phase}})
    };
    let list = |name, code, tasks: &[Value]| {
        let file = |task: &Value| {
            let id = task["id"].as_str().unwrap();
            (format!("{}/{id}.json", stage.outside("list")), format!("{task:#}").into_bytes())
        };
        Start { name, code, files: tasks.iter().map(file).collect() }
    };
    vec![
        list("nothing but the pipeline", "start", &[permanent("TRIVIAL")]),
        list(
            "execution cut off",
            "restart-phase",
            &[
                permanent("STANDARD"),
                task(2, "P0", "completed"),
                task(3, "P1", "completed"),
                task(4, "P2", "completed"),
                task(5, "P3", "completed"),
                task(6, "P6", "in_progress"),
                task(7, "P6", "pending"),
            ],
        ),
    ]
}

fn sdlc(ago: Ago<'_>) -> Vec<Start> {
    let story = |id: &str, status: &str| {
        format!(
            "# Story {id}: Log in\n\n**Status:** {status}\n**Epic:** 4\n\n## Story\n\nAs a user I \
             log in.\n\n## Acceptance Criteria\n\n1. It works.\n\n## Tasks / Subtasks\n\n- [x] \
             Task 1\n- [ ] Task 2\n\n## Dev Notes\n\n-\n\n## QA Results\n\n-\n\n## Change Log\n\n| \
             Date | Agent | Change |\n|---|---|---|\n| 2026-02-01 | sm | written |\n"
        )
    };
    let state = |phase: u32| {
        format!(
            "workflow: story-development-cycle\ncurrent_story: 4.2\ncurrent_phase: {phase}\n\
             updated_at: {}\n",
            ago(30)
        )
    };
    let turn = json!({"iteration": 1, "verdict": "REJECT", "reviewedAt": ago(40), "fixedAt": null});
    let turns = json!({"storyId": "4.2", "currentIteration": 1, "maxIterations": 5,
        "status": "in_progress", "startedAt": ago(60), "updatedAt": ago(40), "history": [turn]});
    let at = ".nexos/workflow-state/run-state.yaml";
    vec![
        Start::new("a draft", "sdc:validate", &[(STORY, story("4.2", "Draft")), (at, state(2))]),
        Start::new(
            "an implementation",
            "sdc:implement",
            &[(STORY, story("4.2", "In Progress")), (at, state(3))],
        ),
        Start::new(
            "a rejected review",
            "qa-loop:fix",
            &[(STORY, story("4.2", "In Review")), ("qa/4.2/loop-status.json", turns.to_string())],
        ),
        Start::new(
            "a spec with its requirements",
            "spec:assess",
            &[("docs/specs/login/requirements.json", "{\"wanted\": [\"a door\"]}\n".to_owned())],
        ),
    ]
}
