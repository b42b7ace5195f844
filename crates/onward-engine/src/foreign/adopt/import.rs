//! Progress that the other system made, taken into the journal.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide::{Command, Elsewhere, adoption, adoptions, regressed},
    event::Event,
    facts::{Facts, Need},
    plan::next_record,
    run::Run,
};

use super::Witness;
use crate::{
    check::needs::find_out,
    drive::Driver,
    resume::lost_before_spawn,
    world::{Stop, World},
};

impl Witness<'_> {
    fn ask<T>(&self, question: impl FnOnce(Elsewhere<'_>) -> T) -> T {
        let done = |step: &Address| self.dialect.done(self.files, step);
        // The first mark is where a person wrote down what they want.
        let by = self.dialect.marks().first().copied().unwrap_or_default();
        let witnesses = |step: &Address| {
            self.dialect.witnesses(step) || self.dialect.came_to_nothing(self.files, step)
        };
        let dialect = self.dialect.name();
        let passed_over = |step: &Address| self.dialect.passed_over(self.files, step);
        let (done, passed_over, witnesses) = (&done, &passed_over, &witnesses);
        question(Elsewhere { dialect, by, done, passed_over, witnesses })
    }

    pub(crate) fn adoptions(&self, run: &Run, facts: &Facts) -> Vec<Command> {
        self.ask(|elsewhere| adoptions(run, facts, elsewhere))
    }

    pub(crate) fn regressed(&self, run: &Run) -> BTreeMap<Address, String> {
        self.ask(|elsewhere| regressed(run, elsewhere))
    }

    /// Attempts that were `announced` and never begun are not begun if somebody else has done that
    /// meanwhile, or if there is no place for them any more. Then everything else.
    fn import_announced(
        &self,
        into: &mut impl Importing,
        announced: &[Address],
    ) -> Result<(), Stop> {
        for step in announced {
            if let Some(event) = self.ask(|elsewhere| adoption(step, elsewhere)) {
                into.record(event)?;
            } else if self.dialect.passed_over(self.files, step).is_some() {
                let attempt = into.run().state.step(step).map_or(0, |entry| entry.attempts);
                into.record(lost_before_spawn(step, attempt))?;
            }
        }
        self.import(into)
    }

    /// What is to be recorded, one after the other, until nothing more can be adopted.
    fn import(&self, into: &mut impl Importing) -> Result<(), Stop> {
        let mut facts = Facts::default();
        loop {
            let commands = self.adoptions(into.run(), &facts);
            if commands.is_empty() {
                return Ok(());
            }
            for command in commands {
                match command {
                    Command::Record(event) => into.record(event)?,
                    Command::Need { step, needs } => {
                        into.find_out(&mut facts, &step, needs)?;
                    }
                    // An adoption starts nothing, stops nothing and waits for nothing.
                    Command::Start(_) | Command::StopAll | Command::WakeAt(_) => {}
                }
            }
        }
    }
}

/// Whoever takes in what was found.
pub(super) trait Importing {
    fn run(&self) -> &Run;
    fn record(&mut self, event: Event) -> Result<(), Stop>;
    fn find_out(
        &mut self,
        facts: &mut Facts,
        step: &Address,
        needs: BTreeSet<Need>,
    ) -> Result<(), Stop>;
}

impl<W: World> Importing for Driver<'_, W> {
    fn run(&self) -> &Run {
        &self.run
    }

    fn record(&mut self, event: Event) -> Result<(), Stop> {
        Driver::record(self, event)
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

/// A run in memory, for whoever only looks.
pub(super) struct Onlooker<'a, W: World> {
    pub(super) world: &'a mut W,
    pub(super) run: Run,
}

impl<W: World> Onlooker<'_, W> {
    pub(super) fn import(&mut self, witness: Witness<'_>) -> Result<(), Stop> {
        witness.import(self)
    }

    pub(super) fn import_announced(
        &mut self,
        witness: Witness<'_>,
        announced: &[Address],
    ) -> Result<(), Stop> {
        witness.import_announced(self, announced)
    }
}

impl<W: World> Importing for Onlooker<'_, W> {
    fn run(&self) -> &Run {
        &self.run
    }

    fn record(&mut self, event: Event) -> Result<(), Stop> {
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

impl<W: World> Driver<'_, W> {
    /// Records, and does not commit, what the files prove and the journal does not know.
    pub(crate) fn import(&mut self, witness: Witness<'_>) -> Result<(), Stop> {
        witness.import(self)
    }

    /// The same, with the files as they are now; nothing for a run of our own.
    pub(crate) fn import_now(&mut self, announced: &[Address]) -> Result<(), Stop> {
        let Some(native) = self.how.native.clone() else { return Ok(()) };
        let files = native.files()?;
        Witness { dialect: native.dialect, files: &files }.import_announced(self, announced)
    }
}
