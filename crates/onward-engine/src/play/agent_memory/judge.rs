//! What the verifier said: a page for each task, an event, and quality tasks for what failed.
//!
//! Invariant: the quality task is in the graph before the event that makes it necessary, and names
//! the step that made it, so that a kill between the two makes no second one. A judge that was
//! killed after both is undone as to the graph, and not as to the log: the next one puts the
//! quality task back.

use onward_dialects::{
    agent_memory::{
        read::{GRAPH, contract, graph_object},
        tasks::{ATTEMPTS_MAX, Stage, State, Task, Tasks},
        write::Entry,
    },
    kit::path::component,
    rules::agent_memory::{
        page,
        quality::{self, Quality},
        verdict::{Said, said},
    },
};
use serde_json::{Value, json};

use super::{CallError, Order, desk::Desk};

pub(super) fn judge(order: &Order) -> Result<Value, CallError> {
    let desk = Desk::take(order)?;
    let (mut passed, mut failed, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for id in &order.tasks {
        // What a task is told to mend changes the graph: look again.
        let (_, tasks) = desk.look()?;
        let Some(task) = tasks.get(id) else { continue };
        let Some(said) = said(&order.verdicts, id) else {
            unjudged(&desk, task)?;
            open.push(id.clone());
            continue;
        };
        if said.passed {
            passed.push(id.clone());
        } else {
            failed.push(id.clone());
        }
        if desk.has_said(task) {
            if task.state == State::Failed {
                quality_task(&desk, task, &said)?;
            }
            continue;
        }
        let page = page::verification(id, &said);
        desk.replace(&format!("verifications/{}.md", component(id)), page.as_bytes())?;
        let entry = if said.passed {
            let details = desk.details(json!({ "result": "PASSED", "summary": said.summary }));
            Entry::new("task-verified", details)
        } else {
            rejected(&desk, &tasks, task, &said)?
        };
        desk.log(&[entry.of_task(id)])?;
    }
    Ok(json!({ "passed": passed, "failed": failed, "without": open }))
}

/// The verifier was asked about the task and gave no verdict on it: it is asked again, and after
/// three times in vain a person is.
fn unjudged(desk: &Desk, task: &Task) -> Result<(), CallError> {
    let is_said = desk.has_said(task) || task.unjudged.contains(&desk.step);
    if is_said || task.stage != Stage::Unverified {
        return Ok(());
    }
    let id = task.entry.id.as_str();
    let details = desk.details(json!({ "summary": "the verifier gave no verdict on it" }));
    let event = Entry::new("verification-inconclusive", details).of_task(id);
    let mut entries = vec![event];
    if task.unjudged.len() + 1 >= ATTEMPTS_MAX as usize {
        let reason = "the verifier was asked three times, and gave no verdict on it";
        let details = desk.details(json!({ "reason": reason }));
        entries.push(Entry::new("task-blocked", details).of_task(id));
    }
    desk.log(&entries)
}

/// What the verifier calls blocked waits for a person. A quality task that failed goes back to the
/// executor; any other gets a quality task, and after three of them a person is asked.
fn rejected(desk: &Desk, tasks: &Tasks, task: &Task, said: &Said<'_>) -> Result<Entry, CallError> {
    let id = task.entry.id.as_str();
    let details = |more: Value| {
        let (result, count) = (said.result, said.issues.len());
        let mut all = json!({ "result": result, "issues_count": count, "summary": said.summary });
        if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
            all.extend(more);
        }
        desk.details(all)
    };
    if said.is_blocked() {
        return Ok(Entry::new("task-blocked", details(json!({ "reason": said.summary }))));
    }
    let mends = |it: &&Task| it.entry.fixes.iter().any(|fixed| fixed == id);
    // The one that this very step made is no earlier one.
    let earlier = tasks.all.iter().filter(mends).filter(|it| it.entry.made_by != desk.step);
    if earlier.count() >= ATTEMPTS_MAX as usize {
        let reason = "it was mended three times and still fails its verification";
        return Ok(Entry::new("task-blocked", details(json!({ "reason": reason }))));
    }
    let more = match quality_task(desk, task, said)? {
        Some(quality) => json!({ "quality_task": quality }),
        None => json!({}),
    };
    Ok(Entry::new("task-failed", details(more)))
}

/// The quality task that this step has made, made now if it is not there. What mends another task
/// has none, and neither has a task of a graph that cannot be read.
fn quality_task(desk: &Desk, task: &Task, said: &Said<'_>) -> Result<Option<String>, CallError> {
    let id = task.entry.id.as_str();
    let graph = graph_object(&desk.files()?).filter(|_| task.entry.fixes.is_empty());
    let Some(graph) = graph else { return Ok(None) };
    if let Some(made) = quality::made_by(&graph, &desk.step, id) {
        return Ok(Some(made));
    }
    let Quality { id: new, graph } = quality::added(graph, task, said, &desk.step);
    desk.replace(&contract(&new), page::contract(&new, id, said).as_bytes())?;
    desk.replace(GRAPH, format!("{graph:#}\n").as_bytes())?;
    Ok(Some(new))
}
