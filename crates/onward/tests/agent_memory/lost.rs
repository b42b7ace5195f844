//! Artifacts that got lost after the approval, and tasks that were tried as often as they may be.

use std::fs;

use serde_json::{Value, json};

use crate::{
    bench::{codes, journal},
    desk::{Desk, RUN, graph_of_three, say},
};

const RESUME: &str = "resume --no-input --yes";

/// What the original leaves: approved, and the first of three tasks is done.
fn approved(desk: &Desk) {
    graph_of_three(desk);
    say(desk, "executor", r#"{"event_type":"task-claimed","task_id":"T001""#);
    say(desk, "executor", r#"{"event_type":"task-verified","task_id":"T001""#);
}

fn verdict(plan: &Value, step: &str) -> String {
    let rows = plan["steps"].as_array().unwrap();
    let row = rows.iter().find(|it| it["step"] == step);
    row.unwrap_or_else(|| panic!("{step}: {plan:#}"))["verdict"].as_str().unwrap().to_owned()
}

/// Steps that were started, in the run that is there.
fn started(desk: &Desk) -> Vec<String> {
    let text = journal(&desk.run_dir());
    let starts = text.split("\"attempt.started\",\"step\":\"").skip(1);
    starts.filter_map(|it| it.split('"').next()).map(str::to_owned).collect()
}

#[test]
fn what_got_lost_after_the_approval_is_written_again_and_nothing_else_is_done_again() {
    for (lost, code, maker) in [("plan.md", "planning 1", "plan"), ("prd.md", "intake 0", "intake")]
    {
        let desk = Desk::new();
        approved(&desk);
        fs::remove_file(desk.path(lost)).unwrap();
        let plan = desk.bench.exits("plan --json", 0).json();
        let point = &plan["recovery_point"];
        assert_eq!(point["steps"], json!([maker]), "{plan:#}");
        let told =
            format!("{} {}", point["code"].as_str().unwrap(), point["phase"].as_str().unwrap());
        assert_eq!(told, code);
        assert_eq!(codes(&plan), ["missing-artifact"], "{plan:#}");
        assert_eq!(verdict(&plan, maker), "run");
        for kept in ["intake", "plan", "tasks/break", "approve", "constitution", "execute[T001]"] {
            assert!(kept == maker || verdict(&plan, kept) == "keep", "{kept}: {plan:#}");
        }
        for open in ["execute[T002]", "execute[T003]", "cleanup"] {
            assert_eq!(verdict(&plan, open), "run");
        }
        desk.bench.exits(RESUME, 0);
        assert!(!desk.text(lost).is_empty());
        let again = format!("restore/{}", lost.trim_end_matches(".md"));
        let all = started(&desk);
        assert_eq!(all.first(), Some(&again), "{all:?}");
        for not in ["intake", "plan", "tasks/break"] {
            assert!(!all.iter().any(|it| it == not), "{all:?}");
        }
        assert!(!all.iter().any(|it| it.starts_with("execute[T001]")), "{all:?}");
        assert_eq!(desk.text("constitution.md"), "# Written by the original\n");
    }
}

/// The same in a run that onward has begun: another plan than the first asks no one again.
#[test]
fn a_plan_that_is_written_again_in_our_own_run_is_not_approved_again() {
    let blocks = "else echo once > src/T003.tried; status=FAILED; fi";
    let other = "*/plan) echo '# Another plan' > \"$dir/plan.md\" ;;\n  plan|*/plan)";
    let desk = Desk::with(|agent| {
        agent.replace(blocks, "else status=BLOCKED; fi").replace("plan|*/plan)", other)
    });
    desk.approved();
    desk.bench.exits(RESUME, 11);
    let (before, events) = (started(&desk), desk.names());
    for lost in ["plan.md", "prd.md", "plan.md"] {
        fs::remove_file(desk.path(lost)).unwrap();
        let plan = desk.bench.exits("plan --json", 0).json();
        let step = format!("restore/{}", lost.trim_end_matches(".md"));
        // What is wrong is told once, and by its name.
        let found = codes(&plan);
        assert!(found.contains(&"missing-artifact"), "{plan:#}");
        assert!(!found.contains(&"status-disagrees"), "{plan:#}");
        assert!(plan["steps"].to_string().contains(&format!("{lost} got lost since")), "{plan:#}");
        let runs = plan["steps"].as_array().unwrap().iter();
        let runs = runs.filter(|it| it["verdict"] == "rerun" || it["verdict"] == "verify");
        let again: Vec<&str> = runs.filter_map(|it| it["step"].as_str()).collect();
        // What was written again before runs once more; what was not, for the first time.
        match verdict(&plan, &step).as_str() {
            "run" => assert_eq!(again, [""; 0], "{plan:#}"),
            _ => assert_eq!(again, [step.as_str()], "{plan:#}"),
        }
        assert_eq!(verdict(&plan, "approve"), "keep");
        desk.bench.exits(RESUME, 11);
        assert_eq!(started(&desk).last(), Some(&step));
    }
    assert_eq!(desk.text("plan.md"), "# Another plan\n");
    assert_eq!(started(&desk).len(), before.len() + 3, "{:?}", started(&desk));
    assert_eq!(desk.names(), events, "no task was touched");
}

/// Killed while the artifact is half written: that half is none.
#[test]
fn a_producer_that_is_cut_off_writes_again() {
    let other = "restore/plan) echo half > \"$dir/plan.md\"; test -e go || kill -9 $PPID; \
        echo whole > \"$dir/plan.md\" ;;\n  plan|*/plan)";
    let desk = Desk::with(|agent| agent.replace("plan|*/plan)", other));
    approved(&desk);
    fs::remove_file(desk.path("plan.md")).unwrap();
    desk.bench.onward(RESUME);
    desk.bench.write("go", "");
    desk.bench.exits(RESUME, 0);
    assert_eq!(desk.text("plan.md"), "whole\n");
    assert!(!started(&desk).iter().any(|it| it == "tasks/break"));
}

fn used_up(desk: &Desk, task: &str) {
    for _ in 0..3 {
        say(desk, "executor", &format!(r#"{{"event_type":"task-claimed","task_id":"{task}""#));
        say(desk, "executor", &format!(r#"{{"event_type":"task-failed","task_id":"{task}""#));
    }
}

#[test]
fn a_task_that_is_used_up_is_asked_about_once_and_the_others_go_on() {
    let desk = Desk::new();
    approved(&desk);
    used_up(&desk, "T002");
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(verdict(&plan, "execute[T002]"), "ask", "{plan:#}");
    assert_eq!(verdict(&plan, "execute[T003]"), "run", "{plan:#}");
    assert_eq!((&plan["can_resume"], &plan["counts"]["ask"]), (&json!(true), &json!(1)));
    assert!(plan["needs"][0].as_str().unwrap().starts_with("execute[T002]: "), "{plan:#}");
    let asked = desk.bench.exits(RESUME, 11);
    assert!(asked.err.contains("T002 failed after 3 attempts"), "{asked:?}");
    assert!(!started(&desk).iter().any(|it| it.contains("[T002]/implement")));
    assert!(desk.names().contains(&"task-implemented T003".to_owned()), "{:?}", desk.names());
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["counts"]["ask"], 1, "by the gate that is open: {plan:#}");
    let gate = plan["recovery_point"]["steps"][0].as_str().unwrap().to_owned();
    desk.bench.exits(&format!("decide {gate} retry"), 0);
    desk.bench.exits(RESUME, 0);
    assert!(desk.names().contains(&"task-verified T002".to_owned()), "{:?}", desk.names());
}

#[test]
fn when_all_that_is_open_is_used_up_the_gate_alone_asks() {
    let desk = Desk::new();
    approved(&desk);
    used_up(&desk, "T002");
    used_up(&desk, "T003");
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "blocked", "{plan:#}");
    for task in ["execute[T002]", "execute[T003]"] {
        assert_eq!(verdict(&plan, task), "ask", "{plan:#}");
    }
    desk.bench.exits(RESUME, 11);
    assert_eq!(started(&desk), Vec::<String>::new());
}

/// The original ends the run that ours goes on with.
#[test]
fn a_run_that_is_complete_cannot_be_resumed_whoever_ended_it() {
    let blocks = "else echo once > src/T003.tried; status=FAILED; fi";
    let desk = Desk::with(|agent| agent.replace(blocks, "else status=BLOCKED; fi"));
    approved(&desk);
    desk.bench.exits(RESUME, 11);
    for task in ["T001", "T002", "Q001", "T003"] {
        say(&desk, "verifier", &format!(r#"{{"event_type":"task-verified","task_id":"{task}""#));
    }
    fs::write(desk.path("pr-description.md"), "done\n").unwrap();
    fs::write(desk.path("summary.md"), "done\n").unwrap();
    say(&desk, "orchestrator", r#"{"event_type":"run-complete""#);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "complete", "{plan:#}");
    assert_eq!((&plan["run"]["status"], &plan["can_resume"]), (&json!("completed"), &json!(false)));
    assert_eq!(codes(&plan), Vec::<&str>::new());
    let status = desk.bench.exits("status --json", 0).json();
    assert_eq!(status["run"]["status"], "completed", "{status:#}");
    let list = desk.bench.exits("list --json", 0).json();
    assert_eq!(list["runs"][0]["status"], "completed", "{list:#}");
    // What is left is our own closing record.
    desk.bench.exits(RESUME, 0);
    desk.bench.exits(RESUME, 17);
}

/// Two tasks end within one second, against the order of the graph.
#[test]
fn the_last_completed_task_is_the_one_whose_end_was_logged_last() {
    let desk = Desk::new();
    approved(&desk);
    let at = "2026-03-02T09:00:00Z";
    let line = |id: &str| {
        format!(
            "{{\"event_type\":\"task-completed\",\"task_id\":\"{id}\",\"timestamp\":\"{at}\"}}\n"
        )
    };
    let log = ["T001", "T003", "T002"].map(line).concat();
    fs::write(desk.path("events/executor/20260302-0900.jsonl"), log).unwrap();
    let plan = desk.bench.exits(&format!("plan --json {RUN}"), 0).json();
    let lines: Vec<&str> =
        plan["summary"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(lines.contains(&"Last completed: T002 - T002"), "{lines:?}");
    let status = desk.bench.exits(&format!("status {RUN}"), 0);
    assert!(status.out.contains("execute[T002] at"), "{status:?}");
}
