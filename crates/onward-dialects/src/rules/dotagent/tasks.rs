//! One task: its brief, its output, the end of a try, and its verification.

use serde_json::{Map, Value, json};

use super::{
    Act, Refused, Scene,
    brief::{repair_text, task_text},
    failure::{Class, fail, lesson},
    none, object_of, texts,
};
use crate::{
    dotagent::{
        Phase,
        read::{VERIFICATION, in_task, is_passed, is_repair, repair_id},
        write::{Checkpoint, replace},
    },
    kit::{
        age::seconds,
        status::{Progress, progress},
    },
};

pub(super) fn attempts(task: &Map<String, Value>) -> u32 {
    let number = task.get("attempts").and_then(Value::as_u64).unwrap_or(0);
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn status(task: &Map<String, Value>) -> Option<Progress> {
    task.get("status").and_then(Value::as_str).and_then(progress)
}

fn known(checkpoint: &Checkpoint, id: &str) -> Result<Map<String, Value>, Refused> {
    checkpoint.task(id).cloned().ok_or_else(|| {
        let message = format!("execution.json has no task `{id}`");
        let hint = "put it back into memory/state/execution.json and `onward resume`, or leave it \
            out: `onward resume --redo plan/record`";
        Refused::new(message, hint)
    })
}

/// A try begins: the task runs, what an earlier one left is put aside, and the implementer is told
/// everything that it has to know.
pub fn brief(scene: &Scene<'_>, id: &str) -> Result<Act, Refused> {
    let mut checkpoint = scene.checkpoint();
    let mut task = known(&checkpoint, id)?;
    if let Some(failures) = rejected(scene, id, &task) {
        checkpoint.set_task(id, lesson(&task, Class::ContextGap, &said_no(&failures)));
        task = known(&checkpoint, id)?;
    }
    let number = match status(&task) {
        Some(Progress::Pending | Progress::Running) | None => attempts(&task).max(1),
        Some(
            Progress::Failed
            | Progress::Blocked
            | Progress::PreComplete
            | Progress::Done
            | Progress::Verified,
        ) => attempts(&task).saturating_add(1),
    };
    let result = json!({"text": task_text(scene, id, &task, number), "attempt": number});
    if status(&task) == Some(Progress::Running) && attempts(&task) == number {
        return Ok(Act { moves: aside(scene, id), ..Act::nothing(result) });
    }
    let fields = json!({
        "status": "running", "attempts": number, "started_at": seconds(scene.at),
        "completed_at": null, "output": in_task(id, "output.json"),
    });
    checkpoint.set_task(id, fields);
    checkpoint.stamp(scene.at);
    let act = scene.act(Vec::new(), &checkpoint, result);
    Ok(Act { moves: aside(scene, id), ..act })
}

/// What the verifier named, where a verdict was written and the end of its try was not: a power cut
/// or a kill came between the two files.
fn rejected(scene: &Scene<'_>, id: &str, task: &Map<String, Value>) -> Option<Vec<String>> {
    if !matches!(status(task), Some(Progress::PreComplete | Progress::Done)) {
        return None;
    }
    let (page, output) = (in_task(id, "verification.json"), in_task(id, "output.json"));
    let page = match scene.object(&page) {
        None if !scene.files.contains(&output) => scene.last_aside(&page)?,
        page => page?,
    };
    (!is_passed(&page)).then(|| texts(&Value::Object(page), "failures"))
}

fn said_no(failures: &[String]) -> String {
    format!("the verifier said no: {}", failures.join("; "))
}

fn aside(scene: &Scene<'_>, id: &str) -> Vec<(String, String)> {
    let files = ["output.json", "verification.json"];
    files.iter().filter_map(|file| scene.aside(&in_task(id, file))).collect()
}

/// What the implementer left, or for which cause its agent ended without.
pub fn output(scene: &Scene<'_>, id: &str, draft: &Value, outcome: &str) -> Result<Act, Refused> {
    let mut checkpoint = scene.checkpoint();
    let task = known(&checkpoint, id)?;
    let map = output_of(id, draft, outcome);
    let result = json!({ "status": map["status"], "summary": summary(&map) });
    let is_over = status(&task) != Some(Progress::Running);
    if is_over && scene.object(&in_task(id, "output.json")).as_ref() == Some(&map) {
        return Ok(Act::nothing(result));
    }
    checkpoint.set_task(id, json!({"status": map["status"], "completed_at": seconds(scene.at)}));
    checkpoint.forget_cut_off(id);
    checkpoint.stamp(scene.at);
    let written = replace(&in_task(id, "output.json"), &map);
    Ok(scene.act(vec![written], &checkpoint, result))
}

fn output_of(id: &str, draft: &Value, outcome: &str) -> Map<String, Value> {
    let mut map = object_of(draft);
    map.insert("task_id".to_owned(), id.into());
    if !map.contains_key("status") {
        map.insert("status".to_owned(), "failed".into());
        map.insert("failure_class".to_owned(), "transient".into());
        let message = format!("the agent ended with {outcome} and left no output");
        map.insert("summary".to_owned(), message.into());
    }
    map
}

fn summary(map: &Map<String, Value>) -> String {
    let said = ["summary", "blocked_reason", "error"];
    let said = said.iter().find_map(|key| map.get(*key).and_then(Value::as_str));
    said.unwrap_or_default().to_owned()
}

/// The end of a try: good as soon as the verifier says so, otherwise another one, at most three.
pub fn settle(
    scene: &Scene<'_>,
    id: &str,
    verdict: &Value,
    resolution: &Value,
) -> Result<Act, Refused> {
    let over = |it: bool| json!({ "over": it });
    if verdict["passed"].as_bool() == Some(true) {
        return Ok(Act::nothing(over(true)));
    }
    let mut checkpoint = scene.checkpoint();
    let task = known(&checkpoint, id)?;
    match status(&task) {
        Some(Progress::Pending) => return Ok(Act::nothing(over(false))),
        // A verdict of the original stands against a try of ours that came to nothing.
        Some(Progress::Verified) => return Ok(Act::nothing(over(true))),
        Some(
            Progress::Running
            | Progress::PreComplete
            | Progress::Done
            | Progress::Blocked
            | Progress::Failed,
        )
        | None => {}
    }
    let left = scene.object(&in_task(id, "output.json")).unwrap_or_default();
    let mut changes = Vec::new();
    let (class, error) = if resolution.is_object() {
        changes.extend(super::plan::resolved(scene, id, resolution));
        let note = resolution["note"].as_str().unwrap_or_default();
        (Class::Boundary, format!("blocked: {}; resolved: {note}", summary(&left)))
    } else if verdict.is_object() {
        let failures = texts(verdict, "failures");
        let page = json!({"task_id": id, "verdict": "FAIL", "failures": failures});
        changes.push(replace(&in_task(id, "verification.json"), &object_of(&page)));
        (Class::ContextGap, said_no(&failures))
    } else {
        let word = left.get("failure_class").and_then(Value::as_str).unwrap_or_default();
        (Class::of_word(word), summary(&left))
    };
    fail(scene, &mut checkpoint, id, class, &error).map_err(|refused| {
        let changes = changes.iter().cloned().chain(refused.changes).collect();
        Refused { changes, ..refused }
    })?;
    checkpoint.stamp(scene.at);
    Ok(scene.act(changes, &checkpoint, over(false)))
}

/// The work is good and where it belongs.
pub fn verified(scene: &Scene<'_>, id: &str) -> Result<Act, Refused> {
    let mut checkpoint = scene.checkpoint();
    let task = known(&checkpoint, id)?;
    match status(&task) {
        Some(Progress::Verified) => return Ok(Act::nothing(none())),
        Some(Progress::PreComplete | Progress::Done) => {}
        Some(Progress::Pending | Progress::Running | Progress::Blocked | Progress::Failed)
        | None => {
            let message = format!("execution.json does not say that {id} is ready to be verified");
            let hint = "say `pre_complete` there and `onward resume`, or `pending` with 0 \
                attempts: then it is done again";
            return Err(Refused::new(message, hint));
        }
    }
    checkpoint.set_task(id, json!({"status": "verified", "completed_at": seconds(scene.at)}));
    checkpoint.stamp(scene.at);
    let page = json!({"task_id": id, "verdict": "PASS", "failures": []});
    let written = replace(&in_task(id, "verification.json"), &object_of(&page));
    Ok(scene.act(vec![written], &checkpoint, none()))
}

/// The verification of the whole failed: implementation again, as one more task that mends it.
pub fn repair(scene: &Scene<'_>, failures: &[String]) -> Result<Act, Refused> {
    let mut checkpoint = scene.checkpoint();
    let tasks = checkpoint.execution.get("tasks").and_then(Value::as_array);
    let repairs = tasks.into_iter().flatten().filter_map(Value::as_object);
    let repairs = repairs.filter(|it| it.get("id").and_then(Value::as_str).is_some_and(is_repair));
    let repairs: Vec<&Map<String, Value>> = repairs.collect();
    let open = repairs.last().filter(|it| status(it) != Some(Progress::Verified));
    let id = open.and_then(|it| it.get("id")?.as_str()).map(str::to_owned);
    let id = id.unwrap_or_else(|| repair_id(repairs.len() + 1));
    let told = scene.object(VERIFICATION).map(|map| texts(&Value::Object(map), "failures"));
    let failures = if failures.is_empty() { told.unwrap_or_default() } else { failures.to_vec() };
    let number = open.map_or(1, |it| attempts(it).max(1));
    let task = open.map(|it| (*it).clone()).unwrap_or_default();
    let result = json!({"text": repair_text(&task, &failures), "task": id, "attempt": number});
    if status(&task) == Some(Progress::Running) && scene.phase() == Phase::Implementation {
        return Ok(Act { moves: aside(scene, &id), ..Act::nothing(result) });
    }
    let mut fields = json!({
        "status": "running", "attempts": number, "started_at": seconds(scene.at),
        "completed_at": null, "output": in_task(&id, "output.json"), "depends_on": [],
    });
    if open.is_none() {
        fields["description"] =
            format!("mend what the verification named: {}", failures.join("; ")).into();
    }
    checkpoint.set_task(&id, fields);
    checkpoint.enter(Phase::Implementation, scene.at);
    let act = scene.act(Vec::new(), &checkpoint, result);
    Ok(Act { moves: aside(scene, &id), ..act })
}

/// The repair is where it belongs: the whole is verified again.
pub fn mended(scene: &Scene<'_>, id: &str, draft: &Value, outcome: &str) -> Result<Act, Refused> {
    let mut checkpoint = scene.checkpoint();
    let task = known(&checkpoint, id)?;
    if status(&task) == Some(Progress::Verified) && scene.phase() >= Phase::Verification {
        return Ok(Act::nothing(none()));
    }
    checkpoint.forget_cut_off(id);
    let map = output_of(id, draft, outcome);
    let written = replace(&in_task(id, "output.json"), &map);
    if map.get("status").and_then(Value::as_str).and_then(progress) != Some(Progress::PreComplete) {
        let class = map.get("failure_class").and_then(Value::as_str).unwrap_or_default();
        let class = Class::of_word(class);
        fail(scene, &mut checkpoint, id, class, &summary(&map))?;
        return Ok(scene.act(vec![written], &checkpoint, none()));
    }
    checkpoint.set_task(id, json!({"status": "verified", "completed_at": seconds(scene.at)}));
    checkpoint.enter(Phase::Verification, scene.at);
    let act = scene.act(vec![written], &checkpoint, none());
    Ok(Act { moves: scene.aside(VERIFICATION).into_iter().collect(), ..act })
}
