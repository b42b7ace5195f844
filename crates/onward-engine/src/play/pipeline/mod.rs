//! The functions of the workflow `pipeline`.
//!
//! - `list` is the task list: held by its lock, read, written.
//! - `task` is one task: begun, its work brought into the project, completed.
//! - `deliver` is the end: one commit, and then the word that it is delivered.
//!
//! Invariant: task files are changed by these functions alone, under the lock that every program
//! takes which changes the list, and each file is replaced whole or not at all.

mod deliver;
mod list;
mod task;

use onward_dialects::{
    pipeline::{Phase, Pipeline},
    rules::pipeline::{self as rules, Request},
};
use serde_json::{Value, json};

use self::list::List;
use super::{CallError, Function, Order};
use crate::locate::Project;

pub(super) const FUNCTIONS: [(&str, Function); 9] = [
    ("pipeline.open", open),
    ("pipeline.tasks", tasks),
    ("pipeline.begin", task::begin),
    ("pipeline.settle", task::settle),
    ("pipeline.mending", mending),
    ("pipeline.mended", mended),
    ("pipeline.accept", accept),
    ("pipeline.commit", deliver::commit),
    ("pipeline.deliver", deliver::deliver),
];

/// Writes the `[PERMANENT]` task where there is none, and says what the pipeline is.
fn open(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    let files = list.files()?;
    if list.parse(&files).is_none() {
        let branch = list.branch();
        let context = if order.request.trim().is_empty() { list.context() } else { String::new() };
        let project = Project::locate(&list.project);
        let project = project.map_err(CallError::io("find", &list.project))?;
        let driver = project.runs_dir().join(&order.attempt.run);
        let request = Request {
            text: if context.is_empty() { &order.request } else { &context },
            tier: &order.tier,
            intake: &order.intake,
            branch: branch.as_deref(),
            driver: &driver.to_string_lossy(),
        };
        list.write(&rules::open(&files, &request))?;
    }
    Ok(list.read()?.opening())
}

/// Writes the tasks of a phase where there are none, and lists them.
fn tasks(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    let Some(phase) = Phase::parse(&order.stage) else {
        return Err(CallError::new(format!("there is no phase `{}`", order.stage)));
    };
    let pipeline = list.read()?;
    nothing_late(&pipeline, phase)?;
    list.write(&rules::tasks(&pipeline, phase, &order.breakdown))?;
    let listed = list.read()?.listing(phase);
    listed.ok_or_else(|| CallError::new(format!("{} has no tasks", phase.as_str())))
}

/// Refused while an earlier phase has tasks that came after it was listed: a later phase rests on
/// them.
fn nothing_late(pipeline: &Pipeline, phase: Phase) -> Result<(), CallError> {
    let late = pipeline.open_before(phase);
    if late.is_empty() {
        return Ok(());
    }
    let message = format!("not completed, and {} rests on it: {}", phase.as_str(), late.join(", "));
    Err(CallError::new(message).hint("it came later than its phase: `onward resume` does it"))
}

/// A fix of the review is about to change files of the execution.
fn mending(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    list.write(&rules::mending(&list.read()?))?;
    Ok(json!({}))
}

fn mended(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    let pipeline = list.read()?;
    let files = rules::commit_files(&pipeline);
    list.write(&rules::mended(&pipeline, &list.held(files)))?;
    Ok(json!({}))
}

fn accept(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    let pipeline = list.read()?;
    let files = rules::commit_files(&pipeline);
    // Where git cannot tell, nothing is committed either.
    let changes = deliver::changes(&list).unwrap_or_default().into_iter();
    let gone = changes.filter(|it| it.is_gone).map(|it| it.path);
    let gone: Vec<String> = gone.filter(|it| files.contains(it)).collect();
    list.write(&rules::accept(&pipeline, &list.held(files)))?;
    Ok(json!({ "files": rules::delivered(&pipeline), "gone": gone }))
}
