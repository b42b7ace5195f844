//! Starts that are announced ahead: while plain commands end in quick succession, the supervisor
//! has the next ones before there is a slot for them, and ends that come meanwhile share a sync.
//!
//! Invariant: what waits for a slot is announced and durable, and is withdrawn when nothing new may
//! start, or when no slot becomes free for a while. A start that was withdrawn is written down as
//! lost before its spawn, so nothing that waits long is said to run.

use std::collections::VecDeque;

use onward_core::{
    address::Address,
    event::lost_before_spawn,
    graph::Word,
    run::Run,
    state::{Phase, StepState},
    time::Timestamp,
};

use super::{Driver, stop::Stopping};
use crate::world::{Stop, World};

/// How far ahead of its free slots a driver announces.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// How quickly the last so many attempts ended says how many the slots take in a time. 0 = it
    /// does not matter.
    pub after: u32,
    /// As many may wait as the slots take in this time,
    pub lead_ms: u64,
    /// and never more than this.
    pub most: u32,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { after: 8, lead_ms: 20, most: 16 }
    }
}

impl Ahead {
    /// How many may wait after these ends.
    fn at(self, ends: &VecDeque<Timestamp>, now: Timestamp) -> u32 {
        let Self { after, lead_ms, most } = self;
        if after == 0 {
            return most;
        }
        let first = ends.front().filter(|_| ends.len() >= after as usize);
        let Some(first) = first else { return 0 };
        let taken = u64::from(after).saturating_mul(lead_ms) / now.ms_since(*first).max(1);
        u32::try_from(taken).unwrap_or(u32::MAX).min(most)
    }
}

/// What waits for a slot this long, while none becomes free, is taken back; and so is what would,
/// by the pace of the last ends.
const PATIENCE_MS: u64 = 250;

/// How quickly attempts end.
#[derive(Debug)]
pub(super) struct Pace {
    /// Whether the workflow has nothing but commands that change what they declare.
    is_plain: bool,
    /// The last of them.
    ends: VecDeque<Timestamp>,
    /// When an attempt last began or ended.
    moved_at: Timestamp,
    /// What waits is to be withdrawn with the next actions.
    is_over: bool,
}

impl Pace {
    pub(super) fn of(run: &Run) -> Self {
        let is_plain = run.defs.ids().all(|id| {
            let brief = run.defs.brief(id);
            let is_plain = match brief.word() {
                Word::Run | Word::Gate | Word::Group => true,
                Word::Agent | Word::Call | Word::Sub => false,
            };
            is_plain && !brief.edits() && !brief.has_worktree()
        });
        let is_plain = is_plain && run.defs.limits().usd.is_none();
        let (ends, moved_at) = (VecDeque::new(), Timestamp::default());
        Self { is_plain, ends, moved_at, is_over: false }
    }
}

impl<W: World> Driver<'_, W> {
    /// How many starts may wait for a slot now.
    pub(super) fn ahead(&self, now: Timestamp) -> u32 {
        let may = self.pace.is_plain && self.how.foreign.is_none() && self.stop == Stopping::No;
        if may { self.how.options.ahead.at(&self.pace.ends, now) } else { 0 }
    }

    fn slots(&self) -> u32 {
        self.run.defs.limits().parallel
    }

    /// The slots that announced attempts wait for, where there are more of them than slots.
    pub(super) fn slots_to_wait_for(&self) -> Option<u32> {
        let slots = self.slots();
        (self.run.state.running > slots).then_some(slots)
    }

    pub(super) fn note_start(&mut self, now: Timestamp) {
        self.pace.moved_at = now;
    }

    pub(super) fn note_end(&mut self) {
        let now = self.world.now();
        self.pace.moved_at = now;
        self.pace.ends.push_back(now);
        if self.pace.ends.len() > self.how.options.ahead.after as usize {
            self.pace.ends.pop_front();
        }
    }

    /// Nothing new may start.
    pub(super) fn end_ahead(&mut self) {
        self.pace.is_over = true;
    }

    /// When what waits is to be taken back, unless something ends before.
    pub(super) fn wake_to_withdraw(&self, wake: Option<Timestamp>) -> Option<Timestamp> {
        let Some(at) = self.withdraws_at() else { return wake };
        Some(wake.map_or(at, |wake| wake.min(at)))
    }

    fn withdraws_at(&self) -> Option<Timestamp> {
        self.slots_to_wait_for()?;
        Some(self.pace.moved_at.plus_ms(PATIENCE_MS))
    }

    /// How long the last of what waits would, by the pace of the last ends.
    fn wait_to_come(&self, now: Timestamp) -> Option<u64> {
        let waiting = self.run.state.running.saturating_sub(self.slots_to_wait_for()?);
        let first = self.pace.ends.front()?;
        let ends = u64::try_from(self.pace.ends.len()).ok()?;
        Some(u64::from(waiting).saturating_mul(now.ms_since(*first)) / ends)
    }

    /// Takes back what waits, if it may not start any more, or waits for slots that stay taken
    /// or become free slowly.
    pub(super) fn withdraw(&mut self) -> Result<(), Stop> {
        let now = self.world.now();
        let is_stuck = self.withdraws_at().is_some_and(|at| at <= now);
        let is_slow = self.wait_to_come(now).is_some_and(|ms| ms > PATIENCE_MS);
        if is_stuck || is_slow {
            // It begins again when attempts end quickly again.
            self.pace.ends.clear();
            self.pace.moved_at = now;
        }
        let is_over = std::mem::take(&mut self.pace.is_over) && self.slots_to_wait_for().is_some();
        if is_stuck || is_slow || is_over { self.world.withdraw() } else { Ok(()) }
    }

    /// The supervisor gave an attempt back that it never spawned.
    pub(super) fn withdrawn(&mut self, step: &Address, attempt: u32) -> Result<(), Stop> {
        let is_its = |it: &StepState| it.phase == Phase::Running && it.attempts == attempt;
        if !self.run.state.step(step).is_some_and(is_its) {
            return Ok(());
        }
        self.record(lost_before_spawn(step, attempt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_wait_as_begin_within_the_lead_and_none_where_attempts_take_long() {
        let ahead = Ahead { after: 4, lead_ms: 20, most: 16 };
        let at = |ms: i64| Timestamp::from_micros(ms * 1000);
        let waiting = |ends: [i64; 4], now| ahead.at(&ends.map(at).into(), at(now));
        assert_eq!(ahead.at(&[0, 1, 2].map(at).into(), at(3)), 0, "too few have ended");
        assert_eq!(waiting([0, 0, 0, 0], 0), 16);
        assert_eq!(waiting([0, 1, 2, 3], 4), 16);
        assert_eq!(waiting([0, 5, 10, 15], 20), 4);
        assert_eq!(waiting([0, 25, 50, 75], 80), 1);
        assert_eq!(waiting([0, 25, 50, 75], 81), 0);
        let eager = Ahead { after: 0, ..ahead };
        assert_eq!(eager.at(&VecDeque::new(), at(0)), 16);
    }
}
