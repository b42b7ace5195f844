//! Attempts that wait for a slot: announced ahead, so that one begins as soon as another has ended,
//! without the engine's sync between the two.
//!
//! Invariant: what waits here is of the engine that is connected. When that one is gone, or another
//! has come, none of it is spawned, and no line of the log speaks of it: the next resume finds it
//! announced and never spawned.

use std::{collections::VecDeque, io};

use onward_core::launch::Launch;

use super::{Work, linux};
use crate::world::supervisor::{attempt::Key, wire::Report};

/// While enough waits, ends are told together: so long after the first of them at the latest. They
/// are in the log already.
const TOLD_WITHIN_MS: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Each with the moment since when it waits.
    waiting: VecDeque<(Launch, u64)>,
    slots: usize,
}

impl Work {
    pub(in crate::world::supervisor) fn queue(
        &mut self,
        launches: Vec<Launch>,
        slots: u32,
        now: u64,
    ) -> io::Result<()> {
        self.queue.slots = usize::try_from(slots).unwrap_or(usize::MAX);
        self.queue.waiting.extend(launches.into_iter().map(|launch| (launch, now)));
        self.fill(now)
    }

    /// Spawns what waits while there are slots.
    pub(in crate::world::supervisor) fn fill(&mut self, now: u64) -> io::Result<()> {
        while self.attempts.len() < self.queue.slots
            && let Some((launch, since)) = self.queue.waiting.pop_front()
        {
            self.spawn_after(launch, now.saturating_sub(since), now)?;
        }
        Ok(())
    }

    /// Gives everything that waits back to the engine.
    pub(in crate::world::supervisor) fn withdraw(&mut self) {
        for (launch, _) in std::mem::take(&mut self.queue.waiting) {
            self.give_back(launch);
        }
    }

    /// The engine whose attempts wait is gone.
    pub(in crate::world::supervisor) fn forget_queue(&mut self) {
        self.queue.waiting.clear();
    }

    /// Gives back one attempt, if it waits.
    pub(super) fn withdraw_one(&mut self, key: &Key) {
        let is_it = |(it, _): &(Launch, u64)| it.step == key.0 && it.attempt == key.1;
        let found = self.queue.waiting.iter().position(is_it);
        if let Some((launch, _)) = found.and_then(|at| self.queue.waiting.remove(at)) {
            self.give_back(launch);
        }
    }

    fn give_back(&mut self, launch: Launch) {
        let Launch { step, attempt, .. } = launch;
        self.reports.push(Report::Withdrawn { step, attempt });
        self.report_by(0);
    }

    /// An attempt ended. While more waits than the slots take, the engine has time: what ends
    /// meanwhile is told together, and shares a sync of the journal.
    pub(super) fn tell_end(&mut self, is_urgent: bool) {
        let has_time = !is_urgent && self.queue.waiting.len() > self.queue.slots;
        self.report_by(if has_time { linux::awake_ms() + TOLD_WITHIN_MS } else { 0 });
    }
}
