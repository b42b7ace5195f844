//! Progress that the other system made, taken into a run.
//!
//! Invariant: the same loop imports into the journal and into a run in memory, so that a plan
//! adopts what a resume adopts.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    decide::{Command, Source, adoption, adoptions},
    event::{Event, lost_before_spawn},
    facts::{Facts, Need},
    plan::next_record,
    run::Run,
    told::StepTold,
};

use crate::{
    check::needs::find_out,
    world::{Stop, World},
};

/// A run that takes in what was found: a driver's, or one in memory.
pub trait Importing {
    fn run(&self) -> &Run;
    fn record(&mut self, event: Event) -> Result<(), Stop>;
    fn find_out(
        &mut self,
        facts: &mut Facts,
        step: &Address,
        needs: BTreeSet<Need>,
    ) -> Result<(), Stop>;
}

/// Records what the files prove, one after the other, until nothing more can be adopted.
pub fn import(source: Source<'_>, into: &mut impl Importing) -> Result<(), Stop> {
    let mut facts = Facts::default();
    loop {
        let commands = adoptions(into.run(), &facts, source);
        if commands.is_empty() {
            return Ok(());
        }
        for command in commands {
            match command {
                Command::Record(event) => into.record(event)?,
                Command::Need { step, needs } => into.find_out(&mut facts, &step, needs)?,
                // An adoption starts nothing, stops nothing and waits for nothing.
                Command::Start(_) | Command::StopAll | Command::WakeAt(_) => {}
            }
        }
    }
}

/// The same after attempts that were `announced` and never begun are given up, where the other
/// system has done the step meanwhile or leaves no place for it.
pub fn import_announced(
    source: Source<'_>,
    into: &mut impl Importing,
    announced: &[Address],
) -> Result<(), Stop> {
    for step in announced {
        match source.told.step(step) {
            StepTold::Done(_) => {
                if let Some(event) = adoption(into.run(), step, source) {
                    into.record(event)?;
                }
            }
            StepTold::PassedOver(_) => {
                let attempt = into.run().state.step(step).map_or(0, |entry| entry.attempts);
                into.record(lost_before_spawn(step, attempt))?;
            }
            StepTold::Unproved(_) | StepTold::Undone | StepTold::Silent => {}
        }
    }
    import(source, into)
}

/// A run in memory, for an examination.
pub struct Onlooker<'a, W: World> {
    pub world: &'a mut W,
    pub run: Run,
    /// What was recorded, in order.
    pub events: Vec<Event>,
}

impl<'a, W: World> Onlooker<'a, W> {
    pub fn new(world: &'a mut W, run: Run) -> Self {
        Self { world, run, events: Vec::new() }
    }
}

impl<W: World> Importing for Onlooker<'_, W> {
    fn run(&self) -> &Run {
        &self.run
    }

    fn record(&mut self, event: Event) -> Result<(), Stop> {
        self.events.push(event.clone());
        let at = self.run.state.last_at;
        let record = next_record(&self.run.state, at, event);
        Ok(self.run.after(record)?)
    }

    fn find_out(
        &mut self,
        facts: &mut Facts,
        step: &Address,
        needs: BTreeSet<Need>,
    ) -> Result<(), Stop> {
        find_out(self.world, facts.at(step), needs)
    }
}
