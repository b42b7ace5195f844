//! Worktrees in which our own work lies when the engine dies.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
};

use onward_engine::care::harness::until;
use serde_json::Value;

use crate::{
    bench::{kill_all, sees},
    hall::Hall,
};

const WHO: [&str; 3] = ["A", "B", "C"];

/// One round whose agents have edited, and then wait while `hold-<who>` is there.
fn with_held_agents() -> Hall {
    let edit = |text: String| text.replace("Max rounds:** 3", "Max rounds:** 1");
    let hall = Hall::with(edit, |agent| {
        let edited = "echo \"$who was here";
        let waits = "touch \"$CONFERENCE_DIR/edited-$who\"\n    \
                     while [ -e \"$CONFERENCE_DIR/hold-$who\" ]; do sleep 0.02; done\n    ";
        agent.replacen(edited, &format!("{waits}{edited}"), 1)
    });
    for who in WHO {
        hall.bench.write(&format!("hold-{who}"), "");
    }
    hall
}

fn start(hall: &Hall, arguments: &str) -> Child {
    let said = fs::File::create(hall.bench.path("said")).unwrap();
    let mut command = hall.bench.command(arguments);
    command.stdout(Stdio::null()).stderr(said).spawn().unwrap()
}

fn started(hall: &Hall, sign: &str) -> Child {
    let engine = start(hall, "run conference --no-input");
    for who in WHO {
        sees(&hall.bench.path(&format!("{sign}-{who}")));
    }
    engine
}

fn killed(mut engine: Child) {
    engine.kill().unwrap();
    engine.wait().unwrap();
}

fn let_go(hall: &Hall, who: &str) {
    fs::remove_file(hall.bench.path(&format!("hold-{who}"))).unwrap();
}

fn resets(plan: &Value) -> Vec<&str> {
    let reverts = plan["reverts"].as_array().unwrap().iter();
    let trees = reverts.filter(|it| it["kind"] == "reset-worktree");
    trees.map(|it| it["path"].as_str().unwrap()).collect()
}

fn verdict(plan: &Value, step: &str) -> String {
    let mut steps = plan["steps"].as_array().unwrap().iter();
    let found = steps.find(|it| it["step"] == step);
    found.map_or_else(|| "none".to_owned(), |it| it["verdict"].as_str().unwrap().to_owned())
}

/// Iteration 1 takes five from 300, iteration 2 adds one again.
#[track_caller]
fn is_measured(hall: &Hall) {
    for who in WHO {
        let rows = hall.bench.text(&format!("researcher_{who}_results.tsv"));
        let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split('\t').collect()).collect();
        let seen: Vec<(&str, &str)> = rows[1..].iter().map(|row| (row[1], row[4])).collect();
        let wanted = [("300", "baseline"), ("295", "kept"), ("296", "reverted")];
        assert_eq!(seen, wanted, "{who}");
    }
    assert_eq!(hall.bench.text(".worktrees/researcher-A/a.txt"), "95\n");
}

fn ended(run: &Path, step: &str) {
    until("the seal of an attempt", || {
        let seals = fs::read_to_string(run.join("exits.jsonl")).unwrap_or_default();
        let is_seal = |line: &str| line.contains(step) && line.contains("exited");
        Ok(seals.lines().any(is_seal).then_some(()))
    })
    .unwrap();
}

#[test]
fn edits_of_agents_that_live_or_have_ended_meanwhile_stay_in_their_trees() {
    let hall = with_held_agents();
    killed(started(&hall, "edited"));
    let run = hall.run_dir();
    let propose = |who: &str| format!("round[1]/research[{who}]/iterate[1]/propose");
    let_go(&hall, "B");
    ended(&run, &propose("B"));
    let plan = hall.bench.onward("plan --json").json();
    assert_eq!(resets(&plan), [""; 0], "{plan:#}");
    assert_eq!(verdict(&plan, &propose("A")), "reattach");
    assert_eq!(verdict(&plan, &propose("B")), "adopt");
    assert!(!plan["findings"].to_string().contains("dirty-tree"), "{plan:#}");

    let mut engine = start(&hall, "resume --yes --no-input");
    until("the resume to be logged", || {
        Ok(hall.bench.text("conference_events.jsonl").contains("conference.resumed").then_some(()))
    })
    .unwrap();
    assert_eq!(hall.bench.text(".worktrees/researcher-A/a.txt"), "95\n");
    let resumed = hall.bench.text("conference_events.jsonl");
    assert!(resumed.contains("\"reverted_researchers\":[]"), "{resumed}");
    let_go(&hall, "A");
    let_go(&hall, "C");
    assert_eq!(engine.wait().unwrap().code(), Some(11), "{}", hall.bench.text("said"));
    is_measured(&hall);
}

#[test]
fn a_proposal_stays_in_its_tree_when_everything_dies_while_it_is_measured() {
    let hall = Hall::new(|text| {
        let text = text.replace("Max rounds:** 3", "Max rounds:** 1");
        let waits = "while [ $CONFERENCE_ITERATION = 1 ] && [ -e $CONFERENCE_DIR/hold ]; do \
                     touch $CONFERENCE_DIR/weighed-$CONFERENCE_RESEARCHER; sleep 0.02; done; ";
        text.replace("`echo $((", &format!("`{waits}echo $(("))
    });
    hall.bench.write("hold", "");
    killed(started(&hall, "weighed"));
    kill_all(&hall.run_dir());
    fs::remove_file(hall.bench.path("hold")).unwrap();
    let tree = hall.bench.path(".worktrees/researcher-A/a.txt");
    assert_eq!(fs::read_to_string(&tree).unwrap(), "95\n");
    let plan = hall.bench.onward("plan --json").json();
    assert_eq!(resets(&plan), [""; 0], "{plan:#}");
    assert_eq!(verdict(&plan, "round[1]/research[A]/iterate[1]/propose"), "keep");
    hall.bench.exits("resume --yes --no-input", 11);
    is_measured(&hall);
}

#[test]
fn edits_of_an_agent_that_died_are_shown_and_rescued_and_it_starts_from_its_branch() {
    let hall = with_held_agents();
    killed(started(&hall, "edited"));
    kill_all(&hall.run_dir());
    for who in WHO {
        let_go(&hall, who);
    }
    let plan = hall.bench.onward("plan --json").json();
    assert_eq!(resets(&plan).len(), 3, "{plan:#}");
    hall.bench.exits("resume --yes --no-input", 11);
    is_measured(&hall);
    let rescued = hall.bench.exits("rescue list", 0).out;
    assert!(rescued.contains(".worktrees/researcher-A/a.txt"), "{rescued}");
}

#[test]
fn work_that_lies_in_a_tree_between_two_rounds_is_shown_and_rescued() {
    let hall = Hall::new(|text| text.replace("Max rounds:** 3", "Max rounds:** 2"));
    hall.bench.exits("run conference --no-input", 11);
    // As the other system would leave it: no run of ours, the first round over.
    fs::remove_dir_all(hall.bench.path(".onward/runs")).unwrap();
    let events = hall.events();
    let over = events.iter().position(|line| line.contains("round.completed")).unwrap();
    hall.bench.write("conference_events.jsonl", &(events[..=over].join("\n") + "\n"));
    hall.bench.write(".worktrees/researcher-A/a.txt", "precious\n");
    hall.bench.write(".worktrees/researcher-C/new.txt", "of somebody\n");
    let plan = hall.bench.onward("plan --json").json();
    assert_eq!(plan["recovery_point"]["code"], "round-start");
    let trees = [".worktrees/researcher-A", ".worktrees/researcher-C"];
    let paths = trees.map(|it| hall.bench.path(it).to_str().unwrap().to_owned());
    assert_eq!(resets(&plan), paths);

    hall.bench.exits("resume --yes --no-input", 11);
    let rescues = fs::read_dir(hall.run_dir().join("rescue")).unwrap();
    let rescues: Vec<_> = rescues.map(|it| it.unwrap().path().join("files")).collect();
    for (path, text) in [("A/a.txt", "precious\n"), ("C/new.txt", "of somebody\n")] {
        let path = format!(".worktrees/researcher-{path}");
        let mut kept = rescues.iter().filter_map(|it| fs::read_to_string(it.join(&path)).ok());
        assert_eq!(kept.next().as_deref(), Some(text), "{path}");
    }
}
