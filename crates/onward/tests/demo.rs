//! `onward demo`, end to end: it proves what it says.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::process::{Command, Output};

use onward_engine::world::schema::Schema;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The demo keeps its directory; here that goes with the test.
fn demo(arguments: &[&str]) -> (TempDir, Output) {
    let dir = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
    command.arg("demo").args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    let output = command.env("TMPDIR", dir.path()).output().unwrap();
    (dir, output)
}

/// What `onward plan` finds in the directory that a demo left: nothing but its own work.
#[track_caller]
fn finds_nothing_strange(said: &Value) {
    let plan = Command::new(env!("CARGO_BIN_EXE_onward"))
        .args(["plan", "--json"])
        .current_dir(said["dir"].as_str().unwrap())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!((&plan["run"]["status"], &plan["findings"]), (&"completed".into(), &json!([])));
}

#[test]
fn the_demo_proves_that_nothing_finished_ran_twice() {
    let (dir, output) = demo(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["schema"], "onward.demo/1");
    let schema = Command::new(env!("CARGO_BIN_EXE_onward")).args(["schema", "demo"]).output();
    let schema: Value = serde_json::from_slice(&schema.unwrap().stdout).unwrap();
    assert_eq!(Schema::compile(&schema).unwrap().check(&said), Ok(()));
    assert_eq!((&said["proved"], &said["finished"]), (&true.into(), &14.into()), "{said:#}");
    let finished = said["finished_at_kill"].as_u64().unwrap();
    assert!((7..14).contains(&finished), "{said:#}");
    assert!(!said["in_flight_at_kill"].as_array().unwrap().is_empty(), "{said:#}");
    assert_eq!(said["plan"]["run"]["status"], "interrupted");
    assert!(std::path::Path::new(said["dir"].as_str().unwrap()).starts_with(dir.path()));
}

#[test]
fn a_quiet_demo_says_nothing_where_nothing_went_wrong() {
    let (_dir, output) = demo(&["--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
}

#[test]
fn the_demo_reads_well_without_a_terminal() {
    let (_dir, output) = demo(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let parts =
        ["A book in", "kill -9 ", "Resumed:", "The gate is answered", "Proved: ", "onward log"];
    let places: Vec<usize> = parts
        .iter()
        .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")))
        .collect();
    assert!(places.is_sorted(), "{text}");
    assert!(!text.contains('\x1b'), "no colour off a terminal");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    // It is not on the PATH: the commands at the end name it by its path, and work as they stand.
    let look = text.lines().skip_while(|line| *line != "Look around:").skip(1);
    let script = look.collect::<Vec<_>>().join(" && ");
    let pasted = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(pasted.status.success(), "{script}: {pasted:?}");
    assert!(String::from_utf8_lossy(&pasted.stdout).contains("run.ended"), "{pasted:?}");
}

#[test]
fn the_demo_of_a_conference_proves_that_no_iteration_counts_twice() {
    let (_dir, output) = demo(&["conference", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said["proved"], &said["events"]), (&true.into(), &28.into()), "{said:#}");
    let at_kill = said["events_at_kill"].as_u64().unwrap();
    assert!((14..28).contains(&at_kill), "{said:#}");
    finds_nothing_strange(&said);
}

#[test]
fn the_demo_of_agent_memory_proves_that_every_task_ran_as_often_as_it_had_to() {
    let (_dir, output) = demo(&["agent-memory", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said["proved"], &said["events"]), (&true.into(), &20.into()), "{said:#}");
    assert!((9..20).contains(&said["events_at_kill"].as_u64().unwrap()), "{said:#}");
    finds_nothing_strange(&said);
}

#[test]
fn the_demo_of_dotagent_proves_that_every_task_is_verified_once() {
    let (_dir, output) = demo(&["dotagent", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said["proved"], &said["against"]), (&true.into(), &json!([])), "{said:#}");
    assert_eq!(said["plan"]["recovery_point"]["code"], "implementation", "{said:#}");
    finds_nothing_strange(&said);
}

#[test]
fn the_demo_of_a_pipeline_proves_that_no_task_is_done_twice() {
    let (_dir, output) = demo(&["pipeline", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said["proved"], &said["tasks"]), (&true.into(), &15.into()), "{said:#}");
    let at_kill = said["tasks_at_kill"].as_u64().unwrap();
    assert!((7..15).contains(&at_kill), "{said:#}");
    finds_nothing_strange(&said);
}

#[test]
fn the_demo_of_an_epic_proves_that_no_completed_story_is_implemented_again() {
    let (_dir, output) = demo(&["sdlc", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said["proved"], &said["stories"]), (&true.into(), &4.into()), "{said:#}");
    assert!(!said["completed_at_kill"].as_array().unwrap().is_empty(), "{said:#}");
    assert_eq!(said["plan"]["recovery_point"]["code"], "epic:stories", "{said:#}");
    let findings = said["plan"]["findings"].as_array().unwrap();
    assert!(findings.iter().all(|it| it["code"] != "path-refused"), "{findings:#?}");
    finds_nothing_strange(&said);
}
