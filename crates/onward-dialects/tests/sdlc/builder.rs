//! Projects from a few readable words.

use std::{collections::BTreeMap, fmt::Write as _};

use onward_core::{
    finding::Finding,
    plan::RecoveryPoint,
    time::Timestamp,
    told::{Standing, Told},
};
use onward_dialects::{
    File, Files, Since,
    sdlc::SDLC,
    seam::{Candidate, Dialect, Glimpse, Listing, Site},
};
use serde_json::{Value, json};

use crate::rows::{self, Imported};

pub(crate) const STATE: &str = ".nexos/workflow-state/run-state.yaml";
pub(crate) const LOOP: &str = "qa/2.1/loop-status.json";

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn now() -> Timestamp {
    at("2026-02-17T12:00:00Z")
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Project {
    pub(crate) files: BTreeMap<String, (String, Option<Timestamp>)>,
    pub(crate) alive: Vec<u32>,
    pub(crate) then: BTreeMap<String, String>,
    pub(crate) since: BTreeMap<String, Since>,
}

pub(crate) fn project() -> Project {
    Project::default()
}

/// A story with its usual sections, two of three tasks done.
pub(crate) fn story_text(id: &str, status: &str) -> String {
    format!(
        "# Story {id}: Log in\n\n**Status:** {status}\n**Epic:** 4\n\n## Story\n\nAs a user I log \
         in.\n\n## Acceptance Criteria\n\n1. It works.\n\n## Tasks / Subtasks\n\n- [x] Task 1\n- \
         [x] Task 2\n- [ ] Task 3\n\n## Dev Notes\n\n-\n\n## QA Results\n\n-\n\n## Change Log\n\n| \
         Date | Agent | Change |\n|---|---|---|\n| 2026-02-01 | sm | written |\n"
    )
}

impl Project {
    pub(crate) fn file(mut self, path: &str, text: impl Into<String>) -> Self {
        self.files.insert(path.to_owned(), (text.into(), None));
        self
    }

    /// The same, changed last at this moment.
    pub(crate) fn dated(mut self, path: &str, text: impl Into<String>, when: &str) -> Self {
        self.files.insert(path.to_owned(), (text.into(), Some(at(when))));
        self
    }

    pub(crate) fn without(mut self, path: &str) -> Self {
        self.files.remove(path).unwrap();
        self
    }

    pub(crate) fn story(self, id: &str, status: &str) -> Self {
        self.file(&format!("docs/stories/{id}.story.md"), story_text(id, status))
    }

    /// A state of the story 4.2, 45 minutes old.
    pub(crate) fn state(self, phase: &str) -> Self {
        let text = format!(
            "workflow: story-development-cycle\ncurrent_story: 4.2\ncurrent_phase: {phase}\n\
             updated_at: 2026-02-17T11:15:00Z\n"
        );
        self.file(STATE, text)
    }

    /// A loop of the story 2.1: each turn is a verdict, with a `+` where it was fixed.
    pub(crate) fn qa(self, current: u32, turns: &str) -> Self {
        let mut history = Vec::new();
        for (word, number) in turns.split_whitespace().zip(1..) {
            let verdict = word.trim_end_matches('+');
            let verdict = if verdict == "-" { Value::Null } else { json!(verdict) };
            let fixed =
                if word.ends_with('+') { json!("2026-02-17T10:00:00Z") } else { Value::Null };
            history.push(json!({"iteration": number, "verdict": verdict, "fixedAt": fixed}));
        }
        let value = json!({"storyId": "2.1", "currentIteration": current, "maxIterations": 5,
            "status": "in_progress", "startedAt": "2026-02-17T09:00:00Z",
            "updatedAt": "2026-02-17T11:20:00Z", "history": history});
        self.file(LOOP, value.to_string())
    }

    /// An epic 3: for each wave its status, its verdict, and its stories as `id=status`.
    pub(crate) fn epic(self, current: u32, waves: &[(&str, &str, &[&str])]) -> Self {
        let mut text = format!(
            "epic_state:\n  epicId: 3\n  mode: interactive\n  status: active\n  started_at: \
             \"2026-02-16T12:00:00Z\"\n  updated_at: \"2026-02-17T10:00:00Z\"\n  current_wave: \
             {current}\n  total_waves: {}\n  waves:\n",
            waves.len()
        );
        for ((status, _, stories), number) in waves.iter().zip(1..) {
            let _ = write!(text, "    {number}:\n      name: W{number}\n      status: {status}\n");
            text.push_str("      stories:\n");
            for (id, status) in stories.iter().map(|it| it.split_once('=').unwrap()) {
                let _ = write!(text, "        {id}:\n          status: {status}\n");
            }
        }
        text.push_str("  gate_verdicts:\n    0:\n      status: none\n");
        for ((_, verdict, _), number) in waves.iter().zip(1..) {
            if *verdict != "-" {
                let _ = write!(text, "    {number}:\n      status: {verdict}\n");
            }
        }
        self.file(".aiox/epic-3-state.yaml", text)
    }

    pub(crate) fn files(&self) -> Files {
        let mut files = Files::default();
        for (path, (text, modified)) in &self.files {
            let file = File { bytes: text.clone().into_bytes(), modified: *modified };
            files.insert(path.as_str(), file);
        }
        files.alive.extend(self.alive.iter().copied());
        if !self.then.is_empty() || !self.since.is_empty() {
            let then = self.then.iter().map(|(path, text)| (path.clone(), text.clone().into()));
            files.git = Some(onward_dialects::Git {
                then: then.collect(),
                since: self.since.clone(),
                ..onward_dialects::Git::default()
            });
        }
        files
    }

    pub(crate) fn sites(&self) -> Vec<Site> {
        let glimpse = |(path, (text, modified)): (&String, &(String, Option<Timestamp>))| {
            let bytes = Some(text.clone().into_bytes());
            (path.clone(), Glimpse { modified: *modified, bytes })
        };
        let marks = self.files.iter().map(glimpse).collect();
        let candidates = vec![Candidate { dir: ".".to_owned(), marks }];
        SDLC.sites(&Listing { candidates, ..Listing::default() })
    }

    pub(crate) fn site(&self) -> Site {
        let mut sites = self.sites();
        assert_eq!(sites.len(), 1, "{:?}", sites.iter().map(|it| &it.name).collect::<Vec<_>>());
        sites.remove(0)
    }

    pub(crate) fn told(&self) -> Box<dyn Told> {
        SDLC.read(&self.site(), self.files()).unwrap()
    }

    pub(crate) fn standing(&self) -> Standing {
        self.told().standing(now())
    }

    pub(crate) fn point(&self) -> RecoveryPoint {
        self.imported();
        self.standing().point
    }

    /// Everything adopted, after what is left was held against the recovery point.
    pub(crate) fn imported(&self) -> Imported {
        rows::check_agreement(&self.site(), &*self.told())
    }

    /// `code phase steps`.
    pub(crate) fn line(&self) -> String {
        let point = self.point();
        let phase = point.phase.unwrap_or_else(|| "-".to_owned());
        format!("{} {phase} {}", point.code, point.steps.join(" ")).trim_end().to_owned()
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.told().findings(now())
    }

    pub(crate) fn codes(&self) -> Vec<String> {
        self.findings().into_iter().map(|it| it.code).collect()
    }
}
