//! Files that are gone, and phases that have no tasks: each is said before anything rests on it.

use std::fs;

use serde_json::Value;

use crate::{adopted::list, kitchen::Kitchen, terminal::Terminal};

const RUN: &str = "run pipeline --no-input --input request=tea";

fn plan(kitchen: &Kitchen) -> Value {
    kitchen.exits("plan --json", 0).json()
}

fn findings<'a>(plan: &'a Value, code: &str) -> Vec<&'a Value> {
    plan["findings"].as_array().unwrap().iter().filter(|it| it["code"] == code).collect()
}

fn approve(kitchen: &Kitchen) {
    let status = kitchen.exits("status --json", 0).json();
    let hash = status["gates"][0]["hash"].as_str().unwrap().to_owned();
    kitchen.exits(&format!("decide P8/confirm approve --hash {hash}"), 0);
}

/// Claude Code completed the task, and what it made is committed; then a person deletes it.
#[test]
fn a_deleted_file_of_a_completed_task_is_verified_and_its_deletion_is_asked_about() {
    let kitchen = Kitchen::new("-");
    let list = list(&kitchen, "TRIVIAL", "P6:6+");
    kitchen.bench.write("src/6.txt", "made\n");
    kitchen.git(&["add", "src"]);
    kitchen.git(&["commit", "--quiet", "--message=made"]);
    let task = list.join("6.json");
    fs::write(&task, fs::read(&task).unwrap()).unwrap();
    fs::remove_file(kitchen.bench.path("src/6.txt")).unwrap();
    let planned = plan(&kitchen);
    let gone = findings(&planned, "missing-artifact");
    assert_eq!((gone.len(), &gone[0]["path"]), (1, &"src/6.txt".into()), "{planned:#}");
    assert_eq!(planned["recovery_point"]["steps"], serde_json::json!(["P6[6]"]), "{planned:#}");
    let said = kitchen.exits("resume --yes --no-input", 11);
    assert_eq!((kitchen.calls("P6[6]/verify"), kitchen.calls("P6[6]/work")), (1, 0));
    assert!(said.err.contains("It deletes src/6.txt."), "{said:#?}");
    kitchen.approve();
    assert_eq!(kitchen.git(&["show", "--name-status", "--format=", "HEAD"]), "D\tsrc/6.txt");
}

/// The task is not what it was: it is done again, and nothing is deleted.
#[test]
fn a_deleted_file_of_a_task_of_ours_is_made_again_where_it_is_missed() {
    let mut kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits(RUN, 11);
    fs::remove_file(kitchen.bench.path("src/leaves.txt")).unwrap();
    let planned = plan(&kitchen);
    assert_eq!(findings(&planned, "missing-artifact").len(), 1, "{planned:#}");
    kitchen.env.push(("HOLDS", "false".to_owned()));
    kitchen.exits("resume --yes --no-input", 11);
    assert!(kitchen.bench.path("src/leaves.txt").is_file());
    kitchen.approve();
    let tree = kitchen.git(&["ls-tree", "-r", "--name-only", "HEAD", "src"]);
    assert_eq!(tree, "src/leaves.txt\nsrc/pot.txt\nsrc/water.txt");
}

/// Verified without the file, the task is known to leave none.
#[test]
fn what_was_verified_without_a_file_is_not_doubted_again() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits(RUN, 11);
    fs::remove_file(kitchen.bench.path("src/leaves.txt")).unwrap();
    kitchen.exits("resume --yes --no-input", 11);
    let planned = plan(&kitchen);
    assert_eq!(findings(&planned, "missing-artifact").len(), 0, "{planned:#}");
    kitchen.approve();
}

/// Between the yes and the commit: what is committed was shown.
#[test]
fn a_file_that_goes_after_the_yes_is_asked_about_again() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits(RUN, 11);
    approve(&kitchen);
    fs::remove_file(kitchen.bench.path("src/water.txt")).unwrap();
    let planned = plan(&kitchen);
    let rows = planned["steps"].as_array().unwrap();
    let row = rows.iter().find(|it| it["step"] == "P8/confirm").unwrap();
    assert_eq!(row["verdict"], "ask", "{planned:#}");
    let said = kitchen.exits("resume --no-input", 11);
    assert!(said.err.contains("It deletes src/water.txt."), "{said:#?}");
    assert_eq!(kitchen.git(&["log", "--format=%s"]), "start");
    kitchen.approve();
    assert!(kitchen.git(&["show", "--name-status", "--format=", "HEAD"]).contains("D\tsrc/water"));
}

/// While the run goes on, after the review.
#[test]
fn a_file_that_goes_while_the_run_is_under_way_is_not_committed_as_deleted() {
    let kitchen = Kitchen::new("TRIVIAL");
    let agent = kitchen.bench.text("agent.sh");
    let evil =
        "P8/describe) [ -e \"$LEDGER.gone\" ] || { : > \"$LEDGER.gone\"; rm src/water.txt; }\n";
    kitchen.bench.write("agent.sh", &agent.replace("P8/describe)\n", evil));
    kitchen.git(&["commit", "--quiet", "--all", "--message=agent"]);
    let mut terminal = Terminal::of(&kitchen.command("run pipeline --input request=tea"));
    terminal.shows("Commit and deliver this?");
    terminal.shows("] ");
    terminal.types("approve\n");
    let shown = terminal.exits(10);
    assert!(shown.contains("which task 3 had left, is gone"), "{shown}");
    assert_eq!(kitchen.git(&["log", "--format=%s"]), "agent\nstart");
    kitchen.exits("resume --yes --no-input", 11);
    kitchen.approve();
    assert!(kitchen.git(&["show", "--name-status", "--format=", "HEAD"]).contains("D\tsrc/water"));
}

const EMPTY: &str = "P0:2+ P2:4+ P6:6~";

/// P1 and P3 are on the path and have no tasks, while the execution is under way.
#[test]
fn phases_without_tasks_are_told_of_and_stay_as_they_were_told() {
    let kitchen = Kitchen::new("-");
    list(&kitchen, "STANDARD", EMPTY);
    let planned = plan(&kitchen);
    assert_eq!(findings(&planned, "phase-without-tasks").len(), 2, "{planned:#}");
    let rows = planned["steps"].as_array().unwrap();
    for phase in ["P1", "P3"] {
        let row = rows.iter().find(|it| it["step"] == phase).unwrap();
        let why = row["why"][0]["detail"].as_str().unwrap();
        assert!(why.starts_with("no tasks; it counts as done"), "{planned:#}");
    }
    let said = kitchen.exits("resume --yes --no-input", 11);
    assert!(said.err.contains("without tasks, and taken as done: P1, P3"), "{said:#?}");
    // The execution is over by now: that makes nothing of it undone.
    let planned = plan(&kitchen);
    assert_eq!(planned["recovery_point"]["phase"], "P8", "{planned:#}");
    assert_eq!(kitchen.calls("P1[7]/work"), 0);
    kitchen.approve();
    assert_eq!(kitchen.permanent()["status"], "completed");
}

#[test]
fn a_phase_without_tasks_is_done_when_a_person_wants_it() {
    let kitchen = Kitchen::new("-");
    list(&kitchen, "STANDARD", EMPTY);
    let said = kitchen.exits("resume --yes --no-input --from P1", 11);
    assert!(said.err.contains("start tasks_P1"), "{said:#?}");
    let phases = ["P1", "P2", "P3", "P6"];
    let ledger = fs::read_to_string(kitchen.home.join("ledger")).unwrap();
    for phase in phases {
        let is_it = |line: &&str| line.starts_with(&format!("{phase}[")) && line.ends_with("/work");
        assert!(ledger.lines().any(|it| is_it(&it)), "{phase}: {ledger}");
    }
}

#[test]
fn the_short_report_is_the_same_once_a_run_of_ours_goes_on() {
    let kitchen = Kitchen::new("-");
    list(&kitchen, "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6~");
    let before = kitchen.exits("plan --format l1", 0);
    assert!(before.out.contains("resume_phase: \"P6\"\n"), "{before:#?}");
    kitchen.exits("resume --yes --no-input", 11);
    let after = kitchen.exits("plan --format l1", 0);
    let keys = |text: &str| -> Vec<String> {
        text.lines().map(|it| it.split(':').next().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&after.out), keys(&before.out), "{after:#?}");
    assert!(after.out.contains("resume_phase: \"P8\"\n"), "{after:#?}");
    let run = kitchen.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(kitchen.exits(&format!("plan {run} --format l1"), 0).out, after.out);
    let no = kitchen.exits("plan --format l9", 2);
    assert!(no.err.contains("has no format `l9`"), "{no:#?}");
}
