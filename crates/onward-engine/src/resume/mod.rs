//! From what is on disk to a driver that can go on: fold, look, plan, revert, continue.
//!
//! This is the only way to start: a new run is one whose journal holds nothing but `run.opened`.

mod relieve;

use std::{collections::BTreeSet, sync::Arc};

use onward_core::{
    address::Address,
    decide::{self, Again, Start, start_again},
    event::{EndStatus, Event, Revert},
    evidence::Cause,
    finding::{Code, Finding},
    graph::Defs,
    journal::Rest,
    plan::{AgeBand, Resumption, has_entry, resumption},
    policy::{self, Choices},
    recovery::{Decision, Probed},
    run::Run,
    state::{EffectState, Phase, RunStatus},
    survey::Survey,
    workflow::{Loaded, model::Workflow, template::Quoting},
    worktree::worktree_path,
};

use crate::{
    check::{
        doubts,
        survey::{self, Seen},
        worktrees,
    },
    drive::{
        Announced, Driver, Resume,
        brief::{self, Behind},
    },
    foreign::adopt::Reentry,
    load::journal::{JOURNAL, Journal, LoadError, load, mend_tail},
    locate::pinned_names,
    revert::{self, CutShort},
    world::{At, Connected, Stop, World, files},
};

pub use relieve::drive;

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
    #[error("there is no step `{0}` in this run")]
    NoSuchStep(String),
    #[error("there is no finding `{0}`")]
    NoSuchFinding(String),
    #[error(transparent)]
    Stop(#[from] Stop),
}

/// Takes hold of the run and brings it to where it can go on.
pub fn open<'w, W: World>(
    world: &'w mut W,
    workflow: &Workflow,
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
    // A run that begins another system's files itself says so in its second record.
    let begins = loaded.state.adopted.as_ref().is_none_or(|it| it.files.is_empty());
    let fresh = begins && loaded.state.next_seq == 1 + u64::from(loaded.state.adopted.is_some());
    let is_new = |new: &&Loaded| Some(new.hash) != loaded.state.workflow_hash;
    let edited = how.edited.as_ref().filter(is_new);
    let current = edited.map_or(workflow, |edited| &edited.workflow);
    let run = Run::new(Arc::new(Defs::new(current.clone())), loaded.state);
    let journal = Journal::after(&run.state, owes_newline);
    let connected = world.connect(journal.epoch())?;
    brief::write_plain(world)?;
    let mut driver = Driver::new(world, run, journal, how.clone());
    driver.end_where_asked();
    if !fresh {
        driver.recover(&connected, edited.map(|new| (workflow, new)))?;
    }
    Ok(driver)
}

impl<W: World> Driver<'_, W> {
    /// The stages check, decide, revert; `drive` continues.
    pub(crate) fn recover(
        &mut self,
        connected: &Connected,
        edited: Option<(&Workflow, &Loaded)>,
    ) -> Result<(), ResumeError> {
        let mut how = self.how.clone();
        // Before anybody looks into them; what was found is told all the same.
        let worktrees = worktrees::look(self.world, &self.run)?;
        worktrees::mend(self.world, &worktrees)?;
        let cut_short = self.finish_undo(connected, &how.choices)?;
        let mut reentry = self.look_at_native()?;
        if reentry.is_some() {
            // Where a person enters, the other system's files say.
            how.choices.from = None;
        }
        let depth = policy::preset(how.mode).0;
        let seen = survey::survey(self.world, &self.run, connected, depth)?;
        let Seen { mut survey, undoing } = seen;
        // Announced again, so that whoever tries next is told.
        survey.cut_short = cut_short;
        for finding in worktrees::findings(&worktrees) {
            if !survey.findings.contains(&finding) {
                survey.findings.push(finding);
            }
        }
        if let Some(reentry) = &mut reentry {
            let number = self.run.state.rescues + 1 + u32::try_from(undoing.len()).unwrap_or(0);
            reentry.look_at_undo(self.world, &self.run, &survey, number)?;
            reentry.tell(&self.run, &mut survey);
        }
        if let Some((pinned, new)) = edited {
            survey.edited = Some(doubts::edits(self.world, &self.run, pinned, new)?);
        }
        let unsettled = resumption(&self.run, &survey, &how.choices);
        if !unsettled.to_probe.is_empty() {
            self.ask_probes(&unsettled, &mut survey)?;
        }
        let band = reentry.as_ref().map_or(age_band(&self.run, &survey), Reentry::age_band);
        let made = self.agree(&survey, &how.choices, band)?;
        let rescues: BTreeSet<&String> = made.reverts.iter().map(|it| &it.rescue).collect();
        for undoing in rescues.into_iter().filter_map(|rescue| undoing.get(rescue)) {
            undoing.keep(self.world)?;
        }
        if let Some(reentry) = &reentry {
            reentry.keep(self.world)?;
        }
        if let Some((_, new)) = edited {
            pin(self.world, new)?;
        }
        let boot_id = connected.boot_id.clone();
        let git = survey.git.as_ref().map(|git| git.now.clone());
        self.continuing.clone_from(&made.continuing);
        let mut resumed = made.resumed(&self.run.state, how.mode, boot_id, git);
        if let Some(reentry) = &reentry {
            reentry.announce(&mut resumed);
        }
        let reverts = resumed.reverts.clone();
        self.record(Event::RunResumed(Box::new(resumed)))?;
        for event in &made.events {
            self.record(event.clone())?;
        }
        for text in policy::passed_over(&made.findings, band, &how.choices) {
            self.record(Event::Note { text, step: None })?;
        }
        self.journal.commit(self.world)?;
        let held = reentry.as_ref().map(|it| it.native.hold()).transpose()?;
        let foreign = revert::undo(self.world, &reverts)?;
        drop(held);
        if !foreign.is_empty() {
            let text =
                format!("changed in this very moment, so not undone: {}", foreign.join(", "));
            self.record(Event::Note { text, step: None })?;
        }
        if !reverts.is_empty() {
            // What this resume writes from here on says that its undo is over.
            let rescues: BTreeSet<&str> = reverts.iter().map(|it| it.rescue.as_str()).collect();
            let rescues = rescues.into_iter().collect::<Vec<_>>().join(", ");
            let text = format!("undone: {} paths, kept in {rescues}", reverts.len());
            self.record(Event::Note { text, step: None })?;
        }
        if let Some(reentry) = &reentry {
            reentry.settle_trees(self.world);
            self.say_resumed(reentry)?;
        }
        self.take_up(&made, connected)?;
        Ok(())
    }

    /// What will be done, if nothing stands in its way that nobody has accepted.
    fn agree(
        &self,
        survey: &Survey,
        choices: &Choices,
        band: AgeBand,
    ) -> Result<Resumption, ResumeError> {
        let Choices { from, keep, redo, leave, .. } = choices;
        let from = from.iter().map(|it| it.step.as_str());
        let named = from.chain([keep, redo, leave].into_iter().flatten().map(Address::as_str));
        if let Some(unknown) = named.into_iter().find(|step| !has_entry(&self.run, step)) {
            return Err(ResumeError::NoSuchStep(unknown.to_owned()));
        }
        let made = resumption(&self.run, survey, choices);
        let is_known = |code: &str| {
            let of_ours = Code::ALL.iter().any(|it| it.as_str() == code);
            of_ours || made.findings.iter().any(|it| it.code == code)
        };
        if let Some(unknown) = choices.accepted.iter().find(|it| !is_known(&it.code)) {
            return Err(ResumeError::NoSuchFinding(unknown.code.clone()));
        }
        let standing = policy::standing(&made.findings, band, choices);
        if standing.is_empty() { Ok(made) } else { Err(ResumeError::Conflicts(standing)) }
    }

    /// An undo that a crash cut short is brought to its end before anybody looks at the tree; all
    /// of it, or a person is asked. Gives what had been announced.
    fn finish_undo(
        &mut self,
        connected: &Connected,
        choices: &Choices,
    ) -> Result<Vec<Revert>, ResumeError> {
        let pending = self.run.state.pending_reverts().to_vec();
        let asked = CutShort::look(self.world, &pending)?.finding();
        let standing = policy::standing(asked.as_slice(), AgeBand::Fresh, choices);
        if !standing.is_empty() {
            return Err(ResumeError::Conflicts(standing));
        }
        revert::undo(self.world, &pending)?;
        for (step, entry) in self.run.state.steps.clone() {
            let never_spawned =
                entry.phase == Phase::Running && survey::never_spawned(&self.run, connected, &step);
            if let Some(started) = entry.started.filter(|_| never_spawned) {
                revert::undo(self.world, &started.reverts)?;
            }
        }
        Ok(pending)
    }

    fn ask_probes(&mut self, made: &Resumption, survey: &mut Survey) -> Result<(), Stop> {
        for step in &made.to_probe {
            let Some(id) = self.node(step) else { continue };
            let declared = self.run.defs.step(self.run.graph.node(id).def).probe.clone();
            let probed = match declared {
                None => Probed::Unknown,
                Some(probe) => match decide::text(&self.run, id, &probe.command, Quoting::Shell) {
                    Some(command) => {
                        let tree = worktree_path(&self.run, id);
                        self.world.probe(&tree, &command, probe.absent)?
                    }
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
        let announced: Vec<Address> = made.decided(Decision::Start).cloned().collect();
        self.import_now(&announced)?;
        for step in &announced {
            if self.run.state.phase(step) != Phase::Running {
                continue;
            }
            match self.how.options.ending {
                Some(_) => self.give_up(step)?,
                None => self.spawn_again(step)?,
            }
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
                    if !self.enter_worktree(&launch)? || self.has_moved_since(step)? {
                        return self.give_up(step);
                    }
                    self.world.resolve(&mut launch)?;
                    let started = self.run.state.step(step).and_then(|it| it.started.clone());
                    let (has_base, writes, reverts) = started
                        .map(|it| (it.base.is_some(), it.writes, it.reverts))
                        .unwrap_or_default();
                    self.equip(&mut launch, has_base, &writes);
                    let behind = Behind { reverts: &reverts, continues: false };
                    brief::attach(self.world, &self.run, &mut launch, &behind)?;
                    self.announced.push(Announced { launch, reverts: Vec::new() });
                    return Ok(());
                }
                Again::Lacks(needs) => self.answer(step, needs)?,
                Again::Different => return self.give_up(step),
            }
        }
    }

    /// An attempt whose tree changed before it was spawned would be blamed for that.
    fn has_moved_since(&mut self, step: &Address) -> Result<bool, Stop> {
        let started = self.run.state.step(step).and_then(|entry| entry.started.clone());
        let Some(started) = started else { return Ok(false) };
        let Some(base) = &started.base else { return Ok(false) };
        let changes = self.world.changes(&revert::snapshot_of(&started), base, None)?;
        Ok(changes.is_none_or(|changes| !changes.all.is_empty()))
    }

    pub(crate) fn give_up(&mut self, step: &Address) -> Result<(), Stop> {
        let attempt = self.run.state.step(step).map_or(0, |entry| entry.attempts);
        self.record(lost_before_spawn(step, attempt))
    }
}

/// The end of an attempt that was announced and never came to be.
pub(crate) fn lost_before_spawn(step: &Address, attempt: u32) -> Event {
    Event::AttemptLost {
        step: step.clone(),
        attempt,
        cause: Cause::Interrupted,
        rung: "never-spawned".to_owned(),
        reverted: Vec::new(),
        rescue: None,
    }
}

fn age_band(run: &Run, survey: &Survey) -> AgeBand {
    AgeBand::of_seconds(survey.now.ms_since(run.state.last_at) / 1000)
}

/// Keeps the new workflow with the run, before the event that makes it count.
fn pin<W: World>(world: &mut W, new: &Loaded) -> Result<(), Stop> {
    for (name, text) in pinned_names(new) {
        files::write_durably(world, At::Run(&name), text.as_bytes())?;
    }
    Ok(())
}

/// A torn tail is worth a word, and no more.
pub fn torn_tail(offset: u64) -> Finding {
    let message = format!("the journal ended in half a record at byte {offset}; it was cut off");
    Finding::new(Code::TornTail, message).with_hint("what was cut is kept in rescue/")
}
