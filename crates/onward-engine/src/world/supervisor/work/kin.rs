//! Processes that only this supervisor can find, written down once a second: if it is killed, the
//! next engine knows them.
//!
//! Invariant: what left its parent, its session and its environment behind has come to us, because
//! we are the subreaper; so our own children are all there is to look at.

use std::io;

use super::{Work, linux};
use crate::world::supervisor::{
    cgroup::Cgroup,
    descendants::Family,
    seals::{Grouped, Line, Stray},
};

/// The control group of this life.
#[derive(Debug, Default)]
pub(super) enum Group {
    #[default]
    Untried,
    Entered(Cgroup),
    /// This machine, or this user, cannot have one.
    Impossible,
}

impl Work {
    pub(super) fn watch_kin(&mut self, now: u64) -> io::Result<()> {
        if matches!(self.group, Group::Untried) {
            self.enter_group()?;
        }
        let pids = self.children.as_ref().and_then(|it| it.pids().ok()).unwrap_or_default();
        let is_new = |pid: &i32| !self.mains.contains_key(pid) && !self.strays.contains_key(pid);
        if pids.iter().any(is_new) {
            self.look_around(now);
        }
        let strays: Vec<i32> = self.strays.keys().copied().collect();
        for id in strays.into_iter().filter_map(linux::process).map(|process| process.id) {
            if self.noted.insert(id) {
                let at = linux::wall_now();
                let stray = Stray { pid: id.pid, start_time: id.start_time, at };
                self.log.append(&Line::Stray(stray))?;
            }
        }
        Ok(())
    }

    /// We go first, so that whatever is started from now on is in it; then all that lives already.
    fn enter_group(&mut self) -> io::Result<()> {
        self.group = Group::Impossible;
        let Some(group) = Cgroup::enter(&self.place.run) else { return Ok(()) };
        let (dir, at) = (group.dir.clone(), linux::wall_now());
        self.log.append(&Line::Grouped(Grouped { dir, at }))?;
        if let Ok(family) = Family::look() {
            let children = self.children.as_ref().and_then(|it| it.pids().ok());
            for process in family.below(children.unwrap_or_default()) {
                // Gone in this very moment is as good.
                let _ = group.add(process.id.pid);
            }
        }
        self.group = Group::Entered(group);
        Ok(())
    }

    pub(in crate::world::supervisor) fn leave_group(&mut self) {
        if let Group::Entered(group) = std::mem::take(&mut self.group) {
            group.leave();
        }
    }
}
