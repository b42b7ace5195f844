//! The execution plan and the contracts, which are there before any task that needs them.

use std::collections::BTreeSet;

use onward_core::told::Change;
use serde_json::{Map, Value, json};

use super::{Act, Refused, Scene, object_of, texts};
use crate::{
    dotagent::{
        Phase, left,
        read::{DESIGN, in_task},
        write::{id_of, replace},
    },
    kit::{
        age::seconds,
        json::{Object, Oddities},
        order::without_circles,
        path::component,
    },
};

fn contract_path(name: &str) -> String {
    format!("memory/contracts/{}.json", component(name))
}

/// The tasks that the final design names; none where it leaves them to the executor.
pub fn look(scene: &Scene<'_>) -> Result<Act, Refused> {
    let tasks = designed(&scene.object(DESIGN).unwrap_or_default());
    Ok(Act::nothing(json!({ "tasks": tasks })))
}

/// Writes the contracts, then the tasks. Tasks that are there already stay as they are.
pub fn plan(scene: &Scene<'_>, draft: &Value) -> Result<Act, Refused> {
    let mut checkpoint = scene.checkpoint();
    let present = checkpoint.execution.get("tasks").and_then(Value::as_array);
    if let Some(present) = present.filter(|it| !it.is_empty()) {
        let result = json!({ "tasks": items(present) });
        if scene.phase() < Phase::Implementation {
            checkpoint.enter(Phase::Implementation, scene.at);
        }
        return Ok(scene.act(Vec::new(), &checkpoint, result));
    }
    let tasks = ordered(draft["tasks"].as_array().map_or(&[][..], Vec::as_slice));
    if tasks.is_empty() {
        let message = "the execution plan has no task";
        return Err(Refused::new(message, "`onward resume --redo plan/draft` asks for one again"));
    }
    let design = Value::Object(scene.object(DESIGN).unwrap_or_default());
    let named = design["contracts"].as_array().map_or(&[][..], Vec::as_slice);
    let changes = named.iter().filter_map(|it| contract(scene, it)).collect();
    let mut entries: Vec<Value> = tasks.iter().map(entry).collect();
    let state = scene.state();
    if left::is_lost(&state.execution_file) {
        left::taken_in(&state, &mut entries);
    }
    let result = json!({ "tasks": items(&entries) });
    checkpoint.set_tasks(entries);
    checkpoint.enter(Phase::Implementation, scene.at);
    Ok(scene.act(changes, &checkpoint, result))
}

/// A task of the plan as execution.json lists it, with nothing of it begun.
pub(crate) fn entry(task: &Value) -> Value {
    let id = task["id"].as_str().unwrap_or_default();
    let mut entry = object_of(task);
    let description = entry.remove("summary").unwrap_or_else(|| "".into());
    entry.entry("description".to_owned()).or_insert(description);
    let fields = json!({"status": "pending", "attempts": 0, "started_at": null,
        "completed_at": null, "output": in_task(id, "output.json")});
    entry.extend(object_of(&fields));
    Value::Object(entry)
}

/// What the fan-out is made over: tasks that wait for each other in a circle do not.
fn items(tasks: &[Value]) -> Vec<Value> {
    let listed = tasks.iter().filter(|it| id_of(it).is_some());
    let id = |task: &Value| id_of(task).unwrap_or_default();
    let ids: BTreeSet<String> = listed.clone().map(id).collect();
    let known = |task: &Value| after(task).into_iter().filter(|it| ids.contains(it)).collect();
    let mut edges: Vec<(String, Vec<String>)> =
        listed.clone().map(|it| (id(it), known(it))).collect();
    without_circles(&mut edges);
    let item = |(task, (id, after)): (&Value, (String, Vec<String>))| {
        let said = ["description", "summary"].iter().find_map(|key| task[*key].as_str());
        json!({"id": id, "summary": said.unwrap_or_default(), "depends_on": after})
    };
    listed.zip(edges).map(item).collect()
}

/// What a task says that it comes after.
fn after(task: &Value) -> Vec<String> {
    let (map, odd) = (object_of(task), Oddities::default());
    let task = Object { map: &map, path: "", odd: &odd };
    let keys = ["depends_on", "dependencies"];
    let named: BTreeSet<String> = keys.iter().flat_map(|key| task.texts_of(&[key])).collect();
    named.into_iter().collect()
}

/// The tasks that the final design names.
pub(crate) fn designed(design: &Map<String, Value>) -> Vec<Value> {
    let planned = design.get("execution_plan").and_then(|it| it["tasks"].as_array());
    let named = |it: &Value| {
        let mut task = it.clone();
        task["id"] = id_of(it)?.into();
        Some(task)
    };
    planned.into_iter().flatten().filter_map(named).collect()
}

/// Each task once, after the tasks that it names and those that provide its contracts.
pub(crate) fn ordered(tasks: &[Value]) -> Vec<Value> {
    let mut ids = BTreeSet::new();
    let is_new = |it: &&Value| it["id"].as_str().is_some_and(|id| ids.insert(id.to_owned()));
    let mut tasks: Vec<Value> = tasks.iter().filter(is_new).cloned().collect();
    let offers: Vec<(String, Vec<String>)> = tasks
        .iter()
        .map(|it| (it["id"].as_str().unwrap_or_default().to_owned(), texts(it, "provides")))
        .collect();
    let waits = |task: &Value| -> Vec<String> {
        let uses = texts(task, "uses");
        let providers = offers.iter().filter(|(_, has)| has.iter().any(|it| uses.contains(it)));
        let named = after(task).into_iter();
        let all = named.chain(providers.map(|(id, _)| id.clone()));
        let others = all.filter(|id| ids.contains(id) && task["id"] != id.as_str());
        others.collect::<BTreeSet<String>>().into_iter().collect()
    };
    let after: Vec<Vec<String>> = tasks.iter().map(waits).collect();
    for (task, after) in tasks.iter_mut().zip(after) {
        task["depends_on"] = json!(after);
    }
    tasks
}

/// The file of a contract that the design names, where there is none yet.
fn contract(scene: &Scene<'_>, named: &Value) -> Option<Change> {
    let name = named["name"].as_str().filter(|it| !it.trim().is_empty())?;
    let path = contract_path(name);
    if scene.object(&path).is_some() {
        return None;
    }
    let users = texts(named, "used_by");
    let provider = named["provider"].as_str().map(str::to_owned).or_else(|| users.first().cloned());
    let role =
        |task: &String| if provider.as_ref() == Some(task) { "provider" } else { "consumer" };
    let consumers: Vec<Value> =
        users.iter().map(|task| json!({"task_id": task, "role": role(task)})).collect();
    let page = json!({
        "name": name, "version": 1, "status": "active", "created_at": seconds(scene.at),
        "source_design": DESIGN, "definition": named["definition"],
        "description": named["description"], "consumers": consumers, "history": [],
    });
    Some(replace(&path, &object_of(&page)))
}

/// What the resolver decided about a blocked task: the contract as it is now, and why.
pub(super) fn resolved(scene: &Scene<'_>, task: &str, resolution: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    let name = resolution["contract"].as_str().unwrap_or_default();
    if let (false, Value::Object(definition)) = (name.is_empty(), &resolution["definition"]) {
        let path = contract_path(name);
        let mut page: Map<String, Value> = scene.object(&path).unwrap_or_default();
        let last = page.get("history").and_then(Value::as_array).and_then(|it| it.last());
        let is_written =
            last.is_some_and(|it| it["task_id"] == task && it["change"] == resolution["note"]);
        if is_written && page.get("definition") == Some(&resolution["definition"]) {
            return vec![note(task, resolution)];
        }
        let version = page.get("version").and_then(Value::as_u64).unwrap_or(0) + 1;
        let mut history = page.get("history").and_then(Value::as_array).cloned();
        history.get_or_insert_default().push(json!({
            "version": version, "at": seconds(scene.at), "task_id": task,
            "change": resolution["note"],
        }));
        let fields = json!({"name": name, "version": version, "definition": definition,
            "history": history});
        page.extend(object_of(&fields));
        changes.push(replace(&path, &page));
    }
    changes.push(note(task, resolution));
    changes
}

fn note(task: &str, resolution: &Value) -> Change {
    let mut note = object_of(resolution);
    note.insert("task_id".to_owned(), task.into());
    replace(&format!("memory/contracts/resolution_{}.json", component(task)), &note)
}
