//! What the original, or a person, brings to an end between two resumes stays as they left it.

use std::fs;

use serde_json::json;

use crate::office::{EXECUTION, Office, PHASE, RESUME, RUN, caught};

/// In the implementation, as far as it comes.
fn built(agent: impl FnOnce(String) -> String, code: i32) -> Office {
    let office = Office::with(agent);
    office.bench.exits(RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    office.bench.exits(RESUME, code);
    office
}

#[test]
fn a_task_that_was_verified_elsewhere_after_it_had_failed_here_stays_verified() {
    let office =
        built(|agent| agent.replace("grep -q 3 count.txt", "test -e \"$project/yes\""), 10);
    assert_eq!(office.task("task-003")["status"], "failed");
    let tries = |office: &Office| {
        office.ledger().iter().filter(|it| it.contains("task-003")).cloned().collect::<Vec<_>>()
    };
    let before = tries(&office);
    // The recommendation is followed: the work is done by other hands.
    office.bench.write("count.txt", "1\n2\n3\n");
    let mut execution = office.object(EXECUTION);
    let tasks = execution["tasks"].as_array_mut().unwrap();
    let task = tasks.iter_mut().find(|it| it["id"] == "task-003").unwrap();
    task["status"] = json!("verified");
    office.put(EXECUTION, &execution);
    let output = json!({"task_id": "task-003", "status": "pre_complete"});
    office.put("memory/tasks/task-003/output.json", &output);
    let plan = office.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "verification", "{plan:#}");
    let steps = plan["recovery_point"]["steps"].to_string();
    assert!(!steps.contains("implementation"), "{plan:#}");
    office.bench.exits(RESUME, 0);
    assert_eq!(office.task("task-003")["status"], "verified");
    assert_eq!(tries(&office), before, "nothing of it was tried again");
}

#[test]
fn repairs_that_are_used_up_are_asked_about_and_end_when_the_verification_passes_elsewhere() {
    let never = |agent: String| agent.replace("echo bye >> greet.txt", "echo and >> greet.txt");
    for by_hand in [true, false] {
        let office = built(never, 10);
        let failed = fs::read_to_string(office.run_dir().join("journal.jsonl")).unwrap();
        assert!(failed.contains("`repair` took 3 turns"), "the end of the run says why");
        let said = office.bench.exits(RESUME, 16);
        assert!(said.err.contains("turns-used-up"), "{said:#?}");
        let before = office.ledger();
        if by_hand {
            office.put("memory/reports/verification.json", &json!({"verdict": "PASS"}));
            let mut phase = office.object(PHASE);
            phase["current_phase"] = json!("VERIFICATION");
            office.put(PHASE, &phase);
            office.bench.exits(RESUME, 0);
            let rest = office.ledger().split_off(before.len());
            assert_eq!(rest, ["reflection/draft"]);
        } else {
            let agent = office.bench.text(".onward/agent.sh");
            office.bench.write(".onward/agent.sh", &agent.replace("echo and", "echo bye"));
            office.bench.exits(&format!("{RESUME} --accept turns-used-up"), 0);
            assert!(office.ledger().contains(&"repair[4]/fix".to_owned()));
        }
        assert_eq!(office.object(PHASE)["phase_status"], "complete");
    }
}

#[test]
fn a_project_without_a_repository_is_told_before_anything_is_done() {
    let office = caught();
    fs::rename(office.bench.path(".git"), office.bench.path("put-away")).unwrap();
    let plan = office.bench.exits("plan --json", 0).json();
    let said = plan["findings"].to_string();
    assert!(said.contains("prerequisite-missing") && said.contains("git init"), "{plan:#}");
    office.bench.exits(RESUME, 2);
    assert!(!office.bench.path(".onward/runs").exists());
}

#[test]
fn a_project_that_ignores_onward_gets_its_tasks_merged() {
    let office = caught();
    office.bench.write(".gitignore", ".onward/\n");
    office.git(&["add", ".gitignore"]);
    office.git(&["commit", "--quiet", "--message=ignore"]);
    office.bench.exits(RESUME, 0);
    assert_eq!(office.bench.text("shout.txt"), "HELLO\n");
    assert_eq!(office.git(&["ls-files", ".onward"]), "");
}
