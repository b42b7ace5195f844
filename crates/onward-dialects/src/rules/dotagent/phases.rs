//! The steps around the tasks: from the request to the reflection.

use onward_core::{time::Timestamp, told::Change};
use serde_json::{Map, Value, json};

use super::{Act, Refused, Scene, none, object_of, texts};
use crate::{
    dotagent::{
        EXECUTION, PHASE, Phase,
        read::{DEMAND, DESIGN, DESIGNS, Entry, MERGED, REFLECTIONS, VERIFICATION, stranger},
        write::{Checkpoint, replace},
    },
    kit::{age::seconds, path::component},
};

/// Where finished and unreadable checkpoints go.
pub const ARCHIVE: &str = "memory/state/.archive/";
/// Under this key a checkpoint that waits for its run names the archive of the one before it.
const ARCHIVED: &str = "archive";

/// The name of the archive of a run: `<workflow>_<time>`.
pub fn archive_name(checkpoint: &Checkpoint, at: Timestamp) -> String {
    let last = checkpoint.phase.get("last_updated").and_then(Value::as_str);
    let stamp: String = last.map_or_else(|| seconds(at), str::to_owned);
    let stamp: String = stamp.chars().filter(char::is_ascii_alphanumeric).collect();
    let id = match checkpoint.workflow_id().as_str() {
        "" => "unnamed".to_owned(),
        id => component(id),
    };
    format!("{id}_{stamp}")
}

/// A checkpoint that is over, kept, and one in its place that waits for a run to begin.
pub fn retire(scene: &Scene<'_>) -> Vec<Change> {
    let checkpoint = scene.checkpoint();
    let name = archive_name(&checkpoint, scene.at);
    let mut changes = archive(scene, &name);
    let waiting = json!({
        "workflow_id": "", "current_phase": Phase::Requirements.as_str(), "phase_status": "pending",
        "completed_phases": [], "user_checkpoints": [], "interruption_safe": true,
        "last_updated": seconds(scene.at), ARCHIVED: name,
    });
    changes.push(replace(PHASE, &object_of(&waiting)));
    changes
}

/// Copies of the state files, as they are, in an archive of this name.
pub fn archive(scene: &Scene<'_>, name: &str) -> Vec<Change> {
    let copy = |path: &str| {
        let bytes = scene.files.bytes(path)?.to_vec();
        let file = path.rsplit('/').next().unwrap_or(path);
        let path = format!("{ARCHIVE}{name}/{file}");
        (scene.files.bytes(&path) != Some(bytes.as_slice()))
            .then_some(Change::Replace { path, bytes })
    };
    [PHASE, EXECUTION].into_iter().filter_map(copy).collect()
}

/// Begins the run, and moves what an earlier one left into its archive: a report of another run is
/// none of this one's.
pub fn open(scene: &Scene<'_>) -> Result<Act, Refused> {
    let state = scene.state();
    if state.current.is_some() && !state.is_fresh() {
        return Ok(Act::nothing(none()));
    }
    let mut checkpoint = scene.checkpoint();
    let named = checkpoint.phase.remove(ARCHIVED);
    let name = named.as_ref().and_then(Value::as_str).map(component);
    let name = name.unwrap_or_else(|| archive_name(&checkpoint, scene.at));
    let left = ["memory/reports/", "memory/tasks/", "memory/contracts/", EXECUTION];
    let is_left = |path: &&str| left.iter().any(|it| path.starts_with(it));
    let to_archive = |path: &str| {
        let below = path.trim_start_matches("memory/").trim_start_matches("state/");
        (path.to_owned(), format!("{ARCHIVE}{name}/{below}"))
    };
    let moves = scene.files.iter().map(|(path, _)| path).filter(is_left).map(to_archive).collect();
    checkpoint.begin(scene.id, scene.at);
    checkpoint.execution.clear();
    let act = scene.act(Vec::new(), &checkpoint, none());
    Ok(Act { moves, ..act })
}

/// The demand is written; the user has to say yes to it.
pub fn demand(scene: &Scene<'_>, draft: &Value) -> Result<Act, Refused> {
    let map = object_of(draft);
    let completed = scene.state().completed;
    let is_told = completed.iter().any(|it| it.phase == Some(Phase::Requirements));
    let is_done = is_told && scene.object(DEMAND).as_ref() == Some(&map);
    if is_done || scene.phase() > Phase::Requirements {
        return Ok(Act::nothing(none()));
    }
    let mut checkpoint = scene.checkpoint();
    checkpoint.complete(Phase::Requirements, scene.at);
    let written = replace(DEMAND, &map);
    Ok(scene.act(vec![written], &checkpoint, none()))
}

/// The user said yes to the demand, or to the merged design, which is the final one from now on.
pub fn approve(scene: &Scene<'_>, word: &str, architects: &[String]) -> Result<Act, Refused> {
    let Some(phase) = Phase::parse(word) else {
        return Err(Refused::new(format!("`{word}` is not a phase"), "name a phase"));
    };
    let mut checkpoint = scene.checkpoint();
    let is_said = |it: &Entry| it.phase == Some(phase);
    if scene.phase() > phase {
        // The yes was taken back while the run was further, and given again.
        if phase == Phase::Requirements && !scene.state().checkpoints.iter().any(is_said) {
            checkpoint.approve(phase, scene.at);
        }
        return Ok(scene.act(Vec::new(), &checkpoint, none()));
    }
    let mut changes = Vec::new();
    match phase {
        Phase::Requirements => {
            checkpoint.phase.insert("architects".to_owned(), json!(architects));
        }
        Phase::Architecture => match scene.object(MERGED) {
            Some(merged) => {
                // The yes is noted before the design that it makes final: with the design there,
                // a run that is cut off goes on behind this.
                let mut said = scene.checkpoint();
                said.approve(phase, scene.at);
                changes.extend(said.changes(scene.files));
                changes.push(replace(DESIGN, &merged));
            }
            None if scene.object(DESIGN).is_some() => {}
            None => {
                let message = format!("{MERGED} is gone, and the user said yes to it");
                return Err(Refused::new(message, "`onward resume --redo roundtable/record`"));
            }
        },
        Phase::Implementation | Phase::Verification | Phase::Reflection => {}
    }
    checkpoint.complete(phase, scene.at);
    checkpoint.approve(phase, scene.at);
    if let Some(next) = Phase::ALL.into_iter().find(|it| *it > phase) {
        checkpoint.enter(next, scene.at);
    }
    Ok(scene.act(changes, &checkpoint, none()))
}

/// The file of one architect's design.
pub fn design_path(name: &str) -> String {
    format!("{DESIGNS}{}.json", component(name))
}

pub fn design(scene: &Scene<'_>, name: &str, draft: &Value) -> Result<Act, Refused> {
    Ok(architecture(scene, &design_path(name), draft))
}

/// What the roundtable made of the designs: a draft until the user says yes.
pub fn merged(scene: &Scene<'_>, draft: &Value) -> Result<Act, Refused> {
    Ok(architecture(scene, MERGED, draft))
}

fn architecture(scene: &Scene<'_>, path: &str, draft: &Value) -> Act {
    let written = object_of(draft);
    if scene.phase() > Phase::Architecture || scene.object(path).as_ref() == Some(&written) {
        return Act::nothing(none());
    }
    let mut checkpoint = scene.checkpoint();
    checkpoint.stamp(scene.at);
    scene.act(vec![replace(path, &written)], &checkpoint, none())
}

/// All tasks are verified: the whole is next. A verdict of before is put aside.
pub fn begin_verification(scene: &Scene<'_>) -> Result<Act, Refused> {
    if scene.phase() >= Phase::Verification {
        return Ok(Act::nothing(none()));
    }
    let mut checkpoint = scene.checkpoint();
    checkpoint.enter(Phase::Verification, scene.at);
    let act = scene.act(Vec::new(), &checkpoint, none());
    Ok(Act { moves: scene.aside(VERIFICATION).into_iter().collect(), ..act })
}

/// What the verification of the whole came to. A good one ends the phase.
pub fn verdict(scene: &Scene<'_>, draft: &Value) -> Result<Act, Refused> {
    let passed = draft["passed"].as_bool() == Some(true);
    let failures = texts(draft, "failures");
    let result = json!({ "passed": passed, "failures": failures });
    if scene.phase() > Phase::Verification {
        return Ok(Act::nothing(result));
    }
    let mut map = object_of(draft);
    map.remove("passed");
    map.insert("verdict".to_owned(), if passed { "PASS" } else { "FAIL" }.into());
    map.insert("failures".to_owned(), json!(failures));
    if scene.phase() == Phase::Verification
        && !passed
        && scene.object(VERIFICATION).as_ref() == Some(&map)
    {
        return Ok(Act::nothing(result));
    }
    let mut checkpoint = scene.checkpoint();
    let next = if passed { Phase::Reflection } else { Phase::Verification };
    checkpoint.enter(next, scene.at);
    Ok(scene.act(vec![replace(VERIFICATION, &map)], &checkpoint, result))
}

/// The file of a run's reflection.
pub fn reflection_path(id: &str) -> String {
    format!("{REFLECTIONS}{}.json", component(id))
}

/// The end of the run, with a copy of the checkpoint in the archive, and then the last page: with
/// that there, a run that is cut off is over, whatever its checkpoint says.
pub fn reflection(scene: &Scene<'_>, draft: &Value) -> Result<Act, Refused> {
    let mut checkpoint = scene.checkpoint();
    let path = reflection_path(&checkpoint.workflow_id());
    let result = json!({ "reflection": path });
    let state = scene.state();
    if state.is_over() && state.is_valid(&path) {
        return Ok(Act::nothing(result));
    }
    let mut map: Map<String, Value> = object_of(draft);
    map.insert("workflow_id".to_owned(), checkpoint.written_id());
    let page = replace(&path, &map);
    if state.is_over() {
        return Ok(Act { moves: Vec::new(), changes: vec![page], result });
    }
    checkpoint.finish(scene.at);
    let mut changes = Vec::new();
    let name = archive_name(&checkpoint, scene.at);
    for change in checkpoint.changes(scene.files) {
        let Change::Replace { path, bytes } = &change else { continue };
        let file = path.rsplit('/').next().unwrap_or(path);
        let (path, bytes) = (format!("{ARCHIVE}{name}/{file}"), bytes.clone());
        changes.push(Change::Replace { path, bytes });
    }
    if let Some(bytes) = scene.files.bytes(EXECUTION).filter(|_| stranger(scene.files).is_none()) {
        let path = format!("{ARCHIVE}{name}/execution.json");
        changes.push(Change::Replace { path, bytes: bytes.to_vec() });
    }
    let mut act = scene.act(changes, &checkpoint, result);
    act.changes.push(page);
    Ok(act)
}
