//! Where a run begins: which story, spec or loop it is about.

use onward_dialects::{
    kit::{json::Oddities, path::component},
    rules::sdlc::{gate, sections::Marked, turn},
    sdlc::{Status, qa, spec::Critique},
};
use serde_json::{Value, json};

use super::{Ask, CallError, Order, desk, project};

/// The story of this id; a new one where there is none.
pub(super) fn story(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let id = Ask::named(&ask.story, "story")?;
    let project = project(&desk(order)?)?;
    let state = if ask.state.is_empty() { gate::state_path(id) } else { ask.state.clone() };
    let Some(story) = project.story(id) else {
        let path = format!("docs/stories/{}.story.md", component(id));
        return Ok(json!({ "story": id, "path": path, "state": state, "exists": false,
            "status": "Draft", "awaits": false }));
    };
    let status = story.status().unwrap_or(Status::Draft);
    if status == Status::Done {
        return Err(CallError::new(format!("the story {id} is done already"))
            .hint("set its status back, if it is to be worked on again"));
    }
    Ok(json!({ "story": id, "path": story.path, "state": state, "exists": true,
        "status": status.as_str(), "awaits": false }))
}

pub(super) fn spec(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let feature = Ask::named(&ask.feature, "feature")?;
    let project = project(&desk(order)?)?;
    let known = project.specs.iter().find(|it| it.feature == feature);
    let folder = known.map(|it| it.folder.clone());
    let folder = folder.unwrap_or_else(|| format!("docs/specs/{}", component(feature)));
    Ok(json!({ "feature": feature, "folder": folder }))
}

/// What the critique of a spec says in its file: that is what every program reads.
pub(super) fn critiqued(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let project = project(&desk(order)?)?;
    let spec = project.specs.iter().find(|it| it.feature == ask.feature);
    let verdict = spec.and_then(|it| it.critique).ok_or_else(|| {
        let message = format!("the critique of {} says no verdict that is known", ask.feature);
        CallError::new(message).hint(
            "`onward resume` has the spec judged again, unless its file says by then what the \
             verdict is (APPROVED, NEEDS_REVISION or BLOCKED)",
        )
    })?;
    Ok(json!({ "verdict": verdict.as_str() }))
}

/// The same; a spec that its critique blocks goes on only when a person says so.
pub(super) fn judged(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let said = critiqued(order)?;
    if said["verdict"] == Critique::Blocked.as_str() {
        let message = format!("the critique blocks the spec of {}", ask.feature);
        return Err(CallError::new(message)
            .hint("read its critique; `onward resume --accept critique-blocked` revises it"));
    }
    Ok(said)
}

/// The loop of a story, with how many iterations it may have.
pub(super) fn qa_loop(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let id = Ask::named(&ask.story, "story")?;
    let desk = desk(order)?;
    let project = project(&desk)?;
    let story = project.story(id).ok_or_else(|| {
        CallError::new(format!("there is no story {id} below docs/stories"))
            .hint("write it first, with `onward run sdc`")
    })?;
    let path = if ask.state.is_empty() { turn::path(id) } else { ask.state.clone() };
    let bytes = desk.read(&path)?;
    let known = bytes.and_then(|it| qa::Loop::read(&it, &path, &Oddities::default()).ok());
    let max = known.map_or(qa::ITERATIONS, |it| it.max);
    let mark = Marked::of(story.document.text()).to_json();
    Ok(json!({ "story": id, "path": story.path, "state": path, "max": max, "mark": mark }))
}
