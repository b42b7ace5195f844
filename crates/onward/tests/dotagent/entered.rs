//! A person enters somewhere else than where the run stands.

use serde_json::{Value, json};

use crate::{
    bench::journal,
    office::{EXECUTION, Office, PHASE, RESUME, RUN, ago, caught},
};

/// A run of the original of which the reflection alone is missing.
fn nearly_over() -> Office {
    let office = caught();
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("REFLECTION");
    for (name, output) in
        [("IMPLEMENTATION", EXECUTION), ("VERIFICATION", "memory/reports/verification.json")]
    {
        let entry = json!({"phase": name, "completed_at": ago(20), "output": output});
        phase["completed_phases"].as_array_mut().unwrap().push(entry);
    }
    office.put(PHASE, &phase);
    let mut execution = office.object(EXECUTION);
    for task in execution["tasks"].as_array_mut().unwrap() {
        task["status"] = json!("verified");
    }
    execution["tasks"][1]["depends_on"] = json!(["task-001"]);
    office.put(EXECUTION, &execution);
    office.put("memory/reports/designs/one.json", &json!({"summary": "one way"}));
    office.put("memory/reports/verification.json", &json!({"verdict": "PASS"}));
    for (file, text) in [("shout.txt", "HELLO\n"), ("count.txt", "1\n2\n3\n")] {
        office.bench.write(file, text);
    }
    office
}

/// The first word of each step for which an agent was started, without repetitions.
fn order(office: &Office) -> Vec<String> {
    let first = |it: &String| it.split(['/', '[']).next().unwrap().to_owned();
    let mut all: Vec<String> = office.ledger().iter().map(first).collect();
    all.dedup();
    all
}

/// Enters, says yes as often as it is asked, and gives how often that was.
fn entered(office: &Office, place: &str) -> usize {
    let mut said = office.bench.onward(&format!("{RESUME} --from {place}"));
    let mut asked = 0;
    while said.code == 11 {
        asked += 1;
        office.approves();
        said = office.bench.onward(RESUME);
    }
    assert_eq!(said.code, 0, "{place}: {}\n{said:?}", office.ledger().join("\n"));
    let phase = office.object(PHASE);
    assert_eq!(
        (&phase["current_phase"], &phase["phase_status"]),
        (&"REFLECTION".into(), &"complete".into()),
        "{place}"
    );
    assert_eq!(phase.get("entered_at"), None, "{place}");
    asked
}

#[track_caller]
fn enters(place: &str, asked: usize, first: &[&str]) -> Office {
    let office = nearly_over();
    assert_eq!(entered(&office, place), asked, "{place}");
    let order = order(&office);
    assert_eq!(order[..first.len()], *first, "{place}: {order:?}");
    assert_eq!(order.last().unwrap(), "reflection", "{place}: {order:?}");
    office
}

/// What the archive holds of this name, whichever run it is of.
fn kept(office: &Office, name: &str) -> Option<Value> {
    let archive = std::fs::read_dir(office.bench.path("memory/state/.archive")).unwrap();
    let mut found = archive.map(|it| it.unwrap().path().join(name)).filter(|it| it.is_file());
    let text = std::fs::read_to_string(found.next()?).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn at_the_requirements_all_of_it_is_done_again_and_asked_for_again() {
    let all = ["requirements", "architects", "roundtable", "implementation"];
    let office = enters("requirements", 2, &all);
    assert_eq!(kept(&office, "reports/demand.json"), Some(json!({"goal": "greet"})));
    assert_eq!(kept(&office, "execution.json").unwrap()["mood"], "good");
    assert_eq!(office.object("memory/reports/demand.json")["title"], "Greetings");
    let tasks = office.object(EXECUTION)["tasks"].clone();
    assert_eq!(tasks[0]["description"], "write the greeting", "the new design is planned");
}

#[test]
fn at_the_approval_the_demand_stays_and_the_user_is_asked() {
    let office = enters("approval", 2, &["architects", "roundtable", "implementation"]);
    assert_eq!(office.object("memory/reports/demand.json"), json!({"goal": "greet"}));
}

#[test]
fn at_the_architects_the_approved_demand_stays() {
    let office = enters("architects", 1, &["architects", "roundtable", "implementation"]);
    assert_eq!(kept(&office, "reports/designs/one.json"), Some(json!({"summary": "one way"})));
}

#[test]
fn at_the_roundtable_no_architect_runs_again() {
    let office = enters("roundtable", 1, &["roundtable", "implementation"]);
    assert_eq!(office.object("memory/reports/designs/one.json"), json!({"summary": "one way"}));
    assert_eq!(kept(&office, "reports/final_design.json"), Some(json!({"contracts": []})));
}

#[test]
fn at_the_implementation_every_task_is_done_again_and_nothing_is_asked() {
    let office = enters("implementation", 0, &["implementation", "verification"]);
    for id in ["task-001", "task-002", "task-003"] {
        let is_it = |it: &&String| it.contains(id) && it.ends_with("/implement");
        assert!(office.ledger().iter().any(|it| is_it(&it)), "{id}: {:?}", office.ledger());
    }
}

#[test]
fn at_one_task_it_and_what_rests_on_it_is_done_again() {
    let office = enters("implementation[task-001]", 0, &["implementation", "verification"]);
    let ledger = office.ledger();
    assert!(ledger.iter().any(|it| it == "implementation[task-001]/try[1]/implement"));
    assert!(ledger.iter().any(|it| it.starts_with("implementation[task-002]")));
    assert!(!ledger.iter().any(|it| it.starts_with("implementation[task-003]")), "{ledger:?}");
    assert_eq!(office.task("task-003")["attempts"], 0);
}

#[test]
fn at_the_verification_and_at_the_reflection_no_task_is_touched() {
    let office = enters("verification", 0, &["verification"]);
    assert_eq!(kept(&office, "reports/verification.json"), Some(json!({"verdict": "PASS"})));
    assert!(!office.ledger().iter().any(|it| it.starts_with("implementation")));
    enters("reflection", 0, &["reflection"]);
}

#[test]
fn a_place_that_is_none_or_lies_ahead_is_refused_and_nothing_changes() {
    let office = caught();
    let before = (office.bench.text(PHASE), office.bench.text(EXECUTION));
    for (place, code) in [
        ("nonsense", 1),
        ("implementation[task-009]", 1),
        ("verification", 16),
        ("REFLECTION", 16),
        ("reflection", 16),
    ] {
        let said = office.bench.exits(&format!("{RESUME} --from {place}"), code);
        assert_eq!(said.err.contains("phase-ahead-of-evidence"), code == 16, "{said:?}");
    }
    assert_eq!((office.bench.text(PHASE), office.bench.text(EXECUTION)), before);
    assert!(!office.bench.path("memory/state/.archive").exists());
}

/// Our own run, which failed in its implementation: its journal counts no more for what was done
/// from the roundtable on.
#[test]
fn our_own_run_is_entered_earlier_and_its_tasks_are_planned_anew() {
    let out = |agent: String| {
        let said = "answer '{\"passed\": true";
        agent.replace(
            &format!("  */verify) {said}"),
            &format!("  */verify) test -e \"$project/go\" && {said}"),
        )
    };
    let office = Office::with(out);
    office.bench.exits(RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    office.bench.exits(RESUME, 10);
    let (before, asked) = (office.ledger().len(), journal(&office.run_dir()));
    office.bench.write("go", "");
    assert_eq!(entered(&office, "roundtable"), 1, "the design alone is asked about");
    let after = office.ledger().split_off(before);
    assert_eq!(after[0], "roundtable/draft");
    for id in ["task-001", "task-002", "task-003"] {
        let is_it = |it: &&String| it.contains(id) && it.ends_with("/implement");
        assert!(after.iter().any(|it| is_it(&it)), "{id}: {after:?}");
    }
    assert!(!after.iter().any(|it| it.starts_with("architects")), "{after:?}");
    assert!(journal(&office.run_dir()).starts_with(asked.trim_end_matches('\0')));
}
