//! A conference with worktrees that another system left in the middle of an iteration.

use std::fs;

use crate::hall::Hall;

#[test]
fn half_done_changes_in_a_worktree_are_rescued_and_the_tree_goes_to_its_branch() {
    let hall = Hall::new(|text| text.replace("Max rounds:** 3", "Max rounds:** 2"));
    hall.bench.exits("run conference --no-input", 11);
    // As the other system would leave it: no run of ours, two iterations of round 2 logged.
    fs::remove_dir_all(hall.bench.path(".onward/runs")).unwrap();
    let events = hall.events();
    let second = |line: &String| line.contains("round.started") && line.contains("\"round\":2");
    let cut = events.iter().position(second).unwrap() + 3;
    hall.bench.write("conference_events.jsonl", &(events[..cut].join("\n") + "\n"));
    let tree = hall.bench.path(".worktrees/researcher-A");
    let head = hall.git(&["rev-parse", "conference/researcher-A"]);
    fs::write(tree.join("a.txt"), "half done\n").unwrap();
    fs::write(tree.join("new.txt"), "of nobody\n").unwrap();
    let plan = hall.bench.onward("plan --json").json();
    let kinds = plan["reverts"].as_array().unwrap().iter().map(|it| it["kind"].clone());
    assert!(kinds.collect::<Vec<_>>().contains(&"reset-worktree".into()), "{plan:#}");

    let said = hall.bench.exits("resume --yes --no-input", 11).err;
    let run = hall.run_dir();
    // What the other system did is called that, and only what ran is said to have run.
    let is_started = |it: &&str| it.contains("attempt.started");
    let step = |it: &str| serde_json::from_str::<serde_json::Value>(it).unwrap()["step"].clone();
    let journal = crate::bench::journal(&run);
    let ran: std::collections::BTreeSet<String> =
        journal.lines().filter(is_started).map(|it| step(it).to_string()).collect();
    assert!(said.contains(&format!("  {} ran, ", ran.len())), "{said}");
    assert!(said.contains(" taken over"), "{said}");
    let rescues = fs::read_dir(run.join("rescue")).unwrap().map(|it| it.unwrap().path());
    let of_tree = rescues.map(|it| it.join("files/.worktrees/researcher-A"));
    let kept = of_tree.filter(|it| it.is_dir()).last().expect("the tree was rescued");
    assert_eq!(fs::read_to_string(kept.join("a.txt")).unwrap(), "half done\n");
    assert_eq!(fs::read_to_string(kept.join("new.txt")).unwrap(), "of nobody\n");
    let refs = hall.git(&["for-each-ref", "--format=%(refname)", "refs/onward"]);
    assert!(refs.contains("-rescue/"), "{refs}");
    assert!(!tree.join("new.txt").exists());
    assert!(hall.git(&["log", "--format=%H", "conference/researcher-A"]).contains(&head));
    hall.close("keep");
    assert_eq!(hall.names().iter().filter(|it| *it == "conference.completed").count(), 1);
    // What was taken over was never made by an agent: no schema is held against it.
    let verified = hall.bench.exits("verify", 0);
    assert!(!verified.out.contains("unproved"), "{verified:?}");
}

/// Rows that the log does not know yet: what they finished is finished, in the plan as in the
/// resume, and no round gets more rows than it has iterations.
#[test]
fn a13_rows_ahead_of_the_log_count_in_the_plan_as_in_the_resume_2() {
    rows_ahead_of_the_log_count(2);
}

#[test]
fn a13_rows_ahead_of_the_log_count_in_the_plan_as_in_the_resume_4() {
    rows_ahead_of_the_log_count(4);
}

#[test]
fn a13_rows_ahead_of_the_log_count_in_the_plan_as_in_the_resume_6() {
    rows_ahead_of_the_log_count(6);
}

/// The log ends so many events after the second round began.
#[track_caller]
fn rows_ahead_of_the_log_count(more: usize) {
    let hall = Hall::new(|text| text.replace("Max rounds:** 3", "Max rounds:** 2"));
    hall.bench.exits("run conference --no-input", 11);
    let rows = |who: &str| hall.bench.text(&format!("researcher_{who}_results.tsv"));
    let whole = ["A", "B", "C"].map(|who| rows(who).lines().count());
    fs::remove_dir_all(hall.bench.path(".onward/runs")).unwrap();
    for file in ["poster_session_round_2.md", "peer_review_round_2.md", "synthesis.md"] {
        let _ = fs::remove_file(hall.bench.path(file));
    }
    let _ = fs::remove_file(hall.bench.path("final_report.md"));
    let events = hall.events();
    let second = |line: &String| line.contains("round.started") && line.contains("\"round\":2");
    let cut = events.iter().position(second).unwrap() + more;
    hall.bench.write("conference_events.jsonl", &(events[..cut].join("\n") + "\n"));
    let plan = hall.bench.onward("plan --json").json();
    let planned = plan["recovery_point"]["steps"].as_array().unwrap();
    let planned: Vec<&str> = planned.iter().map(|it| it.as_str().unwrap()).collect();
    hall.bench.exits("resume --yes --no-input", 11);
    let journal = crate::bench::journal(&hall.run_dir());
    let started = journal.lines().find(|it| it.contains("attempt.started")).unwrap();
    let started: serde_json::Value = serde_json::from_str(started).unwrap();
    let started = started["step"].as_str().unwrap();
    let is_planned = planned.iter().any(|it| started.starts_with(it));
    assert!(is_planned, "cut after {more}: {started} began, and {planned:?} was planned");
    assert_eq!(["A", "B", "C"].map(|who| rows(who).lines().count()), whole, "cut after {more}");
}
