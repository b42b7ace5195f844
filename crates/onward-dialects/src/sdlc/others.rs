//! Other workflows that were begun on the same story while a run was interrupted.

use onward_core::{finding::Finding, time::Timestamp};

use super::{
    check::Own, project::Kept, spec::TOGETHER_MS, state::Flow, story::is_same, told::SdlcTold,
};
use crate::kit::path::shown;

pub(super) fn findings(told: &SdlcTold, all: &mut Vec<Finding>) {
    if matches!(told.flow, Flow::Epic | Flow::Spec) {
        return;
    }
    let Some((_, since)) = told.last_at().filter(|_| told.state_path.is_some()) else { return };
    let own = told.state_path.as_ref();
    let written = own.and_then(|path| told.files.file(path)?.modified);
    let mut note = |other: &Other<'_>| {
        let is_same_story = other.story.is_some_and(|it| is_same(it, &told.key));
        let Some(how) = other.since(since, written).filter(|_| is_same_story) else { return };
        if Some(other.path) == own {
            return;
        }
        let (title, key) = (other.flow.title(), shown(&told.key));
        let message = match how {
            Since::Started => format!("a {title} was started for {key} since the interruption"),
            Since::Written => {
                format!("the state of a {title} for {key} was written since the interruption")
            }
        };
        all.push(Own::OtherWorkflow.finding(message).at_path(other.path));
    };
    for Kept { path, modified, told: it } in &told.project.states {
        let (story, flow) = (it.story.as_deref(), it.flow);
        let times = [it.started_at, it.updated_at, *modified];
        note(&Other { path, story, flow, times });
    }
    for Kept { path, modified, told: it } in &told.project.loops {
        let times = [it.started_at, it.updated_at, *modified];
        // A file without an iteration is none that was started.
        if !it.is_idle() {
            note(&Other { path, story: Some(&it.story), flow: Flow::QaLoop, times });
        }
    }
}

/// Another state of a project.
struct Other<'a> {
    path: &'a String,
    story: Option<&'a str>,
    flow: Flow,
    /// When it says that it began, when it says that it was last written, and the time of its file.
    times: [Option<Timestamp>; 3],
}

/// What happened to another workflow after a run was interrupted.
enum Since {
    Started,
    Written,
}

impl Other<'_> {
    /// By the best that it tells. The time of a file says something only where it differs from that
    /// of the run's own state, `written`: a copy of the project has other times.
    fn since(&self, interrupted: Timestamp, written: Option<Timestamp>) -> Option<Since> {
        let later = |at: Timestamp, than: Timestamp| at > than.plus_ms(TOGETHER_MS);
        match self.times {
            [Some(started), ..] => (started > interrupted).then_some(Since::Started),
            [None, Some(updated), _] => (updated > interrupted).then_some(Since::Written),
            [None, None, Some(modified)] => {
                let is_later =
                    later(modified, interrupted) && written.is_some_and(|it| later(modified, it));
                is_later.then_some(Since::Written)
            }
            [None, None, None] => None,
        }
    }
}
