//! A repository in which dotagent works, and its files in a form that two runs can share.

use std::{collections::BTreeMap, fs, path::PathBuf};

use onward_core::time::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{bench::Bench, support::program};

const AGENT: &str = include_str!("../../src/cmd/demo/dotagent/agent.sh");
const CONFIG: &str = include_str!("../../src/cmd/demo/dotagent/config.toml");
pub(crate) const PHASE: &str = "memory/state/phase.json";
pub(crate) const EXECUTION: &str = "memory/state/execution.json";
pub(crate) const RUN: &str = "run dotagent --input request=greet --no-input";
pub(crate) const RESUME: &str = "resume --no-input --yes";

pub(crate) struct Office {
    pub(crate) bench: Bench,
}

impl Office {
    pub(crate) fn new() -> Self {
        Self::with(|agent| agent)
    }

    /// With another agent.
    pub(crate) fn with(agent: impl FnOnce(String) -> String) -> Self {
        let dir = TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let bench = Bench::at(dir, root, "  - { id: a, run: \"true\" }");
        fs::remove_file(bench.path("w.yaml")).unwrap();
        let office = Self { bench };
        office.bench.write("README.md", "A project that greets.\n");
        office.git(&["init", "--quiet", "--initial-branch=main"]);
        // Agents commit in the person's name.
        office.git(&["config", "user.name", "ann"]);
        office.git(&["config", "user.email", "ann@example.com"]);
        office.git(&["add", "."]);
        office.git(&["commit", "--quiet", "--message=start"]);
        fs::create_dir_all(office.bench.path(".onward")).unwrap();
        office.bench.write(".onward/agent.sh", &agent(AGENT.to_owned()));
        office.bench.write(".onward/config.toml", CONFIG);
        office
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        program::git(&self.bench.root, args)
    }

    pub(crate) fn put(&self, path: &str, value: &Value) {
        fs::create_dir_all(self.bench.path(path).parent().unwrap()).unwrap();
        self.bench.write(path, &value.to_string());
    }

    /// The object in a file, which is there and whole.
    pub(crate) fn object(&self, path: &str) -> Value {
        let text = self.bench.text(path);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        let execution = self.object(EXECUTION);
        let tasks = execution["tasks"].as_array().unwrap().clone();
        tasks.into_iter().find(|it| it["id"] == id).unwrap_or_else(|| panic!("{execution:#}"))
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.bench.project().runs().unwrap().remove(0).dir
    }

    /// The user says yes.
    pub(crate) fn approves(&self) {
        self.bench.exits("approve", 0);
    }

    /// From nothing to the end, without a disturbance.
    pub(crate) fn finished() -> Self {
        let office = Self::new();
        office.bench.exits(RUN, 11);
        office.approves();
        office.bench.exits(RESUME, 11);
        office.approves();
        office.bench.exits(RESUME, 0);
        office
    }

    /// The steps for which an agent was started.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.bench.path(".onward/ledger.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Every native file, with times, attempts and the name of the run taken out, and the project.
    pub(crate) fn left(&self) -> BTreeMap<String, Value> {
        let mut left = BTreeMap::new();
        let mut level = vec![self.bench.path("memory")];
        let id = self.object(PHASE)["workflow_id"].as_str().unwrap().to_owned();
        while let Some(dir) = level.pop() {
            for entry in fs::read_dir(&dir).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    // Archives have times in their names.
                    if entry.file_name() != ".archive" {
                        level.push(entry.path());
                    }
                    continue;
                }
                let path = entry.path();
                let name = path.strip_prefix(&self.bench.root).unwrap().display().to_string();
                let text = fs::read_to_string(&path).unwrap();
                let value: Value = serde_json::from_str(&text)
                    .unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
                assert_eq!(text.lines().count(), 1, "{name} is no single line: {text}");
                left.insert(name.replace(&id, "RUN"), plain(value, &id));
            }
        }
        for file in ["greet.txt", "shout.txt", "count.txt"] {
            left.insert(file.to_owned(), self.bench.text(file).into());
        }
        left.insert("tree".to_owned(), self.git(&["rev-parse", "HEAD^{tree}"]).into());
        let status = self.git(&["status", "--short", "--", ".", ":(exclude)memory"]);
        left.insert("status".to_owned(), status.into());
        left
    }
}

fn plain(value: Value, id: &str) -> Value {
    match value {
        Value::String(text) if text.parse::<Timestamp>().is_ok() => "T".into(),
        Value::String(text) if text == id => "RUN".into(),
        Value::Array(list) => list.into_iter().map(|it| plain(it, id)).collect(),
        Value::Object(map) => {
            let known = map.into_iter().filter(|(key, _)| key != "attempts");
            Value::Object(known.map(|(key, it)| (key, plain(it, id))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// A run of the original, caught in its implementation: the first task has left its output and
/// nothing knows, the second was stopped while it ran, the third has not begun.
pub(crate) fn caught() -> Office {
    let office = Office::new();
    let done = |phase: &str, output: &str| {
        let at = ago(50);
        json!({"phase": phase, "completed_at": at, "output": output})
    };
    office.put(
        PHASE,
        &json!({
            "workflow_id": "wf-greet", "started_at": ago(90), "last_updated": ago(10),
            "current_phase": "IMPLEMENTATION", "phase_status": "in_progress",
            "interruption_safe": true, "owner": "ann",
            "completed_phases": [done("REQUIREMENTS", "memory/reports/demand.json"),
                done("ARCHITECTURE", "memory/reports/final_design.json")],
            "user_checkpoints": [{"phase": "REQUIREMENTS", "approved_at": ago(49)}],
        }),
    );
    let task = |id: &str, status: &str, attempts: u32| {
        json!({"id": id, "status": status, "attempts": attempts, "started_at": ago(20),
            "completed_at": null, "output": format!("memory/tasks/{id}/output.json"),
            "cost": 7})
    };
    office.put(
        EXECUTION,
        &json!({"workflow_id": "wf-greet", "mood": "good", "tasks": [
            task("task-001", "running", 1), task("task-002", "running", 1),
            task("task-003", "pending", 0)]}),
    );
    office.put("memory/reports/demand.json", &json!({"goal": "greet"}));
    office.put("memory/reports/final_design.json", &json!({"contracts": []}));
    let output = json!({"task_id": "task-001", "status": "pre_complete"});
    office.put("memory/tasks/task-001/output.json", &output);
    office.bench.write("greet.txt", "hello\n");
    office
}

/// So many minutes before now.
pub(crate) fn ago(minutes: i64) -> String {
    let now = onward_engine::world::real::wall_clock().as_micros();
    let at = Timestamp::from_micros(now - minutes * 60_000_000).to_string();
    at.split_once('.').map_or(at.clone(), |(whole, _)| format!("{whole}Z"))
}
