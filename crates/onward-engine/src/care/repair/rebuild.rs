//! Rebuilding what a journal lost: the run is driven once more, and the traces answer instead of
//! processes.
//!
//! Order follows the workflow: a step is placed when all it needs is, so its key can be made again
//! and what it rests on is known. Whatever cannot be proved, or is contradicted, ends as a lost
//! attempt, which is the careful reading: the step runs again.
//!
//! Invariant: every attempt number that left a trace is used up, so that no old seal can ever be
//! taken for the end of a new attempt.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide::{Command, Rendering, Start, decide, rendering},
    digest::Digest,
    event::{AttemptStarted, Certainty, EndStatus, Event, Mode, Record, RunResumed},
    evidence::Cause,
    facts::{Facts, Need},
    graph::{NodeId, Role},
    kept::Kept,
    key::{Difference, Key, KeyParts},
    mark::Nonce,
    run::Run,
    state::{Phase, RunStatus, Violation},
    time::Timestamp,
    workflow::model::Kind,
};

use super::traces::{Trace, Traces};
use crate::world::{At, Stop, World};

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A readable record behind the damage.
    Journal,
    /// `opened.json`, the copy of the first records.
    Opened,
    /// The supervisor's own log.
    Seal,
    /// A result that fits its schema.
    Result,
    /// The declared outputs and a green check.
    Check,
    /// A commit with the run's trailers.
    Commit,
    /// What the workflow makes of all this.
    Workflow,
    /// Nothing but this could have stood between two things that are known.
    Gap,
}

impl Source {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Opened => "opened",
            Self::Seal => "seal",
            Self::Result => "result",
            Self::Check => "check",
            Self::Commit => "commit",
            Self::Workflow => "workflow",
            Self::Gap => "gap",
        }
    }

    pub(super) fn certainty(self) -> Certainty {
        match self {
            Self::Journal | Self::Opened | Self::Seal => Certainty::Recorded,
            Self::Result | Self::Check | Self::Commit | Self::Workflow | Self::Gap => {
                Certainty::Inferred
            }
        }
    }
}

/// One event of the rebuilt journal.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) at: Timestamp,
    pub(super) event: Event,
    pub(super) source: Source,
    pub(super) why: String,
    /// Supposed only to see what follows from it; never written.
    pub(super) imagined: bool,
}

/// What records behind the damage say about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Its start is among them.
    Started,
    /// Its start was lost, and a later record names it.
    Mentioned,
}

/// Files as they were when an attempt began: what it saved of its outputs, and what it read.
pub(super) type Seen = (Timestamp, BTreeMap<String, Option<Digest>>);

pub(super) struct Rebuilder<'a, W: World> {
    pub(super) world: &'a mut W,
    pub(super) run: Run,
    pub(super) traces: &'a Traces,
    pub(super) claims: BTreeMap<(Address, u32), Claim>,
    pub(super) seen: Vec<Seen>,
    /// Attempts whose end is among the later records.
    pub(super) ended: BTreeSet<(Address, u32)>,
    /// Gates whose answer is among the later records.
    pub(super) decided: BTreeSet<Address>,
    /// Traces that may still have to be placed.
    pub(super) left: BTreeSet<(Address, u32)>,
    pub(super) epoch: u32,
    pub(super) batch: u64,
    pub(super) pieces: Vec<Piece>,
    pub(super) dropped: Vec<(Record, String)>,
}

impl<W: World> Rebuilder<'_, W> {
    pub(super) fn push(
        &mut self,
        at: Timestamp,
        mut event: Event,
        source: Source,
        why: impl Into<String>,
    ) -> Result<(), Violation> {
        self.world.clean(&mut event);
        let record = Record {
            seq: self.run.state.next_seq,
            at,
            epoch: self.epoch,
            batch: self.batch,
            event: event.clone(),
        };
        self.run.after(record)?;
        self.pieces.push(Piece { at, event, source, why: why.into(), imagined: false });
        Ok(())
    }

    /// Places every trace that the journal does not know, of attempts up to `bound`.
    pub(super) fn catch_up(&mut self, bound: Option<Timestamp>) -> Result<(), Stop> {
        if bound.is_some() {
            // An end that the gap has swallowed; at the end of the journal the next resume judges.
            self.finish_running(bound)?;
        } else {
            // Every later record has been taken, or was left out for good.
            self.claims.clear();
            self.ended.clear();
            self.decided.clear();
        }
        while self.has_left(bound) {
            if !self.go_on_if_paused(bound) {
                return Ok(());
            }
            let moved = self.follow_workflow()?
                || self.finish_running(bound)?
                || self.place_reachable(bound)?
                || self.imagine_gate();
            if !moved {
                break;
            }
        }
        if bound.is_none() {
            self.use_up_numbers();
        }
        Ok(())
    }

    fn has_left(&mut self, bound: Option<Timestamp>) -> bool {
        while let Some((step, attempt)) = self.left.first()
            && !self.is_new(step, *attempt)
        {
            self.left.pop_first();
        }
        match bound {
            None => !self.left.is_empty(),
            Some(_) => self.left.iter().any(|(step, attempt)| self.is_due(step, *attempt, bound)),
        }
    }

    /// The run has not reached that number.
    fn is_new(&self, step: &Address, attempt: u32) -> bool {
        attempt > self.run.state.step(step).map_or(0, |entry| entry.attempts)
    }

    fn is_due(&self, step: &Address, attempt: u32, bound: Option<Timestamp>) -> bool {
        let is_coming = self.claims.get(&(step.clone(), attempt)) == Some(&Claim::Started);
        let trace = self.traces.get(step, attempt);
        // One whose start is among the later records comes by itself.
        !is_coming && self.is_new(step, attempt) && trace.is_some_and(|it| is_within(it, bound))
    }

    /// An attempt after a pause, or after the end, shows that the run was resumed.
    pub(super) fn go_on_if_paused(&mut self, bound: Option<Timestamp>) -> bool {
        match self.run.state.status {
            RunStatus::UnderWay => return true,
            RunStatus::Unopened | RunStatus::Ended { status: EndStatus::Completed } => {
                return false;
            }
            RunStatus::Paused { .. } | RunStatus::Ended { .. } => {}
        }
        let state = &self.run.state;
        let resumed = RunResumed {
            code: "repair".to_owned(),
            summary: "an attempt that began later shows it".to_owned(),
            mode: state.opened.as_ref().map_or(Mode::Interactive, |it| it.mode),
            count: state.resumes + 1,
            boot_id: state.boot_id.clone(),
            accepted: Vec::new(),
            entered: None,
            last_sign: None,
            git: None,
            reverts: Vec::new(),
        };
        let at = bound.unwrap_or(state.last_at);
        let event = Event::RunResumed(Box::new(resumed));
        self.push(at, event, Source::Gap, "attempts began after the pause").is_ok()
    }

    /// Groups, loops and skipped steps: what the decider says about them needs no process.
    fn follow_workflow(&mut self) -> Result<bool, Stop> {
        let mut facts = Facts::default();
        let at = self.run.state.last_at;
        loop {
            let mut answered = false;
            for command in decide(&self.run, &facts, at) {
                let event = match command {
                    Command::Need { step, needs } => {
                        self.answer(&step, needs, &mut facts)?;
                        answered = true;
                        continue;
                    }
                    Command::Record(event) => event,
                    Command::Start(_) | Command::StopAll | Command::WakeAt(_) => continue,
                };
                let follows = if let Event::StepSkipped { step, .. } = &event {
                    // What ran was not skipped, whatever its `when` says now.
                    self.traces.numbers(step).is_empty()
                } else {
                    matches!(
                        event,
                        Event::GroupExpanded { .. }
                            | Event::LoopTurned { .. }
                            | Event::LoopEnded { .. }
                    )
                };
                if follows && self.push(at, event, Source::Workflow, "it follows").is_ok() {
                    return Ok(true);
                }
            }
            if !answered {
                return Ok(false);
            }
        }
    }

    fn answer(
        &mut self,
        step: &Address,
        needs: BTreeSet<Need>,
        facts: &mut Facts,
    ) -> Result<(), Stop> {
        let mut told = facts.by_step.remove(step).unwrap_or_default();
        for need in needs {
            match need {
                Need::Text(path) => {
                    let bytes = self.world.read(At::Project(&path))?;
                    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                    told.texts.insert(path, text);
                }
                Need::Glob(pattern) => {
                    let files = self.world.glob(&pattern, &[])?;
                    told.globs.insert(pattern, files);
                }
            }
        }
        facts.by_step.insert(step.clone(), told);
        Ok(())
    }

    /// Attempts that the journal has running, of which nothing is recorded later, and which ended.
    fn finish_running(&mut self, bound: Option<Timestamp>) -> Result<bool, Stop> {
        if self.run.state.running == 0 {
            return Ok(false);
        }
        let steps = self.run.state.steps.iter();
        let running = steps.filter(|(_, entry)| entry.phase == Phase::Running);
        let running: Vec<(Address, u32)> =
            running.map(|(step, entry)| (step.clone(), entry.attempts)).collect();
        let mut moved = false;
        for (step, attempt) in running {
            let trace = self.traces.get(&step, attempt);
            let seal = trace.and_then(Trace::seal);
            let seal = seal.filter(|seal| bound.is_none_or(|bound| seal.at <= bound));
            let entry = self.run.state.step(&step);
            let seal = seal.filter(|seal| entry.is_some_and(|entry| seal.is_of(&step, entry)));
            let (Some(seal), Some(id)) = (seal.cloned(), self.run.graph.find(&step)) else {
                continue;
            };
            if self.ended.contains(&(step.clone(), attempt)) {
                continue;
            }
            let started = self.run.state.step(&step).and_then(|entry| entry.started.as_ref());
            let writes = started.map(|it| it.writes.clone()).unwrap_or_default();
            moved |= self.finish(id, &seal, &writes)?;
        }
        Ok(moved)
    }

    fn place_reachable(&mut self, bound: Option<Timestamp>) -> Result<bool, Stop> {
        let mut moved = false;
        for id in self.run.graph.ready_work().collect::<Vec<_>>() {
            let step = self.run.graph.node(id).address.clone();
            moved |= self.place(id, &step, bound)?;
        }
        if moved {
            return Ok(true);
        }
        // Steps that the journal has done, failed or running, and that were tried again since.
        for (step, _) in self.left.clone() {
            let Some(id) = self.run.graph.find(&step) else { continue };
            let node = self.run.graph.node(id);
            if node.role == Role::Leaf && node.is_reachable() && self.place(id, &step, bound)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All attempts of one step, up to its last.
    fn place(
        &mut self,
        id: NodeId,
        step: &Address,
        bound: Option<Timestamp>,
    ) -> Result<bool, Stop> {
        let mut numbers = self.traces.numbers(step);
        numbers.retain(|attempt| self.is_due(step, *attempt, bound));
        let last = numbers.last().copied();
        let mut moved = false;
        for attempt in numbers {
            let later = self.claims.range((step.clone(), attempt + 1)..).next();
            let is_last = last == Some(attempt) && later.is_none_or(|((it, _), _)| it != step);
            self.make_way(step, attempt);
            let start = self.rendered(id, attempt)?;
            if !self.start(step, attempt, start.as_ref()) {
                return Ok(moved);
            }
            moved = true;
            if self.ended.contains(&(step.clone(), attempt)) {
                return Ok(true);
            }
            self.end(id, step, attempt, start.as_ref(), is_last)?;
        }
        Ok(moved)
    }

    /// A later attempt shows that what came before it was over, and did not count.
    pub(super) fn make_way(&mut self, step: &Address, attempt: u32) {
        let Some(entry) = self.run.state.step(step) else { return };
        let at = self.run.state.last_at;
        let why = format!("attempt {attempt} began after it");
        let event = match entry.phase {
            Phase::Done | Phase::Tolerated | Phase::Skipped => Event::StepInvalidated {
                step: step.clone(),
                causes: vec![Difference {
                    part: "repair".to_owned(),
                    was: Some(entry.phase.as_str().to_owned()),
                    is: Some(why.clone()),
                }],
            },
            Phase::Running => lost(step, entry.attempts),
            Phase::Pending | Phase::Waiting | Phase::Failed | Phase::Lost | Phase::Stale => return,
        };
        // An event that cannot follow leaves the run as it was; the start is then refused too.
        let _ = self.push(at, event, Source::Gap, why);
    }

    pub(super) fn rendered(&mut self, id: NodeId, attempt: u32) -> Result<Option<Start>, Stop> {
        let mut facts = Facts::default();
        let step = self.run.graph.node(id).address.clone();
        loop {
            match rendering(&self.run, &facts, id, attempt) {
                Rendering::Ready(start) => return Ok(Some(*start)),
                Rendering::Lacks(needs) => self.answer(&step, needs, &mut facts)?,
                Rendering::Fails(_) => return Ok(None),
            }
        }
    }

    /// The start of an attempt, and of those before it that left no trace.
    pub(super) fn start(&mut self, step: &Address, attempt: u32, made: Option<&Start>) -> bool {
        let before = self.run.state.step(step).map_or(0, |entry| entry.attempts);
        let at = self.seen_at(step, attempt);
        for number in before + 1..attempt {
            let why = format!("attempt {attempt} began after it");
            let began = self.push(at, started(step, number, None, None), Source::Gap, &why);
            if began.and_then(|()| self.push(at, lost(step, number), Source::Gap, &why)).is_err() {
                return false;
            }
        }
        let known = self.traces.get(step, attempt).and_then(|trace| trace.spawned_at);
        let source = if known.is_some() { Source::Seal } else { Source::Gap };
        let mut why = "it was spawned; its key is as it would be now".to_owned();
        if made.is_none() {
            "it was spawned; its key is not known".clone_into(&mut why);
        }
        let trace = self.traces.get(step, attempt);
        let nonce = trace.and_then(|it| it.of.as_ref()).map(|it| it.nonce);
        self.push(at, started(step, attempt, made, nonce), source, why).is_ok()
    }

    pub(super) fn seen_at(&self, step: &Address, attempt: u32) -> Timestamp {
        let trace = self.traces.get(step, attempt);
        trace.and_then(Trace::seen_at).unwrap_or(self.run.state.last_at)
    }

    /// Something ran behind a gate whose answer is lost. To see what, a yes is supposed; the gate
    /// itself is asked again, and what rests on another answer runs again.
    fn imagine_gate(&mut self) -> bool {
        let open = self.run.graph.open_gates().chain(self.run.graph.ready_control());
        for id in open.collect::<Vec<_>>() {
            let node = self.run.graph.node(id);
            let Kind::Gate(gate) = &self.run.defs.step(node.def).kind else { continue };
            let is_answered = self.run.state.phase(&node.address).is_settled()
                || self.decided.contains(&node.address);
            if node.role != Role::Leaf || is_answered {
                continue;
            }
            let first = gate.options.iter().find(|option| !gate.stop.contains(option));
            let Some(option) = first.cloned() else { continue };
            let (step, options) = (node.address.clone(), gate.options.clone());
            let before = self.pieces.len();
            let (at, hash) = (self.run.state.last_at, Digest::of(b"supposed"));
            let (prompt, shows) = (String::new(), Vec::new());
            let opened = Event::GateOpened { step: step.clone(), prompt, options, shows, hash };
            let (by, comment) = ("repair".to_owned(), None);
            let decided = Event::GateDecided { step, by, option, comment, hash, stops: false };
            let pushed = self
                .push(at, opened, Source::Gap, "something ran behind it")
                .and_then(|()| self.push(at, decided, Source::Gap, "something ran behind it"));
            self.pieces[before..].iter_mut().for_each(|piece| piece.imagined = true);
            return pushed.is_ok();
        }
        false
    }

    /// Traces that found no place in the workflow still have their numbers.
    fn use_up_numbers(&mut self) {
        for (step, attempt) in std::mem::take(&mut self.left) {
            if !self.is_due(&step, attempt, None) {
                continue;
            }
            self.make_way(&step, attempt);
            if self.start(&step, attempt, None) {
                let at = self.seen_at(&step, attempt);
                let why = "what it rested on is not proved";
                let _ = self.push(at, lost(&step, attempt), Source::Gap, why);
            }
        }
    }
}

fn is_within(trace: &Trace, bound: Option<Timestamp>) -> bool {
    match (bound, trace.seen_at()) {
        (None, _) => true,
        (Some(bound), Some(seen)) => seen <= bound,
        (Some(_), None) => false,
    }
}

/// Nothing in it is undone at a resume: what was there before is not known.
fn started(step: &Address, attempt: u32, made: Option<&Start>, nonce: Option<Nonce>) -> Event {
    let key = made.map_or_else(KeyParts::default, |start| start.key.clone());
    let argv = made.map(|start| start.launch.program.argv()).unwrap_or_default();
    Event::AttemptStarted(Box::new(AttemptStarted {
        key: Key::from(&key),
        argv: Kept::from(&argv),
        cwd: made.map(|start| start.launch.cwd.clone()).unwrap_or_default(),
        agent: made.and_then(|start| start.agent.clone()),
        nonce,
        ..AttemptStarted::bare(step.clone(), attempt)
    }))
}

pub(super) fn lost(step: &Address, attempt: u32) -> Event {
    Event::AttemptLost {
        step: step.clone(),
        attempt,
        cause: Cause::Interrupted,
        rung: onward_core::recovery::Rung::Repair,
        reverted: Vec::new(),
        rescue: None,
    }
}
