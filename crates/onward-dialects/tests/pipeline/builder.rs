//! Task lists from a few readable words.
//!
//! A list is written as `P3:2+ P6:3+ P6:4~ P6:5- P6:6!`: the phase and the id of a work task, and
//! whether it is completed (`+`), in progress (`~`), pending (`-`) or failed (`!`).

use std::collections::BTreeMap;

use onward_core::{
    finding::Finding,
    plan::RecoveryPoint,
    time::Timestamp,
    told::{Standing, Told},
};
use onward_dialects::{
    File, Files, Git,
    pipeline::PIPELINE,
    seam::{Dialect, Root, Site},
};
use serde_json::{Value, json};

use crate::rows::{self, Imported};

pub(crate) const DIR: &str = "/users/me/.claude/tasks/session-1";

pub(crate) fn at(minute: u32) -> Timestamp {
    format!("2026-04-11T08:{minute:02}:00Z").parse().unwrap()
}

pub(crate) fn now() -> Timestamp {
    "2026-04-11T10:00:00Z".parse().unwrap()
}

#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) permanent: Value,
    pub(crate) tasks: BTreeMap<String, Value>,
    /// Files of the list beside the tasks.
    pub(crate) own: BTreeMap<String, String>,
    /// Files of the project, and when they were changed.
    pub(crate) project: BTreeMap<String, Timestamp>,
    pub(crate) modified: BTreeMap<String, Timestamp>,
    pub(crate) git: Option<Git>,
}

pub(crate) fn built(tier: &str, script: &str) -> Built {
    let permanent = json!({
        "id": "1", "subject": "[PERMANENT] Rate limiter", "description": "…",
        "status": "in_progress", "blocks": [], "blockedBy": [],
        "metadata": {"type": "permanent", "tier": tier, "current_phase": "P0",
            "commit_status": "pending"},
    });
    let (tasks, own) = (BTreeMap::new(), BTreeMap::new());
    let (project, modified) = (BTreeMap::new(), BTreeMap::new());
    let mut built = Built { permanent, tasks, own, project, modified, git: None };
    for word in script.split_whitespace() {
        let (phase, rest) = word.split_once(':').unwrap();
        let (id, sign) = rest.split_at(rest.len() - 1);
        let status = match sign {
            "+" => "completed",
            "~" => "in_progress",
            _ => "pending",
        };
        let mut task = json!({
            "id": id, "subject": format!("do {id}"), "description": "…", "status": status,
            "blocks": [], "blockedBy": [], "metadata": {"type": "work", "phase": phase},
        });
        if sign == "!" {
            task["status"] = json!("in_progress");
            task["metadata"]["error"] = json!("agent_interrupted");
        }
        built.tasks.insert(id.to_owned(), task);
    }
    built
}

impl Built {
    /// Sets a value of the `[PERMANENT]` task's metadata.
    pub(crate) fn meta(mut self, key: &str, value: Value) -> Self {
        self.permanent["metadata"][key] = value;
        self
    }

    pub(crate) fn task_meta(mut self, id: &str, key: &str, value: Value) -> Self {
        self.tasks.get_mut(id).unwrap()["metadata"][key] = value;
        self
    }

    pub(crate) fn blocked(mut self, id: &str, by: &[&str]) -> Self {
        self.tasks.get_mut(id).unwrap()["blockedBy"] = json!(by);
        self
    }

    pub(crate) fn own(mut self, path: &str, text: &str) -> Self {
        self.own.insert(path.to_owned(), text.to_owned());
        self
    }

    pub(crate) fn file(mut self, path: &str, minute: u32) -> Self {
        self.project.insert(path.to_owned(), at(minute));
        self
    }

    pub(crate) fn on(mut self, branch: Option<&str>) -> Self {
        let git = self.git.get_or_insert_with(Git::default);
        git.branch = branch.map(str::to_owned);
        self
    }

    /// Every task file was changed at 8:30, unless it is said otherwise.
    pub(crate) fn files(&self) -> Files {
        let mut files = Files::default();
        files.git.clone_from(&self.git);
        let mut add = |id: &str, value: &Value| {
            let modified = Some(self.modified.get(id).copied().unwrap_or(at(30)));
            let bytes = serde_json::to_vec_pretty(value).unwrap();
            files.insert(format!("{id}.json"), File { bytes, modified });
        };
        add("1", &self.permanent);
        for (id, task) in &self.tasks {
            add(id, task);
        }
        for (path, text) in &self.own {
            files.insert(path.as_str(), File { bytes: text.clone().into(), modified: None });
        }
        for (path, modified) in &self.project {
            let file = File { bytes: Vec::new(), modified: Some(*modified) };
            files.insert_in(1, path.as_str(), file);
        }
        files
    }

    pub(crate) fn told(&self) -> Box<dyn Told> {
        PIPELINE.read(&site(), self.files()).unwrap()
    }

    pub(crate) fn standing(&self) -> Standing {
        self.told().standing(now())
    }

    /// The recovery point, after it was held against what would start.
    pub(crate) fn point(&self) -> RecoveryPoint {
        self.imported();
        self.standing().point
    }

    pub(crate) fn imported(&self) -> Imported {
        rows::check_agreement(&site(), &*self.told())
    }

    /// `code phase steps`, and then what would start.
    pub(crate) fn line(&self) -> String {
        let point = self.point();
        let phase = point.phase.as_deref().unwrap_or("-");
        format!("{} {phase} {}", point.code, point.steps.join(" ")).trim_end().to_owned()
    }

    /// What would start, in order.
    pub(crate) fn next(&self) -> String {
        let mut left: Vec<String> =
            self.imported().left().iter().map(ToString::to_string).collect();
        left.sort_unstable();
        left.join(" ")
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.told().findings(now())
    }

    pub(crate) fn codes(&self) -> Vec<String> {
        self.findings().iter().map(|it| it.code.clone()).collect()
    }
}

pub(crate) fn site() -> Site {
    let mut site = Site::at(PIPELINE.card(), DIR);
    site.roots.push(Root { dir: ".".to_owned(), reads: Vec::new() });
    site
}

pub(crate) fn severity(finding: &Finding) -> String {
    serde_json::to_value(finding).unwrap()["severity"].as_str().unwrap().to_owned()
}
