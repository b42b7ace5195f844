//! What looks half done in the other system's files, and is our own work all the same.
//!
//! Invariant: the files alone cannot tell. Whoever lives, or has ended with its result waiting, or
//! is done while what becomes of its work is not settled yet, keeps what it left; only an attempt
//! that is run again has lost it.

use onward_core::{
    address::Address,
    recovery::{Decision, row_for},
    run::Run,
    state::{Phase, StepState},
    survey::{InFlight, Survey},
};

use super::Witness;

pub(super) struct Ours<'a> {
    pub(super) witness: Witness<'a>,
    pub(super) run: &'a Run,
    pub(super) survey: &'a Survey,
    /// A person enters earlier: what was done from there on is done again.
    pub(super) redone: bool,
}

impl Ours<'_> {
    /// An attempt of ours is about to write there, or does so at this moment.
    pub(super) fn is_writing(&self, place: &Address) -> bool {
        let within = self.within(place);
        let running = within.filter(|(_, entry)| entry.phase == Phase::Running);
        let mut writers = running.filter(|(step, _)| self.witness.dialect.witnesses(step));
        writers.any(|(step, _)| self.decision(step) == Decision::Reattach)
    }

    /// Work that stands lies there, and the files do not tell of it yet.
    pub(super) fn has_work(&self, place: &Address) -> bool {
        let Witness { dialect, files } = self.witness;
        let workers = self.within(place).filter(|(step, _)| dialect.leaves_work(step));
        let mut standing = workers.filter(|(step, entry)| self.stands(step, entry));
        standing.any(|(step, _)| dialect.done(files, step).is_none())
    }

    fn stands(&self, step: &Address, entry: &StepState) -> bool {
        match entry.phase {
            Phase::Running => match self.decision(step) {
                Decision::AdoptSeal
                | Decision::Reattach
                | Decision::AdoptProof
                | Decision::Continue
                | Decision::Ask
                | Decision::Refuse => true,
                Decision::Start | Decision::Rerun | Decision::RevertThenRerun => false,
            },
            Phase::Done => !entry.elsewhere && !self.redone && !self.is_settled(step),
            Phase::Pending
            | Phase::Waiting
            | Phase::Failed
            | Phase::Lost
            | Phase::Skipped
            | Phase::Stale => false,
        }
    }

    /// What became of the work is written down already: what lies there now came later.
    fn is_settled(&self, step: &Address) -> bool {
        let Some(parent) = step.parent() else { return false };
        let mut done = self.within(&parent).filter(|(_, entry)| entry.phase == Phase::Done);
        done.any(|(step, _)| self.witness.dialect.witnesses(step))
    }

    fn within(&self, place: &Address) -> impl Iterator<Item = (&Address, &StepState)> {
        self.run.state.steps.iter().filter(move |(step, _)| step.is_within(place))
    }

    fn decision(&self, step: &Address) -> Decision {
        let unseen = InFlight::default();
        row_for(self.survey.in_flight.get(step).unwrap_or(&unseen).facts).decision
    }
}
