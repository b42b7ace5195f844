//! What scripted agents answer: anything that the schemas allow, by chance.

use std::{fs, path::Path};

use onward_core::address::Address;
use serde_json::{Value, json};

use crate::{chance::Chance, life::System};

/// The result of an agent's step, and the files that it writes itself.
pub(crate) fn answer(system: System, step: &Address, dir: &Path, chance: &mut Chance) -> Value {
    match system {
        System::AgentMemory => agent_memory(step, dir, chance),
        System::Dotagent => dotagent(step, dir, chance),
    }
}

fn agent_memory(step: &Address, dir: &Path, chance: &mut Chance) -> Value {
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    match step.last_id() {
        "intake" => write("prd.md", "# Wanted\n"),
        "plan" => write("plan.md", &format!("# Plan {}\n", chance.below(100))),
        "break" | "tasks" => {
            let task = |id: &str, phase: u32, after: &[&str]| {
                write(&format!("tasks/{id}.md"), "a contract\n");
                json!({"id": id, "title": id, "phase": phase, "dependencies": after})
            };
            let tasks = [
                task("T001", 1, &[]),
                task("T002", 1, &["T001"]),
                task("T003", 1, &["T001"]),
                task("T004", 2, &[]),
            ];
            write("task-graph.json", &json!({ "tasks": tasks }).to_string());
        }
        "pr" => {
            write("pr-description.md", "# PR\n");
            write("pr-checklist.md", "- [x] done\n");
        }
        "consolidate" => write("summary.md", "outcome: success\n"),
        "implement" => {
            let status = match chance.below(6) {
                0 => "FAILED",
                1 => "BLOCKED",
                2 => "PARTIAL",
                _ => "SUCCESS",
            };
            return json!({"status": status, "summary": "so it went", "files": []});
        }
        "look" | "verify" => {
            // Now and then it says nothing at all.
            if chance.one_in(6) {
                return json!({ "verdicts": [] });
            }
            let ids = (1..=9).flat_map(|it| [format!("T00{it}"), format!("Q00{it}")]);
            let mut verdict = |id: &str| {
                let result = if chance.one_in(4) { "FAILED" } else { "PASSED" };
                json!({"task": id, "result": result, "summary": "seen", "issues": []})
            };
            let verdicts: Vec<Value> = ids.map(|id| verdict(&id)).collect();
            return json!({ "verdicts": verdicts });
        }
        _ => {}
    }
    json!({})
}

fn dotagent(step: &Address, dir: &Path, chance: &mut Chance) -> Value {
    let text = step.as_str();
    let task = text.split(['[', ']']).nth(1).unwrap_or_default();
    // The third try that fails ends the run.
    let execution = fs::read(dir.join("memory/state/execution.json")).unwrap_or_default();
    let execution: Value = serde_json::from_slice(&execution).unwrap_or_default();
    let tasks = execution["tasks"].as_array().cloned().unwrap_or_default();
    let entry = tasks.iter().find(|it| it["id"] == task);
    let tried = entry.and_then(|it| it["attempts"].as_u64()).unwrap_or(0);
    let may_fail = tried < 2 && chance.one_in(3);
    match (text.split(['/', '[']).next().unwrap_or_default(), step.last_id()) {
        ("requirements", _) => json!({"title": "x", "goal": "y", "requirements": ["z"]}),
        ("architects", _) => json!({"name": task, "summary": "a way"}),
        ("roundtable", _) => json!({
            "summary": "one way",
            "contracts": [{"name": "door", "definition": {"spec": "oak"}, "used_by": ["t1", "t2"]}],
            "execution_plan": {"contracts_first": ["door"], "tasks": [
                {"id": "t1", "summary": "a", "provides": ["door"]},
                {"id": "t2", "summary": "b", "uses": ["door"]},
                {"id": "t3", "summary": "c"}]},
        }),
        (_, "implement") if may_fail => match chance.below(2) {
            0 => json!({"status": "blocked", "summary": "which door",
                "blocked_reason": "contract_change"}),
            _ => json!({"status": "failed", "summary": "no", "failure_class": "complexity"}),
        },
        (_, "implement" | "fix") => json!({"status": "pre_complete", "summary": "done"}),
        (_, "resolve") => json!({"contract": "door", "definition": {"spec": "elm"}, "note": "elm"}),
        (_, "verify") => json!({"passed": !may_fail, "failures": ["it leaks"]}),
        (_, "check") => {
            // A repair mends it for good.
            let passed = text.starts_with("repair") || !chance.one_in(3);
            json!({"passed": passed, "failures": if passed { json!([]) } else { json!(["no"]) }})
        }
        (_, "draft") => json!({"what_worked": ["luck"]}),
        _ => json!({}),
    }
}
