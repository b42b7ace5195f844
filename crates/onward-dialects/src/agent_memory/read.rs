//! The files of a run as one value, each read once.
//!
//! Invariant: a file counts as there when it holds more than white space.

use std::collections::BTreeSet;

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::{
    event::{ACTOR, Event, Kind, Log, PhaseWord, phase_word},
    graph::Graph,
};
use crate::{
    Files,
    kit::{
        json::{self, Oddities},
        path::component,
    },
};

pub use super::event::End;

pub const PRD: &str = "prd.md";
pub const PLAN: &str = "plan.md";
pub const CONSTITUTION: &str = "constitution.md";
pub const GRAPH: &str = "task-graph.json";
pub const SUMMARY: &str = "summary.md";
pub const PR: &str = "pr-description.md";
const STATE: &str = "workflow-state.json";

/// What became of the task graph.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphFile {
    Missing,
    Broken(String),
    Whole(Graph),
}

/// Everything that the files say, before anything is concluded from it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one file is there")]
pub struct State {
    pub prd: bool,
    pub plan: bool,
    pub constitution: bool,
    pub pr: bool,
    pub summary: bool,
    pub graph: GraphFile,
    /// Tasks without their contract, while others have one.
    pub uncontracted: Vec<String>,
    /// No task has a contract.
    pub no_contracts: bool,
    pub log: Log,
    /// The phase, from 0 to 4, that the last transition went to.
    pub hint: Option<u32>,
    /// A transition names a phase that is none.
    pub odd_phase: Option<String>,
    pub end: Option<End>,
    pub odd: Oddities,
    /// When the newest file was written.
    pub touched: Option<Timestamp>,
    /// The last transition was made for the plan, or for the user's yes to it.
    pub by_plan: bool,
    /// A run of ours was resumed after the last transition: its journal knows of it.
    pub is_heard: bool,
    /// A person wants these made again, and they are still as they were.
    pub void: BTreeSet<String>,
}

impl State {
    pub fn of(files: &Files) -> Self {
        let odd = Oddities::default();
        let log = Log::of(files);
        let void = log.void(files);
        let counts = |path: &str| files.bytes(path).filter(|_| !void.contains(path));
        let is_there = |path: &str| counts(path).is_some_and(|it| !is_blank(it));
        let graph = match counts(GRAPH).map(json::object) {
            None => GraphFile::Missing,
            Some(Err(why)) => GraphFile::Broken(why),
            Some(Ok(map)) => GraphFile::Whole(Graph::of(&map, GRAPH, &odd)),
        };
        let tasks = match &graph {
            GraphFile::Whole(graph) => graph.tasks.as_slice(),
            GraphFile::Missing | GraphFile::Broken(_) => &[],
        };
        let lacks = tasks.iter().filter(|it| !is_there(&contract(&it.id)));
        let mut uncontracted: Vec<String> = lacks.map(|it| it.id.clone()).collect();
        let no_contracts = uncontracted.len() == tasks.len();
        if no_contracts {
            uncontracted.clear();
        }
        let head = files.contains(STATE);
        let (hint, odd_phase) = hint(&log, head);
        Self {
            prd: is_there(PRD),
            plan: is_there(PLAN),
            constitution: is_there(CONSTITUTION),
            pr: is_there(PR),
            summary: is_there(SUMMARY),
            no_contracts: no_contracts && !tasks.is_empty(),
            uncontracted,
            graph,
            end: end(&log),
            by_plan: by_plan(&log),
            is_heard: is_heard(&log),
            void: void.clone(),
            log,
            hint,
            odd_phase,
            odd,
            touched: files.iter().filter_map(|(_, file)| file.modified).max(),
        }
    }

    pub fn graph(&self) -> Option<&Graph> {
        match &self.graph {
            GraphFile::Whole(graph) => Some(graph),
            GraphFile::Missing | GraphFile::Broken(_) => None,
        }
    }

    /// The user has said yes, and no later event went back before that.
    pub fn is_approved(&self) -> bool {
        self.constitution && self.hint.is_none_or(|phase| phase >= 2)
    }

    /// What the approval rests on and is not there.
    pub fn lost(&self) -> Vec<&'static str> {
        let all = [(PRD, self.prd), (PLAN, self.plan)];
        all.into_iter().filter(|it| !it.1).map(|it| it.0).collect()
    }
}

/// The contract of a task.
pub fn contract(id: &str) -> String {
    format!("tasks/{}.md", component(id))
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0)
}

/// The phase of the last transition, in the numbers 0 to 4. The system's second version counts to
/// 6 (1 routes, 3 is the approval); it is known by its state file or by a phase beyond 4.
fn hint(log: &Log, head: bool) -> (Option<u32>, Option<String>) {
    let words = log.events.iter().filter_map(|it| match &it.kind {
        Kind::Phase { to, .. } => Some(to.clone().unwrap_or_default()),
        Kind::Task { .. } | Kind::Unjudged { .. } | Kind::Ended(_) | Kind::Begun | Kind::Other => {
            None
        }
    });
    let words: Vec<String> = words.collect();
    let numbers: Vec<Option<PhaseWord>> = words.iter().map(|it| phase_word(it)).collect();
    let is_beyond = |it: &PhaseWord| matches!(it, PhaseWord::Numbered(5..=6));
    let head = head || numbers.iter().flatten().any(is_beyond);
    let phase = numbers.last().copied().flatten().and_then(|last| match last {
        PhaseWord::Named(number) => Some(number),
        PhaseWord::Numbered(0) => Some(0),
        PhaseWord::Numbered(number) if head => match number {
            1..=3 => Some(1),
            4..=6 => Some(number - 2),
            _ => None,
        },
        PhaseWord::Numbered(number) => (number <= 4).then_some(number),
    });
    let odd = words.last().filter(|_| phase.is_none()).cloned();
    (phase, odd)
}

/// The last transition was made for the plan, or for the user's yes to it.
fn by_plan(log: &Log) -> bool {
    let by_plan = log.events.iter().rev().find_map(|it| match it.kind {
        Kind::Phase { by_plan, .. } => Some(by_plan),
        Kind::Task { .. } | Kind::Unjudged { .. } | Kind::Ended(_) | Kind::Begun | Kind::Other => {
            None
        }
    });
    by_plan.unwrap_or(false)
}

fn is_heard(log: &Log) -> bool {
    let is_later = |it: &&Event| !matches!(it.kind, Kind::Phase { .. });
    let mut since = log.events.iter().rev().take_while(is_later);
    since.any(|it| it.actor == ACTOR && !it.entered)
}

/// What the last event about the run as a whole says.
fn end(log: &Log) -> Option<End> {
    let whole = log.events.iter().rev().find_map(|it| match it.kind {
        Kind::Ended(end) => Some(Some(end)),
        Kind::Begun => Some(None),
        Kind::Task { .. } | Kind::Unjudged { .. } | Kind::Phase { .. } | Kind::Other => None,
    });
    whole.flatten()
}

/// The task graph as it is in the file, for adding to it.
pub fn graph_object(files: &Files) -> Option<Map<String, Value>> {
    files.bytes(GRAPH).and_then(|bytes| json::object(bytes).ok())
}
