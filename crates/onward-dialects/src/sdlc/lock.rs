//! Locks of the system's own programs: whose run is being worked on, and what was only left behind.
//!
//! Invariant: a lock is held while it is younger than it says and its process is not known to be
//! gone; one of another story's run holds nothing here.

use onward_core::{
    finding::{Code as Known, Finding},
    time::Timestamp,
};

use super::{check::Own, project::Lock, story::bare, told::SdlcTold};
use crate::kit::path::shown;

/// A lock that is held: young enough, and its process not known to be gone.
pub(super) fn live(told: &SdlcTold, now: Timestamp) -> Option<&Lock> {
    let mut own = told.project.locks.iter().filter(|it| concerns(told, it));
    own.find(|it| is_live(it, now))
}

fn is_live(lock: &Lock, now: Timestamp) -> bool {
    let is_young = lock.created_at.is_none_or(|at| now.ms_since(at) < lock.ttl_ms);
    is_young && (lock.alive || lock.pid.is_none())
}

/// A lock of another story's run is none of ours.
fn concerns(told: &SdlcTold, lock: &Lock) -> bool {
    let Some(resource) = &lock.resource else { return true };
    let resource = resource.to_lowercase();
    let has = |id: &str| {
        let id = bare(id);
        !id.is_empty() && resource.contains(&id)
    };
    let stem = told.state_path.as_deref().and_then(|it| it.rsplit('/').next());
    if has(&told.key) || stem.is_some_and(|it| resource.contains(&it.to_lowercase())) {
        return true;
    }
    let stories = told.project.stories.iter().map(|it| it.id.as_str());
    let epics = told.project.epics.iter().map(|it| it.told.id.as_str());
    !stories.chain(epics).any(has)
}

pub(super) fn findings(told: &SdlcTold, now: Timestamp, all: &mut Vec<Finding>) {
    for lock in told.project.locks.iter().filter(|it| concerns(told, it)) {
        let owner = lock.owner.as_deref().map_or_else(|| "another program".to_owned(), shown);
        let pid = lock.pid.map(|it| format!(", process {it}")).unwrap_or_default();
        let finding = if is_live(lock, now) {
            let message = format!("it is being worked on by {owner}{pid}");
            let hint = "wait until it ends, or stop it there";
            Finding::new(Known::StillRunning, message).with_hint(hint)
        } else {
            Own::StaleLock.finding(format!("a lock of {owner}{pid} was left and holds nothing"))
        };
        all.push(finding.at_path(&lock.path));
    }
}
