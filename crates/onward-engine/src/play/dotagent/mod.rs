//! The functions of the workflow `dotagent`.
//!
//! What changes is decided by `rules::dotagent`; here it is read, written and merged. Invariant:
//! the native files are changed by these functions alone, under the desk's lock.

mod archive;

use onward_core::address::Address;
use onward_dialects::{
    dotagent::DOTAGENT,
    rules::dotagent::{Act, Refused, Scene, phases, plan, tasks},
    seam::Dialect as _,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CallError, Function, Order, desk::Desk, merge};
use crate::world::real::{variable, wall_clock};

pub(super) const FUNCTIONS: [(&str, Function); 17] = [
    ("dotagent.open", open),
    ("dotagent.demand", |order| play(order, |it, ask| phases::demand(it, &ask.draft))),
    ("dotagent.approve", |order| {
        play(order, |it, ask| phases::approve(it, &ask.of, &ask.architects))
    }),
    ("dotagent.design", |order| play(order, |it, ask| phases::design(it, &ask.name, &ask.draft))),
    ("dotagent.merged", |order| play(order, |it, ask| phases::merged(it, &ask.draft))),
    ("dotagent.look", |order| play(order, |it, _| plan::look(it))),
    ("dotagent.plan", |order| play(order, |it, ask| plan::plan(it, &ask.draft))),
    ("dotagent.brief", |order| play(order, |it, ask| tasks::brief(it, &ask.task))),
    ("dotagent.output", |order| {
        play(order, |it, ask| tasks::output(it, &ask.task, &ask.draft, &ask.outcome))
    }),
    ("dotagent.settle", |order| {
        play(order, |it, ask| tasks::settle(it, &ask.task, &ask.verdict, &ask.resolution))
    }),
    ("dotagent.merge", merge),
    ("dotagent.verified", |order| play(order, |it, ask| tasks::verified(it, &ask.task))),
    ("dotagent.begin", |order| play(order, |it, _| phases::begin_verification(it))),
    ("dotagent.verdict", |order| play(order, |it, ask| phases::verdict(it, &ask.draft))),
    ("dotagent.repair", |order| play(order, |it, ask| tasks::repair(it, &ask.failures))),
    ("dotagent.mended", |order| {
        play(order, |it, ask| tasks::mended(it, &ask.task, &ask.draft, &ask.outcome))
    }),
    ("dotagent.reflect", reflect),
];

/// What a step says to its call. Which of it is needed depends on the function.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Ask {
    /// The workflow that our run goes on with; empty where that is not known.
    workflow_id: String,
    /// A phase, as the system names it.
    of: String,
    architects: Vec<String>,
    name: String,
    task: String,
    /// What an agent gave.
    draft: Value,
    /// `done`, or the cause for which the agent failed.
    outcome: String,
    verdict: Value,
    resolution: Value,
    failures: Vec<String>,
    branch: String,
    summary: String,
    /// A conflict is an error, because no agent settles it.
    strict: bool,
}

impl Ask {
    fn read(order: &Order) -> Result<Self, CallError> {
        serde_json::from_value(order.with.clone())
            .map_err(|error| CallError::new(format!("the call was not told what to do: {error}")))
    }
}

/// Asks the rules, and writes what they say.
fn play(
    order: &Order,
    rule: impl FnOnce(&Scene<'_>, &Ask) -> Result<Act, Refused>,
) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = Desk::take(order, DOTAGENT.card())?;
    let files = desk.files()?;
    let id = Some(ask.workflow_id.as_str()).filter(|it| !it.is_empty());
    let id = id.unwrap_or(&order.attempt.run);
    let scene = Scene { files: &files, at: wall_clock(), id };
    refuse_another(&scene, &ask)?;
    match rule(&scene, &ask) {
        Ok(Act { moves, changes, result }) => {
            desk.rename(&moves)?;
            desk.write(&changes)?;
            Ok(result)
        }
        Err(Refused { message, hint, changes }) => {
            desk.write(&changes)?;
            Err(CallError::new(message).hint(hint))
        }
    }
}

/// The original has begun another workflow in the place of ours: nothing is written into that one.
fn refuse_another(scene: &Scene<'_>, ask: &Ask) -> Result<(), CallError> {
    let Some(there) = scene.another(&ask.workflow_id) else { return Ok(()) };
    let message = format!("the checkpoint is of the workflow `{there}` now, and not of this run's");
    Err(CallError::new(message).hint("`onward list` names the run that continues it"))
}

fn open(order: &Order) -> Result<Value, CallError> {
    let result = play(order, |it, _| phases::open(it))?;
    archive::keep_last(&Desk::take(order, DOTAGENT.card())?)?;
    Ok(result)
}

fn reflect(order: &Order) -> Result<Value, CallError> {
    let result = play(order, |it, ask| phases::reflection(it, &ask.draft))?;
    archive::keep_last(&Desk::take(order, DOTAGENT.card())?)?;
    Ok(result)
}

/// Brings the work on a task's branch into the project. The desk is held: one at a time.
fn merge(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = Desk::take(order, DOTAGENT.card())?;
    let files = desk.files()?;
    refuse_another(&Scene { files: &files, at: wall_clock(), id: "" }, &ask)?;
    let variable = |name: &str| {
        variable(&order.attempt.env, name).and_then(|it| it.to_str()).unwrap_or_default()
    };
    let work = merge::Work {
        system: DOTAGENT.card().name,
        task: &ask.task,
        branch: &ask.branch,
        summary: &ask.summary,
        run: &order.attempt.run,
        step: Address::from_text(variable("ONWARD_STEP")),
        attempt: variable("ONWARD_ATTEMPT").parse().unwrap_or(1),
        memory: desk.dir.join("memory"),
        settle: &|_| None,
    };
    let conflicts = merge::merge(&order.attempt, &work)?;
    if ask.strict && !conflicts.is_empty() {
        let message = format!("{} cannot be merged: {}", ask.branch, conflicts.join(", "));
        let hint = format!("`git merge {}`, settle it by hand, then `onward resume`", ask.branch);
        return Err(CallError::new(message).hint(hint));
    }
    Ok(json!({ "merged": conflicts.is_empty(), "conflicts": conflicts }))
}
