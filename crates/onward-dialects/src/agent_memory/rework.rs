//! What comes after the first pass over all tasks, and what a change of the files makes of it.
//!
//! Invariant: a turn that our run has taken is history. What it found is looked for again only
//! where nothing was done about it yet.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    finding::{Code as Known, Finding},
    told::{Done, Journaled, Overtaken, StepTold, Told},
};
use serde_json::{Value, json};

use super::{
    Code,
    read::{GRAPH, GraphFile, PLAN},
    tasks::{Stage, Task},
    told::{AgentMemoryTold, given_up},
    write,
};
use crate::kit::path::{from_project, shown};

/// The workflow takes no more turns than these.
const TURNS_MAX: u32 = 200;

impl AgentMemoryTold {
    /// The task that a step of the rework executes, where our run has it in hand there.
    fn reworked(&self, at: &str) -> Option<&Task> {
        let step = Address::from_text(at);
        let place = step.parent().filter(|_| matches!(step.last_id(), "implement" | "record"))?;
        self.tasks.all.iter().find(|it| it.is_reworked() && it.place() == place)
    }

    pub(super) fn rework_step(&self, at: &str) -> StepTold {
        match self.reworked(at) {
            Some(task) if task.stage == Stage::UsedUp => return given_up(task),
            Some(task) if self.has_to_wait(task) => {
                return self.put_off(Address::from_text(at).last_id());
            }
            Some(_) | None => {}
        }
        let is_stuck = self.ahead == Code::Blocked;
        // What it asks about was answered by going on, unless a person enters before it.
        let is_answered = !is_stuck && matches!(self.unwritten(), StepTold::Silent);
        match at.split_once('/') {
            None if self.is_past(2) => return StepTold::Done(Done::recorded(json!({}))),
            Some((_, "decide")) if is_answered => {
                return StepTold::Done(Done::inferred(json!({ "option": "retry" })));
            }
            Some((_, "settle")) if is_answered => {
                return StepTold::PassedOver("nothing is stuck any more".to_owned());
            }
            Some(("rework[1]", "survey")) => {}
            Some(_) | None if self.is_past(2) => return StepTold::Silent,
            Some(_) | None => return self.unwritten(),
        }
        match self.ahead {
            Code::Blocked => StepTold::Done(Done::inferred(write::surveyed(&self.tasks))),
            Code::Cleanup | Code::Consolidate | Code::Complete => {
                let over = json!({ "over": true, "tasks": [], "verify": [], "stuck": [] });
                StepTold::Done(Done::recorded(over))
            }
            // What it found is a look at these files, and no other look says more.
            Code::Execute | Code::Verify => match self.unwritten() {
                StepTold::Silent => StepTold::Done(Done::inferred(write::surveyed(&self.tasks))),
                told @ (StepTold::Done(_)
                | StepTold::PassedOver(_)
                | StepTold::Unproved(_)
                | StepTold::Undone) => told,
            },
            Code::Intake | Code::Planning | Code::Approval => self.unwritten(),
        }
    }
}

/// Steps of ours whose outcome the files have changed since.
pub(super) fn overtaken(
    told: &AgentMemoryTold,
    known: &dyn Fn(&Address) -> Journaled,
) -> Vec<Overtaken> {
    let known = |step: &str| known(&Address::from_text(step));
    let all = [opened(told, &known), swept(told, &known), surveyed(told, &known)];
    all.into_iter().flatten().collect()
}

/// The run was opened with a plan or a task graph that is to be made again: the step that says so
/// is what the steps that make them go by.
fn opened(told: &AgentMemoryTold, known: &dyn Fn(&str) -> Journaled) -> Option<Overtaken> {
    let Journaled::Done(then) = known("open") else { return None };
    let is_planning = matches!(told.ahead, Code::Intake | Code::Planning);
    let was = |key: &str| is_planning && then.get(key) == Some(&Value::Bool(true));
    let lost = if was("planned") && !told.state.plan {
        PLAN
    } else if was("broken_down") && !told.is_broken_down {
        GRAPH
    } else {
        return None;
    };
    let is_there = lost == GRAPH && told.state.graph != GraphFile::Missing;
    let code = if is_there { Known::ArtifactUnproved } else { Known::MissingArtifact };
    let says = format!("{lost} is to be made again");
    let mut finding = [Finding::new(code, &says).at_path(lost)];
    from_project(&mut finding, &told.dir);
    let ([finding], steps) = (finding, vec![Address::from_text("open")]);
    Some(Overtaken { steps, says, finding })
}

/// Tasks that had their turn in the first pass have another one there: what comes after it waits.
fn swept(told: &AgentMemoryTold, known: &dyn Fn(&str) -> Journaled) -> Option<Overtaken> {
    let (Journaled::Done(_), Journaled::Done(then)) = (known("swept"), known("constitution"))
    else {
        return None;
    };
    let listed = then.get("tasks").and_then(Value::as_array).into_iter().flatten();
    let listed: BTreeSet<&str> = listed.filter_map(|it| it.get("id")?.as_str()).collect();
    let begins = |it: &&Task| {
        let claim = format!("{}/claim", it.address());
        match told.step(&Address::from_text(&claim)) {
            StepTold::Undone => true,
            StepTold::Silent => it.stage == Stage::Open && known(&claim) == Journaled::Open,
            StepTold::Done(_) | StepTold::PassedOver(_) | StepTold::Unproved(_) => false,
        }
    };
    let again = told.tasks.all.iter().filter(|it| listed.contains(it.entry.id.as_str()));
    let again: Vec<&str> = again.filter(begins).map(|it| it.entry.id.as_str()).collect();
    let says = format!("{} can be executed after all", shown(&again.join(", ")));
    let finding = Finding::new(Known::StatusDisagrees, &says);
    let steps = vec![Address::from_text("swept")];
    (!again.is_empty()).then_some(Overtaken { steps, says, finding })
}

/// The last look at what is left, where the files say something else by now and no step has acted
/// on it.
fn surveyed(told: &AgentMemoryTold, known: &dyn Fn(&str) -> Journaled) -> Option<Overtaken> {
    if !told.is_past(1) || told.is_past(2) {
        return None;
    }
    let look = |turn: &u32| known(&format!("rework[{turn}]/survey"));
    let is_done = |turn: &u32| matches!(look(turn), Journaled::Done(_));
    let turn = (1..=TURNS_MAX).take_while(is_done).last()?;
    let Journaled::Done(then) = look(&turn) else { return None };
    let is_open = |step: &str| known(&format!("rework[{turn}]/{step}")) == Journaled::Open;
    let now = write::surveyed(&told.tasks);
    let ids = |key: &str| then.get(key).and_then(Value::as_array).into_iter().flatten();
    let is_verified = |id: &Value| {
        let task = id.as_str().and_then(|id| told.tasks.get(id));
        task.is_none_or(|it| it.stage != Stage::Unverified)
    };
    let was_over = then.get("over") == Some(&Value::Bool(true));
    let is_asked = told.ahead == Code::Blocked && ids("stuck").next().is_some();
    let is_other = was_over
        || is_asked && is_open("decide") && now["stuck"] != then["stuck"]
        || is_open("verify") && ids("verify").any(is_verified);
    let says = "the tasks stand otherwise by now".to_owned();
    let message = format!("what was left to do after turn {turn} of the rework has changed since");
    let finding = Finding::new(Known::StatusDisagrees, message);
    let finding = finding.with_hint("it is looked for again");
    let steps = vec![Address::from_text(&format!("rework[{turn}]/survey"))];
    is_other.then_some(Overtaken { steps, says, finding })
}
