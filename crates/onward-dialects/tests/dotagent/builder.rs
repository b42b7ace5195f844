//! Directories of dotagent from a few readable words.

use onward_core::{
    finding::Finding,
    plan::RecoveryPoint,
    time::Timestamp,
    told::{Standing, Told},
};
use onward_dialects::{
    File, Files,
    dotagent::DOTAGENT,
    seam::{Dialect, Site},
};
use serde_json::{Value, json};

use crate::rows::{self, Imported};

pub(crate) const PHASES: [&str; 5] =
    ["REQUIREMENTS", "ARCHITECTURE", "IMPLEMENTATION", "VERIFICATION", "REFLECTION"];

pub(crate) fn now() -> Timestamp {
    "2026-04-11T10:00:00Z".parse().unwrap()
}

/// A run in `phase`, everything before it in order.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) phase: Value,
    pub(crate) execution: Option<Value>,
    pub(crate) files: Files,
}

pub(crate) fn built(phase: &str) -> Built {
    let before = PHASES.iter().take_while(|it| **it != phase);
    let completed: Vec<Value> = before
        .enumerate()
        .map(|(hour, it)| {
            json!({"phase": it, "completed_at": format!("2026-04-11T0{}:30:00Z", hour + 4)})
        })
        .collect();
    let state = json!({
        "workflow_id": "wf-20260411-auth",
        "started_at": "2026-04-11T04:00:00Z",
        "last_updated": "2026-04-11T09:12:40Z",
        "current_phase": phase,
        "phase_status": "in_progress",
        "completed_phases": completed,
        "user_checkpoints": [],
        "interruption_safe": true,
    });
    Built { phase: state, execution: None, files: Files::default() }
}

pub(crate) fn task(id: &str, status: &str, attempts: u32) -> Value {
    json!({"id": id, "status": status, "attempts": attempts,
        "started_at": "2026-04-11T08:50:00Z", "completed_at": null,
        "output": format!("memory/tasks/{id}/output.json")})
}

impl Built {
    pub(crate) fn set(mut self, key: &str, value: Value) -> Self {
        self.phase[key] = value;
        self
    }

    pub(crate) fn approved(self) -> Self {
        let said = json!([{"phase": "REQUIREMENTS", "approved_at": "2026-04-11T08:10:00Z"}]);
        self.set("user_checkpoints", said)
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        let file = File { bytes: text.into(), modified: None };
        self.files.insert(format!("memory/{path}"), file);
        self
    }

    pub(crate) fn demand(self) -> Self {
        self.file("reports/demand.json", r#"{"goal":"log in"}"#)
    }

    pub(crate) fn tasks(mut self, tasks: &[Value]) -> Self {
        self.execution = Some(json!({"workflow_id": "wf-20260411-auth", "tasks": tasks}));
        self
    }

    pub(crate) fn output(self, id: &str, status: &str) -> Self {
        let text = json!({"task_id": id, "status": status}).to_string();
        self.file(&format!("tasks/{id}/output.json"), &text)
    }

    pub(crate) fn files(&self) -> Files {
        let mut files = self.files.clone();
        let mut add = |path: &str, value: &Value| {
            if !files.contains(path) {
                let bytes = value.to_string().into_bytes();
                files.insert(path, File { bytes, modified: None });
            }
        };
        add("memory/state/phase.json", &self.phase);
        if let Some(execution) = &self.execution {
            add("memory/state/execution.json", execution);
        }
        files
    }

    pub(crate) fn told(&self) -> Box<dyn Told> {
        DOTAGENT.read(&site(), self.files()).unwrap()
    }

    /// The recovery point, after it was held against what would start.
    pub(crate) fn point(&self) -> RecoveryPoint {
        self.imported();
        self.standing().point
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

    /// `code` or `code severity` of every finding.
    pub(crate) fn codes(&self) -> Vec<String> {
        self.findings().iter().map(|it| it.code.clone()).collect()
    }
}

pub(crate) fn site() -> Site {
    Site::at(DOTAGENT.card(), ".")
}

/// Codes, phases and steps in one line: `code PHASE step step`.
pub(crate) fn line(point: &RecoveryPoint) -> String {
    let phase = point.phase.as_deref().unwrap_or("-");
    format!("{} {phase} {}", point.code, point.steps.join(" ")).trim_end().to_owned()
}

pub(crate) fn severity(finding: &Finding) -> String {
    serde_json::to_value(finding).unwrap()["severity"].as_str().unwrap().to_owned()
}
