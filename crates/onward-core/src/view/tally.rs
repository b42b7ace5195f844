//! What became of every step of a run, for the last words about it.
//!
//! Invariant: a step that `counts` counts is in exactly one class, so that the classes add up to
//! its total.

use super::{is_over, is_shown, is_skipped};
use crate::{
    evidence::Cause,
    graph::NodeId,
    run::Run,
    state::{Phase, StepState},
    time::Timestamp,
};

/// How many steps came to what; `again` is a part of `ran`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub ran: usize,
    pub again: usize,
    /// Done before this drive, or while no driver lived.
    pub kept: usize,
    /// Another system did it.
    pub taken_over: usize,
    pub answered: usize,
    /// A person did it, and said so with `onward done`.
    pub by_hand: usize,
    pub skipped: usize,
    pub failed: usize,
    pub stopped: usize,
    pub parked: usize,
    pub running: usize,
    /// Gates that are open.
    pub waiting: usize,
    pub to_come: usize,
}

impl Tally {
    /// `since` = when this drive began.
    pub fn of(run: &Run, since: Timestamp) -> Self {
        let mut tally = Self::default();
        for id in run.graph.in_order() {
            if is_shown(run, id) {
                tally.add(run, id, since);
            }
        }
        tally
    }

    fn add(&mut self, run: &Run, id: NodeId, since: Timestamp) {
        let address = &run.graph.node(id).address;
        let entry = run.state.step(address);
        if is_over(run, id) {
            let is_skipped = is_skipped(run, id);
            *if is_skipped { &mut self.skipped } else { self.done(entry, since) } += 1;
            return;
        }
        let class = match run.state.phase(address) {
            Phase::Failed if run.state.is_parked(address) => &mut self.parked,
            Phase::Failed if entry.is_some_and(is_stopped) => &mut self.stopped,
            Phase::Failed => &mut self.failed,
            Phase::Running => &mut self.running,
            Phase::Waiting => &mut self.waiting,
            // Done work that is looked at again is to come, too.
            Phase::Pending
            | Phase::Lost
            | Phase::Stale
            | Phase::Done
            | Phase::Tolerated
            | Phase::Skipped => &mut self.to_come,
        };
        *class += 1;
    }

    /// The class of a step that is done, or tolerated.
    fn done(&mut self, entry: Option<&StepState>, since: Timestamp) -> &mut usize {
        let Some(it) = entry else { return &mut self.kept };
        if it.ended_at < since && it.started_at < since {
            &mut self.kept
        } else if it.elsewhere {
            &mut self.taken_over
        } else if it.gate.is_some() {
            &mut self.answered
        } else if it.attempts > 0 {
            // What was waited for ended in this drive, too.
            self.again += usize::from(it.started_at >= since && it.begun() > 1);
            &mut self.ran
        } else {
            &mut self.by_hand
        }
    }
}

/// The user stopped it, and it did not end by itself.
pub fn is_stopped(step: &StepState) -> bool {
    let by_user = step.failure.as_deref().is_some_and(|(cause, _)| *cause == Cause::Interrupted);
    step.phase == Phase::Failed && by_user
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing::Bench, view::counts};

    const YAML: &str = "steps:
  - { id: a, run: x }
  - { id: s, run: x, when: '{{ false }}' }
  - { id: grp, when: '{{ false }}', steps: [{ id: one, run: x }, { id: two, run: x }] }
  - { id: m, each: [p, q], steps: [{ id: b, run: y }, { id: c, run: y }] }
  - { id: t, run: x, on_failure: continue }
  - { id: g, gate: Go on? }
  - id: l
    repeat: { max: 2, until: '{{ false }}', on_max: continue }
    steps: [{ id: d, run: z }]
";

    #[test]
    fn every_step_is_in_one_class_after_every_record() {
        let told = "a! m[p]/b? m[q]/b! m[q]/c! ";
        let bench = Bench::new(YAML).tell(told);
        let middle = bench.records[bench.records.len() / 2].at;
        for since in [Timestamp::default(), middle, bench.run.state.last_at.plus_ms(1)] {
            let mut run = Run::new(bench.run.defs.clone(), crate::state::State::default());
            for record in bench.records.iter().cloned() {
                run.after(record).unwrap();
                let it = Tally::of(&run, since);
                let over = it.ran + it.kept + it.taken_over + it.answered + it.by_hand + it.skipped;
                let open =
                    it.failed + it.stopped + it.parked + it.running + it.waiting + it.to_come;
                let counts = counts(&run);
                let told = (over, over + open);
                assert_eq!(told, (counts.done as usize, counts.total as usize), "{it:?}");
            }
        }
    }
}
