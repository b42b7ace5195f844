//! Another workflow of the original in the place of the one that our run goes on with.

use std::fs;

use serde_json::{Value, json};

use crate::{
    bench::{codes, journal},
    office::{EXECUTION, Office, PHASE, RESUME, RUN, ago, caught},
};

/// The original begins something else where our run is.
fn begins_another(office: &Office) {
    fs::remove_dir_all(office.bench.path("memory/reports")).unwrap();
    office.put(
        PHASE,
        &json!({"workflow_id": "wf-other", "started_at": ago(1), "last_updated": ago(0),
            "current_phase": "REQUIREMENTS", "phase_status": "in_progress",
            "completed_phases": [], "user_checkpoints": [], "interruption_safe": true}),
    );
}

fn id(office: &Office) -> String {
    office.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
}

fn listed(office: &Office) -> Vec<(String, String)> {
    let list = office.bench.exits("list --json", 0).json();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (text(&it["id"]), text(&it["status"])))
        .collect()
}

/// Ours is over, and says so; the other one is a run of its own.
fn is_told_apart(office: &Office, ours: &str) {
    let (phase, ours_before) = (office.bench.text(PHASE), journal(&office.run_dir()));
    let plan = office.bench.exits(&format!("plan --json {ours}"), 0).json();
    assert!(codes(&plan).contains(&"run-superseded"), "{plan:#}");
    assert_eq!((&plan["can_resume"], &plan["run"]["status"]), (&json!(false), &json!("cancelled")));
    assert_eq!(plan["recovery_point"]["steps"], json!([]), "{plan:#}");
    assert_eq!(plan["counts"]["run"], Value::Null, "{plan:#}");
    let status = office.bench.exits(&format!("status {ours}"), 0);
    assert!(!status.out.contains("onward resume"), "{status:?}");
    for word in ["", " --force", " --accept run-superseded", " --from requirements"] {
        let said = office.bench.exits(&format!("{RESUME} {ours}{word}"), 16);
        assert!(said.err.contains("run-superseded"), "{word}: {said:?}");
        // Nothing is to be fixed: what can be done is said.
        assert!(!said.err.contains("fixed") && !said.err.contains(" yet"), "{word}: {said:?}");
        assert!(said.err.contains("`onward resume wf-other`"), "{word}: {said:?}");
        let end = format!("onward cancel {ours} && onward archive {ours}");
        assert!(said.err.contains(&end), "{word}: {said:?}");
    }
    assert_eq!(office.bench.text(PHASE), phase, "nothing is written into the other one");
    assert_eq!(journal(&office.run_dir()), ours_before);
    let all = listed(office);
    assert!(all.contains(&(ours.to_owned(), "cancelled".to_owned())), "{all:?}");
    assert!(all.contains(&("wf-other".to_owned(), "interrupted".to_owned())), "{all:?}");
    let plan = office.bench.exits("plan --json", 0).json();
    assert_eq!(plan["run"]["id"], "wf-other", "{plan:#}");
    assert_eq!(plan["recovery_point"]["code"], "requirements", "{plan:#}");
    // Without a name the new one is meant; ours stays as it was.
    let before = office.bench.project().runs().unwrap().len();
    office.bench.exits(RESUME, 11);
    let runs = office.bench.project().runs().unwrap();
    assert_eq!(runs.len(), before + 1, "the other one is adopted as a run of its own");
    let of_ours = runs.iter().find(|it| it.id.to_string() == ours).unwrap();
    assert_eq!(journal(&of_ours.dir), ours_before, "and nothing of it is ours");
    assert_eq!(office.object(PHASE)["workflow_id"], "wf-other");
    // Its second resume finds the run that adopted it.
    office.approves();
    office.bench.exits(RESUME, 11);
    assert_eq!(office.bench.project().runs().unwrap().len(), before + 1);
}

#[test]
fn another_workflow_where_ours_was_begun_is_a_run_of_its_own() {
    let office = Office::new();
    office.bench.exits(RUN, 11);
    let ours = id(&office);
    begins_another(&office);
    is_told_apart(&office, &ours);
}

#[test]
fn another_workflow_where_ours_was_adopted_is_a_run_of_its_own() {
    let office = caught();
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("REQUIREMENTS");
    (phase["completed_phases"], phase["user_checkpoints"]) = (json!([]), json!([]));
    office.put(PHASE, &phase);
    office.bench.exits(RESUME, 11);
    let ours = id(&office);
    assert_eq!(office.object(PHASE)["workflow_id"], "wf-greet");
    fs::remove_file(office.bench.path(EXECUTION)).unwrap();
    begins_another(&office);
    is_told_apart(&office, &ours);
}

/// The checkpoint is gone for a moment, and made again: it is still ours.
#[test]
fn a_checkpoint_that_is_made_again_keeps_the_name_of_its_workflow() {
    let office = Office::new();
    office.bench.exits(RUN, 11);
    let ours = office.object(PHASE)["workflow_id"].clone();
    assert!(ours.as_str().is_some_and(|it| !it.is_empty()));
    office.put(EXECUTION, &json!({"tasks": []}));
    fs::remove_file(office.bench.path(PHASE)).unwrap();
    office.bench.exits(&format!("{RESUME} --accept state-unreadable"), 11);
    assert_eq!(office.object(PHASE)["workflow_id"], ours);
    assert_eq!(office.bench.project().runs().unwrap().len(), 1);
}

/// While an agent of ours is at work.
#[test]
fn a_step_writes_nothing_into_a_workflow_that_began_meanwhile() {
    let other =
        r#"{"workflow_id":"wf-other","current_phase":"REQUIREMENTS","phase_status":"in_progress"}"#;
    let swap = format!("  requirements/draft) printf '%s' '{other}' > \"$project/{PHASE}\"\n     ");
    let office = Office::with(|agent| agent.replacen("  requirements/draft)", &swap, 1));
    let said = office.bench.exits(RUN, 10);
    assert!(said.err.contains("wf-other"), "{said:?}");
    assert_eq!(office.bench.text(PHASE), other);
    assert!(!office.bench.path("memory/reports/demand.json").exists());
}

#[test]
fn an_execution_of_another_workflow_is_not_used_and_is_kept() {
    let office = caught();
    let mut execution = office.object(EXECUTION);
    execution["workflow_id"] = json!("wf-before");
    execution["tasks"][0]["status"] = json!("verified");
    office.put(EXECUTION, &execution);
    let theirs = office.bench.text(EXECUTION);
    let plan = office.bench.exits("plan --json", 0).json();
    let told = plan["findings"].as_array().unwrap().iter();
    let told: Vec<&str> = told.filter_map(|it| it["message"].as_str()).collect();
    assert!(told.iter().any(|it| it.contains("wf-before") && it.contains("not used")), "{told:?}");
    assert!(!plan.to_string().contains("verified, kept"), "{plan:#}");
    assert_eq!(office.bench.text(EXECUTION), theirs, "a plan changes nothing");
    let agent = office.bench.text(".onward/agent.sh");
    let planner =
        "  *) answer '{\"tasks\": [{\"id\": \"task-001\", \"summary\": \"greet\"}]}' ;;\nesac";
    office.bench.write(".onward/agent.sh", &agent.replace("esac\n", planner));
    office.bench.onward(RESUME);
    assert_eq!(office.object(EXECUTION)["workflow_id"], "wf-greet");
    let archive = fs::read_dir(office.bench.path("memory/state/.archive")).unwrap();
    let mut kept = archive.map(|it| it.unwrap().path().join("execution.json"));
    assert!(kept.any(|it| fs::read_to_string(it).is_ok_and(|it| it == theirs)));
}

/// 42 and "42" are one workflow, and each file keeps what it has.
#[test]
fn an_id_that_is_a_number_is_the_same_in_quotes() {
    for (phase_id, execution_id) in [(json!(42), json!("42")), (json!(42), json!(42))] {
        let office = caught();
        for (path, id) in [(PHASE, &phase_id), (EXECUTION, &execution_id)] {
            let mut held = office.object(path);
            held["workflow_id"] = id.clone();
            office.put(path, &held);
        }
        let plan = office.bench.exits("plan --json", 0).json();
        assert_eq!(plan["run"]["id"], "42", "{plan:#}");
        assert!(!plan["findings"].to_string().contains("another workflow"), "{plan:#}");
        office.bench.exits(RESUME, 0);
        assert_eq!(office.object(PHASE)["workflow_id"], phase_id);
        assert_eq!(office.object(EXECUTION)["workflow_id"], execution_id);
        let reflection = office.object("memory/reflections/42.json");
        assert_eq!(reflection["workflow_id"], phase_id, "{reflection:#}");
        office.bench.exits(RESUME, 17);
    }
    // Another number is another workflow.
    let office = caught();
    for (path, id) in [(PHASE, 42), (EXECUTION, 43)] {
        let mut held = office.object(path);
        held["workflow_id"] = json!(id);
        office.put(path, &held);
    }
    let plan = office.bench.exits("plan --json", 0).json();
    assert!(plan["findings"].to_string().contains("another workflow, `43`"), "{plan:#}");
}
