//! From what is on disk to a driver that can go on: fold, look, plan, revert, continue.
//!
//! This is the only way to start: a new run is one whose journal holds nothing but `run.opened`.

use std::sync::Arc;

use onward_core::{
    address::Address,
    decide::{self, Again, Start, start_again},
    event::{EndStatus, Event, Mode},
    evidence::Cause,
    finding::{Code, Finding, Severity},
    graph::Defs,
    journal::Rest,
    plan::{Resumption, resumption},
    recovery::{Decision, Probed},
    run::Run,
    state::{EffectState, Phase, RunStatus},
    survey::Survey,
    workflow::{model::Workflow, template::Quoting},
};

use crate::{
    brief,
    drive::{Announced, Driver, Options},
    journal::{JOURNAL, Journal, LoadError, load, mend_tail},
    revert, survey,
    world::{At, Connected, Stop, World},
};

/// How a run is taken up.
#[derive(Clone, Debug)]
pub struct Resume {
    pub mode: Mode,
    /// Findings the person accepts, by code.
    pub accepted: Vec<String>,
    pub options: Options,
}

/// Why a run cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error("the run has no journal")]
    NoJournal,
    #[error(transparent)]
    Journal(#[from] LoadError),
    #[error("the journal is damaged")]
    Damaged,
    #[error("the run is complete")]
    Complete,
    /// A person must look first.
    #[error("{} must be settled first", .0.len())]
    Conflicts(Vec<Finding>),
    #[error(transparent)]
    Stop(#[from] Stop),
}

/// Takes hold of the run and brings it to where it can go on.
pub fn open<'w, W: World>(
    world: &'w mut W,
    workflow: Workflow,
    how: &Resume,
) -> Result<Driver<'w, W>, ResumeError> {
    let bytes = world.read(At::Run(JOURNAL))?.ok_or(ResumeError::NoJournal)?;
    let loaded = load(&bytes)?;
    if let Rest::Damaged(_) = loaded.tail.rest {
        return Err(ResumeError::Damaged);
    }
    if loaded.state.status == (RunStatus::Ended { status: EndStatus::Completed }) {
        return Err(ResumeError::Complete);
    }
    mend_tail(world, &bytes, &loaded.tail)?;
    // A killed engine may have left what it wrote, and the journal's very name, unsynced: before
    // anything is done on the strength of it, it must be there to stay.
    world.sync(At::Run(JOURNAL))?;
    world.sync_dir(At::Run(JOURNAL))?;
    let owes_newline = loaded.tail.missing_newline;
    let fresh = loaded.state.next_seq == 1;
    let run = Run::new(Arc::new(Defs::new(workflow)), loaded.state);
    let journal = Journal::after(&run.state, owes_newline);
    let connected = world.connect(journal.epoch())?;
    brief::write_plain(world)?;
    let mut driver = Driver::new(world, run, journal, how.clone());
    if !fresh {
        driver.recover(&connected)?;
    }
    Ok(driver)
}

impl<W: World> Driver<'_, W> {
    /// The stages check, decide, revert; `drive` continues.
    pub(crate) fn recover(&mut self, connected: &Connected) -> Result<(), ResumeError> {
        let how = self.how.clone();
        self.finish_undo(connected)?;
        let mut survey = survey::survey(self.world, &self.run, connected)?;
        let mut made = resumption(&self.run, &survey);
        if !made.to_probe.is_empty() {
            self.ask_probes(&made, &mut survey)?;
            made = resumption(&self.run, &survey);
        }
        let blocking: Vec<Finding> = made
            .findings
            .iter()
            .filter(|it| it.severity == Severity::Blocking && !how.accepted.contains(&it.code))
            .cloned()
            .collect();
        if !blocking.is_empty() {
            return Err(ResumeError::Conflicts(blocking));
        }
        revert::rescue(self.world, &made.reverts)?;
        let boot_id = connected.boot_id.clone();
        let resumed = made.resumed(&self.run.state, how.mode, boot_id, how.accepted.clone());
        self.record(Event::RunResumed(Box::new(resumed)))?;
        for event in &made.events {
            self.record(event.clone())?;
        }
        self.journal.commit(self.world)?;
        revert::undo(self.world, &made.reverts)?;
        self.take_up(&made, connected)?;
        Ok(())
    }

    /// An undo that a crash cut short is brought to its end before anybody looks at the tree.
    fn finish_undo(&mut self, connected: &Connected) -> Result<(), Stop> {
        let pending = self.run.state.pending_reverts().to_vec();
        revert::undo(self.world, &pending)?;
        for (step, entry) in self.run.state.steps.clone() {
            let never_spawned =
                entry.phase == Phase::Running && survey::never_spawned(&self.run, connected, &step);
            if let Some(started) = entry.started.filter(|_| never_spawned) {
                revert::undo(self.world, &started.reverts)?;
            }
        }
        Ok(())
    }

    fn ask_probes(&mut self, made: &Resumption, survey: &mut Survey) -> Result<(), Stop> {
        for step in &made.to_probe {
            let Some(id) = self.node(step) else { continue };
            let declared = self.run.defs.step(self.run.graph.node(id).def).probe.clone();
            let probed = match declared {
                None => Probed::Unknown,
                Some(probe) => match decide::text(&self.run, id, &probe.command, Quoting::Shell) {
                    Some(command) => self.world.probe(&command, probe.absent)?,
                    None => Probed::Unknown,
                },
            };
            if let Some(seen) = survey.in_flight.get_mut(step) {
                seen.probed = Some(probed);
            }
        }
        Ok(())
    }

    /// Judges what ended meanwhile, and spawns what was announced and never was.
    fn take_up(&mut self, made: &Resumption, connected: &Connected) -> Result<(), Stop> {
        for step in made.decided(Decision::AdoptSeal) {
            let attempt = self.run.state.step(step).map_or(0, |entry| entry.attempts);
            let seal =
                connected.seals.iter().find(|seal| seal.step == *step && seal.attempt == attempt);
            if let Some(seal) = seal {
                self.finish(seal)?;
            }
        }
        for step in made.decided(Decision::Start) {
            self.spawn_again(step)?;
        }
        self.journal.commit(self.world)?;
        self.act()
    }

    /// Renders the announced attempt again. One that is no longer the same is given up.
    fn spawn_again(&mut self, step: &Address) -> Result<(), Stop> {
        loop {
            match start_again(&self.run, &self.facts, step) {
                Again::Same(start) => {
                    let Start { mut launch, effect, .. } = *start;
                    let entry = self.run.state.step(step);
                    let intended = entry.is_some_and(|it| it.effect == EffectState::Intended);
                    // The crash may have kept the announcement and lost the intent beside it.
                    if let Some(effect) = effect.filter(|_| !intended) {
                        let (step, attempt) = (step.clone(), launch.attempt);
                        self.record(Event::EffectIntended { step, attempt, effect })?;
                    }
                    self.world.resolve(&mut launch)?;
                    brief::attach(self.world, &self.run, &mut launch)?;
                    self.announced.push(Announced { launch, reverts: Vec::new() });
                    return Ok(());
                }
                Again::Lacks(needs) => self.answer(step, needs)?,
                Again::Different => {
                    let attempt = self.run.state.step(step).map_or(0, |entry| entry.attempts);
                    return self.record(Event::AttemptLost {
                        step: step.clone(),
                        attempt,
                        cause: Cause::Interrupted,
                        rung: "never-spawned".to_owned(),
                        reverted: Vec::new(),
                        rescue: None,
                    });
                }
            }
        }
    }
}

/// A torn tail is worth a word, and no more.
pub fn torn_tail(offset: u64) -> Finding {
    let message = format!("the journal ended in half a record at byte {offset}; it was cut off");
    Finding::new(Code::TornTail, message).with_hint("what was cut is kept in rescue/")
}
