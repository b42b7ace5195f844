//! From what is on disk to a driver that can go on: fold, look, plan, revert, continue.
//!
//! This is the only way to start: a new run is one whose journal holds nothing but `run.opened`.

pub(crate) mod examine;
mod redone;
mod relieve;
mod round;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use onward_core::{
    address::Address,
    decide::{self, Again, Start, start_again},
    event::{EndStatus, Event, GitHead, Revert, lost_before_spawn},
    finding::{Code, Finding},
    graph::Defs,
    journal::Rest,
    mark::Mark,
    plan::{AgeBand, Plan, RecoveryPoint, Resumption, has_entry},
    policy::{self, Choices},
    recovery::{Decision, Probed},
    run::Run,
    state::{EffectState, Phase, RunStatus},
    time::Timestamp,
    view::View,
    workflow::{Loaded, model::Workflow},
    worktree::worktree_path,
};

use self::{
    examine::{Before, Examined},
    round::Round,
};
use crate::{
    check::witness,
    drive::{
        Announced, Driver, Resume,
        brief::{self, Behind},
    },
    foreign::{Held, Reading, Reentry, import_announced},
    load::{
        checkpoint::{Folded, load_kept},
        journal::{JOURNAL, Journal, LoadError, load, mend_tail},
    },
    locate::pinned_names,
    revert::{self, CutShort, rescue::Undoing},
    world::{At, Connected, Input, Stop, World, files},
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
    #[error("the run was cancelled, and is over")]
    Cancelled,
    /// A person must look first.
    #[error("{} your decision first", onward_core::policy::problems_need(.0))]
    Conflicts(Vec<Finding>),
    /// A provider's limit holds until then, and nothing else can go on.
    #[error("a limit holds until {until}")]
    Parked { until: Timestamp },
    #[error("there is no step `{0}` in this run")]
    NoSuchStep(String),
    #[error("there is no finding `{0}`")]
    NoSuchFinding(String),
    #[error(transparent)]
    Stop(#[from] Stop),
}

/// Takes hold of the run and brings it to where it can go on.
///
/// The run is examined first; a resume that is refused has written, ended and mended nothing.
pub fn open<'w, W: World>(
    world: &'w mut W,
    workflow: &Workflow,
    how: &Resume,
) -> Result<Driver<'w, W>, ResumeError> {
    open_kept(world, &Arc::new(Defs::new(workflow.clone())), how, None)
}

/// The same for the workflow as the run keeps it, where its journal may have been folded before.
pub fn open_kept<'w, W: World>(
    world: &'w mut W,
    kept: &Arc<Defs>,
    how: &Resume,
    folded: Option<Arc<Folded>>,
) -> Result<Driver<'w, W>, ResumeError> {
    let loaded = load_kept::<W, ResumeError>(world, folded)?;
    let (loaded, end) = loaded.ok_or(ResumeError::NoJournal)?;
    if let Rest::Damaged(_) = loaded.tail.rest {
        return Err(ResumeError::Damaged);
    }
    if loaded.state.status == (RunStatus::Ended { status: EndStatus::Completed }) {
        return Err(ResumeError::Complete);
    }
    let is_cancelled = loaded.state.status == (RunStatus::Ended { status: EndStatus::Cancelled });
    if is_cancelled && !how.choices.revive && how.options.ending.is_none() {
        return Err(ResumeError::Cancelled);
    }
    let is_new = |new: &&Loaded| Some(new.hash) != loaded.state.workflow_hash;
    let edited = how.edited.as_ref().filter(is_new);
    // A run that begins another system's files itself says so in its second record.
    let begins = loaded.state.adopted.as_ref().is_none_or(|it| it.files.is_empty());
    let is_begun = loaded.state.next_seq > 1 + u64::from(loaded.state.adopted.is_some());
    // Entering elsewhere passes over what is before it.
    let fresh = begins && !is_begun && how.choices.from.is_none();
    let pinned = edited.map(|_| kept.workflow());
    let defs = edited.map_or_else(|| kept.clone(), |it| Arc::new(Defs::new(it.workflow.clone())));
    let edited = pinned.as_ref().zip(edited);
    let run = Run::new(defs, loaded.state);
    let journal = Journal::after(&run.state, loaded.tail.missing_newline);
    let mut how = how.clone();
    if how.options.ending.is_some() {
        how.foreign = None;
    }
    let seen = std::mem::take(&mut how.seen);
    let mut round = Round { edited, findings: Vec::new(), before: Before::default(), seen };
    // Announced again as a whole, so that the next attempt is told of all of it.
    round.before.undone = run.state.pending_reverts().to_vec();
    if let Rest::Torn(torn) = &loaded.tail.rest {
        round.findings.push(torn_tail(torn.offset));
    }
    let looked = world.look_at_hands(&run.state)?;
    if witness::lost_tail(&run, &looked).is_some() {
        return Err(ResumeError::Damaged);
    }
    if fresh {
        if let Some(lacking) = how.lacking {
            return Err(ResumeError::Conflicts(vec![lacking]));
        }
        mend_tail(world, &end, &loaded.tail)?;
        drop(end);
        take_hold(world, &journal, &run)?;
        return Ok(Driver::new(world, run, journal, how).asked_to_end());
    }
    let examined = round.examine(world, run, &looked, &how)?;
    if let Some(until) = examined.parked_until.filter(|_| how.options.ending.is_none()) {
        return Err(ResumeError::Parked { until });
    }
    agree(&examined)?;
    let (examined, held) = round.hold_to_settle(world, examined, &looked, &how)?;
    mend_tail(world, &end, &loaded.tail)?;
    drop(end);
    let settled = round.settle(world, &examined, held)?;
    let mut connected = take_hold(world, &journal, examined.as_journaled())?;
    let early = end_superseded(world, &examined, &mut connected)?;
    // What was seen still holds if nothing has happened since. Orphans worked until they were
    // ended.
    let examined = if settled || connected.orphans > 0 || !looked.is_as(&connected) {
        round.examine(world, examined.into_run(), &connected, &how)?
    } else {
        examined
    };
    let (run, agreed) = Agreed::settle(world, examined, connected)?;
    let mut driver = Driver::new(world, run, journal, how).asked_to_end();
    driver.early = early;
    round.go_on(&mut driver, agreed)?;
    Ok(driver)
}

/// What a resume of the run on this world's disk would do: the examination of [`open`], and nothing
/// more.
pub fn plan<W: World>(
    world: &mut W,
    workflow: &Workflow,
    how: &Resume,
) -> Result<(Plan, View), ResumeError> {
    let bytes = world.read(At::Run(JOURNAL))?.ok_or(ResumeError::NoJournal)?;
    let loaded = load(&bytes)?;
    let is_new = |new: &&Loaded| Some(new.hash) != loaded.state.workflow_hash;
    let edited = how.edited.as_ref().filter(is_new);
    let current = edited.map_or(workflow, |edited| &edited.workflow);
    let edited = edited.map(|new| (workflow, new));
    let mut findings = Vec::new();
    if let Rest::Torn(torn) = &loaded.tail.rest {
        findings.push(torn_tail(torn.offset));
    }
    let run = Run::new(Arc::new(Defs::new(current.clone())), loaded.state);
    let looked = world.look_at_hands(&run.state)?;
    let seen = how.seen.clone();
    let mut round = Round { edited, findings, before: Before::default(), seen };
    let examined = round.examine(world, run, &looked, how)?;
    Ok((examined.plan(world, "")?, examined.view(world, "")?))
}

/// Takes hold of the supervisor, with a journal that is there to stay: a killed engine may have
/// left what it wrote, and the journal's very name, unsynced.
fn take_hold<W: World>(world: &mut W, journal: &Journal, run: &Run) -> Result<Connected, Stop> {
    world.sync(At::Run(JOURNAL))?;
    world.sync_dir(At::Run(JOURNAL))?;
    let connected = world.connect(journal.epoch(), &run.state)?;
    brief::write_plain(world)?;
    Ok(connected)
}

/// Ends what lives and cannot count, because what it was made from is made again. What else came
/// in meanwhile is handed back.
pub(super) fn end_superseded<W: World>(
    world: &mut W,
    examined: &Examined,
    connected: &mut Connected,
) -> Result<Vec<Input>, Stop> {
    let to_stop = &examined.resumption.to_stop;
    let is_meant = |it: &&(Address, u32)| to_stop.contains(&it.0);
    let mut left: Vec<(Address, u32)> = connected.alive.iter().filter(is_meant).cloned().collect();
    let mut early = Vec::new();
    for (step, attempt) in &left {
        world.stop(step, *attempt)?;
    }
    while !left.is_empty() {
        for input in world.wait(None)? {
            match input {
                Input::Sealed(seal) => {
                    let is_it = |it: &(Address, u32)| it.0 == seal.step && it.1 == seal.attempt;
                    left.retain(|it| !is_it(it));
                    connected.alive.retain(|it| !is_it(it));
                    connected.seals.push(seal);
                }
                Input::HandsLost { .. } => {
                    left.clear();
                    connected.alive.clear();
                    early.push(input);
                }
                Input::Asked(_) | Input::Interrupted | Input::Withdrawn { .. } => early.push(input),
            }
        }
    }
    Ok(early)
}

/// Whether nothing stands in the way that the person has not accepted.
fn agree(examined: &Examined) -> Result<(), ResumeError> {
    let Examined { run, resumption: made, choices, .. } = examined;
    let Choices { from, keep, redo, leave, .. } = choices;
    let from = from.iter().map(|it| it.step.as_str());
    let named = from.chain([keep, redo, leave].into_iter().flatten().map(Address::as_str));
    if let Some(unknown) = named.into_iter().find(|step| !has_entry(run, step)) {
        return Err(ResumeError::NoSuchStep(unknown.to_owned()));
    }
    let is_known = |code: &str| {
        let of_ours = Code::ALL.iter().any(|it| it.as_str() == code);
        let of_others = || onward_dialects::codes().any(|it| it.word == code);
        of_ours || of_others() || made.findings.iter().any(|it| it.code == code)
    };
    if let Some(unknown) = choices.accepted.iter().find(|it| !is_known(&it.code)) {
        return Err(ResumeError::NoSuchFinding(unknown.code.clone()));
    }
    let standing = policy::standing(&made.findings, examined.age_band(), choices);
    if standing.is_empty() { Ok(()) } else { Err(ResumeError::Conflicts(standing)) }
}

/// What a resume is about to do, agreed to, with probes asked.
struct Agreed {
    made: Resumption,
    undoing: BTreeMap<String, Undoing>,
    reentry: Option<Reentry>,
    imported: Vec<Event>,
    git: Option<GitHead>,
    connected: Connected,
    point: RecoveryPoint,
    band: AgeBand,
    /// Paths of an undo that was cut short, which a person changed since and lets stay.
    settled: BTreeSet<String>,
}

impl Agreed {
    /// Beside it the run as its journal says.
    fn settle<W: World>(
        world: &mut W,
        mut examined: Examined,
        connected: Connected,
    ) -> Result<(Run, Self), ResumeError> {
        let Resumption { to_probe, to_check, .. } = &examined.resumption;
        if !to_probe.is_empty() || !to_check.is_empty() {
            ask_probes(world, &mut examined)?;
            ask_checks(world, &mut examined)?;
            examined.decide_again();
        }
        agree(&examined)?;
        let point = examined.recovery_point(world)?;
        let band = examined.age_band();
        let Examined { run, journaled, survey, resumption: made, undoing, .. } = examined;
        let Examined { reentry, imported, strange: settled, .. } = examined;
        let git = survey.git.map(|git| git.now);
        let agreed =
            Self { made, undoing, reentry, imported, git, connected, point, band, settled };
        Ok((journaled.unwrap_or(run), agreed))
    }
}

impl Agreed {
    /// Takes the other system's lock and reads its files once more.
    fn hold<W: World>(&self, world: &mut W) -> Result<Option<Held>, Stop> {
        self.reentry.as_ref().map(|it| it.hold(world)).transpose()
    }

    /// Whether what is held is what was examined.
    fn is_of(&self, held: Option<&Held>) -> bool {
        let read = self.reentry.as_ref().map(|it| &it.files);
        read.zip(held).is_none_or(|(read, held)| read.tell_the_same_as(&held.files))
    }
}

impl<W: World> Driver<'_, W> {
    /// The stages revert and continue, up to where `drive` takes over. The other system's files are
    /// `held` until the first line about this resume is in them.
    fn go_on_from(
        &mut self,
        agreed: Agreed,
        edited: Option<(&Workflow, &Loaded)>,
        held: Option<Held>,
    ) -> Result<(), Stop> {
        let Agreed { made, undoing, reentry, imported, git, connected, .. } = agreed;
        let Agreed { point, band, settled, .. } = agreed;
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
        for event in imported {
            self.record(event)?;
        }
        let boot_id = connected.boot_id.clone();
        self.continuing.clone_from(&made.continuing);
        self.retaken.extend(made.retaken.clone());
        let mut resumed = made.resumed(&self.run.state, self.how.mode, boot_id, git);
        (resumed.code, resumed.summary) = (point.code, point.summary);
        if self.how.options.ending.is_some() {
            "only to put away what is half done, and to end".clone_into(&mut resumed.summary);
        }
        resumed.last_sign = connected.last_sign();
        if let Some(reentry) = &reentry {
            reentry.announce(&mut resumed);
        }
        let reverts = resumed.reverts.clone();
        self.record(Event::RunResumed(Box::new(resumed)))?;
        // What lost attempts said is billed before they are given up.
        self.listen_to_running()?;
        for event in &made.events {
            self.record(event.clone())?;
        }
        for text in policy::passed_over(&made.findings, band, &self.how.choices) {
            self.record(Event::Note { text, step: None })?;
        }
        self.journal.commit(self.world)?;
        self.undo_announced(&reverts, &settled)?;
        let told = match reentry.as_ref().zip(held) {
            Some((reentry, mut held)) => {
                reentry.settle_trees(self.world)?;
                reentry.put_back(self.world, &reverts, &mut held.files)?;
                let Reading { files, told } = reentry.say_resumed(self.world, held, &self.run)?;
                self.note_exported(&files)?;
                told.map(|told| (&reentry.foreign, told))
            }
            None => None,
        };
        self.take_in_seals(&made, &connected)?;
        // A resume is an event too: with it a budget of the other system may be over.
        if let Some((foreign, told)) = &told {
            let announced: Vec<Address> = made.decided(Decision::Start).cloned().collect();
            import_announced(foreign.source(&**told), self, &announced)?;
        }
        self.take_up(&made)
    }

    /// Puts back what `run.resumed` announced, and says when it is over. What a person changed
    /// since it was examined is asked about, unless that is `settled`.
    fn undo_announced(
        &mut self,
        reverts: &[Revert],
        settled: &BTreeSet<String>,
    ) -> Result<(), Stop> {
        let strange = revert::undo(self.world, reverts)?;
        let since: Vec<Revert> =
            reverts.iter().filter(|it| !settled.contains(&it.path)).cloned().collect();
        // Nothing says yet that this undo is over: the next resume finds it cut short, and asks.
        if let Some(finding) = CutShort::look(self.world, &since)?.finding() {
            self.journal.commit(self.world)?;
            return Err(Stop::Conflicts(vec![finding]));
        }
        if !strange.is_empty() {
            let text = format!("not undone: {}", strange.join(", "));
            self.record(Event::Note { text, step: None })?;
        }
        // What this resume writes from here on says that its undo is over.
        let (kept, undone): (Vec<&Revert>, Vec<&Revert>) =
            reverts.iter().partition(|it| it.keeps_in_place());
        for (what, of) in [("undone", undone), ("changed by hand, to be replaced", kept)] {
            if of.is_empty() {
                continue;
            }
            let rescues: BTreeSet<&str> = of.iter().map(|it| it.rescue.as_str()).collect();
            let rescues = rescues.into_iter().collect::<Vec<_>>().join(", ");
            let paths = onward_core::plural::count(of.len(), "path");
            let text = format!("{what}: {paths}, saved in {rescues}");
            self.record(Event::Note { text, step: None })?;
        }
        Ok(())
    }

    /// Judges what ended meanwhile.
    fn take_in_seals(&mut self, made: &Resumption, connected: &Connected) -> Result<(), Stop> {
        for step in made.decided(Decision::AdoptSeal) {
            let Some(entry) = self.run.state.step(step) else { continue };
            if let Some(seal) = connected.seals.iter().find(|seal| seal.is_of(step, entry)) {
                self.finish_as_edited(seal, made.edited.get(step))?;
            }
        }
        Ok(())
    }

    /// Spawns what was announced and never was.
    fn take_up(&mut self, made: &Resumption) -> Result<(), Stop> {
        for step in made.decided(Decision::Start) {
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
                    let started = self.run.state.step(step).and_then(|it| it.started.clone());
                    let nonce = started.as_ref().and_then(|it| it.nonce);
                    let (run, epoch) = (self.run_id(), self.journal.epoch());
                    launch.of = nonce.map(|nonce| Mark { run, epoch, nonce });
                    let (has_base, writes, reverts) = started
                        .map(|it| (it.base.is_some(), it.writes, it.reverts))
                        .unwrap_or_default();
                    let behind = Behind { reverts: &reverts, continues: false };
                    brief::attach(self.world, &self.run, &mut launch, &behind)?;
                    self.world.resolve(&mut launch)?;
                    self.equip(&mut launch, has_base, &writes);
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

fn ask_probes<W: World>(world: &mut W, examined: &mut Examined) -> Result<(), Stop> {
    let Examined { run, resumption, survey, .. } = examined;
    for step in &resumption.to_probe {
        let Some(id) = run.graph.find(step) else { continue };
        let probed = match &run.defs.step(run.graph.node(id).def).probe {
            None => Probed::Unknown,
            Some(probe) => match decide::command(run, id, &probe.command) {
                Some(command) => world.probe(&worktree_path(run, id), &command, probe.absent)?,
                None => Probed::Unknown,
            },
        };
        survey.in_flight.entry(step.clone()).or_default().probed = Some(probed);
    }
    Ok(())
}

/// Runs the check of what an interrupted attempt left.
fn ask_checks<W: World>(world: &mut W, examined: &mut Examined) -> Result<(), Stop> {
    let Examined { run, resumption, survey, .. } = examined;
    for step in &resumption.to_check {
        let Some(id) = run.graph.find(step) else { continue };
        let check = run.defs.step(run.graph.node(id).def).check.as_ref();
        let command = check.and_then(|it| decide::command(run, id, it));
        let said = match command {
            // No exit code but 0 is an answer here.
            Some(command) => world.probe(&worktree_path(run, id), &command, i32::MIN)?,
            None => Probed::Unknown,
        };
        if let Some(seen) = survey.in_flight.get_mut(step) {
            seen.checked = Some(said);
        }
    }
    Ok(())
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
    let message = format!("the journal ends in half a record at byte {offset}");
    Finding::new(Code::TornTail, message).with_hint("a resume cuts it off and keeps it in rescue/")
}
