//! What a list tells, in the words that core asks in.
//!
//! Invariant: `standing` and `step` are two views of one decision, so that the steps which the
//! recovery point names are exactly those that the decider would start.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    finding::Finding,
    plan::{RecoveryPoint, Status},
    time::Timestamp,
    told::{
        Change, Deed, Done, Entering, Journaled, LastTold, NoEntry, Overtaken, Standing, StepTold,
        Told, Undo,
    },
};
use serde_json::{Value, json};

use super::{
    Code, Facts, check, code, overtaken,
    phase::{Phase, Tier},
    progress::{Item, PROJECT, PhaseState, Progress, Stage, Vouched, progress, was_cleaned_up},
    read::{List, MARK, Permanent, Task, TaskStatus},
    report, write,
};
use crate::{Files, kit::path::shown, rules::pipeline as rules, seam::Site};

/// A pipeline.
#[derive(Debug)]
pub struct Pipeline {
    pub(super) dir: String,
    pub(super) list: List,
    pub(super) permanent: Permanent,
    pub(super) progress: Progress,
    pub(super) code: Code,
    pub(super) files: Files,
    /// Open `[PERMANENT]` tasks of other lists: the list and the subject.
    pub(super) others: Vec<(String, String)>,
    stages: BTreeMap<Address, Stage>,
    /// Those that a run of ours has begun.
    ours: BTreeSet<Address>,
    /// The highest number of a task that is there.
    highest: Option<u64>,
}

impl Pipeline {
    /// `None` when the list has no `[PERMANENT]` task.
    pub fn new(site: &Site, files: &Files) -> Option<Self> {
        let own = files.iter().map(|(path, file)| (path, file.bytes.as_slice(), file.modified));
        let list = List::of(own);
        let permanent = list.permanents.last()?.clone();
        let asked = site.roots.get(PROJECT).map_or(&[][..], |root| &root.reads);
        let progress = progress(&list, &permanent, files, asked);
        // In a project that is not known to be its own, no commit of it is missing.
        let is_ours = !site.elsewhere && !site.unsure;
        let is_lost = is_ours && is_lost(&permanent.task, files);
        let facts = Facts {
            delivered: permanent.is_delivered() && !is_lost,
            work: !list.tasks.is_empty(),
            open: progress.resume.is_some(),
            by_task: progress.by_task,
        };
        let (mut stages, mut ours) = (BTreeMap::new(), BTreeSet::new());
        for state in &progress.phases {
            for item in &state.items {
                let at = address(state.phase, &item.task);
                if item.task.is_ours && !item.task.is_failed() {
                    ours.insert(at.clone());
                }
                stages.insert(at, item.stage.clone());
            }
        }
        let tasks = list.tasks.iter().chain(list.permanents.iter().map(|it| &it.task));
        let highest = tasks.filter_map(|it| it.id.parse().ok()).max();
        Some(Self {
            dir: site.dir().to_owned(),
            code: code(facts),
            others: others(site, files),
            files: files.clone(),
            list,
            permanent,
            progress,
            stages,
            ours,
            highest,
        })
    }

    /// Why the pipeline's own task cannot be read, where it cannot.
    pub fn unreadable(&self) -> Option<&str> {
        self.permanent.task.broken.as_deref()
    }

    pub fn permanent_id(&self) -> &str {
        &self.permanent.task.id
    }

    pub(crate) fn tier(&self) -> Tier {
        self.progress.tier
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    fn task(&self, id: &str) -> Option<&Task> {
        self.list.tasks.iter().find(|it| it.id == id)
    }

    /// `None` when there is no such task.
    pub(crate) fn is_completed(&self, id: &str) -> Option<bool> {
        self.task(id).map(Task::is_completed)
    }

    /// How often a run of ours did the work of a task in a worktree.
    pub(crate) fn turns_of(&self, id: &str) -> u32 {
        self.task(id).map_or(0, |it| it.turns)
    }

    /// Tasks of a phase that a run of ours has made, by the entry of the plan that each is.
    pub(crate) fn made(&self, phase: Phase) -> impl Iterator<Item = (&str, u64)> {
        let tasks = self.list.tasks.iter().filter(move |it| it.phase == Some(phase));
        tasks.filter_map(|it| Some((it.key.as_deref()?, it.id.parse().ok()?)))
    }

    /// The phase of a task, if no other task of it is left to be completed.
    pub(crate) fn last_open_of_phase(&self, id: &str) -> Option<Phase> {
        let has = |state: &&PhaseState| state.items.iter().any(|it| it.task.id == id);
        let state = self.progress.phases.iter().find(has)?;
        let mut others = state.items.iter().filter(|it| it.task.id != id);
        others.all(|it| it.task.is_completed()).then_some(state.phase)
    }

    pub(crate) fn count_of(&self, phase: Phase) -> usize {
        self.progress.phase(phase).map_or(0, |it| it.items.len())
    }

    pub(crate) fn ids_of(&self, phase: Phase) -> impl Iterator<Item = &str> {
        let items = self.progress.phase(phase).into_iter().flat_map(|it| &it.items);
        items.map(|it| it.task.id.as_str())
    }

    pub(crate) fn files_of(&self, id: &str) -> BTreeSet<String> {
        self.task(id).map(|it| it.files.clone()).unwrap_or_default()
    }

    pub(crate) fn files_of_phase(&self, phase: Phase) -> BTreeSet<String> {
        let items = self.progress.phase(phase).into_iter().flat_map(|it| &it.items);
        items.flat_map(|it| it.task.files.clone()).collect()
    }

    /// The completed task that should have left this file, where the last one that names it did
    /// not remove it.
    pub(crate) fn left_by(&self, path: &str) -> Option<&str> {
        let completed = self.list.tasks.iter().filter(|it| it.is_completed());
        let last = completed.filter(|it| it.files.contains(path)).max_by_key(|it| it.modified)?;
        last.has_left(path).then_some(last.id.as_str())
    }

    /// The phase that the run re-enters.
    pub(super) fn phase(&self) -> Option<Phase> {
        match self.code {
            Code::Complete => None,
            Code::Deliver => Some(Phase::P8),
            Code::Start | Code::RestartPhase | Code::ResumeTasks => self.progress.resume,
        }
    }

    fn steps(&self) -> Vec<String> {
        let phase = self.phase().map(|phase| phase.as_str().to_owned());
        match (self.code, self.progress.resuming()) {
            (Code::ResumeTasks, Some(state)) => {
                let runnable = state.runnable();
                runnable.map(|it| address(state.phase, &it.task).to_string()).collect()
            }
            (
                Code::Start
                | Code::RestartPhase
                | Code::ResumeTasks
                | Code::Deliver
                | Code::Complete,
                _,
            ) => phase.into_iter().collect(),
        }
    }

    pub(super) fn count(&self, status: TaskStatus) -> usize {
        self.list.tasks.iter().filter(|task| task.status == status).count()
    }

    /// What `intake` would have answered.
    fn intake(&self) -> Value {
        json!({ "tier": self.progress.tier.as_str(), "title": title(&self.permanent.task) })
    }

    /// What `open` gives: the tier, its path, and what the pipeline is about.
    pub fn opening(&self) -> Value {
        let path = self.progress.phases.iter().map(|it| it.phase.as_str());
        let path: Vec<&str> = path.chain(["P8"]).collect();
        let Permanent { task, .. } = &self.permanent;
        json!({ "tier": self.progress.tier.as_str(), "path": path, "title": title(task),
            "description": task.description })
    }

    /// What `tasks_P6` and its like give; `None` while the phase has no tasks and is not complete.
    pub fn listing(&self, phase: Phase) -> Option<Value> {
        let is_over = self.code == Code::Complete;
        let state = self.progress.phase(phase)?;
        let is_listed = self.permanent.listing != Some(phase) && !state.items.is_empty();
        let is_known = is_over || state.is_complete || is_listed;
        is_known.then(|| json!({ "tasks": items(state, is_over) }))
    }

    /// With the phases that are passed over on the way there, and have no word of their own for it.
    pub(super) fn summary(&self) -> String {
        let place = self.place();
        let begun = self.progress.phases.iter().filter(|it| it.vouched == Some(Vouched::Begun));
        let begun: Vec<&str> = begun.map(|it| it.phase.as_str()).collect();
        if begun.is_empty() || self.code == Code::Complete {
            return place;
        }
        format!("{place}; without tasks, and taken as done: {}", begun.join(", "))
    }

    fn place(&self) -> String {
        let Some(phase) = self.phase() else {
            return "This pipeline is already delivered".to_owned();
        };
        let (name, title) = (phase.as_str(), phase.title());
        let state = self.progress.resuming();
        let is_empty = state.is_none_or(|it| it.items.is_empty());
        let ids = state.map(|state| {
            let ids: Vec<String> =
                state.runnable().map(|it| format!("{} ({})", it.task.id, why(&it.stage))).collect();
            ids.join(", ")
        });
        let ids = shown(&ids.unwrap_or_default());
        match self.code {
            Code::Complete => "This pipeline is already delivered".to_owned(),
            Code::Start => {
                "P0, pre-design: no work task is there, start at the beginning".to_owned()
            }
            Code::Deliver => "P8, delivery: all work is completed and not delivered".to_owned(),
            Code::RestartPhase if is_empty && self.progress.last_completed().is_none() => {
                format!("{name}, {title}: nothing says that it was done")
            }
            Code::RestartPhase if is_empty => {
                format!("{name}, {title}: what comes before it is complete, and it has no task yet")
            }
            Code::RestartPhase if self.lacks_review_only() => {
                format!("{name}, {title}: all tasks are completed; the review is left")
            }
            Code::RestartPhase => {
                format!(
                    "{name}, {title}: restart the phase; completed tasks are verified, the others \
                     run"
                )
            }
            Code::ResumeTasks => format!("{name}, {title}: continue with {ids}"),
        }
    }

    /// Why a phase of a pipeline that is not over has no tasks, and is complete.
    fn empty(&self, phase: Phase) -> Option<Vouched> {
        self.progress.phase(phase).filter(|_| self.code != Code::Complete)?.vouched
    }

    /// Its tasks are known, and not all of them are completed.
    fn is_under_way(&self, phase: Phase) -> bool {
        let state = self.progress.phase(phase).filter(|_| self.permanent.listing.is_none());
        state.is_some_and(|it| !it.items.is_empty() && !it.is_complete)
    }

    /// Some task of it is to be worked on.
    fn is_open(&self, phase: Phase) -> bool {
        let state = self.progress.phase(phase).filter(|_| self.code != Code::Complete);
        state.is_some_and(|it| it.items.iter().any(|it| it.stage == Stage::Open))
    }

    /// Some completed task of it is to be verified.
    fn is_doubted(&self, phase: Phase) -> bool {
        let state = self.progress.phase(phase).filter(|_| self.code != Code::Complete);
        let is_doubtful = |it: &Item| matches!(it.stage, Stage::Doubtful(_));
        state.is_some_and(|it| it.items.iter().any(is_doubtful))
    }

    /// Tasks before this phase that are not completed, each by its address.
    pub fn open_before(&self, phase: Phase) -> Vec<String> {
        let before = self.progress.phases.iter().filter(|it| it.phase < phase);
        let open = before.flat_map(|state| {
            let open = state.items.iter().filter(|it| it.stage == Stage::Open);
            open.map(|it| address(state.phase, &it.task).to_string())
        });
        open.collect()
    }

    /// The tasks of the execution are completed, and it waits for its review.
    fn lacks_review_only(&self) -> bool {
        let execution = self.progress.phase(Phase::P6);
        let is_settled = |it: &PhaseState| it.items.iter().all(|it| it.stage == Stage::Settled);
        self.permanent.review.is_some() && execution.is_some_and(is_settled)
    }
}

/// `P6[4]`.
pub(super) fn address(phase: Phase, task: &Task) -> Address {
    Address::from_text(phase.as_str()).item(&task.id)
}

fn why(stage: &Stage) -> &'static str {
    match stage {
        Stage::Settled => "completed",
        Stage::Doubtful(_) => "verify",
        Stage::Open => "run",
    }
}

/// The items of a phase, each with all that its agent must be told.
fn items(state: &PhaseState, is_over: bool) -> Value {
    let item = |it: &Item| {
        let Task { id, subject, description, skill, files, partial, .. } = &it.task;
        let verify = matches!(it.stage, Stage::Doubtful(_)) && !is_over;
        json!({ "id": id, "subject": subject, "phase": state.phase.as_str(), "after": it.after,
            "verify": verify, "description": description, "skill": skill, "files": files,
            "partial": partial })
    };
    state.items.iter().map(item).collect()
}

/// The subject without its mark.
fn title(task: &Task) -> &str {
    let subject = task.subject.trim_start();
    subject.get(MARK.len()..).unwrap_or(subject).trim()
}

fn is_lost(task: &Task, files: &Files) -> bool {
    let missing = files.git.as_ref().map(|git| &git.missing);
    missing.is_some_and(|missing| task.commits.iter().any(|it| missing.contains(it)))
}

/// Open pipelines in other lists, as far as the site names them.
fn others(site: &Site, files: &Files) -> Vec<(String, String)> {
    let mut others = Vec::new();
    for (index, root) in site.roots.iter().enumerate().skip(2) {
        for path in &root.reads {
            let Some(file) = files.file_in(index, path) else { continue };
            let own = [(path.as_str(), file.bytes.as_slice(), file.modified)];
            let open = List::of(own.into_iter()).permanents;
            let open = open.iter().filter(|it| !it.is_delivered() && !it.duplicate);
            others.extend(open.map(|it| (root.dir.clone(), it.task.subject.clone())));
        }
    }
    others
}

impl Told for Pipeline {
    fn standing(&self, _now: Timestamp) -> Standing {
        Standing {
            status: match self.code {
                Code::Complete => Status::Completed,
                Code::Start | Code::RestartPhase | Code::ResumeTasks | Code::Deliver => {
                    Status::Interrupted
                }
            },
            started_at: None,
            last_event: self.list.touched.map(|at| LastTold { kind: "task file".to_owned(), at }),
            resumes: self.permanent.resumes,
            point: RecoveryPoint {
                code: self.code.as_str().to_owned(),
                phase: self.phase().map(|phase| phase.as_str().to_owned()),
                round: None,
                steps: self.steps(),
                summary: self.summary(),
            },
            report: report::report(self),
            needs_agents: self.code != Code::Complete,
            asks: None,
        }
    }

    fn findings(&self, now: Timestamp) -> Vec<Finding> {
        check::findings(self, now)
    }

    fn step(&self, at: &Address) -> StepTold {
        let (first, rest) = at.as_str().split_once('/').unwrap_or((at.as_str(), ""));
        let is_delivered = self.code == Code::Complete;
        let done = |result: Value| StepTold::Done(Done::recorded(result));
        let inferred = |result: Value| StepTold::Done(Done::inferred(result));
        let execution = self.progress.phase(Phase::P6);
        let is_executed = is_delivered || execution.is_some_and(|it| it.is_complete);
        match (first, rest) {
            ("intake", "") if self.permanent.tier.is_some() => done(self.intake()),
            ("intake", "") => inferred(self.intake()),
            ("open", "") => done(self.opening()),
            ("breakdown", "") => {
                let has_tasks = execution.is_some_and(|it| !it.items.is_empty());
                let is_known = is_executed || has_tasks && self.permanent.listing.is_none();
                if is_known { inferred(json!({ "tasks": [] })) } else { StepTold::Silent }
            }
            ("P8", "describe") if is_delivered => inferred(json!({ "subject": "delivered" })),
            ("P8", "confirm") if is_delivered => inferred(json!({ "option": "approve" })),
            ("P8", "commit" | "deliver") if is_delivered => done(json!({})),
            ("review[1]", "judge") | ("accept", "") if is_executed => {
                inferred(json!({ "passed": true, "files": rules::delivered(self) }))
            }
            ("review", "") if is_executed => inferred(json!({})),
            (turn, _) if turn.starts_with("review[") && is_executed => {
                StepTold::PassedOver("the execution has passed its review".to_owned())
            }
            (first, _) if let Some(why) = self.off_path(first) => StepTold::PassedOver(why),
            ("P8", "deliver") | ("accept", "") => StepTold::Undone,
            ("review[1]", "judge") if !self.lacks_review_only() => StepTold::Undone,
            _ => match (listed(first), rest) {
                (Some(phase), "") => match self.listing(phase) {
                    // Another program may add tasks while the phase is worked on.
                    Some(tasks) if self.is_open(phase) || self.is_doubted(phase) => {
                        StepTold::Done(Done::recorded(tasks).growing("tasks"))
                    }
                    Some(tasks) => match self.empty(phase) {
                        Some(vouched) => StepTold::Done(
                            Done::inferred(tasks).growing("tasks").because(vouched.why()),
                        ),
                        None => done(tasks),
                    },
                    None => StepTold::Silent,
                },
                (None, step) if is_task(first) => self.task_step(first, step),
                (Some(_) | None, _) => StepTold::Silent,
            },
        }
    }

    /// A task is one row; listing the tasks of a phase is part of the phase.
    fn row(&self, at: &Address) -> Address {
        let (first, rest) = at.as_str().split_once('/').unwrap_or((at.as_str(), ""));
        match (first, rest) {
            ("open", "") => Address::from_text("intake"),
            // Its tasks have rows of their own: the phase is not done because they are known.
            ("breakdown", "") if self.is_under_way(Phase::P6) => Address::from_text("intake"),
            ("breakdown", "") => Address::from_text("P6"),
            ("accept", "") | ("review[1]", _) if self.lacks_review_only() => {
                Address::from_text("P6")
            }
            ("accept", "") => Address::from_text("review"),
            (first, _) if first.starts_with("review[") => Address::from_text("review"),
            (task, "begin" | "work" | "verify" | "redo" | "settle") if is_task(task) => {
                Address::from_text(task)
            }
            (first, _) => match listed(first) {
                Some(phase)
                    if self.listing(phase).is_none()
                        || self.is_ahead(phase)
                        || self.empty(phase).is_some() =>
                {
                    Address::from_text(phase.as_str())
                }
                Some(_) => Address::from_text("intake"),
                None => at.clone(),
            },
        }
    }

    fn undo(&self) -> Vec<Undo> {
        Vec::new()
    }

    fn write(&self, deed: &Deed<'_>) -> Vec<Change> {
        match deed {
            Deed::Resumed { by, .. } => write::resumed(self, by),
            Deed::Cancelled { .. } => Vec::new(),
        }
    }

    fn overtaken(&self, known: &dyn Fn(&Address) -> Journaled) -> Vec<Overtaken> {
        overtaken::overtaken(self, known)
    }

    fn enter(&self, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
        write::enter(self, at)
    }

    fn driven_from(&self) -> Option<&str> {
        self.permanent.driver.as_deref()
    }

    fn page(&self, format: &str) -> Option<String> {
        (format == "l1").then(|| report::l1(self))
    }

    fn formats(&self) -> &'static [&'static str] {
        &["l1"]
    }
}

/// `P6` of `tasks_P6`.
fn listed(first: &str) -> Option<Phase> {
    let name = first.strip_prefix("tasks_")?;
    Phase::working().find(|phase| phase.as_str() == name)
}

/// `P6[4]`.
fn is_task(first: &str) -> bool {
    let phase = first.split_once('[').map(|(phase, _)| phase);
    Phase::working().any(|it| phase == Some(it.as_str()))
}

impl Pipeline {
    /// One step of a task. What a run of ours has begun, its journal knows better than the file.
    fn task_step(&self, task: &str, step: &str) -> StepTold {
        let done = StepTold::Done(Done::recorded(json!({ "done": true })));
        let Some(stage) = self.stages.get(task) else {
            let id = task.split_once('[').map_or("", |(_, id)| id.trim_end_matches(']'));
            let is_over = self.code == Code::Complete || self.was_in_use(id);
            return match step {
                "begin" | "work" | "settle" if is_over => {
                    StepTold::Done(Done::inferred(json!({ "done": true })))
                }
                "begin" | "work" | "settle" => StepTold::Undone,
                _ => StepTold::Silent,
            };
        };
        let is_ours = self.ours.contains(task);
        match (step, stage) {
            ("begin" | "work" | "settle", _) if self.code == Code::Complete => {
                StepTold::Done(Done::inferred(json!({ "done": true })))
            }
            ("begin" | "work" | "settle", Stage::Settled)
            | ("begin" | "work", Stage::Doubtful(_)) => done,
            ("verify", Stage::Doubtful(doubt)) => StepTold::Unproved(doubt.why()),
            ("begin" | "work", Stage::Open) if is_ours => StepTold::Silent,
            ("begin" | "work" | "settle", Stage::Open) => StepTold::Undone,
            (_, Stage::Settled | Stage::Doubtful(_) | Stage::Open) => StepTold::Silent,
        }
    }

    /// A task of ours whose file is gone: numbers are given in order, so it was there. Claude Code
    /// clears completed tasks away; one that is gone cannot be done again.
    fn was_in_use(&self, id: &str) -> bool {
        let number = id.parse::<u64>().ok();
        was_cleaned_up(&self.list, id) || number.is_some_and(|it| self.highest > Some(it))
    }

    /// Why a phase, or the listing of its tasks, is no part of this pipeline.
    fn off_path(&self, first: &str) -> Option<String> {
        let name = first.strip_prefix("tasks_").unwrap_or(first);
        let phase = Phase::working().find(|it| it.as_str() == name)?;
        let tier = self.progress.tier.as_str();
        let is_off = self.progress.phase(phase).is_none();
        is_off.then(|| format!("tier {tier} has no {name}"))
    }

    /// It comes after the phase that is gone on with.
    fn is_ahead(&self, phase: Phase) -> bool {
        self.progress.resume.is_some_and(|at| phase > at)
    }
}
