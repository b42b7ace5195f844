//! What our own run knows, against files that the original changed since.
//!
//! Invariant: a task that our run brought to its end, and that the original opened again, is done
//! from its beginning; one that the original removed is not done. What our run repaired stays
//! repaired while the whole is verified again.

use onward_core::{
    address::Address,
    finding::{Code as Known, Finding},
    told::{Journaled, Overtaken},
};
use serde_json::Value;

use super::{
    Code, EXECUTION, Phase, left,
    tasks::{Stage, Task},
    told::{DotagentTold, address},
};
use crate::kit::path::{below, shown};

type Ours<'a> = &'a dyn Fn(&Address) -> Journaled;

/// The steps of one try, in their order.
const TRY: [&str; 6] = ["brief", "implement", "output", "resolve", "verify", "settle"];
/// Those of a task after its tries.
const END: [&str; 4] = ["merge", "reconcile", "remerge", "verified"];

/// The verdict that a repair of ours has mended is put aside: the files tell of it no more, and
/// the repair goes on from it all the same.
pub(super) fn outlasts(
    told: &DotagentTold,
    at: &Address,
    done: &dyn Fn(&Address) -> Option<Value>,
) -> bool {
    let is_it = at.is_within(&Address::from_text("verification"));
    if !is_it || told.code != Code::Verification {
        return false;
    }
    let step = |turn: u32, id: &str| done(&Address::from_text(&format!("repair[{turn}]/{id}")));
    let last = (1..).map_while(|turn| Some((turn, step(turn, "begin")?))).last();
    last.is_some_and(|(turn, begun)| {
        let is_verified = |it: &&Task| it.repairs && it.stage == Stage::Verified;
        let mended = told.tasks.iter().filter(is_verified).any(|it| begun["task"] == it.id);
        mended && step(turn, "mended").is_some()
    })
}

pub(super) fn overtaken(told: &DotagentTold, known: Ours<'_>) -> Vec<Overtaken> {
    [removed(told, known), reopened(told, known)].into_iter().flatten().collect()
}

/// Tasks of our plan that the list does not have any more.
fn removed(told: &DotagentTold, known: Ours<'_>) -> Option<Overtaken> {
    let record = Address::from_text("plan/record");
    let Journaled::Done(plan) = known(&record) else { return None };
    let is_reached = told.code == Code::Implementation || told.is_past(Phase::Implementation);
    if !is_reached || told.tasks.is_empty() || left::is_lost(&told.state.execution_file) {
        return None;
    }
    let planned = plan["tasks"].as_array().into_iter().flatten().filter_map(|it| it["id"].as_str());
    let is_gone = |id: &&str| !told.tasks.iter().any(|task| task.id == *id);
    let gone: Vec<&str> = planned.filter(is_gone).collect();
    if gone.is_empty() {
        return None;
    }
    let message = format!("it does not list {} any more: not done", shown(&gone.join(", ")));
    Some(overtakes(told, vec![record], "the original has removed tasks", message))
}

/// Tasks that our run brought to their end, and that the list has as open.
fn reopened(told: &DotagentTold, known: Ours<'_>) -> Option<Overtaken> {
    if told.is_past(Phase::Implementation) {
        return None;
    }
    let is_open = |it: &&Task| match it.stage {
        Stage::Open | Stage::Rejected | Stage::Blocked => !it.repairs,
        Stage::Implemented | Stage::Verified => false,
    };
    let open = told.tasks.iter().filter(is_open).map(|it| (it, done_steps(it, known)));
    let open: Vec<(&Task, Vec<Address>)> = open.filter(|(_, steps)| !steps.is_empty()).collect();
    if open.is_empty() {
        return None;
    }
    let ids: Vec<&str> = open.iter().map(|(task, _)| task.id.as_str()).collect();
    let message = format!(
        "our run brought {} to the end, and it is open again here: done again",
        shown(&ids.join(", "))
    );
    let steps = open.into_iter().flat_map(|(_, steps)| steps).collect();
    Some(overtakes(told, steps, "the original has opened the task again", message))
}

/// What our run did of a task, where it came to an end; otherwise nothing.
fn done_steps(task: &Task, known: Ours<'_>) -> Vec<Address> {
    let at = |rest: &str| Address::from_text(&format!("{}/{rest}", address(task)));
    let is_done = |it: &Address| matches!(known(it), Journaled::Done(_));
    let in_try = |number: u32, id: &str| at(&format!("try[{number}]/{id}"));
    let tries = (1..).take_while(|number| is_done(&in_try(*number, "brief")));
    let tries: Vec<u32> = tries.collect();
    let is_good = |number: &u32| match known(&in_try(*number, "settle")) {
        Journaled::Done(settled) => settled["over"] == true,
        Journaled::Stale(_) | Journaled::Failed | Journaled::Open => false,
    };
    if !tries.last().is_some_and(is_good) {
        return Vec::new();
    }
    let steps = tries.iter().flat_map(|number| TRY.map(|id| in_try(*number, id)));
    steps.chain(END.map(at)).filter(is_done).collect()
}

fn overtakes(told: &DotagentTold, steps: Vec<Address>, says: &str, message: String) -> Overtaken {
    let finding = Finding::new(Known::StatusDisagrees, message);
    let finding = finding.at_path(below(&told.dir, EXECUTION)).with_hint("the list counts");
    Overtaken { steps, says: says.to_owned(), finding }
}
