//! Which lists are found, named and chosen.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use crate::{bench::Said, kitchen::Kitchen, terminal::Terminal};

fn pipeline_in(kitchen: &Kitchen, name: &str, metadata: &serde_json::Value) {
    let list = kitchen.home.join("tasks").join(name);
    fs::create_dir_all(&list).unwrap();
    let permanent = json!({"id": "1", "subject": "[PERMANENT] Tea", "status": "in_progress",
        "metadata": {"tier": "TRIVIAL", "current_phase": "P6"}});
    fs::write(list.join("1.json"), permanent.to_string()).unwrap();
    let mut task = json!({"id": "2", "subject": "do it", "status": "in_progress",
        "metadata": {"phase": "P6"}});
    for (key, value) in metadata.as_object().unwrap() {
        task["metadata"][key] = value.clone();
    }
    fs::write(list.join("2.json"), task.to_string()).unwrap();
}

#[test]
fn a_pipeline_of_another_project_is_listed_and_never_chosen_by_itself() {
    let kitchen = Kitchen::new("-");
    pipeline_in(&kitchen, "session-1", &json!({"projectSlug": "some-other-project"}));
    let list = kitchen.exits("list --json", 0).json();
    assert_eq!(list["runs"][0]["dialect"], "pipeline", "{list:#}");
    for arguments in ["plan --json", "resume --yes --no-input", "resume --mode autopilot"] {
        kitchen.exits(arguments, 17);
    }
    let named = kitchen.home.join("tasks/session-1").display().to_string();
    let plan = kitchen.exits(&format!("plan --json {named}"), 0).json();
    assert_eq!(plan["recovery_point"]["phase"], "P6", "who names it means it");
    pipeline_in(&kitchen, "session-2", &json!({"files": ["src/water.txt"]}));
    let plan = kitchen.exits("plan --json", 0).json();
    assert_eq!(plan["run"]["id"], "session-2", "{plan:#}");
}

#[test]
fn without_a_permanent_task_it_is_said_where_it_was_looked_for_and_how_to_make_one() {
    let kitchen = Kitchen::new("-");
    let list = kitchen.home.join("tasks/session-1");
    fs::create_dir_all(&list).unwrap();
    fs::write(list.join("1.json"), "{\"id\": \"1\", \"subject\": \"x\"}").unwrap();
    let root = kitchen.home.join("tasks").display().to_string();
    for arguments in [format!("--tasks {root}"), "--dialect pipeline".to_owned()] {
        let said = kitchen.exits(&format!("plan {arguments}"), 17);
        assert!(said.err.contains("session-1"), "{said:#?}");
        assert!(said.err.contains("[PERMANENT]"), "{said:#?}");
        let json = kitchen.exits(&format!("plan --json {arguments}"), 17).json();
        assert_eq!(json["code"], "no-permanent-task", "{json:#}");
    }
}

#[test]
fn where_no_list_is_at_all_it_is_said_where_they_were_looked_for() {
    let kitchen = Kitchen::new("-");
    let root = kitchen.home.join("tasks").display().to_string();
    let said = kitchen.exits("plan --dialect pipeline", 17);
    assert!(said.err.contains(&root), "{said:#?}");
}

#[test]
fn a_pipeline_of_another_project_is_said_to_be_so_and_taken_where_its_list_is_named() {
    let kitchen = Kitchen::new("TRIVIAL");
    let theirs = json!({"projectSlug": "some-other-project", "files": ["src/water.txt"]});
    pipeline_in(&kitchen, "session-1", &theirs);
    let list = kitchen.home.join("tasks/session-1");
    let (before, list) = (fs::read(list.join("1.json")).unwrap(), list.display().to_string());
    kitchen.exits("resume --no-input", 17);
    let said = kitchen.exits("plan --dialect pipeline", 17);
    assert!(said.err.contains(&format!("another project's pipeline is in {list}")), "{said:#?}");
    assert!(said.err.contains(&format!("onward plan {list}")), "{said:#?}");
    assert!(!said.err.contains("--input dir="), "nothing is begun in it: {said:#?}");
    kitchen.exits(&format!("plan --tasks {list}"), 0);
    kitchen.exits(&format!("plan {list}"), 0);
    let mut terminal = Terminal::of(&kitchen.command("resume --dialect pipeline"));
    terminal.shows("another project's");
    terminal.shows("[NO/yes] ");
    terminal.types("yes\n");
    terminal.shows("Commit and deliver this?");
    terminal.shows("] ");
    terminal.types("approve\n");
    terminal.exits(0);
    assert_eq!(fs::read(kitchen.home.join("tasks/session-1/1.json")).unwrap(), before);
    assert_eq!(kitchen.lists().len(), 2, "the new one has a list of its own");
}

/// Tasks that a later phase has already are no work of the first step.
#[test]
fn a_later_phase_that_has_its_tasks_is_a_row_of_its_own() {
    let kitchen = Kitchen::new("-");
    let list = kitchen.home.join("tasks/session-1");
    fs::create_dir_all(&list).unwrap();
    let task = |id: u32, subject: &str, status: &str, metadata: serde_json::Value| {
        let value = json!({"id": id.to_string(), "subject": subject, "status": status,
            "metadata": metadata});
        fs::write(list.join(format!("{id}.json")), value.to_string()).unwrap();
    };
    task(1, "[PERMANENT] Tea", "in_progress", json!({"tier": "STANDARD", "current_phase": "P1"}));
    task(2, "think", "completed", json!({"phase": "P0", "result": "thought"}));
    task(3, "draw", "in_progress", json!({"phase": "P1"}));
    task(4, "read", "pending", json!({"phase": "P2"}));
    let plan = kitchen.exits("plan --json", 0).json();
    let steps = plan["steps"].as_array().unwrap();
    let verdict = |step: &str| &steps.iter().find(|it| it["step"] == step).unwrap()["verdict"];
    assert_eq!(verdict("intake"), "keep", "{plan:#}");
    assert_eq!(verdict("P1[3]"), "run", "{plan:#}");
    assert_eq!(verdict("P2"), "run", "{plan:#}");
    // Phases that this tier does not have are no work that is left.
    for phase in ["P4", "P5"] {
        let row = steps.iter().find(|it| it["step"] == phase).unwrap();
        assert_eq!(row["verdict"], "skip", "{plan:#}");
        assert_eq!(row["why"][0]["detail"], format!("tier STANDARD has no {phase}"), "{plan:#}");
    }
    assert_eq!(verdict("P7"), "run", "{plan:#}");
    let said = kitchen.exits("plan", 0);
    assert!(said.out.contains("1 task, 1 completed"), "{said:#?}");
}

/// As a session of Claude Code leaves them: lists beside inboxes and the settings of a team, tasks
/// without metadata, an owner that is empty, a list of which only the lock is left.
#[test]
fn a_directory_of_lists_is_known_by_its_lists_whatever_lies_beside_them() {
    let kitchen = Kitchen::new("-");
    let root = kitchen.home.join("captured");
    let write = |name: &str, text: &str| {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    };
    write("inbox-alpha.json", "[]");
    write("team-config.json", "{\"name\": \"session-1\", \"members\": []}");
    write("session-1/1.json", "{\"id\": \"1\", \"subject\": \"Ping\", \"owner\": \"\"}");
    write("session-2/.lock", "");
    let root = root.display().to_string();
    for arguments in [format!("--tasks {root}"), root.clone()] {
        let said = kitchen.exits(&format!("plan --json {arguments}"), 17).json();
        assert_eq!(said["code"], "no-permanent-task", "{said:#}");
        let message = said["message"].as_str().unwrap();
        assert!(message.contains("session-1") && message.contains("session-2"), "{message}");
        assert!(said["hint"].as_str().unwrap().contains("onward run pipeline"), "{said:#}");
    }
    let task = "{\"id\": \"1\", \"subject\": \"[PERMANENT] Tea\", \"status\": \"pending\"}";
    write_into(&root, "session-2/1.json", task);
    for arguments in [format!("--tasks {root}"), root] {
        let plan = kitchen.exits(&format!("plan --json {arguments}"), 0).json();
        assert_eq!(plan["recovery_point"]["code"], "start", "{plan:#}");
        assert_eq!(plan["run"]["id"], "session-2", "{plan:#}");
    }
}

fn write_into(root: &str, name: &str, text: &str) {
    fs::write(std::path::Path::new(root).join(name), text).unwrap();
}

#[test]
fn a_resume_looks_where_it_is_told() {
    let kitchen = Kitchen::new("-");
    pipeline_in(&kitchen, "session-1", &json!({"files": ["src/water.txt"]}));
    let elsewhere = kitchen.home.join("moved");
    fs::rename(kitchen.home.join("tasks"), &elsewhere).unwrap();
    kitchen.exits("resume --yes --no-input", 17);
    kitchen.exits(&format!("resume --yes --no-input --tasks {}", elsewhere.display()), 11);
    assert_eq!(kitchen.calls("P6[2]/work"), 1);
}

/// What is here of every system that this build knows, and one of our own.
#[test]
fn a_list_shows_the_runs_of_every_system_rightly_named() {
    let kitchen = Kitchen::new("-");
    pipeline_in(&kitchen, "session-1", &json!({"files": ["src/water.txt"]}));
    let write = |path: &str, text: &str| {
        let path = kitchen.bench.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("talks/conference.md", "# Conference: Tea\n\n## Goal\nSteep it.\n");
    write("talks/conference_events.jsonl", "");
    let phase = json!({"workflow_id": "wf-1", "current_phase": "REQUIREMENTS",
        "phase_status": "in_progress", "completed_phases": []});
    write("app/memory/state/phase.json", &phase.to_string());
    write("w.yaml", "onward: 1\nname: own\nsteps:\n  - { id: a, run: \"true\" }\n");
    kitchen.exits("run w.yaml --no-input", 0);
    let list = kitchen.exits("list --json", 0).json();
    let runs = list["runs"].as_array().unwrap().iter();
    let mut names: Vec<String> =
        runs.map(|it| format!("{} {}", it["dialect"], it["workflow"]).replace('"', "")).collect();
    names.sort_unstable();
    let wanted = ["conference conference", "dotagent dotagent", "onward own", "pipeline pipeline"];
    assert_eq!(names, wanted, "{list:#}");
    let words = kitchen.exits("list", 0);
    for name in ["session-1", "talks", "app", "own"] {
        assert!(words.out.contains(name), "{name}: {words:#?}");
    }
}

#[test]
fn a_person_is_offered_a_permanent_task_where_there_is_none() {
    let kitchen = Kitchen::new("TRIVIAL");
    let list = kitchen.home.join("tasks/session-1");
    fs::create_dir_all(&list).unwrap();
    fs::write(list.join("1.json"), "{\"id\": \"1\", \"subject\": \"x\"}").unwrap();
    let mut terminal = Terminal::of(&kitchen.command("resume --dialect pipeline"));
    terminal.shows("session-1");
    terminal.shows("Make one from git log and the working tree, and start its pipeline? [NO/yes] ");
    terminal.types("\n");
    terminal.exits(17);
    assert_eq!(kitchen.tasks().len(), 1);
    let mut terminal = Terminal::of(&kitchen.command("resume --dialect pipeline"));
    terminal.shows("[NO/yes] ");
    terminal.types("yes\n");
    terminal.shows("Commit and deliver this?");
    let permanent = kitchen.permanent();
    assert!(permanent["description"].as_str().unwrap().contains("- start"), "{permanent:#}");
    terminal.shows("] ");
    terminal.types("approve\n");
    terminal.exits(0);
    assert_eq!(kitchen.permanent()["metadata"]["commit_status"], "committed");
}

/// What says whose a list is is the same for all of them.
#[test]
fn git_is_asked_once_for_the_files_of_the_project_however_many_lists_there_are() {
    let kitchen = Kitchen::new("TRIVIAL");
    for number in 0..12 {
        pipeline_in(&kitchen, &format!("session-{number}"), &json!({}));
    }
    let (bin, asked) = (kitchen.home.join("bin"), kitchen.home.join("asked"));
    fs::create_dir(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let text =
        format!("#!/bin/sh\necho \"$*\" >> '{}'\nPATH='{path}' exec git \"$@\"\n", asked.display());
    fs::write(bin.join("git"), text).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut list = kitchen.command("list --json");
    let said = list.env("PATH", format!("{}:{path}", bin.display())).output().unwrap();
    let runs = Said::of(&said).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 12);
    let asked = fs::read_to_string(asked).unwrap();
    assert_eq!(asked.lines().filter(|it| it.contains("ls-files")).count(), 1, "{asked}");
}
