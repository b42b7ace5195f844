//! What the agents of the real systems do: their files in two halves, then their results.

use onward_core::address::Address;
use serde_json::{Value, json};

use super::system::System;
use crate::{agents::Act, disk::Disk};

pub(crate) fn acts(system: System, step: &Address, prompt: &str, disk: &Disk) -> Vec<Act> {
    match system {
        System::AgentMemory => agent_memory(step, prompt),
        System::Dotagent => dotagent(step),
        System::Pipeline => pipeline(step),
        System::Sdlc => sdlc(step, prompt, disk),
    }
}

fn write(path: &str, text: &str) -> Vec<Act> {
    let half = text.chars().take(text.len() / 2).collect();
    let act = |text: String| Act::Write { path: path.to_owned(), text };
    vec![act(half), act(text.to_owned())]
}

fn gives(result: &Value) -> Vec<Act> {
    vec![Act::Result(result.to_string())]
}

/// What stands between two texts.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, rest) = text.split_once(from).unwrap_or(("", ""));
    rest.split_once(to).map_or("", |it| it.0)
}

/// The key of the innermost item around a step.
fn item(step: &Address) -> &str {
    let text = step.as_str();
    let end = text.rfind(']').unwrap_or(0);
    text[..end].rsplit('[').next().unwrap_or_default()
}

pub(super) const MEMORY: &str = ".agent-memory/runs/20260302-0930-demo-k3x9";

pub(super) fn graph() -> String {
    let task = |id: &str, phase: u32, after: &[&str]| {
        let title = format!("do {id}");
        json!({"id": id, "title": title, "phase": phase, "dependencies": after})
    };
    let tasks = [task("T001", 1, &[]), task("T002", 1, &["T001"]), task("T003", 2, &["T001"])];
    json!({ "tasks": tasks }).to_string()
}

fn agent_memory(step: &Address, prompt: &str) -> Vec<Act> {
    let page = |name: &str, text: &str| write(&format!("{MEMORY}/{name}"), text);
    match step.last_id() {
        "intake" => page("prd.md", "# Wanted\n"),
        "plan" => page("plan.md", "# Plan\n"),
        "break" => {
            let contracts = ["T001", "T002", "T003"];
            let contracts = contracts.iter().flat_map(|id| page(&format!("tasks/{id}.md"), "so\n"));
            contracts.chain(page("task-graph.json", &graph())).collect()
        }
        "implement" => {
            let done = json!({"status": "SUCCESS", "summary": "so it went", "files": []});
            [write(&format!("src/{}.txt", item(step)), "built\n"), gives(&done)].concat()
        }
        "look" | "verify" => {
            let ids = between(prompt, "Verify the tasks ", ". Their").split(", ");
            let verdict =
                |id: &str| json!({"task": id, "result": "PASSED", "summary": "seen", "issues": []});
            let verdicts: Vec<Value> = ids.map(verdict).collect();
            gives(&json!({ "verdicts": verdicts }))
        }
        "pr" => {
            [page("pr-description.md", "# PR\n"), page("pr-checklist.md", "- [x] done\n")].concat()
        }
        "consolidate" => page("summary.md", "outcome: success\n"),
        "cleanup" => vec![Act::Work],
        other => panic!("who is {other}?"),
    }
}

pub(super) fn design() -> Value {
    json!({
        "summary": "one way",
        "contracts": [{"name": "door", "definition": {"spec": "oak"}, "used_by": ["t1", "t2"]}],
        "execution_plan": {"contracts_first": ["door"], "tasks": [
            {"id": "t1", "summary": "a", "provides": ["door"]},
            {"id": "t2", "summary": "b", "uses": ["door"]}]},
    })
}

fn dotagent(step: &Address) -> Vec<Act> {
    let first = step.as_str().split(['/', '[']).next().unwrap_or_default();
    match (first, step.last_id()) {
        ("requirements", _) => gives(&json!({"title": "x", "goal": "y", "requirements": ["z"]})),
        ("architects", _) => gives(&json!({"name": item(step), "summary": "a way"})),
        ("roundtable", _) => gives(&design()),
        (_, "implement") => {
            let task = step.as_str().split(['[', ']']).nth(1).unwrap_or_default();
            let done = json!({"status": "pre_complete", "summary": "done"});
            [write(&format!("src/{task}.txt"), "built\n"), gives(&done)].concat()
        }
        (_, "verify" | "check") => gives(&json!({"passed": true, "failures": []})),
        ("reflection", _) => gives(&json!({"what_worked": ["luck"]})),
        (_, other) => panic!("who is {other} in {step}?"),
    }
}

fn pipeline(step: &Address) -> Vec<Act> {
    let phase = step.as_str().split(['/', '[']).next().unwrap_or_default();
    match (phase, step.last_id()) {
        ("intake", _) => gives(&json!({"tier": "TRIVIAL", "title": "a limiter"})),
        ("breakdown", _) => {
            let task = |key: &str| {
                let none: [&str; 0] = [];
                json!({"key": key, "subject": key, "description": "", "files": none, "after": none})
            };
            gives(&json!({"tasks": [task("a"), task("b")]}))
        }
        ("P6", "work") => write(&format!("src/{}.txt", item(step)), "built\n"),
        ("P7", "work") => {
            let page = write(&format!("pipeline/P7/{}.md", item(step)), "it holds\n");
            [page, gives(&json!({"passed": true, "failures": []}))].concat()
        }
        (_, "work" | "redo") => {
            write(&format!("pipeline/{phase}/{}.md", item(step)), "a page of it\n")
        }
        (_, "verify" | "judge") => gives(&json!({"passed": true, "failures": []})),
        (_, "describe") => gives(&json!({"subject": "limit rates", "body": ""})),
        (_, other) => panic!("who is {other} in {step}?"),
    }
}

pub(super) const STORY: &str = "docs/stories/4.2.story.md";

fn sdlc(step: &Address, prompt: &str, disk: &Disk) -> Vec<Act> {
    let folder = between(prompt, "docs/specs/", "/");
    let page = |name: &str, text: &str| write(&format!("docs/specs/{folder}/{name}"), text);
    let passes = json!({"passed": true, "failures": []});
    match step.last_id() {
        "judge" if step.as_str().starts_with("validate") => {
            gives(&json!({"decision": "GO", "score": 8, "issues": []}))
        }
        // The developer ticks the boxes, and nothing else in the story.
        "implement" => {
            let story = disk.read(&format!("project/{STORY}")).unwrap_or_default();
            let story = String::from_utf8_lossy(story).replace("- [ ]", "- [x]");
            [write("src/login.txt", "built\n"), write(STORY, &story)].concat()
        }
        "inspect" => gives(&passes),
        "qa-gate" => gives(&json!({"verdict": "PASS", "issues": []})),
        "review" => gives(&json!({"verdict": "APPROVE", "issues": []})),
        "fix" => write("src/login.txt", "mended\n"),
        "gather" => page("requirements.json", "{\"wanted\": [\"a door\"]}\n"),
        "assess" => {
            let class = json!({"class": "STANDARD", "total": 11});
            [page("complexity.json", &class.to_string()), gives(&class)].concat()
        }
        "research" => page("research.json", "{\"sources\": []}\n"),
        "write" => page("spec.md", "# Spec\n\nA door.\n"),
        "critique" => {
            let verdict = json!({"verdict": "APPROVED", "average": 4.5});
            [page("critique.json", &verdict.to_string()), gives(&verdict)].concat()
        }
        other => panic!("who is {other} in {step}?"),
    }
}
