//! The original takes over from onward, and onward from the original.

use serde_json::json;

use crate::office::{EXECUTION, Office, PHASE, RESUME, RUN, caught};

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

/// All tasks are verified, and the verification of the whole said no.
fn refused() -> Office {
    let office = caught();
    let agent = office.bench.text(".onward/agent.sh");
    let wait = agent.replacen("  */check)", "  */check) test -e \"$project/go\" || exit 1", 1);
    assert_ne!(wait, agent);
    office.bench.write(".onward/agent.sh", &wait);
    let mut execution = office.object(EXECUTION);
    for task in execution["tasks"].as_array_mut().unwrap() {
        task["status"] = json!("verified");
    }
    office.put(EXECUTION, &execution);
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("VERIFICATION");
    office.put(PHASE, &phase);
    let verdict = json!({"verdict": "FAILED", "failures": ["greet.txt does not say bye"]});
    office.put("memory/reports/verification.json", &verdict);
    office.git(&["add", "."]);
    office.git(&["commit", "--quiet", "--message=so far"]);
    office
}

#[test]
fn a_repair_of_a_verification_of_the_original_is_made_once() {
    let office = refused();
    office.bench.exits(RESUME, 10);
    assert_eq!(office.ledger(), ["repair[1]/fix", "repair[1]/check"]);
    assert_eq!(office.task("repair-1")["status"], "verified");
    office.bench.write("go", "");
    office.bench.exits(RESUME, 0);
    let again = ["repair[1]/fix", "repair[1]/check", "repair[1]/check", "reflection/draft"];
    assert_eq!(office.ledger(), again);
    assert_eq!(office.bench.text("greet.txt"), "hello\nbye\n");
}

/// The first two tasks are verified by our run, and the third cannot be verified yet.
fn verified() -> Office {
    let office = Office::with(|agent| {
        let agent = agent.replace("grep -q 3 count.txt", "test -e \"$project/go\"");
        agent.replacen(r"*task-002*try\[1\]/implement)", "never)", 1)
    });
    office.bench.exits(RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    office.bench.exits(RESUME, 10);
    assert_eq!(office.task("task-001")["status"], "verified");
    office.bench.write("go", "");
    office
}

/// How often an implementer worked on a task.
fn tries(office: &Office, task: &str) -> usize {
    let is_it = |it: &&String| it.contains(task) && it.ends_with("/implement");
    office.ledger().iter().filter(is_it).count()
}

#[test]
fn a_task_of_ours_that_the_original_opens_again_is_done_again() {
    for status in ["pending", "failed", "blocked"] {
        let office = verified();
        let mut execution = office.object(EXECUTION);
        for task in execution["tasks"].as_array_mut().unwrap() {
            match task["id"].as_str().unwrap() {
                "task-002" => task["status"] = json!(status),
                "task-003" => task["attempts"] = json!(1),
                _ => {}
            }
        }
        office.put(EXECUTION, &execution);
        let (first, second) = (tries(&office, "task-001"), tries(&office, "task-002"));
        let plan = office.bench.exits("plan", 0);
        assert!(plan.out.contains("our run brought task-002 to the end"), "{status}: {plan:?}");
        let said = office.bench.onward(RESUME);
        assert!(!said.err.contains("ready to be verified"), "{status}: {said:?}");
        assert_eq!(office.task("task-002")["status"], "verified", "{status}: {said:?}");
        assert_eq!(tries(&office, "task-001"), first, "{status}: {:?}", office.ledger());
        assert_eq!(tries(&office, "task-002"), second + 1, "{status}: {:?}", office.ledger());
    }
}

#[test]
fn a_task_that_the_original_removes_is_not_done() {
    let office = verified();
    let mut execution = office.object(EXECUTION);
    execution["tasks"].as_array_mut().unwrap().retain(|it| it["id"] != "task-003");
    office.put(EXECUTION, &execution);
    let plan = office.bench.exits("plan", 0);
    assert!(plan.out.contains("it does not list task-003 any more"), "{plan:?}");
    let (first, third) = (tries(&office, "task-001"), tries(&office, "task-003"));
    let said = office.bench.onward(RESUME);
    assert!(!said.err.contains("has no task"), "{said:?}");
    assert!(office.ledger().contains(&"verification/check".to_owned()), "{said:?}");
    assert_eq!((tries(&office, "task-001"), tries(&office, "task-003")), (first, third));
}

#[test]
fn a_task_with_a_number_for_an_id_is_done_and_keeps_its_number() {
    let office = caught();
    let agent = office.bench.text(".onward/agent.sh").replace("*task-001*", "implementation*");
    office.bench.write(".onward/agent.sh", &agent);
    let tasks = json!([{"id": 7, "status": "pending"}, {"task_id": "8", "status": "pending",
        "depends_on": [7]}]);
    office.put(EXECUTION, &json!({"workflow_id": "wf-greet", "tasks": tasks}));
    office.bench.exits(RESUME, 0);
    let done = office.object(EXECUTION);
    assert_eq!(
        (&done["tasks"][0]["id"], &done["tasks"][0]["status"]),
        (&7.into(), &"verified".into())
    );
    assert_eq!(done["tasks"][1]["status"], "verified", "{done:#}");
}

#[test]
fn a_demand_that_is_gone_is_written_again_before_anything_is_designed() {
    let office = caught();
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("ARCHITECTURE");
    phase["completed_phases"].as_array_mut().unwrap().pop();
    office.put(PHASE, &phase);
    for gone in [EXECUTION, "memory/reports/demand.json", "memory/reports/final_design.json"] {
        std::fs::remove_file(office.bench.path(gone)).unwrap();
    }
    let plan = office.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "requirements", "{plan:#}");
    office.bench.exits(RESUME, 11);
    assert_eq!(office.ledger(), ["requirements/draft"]);
}
