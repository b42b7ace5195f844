//! What agents say, on its way into the journal: sessions, money, limits.
//!
//! Invariant: an amount is billed once. What an agent reports is a running total, the journal has
//! the sum of what was billed, and only the difference is written; so another engine may read
//! everything again.

use onward_core::{
    address::Address,
    event::{AttemptFinished, Event},
    evidence::Outcome,
    launch::Seal,
    run::Worker,
    said::{Price, Said},
    state::Phase,
    time::Timestamp,
};
use serde_json::Value;

use crate::{
    check::hear::Ear,
    drive::Driver,
    world::{At, Stop, World, files, out_name},
};

/// How often the engine looks at what agents have said while they work.
const LISTEN_EVERY_MS: u64 = 1_000;
/// A limit that was lifted before it was met is tried again after so long.
const AGAIN_MS: u64 = 60_000;

/// What an attempt's agent said until its end.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) said: Said,
    /// The agent's name and its program; `None` where nothing is understood.
    agent: Option<(String, String)>,
}

impl Heard {
    /// What it printed is not its answer: that is in its words.
    pub(crate) fn answers_in_words(&self) -> bool {
        self.said.must_close || self.said.answer.is_some()
    }
}

impl<W: World> Driver<'_, W> {
    /// Begins to listen to every running attempt whose agent is understood.
    pub(crate) fn listen_to_running(&mut self) -> Result<(), Stop> {
        let running =
            self.run.state.steps.noteworthy().filter(|(_, it)| it.phase == Phase::Running);
        let running: Vec<Address> = running.map(|(step, _)| step.clone()).collect();
        for step in running {
            self.listen_to(&step);
        }
        self.listen()
    }

    pub(crate) fn listen_to(&mut self, step: &Address) {
        if let Some(ear) = Ear::of(self.world, &self.run, step).filter(Ear::is_live) {
            self.ears.entry(step.clone()).or_insert(ear);
        }
    }

    /// Takes in what running agents have said since the last look.
    pub(crate) fn listen(&mut self) -> Result<(), Stop> {
        for (step, mut ear) in std::mem::take(&mut self.ears) {
            if !self.is_at(&step, ear.attempt) {
                continue;
            }
            ear.listen(self.world, &step)?;
            let price = self.price_of(&ear.agent, &ear.program);
            self.note(&step, ear.attempt, &ear.said, price)?;
            self.ears.insert(step, ear);
        }
        Ok(())
    }

    /// When to look again, at the latest.
    pub(crate) fn wake_to_listen(&mut self, wake: Option<Timestamp>) -> Option<Timestamp> {
        if self.ears.is_empty() {
            return wake;
        }
        let soon = self.world.now().plus_ms(LISTEN_EVERY_MS);
        Some(wake.map_or(soon, |wake| wake.min(soon)))
    }

    /// All that the agent of an ended attempt said; nothing for a command.
    pub(crate) fn heard_out(&mut self, seal: &Seal) -> Result<Heard, Stop> {
        let (step, attempt) = (&seal.step, seal.attempt);
        let known = self.ears.remove(step).filter(|ear| ear.attempt == attempt);
        let Some(ear) = known.or_else(|| Ear::of(self.world, &self.run, step)) else {
            return Ok(Heard::default());
        };
        let (name, program) = (ear.agent.clone(), ear.program.clone());
        let price = self.price_of(&name, &program);
        let mut said = ear.hear_out(self.world, step)?;
        if let Some(limit) = said.limit.as_mut().filter(|it| it.resets_at.is_none()) {
            // Measured from the end of the attempt, so that it is the same whenever it is read.
            let words = limit.words.as_deref();
            limit.resets_at = words.and_then(|words| self.world.moment_in(words, seal.at));
        }
        self.note(step, attempt, &said, price)?;
        self.keep_result(step, attempt, &said)?;
        Ok(Heard { said, agent: Some((name, program)) })
    }

    fn price_of(&self, agent: &str, program: &str) -> Option<Price> {
        let prices = &self.how.options.limits.prices;
        prices.get(agent).or_else(|| prices.get(program)).copied()
    }

    /// What a finish says about limits and denials, written before it.
    pub(crate) fn tell_of(
        &mut self,
        heard: &Heard,
        finished: &AttemptFinished,
    ) -> Result<(), Stop> {
        let Some((name, program)) = &heard.agent else { return Ok(()) };
        match &finished.outcome {
            Outcome::Failed { cause, .. } if cause.is_limit() => {
                let limit = heard.said.limit.clone();
                let (provider, account, resets_at) = match limit {
                    Some(limit) => (limit.provider, limit.account, limit.resets_at),
                    None => (program.clone(), None, None),
                };
                // The agent has met it just now: a reset that is over is no leave to start again.
                let now = self.world.now();
                let again = now.plus_ms(AGAIN_MS);
                let resets_at = resets_at.map(|it| if it > now { it } else { again });
                let known = self.world.limit_met(Worker { name, program }, resets_at);
                let (account, agent) = (account.or(known), Some(program.clone()));
                self.meet(Event::LimitHit { provider, agent, account, resets_at })
            }
            Outcome::Done if !heard.said.denied.is_empty() => {
                let text =
                    format!("denied, but its evidence holds: {}", heard.said.denied.join(", "));
                self.record(Event::Note { text, step: Some(finished.step.clone()) })
            }
            Outcome::Done | Outcome::Failed { .. } => Ok(()),
        }
    }

    fn is_at(&self, step: &Address, attempt: u32) -> bool {
        let entry = self.run.state.step(step);
        entry.is_some_and(|it| it.phase == Phase::Running && it.attempts == attempt)
    }

    /// Journals what is new.
    fn note(
        &mut self,
        step: &Address,
        attempt: u32,
        said: &Said,
        price: Option<Price>,
    ) -> Result<(), Stop> {
        let Some(entry) = self.run.state.step(step) else { return Ok(()) };
        let spent = if said.spent.is_nothing() { said.spent } else { said.spent.priced(price) };
        let owed = entry.owed(spent, said.counting);
        let session = said.session.clone().filter(|it| entry.session.as_ref() != Some(it));
        if let Some(session) = session {
            self.record(Event::AttemptSession { step: step.clone(), attempt, session })?;
        }
        if !owed.is_nothing() {
            self.record(Event::AttemptSpent { step: step.clone(), attempt, spent: owed })?;
        }
        Ok(())
    }

    /// A structured answer is the attempt's result, unless it left a result file itself.
    fn keep_result(&mut self, step: &Address, attempt: u32, said: &Said) -> Result<(), Stop> {
        let wants = self
            .node(step)
            .and_then(|id| self.run.defs.step(self.run.graph.node(id).def).result.as_ref());
        // A program that has no other way gives its result as its answer.
        let in_answer = || said.answer.as_deref().filter(|_| wants.is_some()).and_then(json_in);
        let Some(result) = said.result.clone().or_else(in_answer) else { return Ok(()) };
        let name = out_name(step, attempt, "result");
        if self.world.read(At::Run(&name))?.is_none() {
            // Whole or not at all: half a result would be judged.
            files::write_durably(self.world, At::Run(&name), result.to_string().as_bytes())?;
        }
        Ok(())
    }
}

/// An answer that is JSON and nothing else, with or without a fence around it.
fn json_in(answer: &str) -> Option<Value> {
    let text = answer.trim();
    let fenced = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    let text = fenced.and_then(|it| it.strip_suffix("```")).unwrap_or(text);
    serde_json::from_str(text.trim()).ok().filter(|it: &Value| it.is_object() || it.is_array())
}
