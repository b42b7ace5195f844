//! The task graph, in the shapes that the system's agents write.
//!
//! Invariant: an id names one task; what a task comes after is in the list, is not itself, and
//! leads into no circle.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::kit::{
    json::{Object, Oddities},
    number::whole_in_json,
    order::without_circles,
    status::bare,
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEntry {
    pub id: String,
    pub title: String,
    /// Of the plan, not of the run.
    pub phase: u32,
    pub high: bool,
    pub dependencies: Vec<String>,
    /// Tasks that failed their verification and that this one mends.
    pub fixes: Vec<String>,
    /// The step of ours that added it.
    pub made_by: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub tasks: Vec<TaskEntry>,
    /// Ids that two tasks have; the first one counts.
    pub doubled: Vec<String>,
    /// Dependencies that are no tasks.
    pub unknown: Vec<(String, String)>,
    /// Tasks that come after themselves.
    pub selfish: Vec<String>,
    /// Tasks that wait for each other: in there, no dependency counts.
    pub circles: Vec<Vec<String>>,
}

impl Graph {
    pub fn of(map: &Map<String, Value>, path: &str, odd: &Oddities) -> Self {
        let top = Object { map, path, odd };
        let mut graph = Self::default();
        let phases = phases(&top);
        let mut ids = BTreeSet::new();
        for (key, object) in entries(&top) {
            let id = object.text("id").or_else(|| object.text("task_id")).or(key);
            let Some(id) = id.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()) else {
                object.nameless();
                continue;
            };
            if ids.insert(id.clone()) {
                graph.tasks.push(task(id, &object, &phases));
            } else {
                graph.doubled.push(id);
            }
        }
        for task in &mut graph.tasks {
            let TaskEntry { id, dependencies, .. } = task;
            let (known, unknown): (Vec<String>, Vec<String>) =
                dependencies.drain(..).partition(|it| ids.contains(it));
            graph.unknown.extend(unknown.into_iter().map(|it| (id.clone(), it)));
            let mut known: BTreeSet<String> = known.into_iter().collect();
            if known.remove(id) {
                graph.selfish.push(id.clone());
            }
            dependencies.extend(known);
        }
        let edge = |it: &mut TaskEntry| (it.id.clone(), std::mem::take(&mut it.dependencies));
        let mut edges: Vec<(String, Vec<String>)> = graph.tasks.iter_mut().map(edge).collect();
        graph.circles = without_circles(&mut edges);
        for (task, (_, dependencies)) in graph.tasks.iter_mut().zip(edges) {
            task.dependencies = dependencies;
        }
        graph
    }
}

/// A list of tasks, or an object from ids to tasks.
fn entries<'a>(top: &Object<'a>) -> Vec<(Option<String>, Object<'a>)> {
    match top.get("tasks") {
        Some(Value::Object(map)) => {
            let entry = |(id, it): (&String, &'a Value)| {
                Some((Some(id.clone()), Object { map: it.as_object()?, ..*top }))
            };
            map.iter().filter_map(entry).collect()
        }
        _ => top.objects("tasks").into_iter().map(|it| (None, it)).collect(),
    }
}

/// The phase of each task, where only the list of phases says it.
fn phases(top: &Object<'_>) -> BTreeMap<String, u32> {
    let Some(Value::Array(list)) = top.get("phases") else { return BTreeMap::new() };
    let mut of = BTreeMap::new();
    for (phase, place) in list.iter().filter_map(Value::as_object).zip(1..) {
        let number = phase.get("number").and_then(whole_in_json).unwrap_or(place);
        let tasks = phase.get("tasks").and_then(Value::as_array);
        for id in tasks.into_iter().flatten().filter_map(Value::as_str) {
            of.entry(id.to_owned()).or_insert(number);
        }
    }
    of
}

fn task(id: String, object: &Object<'_>, phases: &BTreeMap<String, u32>) -> TaskEntry {
    let inner = |keys: [&str; 2]| {
        let mut found = object.map.get(keys[0])?.as_object()?.get(keys[1]);
        found.take_if(|it| it.is_string()).and_then(|it| it.as_str().map(str::to_owned))
    };
    let complexity = ["estimated_complexity", "complexity"]
        .iter()
        .find_map(|key| object.map.get(*key).and_then(Value::as_str).map(str::to_owned))
        .or_else(|| inner(["estimates", "complexity"]));
    let phase = object.map.get("phase").and_then(whole_in_json);
    TaskEntry {
        title: ["title", "name", "description"]
            .iter()
            .find_map(|key| object.text(key))
            .unwrap_or_default(),
        phase: phase.or_else(|| phases.get(&id).copied()).unwrap_or(1),
        high: complexity.is_some_and(|it| bare(&it) == "high"),
        dependencies: object.texts_of(&["dependencies", "depends_on"]),
        fixes: object.texts("fixes"),
        made_by: object.text("made_by").unwrap_or_default(),
        id,
    }
}
