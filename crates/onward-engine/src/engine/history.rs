//! How long the steps of a workflow took before: read from the journals of its other runs.

use std::path::Path;

use onward_core::history::History;

use crate::{
    agents::limits::Limits,
    load::journal::{JOURNAL, load},
    locate::{Project, opened},
    world::open,
};

/// Older runs say little about the next one.
const RUNS_MAX: usize = 10;

/// What the last runs of the same workflow say; nothing where no driver would ask.
pub(super) fn history(project: &Project, run_dir: &Path, limits: &Limits) -> History {
    let mut history = History::default();
    if limits.quiet.is_none() || !limits.ends_before_quiet {
        return history;
    }
    let Some(workflow) = opened(run_dir).map(|it| it.workflow) else { return history };
    let runs = project.runs().unwrap_or_default().into_iter();
    let same = runs
        .filter(|it| it.dir != run_dir && opened(&it.dir).is_some_and(|it| it.workflow == workflow))
        .take(RUNS_MAX);
    for run in same {
        // A run that cannot be read says nothing.
        let bytes = open::read_own(&run.dir, JOURNAL, open::LOG_BYTES_MAX);
        if let Some(loaded) = bytes.ok().and_then(|bytes| load(&bytes).ok()) {
            history.add(&loaded.state);
        }
    }
    history
}
