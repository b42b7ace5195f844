//! The supervisor died and the engine lives: another one takes its place, and the run goes on.
//!
//! Invariant: what was in flight goes the way it would go after the engine's own death: orphans are
//! ended, seals are read, the recovery table decides, and all of it is journaled as a resume.

use onward_core::state::Phase;

use crate::{
    drive::Driver,
    resume::ResumeError,
    world::{Stop, World},
};

/// Supervisors that may die in a row with nothing finished in between.
const LOSSES_MAX: u32 = 3;

/// How often it has come to this.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    in_a_row: u32,
    finished_before: usize,
}

impl<W: World> Driver<'_, W> {
    /// `why` is what the supervisor said for itself: one that could not go on is not replaced.
    pub(crate) fn take_hold_again(&mut self, why: Option<String>) -> Result<(), Stop> {
        if let Some(why) = why {
            return Err(Stop::HandsGaveUp(why));
        }
        let settled = self.run.state.steps.values().filter(|step| step.phase == Phase::Done);
        let finished = settled.count();
        if finished > self.losses.finished_before {
            self.losses = Losses { in_a_row: 0, finished_before: finished };
        }
        self.losses.in_a_row += 1;
        if self.losses.in_a_row > LOSSES_MAX {
            return Err(Stop::Hands(format!("it has died {LOSSES_MAX} times in a row")));
        }
        // What had been heard before it died counts.
        self.journal.commit(self.world)?;
        // It may live and only have let go of us; a later epoch takes it from our former selves.
        self.journal.begin_epoch();
        let connected = self.world.connect(self.journal.epoch())?;
        self.announced.clear();
        self.ask_again_to_stop();
        // Where to enter was for the first time.
        self.how.choices.from = None;
        self.recover(&connected, None).map_err(|error| match error {
            ResumeError::Conflicts(findings) => Stop::Conflicts(findings),
            ResumeError::Stop(stop) => stop,
            ResumeError::NoJournal
            | ResumeError::Journal(_)
            | ResumeError::Damaged
            | ResumeError::NoSuchStep(_)
            | ResumeError::NoSuchFinding(_)
            | ResumeError::Complete => Stop::Hands(error.to_string()),
        })
    }
}
