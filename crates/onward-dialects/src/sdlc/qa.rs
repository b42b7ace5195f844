//! The QA loop: `qa/loop-status.json`, in any of its three shapes.
//!
//! Invariant: the history counts more than the number of the current iteration, and both more than
//! the word in `status`.

use std::collections::BTreeMap;

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::{state::STARTED, status::words};
use crate::{
    File,
    kit::{
        age,
        json::{Object, Oddities, object},
    },
    rules::sdlc::turn::{CLOSING, WAIVED},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    Reject,
    Blocked,
}

impl Verdict {
    pub fn of(text: &str) -> Option<Self> {
        match words(text).concat().as_str() {
            "approve" | "approved" | "pass" | "passed" | "concerns" | "waived" | "go" => {
                Some(Self::Approve)
            }
            "reject" | "rejected" | "fail" | "failed" | "needschanges" | "changesrequested"
            | "needsrevision" | "nogo" => Some(Self::Reject),
            "blocked" | "block" => Some(Self::Blocked),
            _ => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "APPROVE",
            Self::Reject => "REJECT",
            Self::Blocked => "BLOCKED",
        }
    }

    pub const fn sends_back(self) -> bool {
        match self {
            Self::Approve => false,
            Self::Reject | Self::Blocked => true,
        }
    }
}

/// One iteration of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    pub verdict: Option<Verdict>,
    pub fixed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub story: String,
    /// From 1.
    pub current: u32,
    /// What the file itself names, where that differs.
    pub pointer: u32,
    /// It names a number that cannot be one.
    pub is_lost: bool,
    pub max: u32,
    pub turns: BTreeMap<u32, Turn>,
    /// As it is written.
    pub word: Option<String>,
    pub escalated: Option<String>,
    /// A person counted it as good enough.
    pub waived: bool,
    /// An approval of ours is about to be given: what the story says of itself does not count.
    pub closing: bool,
    pub started_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub resumes: u32,
    pub map: Map<String, Value>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Review(u32),
    Fix(u32),
    Escalate(u32),
    Over,
}

pub const ITERATIONS: u32 = 5;
/// A loop that says more is not believed.
const ITERATIONS_MAX: u32 = 100;

/// The words of its three shapes.
const STATUSES: [&str; 13] = [
    "pending",
    "idle",
    "inprogress",
    "active",
    "running",
    "paused",
    "stopped",
    "aborted",
    "interrupted",
    "completed",
    "complete",
    "done",
    "escalated",
];

/// Those that say that it was begun, whatever its number.
const BEGUN: [&str; 7] =
    ["inprogress", "active", "running", "paused", "stopped", "interrupted", "escalated"];

/// When on a day it was that a file which tells the day alone was written: by the time of the file.
/// One that was copied since tells that it was over by the end of the day.
fn within(day: Timestamp, written: Option<Timestamp>) -> Timestamp {
    const DAY_MS: u64 = 86_400_000;
    written.map_or(day, |at| at.clamp(day, day.plus_ms(DAY_MS - 1)))
}

/// Notes times and counts of an iteration that have another type than they should have.
fn look_at(entry: &Object<'_>) {
    for key in ["reviewedAt", "reviewed_at", "date", "interruptedAt", "interrupted_at"] {
        entry.moment_or_day(key);
    }
    let counts = ["issuesFound", "issuesFixed", "issues_found", "issues_fixed", "duration"];
    for key in counts {
        let value = entry.get(key).filter(|it| it.as_f64().is_none_or(|it| it < 0.0));
        if let Some(value) = value {
            entry.odd::<()>(key, value, "a number");
        }
    }
    let found = entry.get("findings_count").filter(|it| it.as_f64().is_none());
    if let Some(found) = found.and_then(|_| entry.object("findings_count")) {
        for key in ["critical", "high", "medium", "low"] {
            found.count(key);
        }
    }
}

impl Loop {
    pub fn read(bytes: &[u8], path: &str, odd: &Oddities) -> Result<Self, String> {
        Self::of(&File { bytes: bytes.to_vec(), modified: None }, path, odd)
    }

    /// The same with the time of the file.
    pub fn of(file: &File, path: &str, odd: &Oddities) -> Result<Self, String> {
        let map = object(&file.bytes)?;
        let it = Object { map: &map, path, odd };
        let one_of = |keys: &[&str]| keys.iter().find_map(|key| it.text(key));
        let count = |keys: &[&str]| keys.iter().find_map(|key| it.count(key));
        let at = |keys: &[&str]| keys.iter().find_map(|key| it.moment(key));
        let mut turns: BTreeMap<u32, Turn> = BTreeMap::new();
        for (index, entry) in it.objects("history").into_iter().enumerate() {
            let place = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
            let number = entry.count("iteration").unwrap_or(place).clamp(1, ITERATIONS_MAX);
            let verdict = entry.word("verdict", "verdict", Verdict::of);
            let fixed = ["fixedAt", "fixed_at"].into_iter().any(|key| {
                // Told in whichever way, it is told.
                entry.moment_or_day(key);
                entry.get(key).is_some()
            });
            let fixed = fixed || entry.flag("fixed") == Some(true);
            look_at(&entry);
            turns.insert(number, Turn { verdict, fixed });
        }
        let numbers = ["currentIteration", "current_iteration", "iteration"];
        let pointer = count(&numbers);
        let is_lost = pointer.is_none() && numbers.iter().any(|key| it.get(key).is_some());
        let pointer = pointer.unwrap_or(0);
        let pointer = pointer.min(ITERATIONS_MAX);
        let last = turns.keys().next_back().copied().unwrap_or(0);
        let current = pointer.max(last).max(1);
        let said = ["lastVerdict", "last_verdict"];
        let said = said.iter().find_map(|key| it.word(key, "verdict", Verdict::of));
        let turn = turns.entry(current).or_default();
        turn.verdict = turn.verdict.or(said);
        let word = one_of(&["status"]);
        let is_known = |it: &str| STATUSES.contains(&words(it).concat().as_str()).then_some(());
        it.word("status", "status of a loop", is_known);
        let reason = one_of(&["escalationReason", "escalation_reason"]);
        let is_escalated = word.as_deref().is_some_and(|it| words(it).concat() == "escalated");
        let escalated = reason.or_else(|| is_escalated.then(|| "escalated".to_owned()));
        let max = count(&["maxIterations", "max_iterations"]).unwrap_or(ITERATIONS);
        let in_history = it.objects("history").last().and_then(|entry| {
            ["fixedAt", "fixed_at", "reviewedAt", "date"].iter().find_map(|key| {
                let day = || Some(within(entry.moment_or_day(key)?, file.modified));
                entry.get(key)?.as_str().and_then(age::moment).or_else(day)
            })
        });
        let updated_at = at(&["updatedAt", "updated_at", "resumedAt", "stoppedAt"]).or(in_history);
        Ok(Self {
            story: one_of(&["storyId", "story_id", "story"]).unwrap_or_default(),
            current,
            pointer,
            is_lost,
            max: max.clamp(current, ITERATIONS_MAX),
            turns,
            word,
            escalated,
            waived: [WAIVED, "waived_at"].iter().any(|key| it.get(key).is_some()),
            closing: [CLOSING, "closing_at"].iter().any(|key| it.get(key).is_some()),
            started_at: at(&STARTED),
            updated_at,
            resumes: u32::from(it.get("resumedAt").is_some()),
            map: map.clone(),
        })
    }

    pub fn turn(&self, number: u32) -> Turn {
        self.turns.get(&number).copied().unwrap_or_default()
    }

    /// See the recovery table on the dialect's page.
    pub fn next(&self) -> Next {
        let now = self.turn(self.current);
        let is_fixed = now.fixed;
        if self.waived {
            return Next::Over;
        }
        match now.verdict {
            Some(Verdict::Approve) => Next::Over,
            Some(Verdict::Reject | Verdict::Blocked) | None if self.escalated.is_some() => {
                Next::Escalate(self.current)
            }
            None => Next::Review(self.current),
            Some(Verdict::Reject) if !is_fixed => Next::Fix(self.current),
            Some(Verdict::Reject) if self.current < self.max => Next::Review(self.current + 1),
            Some(Verdict::Reject | Verdict::Blocked) => Next::Escalate(self.current),
        }
    }

    /// Nothing was begun.
    pub fn is_idle(&self) -> bool {
        let word = self.word.as_deref().map(|it| words(it).concat()).unwrap_or_default();
        let is_begun = BEGUN.contains(&word.as_str());
        let is_judged = self.turns.values().any(|it| it.verdict.is_some());
        self.pointer == 0 && !self.is_lost && !is_begun && !is_judged
    }
}
