//! What a run took, and what of it was lost: one story each.

use super::*;
use crate::{
    event::{AttemptAdopted, Certainty, PauseCause, RunResumed},
    evidence::{Cause, Evidence},
    said::Spent,
    state::tests::{finished, opened, started},
};

/// Events at seconds; the bill as text, in seconds and dollars.
#[track_caller]
fn check(events: &[(i64, Event)], now: Option<i64>, expected: &str) {
    let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
    let mut biller = Biller::default();
    biller.take(&Record { seq: 0, at: at(0), epoch: 1, batch: 1, event: opened() });
    for (seconds, event) in events {
        let event = event.clone();
        biller.take(&Record { seq: 1, at: at(*seconds), epoch: 1, batch: 1, event });
    }
    let bill = biller.bill(now.map(at));
    let text = |sum: &Sum| format!("{}x{}s${}", sum.attempts, sum.seconds, sum.usd);
    let causes: Vec<String> =
        bill.by_cause.iter().map(|(cause, sum)| format!("{cause}={}", text(sum))).collect();
    let all = [
        format!("useful {}", text(&bill.useful)),
        format!("repeated {}", text(&bill.repeated)),
        format!("reverted {}", text(&bill.reverted)),
        format!("under way {}", text(&bill.under_way)),
        format!("waiting {}", bill.waiting.seconds),
        causes.join(" "),
    ];
    assert_eq!(all.join("; "), expected);
}

fn spent(step: &str, attempt: u32, dollars: u64) -> Event {
    let usd = Usd(dollars * 1_000_000);
    let step = Address::from_text(step);
    Event::AttemptSpent { step, attempt, spent: Spent::of_usd(usd) }
}

fn failed(step: &str, attempt: u32, cause: Cause) -> Event {
    finished(step, attempt, Outcome::Failed { cause, detail: String::new() })
}

fn lost(step: &str, attempt: u32, reverted: &[&str]) -> Event {
    Event::AttemptLost {
        step: Address::from_text(step),
        attempt,
        cause: Cause::Interrupted,
        rung: crate::recovery::Rung::DiedDirty,
        reverted: reverted.iter().map(|it| (*it).to_owned()).collect(),
        rescue: None,
    }
}

fn resumed(count: u32) -> Event {
    Event::RunResumed(Box::new(RunResumed {
        code: "continue".into(),
        summary: String::new(),
        mode: crate::event::Mode::Autopilot,
        count,
        boot_id: "boot".into(),
        accepted: Vec::new(),
        entered: None,
        last_sign: None,
        git: None,
        reverts: Vec::new(),
    }))
}

#[test]
fn work_that_was_never_interrupted_is_all_useful() {
    let events = [
        (1, started("a", 1)),
        (2, spent("a", 1, 3)),
        (11, finished("a", 1, Outcome::Done)),
        (11, started("b", 1)),
        (12, finished("b", 1, Outcome::Done)),
        (12, Event::RunEnded { status: EndStatus::Completed, why: None }),
    ];
    let expected = "useful 2x11s$3; repeated 0x0s$0; reverted 0x0s$0; under way 0x0s$0; \
                    waiting 0; ";
    check(&events, Some(9999), expected);
}

#[test]
fn e24_what_was_announced_and_never_began_cost_nothing() {
    let step = Address::from_text("a");
    let events = [
        (0, started("a", 1)),
        (3, crate::event::lost_before_spawn(&step, 1)),
        (4, started("a", 2)),
        (6, finished("a", 2, Outcome::Done)),
    ];
    let useful = |sum: &str| {
        format!("useful {sum}; repeated 0x0s$0; reverted 0x0s$0; under way 0x0s$0; waiting 0; ")
    };
    check(&events, None, &useful("1x2s$0"));
    check(&events[..2], None, &useful("0x0s$0"));
}

#[test]
fn e25_the_wait_for_a_slot_is_no_work() {
    let mut end = finished("a", 1, Outcome::Done);
    if let Event::AttemptFinished(it) = &mut end {
        it.waited = 7_000;
    }
    let events = [(0, started("a", 1)), (9, end)];
    let expected = "useful 1x2s$0; repeated 0x0s$0; reverted 0x0s$0; under way 0x0s$0; \
                    waiting 0; ";
    check(&events, None, expected);
}

#[test]
fn a_failed_try_is_paid_twice_and_what_was_undone_is_named_apart() {
    let mut again = started("a", 2);
    if let Event::AttemptStarted(it) = &mut again {
        it.reverts.push(crate::event::Revert {
            path: "x".into(),
            left: None,
            base: None,
            rescue: "r".into(),
            ..crate::event::Revert::default()
        });
    }
    let tries = |second: Event| {
        [
            (0, started("a", 1)),
            (1, spent("a", 1, 2)),
            (5, failed("a", 1, Cause::Timeout)),
            (6, second),
            (9, finished("a", 2, Outcome::Done)),
        ]
    };
    let kept = "useful 1x3s$0; repeated 1x5s$2; reverted 0x0s$0; under way 0x0s$0; \
                waiting 0; timeout=1x5s$2";
    check(&tries(started("a", 2)), None, kept);
    let undone = "useful 1x3s$0; repeated 0x0s$0; reverted 1x5s$2; under way 0x0s$0; \
                  waiting 0; timeout=1x5s$2";
    check(&tries(again), None, undone);
}

#[test]
fn work_that_went_on_in_its_session_is_not_done_again() {
    let mut again = started("a", 2);
    if let Event::AttemptStarted(it) = &mut again {
        it.continues = true;
    }
    let events = [
        (0, started("a", 1)),
        (1, spent("a", 1, 2)),
        (5, failed("a", 1, Cause::UsageLimit)),
        (60, again),
        (61, spent("a", 2, 1)),
        (63, finished("a", 2, Outcome::Done)),
    ];
    let expected = "useful 2x8s$3; repeated 0x0s$0; reverted 0x0s$0; under way 0x0s$0; \
                    waiting 0; ";
    check(&events, None, expected);
}

#[test]
fn a_killed_attempt_is_in_the_row_of_its_step_and_of_its_drive() {
    let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
    let mut biller = Biller::default();
    for (seconds, event) in [
        (0, opened()),
        (0, started("a", 1)),
        (9, Event::Note { text: String::new(), step: None }),
        (10, spent("b", 1, 0)),
        (100, resumed(1)),
        (100, lost("a", 1, &[])),
        (101, started("a", 2)),
        (102, spent("a", 2, 3)),
        (103, finished("a", 2, Outcome::Done)),
    ] {
        biller.take(&Record { seq: 1, at: at(seconds), epoch: 1, batch: 1, event });
    }
    let bill = biller.bill(None);
    assert_eq!((bill.steps["a"].attempts, bill.steps["a"].seconds), (2, 12.0));
    let drives: Vec<f64> = bill.drives.iter().map(|it| it.seconds).collect();
    assert_eq!(drives, [10.0, 2.0]);
}

#[test]
fn a_killed_driver_costs_the_time_until_a_person_came() {
    let events = [
        (0, started("a", 1)),
        (0, started("b", 1)),
        (10, spent("a", 1, 1)),
        (100, resumed(1)),
        (100, lost("a", 1, &["x"])),
        (100, lost("b", 1, &[])),
        (101, started("a", 2)),
    ];
    let expected = "useful 0x0s$0; repeated 1x10s$0; reverted 1x10s$1; under way 1x0s$0; \
                    waiting 90; interrupted=2x20s$1 killed=0x90s$0";
    check(&events, None, expected);
}

#[test]
fn waiting_goes_by_what_was_waited_for_and_up_to_now() {
    let pause = |cause| Event::RunPaused { cause, until: None };
    let events = [
        (1, pause(PauseCause::Gate)),
        (11, resumed(1)),
        (12, pause(PauseCause::Limit)),
        (112, resumed(2)),
        (113, Event::RunEnded { status: EndStatus::Failed, why: None }),
    ];
    let head = "useful 0x0s$0; repeated 0x0s$0; reverted 0x0s$0; under way 0x0s$0; ";
    let past = format!("{head}waiting 110; gate=0x10s$0 limit=0x100s$0");
    check(&events, None, &past);
    let now = format!("{head}waiting 117; failed=0x7s$0 gate=0x10s$0 limit=0x100s$0");
    check(&events, Some(120), &now);
}

#[test]
fn finished_work_that_became_stale_was_done_in_vain_and_adopted_work_was_not() {
    let step = Address::from_text("a");
    let stale = Event::StepInvalidated { step: step.clone(), causes: Vec::new() };
    let adopted = Event::AttemptAdopted(Box::new(AttemptAdopted {
        step,
        source: "evidence".into(),
        certainty: Certainty::Inferred,
        evidence: Evidence::default(),
        result: None,
        by: None,
    }));
    let events = [
        (0, started("a", 1)),
        (4, finished("a", 1, Outcome::Done)),
        (5, stale),
        (6, started("a", 2)),
        (8, adopted),
    ];
    let expected = "useful 1x2s$0; repeated 1x4s$0; reverted 0x0s$0; under way 0x0s$0; \
                    waiting 0; stale=1x4s$0";
    check(&events, None, expected);
}

#[test]
fn another_attempt_costs_what_attempts_at_that_step_have_cost() {
    let step = |spent, attempts| StepState { spent: Usd(spent), attempts, ..Default::default() };
    assert_eq!(again(&step(0, 3)), None);
    assert_eq!(again(&step(7, 1)), Some(Usd(7)));
    assert_eq!(again(&step(7, 2)), Some(Usd(4)));
    let mut state = State::default();
    for (name, spent, attempts) in [("a", 7, 2), ("b", 0, 1), ("c", 10, 1)] {
        state.steps.insert(Address::from_text(name), step(spent, attempts));
    }
    assert_eq!(restart(&state), Usd(14));
}

/// An agent may say anything.
#[test]
fn counters_beyond_all_bounds_are_added_up_all_the_same() {
    let mut biller = Biller::default();
    let events = [opened(), started("a", 1)].into_iter().chain((0..3).map(|_| {
        let spent = Spent { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Spent::NOTHING };
        Event::AttemptSpent { step: Address::from_text("a"), attempt: 1, spent }
    }));
    for event in events {
        biller.take(&Record { seq: 1, at: Timestamp::default(), epoch: 1, batch: 1, event });
    }
    assert_eq!(biller.bill(None).steps["a"].input_tokens, u64::MAX);
}
