//! The dialect `agent-memory`: runs below `.agent-memory/runs`, whose state is what the event logs
//! of all actors say together.
//!
//! This page holds the card and the recovery table; `site` finds the runs, `read` makes one value
//! of the files (`event` the logs, `order` their order, `graph` the task graph), `tasks` says how
//! far each task is, `check` what is wrong, `told` answers core (`rework` about what comes after
//! the first pass over all tasks), `write` says what onward adds.
//! Invariant: pure, and no file of another actor is ever written.

mod check;
mod enter;
mod event;
mod graph;
mod order;
pub mod read;
mod rework;
mod site;
pub mod tasks;
mod told;
pub mod write;

use std::collections::BTreeMap;

use onward_core::{time::Timestamp, told::Told};
use serde_json::Value;

use crate::{
    Files,
    kit::decision::{ANY, NO, Row, YES, decide},
    seam::{Card, Dialect, Home, Listing, Mark, Missing, Site},
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct AgentMemoryDialect;

pub static AGENT_MEMORY: AgentMemoryDialect = AgentMemoryDialect;

/// Where the runs lie, from the project's directory.
pub const RUNS: &str = ".agent-memory/runs";

static CARD: Card = Card {
    name: "agent-memory",
    workflows: &["agent-memory"],
    entries: &[
        "intake",
        "planning",
        "approval",
        "execute",
        "verify",
        "blocked",
        "cleanup",
        "consolidate",
    ],
    home: Home::Project,
    marks: &[
        // The first one is where a person wrote down what they want.
        Mark { glob: ".agent-memory/runs/*/constitution.md", peek: false },
        Mark { glob: ".agent-memory/runs/*/", peek: false },
        Mark { glob: ".agent-memory/runs/*/*.*", peek: false },
        Mark { glob: ".agent-memory/runs/*/events/**/*.jsonl", peek: true },
    ],
    reads: &[
        "prd.md",
        "plan.md",
        "constitution.md",
        "task-graph.json",
        "task-graph.json.tmp",
        "summary.md",
        "pr-description.md",
        "workflow-state.json",
        "tasks/*.md",
        "verifications/*",
        "verification/*",
        "events/**/*.jsonl",
    ],
    grows: &["events/**/*.jsonl"],
    agents_declare: true,
    keeps: &[],
    branches: None,
    processes: &[],
    lock: None,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Intake,
    Planning,
    Approval,
    Execute,
    Verify,
    Blocked,
    Cleanup,
    Consolidate,
    Complete,
}

impl Code {
    /// Its word, and the phase that it re-enters.
    #[rustfmt::skip]
    const fn row(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Intake      => ("intake",      Some("0")),
            Self::Planning    => ("planning",    Some("1")),
            Self::Approval    => ("approval",    Some("1")),
            Self::Execute     => ("execute",     Some("2")),
            Self::Verify      => ("verify",      Some("2")),
            Self::Blocked     => ("blocked",     Some("2")),
            Self::Cleanup     => ("cleanup",     Some("3")),
            Self::Consolidate => ("consolidate", Some("4")),
            Self::Complete    => ("complete",    None),
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    pub const fn phase(self) -> Option<&'static str> {
        self.row().1
    }
}

/// What decides. Each is a question about the files, answered on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of a decision table")]
pub struct Facts {
    /// An event says that the run is complete, or there is a summary.
    pub complete: bool,
    pub prd: bool,
    pub plan: bool,
    /// The task graph parses and has tasks, and their contracts are all there or none is.
    pub graph: bool,
    /// The user has said yes: the constitution is there, and no later event went back before it.
    pub approved: bool,
    /// Every task is done.
    pub built: bool,
    /// Three tasks or more wait for the verifier.
    pub full: bool,
    /// Some task can be executed.
    pub runnable: bool,
    /// Some task waits for the verifier.
    pub unverified: bool,
    /// The pull request is described, and no event says that the run is still before that.
    pub prepared: bool,
}

/// The first row that fits decides.
#[rustfmt::skip]
const TABLE: [Row<10, Code>; 11] = [
    // complete prd plan graph approved built full runnable unverified prepared
    ([YES, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY], Code::Complete),
    ([NO,  NO,  ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY], Code::Intake),
    ([NO,  YES, NO,  ANY, ANY, ANY, ANY, ANY, ANY, ANY], Code::Planning),
    ([NO,  YES, YES, NO,  ANY, ANY, ANY, ANY, ANY, ANY], Code::Planning),
    ([NO,  YES, YES, YES, NO,  ANY, ANY, ANY, ANY, ANY], Code::Approval),
    ([NO,  YES, YES, YES, YES, YES, ANY, ANY, ANY, NO ], Code::Cleanup),
    ([NO,  YES, YES, YES, YES, YES, ANY, ANY, ANY, YES], Code::Consolidate),
    ([NO,  YES, YES, YES, YES, NO,  YES, ANY, ANY, ANY], Code::Verify),
    ([NO,  YES, YES, YES, YES, NO,  NO,  YES, ANY, ANY], Code::Execute),
    ([NO,  YES, YES, YES, YES, NO,  NO,  NO,  YES, ANY], Code::Verify),
    ([NO,  YES, YES, YES, YES, NO,  NO,  NO,  NO,  ANY], Code::Blocked),
];

/// Where the run re-enters.
pub fn code(facts: Facts) -> Code {
    let Facts { complete, prd, plan, graph, approved, .. } = facts;
    let Facts { built, full, runnable, unverified, prepared, .. } = facts;
    let answers =
        [complete, prd, plan, graph, approved, built, full, runnable, unverified, prepared];
    decide(&TABLE, answers).unwrap_or(Code::Intake)
}

impl Dialect for AgentMemoryDialect {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn sites(&self, seen: &Listing) -> Vec<Site> {
        site::sites(&CARD, seen)
    }

    fn is_told_what(&self) -> bool {
        true
    }

    fn fresh(&self, given: &BTreeMap<String, Value>, now: Timestamp) -> BTreeMap<String, Value> {
        let text = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
        if !text("dir").is_empty() {
            return BTreeMap::new();
        }
        [("dir".to_owned(), site::fresh(text("request"), now).into())].into()
    }

    /// A directory that holds nothing yet is a run in its first phase.
    fn read(&self, site: &Site, files: Files) -> Result<Box<dyn Told>, Missing> {
        Ok(Box::new(told::AgentMemoryTold::new(site.dir(), files)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::decision::{all_answers, idle_rows};

    /// The rulings again, as questions instead of rows.
    fn by_questions(facts: Facts) -> Code {
        if facts.complete {
            return Code::Complete;
        }
        if !facts.prd {
            return Code::Intake;
        }
        if !facts.plan || !facts.graph {
            return Code::Planning;
        }
        if !facts.approved {
            return Code::Approval;
        }
        if facts.built {
            return if facts.prepared { Code::Consolidate } else { Code::Cleanup };
        }
        match (facts.full, facts.runnable, facts.unverified) {
            (true, _, _) | (false, false, true) => Code::Verify,
            (false, true, _) => Code::Execute,
            (false, false, false) => Code::Blocked,
        }
    }

    #[test]
    fn every_combination_of_facts_gives_what_the_rulings_say_and_every_row_is_needed() {
        for [complete, prd, plan, graph, approved, built, full, runnable, unverified, prepared] in
            all_answers()
        {
            let facts = Facts {
                complete,
                prd,
                plan,
                graph,
                approved,
                built,
                full,
                runnable,
                unverified,
                prepared,
            };
            assert_eq!(code(facts), by_questions(facts), "{facts:?}");
        }
        assert_eq!(idle_rows(&TABLE), Vec::<usize>::new());
    }
}
