//! What is said about a run that another system left behind.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "support/program.rs"]
mod program;

use std::{fs, path::Path};

use insta::assert_snapshot;
use program::Said;
use serde_json::Value;
use tempfile::TempDir;

const DOCUMENT: &str = "\
# Conference: Tea

## Goal
Steep it better.

## Mode
metric

## Success Metric
- **Metric:** taste
- **Target:** >= 90
- **Direction:** maximize

## Researchers
- **Count:** 2
- **Iterations per round:** 3
- **Max rounds:** 3

## Shared Knowledge

## Conference Log
";

/// Event, minute after eight, payload.
const EVENTS: [(&str, &str, &str); 4] = [
    ("conference.started", "00", r#""researchers":2"#),
    ("round.started", "01", r#""round":1,"researcher_states":["A:ready","B:ready"]"#),
    (
        "researcher.iteration",
        "05",
        r#""researcher":"A","round":1,"iteration":0,"metric_value":40,"status":"baseline""#,
    ),
    (
        "researcher.iteration",
        "10",
        r#""researcher":"A","round":1,"iteration":1,"metric_value":44,"status":"kept""#,
    ),
];

const ROWS: &str = "\
iteration\tmetric_value\tdelta\tdelta_pct\tstatus\tdescription\tevaluator_source\ttimestamp
0\t40\t-\t-\tbaseline\tas it was\ttaste.sh\t2026-05-04T20:05:00Z
1\t44\t+4\t+10%\tkept\thotter\ttaste.sh\t2026-05-04T20:10:00Z
2\t41\t-3\t-7%\treverted\tcolder\ttaste.sh\t2026-05-04T20:14:00Z
";

fn project() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join(".onward")).unwrap();
    conference(&dir.path().join("talks/tea"));
    dir
}

fn conference(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("conference.md"), DOCUMENT).unwrap();
    let line = |(event, minute, payload): &(&str, &str, &str)| {
        let at = format!("2026-05-04T20:{minute}:00Z");
        format!(r#"{{"event":"{event}","timestamp":"{at}","payload":{{{payload}}}}}"#) + "\n"
    };
    let log: String = EVENTS.iter().map(line).collect();
    fs::write(dir.join("conference_events.jsonl"), log).unwrap();
    fs::write(dir.join("researcher_A_results.tsv"), ROWS).unwrap();
}

fn said(at: &Path, arguments: &str) -> Said {
    let mut command = program::onward(at, arguments);
    Said::of(&command.env("ONWARD_NOW", "2026-05-04T22:10:00Z").output().unwrap())
}

fn onward(at: &Path, arguments: &str) -> String {
    let said = said(at, arguments).shown();
    let root = fs::canonicalize(at).unwrap();
    said.replace(root.to_str().unwrap(), "HERE")
}

fn json(at: &Path, arguments: &str) -> Value {
    said(at, arguments).json()
}

#[test]
fn a_conference_is_planned_where_it_lies() {
    let project = project();
    assert_snapshot!(onward(project.path(), "plan talks/tea"), @r"
    tea  interrupted, last event 2 h 0 min ago
    Rounds completed: 0
    Last completed event: researcher.iteration at 2026-05-04T20:10:00.000000Z
    Researchers in the last round: A, B (round 1)
    Convergence reached: no
    Interruption point: Round 1, phase 1: go on with A, B, from their last kept state

    Findings
      warning prerequisite-missing: agent `claude` has no command
        put [agents.claude] command = [...] in .onward/config.toml
      info prerequisite-missing: no evaluator: researchers report their metric themselves
        add `- **Evaluator:** COMMAND` under Success Metric to have it measured
      warning rows-exceed-events: researcher_A_results.tsv has unlogged rows (round 1: 2)
        they may be from an earlier, interrupted run
      info rows-missing: conference_results.tsv is missing, and 2 iterations are logged
        a resume rebuilds it with 2 rows from the log and the other results

    Steps
      keep     open                             done: the files record it
      keep     confirm                          done: at 2026-05-04T22:10:00.000000Z
      adopt    partition                        inferred: the files show it; no line records it
      keep     start                            done: the files record it
      keep     round[1]/begin                   done: the files record it
      keep     round[1]/research[A]/baseline    done: the files record it
      keep     round[1]/research[A]/iterate[1]  done: the files record it
      run      round[1]/research[A]/iterate[2]  pending: it has not run yet
      run      round[1]/research[B]/baseline    pending: it has not run yet
      run      round[1]/research[B]/iterate     pending: it has not run yet
      run      round[1]/roll                    pending: it has not run yet
      run      round[1]/poster                  pending: it has not run yet
      run      round[1]/review                  pending: it has not run yet
      run      round[1]/transfer                pending: it has not run yet
      run      round[1]/converge                pending: it has not run yet
      run      synthesis                        pending: it has not run yet
      run      worktrees                        pending: it has not run yet
      run      close                            pending: it has not run yet
      undo     researcher_A_results.tsv (kept in rescue/1-round[1]~research[%41])
               2  41  -3  -7%  reverted  colder  taste.sh  2026-05-04T20:14:00Z

    adopt 1, keep 6, run 11
    onward resume HERE/talks/tea
    --- stderr
    --- exit 0
    ");
    let by_name = json(project.path(), "plan talks/tea --json");
    let here = json(&project.path().join("talks/tea"), "plan --json");
    let below = json(project.path(), "plan --json");
    let named = json(project.path(), "plan --dialect conference talks/tea --json");
    assert_eq!(by_name["recovery_point"]["code"], "research-continue");
    assert_eq!(by_name["run"]["dialect"], "conference");
    for other in [here, below, named] {
        assert_eq!(other, by_name);
    }
}

#[test]
fn the_plan_fits_its_schema() {
    let project = project();
    let schema = json(project.path(), "schema plan");
    let plan = json(project.path(), "plan talks/tea --json");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&plan).map(|it| it.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    let schema = json(project.path(), "schema status");
    let status = json(project.path(), "status talks/tea --json");
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&status));
}

#[test]
fn a_conference_has_a_status_and_a_line_in_the_list() {
    let project = project();
    assert_snapshot!(onward(project.path(), "status talks/tea"), @r"
    Run:            tea
    Status:         interrupted
    Phase:          1
    Steps:          6 of 18 done
    Last activity:  2026-05-04T20:10:00.000000Z (2 h 0 min ago)
    Last completed: round[1]/research[A]/iterate[1] at 2026-05-04T20:10:00.000000Z
    Next step:      round[1]/research[A]
    Next action:    onward resume HERE/talks/tea
    --- stderr
    --- exit 0
    ");
    assert_snapshot!(onward(project.path(), "list"), @r"
    HERE/talks/tea  interrupted 6/18  1  2 h 0 min ago  conference
    --- stderr
    --- exit 0
    ");
    let list = json(project.path(), "list --json");
    let run = &list["runs"][0];
    assert_eq!((&run["dialect"], &run["status"]), (&"conference".into(), &"interrupted".into()));
    assert_eq!(run["last_event_at"], "2026-05-04T20:10:00.000000Z");
    assert_eq!(run["phase"], "1");
}

#[test]
fn a_missing_file_is_named_with_what_to_do_instead() {
    let project = project();
    fs::remove_file(project.path().join("talks/tea/conference_events.jsonl")).unwrap();
    let missing = onward(project.path(), "plan talks/tea");
    assert_snapshot!(missing, @r"
    --- stderr
    error: HERE/talks/tea: cannot resume this conference: `conference_events.jsonl` is missing
    help: start one with `onward run conference`, or set one up with `onward init --from conference`
    --- exit 17
    ");
    let error = json(project.path(), "plan talks/tea --json");
    assert_eq!(error["code"], "missing_file");
    let inside = onward(&project.path().join("talks/tea"), "plan");
    assert_eq!(inside, missing.replace("HERE/talks/tea", "HERE"));
}

#[test]
fn doubt_is_settled_by_asking() {
    let project = project();
    conference(&project.path().join("talks/coffee"));
    assert_snapshot!(onward(project.path(), "plan"), @r"
    --- stderr
    error: several runs can be resumed:
      1. HERE/talks/coffee (conference)
      2. HERE/talks/tea (conference)
    help: say which, such as `onward resume HERE/talks/coffee`, or take `--all`
    --- exit 16
    ");
    assert_snapshot!(onward(project.path(), "plan talks/tea --dialect parliament"), @r"
    --- stderr
    error: there is no dialect `parliament`
    help: known: conference, dotagent, pipeline
    --- exit 2
    ");
    assert_snapshot!(onward(project.path(), "plan talks/milk"), @r"
    --- stderr
    error: there is no run here
    help: start one with `onward run`
    --- exit 17
    ");
}

#[test]
fn what_no_run_goes_on_with_has_no_journal() {
    let project = project();
    assert_snapshot!(onward(project.path(), "log talks/tea"), @r"
    --- stderr
    error: `HERE/talks/tea` was written by another system, and no run goes on with it yet
    help: see `onward plan HERE/talks/tea`, then `onward resume HERE/talks/tea`
    --- exit 1
    ");
}

#[test]
fn a_resume_that_cannot_go_on_makes_nothing() {
    let project = project();
    let tea = project.path().join("talks/tea");
    let pending = DOCUMENT.replace(
        "## Researchers",
        "## Pre-Flight Gate\n- **Final confirmation:** pending\n\n## Researchers",
    );
    fs::write(tea.join("conference.md"), pending).unwrap();
    let said = onward(project.path(), "resume talks/tea --yes --no-input");
    assert!(said.contains("confirmation-pending") && said.ends_with("--- exit 16"), "{said}");
    assert!(!project.path().join(".onward/runs").exists());
    let log = tea.join("conference_events.jsonl");
    let mut text = fs::read_to_string(&log).unwrap();
    text.push_str("{\"event\":\"conference.completed\",\"timestamp\":\"2026-05-04T20:12:00Z\"}\n");
    fs::write(&log, text).unwrap();
    let said = onward(project.path(), "resume talks/tea --yes --no-input");
    assert!(said.ends_with("--- exit 17"), "{said}");
}

#[test]
fn looking_changes_nothing() {
    let project = project();
    let tea = project.path().join("talks/tea");
    let state = || -> Vec<(std::ffi::OsString, Vec<u8>)> {
        let entries = fs::read_dir(&tea).unwrap().map(Result::unwrap);
        let mut all: Vec<_> =
            entries.map(|it| (it.file_name(), fs::read(it.path()).unwrap())).collect();
        all.sort();
        all
    };
    let before = state();
    for command in ["plan talks/tea", "status talks/tea", "list", "plan --json"] {
        assert_eq!(said(project.path(), command).code, 0);
    }
    assert_eq!(state(), before);
}
