//! What another hand left in the place of a file that a step of ours makes is kept.

use std::{fs, process::Stdio};

use serde_json::json;

use crate::{
    bench::{kill_all, sees},
    office::{EXECUTION, Office, PHASE, RESUME, caught},
};

/// In a phase of the original's, with no task open.
fn in_phase(office: &Office, phase: &str) {
    let mut state = office.object(PHASE);
    state["current_phase"] = json!(phase);
    office.put(PHASE, &state);
    let mut execution = office.object(EXECUTION);
    for task in execution["tasks"].as_array_mut().unwrap() {
        task["status"] = json!("verified");
    }
    office.put(EXECUTION, &execution);
}

/// Whether the archive has a file of this name with this text.
fn is_kept(office: &Office, name: &str, text: &str) -> bool {
    let archive = fs::read_dir(office.bench.path("memory/state/.archive")).unwrap();
    let mut copies = archive.map(|it| it.unwrap().path().join(name));
    copies.any(|it| fs::read_to_string(it).is_ok_and(|it| it == text))
}

const BROKEN: &str = "{broken ver";

#[test]
fn a_report_that_cannot_be_read_is_in_the_archive_before_it_is_made_again() {
    for (phase, name) in
        [("VERIFICATION", "reports/verification.json"), ("REFLECTION", "reflections/wf-greet.json")]
    {
        let office = caught();
        in_phase(&office, phase);
        office.put("memory/reports/verification.json", &json!({"verdict": "PASS"}));
        office.put(&format!("memory/{name}"), &json!({}));
        office.bench.write(&format!("memory/{name}"), BROKEN);
        let plan = office.bench.exits("plan --json", 0).json();
        let told = plan["findings"].as_array().unwrap().iter();
        let mut told = told.filter(|it| it["path"] == format!("memory/{name}"));
        assert!(told.any(|it| it["code"] == "artifact-unproved"), "{name}: {plan:#}");
        office.bench.onward(RESUME);
        assert_ne!(office.bench.text(&format!("memory/{name}")), BROKEN);
        assert!(is_kept(&office, name, BROKEN), "{name}");
    }
}

/// In the architecture, with no design and nothing that says which architects are asked.
fn before_the_designs(office: &Office) {
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("ARCHITECTURE");
    phase["completed_phases"].as_array_mut().unwrap().pop();
    office.put(PHASE, &phase);
    fs::remove_file(office.bench.path(EXECUTION)).unwrap();
    fs::remove_file(office.bench.path("memory/reports/final_design.json")).unwrap();
}

/// The demand is written, and nothing more.
pub(crate) fn before_the_yes(office: &Office) {
    before_the_designs(office);
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("REQUIREMENTS");
    (phase["completed_phases"], phase["user_checkpoints"]) = (json!([]), json!([]));
    office.put(PHASE, &phase);
}

#[test]
fn designs_that_cannot_be_read_or_are_of_another_hand_are_in_the_archive() {
    let office = caught();
    before_the_designs(&office);
    let name = "reports/designs/fast.json";
    office.put(&format!("memory/{name}"), &json!({}));
    office.bench.write(&format!("memory/{name}"), BROKEN);
    office.bench.exits(RESUME, 11);
    assert!(is_kept(&office, name, BROKEN));
}

#[test]
fn an_architect_that_was_killed_runs_again_in_a_run_of_the_original() {
    let office = caught();
    before_the_designs(&office);
    let agent = office.bench.text(".onward/agent.sh");
    let waits = "case \"$ONWARD_STEP\" in *fast*/draft)
    echo begun > \"$project/.onward/at\"
    while [ -e \"$project/.onward/waits\" ]; do sleep 0.05; done;; esac\ncase ";
    let agent = agent.replacen("case ", waits, 1);
    office.bench.write(".onward/agent.sh", &agent);
    office.bench.write(".onward/waits", "");
    let mut engine = office.bench.command(RESUME).stdout(Stdio::null()).spawn().unwrap();
    for name in ["simple", "robust"] {
        sees(&office.bench.path(&format!("memory/reports/designs/{name}.json")));
    }
    sees(&office.bench.path(".onward/at"));
    engine.kill().unwrap();
    engine.wait().unwrap();
    kill_all(&office.run_dir());
    fs::remove_file(office.bench.path(".onward/waits")).unwrap();
    let plan = office.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "architects", "{plan:#}");
    office.bench.exits(RESUME, 11);
    assert!(office.bench.path("memory/reports/designs/fast.json").is_file());
    let ledger = office.ledger();
    let drafts = |name: &str| ledger.iter().filter(|it| it.contains(name)).count();
    assert_eq!((drafts("[simple]"), drafts("[robust]")), (1, 1), "{ledger:?}");
}

/// The original goes on behind a phase whose file is there, whatever it holds.
#[test]
fn a_report_that_a_person_enters_before_is_moved_away() {
    let office = caught();
    in_phase(&office, "VERIFICATION");
    let agent = office.bench.text(".onward/agent.sh");
    office.bench.write(".onward/agent.sh", &agent.replacen("case ", "exit 1\ncase ", 1));
    let verdict = json!({"verdict": "PASS"});
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("REFLECTION");
    office.put(PHASE, &phase);
    office.put("memory/reports/verification.json", &verdict);
    office.bench.onward(&format!("{RESUME} --from verification"));
    assert!(!office.bench.path("memory/reports/verification.json").exists());
    assert!(is_kept(&office, "reports/verification.json", &verdict.to_string()));
}
