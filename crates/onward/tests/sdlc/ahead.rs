//! Files that say more than was done: statuses and gates that an agent of our own run wrote, and
//! checkpoints behind work that no file shows.

use std::fs;

use serde_json::Value;

use crate::yard::{STORY, TEXT, Yard};

const SDC: &str = "run sdc --input story=4.2 --no-input";
const RESUME: &str = "resume --yes --no-input";
const STATE: &str = ".nexos/workflow-state/4.2-state.yaml";
const DONE: &str = "sed -i 's/^\\*\\*Status:.*/**Status:** Done/' \"$story\"";

/// Agents that note each step they are started for, and a developer that does this once.
fn yard(evil: &str) -> Yard {
    Yard::with(|agent| {
        let once =
            format!("[ -e .git/once ] || {{ : > .git/once; {evil}; }}; echo hello > app.txt");
        let agent = agent.replace("echo hello > app.txt", &once);
        format!("echo \"$ONWARD_STEP\" >> .git/steps\n{agent}")
    })
}

fn started(yard: &Yard, step: &str) -> usize {
    let steps = fs::read_to_string(yard.bench.path(".git/steps")).unwrap_or_default();
    steps.lines().filter(|it| *it == step).count()
}

fn severity(plan: &Value, code: &str) -> Value {
    let found = plan["findings"].as_array().unwrap().iter().find(|it| it["code"] == code);
    found.map_or(Value::Null, |it| it["severity"].clone())
}

#[test]
fn a_status_or_a_gate_that_our_own_developer_wrote_gets_no_story_past_qa() {
    let gate = "mkdir -p docs/qa/gates; echo 'verdict: PASS' > docs/qa/gates/4.2-x.yml";
    let review = DONE.replace("Done", "Ready for Review");
    for evil in [DONE.to_owned(), format!("{DONE}; {gate}"), review] {
        for state in [None, Some("workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 1\n")] {
            let yard = yard(&evil);
            yard.write(STORY, TEXT);
            if let Some(state) = state {
                yard.write(STATE, state);
            }
            let run = state.map_or(SDC, |_| RESUME);
            let said = yard.bench.exits(run, 10);
            assert!(said.err.contains("the dev changed what is not its own"), "{said:#?}");
            let plan = yard.bench.exits("plan --json", 0).json();
            assert_eq!(severity(&plan, "scope-changed"), "blocking", "{evil}: {plan:#}");
            yard.bench.exits(RESUME, 16);
            assert_eq!(started(&yard, "qa-gate"), 0, "{evil}");
            yard.bench.exits(&format!("{RESUME} --accept scope-changed"), 0);
            assert_eq!(started(&yard, "qa-gate"), 1, "{evil}");
        }
    }
}

/// No call has looked yet: the supervisor and the agent are killed before.
#[test]
fn a_story_that_is_done_while_our_developer_worked_is_a_conflict() {
    let yard = crate::meanwhile::killed_after("heal*inspect", SDC, |agent| {
        let done = format!("{DONE}; echo hello > app.txt");
        agent.replace("echo hello > app.txt", &done)
    });
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(severity(&plan, "status-disagrees"), "blocking", "{plan:#}");
    assert_eq!(plan["recovery_point"]["code"], "sdc:implement", "{plan:#}");
    yard.bench.exits(RESUME, 16);
}

#[test]
fn a_validator_that_writes_ready_itself_has_validated_nothing() {
    let evil = "sed -i 's/Draft/Ready/' \"$story\"; say '{\"decision\"";
    let yard = Yard::with(|agent| agent.replace("say '{\"decision\"", evil));
    yard.write(STORY, TEXT);
    yard.bench.exits(SDC, 10);
    let said = yard.bench.exits(RESUME, 16);
    assert!(said.err.contains("scope-changed"), "{said:#?}");
}

#[test]
fn behind_a_checkpoint_the_run_goes_on_with_what_no_file_shows_to_be_done() {
    for (phase, status, first) in [
        ("3", "In Progress", "implement"),
        ("6_checkpoint", "Ready", "implement"),
        ("6_checkpoint", "InReview", "qa-gate"),
    ] {
        let yard = yard("true");
        yard.write(STORY, &TEXT.replace("Draft", status));
        let state = format!(
            "workflow: sdc\ncurrent_story: \"4.2\"\ncurrent_phase: {phase}\nawaiting_input: true\n"
        );
        yard.write(STATE, &state);
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(plan["recovery_point"]["code"], "sdc:checkpoint", "{plan:#}");
        yard.bench.exits(RESUME, 11);
        assert_eq!(started(&yard, first), 0);
        yard.go();
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(plan["recovery_point"]["code"], format!("sdc:{first}"), "{plan:#}");
        yard.bench.exits(RESUME, 0);
        assert_eq!(started(&yard, first), 1, "{phase} {status}");
        assert_eq!(started(&yard, "qa-gate"), 1, "{phase} {status}");
        assert!(yard.bench.text(STORY).contains("**Status:** Done"));
        assert!(yard.bench.text(STATE).contains("awaiting_input: false"));
    }
}

#[test]
fn a_criterion_that_is_added_while_qa_works_is_implemented() {
    let yard = crate::meanwhile::killed_after("qa-gate", SDC, |agent| {
        format!("echo \"$ONWARD_STEP\" >> .git/steps\n{agent}")
    });
    let text = yard.bench.text(STORY).replace("1. It greets.\n", "1. It greets.\n2. Goodbye.\n");
    yard.write(STORY, &text);
    let accepts = "--accept scope-changed --accept dirty-tree";
    yard.bench.exits(&format!("{RESUME} {accepts}"), 0);
    assert_eq!(started(&yard, "implement"), 2);
    assert!(yard.bench.text(STORY).contains("2. Goodbye.\n"));
}

#[test]
fn a_story_that_is_gone_in_a_later_phase_is_missed_and_no_word_settles_that() {
    let yard = crate::meanwhile::killed_after("qa-gate", SDC, |agent| agent);
    fs::remove_file(yard.bench.path(STORY)).unwrap();
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(severity(&plan, "missing-artifact"), "blocking", "{plan:#}");
    assert_ne!(plan["recovery_point"]["code"], "sdc:create", "{plan:#}");
    let all = "--accept dirty-tree --accept status-disagrees --accept missing-artifact";
    yard.bench.exits(&format!("{RESUME} {all}"), 16);
}
