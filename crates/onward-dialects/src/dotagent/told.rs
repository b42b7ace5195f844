//! What the files tell, in the words that core asks in.
//!
//! Invariant: `standing` and `step` are two views of one decision, so that the steps which the
//! recovery point names are exactly those that the decider would start.

use std::{cell::OnceCell, collections::BTreeMap};

use onward_core::{
    address::Address,
    finding::Finding,
    plan::{RecoveryPoint, Status},
    time::Timestamp,
    told::{
        Change, Deed, Died, Entering, Journaled, LastDone, LastTold, NoEntry, Overtaken, Restored,
        Standing, StepTold, Told, Undo,
    },
};
use serde_json::{Value, json};

use super::{
    Code, Facts, ID, Phase, check, code, enter, last, overtaken,
    read::{DEMAND, DESIGN, MERGED, State, VERIFICATION},
    recall,
    resumed::{counts, resumed},
    step,
    tasks::{Stage, Task, Turn, runnable, tasks},
    write::ENTERED,
};
use crate::{
    Files,
    kit::{path::shown, status::Progress},
    rules::dotagent::{
        Scene,
        phases::{design_path, retire},
        plan::designed,
    },
};

/// A run of dotagent.
#[derive(Debug)]
pub(super) struct DotagentTold {
    pub(super) dir: String,
    /// The workflow that our run goes on with.
    pub(super) id: Option<String>,
    pub(super) files: Files,
    pub(super) state: State,
    pub(super) tasks: Vec<Task>,
    /// Tasks that wait for each other.
    pub(super) circles: Vec<Vec<String>>,
    /// Where each task stands in `tasks`, by its address.
    pub(super) places: BTreeMap<Address, usize>,
    pub(super) code: Code,
    /// The verification said no although every task is verified: one repair for all of it.
    pub(super) repairs: bool,
    /// What `plan` left, made once.
    planned: OnceCell<Value>,
}

impl DotagentTold {
    /// `id`: the workflow that our run goes on with, where that is known.
    pub(super) fn new(dir: &str, id: Option<&str>, files: Files) -> Self {
        let state = State::of(&files);
        // What lies beside a checkpoint that waits for its run is of the run before.
        let (tasks, circles) = if state.is_fresh() { Default::default() } else { tasks(&state) };
        let code = code(reached(&state, &tasks), facts(&state, &tasks));
        let mut planned = tasks.iter().filter(|task| !task.repairs);
        let is_built = planned.all(|task| task.stage == Stage::Verified);
        let reached = state.current.unwrap_or(Phase::Reflection);
        let failed = reached >= Phase::Verification && state.verdict(VERIFICATION) == Some(false);
        let mends = tasks.iter().any(|task| task.repairs && task.stage != Stage::Verified);
        let repairs = code == Code::Implementation && is_built && (failed || mends);
        let place = |(index, task): (usize, &Task)| (address(task), index);
        let places = tasks.iter().enumerate().map(place).collect();
        let (dir, planned) = (dir.to_owned(), OnceCell::new());
        let id = id.map(str::to_owned);
        Self { dir, id, files, state, tasks, circles, places, code, repairs, planned }
    }

    /// A person entered before this report: it counts no more.
    pub(super) fn is_void(&self, path: &str) -> bool {
        self.files.bytes(path) == Some(enter::VOID)
    }

    /// A person enters here: what was done from here on counts no more.
    pub(super) fn is_entered(&self) -> bool {
        self.state.phase_file.map().is_some_and(|it| it.contains_key(ENTERED))
    }

    /// The run is past this phase.
    pub(super) fn is_past(&self, phase: Phase) -> bool {
        self.code.phase().is_none_or(|at| at > phase)
    }

    /// Where the run re-enters, as addresses of the built-in workflow.
    fn steps(&self) -> Vec<String> {
        match self.code {
            Code::Complete => Vec::new(),
            Code::Approval => vec!["approve".to_owned()],
            Code::Roundtable if self.is_merged() => vec!["approve-design".to_owned()],
            Code::Implementation if self.repairs => vec!["repair".to_owned()],
            Code::Implementation if self.tasks.is_empty() => vec!["plan".to_owned()],
            Code::Implementation => {
                runnable(&self.tasks).map(|task| address(task).to_string()).collect()
            }
            Code::Requirements
            | Code::Architects
            | Code::Roundtable
            | Code::Verification
            | Code::Reflection => vec![self.code.as_str().to_owned()],
        }
    }

    /// The roundtable is over, and the user has not said yes to what it made.
    pub(super) fn is_merged(&self) -> bool {
        self.code == Code::Roundtable && self.state.is_valid(MERGED)
    }

    /// The tasks that the final design lists.
    pub(super) fn designed(&self) -> Vec<String> {
        let design = self.state.sheet(DESIGN).and_then(|it| it.map());
        let tasks = design.map(designed).unwrap_or_default();
        tasks.iter().filter_map(|it| it["id"].as_str()).map(str::to_owned).collect()
    }

    fn status(&self) -> Status {
        match self.code {
            Code::Complete => Status::Completed,
            Code::Approval => Status::Waiting,
            Code::Roundtable if self.is_merged() => Status::Waiting,
            Code::Requirements if self.state.is_fresh() => Status::Fresh,
            Code::Requirements
            | Code::Architects
            | Code::Roundtable
            | Code::Implementation
            | Code::Verification
            | Code::Reflection => match self.state.status {
                Some(Progress::Failed) => Status::Failed,
                Some(
                    Progress::Pending
                    | Progress::Running
                    | Progress::PreComplete
                    | Progress::Blocked
                    | Progress::Done
                    | Progress::Verified,
                )
                | None => Status::Interrupted,
            },
        }
    }

    fn summary(&self) -> String {
        let runnable: Vec<&str> = runnable(&self.tasks).map(|task| task.id.as_str()).collect();
        match self.code {
            Code::Requirements => "REQUIREMENTS: write the demand".to_owned(),
            Code::Approval => {
                "REQUIREMENTS: the demand is written; the user has to approve it".to_owned()
            }
            Code::Architects => "ARCHITECTURE: no design is there, start the architects".to_owned(),
            Code::Roundtable if self.is_merged() => {
                "ARCHITECTURE: the merged design is there; the user has to approve it".to_owned()
            }
            Code::Roundtable => "ARCHITECTURE: the designs are there, merge them at the \
                 roundtable; no architect runs again"
                .to_owned(),
            Code::Implementation if self.repairs => {
                "IMPLEMENTATION: the verification failed; repair what it names".to_owned()
            }
            Code::Implementation if self.tasks.is_empty() => match self.designed().as_slice() {
                [] => "IMPLEMENTATION: no task is planned yet, make the execution plan".to_owned(),
                ids => format!(
                    "IMPLEMENTATION: plan the tasks of the design, {}",
                    shown(&ids.join(", "))
                ),
            },
            Code::Implementation => {
                format!("IMPLEMENTATION: continue with {}", shown(&runnable.join(", ")))
            }
            Code::Verification => "VERIFICATION: verify the whole".to_owned(),
            Code::Reflection => "REFLECTION: write the reflection".to_owned(),
            Code::Complete => "This workflow is already complete".to_owned(),
        }
    }

    /// What the system's users are told at a resume, and the state of each task.
    fn report(&self, alive: &[Address]) -> Vec<String> {
        let id = self.state.workflow_id.as_deref().map_or("(no id)".to_owned(), shown);
        let phase = self.code.phase().map_or("complete", Phase::as_str);
        let mut lines = match self.code {
            Code::Complete => vec![format!("Workflow {id} is complete")],
            Code::Requirements if self.state.is_fresh() => {
                vec![format!("Workflow {id} has not begun")]
            }
            Code::Requirements
            | Code::Approval
            | Code::Architects
            | Code::Roundtable
            | Code::Implementation
            | Code::Verification
            | Code::Reflection => vec![
                format!("Detected an interrupted workflow: {id}"),
                format!("Resuming workflow {id} from the {phase} phase"),
            ],
        };
        let last = self.state.last_updated.or(self.state.touched);
        lines.push(
            last.map_or("Last activity: unknown".to_owned(), |at| format!("Last activity: {at}")),
        );
        let done: Vec<&str> =
            Phase::ALL.into_iter().filter(|it| self.is_past(*it)).map(Phase::as_str).collect();
        let done = if done.is_empty() { "nothing yet".to_owned() } else { done.join(", ") };
        lines.push(format!("Completed: {done}"));
        if self.code.phase() == Some(Phase::Implementation) {
            let is_ours = |task: &Task| alive.iter().any(|it| it.is_within(&place(task)));
            lines.extend(self.tasks.iter().map(|task| line(task, is_ours(task))));
        }
        if self.code == Code::Approval {
            lines.push("The user was asked to approve the demand, and is asked again".to_owned());
        }
        lines.extend(
            self.state
                .failure_reason
                .as_deref()
                .map(|it| format!("The executor gave up: {}", shown(it))),
        );
        lines
    }

    /// What `plan` left: the tasks with what comes before each. One that is verified waits for
    /// nothing any more, so that what rests on it can begin although a task before it is open.
    pub(super) fn planned(&self) -> Value {
        let item = |task: &Task| {
            let Task { id, summary, .. } = task;
            let after = if task.stage == Stage::Verified { &[][..] } else { &task.after };
            json!({ "id": id, "summary": summary, "depends_on": after })
        };
        let planned = || self.tasks.iter().filter(|it| !it.repairs);
        let made = || json!({ "tasks": planned().map(item).collect::<Vec<Value>>() });
        self.planned.get_or_init(made).clone()
    }
}

/// The phase that the state names; where it names none, tasks tell that they were planned. Where no
/// task is known and the design that names them is gone, the phase before it, if what a design is
/// made of is there: nothing else makes it again. Where even the demand is gone and nothing was
/// made of it, the first.
fn reached(state: &State, tasks: &[Task]) -> Phase {
    let first = if tasks.is_empty() { Phase::Requirements } else { Phase::Implementation };
    let named = state.current.unwrap_or(first);
    let has_none = tasks.is_empty() && !state.is_valid(DESIGN);
    let has_ground = state.is_valid(DEMAND) || state.designs().any(|(_, it)| it.is_valid());
    if named == Phase::Implementation && has_none && has_ground {
        return Phase::Architecture;
    }
    // A design is an answer to the demand.
    if named == Phase::Architecture && has_none && !has_ground {
        return Phase::Requirements;
    }
    named
}

/// `implementation[task-001]`.
pub(super) fn address(task: &Task) -> Address {
    Address::from_text("implementation").item(&task.id)
}

/// Where our run does it: what mends the verification is no item of the plan.
pub(super) fn place(task: &Task) -> Address {
    if task.repairs { Address::from_text("repair") } else { address(task) }
}

/// The first segment: the task that a step belongs to.
pub(super) fn task_of(at: &Address) -> Address {
    Address::from_text(at.as_str().split('/').next().unwrap_or(""))
}

fn facts(state: &State, tasks: &[Task]) -> Facts {
    // Without a phase every report counts: nothing says that it is of another run.
    let reached = |phase: Phase| state.current.is_none_or(|at| at >= phase);
    let is_checked = state.checkpoints.iter().any(|it| it.phase == Some(Phase::Requirements));
    // A design that is younger than the yes to the demand is of this run, whatever its pointer.
    let counts = |path: &str| reached(Phase::Architecture) || state.since_demand.contains(path);
    let is_there = |path: &str| state.is_valid(path) && counts(path);
    let designs = match &state.architects {
        None => state.designs().any(|(path, _)| is_there(path)),
        Some(asked) => asked.iter().all(|name| is_there(&design_path(name))),
    };
    let (is_designed, verdict) = (is_there(DESIGN), state.verdict(VERIFICATION));
    let went_on = state.current.is_none() && (designs || is_designed || !tasks.is_empty());
    Facts {
        demand: state.is_valid(DEMAND) && !state.is_fresh(),
        approved: is_checked || went_on,
        designs,
        design: is_designed,
        built: !tasks.is_empty() && tasks.iter().all(|task| task.stage == Stage::Verified),
        judged: reached(Phase::Verification) && verdict.is_some(),
        passed: reached(Phase::Verification) && verdict == Some(true),
        reflected: reached(Phase::Reflection) && state.reflected,
    }
}

/// `lives`: an agent of ours is at it, or has left what is still to be written down.
fn line(task: &Task, lives: bool) -> String {
    let what = match (task.stage, task.turn) {
        (Stage::Open, Turn::Orphan | Turn::UsedUp) if lives => "running".to_owned(),
        (Stage::Verified, _) => "verified, kept".to_owned(),
        (Stage::Implemented, _) => "implemented, to be verified".to_owned(),
        (Stage::Rejected, _) => "the verifier said no, next try".to_owned(),
        (Stage::Blocked, _) => "blocked, the contract resolver is next".to_owned(),
        (Stage::Open, Turn::Orphan) => {
            format!("was running and left nothing, attempt {} is next", task.attempts)
        }
        (Stage::Open, Turn::Retry | Turn::FromOutput) => {
            let how = task.strategy.as_deref().map_or("simple_retry".to_owned(), shown);
            format!("failed, tried again ({how})")
        }
        (Stage::Open, Turn::UsedUp) => format!("failed after {} attempts", task.attempts),
        (Stage::Open, Turn::Unproved) => "its output is gone, to be implemented again".to_owned(),
        (Stage::Open, Turn::AsWritten | Turn::FromVerdict | Turn::Unknown) => "pending".to_owned(),
    };
    let error = task.last_error.as_deref().filter(|_| task.stage == Stage::Open);
    let error = error.map(|it| format!("; last error: {}", shown(it))).unwrap_or_default();
    format!("{}: {what}{error}", shown(&task.id))
}

impl Told for DotagentTold {
    fn standing(&self, _now: Timestamp) -> Standing {
        let at = self.state.last_updated.or(self.state.touched);
        Standing {
            status: self.status(),
            started_at: self.state.started_at,
            last_event: at.map(|at| LastTold { kind: "phase.json".to_owned(), at }),
            resumes: 0,
            point: RecoveryPoint {
                code: self.code.as_str().to_owned(),
                phase: self.code.phase().map(|phase| phase.as_str().to_owned()),
                round: None,
                steps: self.steps(),
                summary: self.summary(),
            },
            report: self.report(&[]),
            needs_agents: !matches!(self.code, Code::Approval | Code::Complete),
            asks: None,
        }
    }

    fn report_with(&self, alive: &[Address]) -> Option<Vec<String>> {
        Some(self.report(alive))
    }

    fn findings(&self, now: Timestamp) -> Vec<Finding> {
        check::findings(self, now)
    }

    fn step(&self, at: &Address) -> StepTold {
        step::told(self, at)
    }

    /// A task is one row, however many tries it takes, and so is a phase.
    fn row(&self, at: &Address) -> Address {
        let first = at.as_str().split('/').next().unwrap_or("");
        match first.split('[').next().unwrap_or("") {
            "implementation" if self.places.contains_key(&task_of(at)) => task_of(at),
            "implementation" => at.clone(),
            phase @ ("architects" | "repair") => Address::from_text(phase),
            _ => Address::from_text(first),
        }
    }

    fn last_done(&self) -> LastDone {
        let rows = last::rows(self);
        let last = rows.into_iter().max_by_key(|(_, at)| *at);
        last.map_or(LastDone::ByRows, |(row, at)| LastDone::Latest(row, at))
    }

    fn counts(&self, died: &Died) -> bool {
        counts(self, died)
    }

    fn restore(
        &self,
        done: &dyn Fn(&Address) -> Option<Value>,
        now: Timestamp,
    ) -> Option<Restored> {
        recall::restored(self, done, now)
    }

    fn outlasts(&self, at: &Address, done: &dyn Fn(&Address) -> Option<Value>) -> bool {
        overtaken::outlasts(self, at, done)
    }

    fn overtaken(&self, known: &dyn Fn(&Address) -> Journaled) -> Vec<Overtaken> {
        overtaken::overtaken(self, known)
    }

    fn superseded(&self) -> Option<Finding> {
        check::superseded(self)
    }

    fn inputs(&self) -> BTreeMap<String, Value> {
        let id = self.state.workflow_id.as_deref();
        id.map(|it| (ID.to_owned(), it.into())).into_iter().collect()
    }

    fn undo(&self) -> Vec<Undo> {
        Vec::new()
    }

    fn write(&self, deed: &Deed<'_>) -> Vec<Change> {
        match deed {
            Deed::Resumed { at, alive, died, .. } => resumed(self, *at, alive, died),
            Deed::Cancelled { .. } => Vec::new(),
        }
    }

    fn enter(&self, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
        enter::enter(self, at)
    }

    fn retire(&self, now: Timestamp) -> Option<Vec<Change>> {
        let scene = Scene { files: &self.files, at: now, id: "" };
        Some(retire(&scene))
    }
}
