//! Records behind the damage: each is kept as it was written, and what must have stood before it
//! is put there.
//!
//! Invariant: a record that cannot follow even so, or that a seal contradicts, is left out and
//! named; what it was about is then read in the more careful way.

use onward_core::{
    address::Address,
    event::{EndStatus, Event, Record},
    evidence::Outcome,
    state::{Phase, RunStatus},
    time::Timestamp,
    workflow::model::Kind,
};

use super::{
    rebuild::{Rebuilder, Source, lost},
    traces::Trace,
};
use crate::world::{Stop, World};

const MUST_HAVE: &str = "what follows shows it";

impl<W: World> Rebuilder<'_, W> {
    /// Takes in one readable record.
    pub(super) fn apply(&mut self, record: &Record) -> Result<(), Stop> {
        let mut event = record.event.clone();
        if let Err(why) = self.prepare(&mut event, record.at)? {
            self.dropped.push((record.clone(), why));
            return Ok(());
        }
        if let Err(violation) = self.push(record.at, event, Source::Journal, "it can be read") {
            self.dropped.push((record.clone(), violation.why));
        }
        Ok(())
    }

    /// Puts in place what the record needs before it. `Err` says why it cannot be taken.
    fn prepare(&mut self, event: &mut Event, at: Timestamp) -> Result<Result<(), String>, Stop> {
        match event {
            Event::RunResumed(resumed) => resumed.count = self.run.state.resumes + 1,
            Event::AttemptStarted(started) => {
                let (step, attempt) = (started.step.clone(), started.attempt);
                let before = self.run.state.step(&step).map_or(0, |entry| entry.attempts);
                if attempt <= before {
                    return Ok(Err(format!("`{step}` has {before} attempts already")));
                }
                self.go_on_if_paused(Some(at));
                self.make_way(&step, attempt);
                if attempt > before + 1 && self.start(&step, attempt - 1, None) {
                    let _ = self.push(at, lost(&step, attempt - 1), Source::Gap, MUST_HAVE);
                }
            }
            Event::AttemptFinished(finished) => {
                let (step, attempt) = (finished.step.clone(), finished.attempt);
                if finished.outcome == Outcome::Done && self.is_denied(&step, attempt) {
                    self.must_run(&step, attempt)?;
                    let why = "its seal says that it failed";
                    let _ = self.push(at, lost(&step, attempt), Source::Gap, why);
                    return Ok(Err(why.to_owned()));
                }
                self.must_run(&step, attempt)?;
            }
            Event::AttemptLost { step, attempt, .. }
            | Event::AttemptSession { step, attempt, .. }
            | Event::AttemptSpent { step, attempt, .. }
            | Event::EffectIntended { step, attempt, .. }
            | Event::EffectSettled { step, attempt, .. } => {
                let (step, attempt) = (step.clone(), *attempt);
                self.must_run(&step, attempt)?;
            }
            Event::LoopTurned { step, turn } => {
                self.must_have_turned(step, turn.saturating_sub(1), at);
            }
            Event::LoopEnded { step, turns, .. } => self.must_have_turned(step, *turns, at),
            Event::GateDecided { step, hash, .. } => {
                let gate = self.run.state.step(step).and_then(|entry| entry.gate.as_ref());
                let is_open = self.run.state.phase(step) == Phase::Waiting;
                if !is_open || gate.is_none_or(|gate| gate.hash != *hash) {
                    let node = self.run.graph.find(step).map(|id| self.run.graph.node(id).def);
                    let options = match node.map(|def| &self.run.defs.step(def).kind) {
                        Some(Kind::Gate(gate)) => gate.options.clone(),
                        Some(_) | None => Vec::new(),
                    };
                    let (step, hash) = (step.clone(), *hash);
                    let (prompt, shows) = (String::new(), Vec::new());
                    let opened = Event::GateOpened { step, prompt, options, shows, hash };
                    let _ = self.push(at, opened, Source::Gap, MUST_HAVE);
                }
            }
            Event::RunEnded { status: EndStatus::Completed, .. } => {
                let supposed = self.pieces.iter().any(|piece| piece.imagined);
                if supposed || !self.run.graph.root().is_settled() {
                    return Ok(Err("not everything is known to be done".to_owned()));
                }
            }
            Event::RunPaused { .. } => {
                if self.run.state.status != RunStatus::UnderWay {
                    self.go_on_if_paused(Some(at));
                }
            }
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunEnded { status: EndStatus::Failed | EndStatus::Cancelled, .. }
            | Event::RunArchived { .. }
            | Event::GroupExpanded { .. }
            | Event::StepSkipped { .. }
            | Event::StepInvalidated { .. }
            | Event::AttemptAdopted(_)
            | Event::AttemptVerified(_)
            | Event::GateOpened { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. }
            | Event::Note { .. } => {}
        }
        Ok(Ok(()))
    }

    /// Puts the start of an attempt in place whose start was lost.
    fn must_run(&mut self, step: &Address, attempt: u32) -> Result<(), Stop> {
        let before = self.run.state.step(step).map_or(0, |entry| entry.attempts);
        if attempt <= before {
            return Ok(());
        }
        self.go_on_if_paused(None);
        self.make_way(step, attempt);
        let start = match self.run.graph.find(step) {
            Some(id) => self.rendered(id, attempt)?,
            None => None,
        };
        // Refused, it leaves the record without its start, and that is refused in its turn.
        let _ = self.start(step, attempt, start.as_ref());
        Ok(())
    }

    fn is_denied(&self, step: &Address, attempt: u32) -> bool {
        let seals = self.traces.get(step, attempt).map_or(&[][..], |trace: &Trace| &trace.seals);
        seals.iter().any(|seal| !seal.ending.is_success())
    }

    fn must_have_turned(&mut self, step: &Address, turns: u32, at: Timestamp) {
        let so_far = self.run.state.loops.get(step).map_or(0, |it| it.turns);
        for turn in so_far + 1..=turns {
            let event = Event::LoopTurned { step: step.clone(), turn };
            if self.push(at, event, Source::Gap, MUST_HAVE).is_err() {
                return;
            }
        }
    }
}
