//! Quality tasks: what a failed verification adds to the task graph.

use serde_json::{Map, Value, json};

use super::verdict::Said;
use crate::agent_memory::tasks::Task;

/// The graph with one task more.
#[derive(Clone, Debug, PartialEq)]
pub struct Quality {
    pub id: String,
    pub graph: Value,
}

/// The quality task that this step has made for the task already.
pub fn made_by(graph: &Map<String, Value>, step: &str, fixes: &str) -> Option<String> {
    let mut tasks = graph.get("tasks")?.as_array()?.iter();
    let is_it = |it: &&Value| it["made_by"] == step && it["fixes"] == json!([fixes]);
    tasks.find(is_it)?["id"].as_str().map(str::to_owned)
}

/// The new task has the first free id of its kind, comes after nothing, and says what it mends.
pub fn added(mut graph: Map<String, Value>, task: &Task, said: &Said<'_>, step: &str) -> Quality {
    let mut tasks = match graph.remove("tasks") {
        Some(Value::Array(tasks)) => tasks,
        Some(Value::Object(map)) => map.into_iter().map(with_id).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Vec::new()
        }
    };
    let is_taken = |id: &String| tasks.iter().any(|it| it["id"].as_str() == Some(id));
    let mut ids = (1..).map(|number| format!("Q{number:03}"));
    let id = ids.find(|id| !is_taken(id)).unwrap_or_default();
    let criteria: Vec<&str> = said.issues.iter().filter_map(|it| it["what"].as_str()).collect();
    let files: Vec<&str> = said.issues.iter().filter_map(|it| it["file"].as_str()).collect();
    tasks.push(json!({
        "id": id, "title": format!("Mend {}", task.entry.id), "phase": task.entry.phase,
        "type": "quality", "description": said.summary, "dependencies": [],
        "files_likely": files, "acceptance_criteria": criteria,
        "estimated_complexity": "low", "fixes": [task.entry.id], "made_by": step,
    }));
    graph.insert("tasks".to_owned(), Value::Array(tasks));
    Quality { id, graph: Value::Object(graph) }
}

/// An entry of a graph that maps ids to tasks, as an entry of a list.
fn with_id((id, mut task): (String, Value)) -> Value {
    if let Value::Object(task) = &mut task {
        task.entry("id").or_insert_with(|| json!(id));
    }
    task
}
