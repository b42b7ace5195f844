//! Progress that was made source, found by asking the decider what it would do next: a step that
//! it would start and that another system's files prove done is adopted instead, and one that they
//! leave no place for is skipped.
//!
//! Invariant: nothing is adopted that the files do not prove, nor that the decider would not have
//! come to; so what is left when nothing more can be adopted is the recovery point.

use std::collections::{BTreeMap, BTreeSet};

use super::{Command, Decider, Hold};
use crate::{
    address::Address,
    digest::Digest,
    event::{AttemptAdopted, Event, LoopEnd},
    evidence::Evidence,
    facts::Facts,
    graph::{NodeId, Role},
    run::Run,
    state::{Phase, StepState},
    time::Timestamp,
    told::{Done, StepTold, Told},
    workflow::model::{Gate, Kind},
};

/// Another system's files, as the source of what was done.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The name of the dialect.
    pub dialect: &'a str,
    /// Who answered the gates, such as `conference.md`.
    pub by: &'a str,
    pub told: &'a dyn Told,
}

impl Source<'_> {
    /// What the files prove, unless they have taken back what the run knew better.
    fn done(&self, run: &Run, step: &Address) -> Option<Done> {
        let given = || run.state.step(step).and_then(|it| it.result.as_deref());
        match self.told.step(step) {
            StepTold::Done(done) => Some(done).filter(|it| !it.is_taken_back(given())),
            StepTold::PassedOver(_)
            | StepTold::Unproved(_)
            | StepTold::Undone
            | StepTold::Silent => None,
        }
    }

    fn passed_over(&self, step: &Address) -> Option<String> {
        match self.told.step(step) {
            StepTold::PassedOver(why) => Some(why),
            StepTold::Done(_) | StepTold::Unproved(_) | StepTold::Undone | StepTold::Silent => None,
        }
    }
}

/// What to write down next, and what must be found out first; nothing when nothing more can be
/// adopted. Only [`Command::Record`] and [`Command::Need`] are given.
pub fn adoptions(run: &Run, facts: &Facts, source: Source<'_>) -> Vec<Command> {
    let now = Timestamp::default();
    let mut decider = Decider::new(run, facts, now);
    for id in run.graph.open_gates() {
        decider.commands.extend(answered(run, id, source).map(Command::Record));
    }
    for id in run.graph.ready_control() {
        let found = decider.controlled(id, source);
        decider.adopted(id, found);
    }
    for id in run.graph.ready_work() {
        let found = decider.worked(id, source);
        decider.adopted(id, found);
    }
    decider.commands
}

/// The event that counts a step as done, if the files prove it. For one that was announced and
/// never begun; whatever is ready is found by [`adoptions`].
pub fn adoption(run: &Run, step: &Address, source: Source<'_>) -> Option<Event> {
    source.done(run, step).map(|done| adopted(step.clone(), done, source))
}

fn adopted(step: Address, done: Done, source: Source<'_>) -> Event {
    let Done { result, certainty, list: _, implied: _, why: _ } = done;
    let digest = Digest::of(result.to_string().as_bytes());
    Event::AttemptAdopted(Box::new(AttemptAdopted {
        step,
        source: source.dialect.to_owned(),
        certainty,
        evidence: Evidence { result: Some(digest), ..Evidence::default() },
        result: Some(result),
        by: None,
    }))
}

/// Done steps that the files should prove, and do not any more: those that were learned from them,
/// and those of which they are the witness. Also steps that were passed over, and are not any more,
/// and lists that have grown since. A turn of a loop after which a run of ours has begun another
/// one is history: where the files tell only of the last one, nothing speaks against it.
pub fn regressed(run: &Run, source: Source<'_>) -> BTreeMap<Address, String> {
    let begun = turns_begun(run);
    let is_gone = |(step, entry): &(&Address, &StepState)| match entry.phase {
        Phase::Done | Phase::Tolerated => {
            run.graph.find(step).is_some()
                && match source.told.step(step) {
                    StepTold::Done(done) => {
                        let given = entry.result.as_deref();
                        done.has_grown_since(given) || done.is_taken_back(given)
                    }
                    StepTold::Undone | StepTold::Unproved(_) => true,
                    StepTold::PassedOver(_) => entry.elsewhere,
                    StepTold::Silent => {
                        let is_history = |(it, turn)| begun.get(it).is_some_and(|at| turn < *at);
                        entry.elsewhere
                            && !turns_of(step).any(is_history)
                            && !source.told.outlasts(step, &|it| run.state.done(it))
                    }
                }
        }
        Phase::Skipped => was_passed_over(run, step) && source.passed_over(step).is_none(),
        Phase::Pending
        | Phase::Running
        | Phase::Waiting
        | Phase::Failed
        | Phase::Lost
        | Phase::Stale => false,
    };
    let says = format!("the files of the {} do not", source.dialect);
    let gone = run.state.steps.iter().filter(is_gone);
    gone.map(|(step, _)| (step.clone(), says.clone())).collect()
}

/// The last turn of each loop in which a run of ours has begun a step itself.
fn turns_begun(run: &Run) -> BTreeMap<&str, u32> {
    let mut begun = BTreeMap::new();
    if run.state.loops.is_empty() {
        return begun;
    }
    let loops: BTreeSet<&str> = run.state.loops.keys().map(Address::as_str).collect();
    let ours = run.state.steps.iter().filter(|(_, it)| it.has_begun() && !it.elsewhere);
    for (of, turn) in ours.flat_map(|(step, _)| turns_of(step)) {
        if let Some(of) = loops.get(of) {
            let last = begun.entry(*of).or_insert(turn);
            *last = turn.max(*last);
        }
    }
    begun
}

/// The places in an address that can be turns: what stands before the number, and the number.
fn turns_of(step: &Address) -> impl Iterator<Item = (&str, u32)> {
    let text = step.as_str();
    text.match_indices('[').filter_map(move |(at, _)| {
        let number = text[at + 1..].split(']').next()?;
        Some((&text[..at], number.parse().ok()?))
    })
}

/// Skipped, and not by a `when` of its own.
fn was_passed_over(run: &Run, step: &Address) -> bool {
    let node = run.graph.find(step).map(|id| run.graph.node(id));
    node.is_some_and(|node| node.role == Role::Leaf && run.defs.step(node.def).when.is_none())
}

impl Decider<'_> {
    /// Unlike a start, what cannot be rendered here is left alone.
    fn adopted(&mut self, id: NodeId, decided: Result<Vec<Command>, Hold>) {
        match decided {
            Ok(commands) => self.commands.extend(commands),
            Err(Hold::Lacks(needs)) => {
                let step = self.run.graph.node(id).address.clone();
                self.commands.push(Command::Need { step, needs });
            }
            Err(Hold::Fails(_)) => {}
        }
    }

    fn controlled(&self, id: NodeId, source: Source<'_>) -> Result<Vec<Command>, Hold> {
        let node = self.run.graph.node(id);
        if let Some(turns) = self.turns_taken(id)
            && source.done(self.run, &node.address).is_some()
        {
            // What it is for was reached elsewhere.
            let (step, reason) = (node.address.clone(), LoopEnd::Until);
            return Ok(vec![Command::Record(Event::LoopEnded { step, turns, reason })]);
        }
        let Kind::Gate(gate) = &self.run.defs.step(node.def).kind else { return self.control(id) };
        let phase = self.run.state.phase(&node.address);
        if !phase.is_startable() {
            return if phase.is_settled() { self.control(id) } else { Ok(Vec::new()) };
        }
        if let Some(skipped) = self.skipped(id, self.run.defs.step(node.def))? {
            return Ok(vec![Command::Record(skipped)]);
        }
        let Some(answer) = answer(gate, source.done(self.run, &node.address)) else {
            return Ok(self.skipped_only(id, source)?.into_iter().collect());
        };
        let opened = self.opened(id, id, gate)?;
        let Event::GateOpened { hash, .. } = &opened else { return Ok(Vec::new()) };
        let decided = decided(&node.address, answer, *hash, source);
        Ok(vec![Command::Record(opened), Command::Record(decided)])
    }

    /// Of a loop that has begun.
    fn turns_taken(&self, id: NodeId) -> Option<u32> {
        let node = self.run.graph.node(id);
        let turns = self.run.state.loops.get(&node.address).filter(|_| node.role == Role::Loop);
        turns.map(|it| it.turns).filter(|turns| *turns > 0)
    }

    fn worked(&self, id: NodeId, source: Source<'_>) -> Result<Vec<Command>, Hold> {
        let step = self.run.graph.node(id).address.clone();
        let Some(done) = source.done(self.run, &step) else {
            return Ok(self.skipped_only(id, source)?.into_iter().collect());
        };
        Ok(vec![Command::Record(adopted(step, done, source))])
    }

    fn skipped_only(&self, id: NodeId, source: Source<'_>) -> Result<Option<Command>, Hold> {
        let node = self.run.graph.node(id);
        if !self.run.state.phase(&node.address).is_startable() {
            return Ok(None);
        }
        let skipped = match source.passed_over(&node.address) {
            Some(reason) => {
                let needs = self.run.graph.need_digests(id, &self.run.defs);
                let (step, reads) = (node.address.clone(), BTreeMap::new());
                Some(Event::StepSkipped { step, reason, needs, reads })
            }
            None => self.skipped(id, self.run.defs.step(node.def))?,
        };
        Ok(skipped.map(Command::Record))
    }
}

/// The answer to a gate that is open already.
fn answered(run: &Run, id: NodeId, source: Source<'_>) -> Option<Event> {
    let node = run.graph.node(id);
    let Kind::Gate(gate) = &run.defs.step(node.def).kind else { return None };
    let hash = run.state.step(&node.address)?.gate.as_ref()?.hash;
    let answer = answer(gate, source.done(run, &node.address))?;
    Some(decided(&node.address, answer, hash, source))
}

/// An option that lets the run go on, and what is noted with it; only a person ends a run.
fn answer(gate: &Gate, done: Option<Done>) -> Option<(String, Option<String>)> {
    let result = done?.result;
    let text = |key: &str| result.get(key)?.as_str().map(str::to_owned);
    let option = text("option")?;
    let goes_on = gate.options.contains(&option) && !gate.stop.contains(&option);
    goes_on.then(|| (option, text("comment")))
}

fn decided(
    step: &Address,
    (option, comment): (String, Option<String>),
    hash: Digest,
    source: Source<'_>,
) -> Event {
    Event::GateDecided {
        step: step.clone(),
        by: source.by.to_owned(),
        option,
        comment,
        hash,
        stops: false,
    }
}

#[cfg(test)]
mod tests;
