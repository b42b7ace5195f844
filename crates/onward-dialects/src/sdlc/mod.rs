//! The dialect `sdlc`: stories, specs, QA loops and epics, whose state lies in files of a project.
//!
//! This page holds the card and the recovery tables. `status` has the spellings and the table of
//! discrepancies; `story` (`front` above it), `state`, `qa`, `spec` and `epic` read one kind of
//! file each, `project` all of them; `site` says which runs are there, `check` what is wrong
//! (`check_epic` with waves), `touched` what other work did to a story's files, `others` which
//! other workflows were begun on it, `lock` who else is at work, `told` answers core, `overtaken`
//! which of our own notes a person has overtaken, `report` in the words that its users know,
//! `preflight` all that was compared, `clean` what is put away when a run is given up.
//! Invariant: pure; where a run re-enters is decided by the tables alone.

mod check;
mod check_epic;
mod clean;
mod enter;
pub mod epic;
mod front;
mod knows;
mod lock;
mod others;
mod overtaken;
mod preflight;
pub mod project;
pub mod qa;
mod report;
mod site;
pub mod spec;
pub mod state;
pub mod status;
mod step;
pub mod story;
mod story_run;
mod told;
mod touched;
mod write;

use std::collections::BTreeMap;

use onward_core::{time::Timestamp, told::Told};
use serde_json::Value;

pub use check::Own;
pub use status::{Reading, Says, Status, reading, status};
pub use step::waves;
pub use story::{Story, is_same as is_same_story};

use crate::{
    Files,
    kit::decision::{ANY, NO, Row, YES, decide},
    seam::{Card, Dialect, Home, Listing, Mark, Missing, Site, Watch},
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct SdlcDialect;

pub static SDLC: SdlcDialect = SdlcDialect;

const fn peek(glob: &'static str) -> Mark {
    Mark { glob, peek: true }
}

/// The three names of the state directory are one thing.
static CARD: Card = Card {
    name: "sdlc",
    workflows: &["sdc", "spec", "qa-loop", "epic"],
    entries: &[
        "sdc:create",
        "sdc:validate",
        "sdc:implement",
        "sdc:qa-gate",
        "spec:gather",
        "spec:assess",
        "spec:research",
        "spec:write",
        "spec:critique",
        "qa-loop:review",
        "qa-loop:fix",
        "qa-loop:escalate",
        "epic:stories",
        "epic:gate",
        "epic:final-gate",
    ],
    home: Home::Project,
    marks: &[
        peek(".nexos/*-state.yaml"),
        peek(".aios/*-state.yaml"),
        peek(".aiox/*-state.yaml"),
        peek(".nexos/workflow-state/*"),
        peek(".aios/workflow-state/*"),
        peek(".aiox/workflow-state/*"),
        peek(".aios/master-orchestrator/*.json"),
        peek(".aiox/master-orchestrator/*.json"),
        peek("qa/loop-status.json"),
        peek("qa/*/loop-status.json"),
        peek("docs/stories/.session-state.yaml"),
        peek("docs/stories/**/*.md"),
        peek("docs/stories/*/spec/*"),
        peek("docs/specs/*/*"),
        // A spec of which nothing is written yet.
        Mark { glob: "docs/specs/*/", peek: false },
    ],
    reads: &[
        ".nexos/*-state.yaml",
        ".aios/*-state.yaml",
        ".aiox/*-state.yaml",
        ".nexos/*-state.yaml.bak",
        ".aios/*-state.yaml.bak",
        ".aiox/*-state.yaml.bak",
        ".nexos/workflow-state/*",
        ".aios/workflow-state/*",
        ".aiox/workflow-state/*",
        ".aios/master-orchestrator/*.json",
        ".aiox/master-orchestrator/*.json",
        ".nexos/locks/*.lock",
        ".aios/locks/*.lock",
        ".aiox/locks/*.lock",
        "qa/loop-status.json",
        "qa/*/loop-status.json",
        "docs/stories/.session-state.yaml",
        "docs/stories/**/*.md",
        "docs/stories/**/*EXECUTION.yaml",
        "docs/epics/**/*EXECUTION.yaml",
        "docs/stories/*/spec/*",
        "docs/specs/*/*",
        "docs/qa/gates/*.yml",
        "docs/qa/gates/*.yaml",
    ],
    grows: &[],
    agents_declare: false,
    // Stories and artifacts are written by agents too; how far a run is, is not.
    keeps: &[
        ".nexos/**",
        ".aios/**",
        ".aiox/**",
        "qa/loop-status.json",
        "qa/*/loop-status.json",
        "docs/stories/.session-state.yaml",
        "docs/qa/gates/*.yml",
        "docs/qa/gates/*.yaml",
    ],
    branches: None,
    processes: &[
        (".nexos/locks/*.lock", ""),
        (".aios/locks/*.lock", ""),
        (".aiox/locks/*.lock", ""),
    ],
    lock: None,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Create,
    Validate,
    Implement,
    QaGate,
    /// A story's checkpoint waits for its answer.
    StoryCheckpoint,
    Gather,
    Assess,
    Research,
    Write,
    Critique,
    Review,
    Fix,
    Escalate,
    Stories,
    Gate,
    /// The same of a wave.
    Checkpoint,
    FinalGate,
    Complete,
}

impl Code {
    /// Its word, the name of the phase, and who works there.
    #[rustfmt::skip]
    pub const fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Create          => ("sdc:create",       "Create",     "sm"),
            Self::Validate        => ("sdc:validate",     "Validate",   "po"),
            Self::Implement       => ("sdc:implement",    "Implement",  "dev"),
            Self::QaGate          => ("sdc:qa-gate",      "QA Gate",    "qa"),
            Self::StoryCheckpoint => ("sdc:checkpoint",   "Checkpoint", "master"),
            Self::Gather          => ("spec:gather",      "Gather",     "pm"),
            Self::Assess          => ("spec:assess",      "Assess",     "architect"),
            Self::Research        => ("spec:research",    "Research",   "analyst"),
            Self::Write           => ("spec:write",       "Write Spec", "pm"),
            Self::Critique        => ("spec:critique",    "Critique",   "qa"),
            Self::Review          => ("qa-loop:review",   "Review",     "qa"),
            Self::Fix             => ("qa-loop:fix",      "Fix",        "dev"),
            Self::Escalate        => ("qa-loop:escalate", "Escalate",   "master"),
            Self::Stories         => ("epic:stories",     "Stories",    "dev"),
            Self::Gate            => ("epic:gate",        "Wave Gate",  "architect"),
            Self::Checkpoint      => ("epic:checkpoint",  "Checkpoint", "master"),
            Self::FinalGate       => ("epic:final-gate",  "Final Gate", "architect"),
            Self::Complete        => ("complete",         "Complete",   "-"),
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.row().0
    }
}

/// What decides about a story.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of a decision table")]
pub struct StoryFacts {
    /// A checkpoint waits for its answer.
    pub awaits: bool,
    /// Its file is there.
    pub there: bool,
    /// The last gate failed; gates of an earlier cycle do not count.
    pub failed: bool,
    pub passed: bool,
    pub done: bool,
    pub review: bool,
    pub draft: bool,
}

#[rustfmt::skip]
const STORY: [Row<7, Code>; 8] = [
    // awaits there failed passed done review draft
    ([YES,    ANY,  ANY,   ANY,   ANY, ANY,   ANY], Code::StoryCheckpoint),
    ([NO,     NO,   ANY,   ANY,   ANY, ANY,   ANY], Code::Create),
    ([NO,     YES,  YES,   ANY,   ANY, ANY,   ANY], Code::Implement),
    ([NO,     YES,  NO,    YES,   ANY, ANY,   ANY], Code::Complete),
    ([NO,     YES,  NO,    NO,    YES, ANY,   ANY], Code::Complete),
    ([NO,     YES,  NO,    NO,    NO,  YES,   ANY], Code::QaGate),
    ([NO,     YES,  NO,    NO,    NO,  NO,    YES], Code::Validate),
    // Ready, in progress, or blocked.
    ([ANY,    ANY,  ANY,   ANY,   ANY, ANY,   ANY], Code::Implement),
];

pub fn story_code(it: StoryFacts) -> Code {
    let answers = [it.awaits, it.there, it.failed, it.passed, it.done, it.review, it.draft];
    decide(&STORY, answers).unwrap_or(Code::Validate)
}

/// What decides about a spec: which artifacts are there, and what the critique says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of a decision table")]
pub struct SpecFacts {
    pub requirements: bool,
    pub complexity: bool,
    /// SIMPLE: no research.
    pub simple: bool,
    pub research: bool,
    pub spec: bool,
    /// There is a critique of the spec as it is now.
    pub judged: bool,
    pub approved: bool,
}

#[rustfmt::skip]
const SPEC: [Row<7, Code>; 8] = [
    // requirements complexity simple research spec judged approved
    ([ANY,          ANY,       ANY,   ANY,     YES, YES,   YES], Code::Complete),
    ([ANY,          ANY,       ANY,   ANY,     YES, YES,   NO ], Code::Write),
    ([ANY,          ANY,       ANY,   ANY,     YES, NO,    ANY], Code::Critique),
    ([ANY,          ANY,       ANY,   YES,     NO,  ANY,   ANY], Code::Write),
    ([ANY,          YES,       YES,   NO,      NO,  ANY,   ANY], Code::Write),
    ([ANY,          YES,       NO,    NO,      NO,  ANY,   ANY], Code::Research),
    ([YES,          NO,        ANY,   NO,      NO,  ANY,   ANY], Code::Assess),
    ([ANY,          ANY,       ANY,   ANY,     ANY, ANY,   ANY], Code::Gather),
];

pub fn spec_code(it: SpecFacts) -> Code {
    let answers =
        [it.requirements, it.complexity, it.simple, it.research, it.spec, it.judged, it.approved];
    decide(&SPEC, answers).unwrap_or(Code::Gather)
}

/// Iteration `N` of a QA loop, by its verdict, whether it was fixed, and what is left of the limit.
const fn loop_code(next: qa::Next) -> Code {
    match next {
        // No verdict: this very iteration. Rejected and fixed: the next one.
        qa::Next::Review(_) => Code::Review,
        qa::Next::Fix(_) => Code::Fix,
        // Blocked, escalated, or rejected and fixed in the last iteration.
        qa::Next::Escalate(_) => Code::Escalate,
        qa::Next::Over => Code::Complete,
    }
}

/// A wave of an epic, by its stories and verdicts.
const fn epic_code(next: epic::Next) -> Code {
    match next {
        epic::Next::Stories(_) => Code::Stories,
        epic::Next::Gate(_) => Code::Gate,
        epic::Next::Checkpoint(_) => Code::Checkpoint,
        epic::Next::FinalGate => Code::FinalGate,
        epic::Next::Over => Code::Complete,
    }
}

impl Dialect for SdlcDialect {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn sites(&self, seen: &Listing) -> Vec<Site> {
        seen.candidates.iter().flat_map(|it| site::sites(&CARD, it)).collect()
    }

    fn site(&self, dir: &str, workflow: &str, inputs: &BTreeMap<String, Value>) -> Site {
        site::of_inputs(&CARD, dir, workflow, inputs)
    }

    fn meant_by(
        &self,
        path: &str,
        bytes: &[u8],
    ) -> Option<(&'static str, BTreeMap<String, Value>)> {
        site::meant_by(path, bytes)
    }

    fn about(&self, workflow: &str, inputs: &BTreeMap<String, Value>) -> Option<String> {
        site::about_run(workflow, inputs)
    }

    fn moments(&self, site: &Site, files: &Files) -> Vec<(String, Timestamp)> {
        site::moments(site, files)
    }

    fn more(&self, site: &Site, files: &Files) -> Vec<String> {
        site::more(site, files)
    }

    fn watch(&self, site: &Site, files: &Files) -> Option<Watch> {
        site::watch(site, files)
    }

    fn read(&self, site: &Site, files: Files) -> Result<Box<dyn Told>, Missing> {
        told::SdlcTold::new(site, files).map(|told| Box::new(told) as Box<dyn Told>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::decision::{all_answers, idle_rows, row_for};

    #[test]
    fn every_story_and_every_spec_is_decided_and_no_row_is_idle() {
        assert!(all_answers().all(|it| row_for(&STORY, it).is_some()));
        assert!(all_answers().all(|it| row_for(&SPEC, it).is_some()));
        assert_eq!((idle_rows(&STORY), idle_rows(&SPEC)), (vec![], vec![]));
    }
}
