//! What the files tell, in the words that core asks in.
//!
//! Invariant: `standing` and `step` are two views of one decision, so that the steps which the
//! recovery point names are exactly those that the decider would start. What our own run did and
//! the files cannot prove yet, its journal vouches for: of that nothing is told.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    finding::Finding,
    plan::{RecoveryPoint, Status},
    time::Timestamp,
    told::{
        Change, Deed, Died, Done, Entering, Journaled, LastDone, LastTold, NoEntry, Overtaken,
        Standing, StepTold, Told, Undo,
    },
};
use serde_json::{Value, json};

use super::{
    Code, Facts, check, code, enter,
    event::{ACTOR, End, Kind, State as Stood},
    read::{GRAPH, PLAN, PRD, State},
    rework::overtaken,
    tasks::{BATCH, Stage, Task, Tasks},
    write,
};
use crate::{Files, kit::path::shown};

/// A reason for which a task is blocked is told so far.
const REASON_CHARS_MAX: usize = 200;

/// A run of agent-memory.
#[derive(Debug)]
pub(super) struct AgentMemoryTold {
    pub(super) dir: String,
    pub(super) state: State,
    pub(super) tasks: Tasks,
    pub(super) code: Code,
    /// Where it would re-enter if nothing had got lost after the approval: what was approved and
    /// done stays, while the producer writes its artifact again.
    pub(super) ahead: Code,
    files: Files,
    /// The task graph can be used as it is.
    pub(super) is_broken_down: bool,
    /// Where each task stands, by its address.
    places: BTreeMap<Address, usize>,
    /// Tasks that rest on what waits for a person or for the rework.
    pub(super) held: BTreeSet<String>,
    /// Tasks that rest on what has still to be recorded.
    early: BTreeSet<String>,
}

impl AgentMemoryTold {
    pub(super) fn new(dir: &str, files: Files) -> Self {
        let state = State::of(&files);
        let tasks = Tasks::of(state.graph(), &state.log);
        let facts = facts(&state, &tasks);
        let is_lost = facts.approved && facts.graph;
        let whole = Facts { prd: facts.prd || is_lost, plan: facts.plan || is_lost, ..facts };
        let (code, ahead, is_broken_down) = (code(facts), code(whole), facts.graph);
        let place = |(index, task): (usize, &Task)| (task.address(), index);
        let places = tasks.all.iter().enumerate().map(place).collect();
        let (dir, held, early) = (dir.to_owned(), tasks.held(), tasks.early());
        Self { dir, state, tasks, code, ahead, files, is_broken_down, places, held, early }
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// The phase that the run is in; none when it is over.
    pub(super) fn phase(&self) -> Option<u32> {
        self.ahead.phase().and_then(|it| it.parse().ok())
    }

    /// The newest moment that an event names, or else when the newest file was written.
    pub(super) fn last_at(&self) -> Option<Timestamp> {
        self.state.log.last().and_then(|it| it.at).or(self.state.touched)
    }

    /// The run is past what this code stands for.
    pub(super) fn is_past(&self, phase: u32) -> bool {
        self.phase().is_none_or(|at| at > phase)
    }

    /// The last transition came after an approval of which there is no proof.
    fn is_past_gate(&self) -> bool {
        self.code == Code::Approval && self.state.hint.is_some_and(|phase| phase >= 2)
    }

    /// Where the run re-enters, as addresses of the built-in workflow.
    pub(super) fn point(&self) -> Vec<String> {
        match self.code {
            Code::Complete => Vec::new(),
            Code::Approval => vec!["approve".to_owned()],
            Code::Planning if !self.state.plan => vec!["plan".to_owned()],
            Code::Planning => vec!["tasks".to_owned()],
            Code::Blocked => vec!["rework".to_owned()],
            Code::Execute => {
                let open = self.tasks.all.iter().filter(|it| it.is_unrecorded());
                let next = self
                    .tasks
                    .runnable()
                    .into_iter()
                    .filter(|it| !self.early.contains(&it.entry.id));
                let next = open.chain(next).filter(|it| !it.is_reworked());
                let next: Vec<String> = next.map(|it| it.address().to_string()).collect();
                if next.is_empty() { vec!["rework".to_owned()] } else { next }
            }
            Code::Intake | Code::Verify | Code::Cleanup | Code::Consolidate => {
                vec![self.code.as_str().to_owned()]
            }
        }
    }

    fn status(&self) -> Status {
        match (self.state.end, self.ahead) {
            (_, Code::Complete) => Status::Completed,
            // One word for both: neither goes on by itself.
            (Some(End::Failed | End::Cancelled), _) => Status::Failed,
            (_, Code::Approval) => Status::Waiting,
            (_, Code::Intake) if self.state.log.events.is_empty() && !self.state.plan => {
                Status::Fresh
            }
            (
                _,
                Code::Intake
                | Code::Planning
                | Code::Execute
                | Code::Verify
                | Code::Blocked
                | Code::Cleanup
                | Code::Consolidate,
            ) => Status::Interrupted,
        }
    }

    /// What is done next, in one sentence.
    fn action(&self) -> String {
        let ids = |tasks: &[&Task]| {
            let ids: Vec<&str> = tasks.iter().map(|it| it.entry.id.as_str()).collect();
            shown(&ids.join(", "))
        };
        match self.code {
            Code::Intake => "write the requirements (prd.md)".to_owned(),
            Code::Planning if !self.state.plan => format!("write the plan ({PLAN})"),
            Code::Planning => format!("break the plan into tasks ({GRAPH})"),
            Code::Approval => "the plan is ready; the user has to approve it".to_owned(),
            Code::Execute => format!("execute {}", ids(&self.tasks.runnable())),
            Code::Verify => format!("verify {}", ids(&self.tasks.unverified())),
            Code::Blocked => format!("nothing can be executed: {}", shown(&blocked(&self.tasks))),
            Code::Cleanup => "clean up and prepare the pull request again".to_owned(),
            Code::Consolidate => "consolidate what the run has learned".to_owned(),
            Code::Complete => "nothing; the run is complete".to_owned(),
        }
    }

    /// The task that was done last.
    fn last_task(&self) -> Option<&Task> {
        let done = self.tasks.all.iter().filter(|it| it.stage == Stage::Done);
        done.max_by_key(|it| (it.done_at, it.last))
    }

    fn report(&self) -> Vec<String> {
        let done = self.tasks.all.iter().filter(|it| it.stage == Stage::Done).count();
        let last = self.last_task().map_or("none".to_owned(), |it| {
            format!("{} - {}", shown(&it.entry.id), shown(&it.entry.title))
        });
        let id = self.dir.rsplit('/').next().unwrap_or(&self.dir);
        let at = self.last_at().map_or("unknown".to_owned(), |at| at.to_string());
        vec![
            format!("Run: {}", shown(id)),
            format!("Phase: {}", self.code.phase().unwrap_or("over")),
            format!("Tasks: {done}/{} complete", self.tasks.all.len()),
            format!("Last activity: {at}"),
            format!("Last completed: {last}"),
            format!("Next: {}", self.action()),
        ]
    }

    /// What the step that writes the constitution leaves: the tasks, and those that are to be
    /// verified before any other is executed.
    fn approved(&self) -> Value {
        let verify = match self.ahead {
            Code::Verify => self.tasks.unverified(),
            Code::Intake
            | Code::Planning
            | Code::Approval
            | Code::Execute
            | Code::Blocked
            | Code::Cleanup
            | Code::Consolidate
            | Code::Complete => Vec::new(),
        };
        write::approved(&self.tasks, &verify)
    }

    /// A step of one task in the first pass over all of them.
    fn task_step(&self, task: &Task, step: &str) -> StepTold {
        let done = |result: Value| match task.stage {
            Stage::Done | Stage::Unverified if !task.suspect => {
                StepTold::Done(Done::recorded(result))
            }
            Stage::Done
            | Stage::Open
            | Stage::Unverified
            | Stage::Mending
            | Stage::Blocked
            | Stage::UsedUp => StepTold::Done(Done::inferred(result)),
        };
        let implemented = || match step {
            "claim" => done(json!({ "go": true })),
            "implement" => done(json!({ "status": "SUCCESS", "summary": task.entry.title })),
            "record" => done(json!({ "outcome": "implemented", "verify": [] })),
            _ => StepTold::Silent,
        };
        let passed_over = |why: String| match step {
            "claim" => StepTold::PassedOver(why),
            _ => StepTold::Silent,
        };
        if self.ahead == Code::Complete {
            return implemented();
        }
        match task.stage {
            Stage::Unverified if step == "record" && task.is_unrecorded() => StepTold::Silent,
            Stage::Unverified | Stage::Mending | Stage::Done => implemented(),
            // What became of it later does not undo that.
            Stage::Blocked | Stage::UsedUp if task.was_implemented && task.is_past_first_pass() => {
                implemented()
            }
            // Others have ended it while our agent was at it: the claim finds that out.
            Stage::Blocked | Stage::UsedUp if step == "claim" && task.was_taken() => {
                StepTold::Undone
            }
            Stage::Blocked => passed_over("it is blocked".to_owned()),
            Stage::UsedUp if step == "implement" || step == "record" => given_up(task),
            Stage::UsedUp => passed_over("it was tried as often as it may be".to_owned()),
            Stage::Open if task.is_reworked() && task.was_implemented => implemented(),
            Stage::Open if task.is_reworked() => passed_over("it is done in the rework".to_owned()),
            Stage::Open if self.held.contains(&task.entry.id) => {
                passed_over("what it depends on is not done".to_owned())
            }
            Stage::Open if self.has_to_wait(task) => self.put_off(step),
            Stage::Open if task.ours => self.unwritten(),
            // A claim that found nothing to do yet is in no log.
            Stage::Open if step == "claim" && task.is_untouched() => self.unwritten(),
            Stage::Open => StepTold::Undone,
        }
    }

    /// Our run has begun it, and it depends on a task that is still to be executed.
    pub(super) fn has_to_wait(&self, task: &Task) -> bool {
        task.stage == Stage::Open && task.ours && task.orphan && !self.tasks.is_free(task)
    }

    /// Such a task is taken up by a later turn of the rework.
    pub(super) fn put_off(&self, step: &str) -> StepTold {
        match step {
            "implement" | "record" => {
                StepTold::PassedOver("what it depends on by now is not done".to_owned())
            }
            _ => self.unwritten(),
        }
    }

    /// It got lost after the approval.
    fn is_lost(&self, path: &str) -> bool {
        self.is_past(1) && self.code != Code::Complete && self.state.lost().contains(&path)
    }

    /// A producer writes again what got lost, before anything else.
    fn is_restoring(&self) -> bool {
        self.code != self.ahead
    }

    fn restore_step(&self, at: &str) -> StepTold {
        if !self.is_past(1) {
            return self.unwritten();
        }
        match restores(&Address::from_text(at)) {
            Some((path, _)) if self.is_lost(path) => StepTold::Undone,
            Some(_) => StepTold::PassedOver("it is there".to_owned()),
            None if self.code == Code::Complete => {
                StepTold::Done(Done::recorded(json!({ "lost": [], "prd": false, "plan": false })))
            }
            None => StepTold::Done(Done::recorded(write::lost(&self.state)).growing("lost")),
        }
    }

    /// A step of a task that the graph does not have: of a plan that counts no more, or taken out
    /// of it by the original.
    fn removed_step(&self, step: &str) -> StepTold {
        match step {
            _ if !self.state.void.is_empty() => self.unwritten(),
            "claim" if self.is_past(1) && self.ahead != Code::Complete => {
                StepTold::PassedOver("it is not in the task graph any more".to_owned())
            }
            _ => StepTold::Silent,
        }
    }

    /// What our run did and no file tells yet, its journal vouches for; unless a person enters
    /// before it, in this very moment.
    pub(super) fn unwritten(&self) -> StepTold {
        let is_entered = self.state.log.events.last().is_some_and(|it| it.entered);
        if is_entered { StepTold::Undone } else { StepTold::Silent }
    }
}

/// Steps that write an artifact again, the step that wrote it first, and the artifact.
const RESTORED: [(&str, &str, &str); 2] =
    [("restore/prd", "intake", PRD), ("restore/plan", "plan", PLAN)];

/// The artifact that a step writes again, and the step that wrote it first.
fn restores(at: &Address) -> Option<(&'static str, &'static str)> {
    let found = RESTORED.iter().find(|(step, ..)| *step == at.as_str());
    found.map(|(_, maker, path)| (*path, *maker))
}

/// The agent of the last attempt was cut off, and no further one is begun.
pub(super) fn given_up(task: &Task) -> StepTold {
    let is_over = task.cut_off && task.state == Stood::Failed;
    let why = || StepTold::PassedOver("it was tried as often as it may be".to_owned());
    if is_over { why() } else { StepTold::Silent }
}

/// Which task blocks which, in words.
pub(super) fn blocked(tasks: &Tasks) -> String {
    let line = |(task, waiting): (&Task, Vec<&str>)| {
        let why = match task.stage {
            Stage::UsedUp => format!("failed after {} attempts", task.attempts),
            Stage::Blocked | Stage::Open | Stage::Unverified | Stage::Mending | Stage::Done => {
                let reason = task.reason.as_deref().filter(|it| !it.trim().is_empty());
                let said = |it: &str| it.chars().take(REASON_CHARS_MAX).collect::<String>();
                let why = reason.map(|it| format!(" ({})", said(it))).unwrap_or_default();
                format!("is blocked{why}")
            }
        };
        let waits = if waiting.is_empty() {
            String::new()
        } else {
            format!(" and blocks {}", waiting.join(", "))
        };
        format!("{} {why}{waits}", task.entry.id)
    };
    let lines: Vec<String> = tasks.stuck().into_iter().map(line).collect();
    lines.join("; ")
}

fn facts(state: &State, tasks: &Tasks) -> Facts {
    let has_tasks = state.graph().is_some_and(|it| !it.tasks.is_empty());
    let unverified = tasks.unverified().len();
    let approved = state.is_approved();
    let is_ours = state.log.events.last().is_some_and(|it| it.actor == ACTOR);
    Facts {
        // A summary of our own run is not its end: its last event is still to be written.
        complete: state.end == Some(End::Completed)
            || state.summary && state.end.is_none() && !is_ours,
        prd: state.prd,
        plan: state.plan,
        graph: has_tasks && (approved || state.uncontracted.is_empty()),
        approved,
        built: tasks.is_built(),
        full: unverified >= BATCH,
        runnable: !tasks.runnable().is_empty(),
        unverified: unverified > 0,
        prepared: state.pr && state.hint.is_none_or(|phase| phase >= 4),
    }
}

impl Told for AgentMemoryTold {
    fn standing(&self, _now: Timestamp) -> Standing {
        let last = self.state.log.last();
        let kind = last.map_or("file", |it| it.name.as_str()).to_owned();
        let begun = self.state.log.events.iter().find(|it| it.timed);
        let is_resume = |it: &&super::event::Event| {
            it.kind == Kind::Begun && crate::kit::status::bare(&it.name).ends_with("resumed")
        };
        let resumes = self.state.log.events.iter().filter(is_resume).count();
        Standing {
            status: self.status(),
            started_at: begun.and_then(|it| it.at),
            last_event: self.last_at().map(|at| LastTold { kind: shown(&kind), at }),
            resumes: u32::try_from(resumes).unwrap_or(u32::MAX),
            point: RecoveryPoint {
                code: self.code.as_str().to_owned(),
                phase: self.code.phase().map(str::to_owned),
                round: None,
                steps: self.point(),
                summary: match self.code.phase() {
                    Some(phase) => format!("Phase {phase}: {}", self.action()),
                    None => "The run is complete".to_owned(),
                },
            },
            report: self.report(),
            needs_agents: !matches!(self.code, Code::Approval | Code::Blocked | Code::Complete),
            asks: None,
        }
    }

    fn findings(&self, now: Timestamp) -> Vec<Finding> {
        check::findings(self, now)
    }

    fn step(&self, at: &Address) -> StepTold {
        let recorded = |is_done: bool, result: Value| {
            if is_done { StepTold::Done(Done::recorded(result)) } else { StepTold::Undone }
        };
        let inferred = |is_done: bool, result: Value| {
            if is_done { StepTold::Done(Done::inferred(result)) } else { self.unwritten() }
        };
        let text = at.as_str();
        let has_graph = self.is_past(1) || self.code == Code::Approval;
        let is_complete = self.ahead == Code::Complete;
        // What is to be made again, and was by then, the journal knows.
        let artifact = |name: &str, is_done: bool| {
            let is_void = self.state.void.contains(name);
            if is_void { self.unwritten() } else { recorded(is_done, json!({})) }
        };
        let is_entered = self.unwritten() == StepTold::Undone;
        match text.split(['/', '[']).next().unwrap_or("") {
            // It says what is there.
            "open" if !self.state.void.is_empty() && is_entered => StepTold::Undone,
            "open" => {
                let planned = self.state.plan || self.is_past(1);
                let broken_down = self.is_broken_down;
                inferred(true, json!({ "planned": planned, "broken_down": broken_down }))
            }
            "intake" => artifact(PRD, self.state.prd || self.is_past(1)),
            "plan" => artifact(PLAN, self.state.plan || self.is_past(1)),
            "tasks" => artifact(GRAPH, has_graph),
            "approve" if self.is_past(1) => {
                StepTold::Done(Done::recorded(json!({ "option": "approve" })))
            }
            // It went back since. What was answered after that, the journal knows.
            "approve" if self.state.constitution && !self.state.is_heard => StepTold::Undone,
            // It was written down, and is gone.
            "approve" if self.is_past_gate() => StepTold::Undone,
            "constitution" => recorded(self.is_past(1), self.approved()),
            "execute" => {
                let (group, step) = text.split_once('/').unwrap_or((text, ""));
                let address = Address::from_text(group);
                let task = self.places.get(&address).map(|place| &self.tasks.all[*place]);
                task.map_or_else(|| self.removed_step(step), |task| self.task_step(task, step))
            }
            "rework" => self.rework_step(text),
            "restore" => self.restore_step(text),
            // They say the same each time, so that what was done after them stays.
            "whole" | "swept" if self.is_past(1) => recorded(true, json!({})),
            "whole" | "swept" => self.unwritten(),
            // Not come to yet, because something before it got lost.
            "verify"
                if self.is_restoring() && matches!(self.ahead, Code::Execute | Code::Blocked) =>
            {
                StepTold::PassedOver("nothing waits for the verifier now".to_owned())
            }
            "verify" => inferred(self.is_past(2), json!({})),
            // It logs the transition; a run without any needs none.
            "finished" => {
                let is_logged = self.state.hint.is_none_or(|phase| phase >= 3);
                inferred(self.is_past(3) || self.is_past(2) && is_logged, json!({}))
            }
            "cleanup" | "pr" | "prepared" => inferred(self.is_past(3), json!({})),
            "consolidate" | "close" => inferred(is_complete, json!({})),
            _ => StepTold::Silent,
        }
    }

    /// The rework asks about what cannot go on by itself.
    fn asks_about(&self, at: &Address) -> Option<String> {
        let group = at.parent().filter(|_| at.last_id() == "claim")?;
        let task = self.places.get(&group).map(|place| &self.tasks.all[*place])?;
        let why = match task.stage {
            Stage::UsedUp => format!("it was tried {} times", task.attempts),
            Stage::Blocked => "it is blocked".to_owned(),
            Stage::Open | Stage::Unverified | Stage::Mending | Stage::Done => return None,
        };
        Some(format!("{why}; retry, skip or abort"))
    }

    /// A task is one row, however many steps it takes; the transition to the cleanup is part of it.
    fn row(&self, at: &Address) -> Address {
        if at.as_str() == "finished" && self.ahead == Code::Cleanup {
            return Address::from_text("cleanup");
        }
        match at.as_str().split_once('/') {
            None if at.as_str() == "whole" => Address::from_text("constitution"),
            None if at.as_str() == "swept" => Address::from_text("rework"),
            Some(("restore", _)) => {
                let maker = restores(at).filter(|(path, _)| self.is_lost(path));
                Address::from_text(maker.map_or("constitution", |(_, maker)| maker))
            }
            Some((first, _)) if first.starts_with("execute[") || first == "verify" => {
                Address::from_text(first)
            }
            Some(_) | None => at.clone(),
        }
    }

    fn explains(&self, at: &Address) -> Option<String> {
        let lost = RESTORED.iter().map(|it| it.2).filter(|path| self.is_lost(path));
        let lost: Vec<&str> = lost.collect();
        let looked = at.as_str() == "restore/look" && !lost.is_empty();
        looked.then(|| format!("{} got lost since", lost.join(" and ")))
    }

    fn restores(&self, at: &Address) -> bool {
        restores(at).is_some()
    }

    fn items(&self, group: &Address) -> Vec<(Address, Address)> {
        let all = self.tasks.all.iter().map(Task::address);
        let first = |it: &Address| Address::from_text(&format!("{it}/claim"));
        let is_it = |_: &Address| group.as_str() == "execute";
        all.filter(is_it).map(|it| (it.clone(), first(&it))).collect()
    }

    fn made_again_by(&self, at: &Address) -> Option<Address> {
        let again =
            RESTORED.iter().find(|(_, maker, path)| *maker == at.as_str() && self.is_lost(path));
        again.map(|(step, ..)| Address::from_text(step))
    }

    fn last_done(&self) -> LastDone {
        let last = self.last_task();
        last.map_or(LastDone::Nothing, |it| LastDone::Row(it.address(), it.done_at))
    }

    fn counts(&self, died: &Died) -> bool {
        let mark = died.mark();
        let is_it = |it: &super::event::Event| it.cut_off.as_ref() == Some(&mark);
        !write::is_try(died) || self.state.log.events.iter().any(is_it)
    }

    fn undo(&self) -> Vec<Undo> {
        Vec::new()
    }

    fn write(&self, deed: &Deed<'_>) -> Vec<Change> {
        match deed {
            Deed::Resumed { at, point, died, .. } => write::resumed(self, *at, point, died),
            Deed::Cancelled { at } => write::cancelled(&self.files, *at),
        }
    }

    fn overtaken(&self, known: &dyn Fn(&Address) -> Journaled) -> Vec<Overtaken> {
        overtaken(self, known)
    }

    fn enter(&self, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
        enter::enter(self, at)
    }
}
