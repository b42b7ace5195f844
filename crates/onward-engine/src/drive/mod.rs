//! The loop: take in what happened, decide, write it down, act.
//!
//! Invariant: an action (spawn, undo, stop) happens only after the commit that announces it, and a
//! finish never waits behind a start: everything that has happened is taken in before anything new
//! is decided.

mod ahead;
pub mod brief;
pub mod gate;
mod hands;
mod hear;
mod limits;
pub mod offline;
pub(crate) mod outcome;
mod prepare;
mod stop;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use onward_core::{
    address::Address,
    decide::{Command, Start, decide},
    event::{AttemptStarted, AttemptVerified, EndStatus, Event, Mode, Revert, SettledBy},
    evidence::{Cause, Ending, Outcome},
    facts::{Facts, Need},
    finding::Finding,
    graph::NodeId,
    history::History,
    judge::{Collected, judge},
    kept::Kept,
    key::{Difference, Key},
    launch::{Launch, Seal},
    plan::{EDITED, Status},
    policy::Choices,
    run::Run,
    state::{EffectState, Phase, StepState},
    time::Timestamp,
    told::StepTold,
    workflow::{Loaded, model::Durability},
};
use onward_dialects::Files;

pub use self::ahead::Ahead;
use self::{
    ahead::Pace,
    brief::Behind,
    prepare::{Inherited, UndoOfPrevious},
    stop::{StopWhy, Stopping},
};
use crate::{
    agents::limits::Limits,
    check::{
        collect,
        hear::{self as words, Ear},
        needs::find_out,
    },
    foreign::{Foreign, Importing, exported, import, say_cancelled},
    load::journal::Journal,
    revert::{self, theirs::Theirs},
    world::{Input, Stop, World, seen::Seen},
};

/// How a run is taken up.
#[derive(Clone, Debug)]
pub struct Resume {
    pub mode: Mode,
    pub choices: Choices,
    pub options: Options,
    /// The workflow file as it is now, where it is not the one the run keeps.
    pub edited: Option<Loaded>,
    /// The run of another system that this one goes on with.
    pub foreign: Option<Foreign>,
    /// Files in it that no attempt of ours left, also while the run is only ended.
    pub theirs: Theirs,
    /// Its files, where an examination before this one read them.
    pub seen: Seen,
    /// An agent that is not set up; it stands in the way where going on takes one.
    pub lacking: Option<Finding>,
}

/// Why the loop came to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The run is over, needs a person, or was asked to stop.
    With(Status),
    /// The run is to be cancelled and nothing runs any more: what attempts left half done is to
    /// be put away before the end is written.
    HalfDone,
    /// The supervisor is gone. What it said for itself, if it could.
    HandsLost { why: Option<String> },
}

/// How a driver behaves; everything else is in the workflow.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long running steps may go on after the first interrupt.
    pub grace_ms: u64,
    /// A person is there to answer gates.
    pub attended: bool,
    /// Nothing is started any more: what was interrupted is settled as it always is, and then the
    /// run ends as cancelled, for this reason.
    pub ending: Option<String>,
    pub limits: Limits,
    pub ahead: Ahead,
    /// How long steps took in other runs of the workflow.
    pub history: History,
}

impl Default for Options {
    fn default() -> Self {
        let (limits, history) = (Limits::default(), History::default());
        let ahead = Ahead::default();
        Self { grace_ms: 10_000, attended: false, ending: None, limits, ahead, history }
    }
}

/// One driver of one run.
pub struct Driver<'w, W: World> {
    pub(crate) world: &'w mut W,
    pub run: Run,
    pub(crate) journal: Journal,
    pub(crate) facts: Facts,
    /// Announced, not yet spawned.
    pub(crate) announced: Vec<Announced>,
    /// Steps whose next attempt goes on in the session of the last one.
    pub(crate) continuing: BTreeSet<Address>,
    /// Running attempts whose agents are understood.
    pub(crate) ears: BTreeMap<Address, Ear>,
    pub(crate) how: Resume,
    /// What came in before the loop began.
    pub(crate) early: Vec<Input>,
    /// Effects in flight that are made again when they are through, and why.
    pub(crate) retaken: BTreeMap<Address, Vec<Difference>>,
    /// Work that ended before this was kept from earlier.
    pub(crate) opened_at: Timestamp,
    /// Kept steps whose check agreed once more.
    pub(crate) rechecked: BTreeSet<Address>,
    /// The person was told what an attempt in their own tree means for it.
    pub(crate) told_of_tree: bool,
    stop: Stopping,
    pace: Pace,
    /// The stop ladder is to begin with the next actions.
    ending_asked: bool,
    /// Limits that this driver met.
    windows: u32,
    /// With this record the declarations of steps are forgotten that were looked into.
    forget_at: u64,
}

/// So many records later it is done again: it walks over all of them.
const FORGET_AFTER: u64 = 4096;

/// A start whose event is recorded and whose actions wait for the commit.
pub(crate) struct Announced {
    pub(crate) launch: Launch,
    pub(crate) reverts: Vec<Revert>,
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

impl<'w, W: World> Driver<'w, W> {
    pub fn new(world: &'w mut W, run: Run, journal: Journal, how: Resume) -> Self {
        let facts = Facts { attended: how.options.attended, ..Facts::default() };
        let opened_at = world.now();
        let pace = Pace::of(&run);
        let mut driver = Self {
            early: Vec::new(),
            retaken: BTreeMap::new(),
            opened_at,
            rechecked: BTreeSet::new(),
            world,
            run,
            journal,
            facts,
            announced: Vec::new(),
            continuing: BTreeSet::new(),
            ears: BTreeMap::new(),
            how,
            told_of_tree: false,
            stop: Stopping::No,
            pace,
            ending_asked: false,
            windows: 0,
            forget_at: FORGET_AFTER,
        };
        driver.heed_limits();
        driver
    }

    /// Drives until nothing is left to do, a person is needed, a stop was asked for, or the
    /// supervisor is gone.
    pub fn drive(&mut self) -> Result<Rest, Stop> {
        loop {
            if self.leaves_half_done() {
                return Ok(Rest::HalfDone);
            }
            let wake = self.settle()?;
            if let Some(status) = self.over() {
                return Ok(Rest::With(status));
            }
            let mut lost = None;
            let wake = self.wake_to_listen(wake);
            let wake = self.wake_to_withdraw(wake);
            let inputs = if self.early.is_empty() {
                self.world.wait(wake)?
            } else {
                std::mem::take(&mut self.early)
            };
            self.listen()?;
            for input in inputs {
                match input {
                    Input::Sealed(seal) => {
                        self.note_end();
                        self.finish(&seal)?;
                    }
                    Input::Withdrawn { step, attempt } => self.withdrawn(&step, attempt)?,
                    Input::Asked(request) => self.asked(request)?,
                    Input::Interrupted => self.interrupted()?,
                    Input::HandsLost { why } => lost = Some(Rest::HandsLost { why }),
                }
            }
            if let Some(lost) = lost {
                return Ok(lost);
            }
        }
    }

    /// Decides until there is nothing more to decide, commits, acts. Returns when to wake up.
    fn settle(&mut self) -> Result<Option<Timestamp>, Stop> {
        let mut wake = None;
        loop {
            let now = self.world.now();
            self.facts.ahead = self.ahead(now);
            let mut moved = false;
            for command in decide(&self.run, &self.facts, now) {
                match command {
                    Command::Record(event) => self.record(event)?,
                    Command::Start(start) => self.announce(*start)?,
                    Command::Need { step, needs } => self.answer(&step, needs)?,
                    Command::StopAll => {
                        self.begin_ending(StopWhy::Cancelled);
                        continue;
                    }
                    Command::WakeAt(moment) => {
                        wake = Some(moment);
                        continue;
                    }
                }
                moved = true;
            }
            if !moved {
                break;
            }
        }
        // Facts are of this moment; the next decision looks again.
        self.facts.by_step.clear();
        self.conclude_stop()?;
        self.journal.commit(self.world)?;
        self.act()?;
        self.forget_steps();
        Ok(match self.stop {
            Stopping::Draining { until, .. } => until,
            Stopping::No | Stopping::Ending { .. } => wake,
        })
    }

    /// Declarations of a large workflow are made when they are looked into; those of steps that are
    /// done are not held until the end of the run, and of such steps only what is to be told.
    fn forget_steps(&mut self) {
        if self.run.state.next_seq < self.forget_at {
            return;
        }
        self.forget_at = self.run.state.next_seq + FORGET_AFTER;
        if let Some(defs) = self.run.defs.unmade() {
            self.run.defs = Arc::new(defs);
        }
        self.run.state.settle();
    }

    pub(crate) fn record(&mut self, mut event: Event) -> Result<(), Stop> {
        if matches!(event, Event::RunEnded { status: EndStatus::Cancelled, .. })
            && let Some(foreign) = self.how.foreign.clone()
        {
            // The answer that ends the run is durable, and its end is not: a driver that is killed
            // here is followed by one that says it again.
            self.journal.commit(self.world)?;
            say_cancelled(self.world, &foreign)?;
        }
        let at = self.world.now();
        self.world.clean(&mut event);
        self.journal.record(&mut self.run, at, event)
    }

    /// Prepares an attempt and records its start; nothing is spawned yet.
    fn announce(&mut self, start: Start) -> Result<(), Stop> {
        let Start { mut launch, key, writes, revert_previous, goes_on, effect, agent } = start;
        let (step, attempt) = (launch.step.clone(), launch.attempt);
        if !self.may_start(&launch)? {
            return Ok(());
        }
        if effect.is_some() && !self.rests_on_what_holds(&step)? {
            return Ok(());
        }
        if !self.enter_worktree(&launch)? {
            return Ok(());
        }
        let inherited = self.inherited(&mut launch, goes_on)?;
        let mut undo = if revert_previous && inherited.is_none() {
            match self.undo_of_previous(&step)? {
                Some(undo) => undo,
                None => return Ok(()),
            }
        } else {
            UndoOfPrevious::default()
        };
        let continues = inherited.is_some();
        let behind = Behind { reverts: &undo.reverts.clone(), continues };
        if !continues {
            self.take_links_away(&step, attempt, &writes, &mut undo)?;
        }
        self.keep_by_hand(&step, attempt, &writes, &mut undo)?;
        let (base, saved, kinds) = if let Some(Inherited { base, saved, kinds }) = inherited {
            (base, saved, kinds)
        } else {
            let base = match undo.undone.clone() {
                Some(undone) => Some(undone),
                // In a worktree or a directory of its own, whatever it changes is its own.
                None if self.edits(&step) || !launch.cwd.is_empty() => {
                    self.snapshot_before(&launch, &writes)?
                }
                None => None,
            };
            let mut covered = writes.clone();
            covered.extend(revert::own_dir(&launch.cwd, base.as_deref()));
            let (saved, kinds) = self.save(&covered, &undo)?;
            (base, saved, kinds)
        };
        let UndoOfPrevious { reverts, .. } = undo;
        let session = self.world.session_of(&launch);
        if let Some(session) = &session {
            // One that is to be continued was found free a moment ago; a new one is ours alone.
            self.world.hold_session(session);
        }
        brief::attach(self.world, &self.run, &mut launch, &behind)?;
        let is_in_tree = base.is_some() && launch.cwd.is_empty();
        self.world.resolve(&mut launch)?;
        self.equip(&mut launch, base.is_some(), &writes);
        let nonce = self.mark(&mut launch);
        let started = AttemptStarted {
            step: step.clone(),
            attempt,
            key: Key::from(&key),
            argv: Kept::from(&launch.program.argv()),
            cwd: launch.cwd.clone(),
            agent,
            session,
            continues,
            base,
            writes,
            saved,
            kinds,
            reverts: reverts.clone(),
            nonce: Some(nonce),
        };
        self.record(Event::AttemptStarted(Box::new(started)))?;
        if is_in_tree {
            self.tell_of_tree(&step)?;
        }
        if let Some(effect) = effect {
            self.record(Event::EffectIntended { step, attempt, effect })?;
        }
        self.announced.push(Announced { launch, reverts });
        Ok(())
    }

    pub(crate) fn answer(&mut self, step: &Address, needs: BTreeSet<Need>) -> Result<(), Stop> {
        find_out(self.world, self.facts.by_step.entry(step.clone()).or_default(), needs)
    }

    /// Everything announced is durable now: undo, then spawn.
    pub(crate) fn act(&mut self) -> Result<(), Stop> {
        let announced = std::mem::take(&mut self.announced);
        for start in &announced {
            // What a person changed in this moment stays, and the next attempt finds it.
            revert::undo(self.world, &start.reverts)?;
        }
        let launches: Vec<Launch> = announced.into_iter().map(|start| start.launch).collect();
        if !launches.is_empty() {
            let now = self.world.now();
            self.note_start(now);
            let slots = self.slots_to_wait_for();
            self.world.spawn(&launches, slots)?;
        }
        self.withdraw()?;
        for launch in &launches {
            self.listen_to(&launch.step);
        }
        if std::mem::take(&mut self.ending_asked) && self.run.state.running > 0 {
            self.world.stop_all()?;
        }
        Ok(())
    }

    /// Judges an attempt that ended.
    pub(crate) fn finish(&mut self, seal: &Seal) -> Result<(), Stop> {
        self.finish_as_edited(seal, None)
    }

    /// The same where a person changed outputs of it afterwards: those are not its work, and count
    /// all the same.
    pub(crate) fn finish_as_edited(
        &mut self,
        seal: &Seal,
        edited: Option<&BTreeSet<String>>,
    ) -> Result<(), Stop> {
        let entry = self.run.state.step(&seal.step);
        let is_its = |it: &&StepState| it.phase == Phase::Running && seal.is_of(&seal.step, it);
        let current = entry.filter(is_its);
        let Some(entry) = current else {
            let text = format!("attempt {} ended after it was given up", seal.attempt);
            return self.record(Event::Note { text, step: Some(seal.step.clone()) });
        };
        let Some(id) = self.run.graph.find(&seal.step) else {
            // Its turn or item is no more, because something before it runs again.
            return self.record(Event::AttemptLost {
                step: seal.step.clone(),
                attempt: seal.attempt,
                cause: Cause::Interrupted,
                rung: onward_core::recovery::Rung::Vanished,
                reverted: Vec::new(),
                rescue: None,
            });
        };
        let intended = entry.effect == EffectState::Intended;
        let started = entry.started.clone();
        let heard = self.heard_out(seal)?;
        let writes = started.as_ref().map(|it| it.writes.clone()).unwrap_or_default();
        let def = self.run.graph.node(id).def;
        let step = self.run.defs.step(def);
        let reads_stdout = self.run.defs.stdout_is_read(def);
        let (address, attempt) = (&seal.step, seal.attempt);
        let mut seen = if seal.ending.is_success() {
            collect::collect(self.world, step, address, attempt, &writes, reads_stdout)?
        } else {
            Collected::default()
        };
        if heard.answers_in_words() {
            seen.stdout = seen.stdout.map(|_| words::answer(&heard.said).unwrap_or_default());
        }
        if step.durability == Durability::Full {
            collect::settle(self.world, address, attempt, &seen)?;
        }
        let mut finished = judge(step, seal, seen, &heard.said);
        if let Some(started) = &started {
            self.add_footprint(&mut finished, seal, started)?;
            self.commit_worktree(&mut finished, started)?;
        }
        // An exit code, good or bad, is the receipt: the attempt itself came back.
        if intended && matches!(seal.ending, Ending::Exited { .. }) {
            let (step, attempt) = (seal.step.clone(), seal.attempt);
            let happened = seal.ending.is_success();
            let by = SettledBy::Receipt;
            self.record(Event::EffectSettled { step, attempt, happened, by })?;
        }
        finished.head = self.moved_head(&finished)?;
        // The time without a driver is no time of work.
        finished.ended = Some(seal.at).filter(|at| *at < self.opened_at);
        finished.tolerated = self.run.tolerates(&finished);
        self.tell_of(&heard, &finished)?;
        let is_done = finished.outcome == Outcome::Done;
        let as_it_is = finished.evidence.without(edited);
        // In the same batch: no crash tells the one without the other.
        self.record(Event::AttemptFinished(Box::new(finished)))?;
        if let Some(evidence) = as_it_is {
            let (step, why) = (seal.step.clone(), EDITED.to_owned());
            let verified = AttemptVerified { step, evidence: Some(evidence), key: None, why };
            self.record(Event::AttemptVerified(Box::new(verified)))?;
        }
        if let Some(causes) = self.retaken.remove(&seal.step).filter(|_| is_done) {
            self.record(Event::StepInvalidated { step: seal.step.clone(), causes })?;
        }
        self.note_export_of(&seal.step)
    }

    /// A step that writes the other system's files has ended: what they are now is known.
    fn note_export_of(&mut self, step: &Address) -> Result<(), Stop> {
        let Some(foreign) = self.how.foreign.clone() else { return Ok(()) };
        let reading = foreign.read_files(self.world)?;
        if let Some(told) = reading.told.as_ref().filter(|it| it.restores(step)) {
            // What was done behind it is known to the files alone.
            import(foreign.source(&**told), self)?;
        }
        match reading.told.as_ref().map(|told| told.step(step)) {
            None | Some(StepTold::Silent) => Ok(()),
            Some(
                StepTold::Done(_)
                | StepTold::PassedOver(_)
                | StepTold::Unproved(_)
                | StepTold::Undone,
            ) => self.note_exported(&reading.files),
        }
    }

    /// Notes what the other system's files are, if they are not what was noted last.
    pub(crate) fn note_exported(&mut self, files: &Files) -> Result<(), Stop> {
        let Some(foreign) = &self.how.foreign else { return Ok(()) };
        let files = exported(foreign, files);
        if self.run.state.exported == files {
            return Ok(());
        }
        self.record(Event::NativeExported { files })
    }

    /// The run as it was left.
    pub(crate) fn into_run(self) -> Run {
        self.run
    }

    pub(crate) fn node(&self, step: &Address) -> Option<NodeId> {
        self.run.graph.find(step)
    }
}
