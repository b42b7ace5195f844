//! The status, the log and the gate of a story; and what agents changed in it.

use std::{io::ErrorKind, path::Path};

use onward_core::worktree::WORKTREES;
use onward_dialects::{
    rules::sdlc::{
        edit::{with_log, with_status},
        gate as rules,
        join::joined,
        sections::Marked,
    },
    sdlc::{self, Status},
};
use serde_json::{Value, json};

use super::{Ask, CallError, Desk, Order, desk, project, replace, text};
use crate::world::{open, real::wall_clock};

/// What the story holds before an agent works on it.
pub(super) fn mark(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let page = take(order, &desk, &ask)?;
    marked(&desk, &ask, &page)
}

/// The story in a worktree, in which what it asks for is as the user has it in the project now: it
/// may have been changed there since the worktree was made.
fn take(order: &Order, desk: &Desk, ask: &Ask) -> Result<String, CallError> {
    let page = text(desk, &ask.path)?;
    let Some(theirs) = users(order, ask)? else { return Ok(page) };
    let all = joined(&theirs, &page);
    replace(desk, &ask.path, &all)?;
    Ok(all)
}

/// The user's copy, where the call is made in a worktree and there is one.
fn users(order: &Order, ask: &Ask) -> Result<Option<String>, CallError> {
    let Some(home) = home(&order.attempt.project) else { return Ok(None) };
    let path = home.join(&order.dir).join(&ask.path);
    match open::read_at(&path, open::FILE_BYTES_MAX) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CallError::io("read", &path)(error)),
    }
}

/// The project that a worktree of a run lies in.
fn home(dir: &Path) -> Option<&Path> {
    let is_home = |it: &&Path| dir.strip_prefix(it).is_ok_and(|it| it.starts_with(WORKTREES));
    dir.ancestors().find(is_home)
}

fn marked(desk: &Desk, ask: &Ask, text: &str) -> Result<Value, CallError> {
    Ok(json!({ "mark": held(desk, ask, text)?.to_json() }))
}

/// The story, and what the others ask for.
pub(super) fn held(desk: &Desk, ask: &Ask, text: &str) -> Result<Marked, CallError> {
    let project = project(desk)?;
    let others = project.stories.iter().filter(|it| it.path != ask.path);
    Ok(Marked::of(text).beside(others))
}

/// Refused when the agent changed what is not its own since the mark.
pub(super) fn guard(ask: &Ask, now: &Marked) -> Result<(), CallError> {
    guard_beside(ask, now, None)
}

/// What the user's copy says too was taken from there.
fn guard_beside(ask: &Ask, now: &Marked, theirs: Option<&Marked>) -> Result<(), CallError> {
    let Some(before) = Marked::from_json(&ask.before) else { return Ok(()) };
    let before = match theirs {
        Some(theirs) => before.knowing(now, theirs),
        None => before,
    };
    let trespassed = before.trespassed(now, &ask.role);
    if trespassed.is_empty() {
        return Ok(());
    }
    let (role, path) = (&ask.role, &ask.path);
    let what = trespassed.join(", ");
    Err(CallError::new(format!("the {role} changed what is not its own in {path}: {what}")).hint(
        "put it back as it was, and resume; or keep it with `onward resume --accept \
             scope-changed`",
    ))
}

/// Sees what the agent of the step before did, then writes a status and logs who set it.
pub(super) fn status(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let now = held(&desk, &ask, &text(&desk, &ask.path)?)?;
    let theirs = users(order, &ask)?.map(|it| Marked::of(&it));
    guard_beside(&ask, &now, theirs.as_ref())?;
    let page = take(order, &desk, &ask)?;
    let Some(to) = sdlc::status(&ask.to) else { return marked(&desk, &ask, &page) };
    announce(&desk, &ask.state, to)?;
    let page = set(&desk, &ask, page, to)?;
    let phase = match to {
        Status::Draft | Status::Ready => 2,
        Status::InProgress | Status::Blocked => 3,
        Status::InReview | Status::Done => 4,
    };
    tell_state(&desk, &ask.state, |state, at| rules::moved(state, phase, None, at))?;
    marked(&desk, &ask, &page)
}

/// The state says first what the story is about to be.
fn announce(desk: &Desk, state: &str, to: Status) -> Result<(), CallError> {
    tell_state(desk, state, |it, _| rules::with_story(it, to.as_str()))
}

/// Writes the status where the story has another one.
pub(super) fn set(desk: &Desk, ask: &Ask, page: String, to: Status) -> Result<String, CallError> {
    if status_of(&ask.path, &page) == Some(to) {
        return Ok(page);
    }
    let changed = with_status(&page, to).ok_or_else(|| {
        CallError::new(format!("{} names no status", ask.path))
            .hint("add a line such as `**Status:** Draft` below its title")
    })?;
    let day = wall_clock().to_string();
    let day = day.get(..10).unwrap_or_default();
    let changed = with_log(&changed, day, &ask.role, &format!("Status: {}", to.as_str()));
    replace(desk, &ask.path, &changed)?;
    Ok(changed)
}

/// The story is done; one that names no status says nothing of it either way.
pub(super) fn close(desk: &Desk, ask: &Ask) -> Result<(), CallError> {
    let page = text(desk, &ask.path)?;
    if status_of(&ask.path, &page).is_some() {
        set(desk, ask, page, Status::Done)?;
    }
    Ok(())
}

fn status_of(path: &str, page: &str) -> Option<Status> {
    let file = onward_dialects::File { bytes: page.as_bytes().to_vec(), modified: None };
    sdlc::Story::read(path, &file).and_then(|it| it.status())
}

/// Changes the state that the run goes on with; one that cannot be changed so, and one of the
/// upstream's own master orchestrator, which has other words, is left alone.
fn tell_state(
    desk: &Desk,
    state: &str,
    change: impl FnOnce(&str, &str) -> Option<String>,
) -> Result<(), CallError> {
    let is_json = state.to_lowercase().ends_with(".json");
    if state.is_empty() || is_json || desk.read(state)?.is_none() {
        return Ok(());
    }
    let before = text(desk, state)?;
    match change(&before, &wall_clock().to_string()) {
        Some(after) => replace(desk, state, &after),
        None => Ok(()),
    }
}

/// Sees what QA did, and writes its verdict where the original looks for it; one that closes the
/// story does so.
pub(super) fn gate(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let page = text(&desk, &ask.path)?;
    let path = rules::path(&ask.story);
    let Some(closes) = rules::closes(&ask.verdict) else {
        return Err(CallError::new(format!("`{}` is not a verdict", ask.verdict)));
    };
    let given = rules::given(&ask.story, &ask.verdict);
    // A call that was cut short behind its guard has changed the story itself.
    let told = desk.read(&path)?.unwrap_or_default();
    let announced = rules::announced(&ask.story, rules::sends_back(&told), &ask.verdict);
    let is_done = status_of(&ask.path, &page) == Some(Status::Done);
    let is_ours = told == announced.as_bytes() || is_done && told == given.as_bytes();
    if !is_ours {
        guard(&ask, &held(&desk, &ask, &page)?)?;
    }
    if closes {
        replace(&desk, &path, &announced)?;
        announce(&desk, &ask.state, Status::Done)?;
        set(&desk, &ask, page, Status::Done)?;
        tell_state(&desk, &ask.state, |it, at| rules::moved(it, 4, Some("completed"), at))?;
    }
    replace(&desk, &path, &given)?;
    Ok(json!({ "gate": path }))
}

/// A person said GO at the checkpoint: the story is done, and then nothing waits any more.
pub(super) fn finish(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let page = text(&desk, &ask.path)?;
    announce(&desk, &ask.state, Status::Done)?;
    set(&desk, &ask, page, Status::Done)?;
    tell_state(&desk, &ask.state, rules::decided)?;
    Ok(json!({}))
}
