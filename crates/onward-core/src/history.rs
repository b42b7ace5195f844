//! How long steps took, in this run and in others of the same workflow: what that says about the
//! next time.

use std::collections::BTreeMap;

use crate::{
    address::Address,
    state::{Phase, State},
};

/// The longest time that each declared step took so far, in milliseconds.
///
/// Invariant: a step is known by where it is declared. The items of an `each` and the turns of a
/// `repeat` are one step, as another run has others of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(BTreeMap<String, u64>);

impl History {
    /// Takes in what a run knows: its attempts that came to their end.
    pub fn add(&mut self, state: &State) {
        let done = state.steps.iter().filter(|(_, it)| it.phase == Phase::Done && it.attempts > 0);
        for (step, entry) in done {
            let longest = self.0.entry(declared(step)).or_default();
            *longest = (*longest).max(entry.ended_at.ms_since(entry.started_at));
        }
    }

    pub fn longest_ms(&self, step: &Address) -> Option<u64> {
        self.0.get(&declared(step)).copied()
    }
}

/// An address without its keys, in which no bracket can stand.
fn declared(step: &Address) -> String {
    let mut parts = step.as_str().split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    let behind = parts.filter_map(|part| part.split_once(']')).map(|(_, rest)| rest);
    behind.fold(first, |whole, rest| whole + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn the_longest_instance_of_a_step_counts_in_whatever_run() {
        const YAML: &str = "steps: [{ id: a, run: x }, { id: m, each: [p, q], steps: [{ id: b, \
            run: x }] }, { id: c, run: x }]";
        let mut history = History::default();
        for (told, longest_ms) in [("a! m[p]/b! m[q]/b!", 7_000), ("a!", 9_000)] {
            let mut state = Bench::new(YAML).tell(told).run.state;
            for (at, entry) in state.steps.values_mut().enumerate() {
                entry.ended_at = entry.started_at.plus_ms(longest_ms - 1_000 * at as u64);
            }
            history.add(&state);
        }
        let longest = |step| history.longest_ms(&Address::from_text(step));
        assert_eq!([longest("a"), longest("m[new]/b")], [Some(9_000), Some(6_000)]);
        assert_eq!([longest("c"), longest("m")], [None, None]);
    }

    #[test]
    fn a_step_is_known_by_where_it_is_declared() {
        for (step, known) in
            [("a", "a"), ("r[2]/m[A%2F]/b", "r/m/b"), ("m[x]", "m"), ("r[10]/a", "r/a")]
        {
            assert_eq!(declared(&Address::from_text(step)), known);
        }
    }
}
