//! States in the shape of the program that made them: what it finds when it takes over again.

use serde_json::Value;

use crate::yard::{STATE, STORY, TEXT, Yard};

const MASTER: &str = ".aiox/master-orchestrator/4.2.json";
const RUN: &str = "resume --yes --no-input --accept stale-age";

fn json(yard: &Yard, name: &str) -> Value {
    serde_json::from_str(&yard.bench.text(name)).unwrap()
}

/// The upstream's master orchestrator, stopped while its fourth epic, the implementation, was under
/// way.
fn mastered() -> (Yard, String) {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    let state = "{\n  \"schemaVersion\": 1,\n  \"workflowId\": \"master-4.2\",\n  \"storyId\": \
                 \"4.2\",\n  \"status\": \"blocked\",\n  \"updatedAt\": \
                 \"2026-02-17T10:00:00Z\",\n  \"currentEpic\": 4,\n  \"completedEpics\": [3],\n  \
                 \"pendingEpics\": [6],\n  \"epics\": {\n    \"3\": {\"status\": \"completed\"},\n\
                 \x20   \"4\": {\"status\": \"in_progress\", \"attempts\": 2},\n    \"6\": \
                 {\"status\": \"pending\"}\n  },\n  \"team\": \"blue\",\n  \"errors\": []\n}\n";
    yard.write(MASTER, state);
    (yard, state.to_owned())
}

#[test]
fn a_state_in_json_says_to_its_own_program_what_was_done() {
    let (yard, before) = mastered();
    yard.bench.exits(RUN, 0);
    let after = yard.bench.text(MASTER);
    let told = json(&yard, MASTER);
    assert_eq!((&told["status"], &told["team"]), (&"complete".into(), &"blue".into()), "{after}");
    assert_eq!(told["completedEpics"], serde_json::json!([3, 4, 6]), "{after}");
    assert_eq!(told["pendingEpics"], serde_json::json!([]), "{after}");
    assert_eq!(told["epics"]["4"]["status"], "completed", "{after}");
    assert_eq!(told["epics"]["4"]["attempts"], 2, "{after}");
    assert_ne!(told["updatedAt"], "2026-02-17T10:00:00Z", "{after}");
    let head = &before[..before.find("\"status\"").unwrap()];
    assert!(after.starts_with(head), "{after}");
    yard.bench.exits("plan sdc-4.2", 0);
}

#[test]
fn a_run_that_stops_half_way_leaves_the_truth_in_json_and_may_be_ended_there() {
    let (yard, _) = mastered();
    yard.bench.write("agent.sh", "exit 1\n");
    yard.bench.exits(RUN, 10);
    let told = json(&yard, MASTER);
    assert_eq!((&told["status"], &told["currentEpic"]), (&"in_progress".into(), &4.into()));
    yard.bench.exits("cancel --yes", 0);
    assert_eq!(json(&yard, MASTER)["status"], "aborted");
}

/// An epic that is kept as a pipeline's JSON, with keys in its own spelling.
#[test]
fn an_epic_in_json_is_gone_on_with_and_written_back() {
    let yard = Yard::new();
    yard.with_epic();
    let path = ".aiox/workflow-state/3-pipeline.json";
    let state = "{\n  \"epicId\": \"3\",\n  \"status\": \"paused\",\n  \"currentWave\": 1,\n  \
                 \"waves\": {\n    \"1\": {\"status\": \"in_progress\", \"stories\": {\"3.1\": \
                 {\"status\": \"pending\"}, \"3.2\": {\"status\": \"pending\"}}},\n    \"2\": \
                 {\"stories\": {\"3.3\": {\"status\": \"pending\"}}}\n  },\n  \"team\": \
                 \"blue\",\n  \"updatedAt\": \"2026-02-17T10:00:00Z\"\n}\n";
    yard.write(path, state);
    yard.bench.exits(RUN, 11);
    let told = json(&yard, path);
    assert_eq!(told["waves"]["1"]["stories"]["3.1"]["status"], "completed", "{told:#}");
    assert!(told["waves"]["1"]["stories"]["3.1"]["completedAt"].is_string(), "{told:#}");
    assert_eq!(told["gateVerdicts"]["1"]["status"], "approved", "{told:#}");
    assert_eq!((&told["awaitingInput"], &told["team"]), (&true.into(), &"blue".into()));
    assert!(!yard.bench.path(STATE).exists(), "it has a state");
}

/// All six results, a GO, and a pointer that was never moved: the story is not implemented again,
/// and whether it is over is asked.
#[test]
fn results_that_are_all_there_count_more_than_the_pointer_and_the_storys_status() {
    for status in ["In Progress", "Ready for Review"] {
        let yard = Yard::with(|_| "exit 1\n".to_owned());
        yard.write(STORY, &TEXT.replace("Draft", status));
        let names = ["1_validation", "2_development", "3_self_healing", "4_quality_gate", "5_push"];
        let results = names.map(|it| format!("  {it}: {{status: completed}}\n")).concat();
        let path = ".aiox/workflow-state/4.2-state.yaml";
        let state = format!(
            "workflowId: development-cycle\ncurrentPhase: 3_self_healing\ncurrentStory: \
             \"4.2\"\nphaseResults:\n{results}  6_checkpoint: {{status: completed, decision: GO}}\n"
        );
        yard.write(path, &state);
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(plan["recovery_point"]["code"], "sdc:checkpoint", "{status}: {plan:#}");
        yard.bench.exits("resume --yes --no-input", 11);
        yard.go();
        yard.bench.exits("resume --yes --no-input", 0);
        assert!(yard.bench.text(STORY).contains("**Status:** Done"), "{status}");
        assert!(yard.bench.text(path).contains("currentPhase: \"6_checkpoint\""), "{status}");
    }
}

#[test]
fn the_last_action_and_the_logs_of_the_original_are_told_and_a_resume_is_logged_there() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    let session = "docs/stories/.session-state.yaml";
    let state = "session_state:\n  version: \"1.2\"\n  progress:\n    current_story: \"4.2\"\n  \
                 last_action:\n    type: PHASE_CHANGE\n    story: \"4.2\"\n    phase: \
                 development\n";
    yard.write(session, state);
    let log = ".aiox/logs/orchestration-log-20260217-1000.md";
    yard.write(log, "# Log\n\n[2026-02-17T10:00:00Z] Phase 3 began\n");
    yard.write(".ai/decision-log-4.2.md", "# Decisions\n\n- a link in the mail\n");
    let plan = yard.bench.exits("plan", 0).out;
    for line in [
        "Last action: PHASE_CHANGE, 4.2, development",
        "Orchestration log: .aiox/logs/orchestration-log-20260217-1000.md, last: [",
        "] Phase 3 began\n",
        "Decision log: .ai/decision-log-4.2.md, last: a link in the mail",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    yard.bench.exits("resume --yes --no-input", 0);
    let text = yard.bench.text(log);
    assert!(text.starts_with("# Log\n\n[2026-02-17T10:00:00Z] Phase 3 began\n"), "{text}");
    for line in [
        "] Workflow resumed: Story Development Cycle (4.2)\n",
        "State source: docs/stories/.session-state.yaml\n",
        "Resume point: Phase 3, Implement -- @dev\n",
        "Validation: clean\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(yard.bench.text(session).contains("type: STORY_COMPLETED"));
    // A checkpoint that was reached is asked again, and what was aborted stays so.
    for (kind, code) in [("CHECKPOINT_REACHED", 11), ("ABORT", 16)] {
        let yard = Yard::new();
        yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
        yard.write(session, &state.replace("PHASE_CHANGE", kind));
        yard.bench.exits("resume --yes --no-input", code);
    }
}

/// The table of the original: it was validated while the run was paused, which is fine.
#[test]
fn a_story_that_was_validated_meanwhile_is_no_finding() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Ready"));
    let state = "workflow: sdc\ncurrent_story: \"4.2\"\ncurrent_phase: 2\n";
    yard.write(".nexos/workflow-state/4.2-state.yaml", state);
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "sdc:implement", "{plan:#}");
    assert_eq!(plan["findings"], serde_json::json!([]), "{plan:#}");
}
