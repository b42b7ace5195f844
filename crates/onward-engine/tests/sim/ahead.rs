//! Starts that are announced ahead: whatever crashes while attempts wait for a slot, none of them
//! is lost, begun twice, or begun without the engine.

use crate::{
    crash::Crash,
    harness::{Case, Tally, state},
};

/// More that is ready than slots, with what may not wait among it.
const QUEUE: &str = "
onward: 1
name: queue
limits: { parallel: 2 }
defaults: { retry: { max: 2, backoff: 1s, on: [failed] } }
steps:
  - { id: a, needs: [], run: write a.txt alpha, writes: [a.txt] }
  - { id: b, needs: [], run: work }
  - { id: c, needs: [], run: 'result {\"n\":7}' }
  - { id: d, needs: [], run: 'work; result {\"n\":1}' }
  - { id: e, needs: [], run: work; fail 1 }
  - { id: f, needs: [a, c], run: write f.txt phi, reads: [a.txt], writes: [f.txt] }
  - { id: ship, needs: [b], run: outside shipped, effect: outside,
      probe: { run: probe shipped, absent: 1 } }
  - { id: g, needs: [d], run: 'result {\"n\":{{ steps.d.result.n }}}' }
  - { id: h, needs: [e, f, ship, g], run: append h.txt end, writes: [h.txt] }
";

/// Slots that stay taken while others wait for them.
const TAKEN: &str = "
onward: 1
name: taken
limits: { parallel: 2 }
steps:
  - { id: a, needs: [], run: append a.txt one; long; append a.txt two, writes: [a.txt] }
  - { id: b, needs: [], run: long }
  - { id: c, needs: [], run: 'result {\"n\":1}' }
  - { id: d, needs: [], run: work }
  - { id: e, needs: [c, d], run: append e.txt once, writes: [e.txt] }
";

const FIRST: u64 = Crash::ALL.len() as u64;
const QUEUE_TWICE: u64 = 20_000;
const TAKEN_TWICE: u64 = 8_000;

fn crash_twice(text: &str, first: Crash, stride: usize, required: u64) {
    let (case, mut tally) = (Case::eager(text), Tally::default());
    case.crash_once_everywhere(first, 3, &mut tally);
    case.crash_twice_after(first, stride, &mut tally);
    tally.require(required / FIRST);
}

for_each_first_crash!(a_queue_survives_a_crash_at_every_call_and_another_after_it, |first| {
    crash_twice(QUEUE, first, 5, QUEUE_TWICE);
});

for_each_first_crash!(what_waits_for_taken_slots_survives_a_crash_at_every_call, |first| {
    crash_twice(TAKEN, first, 5, TAKEN_TWICE);
});

#[test]
fn random_workflows_survive_random_crashes_with_starts_announced_ahead() {
    let mut tally = Tally::default();
    for seed in 0..100 {
        let text = crate::random::workflow(seed);
        Case::eager(&text).crash_at_random(seed, 40, &mut tally);
    }
    tally.require(5_000);
}

#[test]
fn what_waits_is_announced_and_what_waits_too_long_is_given_back_without_having_begun() {
    let world = Case::eager(QUEUE).undisturbed_world();
    assert!(world.waited > 0, "nothing waited");
    let attempts = |id: &str, world: &crate::world::SimWorld| {
        let state = state(world);
        state.steps.iter().find(|(step, _)| step.as_str() == id).map(|(_, it)| it.attempts)
    };
    for id in ["a", "b", "c", "d", "f", "ship", "g", "h"] {
        assert_eq!(attempts(id, &world), Some(1), "{id}");
    }
    assert_eq!(attempts("e", &world), Some(2), "it fails once");
    let world = Case::eager(TAKEN).undisturbed_world();
    for (id, number) in [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 1)] {
        assert_eq!(attempts(id, &world), Some(number), "{id}");
    }
    let spawned =
        |it: &(&str, u32)| world.spawns.keys().any(|key| key.0.as_str() == it.0 && key.1 == it.1);
    assert!(![("c", 1), ("d", 1)].iter().any(spawned), "{:?}", world.spawns);
}
