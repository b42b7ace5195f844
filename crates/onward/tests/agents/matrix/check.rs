//! What a cell leads to, held against a run.

use std::{
    fs,
    process::{Command, Stdio},
};

use onward_core::launch::StopSignal;
use onward_engine::{agents, care::harness::until};
use serde_json::{Value, json};

use crate::stage::Stage;

use super::{Cell, End, Program, Sample, Situation, play::stage};

/// Runs it, and holds the run and its journal against what the cause leads to.
#[track_caller]
pub(crate) fn check(program: &Program, situation: Option<Situation>, what: &str, sample: &Sample) {
    let cause = sample.cause;
    let step = if cause == "schema_violation" { ", result: { schema: s.json }" } else { "" };
    let stage = stage(program, sample, step);
    let goes_on_later = matches!(cause, "overloaded" | "server" | "network");
    let code = if goes_on_later { interrupted(&stage) } else { stage.onward("run w.yaml --yes").0 };
    let finished = stage.of("attempt.finished");
    let found = &finished[0]["outcome"]["failed"]["cause"];
    assert_eq!(found, cause, "{what}: {}", stage.journal());
    let starts = stage.of("attempt.started");
    let ends = |kind: &str, field: &str| -> Value {
        stage.of(kind).first().map_or(Value::Null, |it| it[field].clone())
    };
    let (paused, ended) = (ends("run.paused", "cause"), ends("run.ended", "status"));
    let limits = stage.of("limit.hit");
    let seen = (code, starts.len(), paused, ended, limits.len());
    let expected = match cause {
        // Parked: nothing is burned, and the limit is written down.
        "rate_limited" | "usage_limit" => (Some(12), 1, json!("limit"), Value::Null, 1),
        // It would have gone on after a while, besides its tries; it was interrupted meanwhile.
        "overloaded" | "server" | "network" => (Some(130), 1, json!("interrupted"), Value::Null, 0),
        // A person must do something first.
        "auth" | "budget" | "permission_denied" => (Some(11), 1, json!("person"), Value::Null, 0),
        // There is no session in which it could put the result right.
        "schema_violation" if program.name == "aider" => {
            (Some(10), 1, Value::Null, json!("failed"), 0)
        }
        // Another attempt, in a new session or to put the result right, or a plain retry.
        "context_overflow" | "session_missing" | "session_busy" | "schema_violation" | "crash"
        | "timeout" => (Some(0), 2, Value::Null, json!("completed"), 0),
        // No default retries these.
        "max_turns" | "failed" | "interrupted" => (Some(10), 1, Value::Null, json!("failed"), 0),
        other => panic!("{other} is no cause"),
    };
    assert_eq!(seen, expected, "{what}: {}", stage.journal());
    if let Some(limit) = limits.first() {
        match situation {
            Some(Situation::LimitWithReset | Situation::LimitInPlainWords) => {
                assert!(limit["resets_at"].is_string(), "{what}: {limit}");
            }
            Some(Situation::LimitWithoutReset) => {
                assert!(limit["resets_at"].is_null(), "{what}: {limit}");
            }
            Some(_) | None => {}
        }
    }
    if let Some(second) = starts.get(1) {
        let repairs = cause == "schema_violation";
        assert_eq!(second["continues"] == json!(true), repairs, "{what}: {second}");
        if !repairs {
            let brief = format!("Attempt 1 did not finish: {cause}");
            let prompt = prompt(&stage);
            assert!(prompt.starts_with("Do it.") && prompt.contains(&brief), "{what}: {prompt}");
            assert!(prompt.chars().count() < 6_500, "{what}");
        }
    }
}

/// What the second attempt is told.
fn prompt(stage: &Stage) -> String {
    fs::read_to_string(stage.run_dir().unwrap().join("out/work.2.prompt")).unwrap()
}

/// Ends the run when its first attempt has ended.
fn interrupted(stage: &Stage) -> Option<i32> {
    // Half a line at the end is one that is being written.
    interrupted_when(stage, || stage.journal().contains("\"attempt.finished\""))
}

fn interrupted_when(stage: &Stage, is_so: impl Fn() -> bool) -> Option<i32> {
    let mut child = stage.start("run w.yaml --yes --grace 0");
    until("the moment to interrupt it", || Ok(is_so().then_some(()))).unwrap();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    child.wait().unwrap().code()
}

/// The user stops the run: the program has its own signal, its tool is ended too, and a resume goes
/// on in the same session, where it keeps one.
#[track_caller]
pub(crate) fn stopped(program: &Program) {
    let what = program.name;
    let out = program.well.lines().next().unwrap_or_default().to_owned();
    let sample = Sample { out, err: "", end: End::WhenTold, cause: "interrupted" };
    let stage = stage(program, &sample, "");
    let code = interrupted_when(&stage, || stage.path("tool").exists());
    assert_eq!(code, Some(130), "{what}: {}", stage.journal());
    let card = agents::known_program(program.name).unwrap().card().clone();
    let signal = match card.stop {
        StopSignal::Int => "INT\n",
        StopSignal::Term => "TERM\n",
    };
    assert_eq!(stage.text("signal"), signal, "{what}");
    let tool = format!("/proc/{}/cmdline", stage.text("tool").trim());
    until("the tool to be gone", || {
        let words = fs::read(&tool).unwrap_or_default();
        Ok((!words.starts_with(b"sleep\x00600")).then_some(()))
    })
    .unwrap();
    let ended = &stage.of("attempt.finished")[0]["outcome"]["failed"]["cause"];
    assert_eq!(ended, "interrupted", "{what}: {}", stage.journal());
    stage.exits("resume --yes", 0);
    let starts = stage.of("attempt.started");
    let keeps_sessions = card.sessions != agents::Sessions::None;
    assert_eq!(starts[1]["continues"] == json!(true), keeps_sessions, "{what}: {}", starts[1]);
}

/// A session in which another program works is not continued: the step begins in a new one. When
/// the other program has left, it is continued.
#[track_caller]
pub(crate) fn fenced(program: &Program, what: &str) {
    let Cell::Seen(sample) = (program.cell)(Situation::LimitInPlainWords) else { panic!("{what}") };
    for other_works in [true, false] {
        // No reset is known, so that a resume tries again.
        let out = program.well.lines().next().unwrap_or_default().to_owned();
        let out = format!("{out}\nYou've hit your usage limit");
        let sample = Sample { out, err: "", end: sample.end, cause: sample.cause };
        let stage = stage(program, &sample, "");
        stage.exits("run w.yaml --yes", 12);
        let first = &stage.of("attempt.started")[0]["session"];
        let told = stage.of("attempt.session");
        let session = first.as_str().or_else(|| told.first()?["session"].as_str());
        let session = session.unwrap_or_else(|| panic!("{what}: {}", stage.journal())).to_owned();
        let mut other = Command::new("sh");
        other.args(["-c", "echo here; read line", &session]).stdout(Stdio::piped());
        let mut other = other.stdin(Stdio::piped()).spawn().unwrap();
        // Between fork and exec its command line is still ours.
        let mut byte = [0];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut byte).unwrap();
        let leave = |mut other: std::process::Child| {
            drop(other.stdin.take());
            other.wait().unwrap();
        };
        let plan = if other_works {
            let plan = stage.exits("plan --json", 0);
            stage.exits("resume --yes", 0);
            leave(other);
            plan
        } else {
            leave(other);
            let plan = stage.exits("plan --json", 0);
            stage.exits("resume --yes", 0);
            plan
        };
        assert_eq!(plan.contains("session-busy"), other_works, "{what}: {plan}");
        let second = &stage.of("attempt.started")[1];
        assert_eq!(second["continues"] == json!(true), !other_works, "{what}: {second}");
        if other_works {
            assert_ne!(second["session"], json!(session), "{what}");
            assert!(prompt(&stage).contains("Attempt 1 did not finish"), "{what}");
        }
    }
}
