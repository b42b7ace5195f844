//! Whose pipeline it is, where nothing in its list tells.

use std::{fs, path::Path, process::Command};

use serde_json::json;
use tempfile::TempDir;

use crate::{bench::Said, kitchen::Kitchen, support::program, terminal::Terminal};

/// A list without a slug, an absolute path, a branch, or a file that is there.
fn silent(kitchen: &Kitchen) -> String {
    let list = kitchen.home.join("tasks/session-1");
    fs::create_dir_all(&list).unwrap();
    let permanent = json!({"id": "1", "subject": "[PERMANENT] Tea", "status": "in_progress",
        "metadata": {"tier": "TRIVIAL", "current_phase": "P6"}});
    fs::write(list.join("1.json"), permanent.to_string()).unwrap();
    let task = json!({"id": "2", "subject": "do it", "status": "in_progress",
        "metadata": {"phase": "P6", "files": ["src/new.txt"]}});
    fs::write(list.join("2.json"), task.to_string()).unwrap();
    list.display().to_string()
}

fn content(list: &str) -> Vec<Vec<u8>> {
    ["1.json", "2.json"].map(|name| fs::read(Path::new(list).join(name)).unwrap()).to_vec()
}

#[test]
fn a_pipeline_of_which_nothing_says_whose_it_is_goes_on_by_a_persons_word_alone() {
    let kitchen = Kitchen::new("-");
    let list = silent(&kitchen);
    let before = content(&list);
    kitchen.exits("plan --json", 0);
    for arguments in ["resume --no-input", "resume --no-input --mode autopilot"] {
        let said = kitchen.exits(arguments, 16);
        assert!(said.err.contains(&format!("onward resume {list}")), "{said:#?}");
    }
    let mut terminal = Terminal::of(&kitchen.command("resume"));
    terminal.shows("Continue it here? [NO/yes] ");
    terminal.types("\n");
    terminal.exits(16);
    assert_eq!(content(&list), before);
    assert!(!kitchen.bench.path("src/new.txt").exists());
    kitchen.exits(&format!("resume --no-input {list}"), 11);
    assert!(kitchen.bench.path("src/new.txt").exists());
}

/// A yes that was meant for another directory: what the tasks name has no place here.
#[test]
fn a_yes_does_not_say_whose_a_pipeline_is_where_its_files_have_no_place() {
    let kitchen = Kitchen::new("-");
    let list = silent(&kitchen);
    let task = json!({"id": "2", "subject": "do it", "status": "in_progress",
        "metadata": {"phase": "P6", "files": ["lib/new.txt"]}});
    fs::write(Path::new(&list).join("2.json"), task.to_string()).unwrap();
    let before = content(&list);
    for arguments in ["resume --no-input --yes", "resume --no-input --yes --mode autopilot"] {
        let said = kitchen.exits(arguments, 16);
        assert!(said.err.contains(&format!("onward resume {list}")), "{said:#?}");
    }
    kitchen.exits("resume --no-input --yes --all", 17);
    assert_eq!(content(&list), before);
    assert!(!kitchen.bench.path(".onward/runs").exists());
}

#[test]
fn a_list_without_a_permanent_task_is_said_where_nothing_else_is() {
    let kitchen = Kitchen::new("-");
    let none = kitchen.exits("plan", 17);
    assert!(!none.err.contains("task list"), "{none:#?}");
    let list = silent(&kitchen);
    fs::remove_file(Path::new(&list).join("1.json")).unwrap();
    for arguments in ["plan", "resume --no-input", "resume --all --no-input", "status"] {
        let said = kitchen.exits(arguments, 17);
        assert!(said.err.contains("onward plan --dialect pipeline"), "{arguments}: {said:#?}");
    }
    let said = kitchen.exits("plan --dialect pipeline", 17);
    assert!(said.err.contains("[PERMANENT]") && said.err.contains(&list), "{said:#?}");
}

#[test]
fn a_list_is_named_for_every_command_that_looks() {
    let kitchen = Kitchen::new("-");
    let list = silent(&kitchen);
    let elsewhere = kitchen.home.join("kept");
    fs::rename(&list, &elsewhere).unwrap();
    assert!(!kitchen.exits("list", 0).out.contains("pipeline"));
    let place = elsewhere.display();
    assert!(kitchen.exits(&format!("list --tasks {place}"), 0).out.contains("pipeline"));
    let status = kitchen.exits(&format!("status --tasks {place} --json"), 0).json();
    assert_eq!(status["run"]["dialect"], "pipeline", "{status:#}");
}

#[test]
fn a_pipeline_whose_own_task_cannot_be_read_is_stopped_and_no_file_changes() {
    let kitchen = Kitchen::new("-");
    let list = silent(&kitchen);
    fs::write(Path::new(&list).join("1.json"), "{\"id\":\"1\",\"subject\":\"[PERMANENT] Te")
        .unwrap();
    let before = content(&list);
    // What would say whose it is cannot be read: it is listed, and meant by its name alone.
    for arguments in ["plan", "resume --yes --no-input", "resume --no-input --mode autopilot"] {
        kitchen.exits(arguments, 17);
    }
    assert!(kitchen.exits("list", 0).out.contains("pipeline"));
    let plan = kitchen.exits(&format!("plan --json {list}"), 0).json();
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    let said = kitchen.exits(&format!("resume --yes --no-input {list}"), 16);
    assert!(said.err.contains("state-unreadable"), "{said:#?}");
    let accepted = format!("resume --yes --no-input --accept state-unreadable {list}");
    let said = kitchen.exits(&accepted, 10);
    assert!(said.err.contains("1.json, the pipeline's own task"), "{said:#?}");
    assert_eq!(content(&list), before);
}

#[test]
fn a_directory_that_is_named_means_what_is_in_it() {
    let kitchen = Kitchen::new("-");
    let list = silent(&kitchen);
    let before = content(&list);
    let elsewhere = TempDir::new().unwrap();
    let root = fs::canonicalize(elsewhere.path()).unwrap();
    program::git(&root, &["init", "--quiet"]);
    let dirs = [root.display().to_string(), "src".to_owned(), "/usr".to_owned()];
    for dir in &dirs {
        kitchen.exits(&format!("plan {dir}"), 17);
        kitchen.exits(&format!("resume --yes --no-input {dir}"), 17);
    }
    assert_eq!(content(&list), before);
    assert!(!root.join(".onward").exists());
    kitchen.exits("plan .", 0);
    // From elsewhere a project means the lists that are surely its own.
    let from = |arguments: &str| {
        let mut command: Command = kitchen.command(arguments);
        Said::of(&command.current_dir(&root).output().unwrap())
    };
    let project = kitchen.bench.root.display().to_string();
    assert_eq!(from(&format!("plan --cwd {} {project}", root.display())).code, 17);
    fs::write(kitchen.bench.path("src/new.txt"), "x\n").unwrap();
    assert_eq!(from(&format!("plan --cwd {} {project}", root.display())).code, 0);
}

#[test]
fn a_yes_counts_for_the_files_that_it_saw() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    kitchen.bench.write("src/pot.txt", "by hand\n");
    kitchen.exits("approve", 1);
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!(kitchen.git(&["log", "--format=%s"]).trim(), "start", "nothing is committed yet");
    kitchen.approve();
}

/// A delivered pipeline of the kitchen, seen from another project of the same user.
fn elsewhere(kitchen: &Kitchen, file: &str) -> (TempDir, impl Fn(&str) -> Said) {
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    kitchen.approve();
    let other = TempDir::new().unwrap();
    let root = fs::canonicalize(other.path()).unwrap();
    program::git(&root, &["init", "--quiet"]);
    fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
    fs::write(root.join(file), "its own\n").unwrap();
    let kitchen_env = kitchen.env.clone();
    let from = move |arguments: &str| {
        let mut command = program::onward(&root, arguments);
        command.envs(kitchen_env.iter().cloned());
        Said::of(&command.output().unwrap())
    };
    (other, from)
}

/// Also where a file happens to have the name of one that the pipeline made.
#[test]
fn a_delivered_pipeline_of_another_project_is_completed_and_not_chosen() {
    for file in ["notes.txt", "src/pot.txt"] {
        let kitchen = Kitchen::new("TRIVIAL");
        let (_other, from) = elsewhere(&kitchen, file);
        let list = from("list --json").json();
        assert_eq!(list["runs"][0]["status"], "completed", "{file}: {list:#}");
        let bare = from("");
        assert!(
            bare.out.ends_with("start something with `onward run FILE`\n"),
            "{file}: {bare:#?}"
        );
        assert_eq!(from("resume --no-input").code, 17, "{file}");
    }
}

/// Bare `onward` names the run that a resume would continue.
#[test]
fn a_bare_onward_names_what_a_resume_continues() {
    let kitchen = Kitchen::new("TRIVIAL");
    let list = silent(&kitchen);
    // The tasks name another project.
    let task = json!({"id": "2", "subject": "do it", "status": "in_progress",
        "metadata": {"phase": "P6", "projectSlug": "another", "files": ["src/new.txt"]}});
    fs::write(Path::new(&list).join("2.json"), task.to_string()).unwrap();
    let bare = kitchen.exits("", 0);
    assert!(bare.out.contains("session-1") && !bare.out.contains("onward resume"), "{bare:#?}");
    kitchen.exits("resume --no-input", 17);
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    let bare = kitchen.exits("", 0);
    assert!(bare.out.contains("onward approve pipeline-"), "{bare:#?}");
}
