//! What people and scripts are told: standard output, standard error and exit code as one text.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "support/program.rs"]
mod program;
#[path = "support/screens.rs"]
mod screens;

use std::fs;

use insta::assert_snapshot;
use onward_engine::world::schema::Schema;
use program::Said;
use screens::masked;
use serde_json::Value;
use tempfile::TempDir;

const STEPS: &str = "onward: 1
name: story
steps:
  - { id: one, run: echo 1 > one, writes: [one] }
  - { id: fan, each: [a, b], run: \"true {{ item }}\", needs: [one] }
  - { id: ask, gate: Go on?, shows: [one] }
  - { id: two, run: test -e allowed }
";

/// A project, and what was said in it.
struct Talk(TempDir);

impl Talk {
    fn new() -> Self {
        let talk = Self(TempDir::new().unwrap());
        fs::create_dir(talk.0.path().join(".onward")).unwrap();
        // One at a time, so that the lines come in one order.
        let text = STEPS.replace("steps:", "limits: { parallel: 1 }\nsteps:");
        fs::write(talk.0.path().join("w.yaml"), text).unwrap();
        talk
    }

    fn said(&self, arguments: &str) -> Said {
        Said::of(&program::onward(self.0.path(), arguments).output().unwrap())
    }

    #[must_use]
    fn onward(&self, arguments: &str) -> String {
        let said = self.said(arguments).shown();
        masked(&said.replace(fs::canonicalize(self.0.path()).unwrap().to_str().unwrap(), "HERE"))
    }

    fn json(&self, arguments: &str) -> Value {
        self.said(arguments).json()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    /// What a terminal of this width shows, as `docs/screens` has it.
    fn screen(&self, name: &str, arguments: &str, width: &str) {
        let mut command = program::onward(self.0.path(), arguments);
        let said = Said::of(&command.env("COLUMNS", width).output().unwrap()).shown();
        let here = fs::canonicalize(self.0.path()).unwrap();
        let text = masked(&said.replace(here.to_str().unwrap(), "HERE"));
        let text = format!("$ onward {arguments}\n{text}\n");
        screens::holds(name, width, &text);
    }
}

/// The widths of the terminals on which screens are reviewed.
const WIDTHS: [&str; 2] = ["80", "120"];

#[test]
#[expect(clippy::too_many_lines, reason = "one conversation, read from top to bottom")]
fn a_run_is_told_from_its_start_to_its_end() {
    let talk = Talk::new();
    assert_snapshot!(talk.onward("run w.yaml"), @r#"
    --- stderr
    run story-ID
    TIME start one
    TIME done  one  0.0 s
    TIME start fan[a]
    TIME done  fan[a]  0.0 s
    TIME start fan[b]
    TIME done  fan[b]  0.0 s
    TIME gate  ask  opened
    run story-ID waits for your answer: 3 of 5 steps done, 0.0 s
      3 ran, 1 waiting, 1 to come
    ask waits for your answer: Go on?
      look at one
    onward decide story-ID ask approve --hash DIGEST
    onward decide story-ID ask reject --hash DIGEST
    --- exit 11
    "#);
    assert_snapshot!(talk.onward("plan"), @r#"
    story-ID  waiting AGE ago
    3 steps kept, 1 to run, 1 to decide · ask waits for your answer

      keep      one  done TIME
      keep      fan  2 of 2 done, last TIME
      ask       ask  waits for your answer
      run       two  not started

    Needs you
      ask waits for your answer

    onward resume story-ID
    --- stderr
    --- exit 0
    "#);
    assert_snapshot!(talk.onward("status"), @r#"
    Run:            story-ID
    Status:         waiting
    Phase:          ask
    Steps:          3 of 5 done
    Last activity:  TIME (AGE ago)
    Last completed: fan[b] at TIME

    Gate ask: Go on?
      look at one
      onward decide story-ID ask approve --hash DIGEST
      onward decide story-ID ask reject --hash DIGEST

    Next action:    answer the gate
    --- stderr
    --- exit 0
    "#);
    assert_snapshot!(talk.onward("why two"), @r#"
    two: run
      not started
    --- stderr
    --- exit 0
    "#);
    assert_snapshot!(talk.onward("approve"), @r#"
    --- stderr
    gate ask: recorded "approve" for run story-ID
    onward resume story-ID
    --- exit 0
    "#);
    assert_snapshot!(talk.onward("list"), @r#"
    RUN                  STATUS       DONE  PHASE  LAST ACTIVE
    story-ID  interrupted   4/5  two    AGE ago
    --- stderr
    --- exit 0
    "#);
    assert_snapshot!(talk.onward("resume"), @r#"
    --- stderr
    TIME resume 4 steps kept; continues at two
    TIME start two
    TIME fail  two  exit 1
    run story-ID failed: 4 of 5 steps done, 0.0 s since the resume
      4 kept, 1 failed
      two: exit 1
        onward log story-ID --step two   # attempt 1
    onward resume story-ID
    --- exit 10
    "#);
    fs::write(talk.0.path().join("allowed"), "").unwrap();
    assert_snapshot!(talk.onward("resume"), @r#"
    --- stderr
    TIME resume 4 steps kept; continues at two, which failed
    TIME start two (attempt 2)
    TIME done  two  0.0 s
    run story-ID completed: 5 steps, 0.0 s since the resume
      1 ran again, 4 kept
      files: one
    --- exit 0
    "#);
    assert_snapshot!(talk.onward("log"), @r#"
        0 TIME run.opened
        1 TIME attempt.started   one 1
        2 TIME attempt.finished  one 1 done
        3 TIME group.expanded    fan
        4 TIME attempt.started   fan[a] 1
        5 TIME attempt.finished  fan[a] 1 done
        6 TIME attempt.started   fan[b] 1
        7 TIME attempt.finished  fan[b] 1 done
        8 TIME gate.opened       ask
        9 TIME run.paused        gate
       10 TIME gate.decided      ask approve
       11 TIME run.resumed
       12 TIME attempt.started   two 1
       13 TIME attempt.finished  two 1 failed: exit 1
       14 TIME run.ended         failed
       15 TIME run.resumed
       16 TIME attempt.started   two 2
       17 TIME attempt.finished  two 2 done
       18 TIME run.ended         completed
    --- stderr
    --- exit 0
    "#);
    assert_snapshot!(talk.onward("resume"), @r#"
    --- stderr
    error: there is nothing to resume here: run story-ID is complete
    help: run it again from the beginning with `onward run --again story-ID`
    --- exit 17
    "#);
}

#[test]
fn what_cannot_be_done_is_said_with_what_can() {
    let talk = Talk::new();
    assert_snapshot!(talk.onward("status"), @r#"
    --- stderr
    error: there is no run here
    help: start one with `onward run FILE`, or try `onward demo`
    --- exit 17
    "#);
    // The line of the hint is wider than a screen.
    let said = talk.onward("run nowhere.yaml");
    let known = "; known here: w.yaml, agent-memory, conference, dotagent, epic, pipeline, \
        qa-loop, sdc, ship, spec";
    assert!(said.contains(known), "{said}");
    assert_snapshot!(said.replace(known, ""), @r#"
    --- stderr
    error: cannot read `nowhere.yaml`: no such file or directory
    help: check the path; relative ones start at `--cwd`, or here
    --- exit 1
    "#);
    assert_snapshot!(talk.onward("run w.yaml --input topic=bees"), @r#"
    --- stderr
    error: workflow `story` has no input `topic`
    help: it has none
    --- exit 2
    "#);
    assert_snapshot!(talk.onward("run w.yaml --input topic"), @r#"
    --- stderr
    error: `topic` is not NAME=VALUE
    help: for example --input topic=bees
    --- exit 2
    "#);
    let _ = talk.onward("run w.yaml");
    assert_snapshot!(talk.onward("decide ask perhaps"), @r#"
    --- stderr
    error: `perhaps` is not an option of gate `ask`
    help: options: approve, reject
    --- exit 1
    "#);
    assert_snapshot!(talk.onward("decide nothing approve"), @r#"
    --- stderr
    error: there is no open gate `nothing`
    help: what waits: `onward decide story-ID ask approve`
    --- exit 1
    "#);
    assert_snapshot!(talk.onward("approve --hash abc"), @r#"
    --- stderr
    error: `abc` is not the hash of what an open gate shows
    help: see `onward status story-ID`
    --- exit 2
    "#);
    assert_snapshot!(talk.onward("why nothing"), @r#"
    --- stderr
    error: there is no step `nothing` in this run
    help: steps: one, fan[a], fan[b], ask, two
    --- exit 1
    "#);
    assert_snapshot!(talk.onward("resume stroy"), @r#"
    --- stderr
    error: no run is called `stroy`
    help: did you mean story-ID?
    --- exit 17
    "#);
    assert_snapshot!(talk.onward("resume --json stroy"), @r#"
    {
      "code": "no_such_run",
      "hint": "did you mean story-ID?",
      "message": "no run is called `stroy`",
      "schema": "onward.error/1"
    }
    --- stderr
    --- exit 17
    "#);
    assert_snapshot!(talk.onward("frobnicate"), @r#"
    --- stderr
    error: unrecognized subcommand 'frobnicate'

    Usage: onward [OPTIONS] [COMMAND]

    For more information, try '--help'.
    --- exit 2
    "#);
    assert_snapshot!(talk.onward("frobnicate --json"), @r#"
    {
      "code": "usage",
      "hint": "see `onward --help`",
      "message": "unrecognized subcommand 'frobnicate'",
      "schema": "onward.error/1"
    }
    --- stderr
    --- exit 2
    "#);
}

#[test]
fn events_are_printed_as_they_are_kept() {
    let talk = Talk::new();
    let _ = talk.onward("run w.yaml");
    let log = talk.said("log --json").out;
    let run = talk.json("status --json")["run"]["dir"].as_str().unwrap().to_owned();
    let journal = fs::read_to_string(format!("{run}/journal.jsonl")).unwrap();
    assert_eq!(log, journal);
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    assert_snapshot!(masked(&format!("{first:#}")), @r#"
    {
      "at": "TIME",
      "batch": 1,
      "boot_id": "BOOT",
      "crc": "CRC",
      "engine": "0.1.0",
      "epoch": 1,
      "file": "w.yaml",
      "format": 1,
      "inputs": {},
      "kind": "run.opened",
      "mode": "interactive",
      "run": "story-ID",
      "seq": 0,
      "workflow": "story",
      "workflow_hash": "DIGEST"
    }
    "#);
}

#[test]
fn plans_and_states_are_what_their_schemas_say() {
    let talk = Talk::new();
    let fits = |format: &str| {
        let schema = talk.json(&format!("schema {format}"));
        let schema = Schema::compile(&schema).unwrap();
        let object = talk.json(&format!("{format} --json"));
        assert_eq!(schema.check(&object), Ok(()), "{object:#}");
        assert!(schema.check(&serde_json::json!({"schema": "onward.plan/1"})).is_err());
    };
    for step in ["run w.yaml", "approve", "resume"] {
        let _ = talk.onward(step);
        ["plan", "status"].into_iter().for_each(fits);
    }
}

/// Every screen is a file, made by this test at two widths: language and layout are reviewed by
/// reading `docs/screens` in one sitting. Write them again with `ONWARD_SCREENS=write`.
#[test]
fn the_screens_in_the_docs_are_what_the_program_shows() {
    let talk = Talk::new();
    let mut shown = 0;
    let mut screen = |name: &str, arguments: &str| {
        for width in WIDTHS {
            talk.screen(name, arguments, width);
            shown += 1;
        }
    };
    screen("nothing-here", "status");
    let _ = talk.onward("run w.yaml");
    screen("plan-at-a-gate", "plan");
    screen("plan-all", "plan --all");
    screen("status-at-a-gate", "status");
    screen("list", "list");
    screen("overview", "--cwd .");
    let _ = talk.onward("approve");
    let _ = talk.onward("resume");
    screen("plan-after-a-failure", "plan");
    screen("why", "why two");
    screen("log", "log");
    screen("log-of-a-step", "log --step one");
    screen("log-of-a-group", "log --step fan");
    screen("status-after-a-failure", "status");
    screen("verify", "verify");
    screen("rescue", "rescue");
    screen("check", "check w.yaml");
    screen("config", "config");
    screen("help", "--help");
    screen("help-resume", "resume --help");
    screen("not-a-command", "clean");
    screen("not-a-step", "why tow");
    let edited = STEPS.replace("echo 1 >", "echo 2 >");
    fs::write(talk.0.path().join("w.yaml"), edited).unwrap();
    screen("plan-after-an-edit", "plan");
    screen("why-after-an-edit", "why one");
    let broken = STEPS.replace("run: test", "cmd: test").replace("needs: [one]", "depends_on: one");
    fs::write(talk.0.path().join("w.yaml"), broken).unwrap();
    screen("check-of-a-slip", "check w.yaml");
    assert_eq!(shown, 46);
}

/// The same for commands that change something: each width has a run of its own.
#[test]
fn the_screens_of_commands_that_act_are_what_the_program_shows() {
    for width in WIDTHS {
        let talk = Talk::new();
        for (name, arguments) in [
            ("init", "init hello"),
            ("run", "run w.yaml"),
            ("approve", "approve"),
            ("resume", "resume"),
            ("cancel", "cancel"),
            ("archive", "archive"),
            ("gc", "gc"),
            ("gc-all", "gc --keep 0 --yes"),
            ("run-without-a-file", "run"),
        ] {
            talk.screen(name, arguments, width);
        }
        let talk = Talk::new();
        let limit = r#"{"limit":{"provider":"p","resets_at":"2100-01-15T11:00:00Z"}}"#;
        talk.write("agent.sh", &format!("echo '{limit}'\nexit 1\n"));
        let config = "[agents.scribe]\nadapter = \"lines\"\ncommand = [\"sh\", \"agent.sh\"]\n";
        talk.write(".onward/config.toml", config);
        let steps = "  - { id: ask, agent: scribe, prompt: p }\n  - { id: next, run: 'true' }\n";
        talk.write("w.yaml", &format!("onward: 1\nname: story\nsteps:\n{steps}"));
        for (name, arguments) in [
            ("run-at-a-limit", "run w.yaml"),
            ("plan-at-a-limit", "plan"),
            ("why-at-a-limit", "why ask"),
            ("log-at-a-limit", "log"),
            ("status-at-a-limit", "status"),
            ("list-at-a-limit", "list"),
        ] {
            talk.screen(name, arguments, width);
        }
    }
}
