//! When agents may start: limits that other runs met, quiet hours, and how long the driver waits.
//!
//! Invariant: nothing here takes a try of `retry`. A step that may not start now is held back, and
//! the decider says what becomes of the run meanwhile.

use onward_core::{
    event::Event,
    launch::{Launch, Program},
    run::Worker,
};

use crate::{
    drive::Driver,
    world::{KnownLimit, Stop, World},
};

impl<W: World> Driver<'_, W> {
    /// Takes the person's word into what the decider knows.
    pub(super) fn heed_limits(&mut self) {
        let limits = &self.how.options.limits;
        self.facts.waits = limits.waits_after(self.windows);
        self.facts.stand_ins.clone_from(&limits.stand_ins);
    }

    /// Records a limit. The driver waits for so many of them, and no more.
    pub(super) fn meet(&mut self, limit: Event) -> Result<(), Stop> {
        self.windows += 1;
        self.facts.waits = self.how.options.limits.waits_after(self.windows);
        self.record(limit)
    }

    /// Whether an attempt may be started now. If not, the decider knows why when this returns.
    pub(super) fn may_start(&mut self, launch: &Launch) -> Result<bool, Stop> {
        let Program::Agent(call) = &launch.program else { return Ok(true) };
        let of = Worker { name: &call.name, program: &call.adapter };
        if let Some(KnownLimit { provider, account, resets_at }) = self.world.known_limit(of) {
            let (agent, resets_at) = (Some(call.adapter.clone()), Some(resets_at));
            self.meet(Event::LimitHit { provider, agent, account, resets_at })?;
            return Ok(false);
        }
        let Some(quiet) = &self.how.options.limits.quiet else { return Ok(true) };
        let here = self.node(&launch.step).and_then(|id| self.run.takes_ms(id));
        let known = here.max(self.how.options.history.longest_ms(&launch.step));
        let takes_ms = known.filter(|_| self.how.options.limits.ends_before_quiet).unwrap_or(0);
        let Some(until) = quiet.until(self.world.now(), takes_ms) else { return Ok(true) };
        self.facts.deferred.insert(launch.step.clone(), until);
        Ok(false)
    }
}
