//! An epic wave by wave: its state, the merge of its stories in order, its tag.
//!
//! Invariant: a wave is accepted in the state only behind its merge and its tag, so that a state
//! which says so is never ahead of the repository.

use onward_core::address::Address;
use onward_dialects::{
    kit::yaml::object,
    rules::sdlc::{
        join::settled,
        sections::Marked,
        wave::{self as rules, Event},
    },
    sdlc::{self, SDLC, Status, epic::Epic, epic::Wave, project::Project},
    seam::Dialect as _,
};
use serde_json::{Map, Value, json};

use super::{Ask, CallError, Desk, Order, desk, project, replace, story, text};
use crate::{
    play::merge::{Torn, Work, merge as bring},
    world::{
        git::Git,
        real::{variable, wall_clock},
    },
};

/// Reads the plan wave by wave, and begins the state where there is none.
pub(super) fn epic(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let id = Ask::named(&ask.epic, "epic")?;
    let desk = desk(order)?;
    let mut project = project(&desk)?;
    if !ask.plan.is_empty() {
        let plan = object(text(&desk, &ask.plan)?.as_bytes());
        let plan = plan.map_err(|why| CallError::new(format!("`{}`: {why}", ask.plan)))?;
        project.plans.insert(ask.plan.clone(), plan);
    }
    let epic = project.epic(id).filter(|it| !it.waves.is_empty()).ok_or_else(|| {
        CallError::new(format!("no plan says which waves the epic {id} has"))
            .hint("name its EXECUTION.yaml with --input plan=…")
    })?;
    if let Some(story) = missing(&project, &epic) {
        return Err(CallError::new(format!("the story {story} of the epic {id} is missing"))
            .hint("write it first, with `onward run sdc`"));
    }
    let state = if ask.state.is_empty() { rules::path(id) } else { ask.state.clone() };
    if desk.read(&state)?.is_none() {
        let at = wall_clock().to_string();
        replace(&desk, &state, &rules::fresh(&epic, &ask.plan, &ask.to, &at))?;
    }
    Ok(json!({ "epic": id, "state": state, "waves": sdlc::waves(&project, &epic) }))
}

fn missing(project: &Project, epic: &Epic) -> Option<String> {
    let mut open = epic.members().filter(|it| !it.says.is_over());
    open.find(|it| project.story(&it.id).is_none()).map(|it| it.id.clone())
}

/// Something happened in the wave.
pub(super) fn wave(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let event = match ask.to.as_str() {
        "started" => Event::Started { story: &ask.story },
        "worked" => Event::Worked { story: &ask.story, branch: &ask.branch },
        "review" => Event::InReview,
        "closed" => Event::Closed { is_last: ask.is_last },
        "finished" => Event::Finished,
        other => return Err(CallError::new(format!("`{other}` is not an event of an epic"))),
    };
    tell(&desk(order)?, &ask, event)?;
    Ok(json!({}))
}

fn tell(desk: &Desk, ask: &Ask, event: Event<'_>) -> Result<(), CallError> {
    let before = text(desk, &ask.state)?;
    let epic = epic_of(&project(desk)?, ask)?;
    let after = rules::told(&before, &epic, ask.wave, event, &wall_clock().to_string());
    let after = after.ok_or_else(|| {
        CallError::new(format!("`{}` is not written so that it could be changed", ask.state))
            .hint("write its maps one key a line, without `&`, `*` and `|`, and resume")
    })?;
    replace(desk, &ask.state, &after)
}

/// The wave as the state and the plan tell it, and every story of the project.
fn look(desk: &Desk, ask: &Ask) -> Result<(Project, Wave), CallError> {
    let project = project(desk)?;
    let wave = epic_of(&project, ask)?.waves.remove(&ask.wave).ok_or_else(|| {
        CallError::new(format!("`{}` has no wave {}", ask.state, ask.wave))
            .hint("bring the state back, and resume")
    })?;
    Ok((project, wave))
}

fn epic_of(project: &Project, ask: &Ask) -> Result<Epic, CallError> {
    let kept = project.epics.iter().find(|it| it.path == ask.state);
    kept.map(|it| it.told.clone()).ok_or_else(|| {
        CallError::new(format!("`{}` tells of no epic", ask.state))
            .hint("bring the state back, and resume")
    })
}

/// What the stories of the wave hold where their work lies, before it is mended.
pub(super) fn marks(order: &Order) -> Result<Value, CallError> {
    let marks = pages(order)?.into_iter();
    let marks = marks.map(|(id, page)| (id, Marked::of(&page).to_json()));
    Ok(json!({ "marks": marks.collect::<Map<String, Value>>() }))
}

/// Refused when what is not the agent's own changed in a story since.
pub(super) fn kept(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    for (id, page) in pages(order)? {
        let before = ask.before.get(&id).cloned().unwrap_or_default();
        let ask =
            Ask { path: format!("story {id}"), before, role: ask.role.clone(), ..Ask::default() };
        story::guard(&ask, &Marked::of(&page))?;
    }
    Ok(json!({}))
}

/// The stories of the wave as they are on their branches, or in the project where they have none.
fn pages(order: &Order) -> Result<Vec<(String, String)>, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let (project, wave) = look(&desk, &ask)?;
    let git = Git::new(&desk.dir, &order.attempt.env);
    let mut pages = Vec::new();
    for member in &wave.stories {
        let Some(story) = project.story(&member.id) else { continue };
        let object = member.branch.as_ref().map(|it| format!("refs/heads/{it}:./{}", story.path));
        let there = object.map(|it| git.ask(&["cat-file", "blob", &it], &[])).transpose()?;
        let page = match there.filter(|it| it.code == Some(0)) {
            Some(there) => String::from_utf8_lossy(&there.out).into_owned(),
            None => text(&desk, &story.path)?,
        };
        pages.push((member.id.clone(), page));
    }
    Ok(pages)
}

/// Brings the branches of the stories into the project, in the order of the plan.
pub(super) fn merge(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let (project, wave) = look(&desk, &ask)?;
    let mut stories: Vec<&sdlc::epic::Member> = wave.stories.iter().collect();
    let place = |id: &str| {
        wave.order.iter().position(|it| sdlc::is_same_story(it, id)).unwrap_or(usize::MAX)
    };
    stories.sort_by_key(|it| place(&it.id));
    let variable = |name: &str| {
        variable(&order.attempt.env, name).and_then(|it| it.to_str()).unwrap_or_default()
    };
    let home = ask.state.split('/').next().unwrap_or_default();
    let mut merged = Vec::new();
    // A story that the user changed meanwhile has the user's sections, and those of the agents.
    let settle = |torn: &Torn<'_>| {
        let is_story = project.stories.iter().any(|it| desk.dir.join(&it.path) == torn.path);
        is_story.then(|| settled(torn.base, torn.now, torn.tip)).flatten()
    };
    for member in stories {
        let Some(branch) = &member.branch else { continue };
        let work = Work {
            system: SDLC.card().name,
            task: &member.id,
            branch,
            summary: "what the story asks for",
            run: &order.attempt.run,
            step: Address::from_text(variable("ONWARD_STEP")),
            attempt: variable("ONWARD_ATTEMPT").parse().unwrap_or(1),
            memory: desk.dir.join(home),
            settle: &settle,
        };
        let conflicts = bring(&order.attempt, &work)?;
        if !conflicts.is_empty() {
            let what = conflicts.join(", ");
            let message = format!("{branch} of story {} cannot be merged: {what}", member.id);
            let hint = format!("`git merge {branch}`, settle it by hand, then `onward resume`");
            return Err(CallError::new(message).hint(hint));
        }
        merged.push(member.id.clone());
    }
    Ok(json!({ "merged": merged }))
}

/// Puts the wave's tag on the commit that has it, unless it is there.
pub(super) fn tag(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let git = Git::new(&order.attempt.project, &order.attempt.env);
    let name = format!("refs/tags/{}", ask.to);
    if git.ask(&["check-ref-format", &name], &[])?.code != Some(0) {
        return Err(CallError::new(format!("`{}` cannot name a tag", ask.to)));
    }
    let known = git.ask(&["rev-parse", "--verify", "--quiet", &name], &[])?;
    if known.code != Some(0) {
        let head = git.line(&["rev-parse", "HEAD"])?;
        git.run(&["update-ref", &name, &head])?;
    }
    Ok(json!({ "tag": ask.to }))
}

/// The wave is merged: its stories are done, and then its state says that it is accepted.
pub(super) fn accept(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let (project, wave) = look(&desk, &ask)?;
    for member in wave.stories.iter().filter(|it| it.branch.is_some()) {
        if let Some(story) = project.story(&member.id) {
            let ask = Ask { path: story.path.clone(), role: "qa".to_owned(), ..Ask::default() };
            let page = text(&desk, &story.path)?;
            story::set(&desk, &ask, page, Status::Done)?;
        }
    }
    tell(&desk, &ask, Event::Accepted { notes: &ask.notes })?;
    Ok(json!({}))
}
