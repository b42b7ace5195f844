//! Every combination of exit, words, limit, denial and proof.

use super::*;
use crate::{
    address::Address,
    said::{Limit, LimitKind},
    time::Timestamp,
};

const EXITS: [Exit; 7] = [
    Exit::Zero,
    Exit::Other,
    Exit::Halted,
    Exit::Signal,
    Exit::TimeOut,
    Exit::Stopped,
    Exit::NotStarted,
];

const PROOFS: [Proof; 8] = [
    Proof::NotDeclared,
    Proof::Holds,
    Proof::CheckFailed(Cause::Failed),
    Proof::CheckFailed(Cause::Timeout),
    Proof::OutputMissing,
    Proof::ResultMissing,
    Proof::ResultInvalid,
    Proof::ResultRefuses,
];

fn every_words() -> Vec<Words> {
    let badly = Cause::ALL.map(Words::Badly);
    [Words::NotExpected, Words::Missing, Words::Well].into_iter().chain(badly).collect()
}

fn every_combination() -> Vec<Facts> {
    let mut all = Vec::new();
    for exit in EXITS {
        for words in every_words() {
            for limit in [None, Some(Cause::UsageLimit), Some(Cause::RateLimited)] {
                for denied in [false, true] {
                    let of = |proof| Facts { exit, words, limit, denied, proof };
                    all.extend(PROOFS.map(of));
                }
            }
        }
    }
    all
}

fn cause(facts: Facts) -> Option<Cause> {
    (facts.row().cause)(facts)
}

#[test]
fn success_takes_exit_words_and_proof_together() {
    for facts in every_combination() {
        let closed = match facts.words {
            Words::Well => true,
            Words::NotExpected => facts.limit.is_none(),
            Words::Missing | Words::Badly(_) => false,
        };
        let proved = match facts.proof {
            Proof::Holds => true,
            Proof::NotDeclared => !facts.denied,
            Proof::CheckFailed(_)
            | Proof::OutputMissing
            | Proof::ResultMissing
            | Proof::ResultInvalid
            | Proof::ResultRefuses => false,
        };
        let expected = facts.exit == Exit::Zero && closed && proved;
        assert_eq!(cause(facts).is_none(), expected, "{facts:?}");
    }
}

#[test]
fn each_failure_has_the_cause_of_what_is_surest() {
    for facts in every_combination() {
        let Facts { exit, words, limit, denied, proof } = facts;
        let found = cause(facts);
        let expected = match (exit, words) {
            (Exit::NotStarted, _) => Some(Cause::Failed),
            (Exit::Stopped, _) => Some(Cause::Interrupted),
            (_, Words::Badly(said)) => Some(said),
            (_, Words::NotExpected | Words::Missing) if limit.is_some() => limit,
            (Exit::TimeOut, _) => Some(Cause::Timeout),
            (Exit::Halted, _) => Some(Cause::Interrupted),
            (Exit::Other, _) if denied => Some(Cause::PermissionDenied),
            (Exit::Other, _) => Some(Cause::Failed),
            (Exit::Signal, _) | (Exit::Zero, Words::Missing) => Some(Cause::Crash),
            (Exit::Zero, Words::NotExpected | Words::Well) => match proof {
                Proof::Holds => None,
                _ if denied => Some(Cause::PermissionDenied),
                Proof::NotDeclared => None,
                Proof::CheckFailed(Cause::Timeout) => Some(Cause::Timeout),
                Proof::ResultMissing if words == Words::Well => Some(Cause::SchemaViolation),
                Proof::CheckFailed(_) | Proof::OutputMissing | Proof::ResultMissing => {
                    Some(Cause::Unproved)
                }
                Proof::ResultInvalid => Some(Cause::SchemaViolation),
                Proof::ResultRefuses => Some(Cause::Failed),
            },
        };
        assert_eq!(found, expected, "{facts:?}");
    }
}

#[test]
fn every_row_decides_something_and_has_words_for_it() {
    let combinations = every_combination();
    for row in &TABLE {
        assert!(combinations.iter().any(|it| std::ptr::eq(it.row(), row)));
    }
}

fn step(yaml: &str) -> Step {
    let text = format!("onward: 1\nname: w\nsteps: [{{ id: a, {yaml} }}]\n");
    let mut schema = |_: &str| Ok(b"{}".to_vec());
    let loaded = crate::workflow::load("w.yaml", text.as_bytes(), &mut schema).unwrap();
    loaded.workflow.steps[0].clone()
}

fn judged(step: &Step, ending: Ending, said: &Said) -> Outcome {
    let (address, at) = (Address::from_text("a"), Timestamp::default());
    let (check, after, of, settled) = (None, None, None, false);
    let seal = Seal { step: address, attempt: 1, at, ending, check, after, of, settled, waited: 0 };
    judge(step, &seal, Collected::default(), said).outcome
}

#[test]
fn an_outcome_names_what_the_agent_said() {
    let agent = step("agent: claude, prompt: p");
    let zero = Ending::Exited { code: 0 };
    let failed = |cause, detail: &str| Outcome::Failed { cause, detail: detail.to_owned() };
    let quiet = Said::nothing_yet(true);
    let words = "exit 0, but the agent never said that it was through";
    assert_eq!(judged(&agent, zero.clone(), &quiet), failed(Cause::Crash, words));
    let limit = Limit {
        provider: "anthropic".into(),
        account: None,
        resets_at: Some(Timestamp::from_micros(0)),
        words: None,
        kind: LimitKind::Usage,
    };
    let one = Ending::Exited { code: 1 };
    assert_eq!(judged(&agent, one.clone(), &quiet), failed(Cause::Failed, "exit 1"));
    let in_turn = Said { mid_turn: true, ..quiet.clone() };
    let words = "exit 1 in the middle of its turn: another program interrupted it";
    assert_eq!(judged(&agent, one.clone(), &in_turn), failed(Cause::Interrupted, words));
    let over = Said { closed: Some(Closed::Well), ..in_turn };
    assert_eq!(judged(&agent, one, &over), failed(Cause::Failed, "exit 1"));
    let limited = Said { limit: Some(limit), ..quiet.clone() };
    let words = "a limit of anthropic holds until 1970-01-01T00:00:00.000000Z";
    let killed = Ending::TimedOut { idle: true };
    assert_eq!(judged(&agent, killed, &limited), failed(Cause::UsageLimit, words));
    let over = Said { closed: Some(Closed::Well), ..limited };
    assert_eq!(judged(&agent, zero.clone(), &over), Outcome::Done, "it waited for the reset");
    let (cause, detail) = (Cause::Auth, "no login".to_owned());
    let said = Said { closed: Some(Closed::Badly { cause, detail }), ..quiet };
    assert_eq!(judged(&agent, zero.clone(), &said), failed(Cause::Auth, "no login"));
    let denied = Said { denied: vec!["Write".into(), "Bash".into()], ..Said::default() };
    let words = "it may not use Write, Bash";
    assert_eq!(judged(&agent, zero.clone(), &denied), failed(Cause::PermissionDenied, words));
    let proved = step("agent: claude, prompt: p, check: 'true'");
    assert_eq!(judged(&proved, zero, &denied), Outcome::Done, "its evidence holds");
}

#[test]
fn a_command_is_judged_by_exit_and_evidence_alone() {
    let command = step("run: x, writes: [a.txt]");
    let said = Said::default();
    assert_eq!(judged(&command, Ending::Exited { code: 0 }, &said), Outcome::Done);
    let failed = Outcome::Failed { cause: Cause::Failed, detail: "exit 3".into() };
    assert_eq!(judged(&command, Ending::Exited { code: 3 }, &said), failed);
}
