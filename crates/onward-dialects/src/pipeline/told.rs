//! What a list tells, in the words that core asks in.
//!
//! Invariant: `standing` and `step` are two views of one decision, so that the steps which the
//! recovery point names are exactly those that the decider would start.

use std::{cell::OnceCell, collections::BTreeMap, fmt::Write as _};

use onward_core::{
    address::Address,
    finding::Finding,
    plan::{RecoveryPoint, Status},
    time::Timestamp,
    told::{Change, Deed, Done, LastTold, Standing, StepTold, Told, Undo},
};
use serde_json::{Map, Value, json};

use super::{
    Code, Facts, check, code,
    phase::Phase,
    progress::{Item, PhaseState, Progress, Stage, progress},
    read::{List, Permanent, Task, TaskStatus},
};
use crate::{Files, kit::path::shown, seam::Site};

/// A pipeline.
#[derive(Debug)]
pub(super) struct PipelineTold {
    pub(super) dir: String,
    pub(super) list: List,
    pub(super) permanent: Permanent,
    pub(super) progress: Progress,
    pub(super) code: Code,
    pub(super) files: Files,
    /// Open `[PERMANENT]` tasks of other lists: the list and the subject.
    pub(super) others: Vec<(String, String)>,
    stages: BTreeMap<Address, Stage>,
    intake: OnceCell<Value>,
}

impl PipelineTold {
    /// `None` when the list has no `[PERMANENT]` task.
    pub(super) fn new(site: &Site, files: &Files) -> Option<Self> {
        let own = files.iter().map(|(path, file)| (path, file.bytes.as_slice(), file.modified));
        let list = List::of(own);
        let permanent = list.permanents.last()?.clone();
        let progress = progress(&list, &permanent, files);
        let facts = Facts {
            delivered: permanent.is_delivered() && !is_lost(&permanent.task, files),
            work: !list.tasks.is_empty(),
            open: progress.resume.is_some(),
            by_task: progress.by_task,
        };
        let mut stages = BTreeMap::new();
        for state in &progress.phases {
            let entry = |it: &Item| (address(state.phase, &it.task), it.stage.clone());
            stages.extend(state.items.iter().map(entry));
        }
        Some(Self {
            dir: site.dir().to_owned(),
            code: code(facts),
            others: others(site, files),
            files: files.clone(),
            intake: OnceCell::new(),
            list,
            permanent,
            progress,
            stages,
        })
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

    fn count(&self, status: TaskStatus) -> usize {
        self.list.tasks.iter().filter(|task| task.status == status).count()
    }

    /// What `intake` left: the tier, the path, and the tasks of each phase.
    fn intake(&self) -> Value {
        let made = || {
            let mut tasks: Map<String, Value> =
                Phase::working().map(|it| (it.as_str().to_owned(), json!([]))).collect();
            let is_over = self.code == Code::Complete;
            for state in &self.progress.phases {
                tasks.insert(state.phase.as_str().to_owned(), items(state, is_over));
            }
            let path = self.progress.phases.iter().map(|it| it.phase.as_str());
            let path: Vec<&str> = path.chain(["P8"]).collect();
            json!({ "tier": self.progress.tier.as_str(), "path": path, "tasks": tasks })
        };
        self.intake.get_or_init(made).clone()
    }

    fn summary(&self) -> String {
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
            Code::RestartPhase => {
                format!(
                    "{name}, {title}: restart the phase; completed tasks are verified, the others \
                     run"
                )
            }
            Code::ResumeTasks => format!("{name}, {title}: go on with {ids}"),
        }
    }

    fn report(&self) -> Vec<String> {
        let subject = shown(&self.permanent.task.subject);
        let tier = self.progress.tier.as_str();
        let (total, done) = (self.list.tasks.len(), self.count(TaskStatus::Completed));
        let pointer = self.permanent.current.map_or("no phase", Phase::as_str);
        let mut lines = vec![
            format!("{subject}: tier {tier}, {done} of {total} work tasks completed"),
            format!("The pointer of the [PERMANENT] task says {pointer}"),
        ];
        for state in &self.progress.phases {
            lines.push(matrix(state));
        }
        for item in self.progress.phases.iter().flat_map(|it| &it.items) {
            if item.stage != Stage::Settled && self.code != Code::Complete {
                let (id, subject) = (shown(&item.task.id), shown(&item.task.subject));
                lines.push(format!("Task {id}, {subject}: {}", said(item)));
            }
        }
        lines.push(self.summary());
        lines
    }
}

/// `P6[4]`.
pub(super) fn address(phase: Phase, task: &Task) -> Address {
    Address::from_text(phase.as_str()).item(&task.id)
}

/// One line of the phase matrix.
fn matrix(state: &PhaseState) -> String {
    let count = |fits: &dyn Fn(&Item) -> bool| state.items.iter().filter(|it| fits(it)).count();
    let completed = count(&|it| it.task.is_completed());
    let failed = count(&|it| it.task.is_failed());
    let begun = count(&|it| it.task.status == TaskStatus::InProgress && !it.task.is_failed());
    let (all, name) = (state.items.len(), state.phase.as_str());
    let pending = all.saturating_sub(completed + failed + begun);
    let word = if state.is_complete { "complete" } else { "not complete" };
    if all == 0 {
        let how = if state.is_complete { ", by its signal or what came after it" } else { "" };
        return format!("{name} {}: {word}{how}; no tasks", state.phase.title());
    }
    format!(
        "{name} {}: {word}; {all} tasks, {completed} completed, {failed} failed, {begun} \
         interrupted, {pending} pending",
        state.phase.title()
    )
}

fn why(stage: &Stage) -> &'static str {
    match stage {
        Stage::Settled => "completed",
        Stage::Doubtful(_) => "verify",
        Stage::Open => "run",
    }
}

fn said(item: &Item) -> String {
    use super::progress::Doubt;
    let error = item.task.error.as_deref();
    match (&item.stage, item.task.status) {
        (Stage::Settled, _) => "completed".to_owned(),
        (Stage::Doubtful(Doubt::Stale(path)), _) => {
            format!("completed, and {} is newer; verify it first", shown(path))
        }
        (Stage::Doubtful(Doubt::Dependency(id)), _) => {
            format!("completed, and task {} before it is not; verify it first", shown(id))
        }
        (Stage::Doubtful(Doubt::Restart), _) => {
            "completed; its phase restarts, verify it".to_owned()
        }
        (Stage::Doubtful(Doubt::NoOutput), _) => {
            "completed, and left nothing; verify it".to_owned()
        }
        (Stage::Open, status) => match (error, status) {
            (Some(error), _) => format!("failed: {}", shown(error)),
            (None, TaskStatus::InProgress) => "was interrupted; restart it".to_owned(),
            (None, TaskStatus::Pending) => "pending".to_owned(),
            (None, TaskStatus::Completed) => "completed, and its commit is gone".to_owned(),
        },
    }
}

/// The items of a phase: its tasks, or what is done in it anyway.
fn items(state: &PhaseState, is_over: bool) -> Value {
    let phase = state.phase.as_str();
    if state.items.is_empty() && !state.is_complete && !is_over {
        let item = |skill: &&str| json!({ "id": skill, "subject": skill, "phase": phase });
        return state.phase.skills().iter().map(item).collect();
    }
    let item = |it: &Item| {
        let Task { id, subject, .. } = &it.task;
        let verify = matches!(it.stage, Stage::Doubtful(_)) && !is_over;
        let after = &it.after;
        json!({ "id": id, "subject": subject, "phase": phase, "after": after, "verify": verify })
    };
    state.items.iter().map(item).collect()
}

/// Steps of a phase are in the files, whether they are there or not.
fn silent(task: &str) -> StepTold {
    let is_phase = Phase::working().any(|it| task.split('[').next() == Some(it.as_str()));
    if is_phase { StepTold::Undone } else { StepTold::Silent }
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

impl Told for PipelineTold {
    fn standing(&self, _now: Timestamp) -> Standing {
        let is_new =
            self.code == Code::Start && self.permanent.current.is_none_or(|it| it == Phase::P0);
        Standing {
            status: match self.code {
                Code::Complete => Status::Completed,
                Code::Start if is_new => Status::Fresh,
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
            report: self.report(),
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
        match (first, rest) {
            ("intake", "") if self.permanent.tier.is_some() => {
                StepTold::Done(Done::recorded(self.intake()))
            }
            ("intake", "") => StepTold::Done(Done::inferred(self.intake())),
            ("P8", "confirm") if is_delivered => {
                StepTold::Done(Done::inferred(json!({ "option": "approve" })))
            }
            ("P8", "commit" | "deliver") if is_delivered => {
                StepTold::Done(Done::recorded(json!({})))
            }
            ("P8", _) => StepTold::Undone,
            ("integrate", "") | ("review[1]", "judge") => {
                let execution = self.progress.phase(Phase::P6);
                if is_delivered || execution.is_some_and(|it| it.is_complete) {
                    StepTold::Done(Done::inferred(json!({ "passed": true })))
                } else {
                    StepTold::Undone
                }
            }
            (_, "work") if is_delivered => StepTold::Done(Done::inferred(json!({}))),
            (task, "work") => match self.stages.get(task) {
                Some(Stage::Settled | Stage::Doubtful(_)) => {
                    StepTold::Done(Done::recorded(json!({})))
                }
                Some(Stage::Open) => StepTold::Undone,
                None => silent(task),
            },
            // A task that is verified has no doubt left, and then the step does not run.
            (task, "verify") => silent(task),
            _ => StepTold::Silent,
        }
    }

    /// A task is one row.
    fn row(&self, at: &Address) -> Address {
        match at.as_str().split_once('/') {
            Some((task, "work" | "verify")) => Address::from_text(task),
            Some(_) | None => at.clone(),
        }
    }

    fn undo(&self) -> Vec<Undo> {
        Vec::new()
    }

    fn write(&self, deed: &Deed<'_>) -> Vec<Change> {
        match deed {
            // This build reads and plans such a run; it does not go on with it.
            Deed::Resumed { .. } => Vec::new(),
        }
    }

    fn page(&self, format: &str) -> Option<String> {
        (format == "l1").then(|| self.l1())
    }
}

impl PipelineTold {
    /// The short report of the system's own, as YAML.
    fn l1(&self) -> String {
        let name = |phase: Option<Phase>| phase.map_or("", Phase::as_str);
        let last = match self.code {
            Code::Complete => Some(Phase::P8),
            Code::Start | Code::RestartPhase | Code::ResumeTasks | Code::Deliver => {
                self.progress.last_completed()
            }
        };
        let mut page = String::from("domain: cross-cutting\nskill: pipeline-resume\n");
        for (key, value) in
            [("last_completed_phase", name(last)), ("resume_phase", name(self.phase()))]
        {
            let _ = writeln!(page, "{key}: \"{value}\"");
        }
        for (key, count) in [
            ("total_tasks", self.list.tasks.len()),
            ("completed_tasks", self.count(TaskStatus::Completed)),
            ("in_progress_tasks", self.count(TaskStatus::InProgress)),
            ("pending_tasks", self.count(TaskStatus::Pending)),
        ] {
            let _ = writeln!(page, "{key}: {count}");
        }
        page
    }
}
