//! One task list as one value.
//!
//! Invariant: a file of the list is a task, whatever is wrong with it: what cannot be read is a
//! task that is not completed. Its id is its file's name, and its time the file's.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::phase::{Phase, Tier};
use crate::kit::{
    json::{self, Object, Oddities},
    path::inside,
    status::{self, Progress},
};

/// How the subject of a pipeline's own task begins.
pub(crate) const MARK: &str = "[PERMANENT]";

/// What our own runs add to metadata; other programs keep keys that they do not know.
pub(crate) mod key {
    /// Of a task: the run that has begun it.
    pub(crate) const RUN: &str = "onward_run";
    /// Of a task: who proved it.
    pub(crate) const CHECKED: &str = "checked_by";
    /// Of a task: what its files held when it was completed, as digests by path.
    pub(crate) const HASHES: &str = "onward_hashes";
    /// Of a completed task: what spoke against it when it was gone on with, until it is verified.
    pub(crate) const DOUBT: &str = "onward_doubt";
    /// Of a task: commits of its that are gone; what was in them is done again.
    pub(crate) const LOST: &str = "onward_lost";
    /// Of a task: how often a run of ours did its work in a worktree.
    pub(crate) const TURN: &str = "onward_turn";
    /// Of a task: which entry of a plan it is.
    pub(crate) const PLAN: &str = "onward_key";
    /// Of a pipeline: the directory of the run that began it, or went on with it last.
    pub(crate) const DRIVER: &str = "onward_driver";
    /// Of a pipeline: the phase whose tasks are being written.
    pub(crate) const LISTING: &str = "onward_listing";
    /// Of a pipeline: [`super::PENDING`] while the execution is completed and not reviewed,
    /// [`super::FIXING`] while what its review refused is mended.
    pub(crate) const REVIEW: &str = "review";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskStatus {
    Pending,
    InProgress,
    Completed,
}

/// What a run of ours says of a task where no other program has said anything.
pub(crate) const PROVED: &str = "done and proved";
/// The same where the agent found it done.
pub(crate) const UNCHANGED: &str = "done; no file was changed for it";
/// What `commit_status` says where the files of a pipeline were as the last commit has them.
pub(crate) const NOTHING: &str = "nothing to commit";

/// What `review` says.
pub(crate) const PENDING: &str = "pending";
pub(crate) const FIXING: &str = "fixing";

/// What is left of the review of a completed execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    Pending,
    /// A fix changes files of the execution, or did when the run was cut off.
    Fixing,
}

impl Review {
    fn parse(word: &str) -> Option<Self> {
        match word {
            PENDING => Some(Self::Pending),
            FIXING => Some(Self::Fixing),
            _ => None,
        }
    }
}

/// What speaks against a completed task, as a resume has noted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// This file was changed after it.
    Changed(String),
    /// This file, which it had left, is gone.
    Gone(String),
    /// This task, which it comes after, was not completed.
    Before(String),
}

impl Noted {
    pub(super) fn value(&self) -> Value {
        let (key, what) = match self {
            Self::Changed(path) => ("changed", path),
            Self::Gone(path) => ("gone", path),
            Self::Before(id) => ("before", id),
        };
        Value::from(Map::from_iter([(key.to_owned(), Value::from(what.as_str()))]))
    }

    fn of(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let changed = text("changed").and_then(inside).map(Self::Changed);
        let gone = || text("gone").and_then(inside).map(Self::Gone);
        changed.or_else(gone).or_else(|| text("before").map(|id| Self::Before(id.to_owned())))
    }
}

/// A work task as its file says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) subject: String,
    pub(super) description: String,
    pub(super) skill: Option<String>,
    /// What an interrupted agent left about it.
    pub(super) partial: Option<String>,
    pub(super) status: TaskStatus,
    /// A status that is none, as it is spelled.
    pub(super) odd_status: Option<String>,
    /// Why the file cannot be read.
    pub(super) broken: Option<String>,
    /// By its skill, its domain, or the number it names.
    pub(super) phase: Option<Phase>,
    /// The number it names, where its skill says another.
    pub(super) said: Option<Phase>,
    pub(super) blocked_by: Vec<String>,
    pub(super) blocks: Vec<String>,
    /// Below the project.
    pub(super) files: BTreeSet<String>,
    /// Paths that lie outside.
    pub(super) refused: Vec<String>,
    /// What its files held when a run of ours completed it, where one did.
    pub(super) hashes: BTreeMap<String, String>,
    pub(super) error: Option<String>,
    /// Its outcome is in its metadata.
    pub(super) has_result: bool,
    /// Without those that are known to be lost.
    pub(super) commits: Vec<String>,
    pub(super) noted: Option<Noted>,
    pub(super) slug: Option<String>,
    /// A run of ours has begun it and not ended it: that run's journal knows how far it is.
    pub(super) is_ours: bool,
    /// A run of ours completed it, with proof.
    pub(super) is_checked: bool,
    /// How often a run of ours did its work in a worktree.
    pub(super) turns: u32,
    /// Which entry of the plan it was made for, where a run of ours made it.
    pub(super) key: Option<String>,
    /// The task of the pipeline that it belongs to.
    pub(super) parent: Option<String>,
    pub(super) modified: Option<Timestamp>,
}

impl Task {
    /// There is no status for it: an error says so.
    pub(super) fn is_failed(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn is_completed(&self) -> bool {
        self.status == TaskStatus::Completed && !self.is_failed() && self.broken.is_none()
    }

    /// Whether this file should be there. A run of ours that proved the task has noted what each
    /// of its files held, and noted nothing of one that the task removed.
    pub(super) fn has_left(&self, path: &str) -> bool {
        self.hashes.contains_key(path) || !self.is_checked
    }
}

/// The task that holds a pipeline together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Permanent {
    /// What every task has.
    pub(super) task: Task,
    pub(super) tier: Option<Tier>,
    pub(super) current: Option<Phase>,
    pub(super) current_word: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) resumes: u32,
    /// The directory of the run of ours that began it, or went on with it last.
    pub(super) driver: Option<String>,
    pub(super) committed: bool,
    pub(super) duplicate: bool,
    /// Phases that are said to have passed.
    pub(super) passed: BTreeSet<Phase>,
    /// Phases that are said to have failed, or that a person has opened again.
    pub(super) refused: BTreeSet<Phase>,
    /// The execution is completed, and a run of ours has still to review it.
    pub(super) review: Option<Review>,
    /// A run of ours was writing the tasks of this phase.
    pub(super) listing: Option<Phase>,
}

impl Permanent {
    pub(super) fn is_delivered(&self) -> bool {
        self.task.status == TaskStatus::Completed || self.committed
    }

    /// The newest open one comes last.
    pub(super) fn rank(&self) -> (bool, bool, Option<Timestamp>, u64) {
        let number = self.task.id.parse().unwrap_or(0);
        (!self.duplicate, !self.is_delivered(), self.task.modified, number)
    }
}

#[derive(Debug, Default)]
pub(super) struct List {
    /// The newest open one last.
    pub(super) permanents: Vec<Permanent>,
    /// By number, then by name.
    pub(super) tasks: Vec<Task>,
    /// The highest id that was ever used.
    pub(super) highwatermark: Option<u64>,
    pub(super) odd: Oddities,
    pub(super) touched: Option<Timestamp>,
}

impl List {
    /// `files` are those directly in the list's directory.
    pub(super) fn of<'a>(
        files: impl Iterator<Item = (&'a str, &'a [u8], Option<Timestamp>)>,
    ) -> Self {
        let mut list = Self::default();
        for (path, bytes, modified) in files {
            if path == super::HIGHWATERMARK {
                list.highwatermark =
                    std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok());
            }
            let Some(id) = path.strip_suffix(".json").filter(|id| !id.contains('/')) else {
                continue;
            };
            list.touched = list.touched.max(modified);
            list.add(id, path, bytes, modified);
        }
        list.find_broken_permanent();
        list.permanents.sort_by_key(Permanent::rank);
        list.tasks.sort_by_key(|it| (it.id.parse::<u64>().unwrap_or(u64::MAX), it.id.clone()));
        list
    }

    /// A file that cannot be read is the pipeline's own task where others call it their parent.
    fn find_broken_permanent(&mut self) {
        let parents: BTreeSet<&str> =
            self.tasks.iter().filter_map(|it| it.parent.as_deref()).collect();
        let is_parent = |it: &Task| it.broken.is_some() && parents.contains(it.id.as_str());
        let Some(at) = self.tasks.iter().position(is_parent) else { return };
        let task = self.tasks.remove(at);
        let empty = Map::new();
        let nothing = Object { map: &empty, path: "", odd: &self.odd };
        self.permanents.push(permanent(task, &nothing, &nothing));
    }

    fn add(&mut self, id: &str, path: &str, bytes: &[u8], modified: Option<Timestamp>) {
        let is_numbered = id.parse::<u64>().is_ok();
        let (map, broken) = match json::object(bytes) {
            Ok(map) => (map, None),
            Err(why) => (Map::new(), Some(why)),
        };
        // Another file that happens to lie there.
        if !is_numbered && !map.contains_key("subject") {
            return;
        }
        let empty = Map::new();
        let object = Object { map: &map, path, odd: &self.odd };
        let nothing = Object { map: &empty, path, odd: &self.odd };
        let metadata = object.object("metadata").unwrap_or(nothing);
        let Some(mut task) = task(id, &object, &metadata) else { return };
        (task.broken, task.modified) = (broken, modified);
        // What is left of a file that was cut short may still say so.
        let is_marked = || bytes.windows(MARK.len()).any(|it| it == MARK.as_bytes());
        let is_permanent = task.subject.trim_start().to_ascii_uppercase().starts_with(MARK)
            || task.broken.is_some() && is_marked();
        if is_permanent {
            let permanent = permanent(task, &object, &metadata);
            self.permanents.push(permanent);
        } else {
            self.tasks.push(task);
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `None` when it was deleted.
fn task(id: &str, object: &Object<'_>, metadata: &Object<'_>) -> Option<Task> {
    let word = object.text("status").unwrap_or_default();
    if status::bare(&word) == "deleted" {
        return None;
    }
    let status = match status::progress(&word) {
        Some(Progress::Done | Progress::Verified) => TaskStatus::Completed,
        Some(Progress::Running) => TaskStatus::InProgress,
        Some(Progress::Pending | Progress::PreComplete | Progress::Blocked | Progress::Failed)
        | None => TaskStatus::Pending,
    };
    let is_known = matches!(
        status::progress(&word),
        Some(Progress::Pending | Progress::Running | Progress::Done)
    );
    let skill = ["skill", "domain"].iter().find_map(|key| metadata.text(key));
    let by_skill = skill.as_deref().and_then(Phase::of_skill);
    let is_open = status != TaskStatus::Completed;
    let partial = ["progress", "result", "output"].iter().find_map(|key| metadata.get(key));
    let partial = partial.filter(|_| is_open).map(plain);
    let number = ["phase", "phaseId"].iter().find_map(|key| metadata.text(key));
    let by_number = number.as_deref().and_then(Phase::parse);
    let (mut files, mut refused) = (BTreeSet::new(), Vec::new());
    for path in metadata.texts("files") {
        match inside(&path) {
            Some(path) => {
                files.insert(path);
            }
            None => refused.push(path),
        }
    }
    let results = ["result", "results", "summary", "output", "outputs", "progress"];
    let is_said = |key: &&str| {
        let value = metadata.get(key);
        value.is_some_and(|it| !matches!(it.to_string().as_str(), "\"\"" | "[]" | "{}" | "false"))
    };
    let error = metadata.get("error").map(plain);
    if by_skill.is_none() && number.is_some() && by_number.is_none() {
        let word = number.as_deref().unwrap_or_default();
        metadata.unknown::<()>("phase", word, "phase of a pipeline");
    }
    // Not used, and not passed over without a word where it is something else.
    object.text("owner");
    if object.text("id").is_some_and(|it| it != id) {
        object.unknown::<()>("id", &object.text("id").unwrap_or_default(), "name of its file");
    }
    Some(Task {
        id: id.to_owned(),
        subject: object.text("subject").unwrap_or_default(),
        description: object.text("description").unwrap_or_default(),
        skill,
        partial: partial.filter(|it| !it.trim().is_empty() && it != PROVED && it != UNCHANGED),
        status,
        odd_status: (!is_known && !word.is_empty()).then_some(word),
        broken: None,
        phase: by_skill.or(by_number),
        said: by_number.filter(|it| by_skill.is_some_and(|skill| skill != *it)),
        blocked_by: object.texts("blockedBy"),
        blocks: object.texts("blocks"),
        files,
        refused,
        hashes: hashes(metadata),
        error: error.filter(|it| !it.trim().is_empty() && it != "false"),
        has_result: results.iter().any(is_said),
        commits: commits(metadata),
        noted: metadata.get(key::DOUBT).and_then(Noted::of),
        slug: metadata.text("projectSlug"),
        is_ours: is_open && metadata.text(key::RUN).is_some_and(|it| !it.is_empty()),
        is_checked: metadata.text(key::CHECKED).as_deref() == Some("onward"),
        turns: metadata.count(key::TURN).unwrap_or(0),
        key: metadata.text(key::PLAN),
        parent: metadata.text("parent"),
        modified: None,
    })
}

fn permanent(task: Task, object: &Object<'_>, metadata: &Object<'_>) -> Permanent {
    let description = || object.text("description").unwrap_or_default();
    let tier = metadata.word("tier", "tier", Tier::parse);
    let current_word = metadata.text("current_phase");
    let commit = metadata.text("commit_status").unwrap_or_default();
    let reason = metadata.text("reason").unwrap_or_default();
    let signals = metadata.object("phase_signals");
    let signals = signals.iter().flat_map(|it| it.map.keys().map(move |key| (it, key)));
    let signals: Vec<(Phase, String)> = signals
        .filter_map(|(it, key)| {
            let signal = it.text(key)?;
            let verdict = signal.split('|').next().unwrap_or_default().trim().to_owned();
            Some((Phase::parse(key)?, verdict))
        })
        .collect();
    let said = |fits: &dyn Fn(&str) -> bool| {
        signals.iter().filter(|(_, it)| fits(it)).map(|(phase, _)| *phase).collect()
    };
    let is_bad = |it: &str| {
        let word = status::bare(it);
        ["fail", "reject", "block", "reopen"].iter().any(|bad| word.starts_with(bad))
    };
    Permanent {
        tier: tier.or_else(|| Tier::named_in(&description())),
        current: current_word.as_deref().and_then(Phase::parse),
        current_word,
        branch: metadata.text("branch").filter(|it| !it.trim().is_empty()),
        resumes: metadata.count("resume_count").unwrap_or(0),
        driver: metadata.text(key::DRIVER),
        committed: status::bare(&commit) == "committed",
        duplicate: status::bare(&reason) == "duplicate",
        passed: said(&|it| status::is_good(&it.into())),
        refused: said(&is_bad),
        review: metadata.text(key::REVIEW).as_deref().and_then(Review::parse),
        listing: metadata.text(key::LISTING).as_deref().and_then(Phase::parse),
        task,
    }
}

fn hashes(metadata: &Object<'_>) -> BTreeMap<String, String> {
    let kept = metadata.get(key::HASHES).and_then(Value::as_object).into_iter().flatten();
    kept.filter_map(|(path, it)| Some((path.clone(), it.as_str()?.to_owned()))).collect()
}

/// Commits that the metadata names, as far as they look like commits and are not known to be lost.
fn commits(metadata: &Object<'_>) -> Vec<String> {
    let single = metadata.text("commit").into_iter();
    let all = single.chain(metadata.texts("commits"));
    let lost = metadata.texts(key::LOST);
    let is_one = |it: &String| {
        !lost.contains(it)
            && (7..=40).contains(&it.len())
            && it.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    all.filter(is_one).collect()
}

/// Which file of the project was last changed by whom, as far as the tasks explain it.
pub(super) fn namers(tasks: &[Task]) -> BTreeMap<&str, Vec<&Task>> {
    let mut namers: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in tasks {
        for file in &task.files {
            namers.entry(file).or_default().push(task);
        }
    }
    namers
}
