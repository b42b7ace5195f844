//! One event of a QA loop: what the agent changed is looked at, its status is written, and with an
//! approval its story is done.

use onward_dialects::{
    kit::json::Oddities,
    rules::sdlc::turn::{Event, Turned, turned},
    sdlc::qa::Loop,
};
use serde_json::{Value, json};

use super::{
    Ask, CallError, Desk, Order, desk, replace,
    story::{self, guard, held},
    text,
};
use crate::world::real::wall_clock;

pub(super) fn turn(order: &Order) -> Result<Value, CallError> {
    let ask = Ask::read(order)?;
    let desk = desk(order)?;
    let event = match ask.to.as_str() {
        "reviewed" => Event::Reviewed(&ask.verdict),
        "fixed" => Event::Fixed,
        "waive" => Event::Waived,
        other => return Err(CallError::new(format!("`{other}` is not an event of a loop"))),
    };
    let known = desk.read(&ask.state)?;
    let known = known.and_then(|it| Loop::read(&it, &ask.state, &Oddities::default()).ok());
    // A call that was cut short behind its guard has changed the story itself.
    let is_closing = known.is_some_and(|it| it.closing);
    if !ask.path.is_empty() && !is_closing {
        guard(&ask, &held(&desk, &ask, &text(&desk, &ask.path)?)?)?;
    }
    let closes = match event {
        Event::Reviewed(verdict) => verdict == "APPROVE",
        Event::Waived => true,
        Event::Fixed | Event::Closing => false,
    };
    if closes && !ask.path.is_empty() {
        tell(&desk, &ask, Event::Closing)?;
        story::close(&desk, &ask)?;
    }
    tell(&desk, &ask, event)?;
    Ok(json!({ "state": ask.state }))
}

fn tell(desk: &Desk, ask: &Ask, event: Event<'_>) -> Result<(), CallError> {
    let before = desk.read(&ask.state)?;
    let at = wall_clock().to_string();
    let (story, iteration, max) = (ask.story.as_str(), ask.iteration, ask.max);
    let now = Turned { story, iteration, max, event, at: &at };
    let mut after = turned(before.as_deref(), &now);
    if after.is_none() {
        // The user was asked: what cannot be read is kept, and the loop begins again.
        desk.rename(&[(ask.state.clone(), format!("{}.unreadable", ask.state))])?;
        after = turned(None, &now);
    }
    let after = after.and_then(|it| String::from_utf8(it).ok()).ok_or_else(|| {
        CallError::new(format!("`{}` cannot be read", ask.state)).hint("fix it, or move it away")
    })?;
    replace(desk, &ask.state, &after)
}
