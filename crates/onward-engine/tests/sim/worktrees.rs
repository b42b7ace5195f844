//! Workflows that work in worktrees, killed at every call, also while a person breaks them.

use crate::{
    FIRST,
    breaks::Break,
    crash::Crash,
    harness::{Case, Fate, Tally},
};

/// Worktrees of their own side by side, and one that two steps share.
const WORKTREES: &str = "
onward: 1
name: worktrees
limits: { parallel: 3 }
defaults: { retry: { max: 6, backoff: 1s, on: [failed, crash, unproved] } }
steps:
  - { id: draft, needs: [], each: [ann, bob], as: who, worktree: true,
      run: 'write {{ who }}.txt draft-of-{{ who }}; write extra.txt beyond',
      writes: ['{{ who }}.txt'] }
  - { id: one, needs: [], worktree: desk, agent: claude, reads: [base.txt],
      prompt: write one.txt one-one; write notes.txt noted; fail 1, writes: [one.txt] }
  - { id: two, needs: [one], worktree: desk, reads: [one.txt],
      run: write two.txt two; write last.txt last; commit, writes: [two.txt] }
  - { id: end, needs: [draft, two], run: write end.txt over, writes: [end.txt] }
";

/// What is done twice shows: no person breaks these.
const EDITS: &str = "
onward: 1
name: edits
defaults: { retry: { max: 3, backoff: 1s, on: [failed] } }
steps:
  - { id: seed, run: write seed.txt seed, writes: [seed.txt] }
  - id: desk
    worktree: true
    steps:
      - { id: a, agent: claude, prompt: append log.txt one; append seed.txt more; append a.txt a,
          writes: [a.txt] }
      - { id: b, agent: claude, prompt: append log.txt two; delete base.txt; fail 1 }
      - { id: c, run: append log.txt three; append c.txt c; fail 1, writes: [c.txt] }
";

/// How many crashes each test has to go through.
const ONCE: u64 = 6_000;
const TWICE: u64 = 10_000;
const BROKEN: u64 = 4_000;
const BROKEN_TWICE: u64 = 8_000;

#[test]
fn worktrees_survive_a_crash_at_every_call() {
    let mut tally = Tally::default();
    for text in [WORKTREES, EDITS] {
        let case = Case::in_repository(text);
        for crash in Crash::ALL {
            for seed in 0..4 {
                case.crash_once_everywhere(crash, seed, &mut tally);
            }
        }
    }
    tally.require(ONCE);
}

for_each_first_crash!(worktrees_survive_a_crash_at_every_call_and_another_after_it, |first| {
    let mut tally = Tally::default();
    for (text, stride) in [(WORKTREES, 211), (EDITS, 149)] {
        Case::in_repository(text).crash_twice_after(first, stride, &mut tally);
    }
    tally.require(TWICE / FIRST);
});

#[test]
fn worktrees_that_a_person_broke_after_a_crash_at_any_call_cost_nothing_that_was_committed() {
    let mut tally = Tally::default();
    let case = Case::in_repository(WORKTREES);
    for how in Break::ALL {
        for crash in [Crash::Engine, Crash::Processes, Crash::Power] {
            for fuse in 0..case.calls() {
                let seed = fuse * 31 + 7;
                let fate = Fate { crashes: &[(fuse, crash)], breaks: Some(how), seed };
                case.live(&fate, &mut tally);
            }
        }
    }
    tally.require(BROKEN);
    assert!(tally.broken * 2 > tally.crashes, "most lives have a worktree to break");
    assert!(tally.refused > 0, "a refusal was seen");
}

#[test]
fn broken_worktrees_survive_another_crash_while_they_are_mended() {
    let mut tally = Tally::default();
    let case = Case::in_repository(WORKTREES);
    for (number, how) in (0..).zip(Break::ALL) {
        for crash in [Crash::Engine, Crash::Processes, Crash::Power] {
            for one in (number..case.calls()).step_by(7) {
                for two in (0..120).step_by(11) {
                    let crashes = &[(one, Crash::Processes), (two, crash)];
                    let fate = Fate { crashes, breaks: Some(how), seed: one * 7919 + two };
                    case.live(&fate, &mut tally);
                }
            }
        }
    }
    tally.require(BROKEN_TWICE);
}

#[test]
fn fates_that_once_lost_work_are_survived() {
    let case = Case::in_repository(WORKTREES);
    let mut tally = Tally::default();
    let crashes = [(53, Crash::Engine), (82, Crash::Power)];
    case.live(&Fate { crashes: &crashes, breaks: None, seed: 419_789 }, &mut tally);
    let (crashes, breaks) = ([(178, Crash::Engine)], Some(Break::Directory));
    case.live(&Fate { crashes: &crashes, breaks, seed: 5525 }, &mut tally);
}
