//! What looks half done in the other system's files, and is our own work all the same.
//!
//! Invariant: the files alone cannot tell. An attempt that lives, or has ended with its result
//! waiting, or is done while the files do not tell of it yet, keeps what it left; only an attempt
//! that is run again has lost it.

use onward_core::{
    address::Address,
    evidence::Cause,
    finding::Finding,
    recovery::{AttemptFacts, Decision, Rung, row_for},
    run::Run,
    state::{Phase, StepState},
    survey::{InFlight, Survey},
    told::{Died, Journaled, StepTold, Told, Undo, UndoWhat},
    workflow::model::Kind,
};

use super::Reading;

/// Steps of ours that a change of the files has overtaken run again, and that is said. While an
/// attempt of ours lives, the files are what it has come to.
pub(super) fn overtaken(told: &dyn Told, run: &Run, survey: &mut Survey) {
    if survey.in_flight.values().any(|it| it.facts.alive) {
        return;
    }
    for it in told.overtaken(&|step| journaled(run, step)) {
        let is_it =
            |other: &Finding| (&other.code, &other.path) == (&it.finding.code, &it.finding.path);
        if !survey.findings.iter().any(is_it) {
            survey.findings.push(it.finding);
        }
        let says = it.says;
        survey.explained.extend(it.steps.iter().cloned());
        survey.disagreements.extend(it.steps.into_iter().map(|step| (step, says.clone())));
    }
}

/// What the files tell, where our journal is known too.
pub(super) fn beside(told: &mut dyn Told, run: &Run) {
    told.beside(&|step| journaled(run, step));
}

/// The same of what was just read.
pub(super) fn read_beside(mut reading: Reading, run: &Run) -> Reading {
    reading.told.iter_mut().for_each(|it| beside(&mut **it, run));
    reading
}

fn journaled(run: &Run, step: &Address) -> Journaled {
    let Some(entry) = run.state.step(step) else { return Journaled::Open };
    let result = || entry.result.as_deref().cloned().unwrap_or_default();
    match entry.phase {
        Phase::Done => Journaled::Done(result()),
        Phase::Stale => Journaled::Stale(result()),
        Phase::Failed => Journaled::Failed,
        Phase::Pending
        | Phase::Running
        | Phase::Waiting
        | Phase::Tolerated
        | Phase::Skipped
        | Phase::Lost => Journaled::Open,
    }
}

pub(super) struct Ours<'a> {
    pub(super) told: &'a dyn Told,
    pub(super) run: &'a Run,
    pub(super) survey: &'a Survey,
    /// A person enters earlier: what was done from there on is done again.
    pub(super) redone: bool,
}

impl Ours<'_> {
    /// Whether what would be undone is work of ours that still counts.
    pub(super) fn keeps(&self, undo: &Undo) -> bool {
        let mut within = self.run.state.steps.iter().filter(|(step, _)| step.is_within(&undo.step));
        match undo.what {
            // A file is kept only from an attempt that writes it at this moment.
            UndoWhat::Rows { .. } | UndoWhat::Remove => within.any(|(step, entry)| {
                entry.phase == Phase::Running
                    && self.decision(step) == Decision::Reattach
                    && self.told.step(step) != StepTold::Silent
            }),
            UndoWhat::Worktree { .. } => within.any(|(step, entry)| self.stands(step, entry)),
        }
    }

    /// Steps whose work counts: over and still to be written down, or under way and not lost.
    pub(super) fn alive(&self) -> Vec<Address> {
        let lives = |(step, entry): &(&Address, &StepState)| match entry.phase {
            Phase::Running => !self.is_lost(step),
            Phase::Done | Phase::Tolerated => {
                !entry.elsewhere && !self.redone && self.is_unwritten(step)
            }
            // It is over, and nothing more is to be said of it; or it never began.
            Phase::Lost | Phase::Failed | Phase::Pending => {
                let died = died(self.run, step, entry);
                let never_began = entry.phase == Phase::Lost;
                !self.redone && died.map_or(never_began, |it| self.told.counts(&it))
            }
            Phase::Waiting | Phase::Skipped | Phase::Stale => false,
        };
        let steps = self.run.state.steps.iter().filter(lives);
        steps.map(|(step, _)| step.clone()).collect()
    }

    /// An attempt in flight that was cut off.
    fn is_lost(&self, step: &Address) -> bool {
        !is_call(self.run, step) && row_for(self.facts(step)).rung.is_death()
    }

    /// The files are silent about it, and of the steps behind it, which write down what it left,
    /// none is over or lost. The last step of its scope writes for itself.
    fn is_unwritten(&self, step: &Address) -> bool {
        let graph = &self.run.graph;
        let Some(id) = graph.find(step) else { return false };
        let Some(parent) = graph.node(id).parent else { return false };
        let behind = graph.node(parent).children.iter().skip_while(|it| **it != id).skip(1);
        let behind: Vec<&Address> = behind.map(|it| &graph.node(*it).address).collect();
        let is_open = |it: &Address| match self.run.state.phase(it) {
            Phase::Pending => true,
            Phase::Running => !self.is_lost(it),
            Phase::Waiting
            | Phase::Done
            | Phase::Failed
            | Phase::Tolerated
            | Phase::Skipped
            | Phase::Lost
            | Phase::Stale => false,
        };
        let is_open = !behind.is_empty() && behind.into_iter().all(is_open);
        is_open && self.told.step(step) == StepTold::Silent
    }

    fn stands(&self, step: &Address, entry: &StepState) -> bool {
        let is_told = matches!(self.told.step(step), StepTold::Done(_));
        match entry.phase {
            Phase::Running => match self.decision(step) {
                Decision::AdoptSeal
                | Decision::Reattach
                | Decision::AdoptProof
                | Decision::Continue
                | Decision::Ask
                | Decision::Refuse => !is_told,
                Decision::Start | Decision::Rerun | Decision::RevertThenRerun => false,
            },
            Phase::Done => {
                let is_ours = !entry.elsewhere && self.has_own_dir(step);
                is_ours && !is_told && !self.redone && !self.is_settled(step)
            }
            Phase::Pending
            | Phase::Waiting
            | Phase::Failed
            | Phase::Tolerated
            | Phase::Lost
            | Phase::Skipped
            | Phase::Stale => false,
        }
    }

    /// Whether the step works in a directory of its own.
    fn has_own_dir(&self, step: &Address) -> bool {
        let id = self.run.graph.find(step);
        id.is_some_and(|id| self.run.defs.step(self.run.graph.node(id).def).dir.is_some())
    }

    /// A step beside it that the files would tell of is done: what lies there now came later.
    fn is_settled(&self, step: &Address) -> bool {
        let Some(parent) = step.parent() else { return false };
        let beside = self.run.state.steps.iter().filter(|(other, _)| other.is_within(&parent));
        let mut done = beside.filter(|(_, entry)| entry.phase == Phase::Done);
        done.any(|(other, _)| match self.told.step(other) {
            StepTold::Undone | StepTold::Unproved(_) => true,
            StepTold::Done(_) | StepTold::PassedOver(_) | StepTold::Silent => false,
        })
    }

    fn decision(&self, step: &Address) -> Decision {
        row_for(self.facts(step)).decision
    }

    fn facts(&self, step: &Address) -> AttemptFacts {
        let unseen = InFlight::default();
        self.survey.in_flight.get(step).unwrap_or(&unseen).facts
    }
}

/// Agents of ours that were cut off, of which the files do not know yet.
pub(super) fn untold_deaths(run: &Run, told: &dyn Told) -> Vec<Died> {
    let all = run.state.steps.iter().filter_map(|(step, entry)| died(run, step, entry));
    all.filter(|it| !told.counts(it)).collect()
}

/// The attempt of a step that is lost or was stopped, if it was begun and costs something.
fn died(run: &Run, step: &Address, entry: &StepState) -> Option<Died> {
    let is_death = match entry.phase {
        Phase::Lost => entry.lost_by.is_some_and(Rung::is_death),
        // A resume makes what failed pending.
        Phase::Failed | Phase::Pending => {
            entry.failure.as_ref().is_some_and(|it| it.0 == Cause::Interrupted)
        }
        Phase::Running
        | Phase::Waiting
        | Phase::Done
        | Phase::Tolerated
        | Phase::Skipped
        | Phase::Stale => false,
    };
    let died = || Died { step: step.clone(), attempt: entry.attempts };
    (is_death && !is_call(run, step)).then(died)
}

/// A call ends the same when it is called again.
fn is_call(run: &Run, step: &Address) -> bool {
    let id = run.graph.find(step);
    let kind = id.map(|id| &run.defs.step(run.graph.node(id).def).kind);
    matches!(kind, Some(Kind::Call { .. }))
}
