//! Waiting in place for a limit, at the terminal and in the background, and what a person says to a
//! driver that waits.

use onward_core::time::Timestamp;
use onward_engine::{care::harness::until, locate::holder};

use crate::{
    limits::{calls, stage},
    stage::Stage,
};

/// Longer than any test.
const LONG: Option<i64> = Some(3600);

#[test]
fn with_wait_the_driver_waits_for_the_reset_and_the_session_goes_on() {
    let stage = stage("", Some(3));
    stage.exits("run w.yaml --yes --wait", 0);
    let starts = stage.of("attempt.started");
    let works: Vec<_> = starts.iter().filter(|it| it["step"] == "work").collect();
    assert_eq!(works.len(), 2, "{}", stage.journal());
    assert_eq!(works[0]["session"], works[1]["session"]);
    assert_eq!(works[1]["continues"], true);
    let at = |it: &serde_json::Value| it["at"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let reset = stage.of("limit.hit")[0]["resets_at"].as_str().unwrap().parse().unwrap();
    assert!(at(works[1]) >= reset, "{}", stage.journal());
    assert!(stage.of("run.paused").is_empty() && stage.of("run.resumed").is_empty());
}

#[test]
fn a_resume_before_the_reset_starts_and_writes_nothing() {
    let stage = stage("", LONG);
    stage.exits("run w.yaml --yes", 12);
    let journal = stage.journal();
    stage.exits("resume --yes", 12);
    assert_eq!((stage.journal(), calls(&stage, "claude")), (journal, 1));
}

#[test]
fn a_resume_waits_for_the_reset_too() {
    let stage = stage("", Some(4));
    stage.exits("run w.yaml --yes", 12);
    stage.exits("resume --yes --wait", 0);
    assert_eq!(stage.of("run.resumed").len(), 1);
    assert_eq!(calls(&stage, "claude"), 2);
}

#[test]
fn the_driver_waits_for_so_many_limits_and_no_more() {
    let stage = stage("[limits]\nwait = true\nwindows_max = 0\n", Some(3600));
    stage.exits("run w.yaml --yes", 12);
    assert_eq!(calls(&stage, "claude"), 1);
}

/// What is so only when the driver in the background has got there.
#[track_caller]
fn comes(stage: &Stage, what: &'static str, is_so: impl Fn() -> bool) {
    let waited = until(what, || Ok(is_so().then_some(())));
    assert!(waited.is_ok(), "{what}: {}", stage.journal());
}

fn waits(stage: &Stage) -> bool {
    stage.run_dir().and_then(|it| holder(&it)).is_some_and(|it| it.waits_until.is_some())
}

fn is_driven(stage: &Stage) -> bool {
    stage.run_dir().is_some_and(|it| holder(&it).is_some())
}

#[test]
fn a_driver_in_the_background_waits_too() {
    let stage = stage("", Some(3));
    stage.exits("run w.yaml --yes --wait --detach", 0);
    comes(&stage, "the end of the run", || {
        stage.journal().contains("run.ended") && !is_driven(&stage)
    });
    assert_eq!(stage.of("run.ended")[0]["status"], "completed");
    assert!(stage.of("run.paused").is_empty(), "{}", stage.journal());
}

#[test]
fn a_driver_that_waits_before_it_begins_is_left_in_the_background_and_hears_a_cancel() {
    let stage = stage("", LONG);
    stage.exits("run w.yaml --yes", 12);
    let said = stage.exits("resume --yes --wait --detach", 0);
    assert!(said.contains("continues in the background"), "{said}");
    assert!(waits(&stage) && stage.of("run.resumed").is_empty());
    says_until_when(&stage);
    stage.exits("cancel", 0);
    comes(&stage, "the driver to leave", || !is_driven(&stage));
    assert_eq!(stage.of("run.ended")[0]["status"], "cancelled");
    assert_eq!(calls(&stage, "claude"), 1);
}

#[track_caller]
fn says_until_when(stage: &Stage) {
    for look in ["status", "list"] {
        let said = stage.exits(look, 0);
        let says = said.contains("running") && said.contains("waits until ");
        assert!(says && said.contains(" from now"), "{look}: {said}");
    }
}

#[test]
fn every_look_at_a_run_whose_driver_waits_says_until_when() {
    let stage = stage("[limits]\nwait = true\n", LONG);
    let mut driver = stage.start("run w.yaml --yes");
    comes(&stage, "the limit", || stage.journal().matches("\"attempt.finished\"").count() == 2);
    says_until_when(&stage);
    stage.exits("cancel", 0);
    assert_eq!(driver.wait().unwrap().code(), Some(10));
}

#[test]
fn a_driver_that_waits_hears_a_pause_and_the_run_stays_parked() {
    let stage = stage("", LONG);
    stage.exits("run w.yaml --yes", 12);
    let journal = stage.journal();
    let mut driver = stage.start("resume --yes --wait");
    comes(&stage, "the driver to wait", || waits(&stage));
    stage.exits("pause", 0);
    assert_eq!(driver.wait().unwrap().code(), Some(12));
    assert_eq!(stage.journal(), journal);
    stage.exits("resume --yes", 12);
}

#[test]
fn an_answer_lets_go_on_what_the_limit_does_not_hold_back() {
    let stage = stage("", LONG);
    let steps = "[{ id: work, agent: claude, prompt: p }, { id: ok, needs: [], gate: Go? }, \
                 { id: other, needs: [ok], run: 'echo x > other.txt' }]";
    stage.put("w.yaml", &format!("onward: 1\nname: w\nsteps: {steps}\n"));
    stage.exits("run w.yaml --yes", 12);
    let mut driver = stage.start("resume --yes --wait");
    comes(&stage, "the driver to wait", || waits(&stage));
    stage.exits("approve", 0);
    comes(&stage, "the other step", || stage.path("other.txt").exists());
    stage.exits("cancel", 0);
    assert_eq!(driver.wait().unwrap().code(), Some(10), "{}", stage.journal());
    assert_eq!(stage.of("run.ended")[0]["status"], "cancelled");
    assert_eq!(calls(&stage, "claude"), 1);
}

#[test]
fn the_locks_of_sessions_leave_with_their_driver() {
    let stage = stage("", None);
    stage.exits("run w.yaml --yes", 0);
    let locks = std::fs::read_dir(stage.path("state/onward/sessions")).unwrap();
    assert_eq!(locks.count(), 0, "{}", stage.journal());
}
