//! A project in a temporary repository, and what a run leaves in a form that two runs can share.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{bench::Bench, leash::Leash, support::program};

const AGENT: &str = include_str!("../../src/cmd/demo/agent-memory/agent.sh");
const CONFIG: &str = include_str!("../../src/cmd/demo/agent-memory/config.toml");
pub(crate) const RUN: &str = ".agent-memory/runs/20260302-0930-count-k3x9";

pub(crate) struct Desk {
    pub(crate) bench: Bench,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(|agent| agent)
    }

    /// Ready to be run. `edit` changes the agent first.
    pub(crate) fn with(edit: impl FnOnce(String) -> String) -> Self {
        let dir = TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let bench = Bench::at(dir, root, "  - { id: a, run: \"true\" }");
        fs::remove_file(bench.path("w.yaml")).unwrap();
        bench.write("agent.sh", &edit(AGENT.to_owned()));
        bench.write(".onward/config.toml", CONFIG);
        for args in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "agent.sh"],
            &["commit", "--quiet", "--message=start"],
        ] {
            program::git(&bench.root, args);
        }
        Self { bench }
    }

    /// Up to the approval, and past it.
    pub(crate) fn approved(&self) {
        self.bench.exits(&format!("run agent-memory --no-input --input dir={RUN}"), 11);
        self.bench.exits("approve", 0);
    }

    pub(crate) fn leash(&self, arguments: &str) -> Leash {
        Leash::start(&mut self.bench.command(arguments))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.bench.path(RUN).join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.bench.text(&format!("{RUN}/{name}"))
    }

    /// Our events, without those that say that a resume began, and what began again with it.
    pub(crate) fn events(&self) -> Vec<Value> {
        let mut all = self.log();
        all.retain(|it| {
            it["event_type"] != "session-resumed" && it["details"]["cut_off"].is_null()
        });
        all
    }

    /// All of our events.
    pub(crate) fn log(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for log in fs::read_dir(self.path("events/onward")).into_iter().flatten().flatten() {
            let text = fs::read_to_string(log.path()).unwrap();
            let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            all.extend(lines.map(|line| serde_json::from_str::<Value>(line).unwrap()));
        }
        all
    }

    /// `task-claimed T001`, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |it: &Value| {
            let (kind, task) = (it["event_type"].as_str(), it["task_id"].as_str());
            format!("{} {}", kind.unwrap(), task.unwrap_or_default()).trim_end().to_owned()
        };
        self.events().iter().map(name).collect()
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.bench.project().runs().unwrap().remove(0).dir
    }

    /// All that the run leaves, without times and the id of the run.
    pub(crate) fn left(&self) -> BTreeMap<String, String> {
        let mut left = BTreeMap::new();
        for top in [RUN, "src"] {
            files(&self.bench.root, Path::new(top), &mut left);
        }
        left.retain(|path, _| !path.contains("/events/"));
        for text in left.values_mut() {
            let lines = text.lines().filter(|line| !line.starts_with("created:"));
            *text = lines.collect::<Vec<_>>().join("\n");
        }
        let mut events = self.events();
        for event in &mut events {
            event["timestamp"].take();
            event["details"]["run"].take();
            // A kill may have cost one.
            if let Some(details) = event["details"].as_object_mut() {
                details.remove("attempt");
            }
        }
        let events: Vec<String> = events.iter().map(Value::to_string).collect();
        left.insert("events".to_owned(), events.join("\n"));
        left
    }
}

/// What the original's agents leave of three tasks, up to the approval.
pub(crate) fn graph_of_three(desk: &Desk) {
    let at = desk.path("");
    fs::create_dir_all(at.join("tasks")).unwrap();
    for name in ["prd.md", "plan.md", "constitution.md"] {
        fs::write(at.join(name), "# Written by the original\n").unwrap();
    }
    let task = |id: &str, after: &[&str]| {
        fs::write(at.join(format!("tasks/{id}.md")), "a contract\n").unwrap();
        json!({"id": id, "title": id, "phase": 1, "dependencies": after})
    };
    let tasks = [task("T001", &[]), task("T002", &["T001"]), task("T003", &["T001"])];
    fs::write(at.join("task-graph.json"), json!({"tasks": tasks}).to_string()).unwrap();
    say(desk, "orchestrator", r#"{"type":"phase_transition","from_phase":1,"to_phase":2"#);
}

/// A line of another actor, with the time that it is now.
pub(crate) fn say(desk: &Desk, actor: &str, event: &str) {
    let dir = desk.path("events").join(actor);
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("20260302-0900.jsonl");
    let now = std::process::Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.%6NZ"]).output();
    let now = String::from_utf8(now.unwrap().stdout).unwrap();
    let line = format!("{event},\"timestamp\":\"{}\"}}\n", now.trim());
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, before + &line).unwrap();
}

fn files(root: &Path, dir: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(root.join(dir)).into_iter().flatten().flatten() {
        let path = dir.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            files(root, &path, all);
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            all.insert(path.display().to_string(), text);
        }
    }
}
