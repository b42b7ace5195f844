//! The fold, told with journals written as one line of text.

mod whole;

use std::collections::BTreeMap;

use super::*;
use crate::event::{
    AttemptAdopted, AttemptFinished, AttemptVerified, Certainty, Event, Mode, Record, SettledBy,
};
use crate::{
    evidence::{FileProof, Outcome, Stat},
    said::Spent,
};
use crate::{kept::Kept, key::KeyParts};

fn at(text: &str) -> Address {
    Address::from_text(text)
}

pub(crate) fn opened() -> Event {
    Event::RunOpened(Box::new(RunOpened {
        format: 1,
        run: "test-20261115-aaaa".parse().unwrap(),
        workflow: "test".into(),
        workflow_hash: Digest::of(b"test"),
        file: None,
        inputs: BTreeMap::new(),
        git: None,
        engine: "0".into(),
        boot_id: "boot".into(),
        mode: Mode::Interactive,
    }))
}

pub(crate) fn started(step: &str, attempt: u32) -> Event {
    Event::AttemptStarted(Box::new(AttemptStarted {
        key: Key::from(&KeyParts {
            needs: [("g".to_owned(), Digest::of(b"g"))].into(),
            ..KeyParts::default()
        }),
        argv: Kept::from(&vec!["x".into()]),
        session: Some("s".into()),
        ..AttemptStarted::bare(at(step), attempt)
    }))
}

pub(crate) fn finished(step: &str, attempt: u32, outcome: Outcome) -> Event {
    let proof = FileProof {
        path: "out".into(),
        hash: Digest::of(b"out"),
        stat: Stat { size: 3, mtime_ns: 1, inode: 1 },
    };
    Event::AttemptFinished(Box::new(AttemptFinished {
        step: at(step),
        attempt,
        outcome,
        ending: None,
        evidence: Evidence { files: vec![proof], ..Evidence::default() },
        result: Some("r".into()),
        stdout: Some("text".into()),
        after: None,
        footprint: Vec::new(),
        tolerated: false,
        head: None,
        ended: None,
        waited: 0,
    }))
}

pub(crate) fn resumed(count: u32) -> Event {
    let revert = Revert { path: "p".into(), rescue: "rescue/3-x".into(), ..Revert::default() };
    Event::RunResumed(Box::new(RunResumed {
        code: "continue".into(),
        summary: String::new(),
        mode: Mode::Autopilot,
        count,
        boot_id: "boot".into(),
        git: None,
        accepted: Vec::new(),
        entered: None,
        last_sign: None,
        reverts: vec![revert],
    }))
}

fn adopted(step: &str) -> Event {
    Event::AttemptAdopted(Box::new(AttemptAdopted {
        step: at(step),
        source: "person".into(),
        certainty: Certainty::Recorded,
        evidence: Evidence::default(),
        result: Some(1.into()),
        by: None,
    }))
}

/// `a+` starts a, `a!` finishes it, `a?` fails it, `a~` loses it, `a#` adopts it, `a-` skips it,
/// `ax` invalidates it, `a^` opens gate a, `a=` answers it, `a*` expands group a, `a1` and `a2`
/// turn loop a, `a.` ends it, `av` verifies it, `ai` intends an effect, `as` settles it; `R`
/// resumes,
/// `P` pauses, `E` completes, `F` ends as failed. Attempts are numbered by themselves.
fn events(script: &str) -> Vec<Event> {
    let mut attempts: BTreeMap<String, u32> = BTreeMap::new();
    let mut resumes = 0;
    let mut all = vec![opened()];
    for word in script.split_whitespace() {
        let (name, act) = word.split_at(word.len() - 1);
        let attempt = *attempts.get(name).unwrap_or(&0);
        let (step, needs) = (at(name), BTreeMap::new());
        let failed = Outcome::Failed { cause: Cause::Failed, detail: "exit 1".into() };
        all.push(match (name, act) {
            ("", "R") => {
                resumes += 1;
                resumed(resumes)
            }
            ("", "P") => Event::RunPaused { cause: PauseCause::Asked, until: None },
            ("", "E") => Event::RunEnded { status: EndStatus::Completed, why: None },
            ("", "F") => Event::RunEnded { status: EndStatus::Failed, why: None },
            ("", "A") => Event::RunArchived { to: "x".into() },
            (_, "+") => {
                attempts.insert(name.to_owned(), attempt + 1);
                started(name, attempt + 1)
            }
            (_, "!") => finished(name, attempt, Outcome::Done),
            (_, "?") => finished(name, attempt, failed),
            (_, "~") => Event::AttemptLost {
                step,
                attempt,
                cause: Cause::Interrupted,
                rung: Rung::DiedClean,
                reverted: Vec::new(),
                rescue: None,
            },
            (_, "#") => adopted(name),
            (_, "-") => {
                Event::StepSkipped { step, reason: "no".into(), needs, reads: BTreeMap::new() }
            }
            (_, "x") => Event::StepInvalidated { step, causes: Vec::new() },
            (_, "^") => Event::GateOpened {
                step,
                prompt: "?".into(),
                options: vec!["approve".into()],
                shows: Vec::new(),
                hash: Digest::of(b"shown"),
            },
            (_, "=") => Event::GateDecided {
                step,
                by: "me".into(),
                option: "approve".into(),
                comment: None,
                hash: Digest::of(b"shown"),
                stops: false,
            },
            (_, "*") => {
                let item = Item { key: "k".into(), value: 1.into(), after: Vec::new() };
                Event::GroupExpanded { step, items: vec![item], needs }
            }
            (_, "0") => Event::GroupExpanded { step, items: Vec::new(), needs },
            (_, "1") => Event::LoopTurned { step, turn: 1 },
            (_, "2") => Event::LoopTurned { step, turn: 2 },
            (_, "3") => Event::LoopTurned { step, turn: 3 },
            (_, ".") => Event::LoopEnded { step, turns: 2, reason: LoopEnd::Until },
            (_, ",") => Event::LoopEnded { step, turns: 2, reason: LoopEnd::Exhausted },
            (_, "v") => Event::AttemptVerified(Box::new(AttemptVerified {
                step,
                evidence: Some(Evidence { branch_head: Some("b".into()), ..Evidence::default() }),
                key: Some(Key::from(&KeyParts::default())),
                why: "looked".into(),
            })),
            (_, "i") => Event::EffectIntended { step, attempt, effect: "e".into() },
            (_, "s") => {
                Event::EffectSettled { step, attempt, happened: true, by: SettledBy::Receipt }
            }
            (_, "u") => Event::AttemptSpent { step, attempt, spent: Spent::of_usd(Usd(5)) },
            _ => panic!("`{word}`"),
        });
    }
    all
}

pub(crate) fn records(events: Vec<Event>) -> Vec<Record> {
    let numbered = events.into_iter().enumerate();
    numbered
        .map(|(index, event)| {
            let seq = u64::try_from(index).unwrap();
            let at = Timestamp::from_micros(i64::try_from(index).unwrap() * 1_000_000);
            Record { seq, at, epoch: 1, batch: seq, event }
        })
        .collect()
}

fn fold(script: &str) -> State {
    State::fold(records(events(script))).unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// The script folds up to its last event, which is refused and changes nothing.
#[track_caller]
fn refused(script: &str) {
    let mut records = records(events(script));
    let last = records.pop().unwrap();
    let mut state = State::fold(records).unwrap();
    let before = state.clone();
    let violation = state.after(last).expect_err(script);
    assert_eq!(state, before, "{script}: a refused event changes nothing");
    assert_eq!(violation.seq, before.next_seq);
}

fn phase(script: &str) -> Phase {
    fold(script).phase(&at("a"))
}

#[test]
fn a_step_goes_from_pending_through_running_to_its_end() {
    assert_eq!(phase(""), Phase::Pending);
    assert_eq!(phase("a+"), Phase::Running);
    assert_eq!(phase("a+ a!"), Phase::Done);
    assert_eq!(phase("a+ a?"), Phase::Failed);
    assert_eq!(phase("a+ a~"), Phase::Lost);
    assert_eq!(phase("a-"), Phase::Skipped);
    assert_eq!(phase("a+ a! ax"), Phase::Stale);
    assert_eq!(phase("a^"), Phase::Waiting);
    assert_eq!(phase("a^ a="), Phase::Done);
    assert_eq!(phase("a#"), Phase::Done);
}

#[test]
fn what_cannot_follow_is_refused() {
    for script in [
        "a+ a+",       // running already
        "a+ a! a+",    // done
        "a- a+",       // skipped
        "a!",          // never started
        "a+ a! a!",    // finished already
        "a+ a! a~",    // finished, so not lost
        "a~",          // never started
        "a+ a-",       // running
        "a+ a! a-",    // done
        "ax",          // nothing to invalidate
        "a+ ax",       // still running
        "a+ a! a#",    // done already
        "a^ a= a= ",   // answered already
        "a=",          // never opened
        "a+ a^",       // not a gate, and running
        "a+ a! a^",    // done, and not a gate
        "a2",          // the first turn is missing
        "a1 a1",       // turned already
        "a1 a2 a. a3", // over
        "a1 a.",       // wrong count of turns
        "a1 a2 a. a.", // over already
        "av",          // nothing to verify
        "ai",          // not running
        "as",          // not running
        "au",          // not running
        "a+ a! au",    // not running any more
        "P P",         // paused already
        "P a+",        // nothing starts while paused
        "E a+",        // nothing starts after the end
        "E P",         // nor is the end paused
        "E R",         // what is complete is complete
        "E F",         // it ends once
        "F F",
        "a+ E", // something runs
        "a+ F",
        "a+ A",
        "a* a[k]/b+ a0", // the item that vanishes is running
    ] {
        refused(script.trim());
    }
}

#[test]
fn what_can_follow_is_accepted() {
    for script in [
        "a+ a? a+ a!",           // a retry
        "a+ a~ a+ a!",           // a new attempt
        "a+ a! ax a+ a!",        // stale, and made again
        "a- ax a+",              // skipped no more
        "a+ a? ax",              // failed, and put aside
        "a+ a#",                 // taken as done while it ran
        "a+ a? a#",              // a person did it
        "a^ a^",                 // asked again
        "a^ a= a^",              // what it showed has moved
        "F R a+",                // a failed run goes on
        "P R a+",                // so does a paused one
        "P F",                   // a paused run may be ended
        "E A",                   // archived
        "a+ a! av",              // proved again
        "a* av",                 // a group, looked at again
        "a1 av",                 // a loop, looked at again
        "a+ ai as",              // an effect and its receipt
        "a* a[k]/b+ a[k]/b! a0", // the item that vanishes is done
        "a* a[k]/b+ a*",         // the item that is listed again is running
    ] {
        fold(script);
    }
}

#[test]
fn the_opening_is_the_first_record_and_no_other() {
    let mut twice = vec![opened()];
    twice.push(opened());
    assert_eq!(State::fold(records(twice)).unwrap_err().seq, 1);
    let without = vec![started("a", 1)];
    assert_eq!(State::fold(records(without)).unwrap_err().seq, 0);
}

#[test]
fn numbers_epochs_and_batches_never_go_back() {
    let good = records(events("a+ a!"));
    for (index, change) in [
        (2, (|it: &mut Record| it.seq = 1) as fn(&mut Record)),
        (2, |it| it.seq = 3),
        (2, |it| it.epoch = 0),
        (2, |it| it.batch = 0),
    ] {
        let mut bad = good.clone();
        change(&mut bad[index]);
        assert_eq!(State::fold(bad).unwrap_err().seq, 2);
    }
    let mut later = good;
    later[2].epoch = 7;
    later[2].batch = 9;
    let state = State::fold(later).unwrap();
    assert_eq!((state.epoch, state.batch, state.next_seq), (7, 9, 3));
}

#[test]
fn attempts_are_numbered_without_a_gap() {
    let mut all = events("a+ a?");
    all.push(started("a", 1));
    assert!(State::fold(records(all)).is_err());
    let mut all = events("a+ a?");
    all.push(started("a", 3));
    assert!(State::fold(records(all)).is_err());
    let mut all = events("");
    all.push(started("a", 0));
    assert!(State::fold(records(all)).is_err());
    assert_eq!(fold("a+ a? a+").steps[&at("a")].attempts, 2);
}

#[test]
fn a_late_word_about_an_earlier_attempt_is_refused() {
    let mut all = events("a+ a~ a+");
    all.push(finished("a", 1, Outcome::Done));
    let violation = State::fold(records(all)).unwrap_err();
    assert_eq!(violation.why, "step `a` is running at attempt 2, not running attempt 1");
}

#[test]
fn a_finished_step_keeps_its_evidence_result_and_key() {
    let state = fold("a+ a!");
    let step = &state.steps[&at("a")];
    assert_eq!(step.evidence.files[0].path, "out");
    assert_eq!(step.result.as_deref(), Some(&Value::from("r")));
    assert_eq!(step.stdout.as_deref(), Some("text"));
    assert_eq!(step.key.as_ref().unwrap().get().needs.len(), 1);
    assert_eq!(step.started, None);
    assert_eq!(step.failure, None);
    assert_eq!((step.started_at.as_micros(), step.ended_at.as_micros()), (1_000_000, 2_000_000));
}

#[test]
fn a_failed_step_keeps_its_cause_and_what_it_was_started_with() {
    let state = fold("a+ a?");
    let step = &state.steps[&at("a")];
    assert_eq!(step.failure.as_deref(), Some(&(Cause::Failed, "exit 1".to_owned())));
    assert_eq!(step.failures, 1);
    assert!(step.started.is_some());
    assert!(step.evidence.is_empty());
    assert_eq!(fold("a+ a? a+ a?").steps[&at("a")].failures, 2);
    assert_eq!(fold("a+ a? a+ a!").steps[&at("a")].failure, None);
}

#[test]
fn an_attempt_that_was_stopped_is_not_a_failure_that_counts() {
    let mut all = events("a+");
    let outcome = Outcome::Failed { cause: Cause::Interrupted, detail: String::new() };
    all.push(finished("a", 1, outcome));
    let state = State::fold(records(all)).unwrap();
    assert_eq!(state.steps[&at("a")].failures, 0);
    assert_eq!(state.phase(&at("a")), Phase::Failed);
}

#[test]
fn a_resume_puts_failed_steps_back_and_forgets_their_failures() {
    let state = fold("a+ a? b+ b! F R");
    assert_eq!(state.phase(&at("a")), Phase::Pending);
    assert_eq!(state.phase(&at("b")), Phase::Done);
    assert_eq!(state.steps[&at("a")].failures, 0);
    assert_eq!(state.steps[&at("a")].attempts, 1);
    assert_eq!((state.status, state.resumes), (RunStatus::UnderWay, 1));
    let mut skipping = events("F");
    skipping.push(resumed(2));
    assert!(State::fold(records(skipping)).is_err(), "resumes are counted without a gap");
}

#[test]
fn reverts_are_pending_until_their_driver_writes_again() {
    // Epoch and batch of a note that follows the resume, which is in batch 9 of epoch 5.
    for (epoch, batch, pending) in [(5, 9, 1), (5, 10, 0), (6, 10, 1)] {
        let mut all = records(events("P R"));
        let place = all.len() - 1;
        (all[place].epoch, all[place].batch) = (5, 9);
        let (seq, at) = (all[place].seq + 1, all[place].at);
        let event = Event::Note { text: "of a person".to_owned(), step: None };
        all.push(Record { seq, at, epoch, batch, event });
        let state = State::fold(all).unwrap();
        assert_eq!(state.pending_reverts().len(), pending, "{epoch} {batch}");
    }
    assert_eq!(fold("a+").pending_reverts().len(), 0);
}

#[test]
fn the_count_of_running_attempts_follows_starts_and_ends() {
    let running = |script: &str| fold(script).running;
    assert_eq!(running("a+ b+"), 2);
    assert_eq!(running("a+ b+ a!"), 1);
    assert_eq!(running("a+ b+ a?"), 1);
    assert_eq!(running("a+ b+ a~"), 1);
    assert_eq!(running("a+ b+ a#"), 1);
    assert_eq!(running("a# b+"), 1);
}

#[test]
fn work_done_elsewhere_has_no_key_and_work_of_ours_keeps_it() {
    assert_eq!(fold("a#").steps[&at("a")].key, None);
    assert!(fold("a+ a#").steps[&at("a")].key.is_some());
    assert_eq!(fold("a+ a? a#").steps[&at("a")].key, None);
    assert_eq!(fold("a+ a? a#").steps[&at("a")].failure, None);
    assert_eq!(fold("a#").steps[&at("a")].result.as_deref(), Some(&Value::from(1)));
}

/// Learned once more from the other system, it says nothing about an answer that came after it.
#[test]
fn a_step_that_is_adopted_again_uses_no_answer() {
    let is_used = |script: &str| {
        let mut all = events(script);
        let dialect = "person".to_owned();
        all.insert(1, Event::RunAdopted { dialect, source: "x".into(), files: Vec::new() });
        let state = State::fold(records(all)).unwrap();
        state.steps[&at("g")].gate.as_ref().unwrap().consumed
    };
    assert!(is_used("g^ g= b#"), "what comes behind the gate was done on its strength");
    assert!(!is_used("a# g^ g= ax a#"));
}

#[test]
fn a_verified_step_has_the_new_evidence_and_key() {
    let state = fold("a+ a! av");
    let step = &state.steps[&at("a")];
    assert_eq!(step.evidence.branch_head.as_deref(), Some("b"));
    assert!(step.key.as_ref().unwrap().get().needs.is_empty());
}

#[test]
fn an_answer_counts_for_the_content_it_saw_and_is_used_once() {
    let decided = fold("g^ g=");
    let gate = &decided.steps[&at("g")];
    assert_eq!(gate.result.as_ref().unwrap()["option"], "approve");
    assert!(!gate.gate.as_ref().unwrap().consumed);
    assert!(gate.evidence.result.is_some());
    // A step that needs the gate names it in its key.
    let used = fold("g^ g= a+");
    assert!(used.steps[&at("g")].gate.as_ref().unwrap().consumed);
    refused("g^ g= a+ g^");
    let mut other = events("g^");
    other.push(Event::GateDecided {
        step: at("g"),
        by: "me".into(),
        option: "approve".into(),
        comment: None,
        hash: Digest::of(b"something else"),
        stops: false,
    });
    assert!(State::fold(records(other)).is_err());
}

#[test]
fn an_answer_that_ended_the_run_is_asked_for_again_by_a_resume() {
    let mut all = events("g^");
    all.push(Event::GateDecided {
        step: at("g"),
        by: "me".into(),
        option: "cancel".into(),
        comment: Some("no".into()),
        hash: Digest::of(b"shown"),
        stops: true,
    });
    let state = State::fold(records(all.clone())).unwrap();
    assert_eq!(state.cancelling, Some(at("g")));
    let taken_up = [all.clone(), vec![resumed(1)]].concat();
    let state = State::fold(records(taken_up)).unwrap();
    assert_eq!(state.cancelling, Some(at("g")), "the driver has not acted on the answer yet");
    all.push(Event::RunEnded { status: EndStatus::Cancelled, why: None });
    all.push(resumed(1));
    let state = State::fold(records(all)).unwrap();
    assert_eq!((state.phase(&at("g")), state.cancelling), (Phase::Stale, None));
}

#[test]
fn an_invalidated_step_takes_the_later_turns_of_its_loops_with_it() {
    let state = fold("l1 l[1]/a+ l[1]/a! l2 l[2]/a+ l[2]/a! l. l[1]/ax");
    assert_eq!(state.loops[&at("l")], LoopState { turns: 1, ..LoopState::default() });
    let state = fold("l1 l[1]/a+ l[1]/a! l2 l[2]/a+ l[2]/a! l. l[2]/ax");
    assert_eq!(state.loops[&at("l")], LoopState { turns: 2, ..LoopState::default() });
    let state = fold("l1 l2 l. b+ b! bx");
    assert_eq!(state.loops[&at("l")].ended, Some(LoopEnd::Until));
    assert_eq!(fold("a+ a? ax").steps[&at("a")].failures, 0);
}

#[test]
fn a_loop_that_ran_out_of_turns_is_looked_at_again_by_a_resume() {
    assert_eq!(fold("l1 l2 l, F").loops[&at("l")].ended, Some(LoopEnd::Exhausted));
    assert_eq!(fold("l1 l2 l, F R").loops[&at("l")].ended, None);
    assert_eq!(fold("l1 l2 l. F R").loops[&at("l")].ended, Some(LoopEnd::Until));
}

#[test]
fn an_effect_is_intended_then_settled_and_a_new_attempt_begins_without() {
    assert_eq!(fold("a+").steps[&at("a")].effect, EffectState::None);
    assert_eq!(fold("a+ ai").steps[&at("a")].effect, EffectState::Intended);
    assert_eq!(fold("a+ ai as").steps[&at("a")].effect, EffectState::Happened);
    assert_eq!(fold("a+ ai a~ a+").steps[&at("a")].effect, EffectState::None);
    let mut absent = events("a+ ai");
    let (step, attempt, happened, by) = (at("a"), 1, false, SettledBy::Probe);
    absent.push(Event::EffectSettled { step, attempt, happened, by });
    let state = State::fold(records(absent)).unwrap();
    assert_eq!(state.steps[&at("a")].effect, EffectState::Absent);
}

#[test]
fn money_adds_up_over_the_step_and_the_run() {
    let state = fold("a+ au au b+ bu");
    assert_eq!(state.steps[&at("a")].spent, Usd(10));
    assert_eq!(state.spent, Usd(15));
}

#[test]
fn the_last_event_is_the_last_that_says_something() {
    let mut all = events("a+");
    all.push(Event::Note { text: "hello".into(), step: None });
    let state = State::fold(records(all)).unwrap();
    assert_eq!((state.last_kind, state.last_at.as_micros()), ("attempt.started", 1_000_000));
    assert_eq!(state.next_seq, 3);
    assert_eq!(state.opened_at, Timestamp::default());
    assert_eq!(state.workflow_hash, Some(Digest::of(b"test")));
}

#[test]
fn evidence_that_is_empty_stands_for_the_attempt_itself() {
    let digest = |script: &str| fold(script).steps[&at("a")].evidence_digest(&at("a"));
    assert_eq!(digest("a+ a!"), digest("a+ a? a+ a!"), "content is content");
    let bare = |attempts| {
        let step = StepState { phase: Phase::Done, attempts, ..StepState::default() };
        step.evidence_digest(&at("a"))
    };
    assert_ne!(bare(1), bare(2), "who leaves nothing is different each time");
    assert_ne!(bare(1), StepState::default().evidence_digest(&at("b")));
    assert_eq!(digest("a-"), fold("b-").steps[&at("b")].evidence_digest(&at("b")));
}

#[test]
fn words_for_phases_are_those_of_the_status_contract() {
    let words: Vec<&str> = [
        Phase::Pending,
        Phase::Running,
        Phase::Waiting,
        Phase::Done,
        Phase::Failed,
        Phase::Skipped,
        Phase::Lost,
        Phase::Stale,
    ]
    .map(Phase::as_str)
    .into();
    assert_eq!(words.join(" "), "pending running waiting done failed skipped lost stale");
}

#[test]
fn every_event_knows_the_kind_it_is_written_as() {
    for event in events("a+ ai as au a! av ax b# c- d^ d= g* l1 l2 l. f+ f? h+ h~ P R A F") {
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["kind"], event.kind());
    }
}
