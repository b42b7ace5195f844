//! Runs that the original left, gone on with.

use serde_json::json;

use crate::{
    bench::codes,
    office::{EXECUTION, Office, PHASE, RESUME, caught},
    support::terminal::Terminal,
};

#[test]
fn a_run_of_the_original_goes_on_where_it_was_and_what_onward_does_not_know_is_kept() {
    let office = caught();
    office.bench.exits(RESUME, 0);
    let phase = office.object(PHASE);
    assert_eq!((&phase["phase_status"], &phase["owner"]), (&"complete".into(), &"ann".into()));
    assert_eq!(phase["workflow_id"], "wf-greet");
    assert_eq!(office.object(EXECUTION)["mood"], "good");
    for (task, attempts) in [("task-001", 1), ("task-002", 3), ("task-003", 2)] {
        let entry = office.task(task);
        assert_eq!(entry["status"], "verified", "{entry:#}");
        assert_eq!(entry["attempts"], attempts, "{entry:#}");
        assert_eq!(entry["cost"], 7, "{entry:#}");
    }
    let ledger = office.ledger();
    assert!(
        !ledger.iter().any(|it| it.contains("task-001") && it.ends_with("/implement")),
        "{ledger:?}"
    );
    for before in ["requirements", "architects", "roundtable", "plan"] {
        assert!(!ledger.iter().any(|it| it.starts_with(before)), "{ledger:?}");
    }
    assert_eq!(office.bench.text("greet.txt"), "hello\nbye\n");
}

#[test]
fn a_task_that_was_tried_three_times_is_asked_about() {
    let office = caught();
    let agent = office.bench.text(".onward/agent.sh");
    let willing = agent.replace(r"*task-002*try\[1\]/implement)", "never)");
    assert_ne!(willing, agent);
    office.bench.write(".onward/agent.sh", &willing);
    let mut execution = office.object(EXECUTION);
    execution["tasks"][1]["attempts"] = json!(3);
    office.put(EXECUTION, &execution);
    let before = office.bench.text(EXECUTION);
    let said = office.bench.exits(RESUME, 16);
    assert!(said.err.contains("attempts-used-up"), "{said:?}");
    assert_eq!(office.bench.text(EXECUTION), before, "a refused resume writes nothing");
    office.bench.exits(&format!("{RESUME} --accept attempts-used-up"), 0);
    assert_eq!(office.task("task-002")["status"], "verified");
    assert_eq!(office.task("task-002")["attempts"], 4, "the one that a person allowed counts");
}

#[test]
fn a_task_that_fails_three_times_ends_the_run_with_a_report_and_goes_on_when_a_person_says_so() {
    let never = |agent: String| agent.replace("grep -q 3 count.txt", "test -e \"$project/yes\"");
    let office = Office::with(never);
    office.bench.exits(crate::office::RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    office.bench.exits(RESUME, 10);
    let task = office.task("task-003");
    assert_eq!((&task["status"], &task["attempts"]), (&"failed".into(), &3.into()), "{task:#}");
    let execution = office.object(EXECUTION);
    assert_eq!(execution["attempts_made"], 3);
    assert!(execution["failure_reason"].as_str().unwrap().contains("three is missing"));
    assert!(execution["recommendation"].is_string());
    office.bench.exits(RESUME, 16);
    office.bench.write("yes", "");
    office.bench.exits(&format!("{RESUME} --accept attempts-used-up"), 0);
    let task = office.task("task-003");
    assert_eq!((&task["status"], &task["attempts"]), (&"verified".into(), &4.into()), "{task:#}");
}

#[test]
fn a_checkpoint_of_which_nothing_can_be_read_is_asked_about_kept_and_rebuilt() {
    let office = caught();
    office.bench.write(PHASE, "{\"workflow_id\":\"wf-gr");
    office.bench.write(EXECUTION, "\0\0\0");
    let plan = office.bench.onward("plan --json");
    let plan: serde_json::Value = serde_json::from_str(&plan.out).unwrap();
    assert!(codes(&plan).contains(&"state-unreadable"), "{plan:#}");
    office.bench.exits(RESUME, 16);
    assert_eq!(office.bench.text(PHASE), "{\"workflow_id\":\"wf-gr");
    let planner =
        "  *) answer '{\"tasks\": [{\"id\": \"task-001\", \"summary\": \"greet\"}]}' ;;\nesac";
    let agent = office.bench.text(".onward/agent.sh").replace("esac\n", planner);
    office.bench.write(".onward/agent.sh", &agent);
    office.bench.exits(&format!("{RESUME} --accept state-unreadable"), 0);
    assert_eq!(office.object(PHASE)["phase_status"], "complete");
    let archive = std::fs::read_dir(office.bench.path("memory/state/.archive")).unwrap();
    let kept = archive
        .map(|it| it.unwrap().path())
        .find(|it| it.display().to_string().contains("unreadable"));
    let kept = kept.unwrap();
    assert_eq!(std::fs::read(kept.join("phase.json")).unwrap(), b"{\"workflow_id\":\"wf-gr");
    assert_eq!(std::fs::read(kept.join("execution.json")).unwrap(), b"\0\0\0");
    assert!(!office.ledger().iter().any(|it| it.starts_with("requirements")), "the reports count");
}

/// Of a state that is old, the user is asked: going on, or putting it away.
#[test]
fn an_old_state_is_put_away_from_the_menu_and_the_ways_out_say_how_to_begin_anew() {
    let office = caught();
    let mut phase = office.object(PHASE);
    phase["last_updated"] = json!(crate::office::ago(9 * 24 * 60));
    office.put(PHASE, &phase);
    let stopped = office.bench.exits("resume --no-input", 16);
    assert!(stopped.err.contains("stale-age"), "{stopped:?}");
    let way = stopped.err.lines().find(|it| it.contains("onward run dotagent")).unwrap();
    let first = way.trim().split(" && ").next().unwrap();
    assert!(first.starts_with("onward archive ") && first.ends_with(" --yes"), "{stopped:?}");
    // What was wanted is asked for, and the id of what is put away is not used again.
    assert!(way.ends_with("&& onward run dotagent --input request='WISH'"), "{stopped:?}");
    let mut terminal = Terminal::start(&office.bench, "resume");
    terminal.shows("clean    put its state away and end it; nothing is deleted");
    terminal.types("clean\n");
    terminal.shows("its state is kept in the archive of dotagent");
    terminal.types("yes\n");
    terminal.shows("onward run dotagent");
    terminal.exits(0);
    let plan = office.bench.exits("plan --json .", 0).json();
    assert_eq!(plan["run"]["status"], "fresh", "{plan:#}");
    office.bench.exits(crate::office::RUN, 11);
}

#[test]
fn a_person_who_does_not_go_on_puts_the_state_away_and_begins_anew() {
    let office = caught();
    let (phase, execution) = (office.bench.text(PHASE), office.bench.text(EXECUTION));
    let refused = office.bench.exits(crate::office::RUN, 16);
    assert!(refused.err.contains("onward archive"), "{refused:?}");
    assert_eq!(office.bench.text(PHASE), phase);
    let asked = office.bench.exits("archive .", 16);
    assert!(asked.err.contains("--yes`"), "{asked:?}");
    assert_eq!(office.bench.text(PHASE), phase, "nothing is put away unasked");
    office.bench.exits("archive . --yes", 0);
    let plan = office.bench.exits("plan .", 0);
    assert!(!plan.out.contains("orphan-task"), "its tasks are gone with it: {plan:?}");
    let again = office.bench.exits("archive . --yes", 16);
    assert!(again.err.contains("nothing to put away"), "{again:?}");
    office.bench.exits(crate::office::RUN, 11);
    assert_eq!(office.object(PHASE)["current_phase"], "REQUIREMENTS");
    assert_ne!(office.object(PHASE)["workflow_id"], "wf-greet");
    assert!(!office.bench.path("memory/tasks/task-001/output.json").exists());
    let archive = std::fs::read_dir(office.bench.path("memory/state/.archive")).unwrap();
    let kept = archive.map(|it| it.unwrap().path()).next().unwrap();
    assert!(kept.display().to_string().contains("wf-greet_"), "{}", kept.display());
    for (name, text) in [("phase.json", phase), ("execution.json", execution)] {
        assert_eq!(std::fs::read_to_string(kept.join(name)).unwrap(), text, "{name}");
    }
    for name in ["reports/demand.json", "reports/final_design.json", "tasks/task-001/output.json"] {
        assert!(kept.join(name).is_file(), "{name}");
    }
}

#[test]
fn a_design_that_waits_for_the_user_is_asked_about_and_no_architect_runs_again() {
    let office = caught();
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("ARCHITECTURE");
    phase["phase_status"] = json!("complete");
    phase["completed_phases"].as_array_mut().unwrap().pop();
    office.put(PHASE, &phase);
    std::fs::remove_file(office.bench.path(EXECUTION)).unwrap();
    std::fs::remove_file(office.bench.path("memory/reports/final_design.json")).unwrap();
    office.put("memory/reports/designs/one.json", &json!({"summary": "one way"}));
    office.bench.exits(RESUME, 11);
    assert_eq!(office.ledger(), ["roundtable/draft"]);
    assert_eq!(office.object(PHASE)["phase_status"], "in_progress", "the original may take over");
    office.approves();
    office.bench.exits(RESUME, 0);
    assert!(!office.ledger().iter().any(|it| it.starts_with("architects")));
}
