//! Loops that were used up here, and what another orchestrator or a person does about them.

use std::process::Command;

use serde_json::{Value, json};

use crate::yard::{STORY, TEXT, Yard};

const RUN: &str = "resume --yes --no-input";

/// A story whose QA gate has failed as often as it may.
fn refused() -> Yard {
    let yard = Yard::with(|agent| {
        agent.replace(
            "rework*judge) say '{\"verdict\": \"PASS\"}'",
            "rework*judge) test -e yes && say '{\"verdict\": \"PASS\"}' || \
             say '{\"verdict\": \"FAIL\"}'",
        )
    });
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    let failed = yard.bench.exits(RUN, 10);
    assert!(failed.err.contains("`rework` took 3 turns"), "{failed:#?}");
    yard
}

#[test]
fn a_gate_that_failed_as_often_as_it_may_says_so_and_is_given_one_more_turn_by_a_person() {
    let yard = refused();
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    let said = yard.bench.exits(RUN, 16);
    assert!(said.err.contains("turns-used-up"), "{said:#?}");
    yard.bench.write("yes", "");
    yard.bench.exits(&format!("{RUN} --accept turns-used-up"), 0);
    assert!(yard.bench.text(STORY).contains("**Status:** Done\n"), "{}", yard.bench.text(STORY));
}

#[test]
fn a_story_that_passes_its_gate_elsewhere_ends_the_loop() {
    let yard = refused();
    let text = yard.bench.text(STORY);
    let done = text
        .lines()
        .map(|line| if line.starts_with("**Status:**") { "**Status:** Done" } else { line });
    yard.write(STORY, &(done.collect::<Vec<_>>().join("\n") + "\n"));
    let gates = yard.bench.path("docs/qa/gates");
    for gate in std::fs::read_dir(gates).unwrap().flatten() {
        let text = std::fs::read_to_string(gate.path()).unwrap();
        let passed = text.replace("FAIL", "PASS");
        std::fs::write(gate.path(), passed).unwrap();
    }
    let plan = yard.bench.exits("plan --json", 0).json();
    assert!(!plan["findings"].to_string().contains("turns-used-up"), "{plan:#}");
    // An agent that is started now fails.
    yard.bench.write("agent.sh", "exit 1\n");
    yard.bench.exits(RUN, 0);
}

/// A story in progress, committed two hours ago with the files that it lists; its state was last
/// written one hour ago.
fn an_hour_ago(yard: &Yard) {
    let state = ".nexos/workflow-state/4.2-state.yaml";
    let list = "## File List\n\n- `src/a.txt`\n- src/b.txt (new)\n\n## QA Results\n";
    let text = TEXT.replace("Draft", "In Progress").replace("## QA Results\n", list);
    yard.write(STORY, &text);
    let at = ago(1);
    yard.write(
        state,
        &format!("workflow: sdc\nstory: 4.2\ncurrent_phase: 3\nupdated_at: \"{at}\"\n"),
    );
    for name in ["src/a.txt", "src/b.txt"] {
        yard.write(name, "one\n");
    }
    for name in [STORY, state, "src/a.txt", "src/b.txt"] {
        let mut touch = Command::new("touch");
        touch.arg("--date").arg(ago(2)).arg(yard.bench.path(name));
        assert!(touch.status().unwrap().success());
    }
    commit(yard, "story", &ago(2));
}

fn ago(hours: u32) -> String {
    let at = format!("-{hours} hours");
    let out = Command::new("date").args(["-u", "-d", &at, "+%Y-%m-%dT%H:%M:%SZ"]).output();
    String::from_utf8(out.unwrap().stdout).unwrap().trim().to_owned()
}

fn commit(yard: &Yard, message: &str, at: &str) {
    yard.git(&["add", "."]);
    let mut commit = Command::new("git");
    commit.args(["commit", "--quiet", "--message", message, "--date", at]);
    commit.args(["--author", "ann <ann@example.com>"]).current_dir(&yard.bench.root);
    commit.env("GIT_COMMITTER_DATE", at).env("GIT_CONFIG_GLOBAL", "/dev/null");
    commit.env("GIT_COMMITTER_NAME", "ann").env("GIT_COMMITTER_EMAIL", "ann@example.com");
    assert!(commit.status().unwrap().success());
}

/// What a story asks for is compared with what git had when the state was last written.
#[test]
fn acceptance_criteria_that_changed_since_stop_the_run_and_other_sections_do_not() {
    let yard = Yard::new();
    an_hour_ago(&yard);
    let text = yard.bench.text(STORY);
    yard.write(STORY, &text.replace("## Dev Notes\n", "## Dev Notes\n\nremember\n"));
    let plan = yard.bench.exits("plan --json", 0).json();
    assert!(!plan["findings"].to_string().contains("scope-changed"), "{plan:#}");
    yard.write(STORY, &text.replace("1. It greets.\n", "1. It greets.\n2. It waves.\n"));
    let plan = yard.bench.exits("plan --json", 0).json();
    let findings = plan["findings"].as_array().unwrap();
    let changed = findings.iter().find(|it| it["code"] == "scope-changed").unwrap();
    assert_eq!(changed["severity"], "blocking", "{plan:#}");
    assert_eq!(changed["path"], STORY, "{plan:#}");
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    yard.bench.exits("resume --yes --no-input", 16);
}

/// By a commit of other work, and without one.
#[test]
fn files_of_a_story_that_other_work_changed_since_are_told_and_the_run_can_go_on() {
    let yard = Yard::new();
    an_hour_ago(&yard);
    let found = |yard: &Yard| {
        let plan = yard.bench.exits("plan --json", 0).json();
        let findings = plan["findings"].as_array().unwrap().clone();
        let found = findings.into_iter().filter(|it| it["code"] == "external-modification");
        let words = |it: Value| {
            let word = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
            (word("severity"), word("path"), word("message"))
        };
        assert_eq!(plan["can_resume"], true, "{plan:#}");
        found.map(words).collect::<Vec<_>>()
    };
    assert_eq!(found(&yard), []);
    // Work of a run of ours is no other work.
    yard.write("src/a.txt", "two\n");
    yard.git(&["commit", "--quiet", "--all", "--message=ours\n\nOnward-Run: r-1"]);
    assert_eq!(found(&yard), []);
    yard.write("src/a.txt", "three\n");
    yard.write("src/b.txt", "two\n");
    yard.git(&["commit", "--quiet", "--message=mend the greeting", "src/a.txt"]);
    let [committed, written] = found(&yard).try_into().unwrap();
    assert_eq!((committed.0.as_str(), committed.1.as_str()), ("warning", "src/a.txt"));
    assert!(committed.2.contains("mend the greeting"), "{committed:?}");
    // The agent that was interrupted may have written it.
    assert_eq!((written.0.as_str(), written.1.as_str()), ("info", "src/b.txt"));
    yard.bench.exits(RUN, 0);
}

#[test]
fn a_loop_that_cannot_be_read_is_asked_about_before_its_reviewer_is_paid() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
    yard.bench.write("app.txt", "hello ada\n");
    let (path, torn) =
        ("qa/4.2/loop-status.json", "{\"storyId\":\"4.2\",\"currentIteration\":4,\"hist");
    yard.write(path, torn);
    let asked = yard.bench.exits(RUN, 16);
    assert!(asked.err.contains("state-unreadable"), "{asked:#?}");
    assert!(!yard.bench.path(".onward/runs").exists(), "nothing was begun");
    assert_eq!(yard.bench.text(path), torn);
    yard.bench.exits(&format!("{RUN} --accept state-unreadable"), 0);
    assert_eq!(yard.bench.text(&format!("{path}.unreadable")), torn, "it is kept");
    let told: Value = serde_json::from_str(&yard.bench.text(path)).unwrap();
    assert_eq!(told["history"][0]["verdict"], "APPROVE", "{told:#}");
}

#[test]
fn a_story_that_was_done_outside_of_its_workflow_is_said_to_be_where_the_user_looks() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Done"));
    let state = "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\n";
    yard.write(".nexos/workflow-state/run-state.yaml", state);
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "complete", "{plan:#}");
    assert!(plan["findings"].to_string().contains("status-disagrees"), "{plan:#}");
    let said = yard.bench.exits(RUN, 17);
    assert!(said.err.contains("completed outside this workflow"), "{said:#?}");
    assert_eq!(yard.bench.text(".nexos/workflow-state/run-state.yaml"), state);
}

#[test]
fn a_loop_that_is_approved_elsewhere_asks_no_more() {
    let yard = Yard::with(|agent| agent.replace("grep -q ada app.txt", "false"));
    yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
    let path = "qa/4.2/loop-status.json";
    let turn = |number: u32, verdict: &str| json!({"iteration": number, "verdict": verdict});
    let mut status = json!({"storyId": "4.2", "currentIteration": 1, "maxIterations": 1,
        "status": "in_progress", "history": [turn(1, "REJECT")]});
    yard.write(path, &status.to_string());
    let asked = yard.bench.exits(RUN, 11);
    assert!(asked.err.contains("escalate"), "{asked:#?}");
    status["currentIteration"] = json!(2);
    status["maxIterations"] = json!(2);
    status["status"] = json!("completed");
    status["history"].as_array_mut().unwrap().push(turn(2, "APPROVE"));
    yard.write(path, &status.to_string());
    yard.bench.exits(RUN, 0);
    assert!(yard.bench.text(path).contains("APPROVE"));
    assert!(!yard.bench.text(path).contains("waived"), "{}", yard.bench.text(path));
}
