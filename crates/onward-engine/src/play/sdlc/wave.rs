//! An epic wave by wave: its state, the merge of its stories in order, its tag.
//!
//! A gate looks at a wave in a worktree in which all its branches are gathered. What it sends back
//! is mended there, on a branch of its own, which comes into the project behind the stories.
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
    sdlc::{
        self, SDLC, Status,
        epic::{Epic, Member, Wave},
        project::Project,
    },
    seam::Dialect as _,
};
use serde_json::{Map, Value, json};

use super::{Ask, Branch, CallError, Desk, Listed, Order, desk, project, replace, story, text};
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
        let found = epic.plan_path.as_deref().unwrap_or_default();
        let plan = if ask.plan.is_empty() { found } else { &ask.plan };
        replace(&desk, &state, &rules::fresh(&epic, plan, &ask.to, &at))?;
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
    let desk = desk(order)?;
    tell(&desk, &ask, event)?;
    if event != Event::InReview {
        return Ok(json!({}));
    }
    let (_, wave) = look(&desk, &ask)?;
    let of = |it: &&Member| Some(json!({ "story": it.id, "branch": it.branch.as_ref()? }));
    Ok(json!({ "branches": in_order(&wave).iter().filter_map(of).collect::<Vec<Value>>() }))
}

/// The stories as the plan has them merged.
fn in_order(wave: &Wave) -> Vec<&Member> {
    let mut stories: Vec<&Member> = wave.stories.iter().collect();
    let place = |id: &str| {
        wave.order.iter().position(|it| sdlc::is_same_story(it, id)).unwrap_or(usize::MAX)
    };
    stories.sort_by_key(|it| place(&it.id));
    stories
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

/// The stories of the wave as they are where they are gathered; in a run that gathers nothing, as
/// they are on their branches, or in the project where they have none.
fn pages(order: &Order) -> Result<Vec<(String, String)>, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    if let Some(stories) = &ask.stories {
        let page = |it: &Listed| Ok((it.id.clone(), text(&desk, &it.path)?));
        return stories.iter().map(page).collect();
    }
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

/// Brings the branches of the stories into the worktree in which the gate looks at them. One that
/// does not fit beside the others stays apart: its merge will say so.
pub(super) fn gather(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let project = project(&desk)?;
    let mut apart = Vec::new();
    for Branch { story, branch } in &ask.branches {
        let part = Part { task: story, branch, summary: ASKED, gathers: true };
        let conflicts = part.bring(order, &desk, &project, &ask)?;
        if !conflicts.is_empty() {
            apart.push(json!({ "story": story, "branch": branch, "paths": conflicts }));
        }
    }
    Ok(json!({ "apart": apart }))
}

/// Brings the branches of the stories into the project, in the order of the plan, and then what the
/// gate had mended.
pub(super) fn merge(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let (project, wave) = look(&desk, &ask)?;
    let of =
        |it: &Member| Some((format!("story {}", it.id), it.id.clone(), it.branch.clone()?, ASKED));
    let mut all: Vec<(String, String, String, &str)> =
        in_order(&wave).into_iter().filter_map(of).collect();
    if !ask.branch.is_empty() {
        let gate = format!("the gate of wave {}", ask.wave);
        all.push((gate, format!("wave {}", ask.wave), ask.branch.clone(), MENDED));
    }
    let mut merged = Vec::new();
    for (what, task, branch, summary) in &all {
        let part = Part { task, branch, summary, gathers: false };
        let conflicts = part.bring(order, &desk, &project, &ask)?;
        if !conflicts.is_empty() {
            let paths = conflicts.join(", ");
            let message = format!("{branch} of {what} cannot be merged: {paths}");
            let hint = format!("`git merge {branch}`, settle it by hand, then `onward resume`");
            return Err(CallError::new(message).hint(hint));
        }
        merged.push(task);
    }
    Ok(json!({ "merged": merged }))
}

/// What commits say that they bring.
const ASKED: &str = "what the story asks for";
const MENDED: &str = "what its gate sent back, mended";

/// A branch that comes in.
struct Part<'a> {
    task: &'a str,
    branch: &'a str,
    summary: &'a str,
    gathers: bool,
}

impl Part<'_> {
    /// The paths in which it and what is here stand against each other; none = it is there.
    fn bring(
        &self,
        order: &Order,
        desk: &Desk,
        project: &Project,
        ask: &Ask,
    ) -> Result<Vec<String>, CallError> {
        let variable = |name: &str| {
            variable(&order.attempt.env, name).and_then(|it| it.to_str()).unwrap_or_default()
        };
        // A story that the user changed meanwhile has the user's sections, and those of the agents.
        let settle = |torn: &Torn<'_>| {
            let is_story = project.stories.iter().any(|it| desk.dir.join(&it.path) == torn.path);
            is_story.then(|| settled(torn.base, torn.now, torn.tip)).flatten()
        };
        let work = Work {
            system: SDLC.card().name,
            task: self.task,
            branch: self.branch,
            summary: self.summary,
            run: &order.attempt.run,
            step: Address::from_text(variable("ONWARD_STEP")),
            attempt: variable("ONWARD_ATTEMPT").parse().unwrap_or(1),
            memory: desk.dir.join(ask.state.split('/').next().unwrap_or_default()),
            gathers: self.gathers,
            settle: &settle,
        };
        bring(&order.attempt, &work)
    }
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
