//! What was done stays done: turns of the rework that a run of ours has taken are not taken again,
//! and what the original changes in between is taken in once.

use std::fs;

use serde_json::{Value, json};

use crate::{
    bench::{journal, kill_all},
    desk::{Desk, graph_of_three, say},
};

const RESUME: &str = "resume --no-input --yes";

/// Every task succeeds at once and passes; `cases` come before that, for the executor.
fn desk(cases: &str) -> Desk {
    let implement = "  *implement)\n";
    let desk = Desk::with(|agent| {
        let agent = agent.replace("T003) if", "never) if");
        let agent = agent.replace("[ \"$task\" = T002 ]", "false");
        agent.replace(implement, &format!("{cases}{implement}"))
    });
    graph_of_three(&desk);
    desk
}

fn done(desk: &Desk, task: &str) {
    say(desk, "verifier", &format!(r#"{{"event_type":"task-verified","task_id":"{task}""#));
}

/// The agents that were started, in order.
fn agents(desk: &Desk) -> Vec<String> {
    let text = journal(&desk.run_dir());
    let starts = text.split("\"attempt.started\",\"step\":\"").skip(1);
    let all = starts.filter_map(|it| it.split('"').next()).map(str::to_owned);
    all.filter(|it| {
        ["implement", "verify", "look", "tasks/break"].iter().any(|end| it.ends_with(end))
    })
    .collect()
}

fn asked(desk: &Desk) -> String {
    let status = desk.bench.exits("status --json", 0).json();
    let gate = status["gates"][0]["step"].as_str().unwrap_or_else(|| panic!("{status:#}"));
    gate.to_owned()
}

/// Everything is killed while the executor of T002 is at work.
fn cut_off(desk: &Desk) {
    desk.bench.write(".onward/waits", "");
    let at = desk.bench.path(".onward/at");
    let mut engine = desk.leash(RESUME);
    assert!(engine.until(|| at.exists()), "{}", engine.last);
    engine.kill();
    kill_all(&desk.run_dir());
    fs::remove_file(desk.bench.path(".onward/waits")).unwrap();
}

const WAITS: &str = "  *T002*implement)
    echo begun > .onward/at
    while [ -e .onward/waits ]; do sleep 0.05; done
    echo '{\"status\": \"SUCCESS\", \"summary\": \"x\"}' > \"$ONWARD_RESULT\" ;;
";

/// T001 is done, and the agent of T002 was killed.
fn begun() -> Desk {
    let desk = desk(WAITS);
    done(&desk, "T001");
    cut_off(&desk);
    desk
}

fn edit_graph(desk: &Desk, edit: impl FnOnce(&mut Vec<Value>)) {
    let mut graph: Value = serde_json::from_str(&desk.text("task-graph.json")).unwrap();
    edit(graph["tasks"].as_array_mut().unwrap());
    fs::write(desk.path("task-graph.json"), graph.to_string()).unwrap();
}

/// T001 is used up, and T002 says once that it is blocked.
fn twice_stuck() -> Desk {
    let desk = desk(
        "  *T002*implement)
    status=SUCCESS; [ -e .onward/blocked ] || { echo > .onward/blocked; status=BLOCKED; }
    echo \"{\\\"status\\\": \\\"$status\\\", \\\"summary\\\": \\\"x\\\"}\" > \"$ONWARD_RESULT\" ;;
",
    );
    for _ in 0..3 {
        for word in ["task-claimed", "task-failed"] {
            say(&desk, "executor", &format!(r#"{{"event_type":"{word}","task_id":"T001""#));
        }
    }
    desk
}

#[test]
fn each_answer_counts_once_and_nothing_that_is_done_is_done_again() {
    let desk = twice_stuck();
    for _ in 0..2 {
        desk.bench.exits(RESUME, 11);
        desk.bench.exits(&format!("decide {} retry", asked(&desk)), 0);
    }
    let plan = desk.bench.exits("plan --json", 0).json();
    let settled = |it: &Value| it["step"] == "rework[1]/settle" && it["verdict"] != "keep";
    assert!(!plan["steps"].as_array().unwrap().iter().any(settled), "{plan:#}");
    desk.bench.exits(RESUME, 0);
    let all = agents(&desk);
    let of = |task: &str| all.iter().filter(|it| it.contains(task)).count();
    assert_eq!((of("T001"), of("T002"), of("T003")), (1, 2, 1), "{all:?}");
    let names = desk.names();
    for task in ["T001", "T002", "T003"] {
        let verified = format!("task-verified {task}");
        assert_eq!(names.iter().filter(|it| **it == verified).count(), 1, "{names:?}");
    }
    assert_eq!(journal(&desk.run_dir()).matches("\"gate.opened\"").count(), 3, "with the approval");
}

#[test]
fn a_task_graph_that_got_lost_is_made_again_as_the_plan_says() {
    let desk = begun();
    fs::remove_file(desk.path("task-graph.json")).unwrap();
    let plan = desk.bench.exits("plan --json", 0).json();
    let rows = plan["steps"].as_array().unwrap();
    let row = rows.iter().find(|it| it["step"] == "tasks/break").unwrap();
    assert_eq!(row["verdict"], "run", "{plan:#}");
    let told = plan["findings"].as_array().unwrap().iter();
    assert_eq!(told.filter(|it| it["code"] == "missing-artifact").count(), 1, "{plan:#}");
    let out = desk.bench.onward(RESUME);
    if out.code == 11 {
        desk.bench.exits("approve", 0);
        desk.bench.exits(RESUME, 0);
    }
    let all = agents(&desk);
    assert!(all.contains(&"tasks/break".to_owned()), "{all:?}");
    assert!(!all.iter().any(|it| it.contains("T001")), "{all:?}");
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn a_task_that_the_original_took_out_of_the_list_is_passed_over() {
    let desk = begun();
    edit_graph(&desk, |tasks| tasks.retain(|it| it["id"] != "T003"));
    desk.bench.exits(RESUME, 0);
    let all = agents(&desk);
    assert!(!all.iter().any(|it| it.contains("T003")), "{all:?}");
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn a_dependency_that_the_original_edits_counts_at_the_next_resume() {
    let desk = begun();
    edit_graph(&desk, |tasks| tasks[1]["dependencies"] = json!(["T003"]));
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T003]/claim"]), "{plan:#}");
    desk.bench.exits(RESUME, 0);
    let all = agents(&desk);
    let third = all.iter().position(|it| it.contains("T003")).unwrap();
    let second = all.iter().rposition(|it| it.contains("T002")).unwrap();
    assert!(third < second, "{all:?}");
    let claimed = |it: &Value| it["event_type"] == "task-claimed" && it["task_id"] == "T002";
    let claims = desk.log().iter().filter(|it| claimed(it)).count();
    assert_eq!(claims, 2, "one for each agent");
}

#[test]
fn an_executor_that_crashes_is_started_three_times_in_all() {
    let desk = desk("  *T001*implement) kill -9 $$ ;;\n");
    let out = desk.bench.exits(RESUME, 11);
    assert!(out.err.contains("T001 failed after 3 attempts"), "{out:?}");
    assert_eq!(agents(&desk).len(), 3, "{:?}", agents(&desk));
}

#[test]
fn tasks_that_the_original_unblocks_are_done_and_no_one_is_asked_about_nothing() {
    let desk = desk("");
    done(&desk, "T001");
    for task in ["T002", "T003"] {
        say(&desk, "executor", &format!(r#"{{"event_type":"task-blocked","task_id":"{task}""#));
    }
    desk.bench.exits(RESUME, 11);
    for task in ["T002", "T003"] {
        say(&desk, "executor", &format!(r#"{{"event_type":"task-unblocked","task_id":"{task}""#));
    }
    desk.bench.exits(RESUME, 0);
    let names = desk.names();
    for task in ["T002", "T003"] {
        let claimed = format!("task-claimed {task}");
        assert_eq!(names.iter().filter(|it| **it == claimed).count(), 1, "{names:?}");
    }
}

/// All was done, and the cleanup under way.
#[test]
fn a_task_that_the_original_opens_again_after_the_last_look_is_not_forgotten() {
    let desk = desk("  cleanup) [ -e .onward/clean ] || { echo > .onward/clean; exit 1; } ;;\n");
    for task in ["T001", "T002", "T003"] {
        say(&desk, "executor", &format!(r#"{{"event_type":"task-implemented","task_id":"{task}""#));
    }
    desk.bench.exits(RESUME, 10);
    say(&desk, "verifier", r#"{"event_type":"task-blocked","task_id":"T003""#);
    let out = desk.bench.exits(RESUME, 11);
    assert!(out.err.contains("T003 is blocked"), "{out:?}");
    done(&desk, "T003");
    desk.bench.exits(RESUME, 0);
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn a_verdict_that_says_blocked_asks_the_user_and_makes_no_quality_task() {
    let said = "said='\"result\": \"PASSED\"'";
    let blocked = "said='\"result\": \"BLOCKED\", \"summary\": \"no database\"'";
    let mended = "[ \"$task\" = T002 ]";
    let desk = Desk::with(|agent| agent.replace(said, blocked).replace(mended, "false"));
    graph_of_three(&desk);
    for task in ["T001", "T003"] {
        done(&desk, task);
    }
    say(&desk, "executor", r#"{"event_type":"task-implemented","task_id":"T002""#);
    let out = desk.bench.exits(RESUME, 11);
    assert!(out.err.contains("T002 is blocked (no database)"), "{out:?}");
    assert!(!desk.text("task-graph.json").contains("Q001"));
}
