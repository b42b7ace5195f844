//! Gates and their answers, from the question to the step that has acted on the answer.
//!
//! Invariant: an answer is unused until a step that needs it starts, and untold until such a step
//! is done: only then can another system's files say that it was given.

use std::sync::Arc;

use serde_json::Value;

use super::{GateState, Phase, State, StepState, Violation};
use crate::{address::Address, digest::Digest, key::Key, time::Timestamp};

impl State {
    /// An answer that ended the run does not open its gate at the resume: the person is asked
    /// again. An answer that the driver has not acted on yet still ends the run.
    pub(super) fn ask_again_what_ended_it(&mut self) {
        if !self.is_ended() {
            return;
        }
        if let Some(gate) = self.cancelling.take() {
            self.unused_answers.remove(&gate);
            if let Some(entry) = self.steps.get_mut(&gate) {
                entry.phase = Phase::Stale;
            }
        }
    }

    pub(super) fn open_gate(&mut self, step: &Address, gate: GateState) -> Result<(), Violation> {
        let last = self.invalidated.last().map(|(seq, _)| *seq);
        let asks_again = |entry: &StepState| {
            let may_move = |gate: &GateState| !gate.consumed || last > Some(gate.seq);
            entry.phase.is_startable()
                || entry.phase == Phase::Waiting
                || (entry.phase == Phase::Done && entry.gate.as_deref().is_some_and(may_move))
        };
        let entry = self.entry_where(step, "a gate to open", asks_again)?;
        entry.phase = Phase::Waiting;
        entry.gate = Some(Box::new(gate));
        // What it was skipped behind says nothing about an answer; kept, it would make every answer
        // stale.
        entry.key = None;
        self.unused_answers.remove(step);
        self.untold_answers.remove(step);
        self.acted_since_resume = true;
        Ok(())
    }

    pub(super) fn answer_gate(
        &mut self,
        step: Address,
        seen: Digest,
        result: Value,
        at: Timestamp,
    ) -> Result<(), Violation> {
        let shows_it = |entry: &StepState| {
            let shown = entry.gate.as_ref().is_some_and(|gate| gate.hash == seen);
            entry.phase == Phase::Waiting && shown
        };
        let seq = self.next_seq;
        let entry = self.entry_where(&step, "open for this content", shows_it)?;
        entry.phase = Phase::Done;
        if let Some(gate) = &mut entry.gate {
            gate.seq = seq;
        }
        entry.evidence.result = Some(Digest::of(result.to_string().as_bytes()));
        entry.result = Some(Arc::new(result));
        entry.ended_at = at;
        self.untold_answers.insert(step.clone());
        self.unused_answers.insert(step);
        Ok(())
    }

    /// An answer is used when the first step that needs its gate starts.
    pub(super) fn answers_used_by(&self, key: &Key) -> Vec<Address> {
        if self.unused_answers.is_empty() {
            return Vec::new();
        }
        let needs = key.get().needs;
        needs.keys().filter_map(|need| self.unused_answers.get(need.as_str())).cloned().collect()
    }

    pub(super) fn use_answer(&mut self, gate: &Address) {
        self.unused_answers.remove(gate);
        if let Some(gate) = self.steps.get_mut(gate).and_then(|entry| entry.gate.as_mut()) {
            gate.consumed = true;
        }
    }

    /// A step is done that rests on answers: what it left tells of them.
    pub(super) fn tell_answers(&mut self, step: &Address) {
        if self.untold_answers.is_empty() {
            return;
        }
        let key = self.steps.get(step).and_then(|entry| entry.key.as_ref());
        let needs = key.map(|key| key.get().needs).unwrap_or_default();
        self.untold_answers.retain(|gate| !needs.contains_key(gate.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use crate::{address::Address, digest::Digest, event::Event, state::Phase, testing::Bench};

    const STEPS: &str = "steps:\n  - { id: g, gate: 'Go?' }\n  - { id: a, run: a }";

    #[test]
    fn an_answer_is_used_by_a_start_and_told_by_an_end() {
        for (script, unused, untold) in [
            ("", 0, 0),
            // The run waited for it: a resume goes on.
            ("g=approve", 1, 1),
            ("g=approve R", 0, 1),
            // A step that began and was lost has told nothing.
            ("g=approve R a~", 0, 1),
            ("g=approve R a!", 0, 0),
        ] {
            let state = Bench::new(STEPS).tell(script).run.state;
            assert_eq!(state.unused_answers.len(), unused, "{script}");
            assert_eq!(state.untold_answers.len(), untold, "{script}");
        }
    }

    #[test]
    fn a_gate_that_was_skipped_and_is_asked_later_is_asked_once() {
        let steps =
            "steps:\n  - { id: a, run: a }\n  - { id: g, gate: 'Go?' }\n  - { id: b, run: b }";
        let mut bench = Bench::new(steps).tell("");
        let step = Address::from_text("g");
        let needs = [("a".to_owned(), Digest::of(b"another a"))].into();
        bench.record(Event::StepSkipped {
            step: step.clone(),
            reason: "passed over".into(),
            needs,
            reads: std::collections::BTreeMap::new(),
        });
        let bench = bench.tell("a! g=approve R");
        assert_eq!(bench.run.state.step(&step).unwrap().phase, Phase::Done, "{}", bench.log);
        assert!(bench.log.ends_with("start b #1: b\n"), "{}", bench.log);
    }

    #[test]
    fn a_question_is_something_that_came_of_a_resume() {
        let steps = "steps:\n  - { id: a, run: a }\n  - { id: g, gate: 'Go?' }";
        let acted = |script: &str| Bench::new(steps).tell(script).run.state.acted_since_resume;
        assert!(!acted("R"), "what ran before goes on");
        assert!(acted("R a!"));
    }
}
