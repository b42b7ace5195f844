//! Runs of agent-memory from a few readable words.

use onward_core::{
    finding::Finding,
    plan::RecoveryPoint,
    time::Timestamp,
    told::{Standing, Told},
};
use onward_dialects::{
    File, Files,
    agent_memory::AGENT_MEMORY,
    seam::{Dialect, Site},
};
use serde_json::{Value, json};

use crate::rows::{self, Imported};

pub(crate) const RUN: &str = ".agent-memory/runs/20260302-0930-rate-limiter-k3x9";

pub(crate) fn now() -> Timestamp {
    "2026-03-02T12:00:00Z".parse().unwrap()
}

pub(crate) fn site() -> Site {
    Site::at(AGENT_MEMORY.card(), RUN)
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Built {
    pub(crate) files: Files,
    /// Minutes since nine, for the next event.
    pub(crate) minute: u32,
}

/// A run that has come so far: each word adds to those before it.
pub(crate) fn built(upto: &str) -> Built {
    let mut built = Built::default();
    for (word, paths) in [
        ("empty", &[][..]),
        ("prd", &["prd.md"]),
        ("plan", &["plan.md"]),
        ("graph", &[]),
        ("approved", &["constitution.md"]),
    ] {
        for path in paths {
            built = built.file(path, "# Some text\n");
        }
        if word == "graph" {
            built = built.graph(&[("T001", &[]), ("T002", &["T001"]), ("T003", &["T002"])]);
        }
        if word == upto {
            break;
        }
    }
    built
}

impl Built {
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path, File { bytes: text.into(), modified: None });
        self
    }

    pub(crate) fn without(mut self, path: &str) -> Self {
        self.files.remove(path).unwrap();
        self
    }

    pub(crate) fn graph(self, tasks: &[(&str, &[&str])]) -> Self {
        let task = |(id, after): &(&str, &[&str])| {
            json!({"id": id, "title": format!("Do {id}"), "phase": 1, "dependencies": after,
                "estimated_complexity": "low"})
        };
        let tasks: Vec<Value> = tasks.iter().map(task).collect();
        self.file("task-graph.json", &json!({"run_id": "x", "tasks": tasks}).to_string())
    }

    /// A line of a log, as it is.
    pub(crate) fn line(mut self, file: &str, line: &str) -> Self {
        let path = format!("events/{file}.jsonl");
        let mut bytes = self.files.bytes(&path).unwrap_or_default().to_vec();
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.files.insert(path, File { bytes, modified: None });
        self
    }

    fn at(&mut self) -> String {
        self.minute += 1;
        format!("2026-03-02T{:02}:{:02}:00Z", 9 + self.minute / 60, self.minute % 60)
    }

    /// `task-implemented T001`, one minute after the event before it.
    pub(crate) fn event(mut self, words: &str) -> Self {
        let (kind, task) = words.split_once(' ').unwrap_or((words, ""));
        let at = self.at();
        let event = json!({"event_type": kind, "task_id": task, "timestamp": at,
            "actor": "executor", "details": {}});
        self.line("executor/20260302-0900", &event.to_string())
    }

    pub(crate) fn events(self, all: &[&str]) -> Self {
        all.iter().fold(self, |built, words| built.event(words))
    }

    pub(crate) fn phase(mut self, to: u32) -> Self {
        let at = self.at();
        let event = json!({"type": "phase_transition", "from_phase": to.saturating_sub(1),
            "to_phase": to, "timestamp": at, "trigger": "user_approval", "notes": ""});
        self.line("orchestrator/20260302-0900", &event.to_string())
    }

    pub(crate) fn done(self, ids: &[&str]) -> Self {
        ids.iter().fold(self, |built, id| {
            let words = ["task-claimed", "task-implemented", "task-verified"];
            words.iter().fold(built, |built, word| built.event(&format!("{word} {id}")))
        })
    }

    pub(crate) fn told(&self) -> Box<dyn Told> {
        AGENT_MEMORY.read(&site(), self.files.clone()).unwrap()
    }

    /// The recovery point in one line, after it was held against what would start.
    pub(crate) fn point(&self) -> String {
        self.imported();
        line(&self.standing().point)
    }

    pub(crate) fn standing(&self) -> Standing {
        self.told().standing(now())
    }

    pub(crate) fn imported(&self) -> Imported {
        rows::check_agreement(&site(), &*self.told())
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.told().findings(now())
    }

    pub(crate) fn codes(&self) -> Vec<String> {
        self.findings().iter().map(|it| it.code.clone()).collect()
    }
}

/// `code phase step step`
fn line(point: &RecoveryPoint) -> String {
    let phase = point.phase.as_deref().unwrap_or("-");
    format!("{} {phase} {}", point.code, point.steps.join(" ")).trim_end().to_owned()
}
