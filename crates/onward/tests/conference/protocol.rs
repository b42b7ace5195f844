//! What a conference does when nobody disturbs it.

use crate::hall::Hall;

fn count(hall: &Hall, name: &str) -> usize {
    hall.names().iter().filter(|it| *it == name).count()
}

#[test]
fn a_conference_leaves_every_native_file_and_the_best_of_everybody() {
    let hall =
        Hall::new(|text| text.replace("confirmation:** confirmed", "confirmation:** pending"));
    let bench = &hall.bench;
    let waits = bench.exits("run conference --no-input", 11);
    assert!(waits.err.contains("Budget: at most 27 iterations"), "{}", waits.err);
    assert_eq!(bench.text("conference_events.jsonl"), "", "nothing starts unconfirmed");
    bench.exits("approve", 0);
    bench.exits("resume --no-input", 11);
    assert_eq!(hall.git(&["log", "--format=%s", "main"]), "start", "nothing is merged unasked");
    hall.close("merge");
    assert!(bench.text("conference.md").contains("**Final confirmation:** confirmed"));
    assert_eq!(count(&hall, "researcher.iteration"), 27);
    for name in ["round.started", "round.poster_session", "round.peer_review", "round.completed"] {
        assert_eq!(count(&hall, name), 3, "{name}");
    }
    assert_eq!(hall.names().last().unwrap(), "conference.completed");
    let results = bench.text("conference_results.tsv");
    assert_eq!(results.lines().count(), 28);
    let of_a = bench.text("researcher_A_results.tsv");
    let statuses: Vec<&str> =
        of_a.lines().skip(1).map(|line| line.split('\t').nth(4).unwrap()).collect();
    assert_eq!(statuses, ["baseline", "kept", "reverted"].repeat(3));
    assert!(results.contains("\tvalidated\t") && results.contains("\tchallenged\t"), "{results}");
    for round in 1..=3 {
        assert!(!bench.text(&format!("poster_session_round_{round}.md")).is_empty());
        assert!(!bench.text(&format!("peer_review_round_{round}.md")).is_empty());
    }
    assert!(bench.text("conference.md").contains("### Round 3 Validated Findings"));
    assert!(bench.text("conference.md").contains("| 3 | C |"));
    assert!(bench.text("conference_progress.svg").starts_with("<svg"));
    assert_eq!(bench.text("synthesis.md"), "# Synthesis\n\nIt can be done.\n");
    assert_eq!(bench.text("final_report.md"), "# Final report\n\nIt was done.\n");
    // A and B were validated, C was challenged; of what both changed, the lower letter stays.
    assert_eq!(
        [bench.text("a.txt"), bench.text("b.txt"), bench.text("c.txt")],
        ["82\n", "82\n", "100\n"]
    );
    assert_eq!(bench.text("shared.txt"), "A was here in round 3, turn 1\n");
    let plan = bench.exits("plan --json .", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "complete");
}

#[test]
fn worktrees_are_deleted_only_when_a_person_says_so() {
    let hall = Hall::new(|text| text.replace("Max rounds:** 3", "Max rounds:** 1"));
    hall.bench.exits("run conference --no-input", 11);
    assert!(hall.bench.path(".worktrees/researcher-A").is_dir());
    hall.close("delete");
    assert!(!hall.bench.path(".worktrees/researcher-A").exists());
    assert_eq!(hall.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn a_target_that_is_reached_ends_the_rounds() {
    let hall = Hall::new(|text| {
        text.replace("- **Direction:**", "- **Target:** <= 295\n- **Direction:**")
    });
    hall.bench.exits("run conference --no-input", 11);
    assert_eq!(count(&hall, "round.started"), 1);
    let converged = hall.events().into_iter().find(|it| it.contains("conference.converged"));
    assert!(converged.unwrap().contains("\"reason\":\"target_reached\""));
    assert_eq!(count(&hall, "researcher.iteration"), 6, "nobody goes on after the target");
}

#[test]
fn a_researcher_that_gets_nowhere_is_stuck_and_everybody_stuck_ends_it() {
    let hall = Hall::with(
        |text| text.replace("Iterations per round:** 3", "Iterations per round:** 20"),
        |agent| agent.replace("value - 4 - round", "value + 1"),
    );
    hall.bench.exits("run conference --no-input", 11);
    let events = hall.events();
    let stuck = |level: u32| {
        let level = format!("\"stuck_level\":{level}");
        events.iter().filter(|it| it.contains(&level)).count()
    };
    assert_eq!(count(&hall, "conference.stalled"), 1);
    assert_eq!(stuck(2), 3, "{events:#?}");
    assert_eq!(count(&hall, "round.started"), 1);
}

#[test]
fn an_agent_that_keeps_failing_costs_its_researcher_the_round_and_all_of_them_the_conference() {
    let one = |text: String| text.replace("Max rounds:** 3", "Max rounds:** 1");
    let of_b = "    if [ \"$who\" = B ]; then exit 3; fi\n    value=$(cat";
    let hall = Hall::with(one, |agent| agent.replace("    value=$(cat", of_b));
    hall.bench.exits("run conference --no-input", 11);
    assert!(hall.events().iter().any(|it| it.contains("\"stuck_level\":\"timeout\"")));
    assert_eq!(count(&hall, "researcher.iteration"), 7, "the others go on");
    let all = |agent: String| agent.replace("    value=$(cat", "    exit 3\n    value=$(cat");
    let hall = Hall::with(one, all);
    hall.bench.exits("run conference --no-input", 10);
    assert_eq!(hall.names().last().unwrap(), "conference.failed");
    assert!(hall.bench.text("final_report.md").starts_with("# Partial report"));
}
