//! Called from another directory, without agents, or when there is nothing left to do.

use std::{fs, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::tea::{Said, Tea};

/// The command with the conference as its last argument, in a directory of another project.
fn from_afar(tea: &Tea, arguments: &str) -> Said {
    let other = TempDir::new().unwrap();
    fs::create_dir_all(other.path().join(".onward")).unwrap();
    let mut command: Command = tea.command(arguments);
    let output = command.arg(tea.dir()).current_dir(other.path()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap_or(-1);
    Said { code, out: text(output.stdout), err: text(output.stderr) }
}

fn found(plan: &Value, code: &str) -> bool {
    plan["findings"].as_array().unwrap().iter().any(|it| it["code"] == code)
}

fn without_agents(tea: &Tea) {
    fs::write(tea.root.join(".onward/config.toml"), "").unwrap();
}

#[test]
fn a_run_goes_on_with_the_agents_of_its_own_project_wherever_it_is_called_from() {
    let tea = Tea::new();
    tea.killed_at("round[2]/poster/draft", "run conference --no-input");
    let plan: Value = serde_json::from_str(&from_afar(&tea, "plan --json").out).unwrap();
    assert_eq!(plan["can_resume"], true, "{plan:#}");
    assert!(!found(&plan, "prerequisite-missing"), "{plan:#}");
    let said = from_afar(&tea, "resume --yes --no-input");
    assert_eq!(said.code, 0, "{said:#?}");
    tea.is_whole("from afar");
}

#[test]
fn a_plan_tells_that_an_agent_is_missing_where_one_is_needed_and_only_there() {
    let finished = Tea::finished();
    let lines = finished[crate::tea::LOG].split_inclusive(|byte| *byte == b'\n').count();
    let tea = Tea::left(&finished, 4);
    assert!(!found(&tea.json("plan --json"), "prerequisite-missing"));
    without_agents(&tea);
    let plan = tea.json("plan --json");
    assert!(found(&plan, "prerequisite-missing"), "{plan:#}");
    let said = tea.exits("resume --yes --no-input", 16);
    assert!(said.err.contains("prerequisite-missing"), "{said:?}");
    // Only the closing event is missing: no agent is needed for that.
    let tea = Tea::left(&finished, lines - 1);
    without_agents(&tea);
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "close", "{plan:#}");
    assert!(!found(&plan, "prerequisite-missing"), "{plan:#}");
    tea.exits("resume --yes --no-input --accept artifact-unproved", 0);
    assert_eq!(tea.count("conference.completed"), 1);
}

#[test]
fn a_complete_conference_says_where_its_outputs_are() {
    let tea = Tea::new();
    tea.exits("run conference --no-input", 0);
    let said = tea.exits("resume --no-input", 17);
    let wanted = format!("already complete. Outputs are in {}/synthesis.md", tea.dir().display());
    assert!(said.err.contains(&wanted), "{said:#?}");
    let stranger = Tea::left(&tea.contents(), usize::MAX);
    fs::remove_file(stranger.dir().join("final_report.md")).unwrap();
    let said = stranger.exits("resume --no-input", 17);
    assert!(
        said.err.contains("/synthesis.md\n") && !said.err.contains("final_report"),
        "{said:#?}"
    );
}
