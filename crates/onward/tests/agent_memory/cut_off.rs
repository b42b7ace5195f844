//! The original goes on where an agent of ours was cut off: what it writes is its own, and what it
//! finishes is not done again.

use std::fs;

use serde_json::{Value, json};

use crate::{
    bench::{codes, journal, kill_all},
    desk::{Desk, say},
};

const RESUME: &str = "resume --no-input --yes";

/// Everything was killed while the agent of T002 was at work.
fn cut_off() -> Desk {
    let desk = waiting();
    dies(&desk);
    fs::remove_file(desk.bench.path(".onward/waits")).unwrap();
    desk
}

/// Goes on until the agent of T002 is at work; then everything is killed.
fn dies(desk: &Desk) {
    let at = desk.bench.path(".onward/at");
    let _ = fs::remove_file(&at);
    let mut engine = desk.leash(RESUME);
    assert!(engine.until(|| at.exists()), "{}", engine.last);
    engine.kill();
    kill_all(&desk.run_dir());
}

/// The agent of T002 waits as long as `.onward/waits` is there.
fn waiting() -> Desk {
    let waits = "T002) echo begun > .onward/at
            while [ -e .onward/waits ]; do sleep 0.05; done; echo done > src/T002.txt ;;
      Q*)";
    let desk = Desk::with(|agent| agent.replace("      Q*)", &format!("      {waits}")));
    desk.approved();
    desk.bench.write(".onward/waits", "");
    desk
}

/// The attempts that T002 was claimed for, and what came of the last one.
fn attempts(desk: &Desk) -> Vec<(String, Value)> {
    let log = desk.log().into_iter().filter(|it| it["task_id"] == "T002");
    let named = |it: &Value| it["event_type"].as_str().unwrap().to_owned();
    log.map(|it| (named(&it), it["details"]["attempt"].clone())).collect()
}

/// A task that stops the machine each time is not begun for ever.
#[test]
fn a_task_that_is_cut_off_three_times_is_asked_about() {
    let desk = waiting();
    let claimed = |number: u64| ("task-claimed".to_owned(), Value::from(number));
    for number in 1..=3 {
        dies(&desk);
        assert_eq!(attempts(&desk), (1..=number).map(claimed).collect::<Vec<_>>());
    }
    let plan = desk.bench.exits("plan --json", 0).json();
    assert!(codes(&plan).contains(&"attempts-used-up"), "{plan:#}");
    // The gate asks, and nothing else does.
    assert_eq!(plan["can_resume"], true, "{plan:#}");
    let asked = desk.bench.exits(RESUME, 11);
    assert!(asked.err.contains("T002 failed after 3 attempts"), "{asked:?}");
    assert_eq!(attempts(&desk).last().unwrap().0, "task-failed");
    let starts = "\"attempt.started\",\"step\":\"execute[T002]/implement\"";
    assert_eq!(journal(&desk.run_dir()).matches(starts).count(), 3);
    // Asked again, by the gate alone.
    desk.bench.exits(RESUME, 11);
    fs::remove_file(desk.bench.path(".onward/waits")).unwrap();
    let status = desk.bench.exits("status --json", 0).json();
    let gate = status["gates"][0]["step"].as_str().unwrap_or_else(|| panic!("{status:#}"));
    desk.bench.exits(&format!("decide {gate} retry"), 0);
    desk.bench.exits(RESUME, 0);
    assert_eq!(desk.names().last().unwrap(), "run-complete");
    assert!(desk.names().contains(&"task-verified T002".to_owned()), "{:?}", desk.names());
}

/// The journal of the run that was cut off is gone: another one takes the run up.
#[test]
fn an_attempt_of_an_earlier_run_of_ours_counts() {
    let desk = cut_off();
    fs::rename(desk.run_dir(), desk.bench.path("elsewhere")).unwrap();
    desk.bench.exits(RESUME, 0);
    let claimed = attempts(&desk).into_iter().filter(|it| it.0 == "task-claimed");
    assert_eq!(claimed.map(|it| it.1).collect::<Vec<_>>(), [json!(1), json!(2)]);
}

fn claims(desk: &Desk, task: &str) -> usize {
    desk.names().iter().filter(|it| **it == format!("task-claimed {task}")).count()
}

#[test]
fn what_others_log_after_a_kill_is_neither_undone_nor_asked_about() {
    let desk = cut_off();
    say(&desk, "verifier", r#"{"event_type":"task-verified","task_id":"T001""#);
    let mut graph: Value = serde_json::from_str(&desk.text("task-graph.json")).unwrap();
    let more = json!({"id": "T004", "title": "Four", "phase": 2, "dependencies": ["T001"]});
    graph["tasks"].as_array_mut().unwrap().push(more);
    fs::write(desk.path("task-graph.json"), graph.to_string()).unwrap();
    fs::write(desk.path("tasks/T004.md"), "a contract\n").unwrap();
    let log = "events/verifier/20260302-0900.jsonl";
    let theirs = desk.text(log);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert!(!codes(&plan).contains(&"dirty-tree"), "{plan:#}");
    assert_eq!(plan["reverts"], json!([]), "{plan:#}");
    desk.bench.exits(RESUME, 0);
    assert_eq!(desk.text(log), theirs);
    let tries = journal(&desk.run_dir())
        .matches("\"attempt.started\",\"step\":\"execute[T002]/implement\"")
        .count();
    assert_eq!((tries, claims(&desk, "T004")), (2, 1), "{:?}", desk.names());
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn a_task_that_the_original_finished_after_a_kill_is_not_done_again() {
    let desk = cut_off();
    desk.bench.write("src/T002.txt", "mended by the original\n");
    for task in ["T001", "T002"] {
        say(&desk, "verifier", &format!(r#"{{"event_type":"task-verified","task_id":"{task}""#));
    }
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T003]/claim"]), "{plan:#}");
    assert_eq!(plan["reverts"], json!([]), "{plan:#}");
    desk.bench.exits(RESUME, 0);
    assert_eq!(claims(&desk, "T002"), 1, "{:?}", desk.names());
    assert_eq!(desk.bench.text("src/T002.txt"), "mended by the original\n");
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn an_approval_that_is_gone_is_asked_for_once_more() {
    let desk = cut_off();
    fs::remove_file(desk.path("constitution.md")).unwrap();
    let asked = || journal(&desk.run_dir()).matches("\"gate.opened\"").count();
    let before = asked();
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "approval", "{plan:#}");
    assert!(!codes(&plan).contains(&"dirty-tree"), "{plan:#}");
    desk.bench.exits(RESUME, 11);
    assert_eq!(asked(), before + 1);
    assert!(!desk.path("constitution.md").exists());
    desk.bench.exits("approve", 0);
    desk.bench.exits(RESUME, 0);
    assert_eq!(asked(), before + 1, "one answer is enough");
    assert!(desk.path("constitution.md").exists());
    assert_eq!(claims(&desk, "T001"), 1, "nothing before it is repeated: {:?}", desk.names());
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn a_task_that_the_original_blocked_after_a_kill_waits_for_the_user() {
    let desk = cut_off();
    say(&desk, "executor", r#"{"event_type":"task-blocked","task_id":"T002""#);
    let asked = desk.bench.exits(RESUME, 11);
    assert!(asked.err.contains("T002 is blocked"), "{asked:?}");
    assert_eq!(claims(&desk, "T002"), 1, "{:?}", desk.names());
    assert!(!desk.bench.path("src/T002.txt").exists());
}

#[test]
fn a_run_that_is_given_up_after_a_kill_takes_nothing_of_others_away() {
    let desk = cut_off();
    say(&desk, "verifier", r#"{"event_type":"task-verified","task_id":"T001""#);
    let log = "events/verifier/20260302-0900.jsonl";
    let theirs = desk.text(log);
    desk.bench.exits("cancel --yes", 0);
    assert_eq!(desk.text(log), theirs);
    assert_eq!(desk.names().last().unwrap(), "run-cancelled");
}
