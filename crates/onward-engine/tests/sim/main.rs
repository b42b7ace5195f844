//! The real engine on a simulated machine, killed at every call it makes and again while it
//! recovers. Whatever happens, the run must end as the undisturbed one did, with every finished
//! step run once.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a law looks at the events it is about")]

/// Cuts a long exploration into tests that run side by side, one for each way of the first crash.
macro_rules! for_each_first_crash {
    ($name:ident, $explore:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn engine() {
                $explore(Crash::Engine);
            }

            #[test]
            fn processes() {
                $explore(Crash::Processes);
            }

            #[test]
            fn power() {
                $explore(Crash::Power);
            }

            #[test]
            fn hands() {
                $explore(Crash::Hands);
            }
        }
    };
}

mod agents;
mod agree;
mod ahead;
mod breaks;
mod chance;
mod crash;
mod disk;
mod forks;
mod harness;
mod moment;
mod random;
mod refused;
mod repo;
mod systems;
mod toy;
mod trees;
mod worktrees;
mod world;

use std::collections::BTreeSet;

use crash::{Crash, Window};
use harness::{Case, Tally};

const DIAMOND: &str = "
onward: 1
name: diamond
limits: { parallel: 2 }
steps:
  - { id: a, run: write a.txt alpha-alpha, writes: [a.txt] }
  - { id: b, needs: [a], run: write b.txt beta, writes: [b.txt] }
  - { id: c, needs: [a], run: work; write c.txt gamma-gamma, writes: [c.txt] }
  - { id: d, needs: [b, c], run: write d.txt delta, writes: [d.txt] }
";

const RETRY: &str = "
onward: 1
name: retry
defaults: { retry: { max: 3, backoff: 1s, on: [failed] } }
steps:
  - { id: a, run: write a.txt one-one-one; fail 1, writes: [a.txt] }
  - { id: b, run: write a.txt two-two-two; write b.txt three; fail 2, writes: [a.txt, b.txt] }
";

const EVERYTHING: &str = "
onward: 1
name: everything
limits: { parallel: 3 }
defaults: { retry: { max: 2, backoff: 1s, on: [failed, crash] } }
steps:
  - { id: list, run: 'write list.txt x; result ''{\"names\":[\"p\",\"q\"]}''', writes: [list.txt] }
  - id: fan
    each: '{{ steps.list.result.names }}'
    as: name
    steps:
      - { id: make, run: 'write {{ name }}.txt made; fail 1', writes: ['{{ name }}.txt'] }
      - { id: mark, run: 'work' }
  - { id: ask, gate: 'Go on?', shows: [list.txt] }
  - id: round
    repeat: { max: 3, until: '{{ steps.score.result.n >= 2 }}' }
    steps:
      - { id: score, run: 'result {\"n\":{{ round }}}' }
      - id: odd
        when: '{{ steps.score.result.n == 1 }}'
        run: write odd.txt odd
        writes: [odd.txt]
  - { id: ship, run: outside shipped, effect: outside, probe: { run: probe shipped, absent: 1 } }
  - { id: end, run: 'write end.txt over', writes: [end.txt] }
";

/// Agents that change what they do not declare, twice what one did would show.
const EDITS: &str = "
onward: 1
name: edits
defaults: { retry: { max: 3, backoff: 1s, on: [failed] } }
steps:
  - { id: seed, run: write seed.txt seed; write old.txt old-old, writes: [seed.txt, old.txt] }
  - { id: a, agent: claude, prompt: append log.txt one; append seed.txt more; append a.txt a,
      writes: [a.txt] }
  - { id: b, agent: claude, prompt: append log.txt two; delete old.txt; write b.txt beta; fail 1 }
  - { id: c, run: append log.txt three; append c.txt c; fail 2, edits: true, writes: [c.txt] }
";

/// What is declared tells parallel edits apart.
const TOGETHER: &str = "
onward: 1
name: together
limits: { parallel: 2 }
steps:
  - { id: a, needs: [], agent: claude, prompt: append a.txt one; work; append a.txt two,
      writes: [a.txt] }
  - { id: b, needs: [], agent: claude, prompt: append b.txt one; append b.txt two, writes: [b.txt] }
  - { id: c, agent: claude, prompt: append c.txt one; append log.txt end, writes: [c.txt] }
";

/// Agents that say what they spend, in which session, and that a limit holds.
const TALK: &str = "
onward: 1
name: talk
agents: { talker: { use: claude } }
steps:
  - id: a
    agent: talker
    prompt: >-
      say {\"session\":\"s-a\"}; append a.txt one;
      say {\"spent\":{\"input_tokens\":10,\"output_tokens\":1,\"usd\":0.5}}; long;
      say {\"spent\":{\"input_tokens\":5}}; append a.txt two; say {\"answer\":\"hello\"}
    writes: [a.txt]
  - id: b
    agent: talker
    prompt: >-
      say {\"spent\":{\"input_tokens\":7,\"usd\":0.25}}; append b.txt b;
      append log.txt b; limited;
      say {\"spent\":{\"output_tokens\":3}}; say {\"answer\":\"x\",\"result\":{\"n\":1}}
    writes: [b.txt]
  - { id: c, run: 'write c.txt {{ steps.a.stdout }}-{{ steps.b.result.n }}', writes: [c.txt] }
";

/// Outputs that only `durability: full` brings to the disk.
const LAZY: &str = "
onward: 1
name: lazy
limits: { parallel: 2 }
steps:
  - { id: a, run: write a.txt alpha-alpha, writes: [a.txt] }
  - { id: full-b, needs: [a], run: write b.txt beta, reads: [a.txt], writes: [b.txt],
      durability: full }
  - { id: c, needs: [a], run: work; write c.txt gamma-gamma, reads: [a.txt], writes: [c.txt] }
  - { id: d, needs: [full-b, c], run: 'write d.txt delta; result {\"n\":1}', writes: [d.txt],
      reads: [b.txt, c.txt] }
  - { id: full-ship, run: outside shipped, effect: outside,
      probe: { run: probe shipped, absent: 1 } }
  - { id: e, run: 'write e.txt {{ steps.d.result.n }}-{{ steps.d.result.n }}', writes: [e.txt] }
";

/// So many tests are one exploration, by the way of the first crash.
const FIRST: u64 = Crash::ALL.len() as u64;
/// How many crashes each exploration has to go through: one that explores nothing proves nothing.
const ONCE: u64 = 15_000;
const DIAMOND_TWICE: u64 = 79_000;
const RETRY_TWICE: u64 = 20_000;
const EDITS_TWICE: u64 = 40_000;
const EVERYTHING_TWICE: u64 = 25_000;
const LAZY_TWICE: u64 = 8_000;
const TALK_ONCE: u64 = 500;
const TALK_RANDOM: u64 = 500;
const KEPT: u64 = 300;
const RANDOM: u64 = 15_000;
const FORKS: u64 = 1_000;
const _: () = assert!(
    ONCE + DIAMOND_TWICE + RETRY_TWICE + EDITS_TWICE + EVERYTHING_TWICE + RANDOM >= 100_000,
    "together they keep what docs/testing.md promises"
);

for_each_first_crash!(a_run_survives_a_crash_at_every_call, |crash| {
    let mut tally = Tally::default();
    let cases = [(DIAMOND, 8), (RETRY, 8), (EVERYTHING, 8), (EDITS, 3), (TOGETHER, 3)];
    for (text, seeds) in cases {
        let case = Case::new(text);
        for seed in 0..seeds {
            case.crash_once_everywhere(crash, seed, &mut tally);
        }
    }
    tally.require(ONCE / FIRST);
});

fn crash_twice(text: &str, first: Crash, stride: usize, required: u64) {
    let mut tally = Tally::default();
    Case::new(text).crash_twice_after(first, stride, &mut tally);
    tally.require(required / FIRST);
}

for_each_first_crash!(
    a_diamond_survives_a_crash_at_every_call_and_another_at_every_call_after_it,
    |first| crash_twice(DIAMOND, first, 1, DIAMOND_TWICE)
);

for_each_first_crash!(retries_survive_a_crash_at_every_call_and_another_after_it, |first| {
    crash_twice(RETRY, first, 4, RETRY_TWICE);
});

for_each_first_crash!(edits_survive_a_crash_at_every_call_and_another_after_it, |first| {
    crash_twice(EDITS, first, 23, EDITS_TWICE);
});

#[test]
fn b1_an_output_that_a_power_cut_took_is_made_again_and_nothing_rests_on_what_is_left() {
    let case = Case::lazy(LAZY);
    let mut tally = Tally::default();
    for seed in 0..4 {
        case.crash_once_everywhere(Crash::Power, seed, &mut tally);
    }
    for crash in Crash::ALL {
        case.crash_twice_everywhere(crash, Crash::Power, 17, &mut tally);
        case.crash_twice_everywhere(Crash::Power, crash, 13, &mut tally);
    }
    tally.require(LAZY_TWICE);
}

#[test]
fn what_agents_spend_is_billed_once_whatever_crashes() {
    let case = Case::new(TALK);
    let mut tally = Tally::default();
    for crash in Crash::ALL {
        case.crash_once_everywhere(crash, 1, &mut tally);
    }
    tally.require(TALK_ONCE);
}

#[test]
fn what_agents_spend_is_billed_once_also_after_crashes_in_the_recovery() {
    let mut tally = Tally::default();
    Case::new(TALK).crash_at_random(7, 400, &mut tally);
    tally.require(TALK_RANDOM);
}

for_each_first_crash!(
    a_run_with_everything_in_it_survives_a_crash_at_every_call_and_a_power_cut_after_it,
    |first| {
        let mut tally = Tally::default();
        Case::new(EVERYTHING).crash_twice_everywhere(first, Crash::Power, 5, &mut tally);
        tally.require(EVERYTHING_TWICE / FIRST);
    }
);

#[test]
fn random_workflows_survive_random_crashes() {
    let mut tally = Tally::default();
    for seed in 0..150 {
        let text = random::workflow(seed);
        Case::new(&text).crash_at_random(seed, 60, &mut tally);
    }
    tally.require(RANDOM);
}

#[test]
fn what_was_kept_of_a_journal_and_its_tail_fold_as_the_whole_after_a_crash_at_every_call() {
    let mut tally = Tally::default();
    let power = &[Crash::Power][..];
    for (text, crashes) in [(DIAMOND, &Crash::ALL[..]), (EVERYTHING, power), (TALK, power)] {
        let case = Case::new(text);
        for crash in crashes {
            case.fold_from_records(*crash, 5, &mut tally);
        }
    }
    tally.require(KEPT);
}

#[test]
fn a_life_that_goes_on_from_a_fork_is_the_one_that_came_there_by_itself() {
    let mut tally = Tally::default();
    let cases = [DIAMOND, EVERYTHING, EDITS, TALK].map(Case::new);
    for case in cases.iter().chain(&[Case::lazy(LAZY), Case::eager(EVERYTHING)]) {
        for crash in [Crash::Engine, Crash::Processes, Crash::Power] {
            case.check_forks(crash, 11, &mut tally);
        }
    }
    tally.require(FORKS);
}

for_each_first_crash!(every_window_between_two_facts_has_been_hit_by_a_crash, |crash| {
    let mut tally = Tally::default();
    for text in [RETRY, EVERYTHING, EDITS] {
        let case = Case::new(text);
        case.crash_once_everywhere(crash, 99, &mut tally);
        case.crash_twice_everywhere(crash, crash, 37, &mut tally);
    }
    assert_eq!(tally.windows, BTreeSet::from(Window::ALL));
});
