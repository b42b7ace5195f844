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
    told::{Change, Deed, Done, LastTold, Standing, StepTold, Told, Undo},
};
use serde_json::{Value, json};

use super::{
    Code, Facts, Phase, check, code,
    read::{DEMAND, DESIGN, State, VERIFICATION},
    tasks::{Stage, Task, Turn, runnable, tasks},
};
use crate::{
    Files,
    kit::{path::shown, status::Progress},
};

/// A run of dotagent.
#[derive(Debug)]
pub(super) struct DotagentTold {
    pub(super) dir: String,
    pub(super) state: State,
    pub(super) tasks: Vec<Task>,
    /// Where each task stands in `tasks`, by its address.
    places: BTreeMap<Address, usize>,
    pub(super) code: Code,
    /// The verification said no although every task is verified: one repair for all of it.
    pub(super) repairs: bool,
    /// What `plan` left, made once.
    planned: OnceCell<Value>,
}

impl DotagentTold {
    pub(super) fn new(dir: &str, files: &Files) -> Self {
        let state = State::of(files);
        let tasks = tasks(&state);
        let code = code(state.current.unwrap_or(Phase::Requirements), facts(&state, &tasks));
        let is_built = tasks.iter().all(|task| task.stage == Stage::Verified);
        let reached = state.current.unwrap_or(Phase::Reflection);
        let judged = reached >= Phase::Verification && state.verdict(VERIFICATION) == Some(false);
        let repairs = code == Code::Implementation && judged && is_built;
        let place = |(index, task): (usize, &Task)| (address(task), index);
        let places = tasks.iter().enumerate().map(place).collect();
        let (dir, planned) = (dir.to_owned(), OnceCell::new());
        Self { dir, state, tasks, places, code, repairs, planned }
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

    fn used_up(&self) -> Vec<&str> {
        let used_up = self.tasks.iter().filter(|task| task.turn == Turn::UsedUp);
        used_up.map(|task| task.id.as_str()).collect()
    }

    fn status(&self) -> Status {
        let is_new = matches!(self.state.status, Some(Progress::Pending));
        let no_output = self.state.sheets.len() <= 2 && self.state.completed.is_empty();
        match self.code {
            Code::Complete => Status::Completed,
            Code::Approval => Status::Waiting,
            Code::Requirements if is_new && no_output => Status::Fresh,
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
            Code::Roundtable => "ARCHITECTURE: the designs are there, merge them at the \
                 roundtable; no architect runs again"
                .to_owned(),
            Code::Implementation if self.repairs => {
                "IMPLEMENTATION: the verification failed; repair what it names".to_owned()
            }
            Code::Implementation if self.tasks.is_empty() => {
                "IMPLEMENTATION: no task is planned yet, make the execution plan".to_owned()
            }
            Code::Implementation => {
                format!("IMPLEMENTATION: go on with {}", shown(&runnable.join(", ")))
            }
            Code::Verification => "VERIFICATION: verify the whole".to_owned(),
            Code::Reflection => "REFLECTION: write the reflection".to_owned(),
            Code::Complete => "This workflow is already complete".to_owned(),
        }
    }

    /// What the system's users are told at a resume, and the state of each task.
    fn report(&self) -> Vec<String> {
        let id = self.state.workflow_id.as_deref().map_or("(no id)".to_owned(), shown);
        let phase = self.code.phase().map_or("complete", Phase::as_str);
        let mut lines = vec![match self.code {
            Code::Complete => format!("Workflow {id} is complete"),
            Code::Requirements
            | Code::Approval
            | Code::Architects
            | Code::Roundtable
            | Code::Implementation
            | Code::Verification
            | Code::Reflection => format!("Resuming workflow {id} from the {phase} phase"),
        }];
        let last = self.state.last_updated.or(self.state.touched);
        lines.push(
            last.map_or("Last activity: unknown".to_owned(), |at| format!("Last activity: {at}")),
        );
        let done: Vec<&str> =
            Phase::ALL.into_iter().filter(|it| self.is_past(*it)).map(Phase::as_str).collect();
        let done = if done.is_empty() { "nothing yet".to_owned() } else { done.join(", ") };
        lines.push(format!("Completed: {done}"));
        if self.code.phase() == Some(Phase::Implementation) {
            lines.extend(self.tasks.iter().map(line));
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

    /// What `plan` left: the tasks with what comes before each.
    fn planned(&self) -> Value {
        let item = |task: &Task| {
            let Task { id, summary, after, .. } = task;
            json!({ "id": id, "summary": summary, "depends_on": after })
        };
        let made = || json!({ "tasks": self.tasks.iter().map(item).collect::<Vec<Value>>() });
        self.planned.get_or_init(made).clone()
    }

    fn task_step(&self, at: &Address) -> StepTold {
        let place = self.places.get(&task_of(at)).and_then(|index| self.tasks.get(*index));
        let Some(task) = place else { return StepTold::Silent };
        let stage = if self.is_past(Phase::Implementation) { Stage::Verified } else { task.stage };
        let step = at.as_str().split_once('/').map_or("", |(_, step)| step);
        let implemented = json!({ "status": "pre_complete", "summary": task.summary });
        let (implement, verify) = match stage {
            Stage::Open => (None, None),
            Stage::Implemented => (Some(implemented), None),
            Stage::Blocked => (Some(json!({ "status": "blocked" })), None),
            Stage::Rejected => (Some(implemented), Some(json!({ "passed": false }))),
            Stage::Verified => (Some(implemented), Some(json!({ "passed": true }))),
        };
        let told = match step {
            "try[1]/implement" => implement,
            "try[1]/verify" => verify,
            _ => None,
        };
        told.map_or(StepTold::Undone, |result| match task.turn {
            Turn::AsWritten if !self.is_past(Phase::Implementation) => {
                StepTold::Done(Done::recorded(result))
            }
            Turn::AsWritten
            | Turn::Orphan
            | Turn::FromOutput
            | Turn::Retry
            | Turn::UsedUp
            | Turn::Unproved
            | Turn::FromVerdict
            | Turn::Unknown => StepTold::Done(Done::inferred(result)),
        })
    }

    /// Done when the condition holds; recorded when the file that proves it is there.
    fn done(&self, is_done: bool, proof: &str, result: Value) -> StepTold {
        if !is_done {
            return StepTold::Undone;
        }
        let is_proved = self.state.is_valid(proof);
        StepTold::Done(if is_proved { Done::recorded(result) } else { Done::inferred(result) })
    }
}

/// `implementation[task-001]`.
pub(super) fn address(task: &Task) -> Address {
    Address::from_text("implementation").item(&task.id)
}

/// The first segment: the task that a step belongs to.
fn task_of(at: &Address) -> Address {
    Address::from_text(at.as_str().split('/').next().unwrap_or(""))
}

fn facts(state: &State, tasks: &[Task]) -> Facts {
    // Without a phase every report counts: nothing says that it is of another run.
    let reached = |phase: Phase| state.current.is_none_or(|at| at >= phase);
    let is_checked = state.checkpoints.iter().any(|it| it.phase == Some(Phase::Requirements));
    let designs = state.designs().any(|(_, sheet)| sheet.is_valid());
    let (is_designed, verdict) = (state.is_valid(DESIGN), state.verdict(VERIFICATION));
    let went_on = state.current.is_none() && (designs || is_designed || !tasks.is_empty());
    Facts {
        demand: state.is_valid(DEMAND),
        approved: is_checked || went_on,
        designs: reached(Phase::Architecture) && designs,
        design: reached(Phase::Architecture) && is_designed,
        built: !tasks.is_empty() && tasks.iter().all(|task| task.stage == Stage::Verified),
        judged: reached(Phase::Verification) && verdict.is_some(),
        passed: reached(Phase::Verification) && verdict == Some(true),
        reflected: reached(Phase::Reflection) && state.reflected,
    }
}

fn line(task: &Task) -> String {
    let what = match (task.stage, task.turn) {
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
        let used_up = self.used_up();
        let open = self.code == Code::Implementation && !used_up.is_empty();
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
            report: self.report(),
            needs_agents: !matches!(self.code, Code::Approval | Code::Complete),
            asks: open.then(|| {
                let ids = shown(&used_up.join(", "));
                format!("{ids}: tried as often as allowed; try once more, or mend it by hand")
            }),
        }
    }

    fn findings(&self, now: Timestamp) -> Vec<Finding> {
        check::findings(self, now)
    }

    fn step(&self, at: &Address) -> StepTold {
        let approve = || json!({ "option": "approve" });
        let is_past = |phase| self.is_past(phase);
        let has_plan = self.code == Code::Implementation && !self.tasks.is_empty();
        let is_built = is_past(Phase::Implementation) || self.repairs;
        match at.as_str().split(['/', '[']).next().unwrap_or("") {
            "requirements" => {
                let is_done = is_past(Phase::Requirements) || self.code == Code::Approval;
                self.done(is_done, DEMAND, json!({}))
            }
            "approve" => {
                let is_said = |it: &super::read::Entry| it.phase == Some(Phase::Requirements);
                match (is_past(Phase::Requirements), self.state.checkpoints.iter().any(is_said)) {
                    (true, true) => StepTold::Done(Done::recorded(approve())),
                    (true, false) => StepTold::Done(Done::inferred(approve())),
                    (false, _) => StepTold::Undone,
                }
            }
            "architects" => {
                let is_done = is_past(Phase::Architecture) || self.code == Code::Roundtable;
                self.done(is_done, "", json!({}))
            }
            "roundtable" => self.done(is_past(Phase::Architecture), DESIGN, json!({})),
            // A design is final when the user has said yes to it.
            "approve-design" => self.done(is_past(Phase::Architecture), DESIGN, approve()),
            "plan" => self.done(is_built || has_plan, super::EXECUTION, self.planned()),
            "implementation" => self.task_step(at),
            "integrate" => self.done(is_built, "", json!({})),
            "verification" => {
                let is_done = is_past(Phase::Verification) || self.repairs;
                self.done(is_done, VERIFICATION, json!({ "passed": !self.repairs }))
            }
            "repair" => StepTold::Undone,
            "reflection" => self.done(self.code == Code::Complete, "", json!({})),
            _ => StepTold::Silent,
        }
    }

    /// A task is one row, however many tries it takes.
    fn row(&self, at: &Address) -> Address {
        let task = task_of(at);
        if self.places.contains_key(&task) { task } else { at.clone() }
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
}
