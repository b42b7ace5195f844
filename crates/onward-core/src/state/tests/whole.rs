//! What is kept of a run as a whole, beyond its steps.

use super::*;
use crate::said::Counting;

#[test]
fn small_facts_about_the_whole_run_are_kept() {
    let fold_with = |event: Event| {
        let mut all = events("");
        all.push(event);
        State::fold(records(all))
    };
    let limit = Event::LimitHit {
        provider: "p".into(),
        agent: Some("codex".into()),
        account: None,
        resets_at: Some(Timestamp::from_micros(7)),
    };
    let limited = fold_with(limit).unwrap();
    assert_eq!(limited.limit_of("codex"), Some(Lifted::At(Timestamp::from_micros(7))));
    assert_eq!(limited.limit_of("claude"), None);
    let changed = Event::WorkflowChanged { hash: Digest::of(b"new"), edits: Vec::new() };
    assert_eq!(fold_with(changed).unwrap().workflow_hash, Some(Digest::of(b"new")));
    assert!(fold_with(Event::NativeExported { files: Vec::new() }).is_err());
    let adopted = Event::RunAdopted {
        dialect: "conference".into(),
        source: "here".into(),
        files: Vec::new(),
    };
    assert_eq!(fold_with(adopted.clone()).unwrap().adopted.unwrap().dialect, "conference");
    let mut twice = events("");
    twice.extend([adopted.clone(), Event::NativeExported { files: Vec::new() }, adopted.clone()]);
    assert_eq!(State::fold(records(twice)).unwrap_err().seq, 3);
    let mut late = events("a+");
    late.push(adopted);
    assert!(State::fold(records(late)).is_err());
    let budget = Event::BudgetHit { spent: Usd(1), limit: Usd(1) };
    assert!(fold_with(budget.clone()).is_ok());
    let mut paused = events("P");
    paused.push(budget);
    assert!(State::fold(records(paused)).is_err());
    let mut session = events("a+");
    session.push(Event::AttemptSession { step: at("a"), attempt: 1, session: "new".into() });
    let state = State::fold(records(session)).unwrap();
    assert_eq!(state.steps[&at("a")].session.as_deref(), Some("new"));
    assert_eq!(fold("a+").steps[&at("a")].session.as_deref(), Some("s"));
}

#[test]
fn what_was_paid_for_was_not_in_vain() {
    let died_of = |usd: Usd| {
        let mut all = events("F R a+");
        let step = at("a");
        all.push(Event::AttemptSpent { step, attempt: 1, spent: Spent::of_usd(usd) });
        let cause = Cause::Crash;
        all.push(finished("a", 1, Outcome::Failed { cause, detail: String::new() }));
        State::fold(records(all)).unwrap().streak.in_vain()
    };
    assert_eq!(died_of(Usd(1)), None);
    assert_eq!(died_of(Usd(0)), Some((Cause::Crash, 1)));
}

#[test]
fn an_attempt_in_flight_at_a_reboot_is_known_to_be_dead() {
    let outlived = |boot: &str| {
        let mut all = events("a+ b+ b! P");
        let mut resumed = resumed(1);
        let Event::RunResumed(it) = &mut resumed else { panic!("it is a resume") };
        it.boot_id = boot.to_owned();
        all.push(resumed);
        let state = State::fold(records(all)).unwrap();
        assert_eq!(state.boot_id, boot);
        ["a", "b"].map(|step| state.steps[&at(step)].outlived_boot)
    };
    assert_eq!(outlived("boot"), [false, false]);
    assert_eq!(outlived("another"), [true, false]);
}

#[test]
fn the_highest_number_of_a_rescue_is_kept() {
    assert_eq!(fold("P R").rescues, 3);
    let mut all = events("P R");
    let mut started = started("a", 1);
    let Event::AttemptStarted(it) = &mut started else { panic!("it is a start") };
    for rescue in ["rescue/2-x", "rescue/7-x", "rescue/5-x"] {
        it.reverts.push(Revert { rescue: rescue.into(), ..Revert::default() });
    }
    all.push(started);
    assert_eq!(State::fold(records(all)).unwrap().rescues, 7);
}

/// `a` ends with a footprint, as `outcome` says, when `script` has been.
fn footprint_after(script: &str, outcome: Outcome, footprint: &[&str]) -> Vec<Event> {
    let mut all = events(script);
    let mut ended = finished("a", 1, outcome);
    let Event::AttemptFinished(it) = &mut ended else { panic!("it is an end") };
    it.footprint = footprint.iter().map(|path| (*path).to_owned()).collect();
    all.push(ended);
    all
}

#[test]
fn only_finished_work_says_when_a_path_was_last_made() {
    let touched = |outcome| {
        let state = State::fold(records(footprint_after("a+", outcome, &["f"]))).unwrap();
        state.touched.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(touched(Outcome::Done), ["f"]);
    let failed = Outcome::Failed { cause: Cause::Failed, detail: String::new() };
    assert_eq!(touched(failed), [""; 0]);
}

#[test]
fn a_footprint_is_shared_while_others_run_and_until_a_resume_finds_none_running() {
    let shared = |script: &str, footprint: &[&str], then: Vec<Event>| {
        let mut all = footprint_after(script, Outcome::Done, footprint);
        all.extend(then);
        let state = State::fold(records(all)).unwrap();
        state.shared.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(shared("a+ b+", &["f"], vec![]), ["a"]);
    assert_eq!(shared("a+ b+", &[], vec![]), [""; 0]);
    assert_eq!(shared("a+", &["f"], vec![]), [""; 0]);
    assert_eq!(shared("a+ b+", &["f"], vec![resumed(1)]), ["a"], "b is still in flight");
    let ended = finished("b", 1, Outcome::Done);
    assert_eq!(shared("a+ b+", &["f"], vec![ended, resumed(1)]), [""; 0]);
}

#[test]
fn a_session_that_is_continued_owes_only_what_earlier_attempts_did_not_pay() {
    let tokens = |input_tokens| Spent { input_tokens, ..Spent::NOTHING };
    let spent = |attempt, it| Event::AttemptSpent { step: at("a"), attempt, spent: tokens(it) };
    let owed = |continues: bool, total: u64, counting: Counting| {
        let mut all = events("a+");
        all.extend([spent(1, 100), spent(1, 20)]);
        let (cause, rung) = (Cause::Crash, Rung::DiedClean);
        let (step, reverted, rescue) = (at("a"), Vec::new(), None);
        all.push(Event::AttemptLost { step, attempt: 1, cause, rung, reverted, rescue });
        let started = AttemptStarted::bare(at("a"), 2);
        all.push(Event::AttemptStarted(Box::new(AttemptStarted { continues, ..started })));
        all.push(spent(2, 30));
        let state = State::fold(records(all)).unwrap();
        state.steps[&at("a")].owed(tokens(total), counting).input_tokens
    };
    assert_eq!(owed(true, 200, Counting::Session), 50);
    assert_eq!(owed(true, 200, Counting::Attempt), 170);
    assert_eq!(owed(false, 200, Counting::Session), 170);
    assert_eq!(owed(true, 150, Counting::Session), 0);
}
