//! The original takes over from onward, and onward from the original.

use serde_json::json;

use crate::office::{EXECUTION, Office, PHASE, RESUME, RUN};

/// In the implementation, with nothing of it done: the verifier of the first task is out.
fn begun() -> Office {
    let wait = |agent: String| {
        agent.replace("  */verify) answer", "  */verify) test -e \"$project/go\" && answer")
    };
    let office = Office::with(wait);
    office.bench.exits(RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    office
}

#[test]
fn what_the_original_did_meanwhile_is_taken_in_and_not_done_again() {
    let office = begun();
    // The original does all of it: outputs, verdicts, statuses, the phase after it.
    office.bench.write("greet.txt", "hello\nbye\n");
    office.bench.write("shout.txt", "HELLO\n");
    office.bench.write("count.txt", "1\n2\n3\n");
    let ids = ["task-001", "task-002", "task-003"];
    let task = |id: &str| {
        office.put(
            &format!("memory/tasks/{id}/output.json"),
            &json!({"task_id": id, "status": "pre_complete"}),
        );
        json!({"id": id, "status": "verified", "attempts": 1})
    };
    let mut phase = office.object(PHASE);
    let tasks: Vec<_> = ids.iter().map(|id| task(id)).collect();
    office.put(EXECUTION, &json!({"workflow_id": phase["workflow_id"], "tasks": tasks}));
    phase["current_phase"] = json!("VERIFICATION");
    let now = crate::office::ago(0);
    let done = json!({"phase": "IMPLEMENTATION", "completed_at": now});
    phase["completed_phases"]
        .as_array_mut()
        .unwrap()
        .push(json!({"phase": "ARCHITECTURE", "completed_at": now,
            "output": "memory/reports/final_design.json"}));
    phase["completed_phases"].as_array_mut().unwrap().push(done);
    office.put(
        "memory/reports/final_design.json",
        &office.object("memory/reports/merged_design.json"),
    );
    office.put(PHASE, &phase);
    office.bench.exits(RESUME, 0);
    assert!(
        !office.ledger().iter().any(|it| it.starts_with("implementation")),
        "{:?}",
        office.ledger()
    );
    assert_eq!(office.object(PHASE)["phase_status"], "complete");
}

#[test]
fn a_task_that_the_original_finished_between_two_resumes_is_kept() {
    let office = begun();
    // The verifier fails, and the run with it.
    office.bench.exits(RESUME, 10);
    let mut execution = office.object(EXECUTION);
    let task = execution["tasks"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .find(|it| it["id"] == "task-001")
        .unwrap();
    let at = json!(onward_engine::world::real::wall_clock().to_string());
    (task["status"], task["completed_at"]) = (json!("verified"), at.clone());
    office.put(EXECUTION, &execution);
    office.put(
        "memory/tasks/task-001/output.json",
        &json!({"task_id": "task-001", "status": "pre_complete"}),
    );
    office.bench.write("greet.txt", "hello\n");
    let status = office.bench.exits("status --json", 0).json();
    let last = &status["last_completed"];
    assert_eq!((&last["step"], &last["at"]), (&"implementation[task-001]".into(), &at), "{last}");
    let before = office.ledger().iter().filter(|it| it.contains("task-001")).count();
    office.bench.write("go", "");
    office.bench.exits(RESUME, 0);
    let after = office.ledger().iter().filter(|it| it.contains("task-001")).count();
    assert_eq!(after, before, "{:?}", office.ledger());
    assert_eq!(office.object(PHASE)["phase_status"], "complete");
}
