//! What is lost or taken back between two resumes: tasks that are done stay done, and a yes that
//! counts no more is asked for again.

use std::fs;

use serde_json::{Value, json};

use crate::{
    bench::codes,
    office::{EXECUTION, Office, PHASE, RESUME, RUN, caught},
    support::terminal::Terminal,
};

/// How often agents were started for a task.
fn starts(office: &Office, task: &str) -> usize {
    office.ledger().iter().filter(|it| it.contains(task)).count()
}

#[test]
fn a_list_of_tasks_that_our_run_lost_is_put_back_and_what_is_verified_is_not_done_again() {
    let office =
        Office::with(|agent| agent.replace("grep -q 3 count.txt", "test -e \"$project/yes\""));
    office.bench.exits(RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    office.bench.exits(RESUME, 10);
    let before = office.bench.text(EXECUTION);
    for aside in ["output.1.json", "output.2.json", "verification.1.json", "verification.2.json"] {
        assert!(office.bench.path("memory/tasks/task-003").join(aside).is_file(), "{aside}");
    }
    let attempts = |office: &Office| {
        ["task-001", "task-002", "task-003"].map(|id| office.task(id)["attempts"].clone())
    };
    let (tried, began) = (attempts(&office), starts(&office, "task-001"));
    // The design of this run names its tasks; what our journal knows goes beyond that.
    fs::remove_file(office.bench.path("memory/reports/final_design.json")).unwrap();
    office.bench.write(EXECUTION, &before[..before.len() / 2]);
    let plan = office.bench.exits("plan --json", 0).json();
    assert!(codes(&plan).contains(&"state-rebuilt"), "{plan:#}");
    assert_ne!(office.bench.text(EXECUTION), before, "a plan writes nothing");
    office.bench.exits(RESUME, 16);
    office.bench.write("yes", "");
    office.bench.exits(&format!("{RESUME} --accept attempts-used-up"), 0);
    for id in ["task-001", "task-002", "task-003"] {
        assert_eq!(office.task(id)["status"], "verified", "{:#}", office.object(EXECUTION));
    }
    assert_eq!(starts(&office, "task-001"), began, "{:?}", office.ledger());
    let [one, two, three] = attempts(&office);
    assert_eq!([&one, &two], [&tried[0], &tried[1]]);
    assert_eq!(three, 4, "the one that a person allowed counts");
    let kept = fs::read_dir(office.bench.path("memory/state/.archive")).unwrap();
    let mut kept = kept.map(|it| it.unwrap().path().join("execution.json"));
    let is_it = |it: std::path::PathBuf| {
        fs::read_to_string(it).is_ok_and(|text| text == before[..before.len() / 2])
    };
    assert!(kept.any(is_it), "what could not be read is kept");
}

#[test]
fn a_list_of_tasks_that_the_original_lost_is_made_again_from_outputs_and_verdicts() {
    let office = caught();
    let task = |id: &str| json!({"id": id, "summary": id, "dependencies": []});
    let tasks: Vec<Value> =
        ["task-001", "task-002", "task-003"].iter().map(|it| task(it)).collect();
    let design = json!({"contracts": [], "execution_plan": {"tasks": tasks}});
    office.put("memory/reports/final_design.json", &design);
    let verdict = json!({"task_id": "task-001", "verdict": "PASS"});
    office.put("memory/tasks/task-001/verification.json", &verdict);
    fs::remove_file(office.bench.path(EXECUTION)).unwrap();
    let plan = office.bench.exits("plan --json", 0).json();
    assert!(codes(&plan).contains(&"state-rebuilt"), "{plan:#}");
    let next = json!(["implementation[task-002]", "implementation[task-003]"]);
    assert_eq!(plan["recovery_point"]["steps"], next, "{plan:#}");
    office.bench.exits(RESUME, 0);
    assert_eq!(starts(&office, "task-001"), 0, "{:?}", office.ledger());
    assert_eq!(office.task("task-001")["status"], "verified");
    assert_eq!(office.object(PHASE)["phase_status"], "complete");
}

/// In the architecture, with the merged design before the user: a run of ours, or the original's.
fn merged(is_ours: bool) -> Office {
    if is_ours {
        let office = Office::new();
        office.bench.exits(RUN, 11);
        office.approves();
        office.bench.exits(RESUME, 11);
        return office;
    }
    let office = caught();
    let mut phase = office.object(PHASE);
    phase["current_phase"] = json!("ARCHITECTURE");
    phase["completed_phases"].as_array_mut().unwrap().pop();
    office.put(PHASE, &phase);
    fs::remove_file(office.bench.path(EXECUTION)).unwrap();
    fs::remove_file(office.bench.path("memory/reports/final_design.json")).unwrap();
    office.put("memory/reports/designs/one.json", &json!({"summary": "one way"}));
    office.bench.exits(RESUME, 11);
    office
}

/// The entry alone is removed, or the phase goes back with it.
#[test]
fn an_approval_that_the_original_took_back_is_asked_for_again_and_nothing_is_done_twice() {
    for (is_ours, goes_back) in [(true, false), (true, true), (false, false)] {
        let what = format!("ours: {is_ours}, goes back: {goes_back}");
        let office = merged(is_ours);
        let open = || {
            let status = office.bench.exits("status --json", 0).json();
            let gates = status["gates"].as_array().unwrap().iter();
            gates.map(|it| it["step"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(open(), ["approve-design"], "{what}");
        let ledger = office.ledger();
        let mut phase = office.object(PHASE);
        phase["user_checkpoints"] = json!([]);
        if goes_back {
            phase["current_phase"] = json!("REQUIREMENTS");
        }
        office.put(PHASE, &phase);
        office.bench.exits(RESUME, 11);
        assert_eq!(open(), ["approve"], "{what}");
        assert_eq!(office.ledger(), ledger, "{what}: nothing was started before the answer");
        if goes_back {
            continue;
        }
        office.approves();
        office.bench.exits(RESUME, 11);
        assert_eq!(open(), ["approve-design"], "{what}");
        assert_eq!(office.ledger(), ledger, "{what}: nothing was done twice");
        let said = &office.object(PHASE)["user_checkpoints"];
        assert_eq!(said[0]["phase"], "REQUIREMENTS", "{what}: {said:#}");
    }
}

#[test]
fn a_person_who_ends_the_input_at_a_blocking_finding_is_told_the_word_that_settles_it() {
    let office = caught();
    let mut execution = office.object(EXECUTION);
    execution["tasks"][1]["attempts"] = json!(3);
    office.put(EXECUTION, &execution);
    let mut terminal = Terminal::start(&office.bench, "resume");
    terminal.shows("What now?");
    terminal.types("\x04");
    let shown = terminal.exits(16);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.ends_with("--accept attempts-used-up --yes`"), "{shown}");
}

#[test]
fn a_run_in_the_project_is_found_from_a_directory_below_it() {
    let office = caught();
    fs::create_dir_all(office.bench.path("src/deep")).unwrap();
    for dir in ["src", "src/deep"] {
        let plan = office.bench.exits(&format!("plan --json --cwd {dir}"), 0).json();
        assert_eq!(plan["recovery_point"]["code"], "implementation", "{plan:#}");
        let list = office.bench.exits(&format!("list --json --cwd {dir}"), 0).json();
        assert_eq!(list["runs"][0]["id"], "wf-greet", "{list:#}");
    }
    office.bench.exits(&format!("{RESUME} --cwd src/deep"), 0);
    assert_eq!(office.object(PHASE)["phase_status"], "complete");
}

#[test]
fn both_state_files_lost_are_asked_about_and_made_again_from_what_our_run_knows() {
    let office = caught();
    let agent = office.bench.text(".onward/agent.sh");
    let waits = agent.replace("grep -q 3 count.txt", "test -e \"$project/yes\"");
    office.bench.write(".onward/agent.sh", &waits);
    office.bench.exits(RESUME, 10);
    let before = starts(&office, "task-001");
    for path in [PHASE, EXECUTION] {
        fs::remove_file(office.bench.path(path)).unwrap();
    }
    let plan = office.bench.exits("plan --json", 0).json();
    assert!(codes(&plan).contains(&"state-unreadable"), "{plan:#}");
    office.bench.exits(RESUME, 16);
    assert!(!office.bench.path(EXECUTION).exists(), "a refused resume writes nothing");
    office.bench.write("yes", "");
    let accept = "--accept state-unreadable --accept attempts-used-up";
    office.bench.exits(&format!("{RESUME} {accept}"), 0);
    assert_eq!(starts(&office, "task-001"), before, "{:?}", office.ledger());
    let phase = office.object(PHASE);
    assert_eq!(
        (&phase["workflow_id"], &phase["phase_status"]),
        (&"wf-greet".into(), &"complete".into())
    );
}
