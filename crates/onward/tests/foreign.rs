//! What is said about a run that another system left behind.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "support/program.rs"]
mod program;

use std::{fs, path::Path};

use insta::assert_snapshot;
use onward_engine::world::schema::Schema;
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
    // The file that a finding is about makes one line wider than a screen, a setting another one.
    let said = onward(project.path(), "plan talks/tea");
    let setting = "; or put `agents.claude.command = [\"PROGRAM\", \"{prompt}\"]` at the top of \
        .onward/config.toml";
    assert!(said.contains("themselves (conference.md)") && said.contains(setting), "{said}");
    assert_snapshot!(said.replace(" (conference.md)", "").replace(setting, ""), @r"
    tea  interrupted 2 h ago
    Rounds completed: 0
    Last completed event: researcher.iteration at 20:10
    Researchers in the last round: A, B (round 1)
    Convergence reached: no
    Interruption point: Round 1, phase 1: continue with A, B, from their last kept state

      keep      open       the files record it
      keep      confirm    the files record it
      adopt     partition  the files show it; no line records it
      keep      start      the files record it
      keep      round      3 of 11 done
      run       round      8 of 11: not started
      run       synthesis  not started
      run       worktrees  not started
      run       close      not started

    Undone first, and saved
      researcher_A_results.tsv (saved in rescue/1-round[1]~research[%41])
        2  41  -3  -7%  reverted  colder  taste.sh  2026-05-04T20:14:00Z

    Findings
      info      prerequisite-missing: no evaluator: researchers report their metric themselves
                add `- **Evaluator:** COMMAND` under Success Metric to have it measured
      info      rows-missing: conference_results.tsv is missing, and 2 iterations are logged
                a resume rebuilds it with 2 rows from the log and the other results
      warning   prerequisite-missing: agent `claude`: the program `claude` is not on the PATH
                npm install -g @anthropic-ai/claude-code
      warning   rows-exceed-events: researcher_A_results.tsv has unlogged rows (round 1: 2)
                they may be from an earlier, interrupted run

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
    assert_eq!(Schema::compile(&schema).unwrap().check(&plan), Ok(()));
    let schema = json(project.path(), "schema status");
    let status = json(project.path(), "status talks/tea --json");
    assert_eq!(Schema::compile(&schema).unwrap().check(&status), Ok(()));
}

#[test]
fn a_conference_has_a_status_and_a_line_in_the_list() {
    let project = project();
    assert_snapshot!(onward(project.path(), "status talks/tea"), @r"
    Run:            tea
    Status:         interrupted
    Phase:          1
    Steps:          7 of 18 done, and more to come
    Last activity:  20:10 (2 h ago)
    Last completed: round[1]/research[A]/iterate[1] at 20:10
    Next step:      round[1]/research[A]
    Next action:    onward resume HERE/talks/tea
    --- stderr
    --- exit 0
    ");
    let list = onward(project.path(), "list");
    let words: Vec<&str> = list.split_whitespace().collect();
    let row = "tea interrupted 7/18+ 1 2 h ago conference in talks/tea";
    let all = format!("RUN STATUS DONE PHASE LAST ACTIVE {row} --- stderr --- exit 0");
    assert_eq!(words.join(" "), all);
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
    assert!(onward(project.path(), "plan").ends_with("--- exit 0"), "the last active one");
    assert_snapshot!(onward(project.path(), "resume --no-input"), @r"
    --- stderr
    error: several runs can be resumed:
      1. HERE/talks/coffee  conference, interrupted, phase 1, 2 h ago
      2. HERE/talks/tea  conference, interrupted, phase 1, 2 h ago
    help: say which, such as `onward resume HERE/talks/coffee`, or use `--all`
    --- exit 16
    ");
    assert_snapshot!(onward(project.path(), "plan talks/tea --dialect parliament"), @r"
    --- stderr
    error: there is no dialect `parliament`
    help: known: conference, agent-memory, dotagent, pipeline, sdlc
    --- exit 2
    ");
    assert_snapshot!(onward(project.path(), "plan talks/milk"), @r"
    --- stderr
    error: no run is called `talks/milk`
    help: see `onward list`
    --- exit 17
    ");
}

#[test]
fn what_no_run_goes_on_with_has_no_journal() {
    let project = project();
    assert_snapshot!(onward(project.path(), "log talks/tea"), @r"
    --- stderr
    error: `HERE/talks/tea` was written by another system, and no run continues it yet
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
