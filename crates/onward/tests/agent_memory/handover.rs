//! A run that the original began, that onward goes on with, and that the original takes back.

use std::fs;

use onward_core::event::{Event, Record};
use serde_json::json;

use crate::{
    bench::{codes, journal, kill_all, watched},
    desk::{Desk, RUN, graph_of_three, say},
};

/// What the original's agents leave, up to the approval and one implemented task.
fn begun(desk: &Desk) {
    graph_of_three(desk);
    say(desk, "executor", r#"{"event_type":"task-claimed","task_id":"T001""#);
    say(desk, "executor", r#"{"event_type":"task-implemented","task_id":"T001""#);
    say(desk, "executor", r#"{"event_type":"task-claimed","task_id":"T002""#);
}

fn theirs(desk: &Desk) -> Vec<String> {
    let of = |actor: &str| desk.text(&format!("events/{actor}/20260302-0900.jsonl"));
    ["orchestrator", "executor", "verifier"].map(of).to_vec()
}

#[test]
fn a_run_of_the_original_is_taken_up_where_it_was_and_only_our_folder_grows() {
    let desk = Desk::new();
    begun(&desk);
    let before = theirs(&desk);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T002]", "execute[T003]"]));
    desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(theirs(&desk), before);
    let names = desk.names();
    assert!(!names.contains(&"task-claimed T001".to_owned()), "{names:?}");
    assert_eq!(names[0], "task-claimed T002");
    let attempt = desk.events().remove(0)["details"]["attempt"].clone();
    assert_eq!(attempt, 2, "the attempt that was cut off counts");
    assert_eq!(names.last().unwrap(), "run-complete");
    assert_eq!(desk.text("constitution.md"), "# Written by the original\n");
}

/// Blocked at T003, so that the run stops and asks.
fn blocks(agent: &str) -> String {
    let tries = "else echo once > src/T003.tried; status=FAILED; fi";
    agent.replace(tries, "else status=BLOCKED; fi")
}

#[test]
fn what_the_original_does_in_between_is_taken_in_at_the_next_resume() {
    let desk = Desk::with(|agent| blocks(&agent));
    begun(&desk);
    desk.bench.exits("resume --no-input --yes", 11);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "blocked", "{plan:#}");
    assert!(plan["recovery_point"]["summary"].as_str().unwrap().contains("T003"), "{plan:#}");
    // The original does T003 itself, and finds that T001 was not good after all.
    say(&desk, "executor", r#"{"event_type":"task-implemented","task_id":"T003""#);
    say(&desk, "verifier", r#"{"event_type":"task-verified","task_id":"T003""#);
    say(&desk, "verifier", r#"{"type":"task-verification-failed","task_id":"T001""#);
    let before = (theirs(&desk), desk.names().len());
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "execute", "{plan:#}");
    assert!(plan["recovery_point"]["summary"].as_str().unwrap().contains("T001"), "{plan:#}");
    desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(theirs(&desk), before.0);
    let names = desk.names().split_off(before.1);
    assert_eq!(names.iter().filter(|it| *it == "task-claimed T001").count(), 1, "{names:?}");
    assert!(!names.contains(&"task-claimed T003".to_owned()), "{names:?}");
    assert_eq!(names.last().unwrap(), "run-complete");
    let plan = desk.bench.exits(&format!("plan --json {RUN}"), 0).json();
    assert_eq!(plan["recovery_point"]["code"], "complete", "{plan:#}");
}

/// An event of another actor, with the clock of that actor.
fn say_at(desk: &Desk, actor: &str, kind: &str, task: &str, at: &str) {
    let dir = desk.path(&format!("events/{actor}"));
    fs::create_dir_all(&dir).unwrap();
    let line = json!({"event_type": kind, "task_id": task, "timestamp": at, "actor": actor});
    let log = dir.join("20260302-0901.jsonl");
    let text = fs::read_to_string(&log).unwrap_or_default();
    fs::write(&log, format!("{text}{line}\n")).unwrap();
}

/// Without the part of the second, as the original writes it.
fn second_of(event: &serde_json::Value) -> String {
    let at = event["timestamp"].as_str().unwrap();
    format!("{}Z", at.split('.').next().unwrap())
}

#[test]
fn what_the_original_ends_in_the_very_second_of_our_event_is_not_done_again() {
    let desk = Desk::with(|agent| blocks(&agent));
    begun(&desk);
    desk.bench.exits("resume --no-input --yes", 11);
    let log = desk.log();
    let blocked = log.iter().find(|it| it["event_type"] == "task-blocked").unwrap();
    assert_eq!(blocked["task_id"], "T003");
    say_at(&desk, "executor", "task-verified", "T003", &second_of(blocked));
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "cleanup", "{plan:#}");
    let before = desk.names().len();
    desk.bench.exits("resume --no-input --yes", 0);
    let names = desk.names().split_off(before);
    assert!(!names.iter().any(|it| it.ends_with("T003")), "{names:?}");
}

#[test]
fn a_run_that_the_original_completes_in_the_very_second_of_our_resume_is_complete() {
    let desk = Desk::with(|agent| blocks(&agent));
    begun(&desk);
    desk.bench.exits("resume --no-input --yes", 11);
    let last = desk.log().pop().unwrap();
    say_at(&desk, "orchestrator", "run-complete", "", &second_of(&last));
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "complete", "{plan:#}");
    let before = desk.names();
    desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(desk.names(), before, "nothing is gone on with");
}

/// Its clock is ahead: we write into that second, too, and name what we have seen of it.
#[test]
fn what_we_log_after_an_event_of_the_same_second_counts() {
    let desk = Desk::new();
    begun(&desk);
    let now = onward_engine::world::real::wall_clock().plus_ms(60_000);
    let ahead = second_of(&json!({ "timestamp": now.to_string() }));
    say_at(&desk, "executor", "task-failed", "T002", &ahead);
    desk.bench.exits("resume --no-input --yes", 0);
    let claimed = desk.events().remove(0);
    let seen = json!({"events/executor/20260302-0901.jsonl": 1});
    let named: Vec<_> =
        desk.log().iter().filter_map(|it| it["details"].get("seen").cloned()).collect();
    assert_eq!(named, [seen], "once is enough");
    assert_eq!(second_of(&claimed), ahead);
    let plan = desk.bench.exits(&format!("plan --json {RUN}"), 0).json();
    assert_eq!(plan["run"]["status"], "completed", "{plan:#}");
}

#[test]
fn a_log_that_is_no_file_is_told_and_the_rest_is_used() {
    let desk = Desk::new();
    begun(&desk);
    fs::create_dir_all(desk.path("events/verifier/20260302-0902.jsonl")).unwrap();
    fs::create_dir_all(desk.path("events/cleaner")).unwrap();
    desk.bench.fifo(&format!("{RUN}/events/cleaner/20260302-0903.jsonl"));
    let plan = desk.bench.exits("plan --json", 0).json();
    let told = codes(&plan).iter().filter(|it| **it == "state-unreadable").count();
    assert_eq!(told, 2, "{plan:#}");
    assert_eq!(plan["recovery_point"]["code"], "execute", "{plan:#}");
    let refused = desk.bench.exits("resume --no-input --yes", 16);
    assert!(refused.err.contains("20260302-0903.jsonl is not a file"), "{refused:?}");
    desk.bench.exits("resume --no-input --yes --accept state-unreadable", 0);
}

#[test]
fn a_run_that_failed_goes_on_only_by_force() {
    let desk = Desk::new();
    begun(&desk);
    say(&desk, "orchestrator", r#"{"event_type":"run-failed""#);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["run"]["status"], "failed", "{plan:#}");
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    let refused = desk.bench.exits("resume --no-input --yes", 16);
    assert!(refused.err.contains("--force"), "{refused:?}");
    let accepted = desk.bench.exits("resume --no-input --yes --accept run-over", 16);
    assert!(accepted.err.contains("`onward resume --force`"), "no yes settles it: {accepted:?}");
    assert!(!accepted.err.contains("--accept run-over"), "{accepted:?}");
    assert!(!desk.path("events/onward").exists());
    desk.bench.exits("resume --no-input --yes --force", 0);
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn a_person_enters_where_they_say_and_never_ahead_of_what_is_done() {
    let desk = Desk::new();
    begun(&desk);
    desk.bench.exits("resume --no-input --yes --from nonsense", 1);
    let refused = desk.bench.exits("resume --no-input --yes --from cleanup", 16);
    assert!(refused.err.contains("phase-ahead-of-evidence"), "{refused:?}");
    assert!(refused.err.contains("leave `--from` out") && !refused.err.contains("--accept"));
    let accepted = "resume --no-input --yes --from cleanup --accept phase-ahead-of-evidence";
    desk.bench.exits(accepted, 16);
    desk.bench.exits("resume --no-input --yes --from cleanup --force", 16);
    assert!(!desk.path("events/onward").exists(), "a refused resume writes nothing");
    desk.bench.exits("resume --no-input --yes --from execute[T001]", 0);
    let names = desk.names();
    assert_eq!(names[..2], ["task-unblocked T001", "task-claimed T001"], "{names:?}");
    assert_eq!(names.last().unwrap(), "run-complete");
    // The approval is asked again, and nothing before it is repeated.
    let desk = Desk::new();
    begun(&desk);
    desk.bench.exits("resume --no-input --yes --from approval", 11);
    assert_eq!(desk.names(), ["phase_transition"]);
    let asked = || journal(&desk.run_dir()).matches("\"gate.opened\"").count();
    let before = asked();
    desk.bench.exits("decide approve approve --comment tests-first", 0);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert!(!codes(&plan).contains(&"status-disagrees"), "{plan:#}");
    desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(asked(), before, "one answer is enough");
    assert_eq!(desk.names().last().unwrap(), "run-complete");
    let constitution = desk.text("constitution.md");
    assert!(constitution.starts_with("# Written by the original\n"), "{constitution}");
    assert!(constitution.ends_with("> tests-first\n"), "{constitution}");
    assert_eq!(desk.text("plan.md"), "# Written by the original\n");
}

#[test]
fn a_person_who_enters_at_the_planning_gets_another_plan_and_its_tasks_from_nothing() {
    let desk = Desk::new();
    begun(&desk);
    desk.bench.exits("resume --no-input --yes --from planning", 11);
    assert_eq!(desk.text("plan.md"), "# Plan: one file for each number\n");
    assert_eq!(desk.text("prd.md"), "# Written by the original\n", "nothing before it is repeated");
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "approval", "{plan:#}");
    desk.bench.exits("approve", 0);
    desk.bench.exits("resume --no-input --yes", 0);
    let names = desk.names();
    for id in ["T001", "T002", "T003"] {
        assert!(names.contains(&format!("task-claimed {id}")), "{id}: {names:?}");
    }
    assert_eq!(names.last().unwrap(), "run-complete");
}

#[test]
fn a_plan_is_made_again_from_the_approval_and_each_answer_counts_once() {
    let desk = Desk::new();
    begun(&desk);
    let unknown = desk.bench.exits("resume --no-input --yes --from peer-review", 1);
    assert!(unknown.err.contains("approval, execute, verify"), "its own codes: {unknown:?}");
    desk.bench.exits("resume --no-input --yes --from approval", 11);
    desk.bench.exits("decide approve revise --comment smaller", 0);
    desk.bench.exits("resume --no-input --yes", 11);
    desk.bench.exits("decide revise[1]/again approve", 0);
    desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(journal(&desk.run_dir()).matches("\"gate.opened\"").count(), 2);
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

/// Killed as soon as the call has begun that writes the answer down.
#[test]
fn an_answer_that_a_crash_kept_from_the_files_is_not_asked_for_again() {
    let desk = Desk::new();
    begun(&desk);
    desk.bench.exits("resume --no-input --yes --from approval", 11);
    desk.bench.exits("approve", 0);
    let asked = || journal(&desk.run_dir()).matches("\"gate.opened\"").count();
    let before = asked();
    let mut engine = desk.leash("resume --no-input --yes");
    let is_it = |it: &Record| {
        let Event::AttemptStarted(started) = &it.event else { return false };
        started.step.as_str() == "constitution"
    };
    assert!(engine.until(|| watched(&desk.run_dir()).records.iter().any(is_it)), "{}", engine.last);
    engine.kill();
    kill_all(&desk.run_dir());
    desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(asked(), before, "one answer is enough");
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn a_question_that_the_original_has_answered_by_going_on_is_asked_no_more() {
    let desk = Desk::with(|agent| blocks(&agent));
    begun(&desk);
    desk.bench.exits("resume --no-input --yes", 11);
    // The original does T003 itself.
    say(&desk, "verifier", r#"{"event_type":"task-verified","task_id":"T003""#);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "cleanup", "{plan:#}");
    let steps = plan["recovery_point"]["steps"].to_string();
    assert!(!steps.contains("decide"), "{plan:#}");
    desk.bench.exits("resume --no-input --yes", 0);
    let names = desk.names();
    assert!(!names.iter().any(|it| it.starts_with("task-unblocked")), "{names:?}");
    assert_eq!(names.last().unwrap(), "run-complete");
}

#[test]
fn a_run_of_ours_that_the_original_cancels_is_over_whatever_it_waits_for() {
    let desk = Desk::new();
    begun(&desk);
    desk.bench.exits("resume --no-input --yes --from approval", 11);
    say(&desk, "orchestrator", r#"{"event_type":"run-cancelled""#);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["run"]["status"], "failed", "{plan:#}");
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    let status = desk.bench.exits("status --json", 0).json();
    assert_eq!(status["run"]["status"], "failed", "{status:#}");
    desk.bench.exits("resume --no-input --yes", 16);
    desk.bench.exits("resume --no-input --yes --force", 11);
}

/// Each verdict leaves the doubt, as what it rests on waits for a person.
#[test]
fn what_is_done_on_blocked_ground_is_verified_once_and_then_a_person_is_asked() {
    let desk = Desk::new();
    begun(&desk);
    for task in ["T002", "T003"] {
        say(&desk, "verifier", &format!(r#"{{"event_type":"task-verified","task_id":"{task}""#));
    }
    say(&desk, "executor", r#"{"event_type":"task-blocked","task_id":"T001""#);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "verify", "{plan:#}");
    let asked = desk.bench.exits("resume --no-input --yes", 11);
    assert!(asked.err.contains("T001 is blocked"), "{asked:?}");
    let names = desk.names();
    for verdict in ["task-verified T002", "task-verified T003"] {
        assert_eq!(names.iter().filter(|it| *it == verdict).count(), 1, "{names:?}");
    }
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "blocked", "{plan:#}");
    desk.bench.exits("resume --no-input --yes", 11);
    assert_eq!(desk.names(), names, "nothing has moved");
}

#[test]
fn what_is_found_is_told_with_its_place() {
    let desk = Desk::new();
    begun(&desk);
    say(&desk, "verifier", r#"{"event_type":"task-verified","task_id":"T002""#);
    fs::remove_file(desk.path("plan.md")).unwrap();
    let log = desk.path("events/executor/20260302-0900.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, format!("{text}{{\"event_ty\n")).unwrap();
    let plan = desk.bench.exits("plan", 0).out;
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    for place in [
        format!("{RUN}/plan.md"),
        format!("{RUN}/events/executor/20260302-0900.jsonl"),
        "execute[T002]".to_owned(),
    ] {
        let (_, findings) = plan.split_once("Findings").unwrap();
        assert!(findings.contains(&place), "{place}: {plan}");
    }
}

#[test]
fn a_run_that_is_over_lacks_nothing() {
    let desk = Desk::new();
    begun(&desk);
    for task in ["T001", "T002", "T003"] {
        say(&desk, "verifier", &format!(r#"{{"event_type":"task-verified","task_id":"{task}""#));
    }
    say(&desk, "orchestrator", r#"{"event_type":"run-complete""#);
    let plan = desk.bench.exits(&format!("plan --json {RUN}"), 0).json();
    assert_eq!(plan["run"]["status"], "completed", "{plan:#}");
    assert_eq!(codes(&plan), Vec::<&str>::new(), "{plan:#}");
    desk.bench.exits(&format!("resume --no-input --yes {RUN}"), 17);
    assert!(!desk.path("events/onward").exists());
}

#[test]
fn a_run_that_is_cancelled_at_its_approval_is_cancelled_for_the_original_too() {
    let desk = Desk::new();
    desk.bench.exits(&format!("run agent-memory --no-input --input dir={RUN}"), 11);
    desk.bench.exits("decide approve cancel", 0);
    desk.bench.exits("resume --no-input --yes", 10);
    assert_eq!(desk.names().last().unwrap(), "run-cancelled");
    fs::remove_dir_all(desk.bench.path(".onward/runs")).unwrap();
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["run"]["status"], "failed", "{plan:#}");
}

/// Adopted as implemented, and blocked by our own run later.
#[test]
fn an_answer_about_a_task_that_was_adopted_counts_at_the_next_resume() {
    let judge = "  *verify|*look)\n";
    let silent = "  *verify|*look) echo '{\"verdicts\": []}' > \"$ONWARD_RESULT\" ;;\n  never)\n";
    let desk = Desk::with(|agent| agent.replace(judge, silent));
    begun(&desk);
    desk.bench.exits("resume --no-input --yes", 11);
    let status = desk.bench.exits("status --json", 0).json();
    let gate = status["gates"][0]["step"].as_str().unwrap().to_owned();
    let before = desk.names().len();
    desk.bench.exits(&format!("decide {gate} retry"), 0);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert!(!codes(&plan).contains(&"status-disagrees"), "{plan:#}");
    desk.bench.exits("resume --no-input --yes", 11);
    let names = desk.names().split_off(before);
    assert!(names.contains(&"task-unblocked T001".to_owned()), "{names:?}");
    assert!(names.contains(&"task-claimed T001".to_owned()), "{names:?}");
    let asked = journal(&desk.run_dir()).matches("\"gate.opened\"").count();
    assert_eq!(asked, 3, "the approval, and one question each time that it is stuck");
}
