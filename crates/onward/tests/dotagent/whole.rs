//! From nothing to the reflection.

use onward_core::address::Address;
use onward_engine::world::out_name;

use crate::{
    bench::watched,
    office::{EXECUTION, Office, PHASE, RESUME, RUN},
};

#[test]
fn a_run_from_nothing_leaves_what_the_original_would_and_the_work_is_committed() {
    let office = Office::finished();
    let left = office.left();
    let phase = &left[PHASE];
    assert_eq!(
        (&phase["current_phase"], &phase["phase_status"]),
        (&"REFLECTION".into(), &"complete".into())
    );
    assert_eq!(phase["completed_phases"].as_array().unwrap().len(), 5, "{phase:#}");
    assert_eq!(phase["user_checkpoints"].as_array().unwrap().len(), 2, "{phase:#}");
    assert_eq!(phase["interruption_safe"], true);
    let tasks = left[EXECUTION]["tasks"].as_array().unwrap();
    let ids: Vec<&str> = tasks.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["task-001", "task-002", "task-003", "repair-1"]);
    assert!(tasks.iter().all(|it| it["status"] == "verified"), "{tasks:#?}");
    assert_eq!(office.task("task-001")["attempts"], 1);
    assert_eq!(office.task("task-002")["retry_strategy"], "escalation");
    assert_eq!(office.task("task-003")["retry_strategy"], "context_enhancement");
    assert_eq!(office.task("task-003")["attempts"], 2);
    assert_eq!(left["memory/contracts/greeting.json"]["version"], 2, "it was resolved once");
    assert_eq!(left["memory/reports/verification.json"]["verdict"], "PASS");
    assert_eq!(left["memory/reports/verification.1.json"]["verdict"], "FAIL");
    assert_eq!(left["greet.txt"], "hello\nbye\n");
    assert_eq!(left["shout.txt"], "HELLO\n");
    assert_eq!(left["status"], "", "all of it is committed");
    let commits = office.git(&["log", "--format=%s"]);
    for subject in
        ["task-001: write the greeting", "task-002: shout it", "task-003: count to three"]
    {
        assert!(commits.contains(subject), "{commits}");
    }
    office.bench.exits("resume --no-input", 17);
}

#[test]
fn a_call_that_is_made_again_changes_no_file() {
    let office = Office::finished();
    let before = office.left();
    let text = office.bench.text(PHASE);
    let run = office.run_dir();
    let mut calls = 0;
    for (step, attempt) in watched(&run).finished() {
        let Some(name) = function(&step) else { continue };
        let with = out_name(&Address::from_text(&step), attempt, "with");
        let mut command = office.bench.command(&format!("call {name}"));
        command.env("ONWARD_WITH", run.join(with)).env("ONWARD_STEP", &step);
        let id = run.file_name().unwrap();
        let output = command.env("ONWARD_RUN", id).output().unwrap();
        assert!(output.status.success(), "{step}: {output:?}");
        calls += 1;
    }
    assert!(calls > 20, "{calls}");
    assert_eq!(office.left(), before);
    assert_eq!(office.bench.text(PHASE), text);
}

/// The function behind a step that writes what stands at the end.
fn function(step: &str) -> Option<&'static str> {
    let writers = [
        ("requirements/open", "dotagent.open"),
        ("requirements/record", "dotagent.demand"),
        ("approved", "dotagent.approve"),
        ("approved-design", "dotagent.approve"),
        ("roundtable/record", "dotagent.merged"),
        ("plan/look", "dotagent.look"),
        ("plan/record", "dotagent.plan"),
        ("/merge", "dotagent.merge"),
        ("/verified", "dotagent.verified"),
        ("verification/begin", "dotagent.begin"),
        ("/mended", "dotagent.mended"),
        ("repair[1]/record", "dotagent.verdict"),
        ("reflection/record", "dotagent.reflect"),
    ];
    if step.starts_with("architects") && step.ends_with("/record") {
        return Some("dotagent.design");
    }
    writers.into_iter().find(|(end, _)| step.ends_with(end)).map(|(_, name)| name)
}

#[test]
fn a_run_after_a_finished_one_archives_it_and_begins_anew() {
    let office = Office::finished();
    let first = office.object(PHASE)["workflow_id"].clone();
    for number in 0..5 {
        let name = format!("memory/state/.archive/old{number}_2020010{number}T000000Z/phase.json");
        office.put(&name, &serde_json::json!({"workflow_id": format!("old{number}")}));
    }
    office.bench.exits(RUN, 11);
    assert_ne!(office.object(PHASE)["workflow_id"], first);
    assert_eq!(office.object(PHASE)["current_phase"], "REQUIREMENTS");
    assert!(!office.bench.path(EXECUTION).exists());
    let archive = office.bench.path("memory/state/.archive");
    let name = first.as_str().unwrap();
    let mut names: Vec<String> = std::fs::read_dir(&archive)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 6, "five and the older ones: {names:?}");
    assert!(names.contains(&"older".to_owned()));
    assert!(archive.join("older/old0_20200100T000000Z/phase.json").is_file(), "nothing is deleted");
    let own = archive.join(names.iter().find(|it| it.starts_with(name)).unwrap());
    for file in ["phase.json", "execution.json", "reports/demand.json", "reports/verification.json"]
    {
        assert!(own.join(file).is_file(), "{file}");
    }
    office.approves();
    office.bench.exits(RESUME, 11);
    assert!(!office.bench.path("memory/reports/final_design.json").exists());
}

/// A person commits what the first task writes, and goes on with a file of their own, while the
/// task is verified.
#[test]
fn work_that_the_project_stands_against_is_reconciled_and_merged() {
    let meanwhile = |agent: String| {
        let said = "answer '{\"passed\": true, \"failures\": []}'";
        let commits = "git add greet.txt && git commit -q -m mine && echo more >> notes.txt";
        let commits = format!("(cd \"$project\" && echo mine > greet.txt && {commits})");
        let verify = format!("  *task-001*/verify) {commits}; {said} ;;\n  */verify) answer");
        let agent = agent.replacen("  */verify) answer", &verify, 1);
        // One task at a time: git has one lock.
        let alone = "\"files\": [\"count.txt\"], \"depends_on\": [\"task-001\"]";
        agent.replacen("\"files\": [\"count.txt\"]", alone, 1)
    };
    let office = Office::with(meanwhile);
    office.bench.write("notes.txt", "not committed\n");
    office.bench.exits(RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    office.bench.exits(RESUME, 0);
    let ledger = office.ledger();
    let reconciled = ledger.iter().filter(|it| it.ends_with("/reconcile")).count();
    assert_eq!(reconciled, 1, "{ledger:?}");
    // The scripted agent settles it for the task; the person's commit stays in the history.
    assert_eq!(office.bench.text("greet.txt"), "hello\nbye\n");
    assert_eq!(office.bench.text("notes.txt"), "not committed\nmore\n", "it is the person's");
    let commits = office.git(&["log", "--format=%s"]);
    assert!(commits.lines().any(|it| it == "mine"), "{commits}");
    assert!(commits.contains("task-001: write the greeting"), "{commits}");
    assert_eq!(office.task("task-001")["status"], "verified");
}
