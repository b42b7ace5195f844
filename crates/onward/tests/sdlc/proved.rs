//! What agents say that they did, held against what they left.

use serde_json::Value;

use crate::yard::{STORY, TEXT, Yard};

const SPEC: &str = "run spec --input feature=login --input request=log-in --no-input";

/// The step that the run stopped at, and why.
fn failure(yard: &Yard) -> (String, String) {
    let status = yard.bench.exits("status --json", 0).json();
    let steps = status["steps"].as_array().unwrap();
    let failed = steps.iter().find(|it| it["state"] == "failed").unwrap_or(&Value::Null);
    (failed["step"].as_str().unwrap_or_default().to_owned(), failed.to_string())
}

#[test]
fn a_phase_whose_artifact_was_not_written_is_not_done() {
    for (step, from, to) in [
        ("gather", "echo '{\"a\": 1}' > docs/specs/login/requirements.json", "true"),
        ("assess", "echo '{\"class\": \"SIMPLE\"}' > docs/specs/login/complexity.json", "true"),
        ("research", "say '{\"class\": \"SIMPLE\"}'", "say '{\"class\": \"COMPLEX\"}'"),
        ("write", "printf '# Login\\n\\ntext\\n' > docs/specs/login/spec.md", "true"),
        (
            "critique",
            "echo '{\"verdict\": \"NEEDS_REVISION\"}' > docs/specs/login/critique.json",
            "true",
        ),
    ] {
        let yard = Yard::with(|agent| {
            assert!(agent.contains(from), "{from}");
            agent.replacen(from, to, 1)
        });
        let said = yard.bench.exits(SPEC, 10);
        assert!(said.err.contains("unproved"), "{step}: {said:#?}");
        assert_eq!(failure(&yard).0, step, "{said:#?}");
    }
    let yard = Yard::with(|agent| agent.replace("cat story.txt > \"$story\"", "true"));
    let said = yard.bench.exits("run sdc --input story=4.2 --input request=greet --no-input", 10);
    assert!(said.err.contains("unproved"), "{said:#?}");
    assert_eq!(failure(&yard).0, "create", "{said:#?}");
}

/// A critique that was left as it was sends the spec back, whatever its judge says of it.
#[test]
fn a_critique_counts_as_its_file_has_it() {
    let stale = "echo '{\"verdict\": \"APPROVED\"}' > docs/specs/login/critique.json";
    let yard = Yard::with(|agent| agent.replace(stale, "true"));
    let said = yard.bench.exits(SPEC, 10);
    assert!(!said.err.contains("completed"), "{said:#?}");
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_ne!(plan["run"]["status"], "completed", "{plan:#}");
    let unsaid = "echo '{\"verdict\": \"NEEDS_REVISION\"}' > docs/specs/login/critique.json";
    let yard = Yard::with(|agent| {
        agent.replace(unsaid, "echo '{\"notes\": 1}' > docs/specs/login/critique.json")
    });
    let said = yard.bench.exits(SPEC, 10);
    assert!(said.err.contains("says no verdict"), "{said:#?}");
    yard.write("docs/specs/login/critique.json", "{\"verdict\": \"APPROVED\"}");
    yard.bench.exits("resume --yes --no-input", 0);
    assert!(yard.bench.text("docs/specs/login/spec.md").contains("text"));
}

/// However the file came to be so: another one is asked for, and nothing else is done again.
#[test]
fn a_critique_that_cannot_be_read_is_made_again() {
    let file = "docs/specs/login/critique.json";
    let first = "echo '{\"verdict\": \"NEEDS_REVISION\"}' > docs/specs/login/critique.json";
    let again = "echo '{\"verdict\": \"APPROVED\"}' > docs/specs/login/critique.json";
    for (good, broken) in [(first, "{\"verdict\": \"NEEDS_REV"), (again, "{\"verdict\": [1]}")] {
        let bad = format!("[ -e mended ] && {good} || printf '%s' '{broken}' > {file}");
        let yard = Yard::with(|agent| {
            assert!(agent.contains(good));
            let told = "say() { echo \"$ONWARD_STEP\" >> told; ";
            agent.replace(good, &bad).replace("say() {", told)
        });
        let said = yard.bench.exits(SPEC, 10);
        assert!(said.err.contains("says no verdict"), "{broken}: {said:#?}");
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(plan["recovery_point"]["code"], "spec:critique", "{plan:#}");
        yard.write("mended", "");
        yard.bench.exits("resume --yes --no-input", 0);
        assert!(yard.bench.text("docs/specs/login/spec.md").contains("better"), "{broken}");
        let told = yard.bench.text("told");
        assert_eq!(told.lines().filter(|it| *it == "assess").count(), 1, "{told}");
    }
}

#[test]
fn go_takes_seven_points_and_says_how_many_there_are() {
    let judged = |by: &'static str| {
        let yard = Yard::with(|agent| {
            agent.replace("validate*) say '{\"decision\": \"GO\", \"score\": 9}'", by)
        });
        yard.write(STORY, TEXT);
        yard
    };
    let low = judged(
        "validate*revise) echo better >> mended ;;\n  validate*) score=6.5; [ ! -e mended ] || \
         score=7; say '{\"decision\": \"GO\", \"score\": '$score'}'",
    );
    low.bench.exits("run sdc --input story=4.2 --no-input", 0);
    assert_eq!(low.bench.text("mended"), "better\n", "it was sent back once");
    let silent = judged("validate*) say '{\"decision\": \"GO\"}'");
    let said = silent.bench.exits("run sdc --input story=4.2 --no-input", 10);
    assert!(said.err.contains("score"), "{said:#?}");
    let many = judged("validate*) say '{\"decision\": \"GO\", \"score\": 11}'");
    many.bench.exits("run sdc --input story=4.2 --no-input", 10);
}

#[test]
fn an_aborted_run_is_taken_up_with_force_alone() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "InProgress"));
    let state = "workflow: sdc\ncurrent_story: \"4.2\"\ncurrent_phase: 3\nstatus: aborted\n";
    yard.write(".nexos/workflow-state/run-state.yaml", state);
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(plan["can_resume"], false, "{plan:#}");
    for flags in ["", "--accept run-over", "--mode autopilot"] {
        let said = yard.bench.exits(&format!("resume --yes --no-input {flags}"), 16);
        assert!(said.err.contains("--force"), "{flags}: {said:#?}");
    }
    assert_eq!(yard.bench.text(".nexos/workflow-state/run-state.yaml"), state);
    yard.bench.exits("resume --yes --no-input --force", 0);
    assert!(yard.bench.text(STORY).contains("**Status:** Done"));
}

/// The user is told the very place, in the question and in what was done.
#[test]
fn the_archive_of_a_run_is_where_the_user_was_told() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "InProgress"));
    let state = "workflow: sdc\ncurrent_story: \"4.2\"\ncurrent_phase: 3\n";
    yard.write(".nexos/workflow-state/run-state.yaml", state);
    let said = yard.bench.exits("archive sdc-4.2 --yes", 0);
    let place = said.err.split("is kept as ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(yard.bench.text(place), state, "{said:#?}");
}

#[test]
fn a_finished_epic_is_listed_beside_what_is_open_and_is_not_chosen() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "InProgress"));
    yard.write("docs/stories/3.1.story.md", &TEXT.replace("4.2", "3.1").replace("Draft", "Done"));
    let state = "epic_state:\n  epicId: 3\n  status: completed\n  updated_at: \
                 \"2036-02-03T10:00:00Z\"\n  current_wave: 1\n  waves:\n    1:\n      status: \
                 completed\n      stories:\n        3.1:\n          status: completed\n  \
                 gate_verdicts:\n    1:\n      status: APPROVE\n";
    yard.write(".aiox/epic-3-state.yaml", state);
    let list = yard.bench.exits("list --json", 0).json();
    let of = |it: &Value| (it["id"].clone(), it["status"].clone());
    let mut rows: Vec<(Value, Value)> = list["runs"].as_array().unwrap().iter().map(of).collect();
    rows.sort_by_key(|it| it.0.to_string());
    let row = |id: &str, status: &str| (Value::from(id), Value::from(status));
    assert_eq!(rows, [row("epic-3", "completed"), row("sdc-4.2", "interrupted")]);
    for arguments in ["plan --json", "plan --json ."] {
        let plan = yard.bench.exits(arguments, 0).json();
        assert_eq!(plan["run"]["id"], "sdc-4.2", "{arguments}: {plan:#}");
    }
    let plan = yard.bench.exits("plan --json epic-3", 0).json();
    assert_eq!(plan["run"]["status"], "completed", "{plan:#}");
}

/// A story that is ready is validated by the run all the same: a no of the validator stands.
#[test]
fn a_story_of_an_epic_that_got_no_go_is_not_implemented_by_a_resume() {
    let yard = Yard::with(|agent| {
        let go = "wave*work/validate) say '{\"decision\": \"GO\", \"score\": 8}'";
        assert!(agent.contains(go));
        let no = "wave*work/validate) say '{\"decision\": \"NO-GO\", \"score\": 3, \
                  \"issues\": [\"it says no criteria\"]}'";
        agent.replace(go, no)
    });
    yard.with_epic();
    let said = yard.bench.exits("run epic --input epic=3 --no-input", 10);
    let no =
        "the product owner decided NO-GO, with 3 of 10 points (GO takes 7): it says no criteria";
    assert!(said.err.contains(no) && !said.err.contains("schema"), "{said:#?}");
    yard.bench.exits("resume --yes --no-input", 10);
    let plan = yard.bench.exits("plan --json", 0).json();
    let of = |id: &str| {
        let step = format!("wave[1]/story[{id}]/work/validate");
        let row = plan["steps"].as_array().unwrap().iter().find(|it| it["step"] == step.as_str());
        row.unwrap_or(&Value::Null)["verdict"].clone()
    };
    assert_eq!((of("3.1"), of("3.2")), ("rerun".into(), "rerun".into()), "{plan:#}");
    let status = yard.bench.exits("status --json", 0).json();
    let is_begun = |it: &&Value| {
        let step = it["step"].as_str().unwrap();
        step.ends_with("implement") && it["state"] != "pending"
    };
    assert_eq!(status["steps"].as_array().unwrap().iter().find(is_begun), None, "{status:#}");
}

/// Two runs lie in one directory: what is printed about one of them, pasted, means that one.
#[test]
fn what_was_begun_already_is_named_so_that_no_other_run_is_meant() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "InProgress"));
    let state = "workflow: sdc\ncurrent_story: \"4.2\"\ncurrent_phase: 3\n\
                 updated_at: \"2026-02-03T10:00:00Z\"\n";
    yard.write(".nexos/workflow-state/run-state.yaml", state);
    yard.write(
        "docs/stories/3.1.story.md",
        &TEXT.replace("4.2", "3.1").replace("Draft", "InReview"),
    );
    let turn = "{\"storyId\": \"3.1\", \"currentIteration\": 1, \"maxIterations\": 5, \
                \"status\": \"in_progress\", \"updatedAt\": \"2026-02-03T12:00:00Z\"}";
    yard.write("qa/3.1/loop-status.json", turn);
    let said = yard.bench.exits("run sdc --input story=4.2 --no-input", 16);
    let named = said.err.split("`onward resume ").nth(1).and_then(|it| it.split('`').next());
    let named = named.unwrap_or_else(|| panic!("{said:#?}"));
    let plan = yard.bench.exits(&format!("plan {named} --json"), 0).json();
    assert_eq!(plan["run"]["id"], "sdc-4.2", "{named}: {plan:#}");
}

/// The last word of an epic is a decision, and is told as one.
#[test]
fn a_final_gate_that_rejects_says_what_was_decided() {
    let yard = Yard::with(|agent| {
        let gate = "wave*gate*judge|final-gate) say '{\"verdict\": \"APPROVE\"}'";
        assert!(agent.contains(gate));
        let no = "final-gate) say '{\"verdict\": \"REJECT\", \"issues\": [\"no roof\"]}' ;;\n  \
                  wave*gate*judge) say '{\"verdict\": \"APPROVE\"}'";
        agent.replace(gate, no)
    });
    yard.with_epic();
    let plan = "execution:\n  epicId: \"3\"\n  waves:\n    1:\n      stories: [\"3.1\"]\n";
    yard.write("docs/epics/epic-3/EXECUTION.yaml", plan);
    yard.git(&["commit", "--quiet", "--all", "--message=one"]);
    yard.bench.exits("run epic --input epic=3 --no-input", 11);
    yard.go();
    let said = yard.bench.exits("resume --yes --no-input", 10);
    let no = "the architect decided REJECT about the epic as a whole: no roof";
    assert!(said.err.contains(no) && !said.err.contains("schema"), "{said:#?}");
}
