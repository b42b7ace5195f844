//! What giving a run up puts away: its state file, and the statuses that were left half-way.
//!
//! Invariant: nothing is deleted. The state file moves into an archive beside it, where no search
//! looks; a story loses nothing but its status, and its Change Log says so.

use onward_core::{
    time::Timestamp,
    told::{Change, CleanUp, Reset},
};

use super::{
    status::Status,
    story::Story,
    told::{Kind, SdlcTold},
};
use crate::{
    kit::path::shown,
    rules::sdlc::edit::{with_log, with_status},
};

/// `None` where neither a state nor a status is left.
pub(super) fn clean_up(told: &SdlcTold, now: Timestamp) -> Option<CleanUp> {
    let at = now.to_string();
    let stamp: String = at.chars().filter(char::is_ascii_alphanumeric).collect();
    let state = told.state_path.iter().filter(|path| told.files.contains(path));
    let moves = state.map(|path| {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let gap = if dir.is_empty() { "" } else { "/" };
        (path.clone(), format!("{dir}{gap}archive/{stamp}/{name}"))
    });
    let day = at.get(..10).unwrap_or_default();
    let resets = stories(told).filter_map(|story| reset(story, day));
    let clean = CleanUp { moves: moves.collect(), resets: resets.collect() };
    (clean != CleanUp::default()).then_some(clean)
}

/// The stories that the run was at.
fn stories(told: &SdlcTold) -> impl Iterator<Item = &Story> {
    let ids: Vec<&str> = match &told.kind {
        Kind::Story(_) | Kind::Loop(_) => vec![told.key.as_str()],
        Kind::Spec(_) => Vec::new(),
        Kind::Epic(epic) => {
            let open = epic.members().filter(|it| !it.says.is_over());
            open.map(|it| it.id.as_str()).collect()
        }
    };
    ids.into_iter().filter_map(|id| told.project.story(id))
}

/// A story on which work is under way, back to where it can begin.
fn reset(story: &Story, day: &str) -> Option<Reset> {
    let status = story.status()?;
    match status {
        Status::InProgress | Status::InReview => {}
        Status::Draft | Status::Ready | Status::Done | Status::Blocked => return None,
    }
    let text = with_status(story.document.text(), Status::Ready)?;
    let (from, to) = (status.as_str(), Status::Ready.as_str());
    let text = with_log(&text, day, "onward", &format!("Status: {to}, its run was given up"));
    let what = format!("story {}: {from} -> {to}", shown(&story.id));
    let change = Change::Replace { path: story.path.clone(), bytes: text.into_bytes() };
    Some(Reset { what, change })
}
