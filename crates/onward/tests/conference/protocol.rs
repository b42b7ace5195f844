//! What a conference does undisturbed.

use crate::{hall::Hall, terminal::Terminal};

fn count(hall: &Hall, name: &str) -> usize {
    hall.names().iter().filter(|it| *it == name).count()
}

#[test]
fn a_conference_leaves_every_native_file_and_the_best_of_everybody() {
    let hall = Hall::new(|text| {
        let text = text.replace("confirmation:** confirmed", "confirmation:** pending");
        let partitioning = "## Search Space Partitioning\n- **Strategy:** assigned\n\n## Shared";
        text.replace("## Shared", partitioning)
    });
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
    assert!(bench.text("conference.md").contains("### Researcher B Focus\nthe second\n"));
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
    let hall = Hall::new(|text| text.replace("Max rounds:** 3", "Max rounds:** 2"));
    hall.bench.exits("run conference --no-input", 11);
    assert!(hall.bench.path(".worktrees/researcher-A").is_dir());
    hall.close("delete");
    assert!(!hall.bench.path(".worktrees/researcher-A").exists());
    // The run keeps its own snapshots, as every run does, until it is forgotten.
    let refs = ["for-each-ref", "--format=%(refname)", "refs/heads", "refs/onward/conference"];
    assert_eq!(hall.git(&refs), "refs/heads/main");
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
    assert_eq!(count(&hall, "researcher.iteration"), 6, "no researcher goes on after the target");
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

#[test]
fn an_evaluator_that_lacks_a_file_says_which_and_works_when_that_is_committed() {
    let needs = |text: String| text.replace("`echo $((", "`cat plus.txt > /dev/null && echo $((");
    let hall = Hall::new(|text| needs(text.replace("Max rounds:** 3", "Max rounds:** 1")));
    hall.bench.write("plus.txt", "0\n");
    let said = hall.bench.exits("run conference --no-input", 10);
    let cause = "the evaluator does not work for researcher A: it ended with exit 1: cat";
    assert!(said.err.contains(cause) && said.err.contains("plus.txt"), "{said:?}");
    hall.git(&["add", "plus.txt"]);
    hall.git(&["commit", "--quiet", "--message=what the evaluator needs"]);
    hall.bench.exits("resume --yes --no-input", 11);
    assert_eq!(count(&hall, "researcher.iteration"), 9);
}

/// It works for the state at the start of a round, and for no proposal.
#[test]
fn a_score_that_could_not_be_taken_is_told_on_the_screen() {
    let broken = "`test $CONFERENCE_ITERATION = 0 || cat score.txt && echo $((";
    let breaks = |text: String| text.replace("`echo $((", broken);
    let hall = Hall::new(|text| breaks(text.replace("Max rounds:** 3", "Max rounds:** 1")));
    let said = hall.bench.onward("run conference --no-input");
    let mut of_score = said.err.lines().filter(|line| line.contains("iterate[1]/score"));
    let told = of_score.find(|line| line.contains("warn")).unwrap_or_default();
    assert!(told.contains("nothing was measured"), "{said:#?}");
    assert!(told.contains("the evaluator: it ended with exit 1: cat: score.txt"), "{told}");
    assert!(!said.err.contains("done  round[1]/research[A]/iterate[1]/score"), "{said:#?}");
}

/// Agents that fail until there is a file `repaired`.
fn broken() -> Hall {
    let until = "    test -e \"$CONFERENCE_DIR/repaired\" || exit 3\n    value=$(cat";
    Hall::with(
        |text| text.replace("Max rounds:** 3", "Max rounds:** 1"),
        |agent| agent.replace("    value=$(cat", until),
    )
}

#[test]
fn a_conference_that_failed_asks_everybody_again_when_somebody_goes_on() {
    let hall = broken();
    hall.bench.exits("run conference --no-input", 10);
    hall.bench.exits("resume --yes --no-input", 10);
    assert_eq!(count(&hall, "conference.failed"), 2, "once for each time that all were asked");
    assert_eq!(count(&hall, "researcher.stuck"), 6);
    hall.bench.write("repaired", "");
    hall.bench.exits("resume --yes --no-input", 11);
    assert_eq!(count(&hall, "conference.failed"), 2);
    assert_eq!(count(&hall, "researcher.iteration"), 9, "three each, none of them twice");
    hall.close("keep");
    assert_eq!(hall.bench.text("final_report.md"), "# Final report\n\nIt was done.\n");
}

/// A conference failed in its research; a person has it begin there again, by this name.
#[track_caller]
fn enters_at_the_research(place: &str) {
    let hall = broken();
    hall.bench.exits("run conference --no-input", 10);
    hall.bench.write("repaired", "");
    hall.bench.exits(&format!("resume --yes --no-input --from {place}"), 11);
    assert_eq!(count(&hall, "conference.failed"), 1, "{place}");
    let proposed = hall.events();
    let proposed = proposed.iter().filter(|it| it.contains("\"iteration\":2"));
    assert_eq!(proposed.count(), 3, "{place}");
}

#[test]
fn a_person_may_enter_a_conference_that_failed_at_its_research() {
    enters_at_the_research("round[1]/research");
}

#[test]
fn a_person_may_enter_a_conference_that_failed_by_restarting_its_research() {
    enters_at_the_research("research-restart");
}

#[test]
fn a_person_may_enter_a_conference_that_failed_at_the_start_of_its_round() {
    enters_at_the_research("round-start");
}

#[test]
fn a_finished_conference_is_shipped_when_a_person_says_so() {
    let early = Hall::new(|text| text).bench.exits("run ship --no-input", 10);
    assert!(early.err.contains("verify"), "{early:?}");
    let hall = Hall::new(|text| text.replace("Max rounds:** 3", "Max rounds:** 1"));
    let bench = &hall.bench;
    bench.exits("run conference --no-input", 11);
    hall.close("keep");
    bench.exits("run ship --no-input --input format=blog", 11);
    assert_eq!(bench.text("blog-post.md"), "", "nothing is published unasked");
    bench.exits("approve", 0);
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.text("blog-post.md"), "# Shipped\n\nThe text after abstract.\n");
    assert!(bench.text("peer-review-ship.md").contains("after review"));
    assert!(bench.text("ship-log.md").contains("- publish: done"));
}

#[test]
fn a_qualitative_conference_needs_neither_git_nor_an_evaluator() {
    let hall = Hall::with(
        |text| {
            let text = text.replace("\nmetric\n", "\nqualitative\n");
            text.replace("## Success Metric", "## Success Criteria\nIt is small.\n\n## Ideas")
        },
        |agent| {
            let file = "    file=$(echo \"$who\" | tr A-Z a-z).txt\n";
            let agent = agent.replace(file, &format!("{file}    touch \"$file\"\n"));
            agent.replace("{\"description\"", "{\"score\": $turn, \"description\"")
        },
    );
    let bench = &hall.bench;
    bench.exits("run conference --no-input", 0);
    assert!(!bench.path(".worktrees").exists());
    assert_eq!(count(&hall, "researcher.iteration"), 27);
    let of_a = bench.text("researcher_A_results.tsv");
    assert!(of_a.contains("\tself-reported\t") && of_a.contains("\tkept\t"), "{of_a}");
    assert!(!bench.text("workspace/researcher-A/shared.txt").is_empty(), "its own ground");
    assert_eq!(bench.text("shared.txt"), "nobody\n");
}

#[test]
fn a_run_never_takes_up_a_conference_that_has_started() {
    let hall = Hall::new(|text| text);
    hall.bench.write("conference_events.jsonl", "{\"event\":\"conference.started\"}\n");
    let said = hall.bench.exits("run conference --no-input", 2);
    assert!(said.err.contains("onward resume"), "{said:?}");
    assert_eq!(hall.bench.project().runs().unwrap().len(), 0);
}

#[test]
fn planning_off_a_terminal_names_what_is_missing_and_tries_the_evaluator() {
    let hall = Hall::new(|text| text);
    let bench = &hall.bench;
    std::fs::remove_file(bench.path("conference.md")).unwrap();
    let said = bench.exits("init --from conference --goal less", 2);
    for flag in ["--metric or --criteria", "--allowed", "--researchers", "--devils-advocate"] {
        assert!(said.err.contains(flag), "{flag}: {said:?}");
    }
    let flags = "init --from conference --goal less --metric sum --direction minimize \
                 --allowed sources --researchers 2 --iterations 2 --rounds 1 --devils-advocate no";
    let said = bench.exits(&format!("{flags} --evaluator false"), 1);
    assert!(said.err.contains("does not work"), "{said:?}");
    assert_eq!(bench.text("conference.md"), "");
    let said = bench.exits(&format!("{flags} --evaluator wc<a.txt"), 0);
    assert!(said.err.contains("the evaluator says 1"), "{said:?}");
    assert!(!said.err.contains("is not in git"), "{said:?}");
    assert!(bench.text("conference.md").contains("- **Final confirmation:** pending"));
    std::fs::remove_file(bench.path("conference.md")).unwrap();
    bench.write("new.txt", "1\n");
    let said = bench.exits(&format!("{flags} --evaluator wc<new.txt"), 0);
    assert!(said.err.contains("new.txt is not in git"), "{said:?}");
    std::fs::remove_file(bench.path("conference.md")).unwrap();
    bench.exits(&format!("{flags} --evaluator wc<a.txt"), 0);
    bench.exits(&format!("{flags} --evaluator wc<a.txt"), 1);
    bench.exits("run conference --no-input", 11);
}

#[test]
fn planning_at_a_terminal_asks_for_what_the_flags_leave_open() {
    let hall = Hall::new(|text| text);
    std::fs::remove_file(hall.bench.path("conference.md")).unwrap();
    let mut terminal = Terminal::start(&hall.bench, "init --from conference --rounds 2");
    for (question, answer) in [
        ("goal?", "\nfewer bytes\n"),
        ("measured?", "bytes\n"),
        ("minimize?", "minimize\n"),
        ("prints the metric?", "wc -c < a.txt\n"),
        ("change?", "the sources\n"),
        ("How many researchers?", "many\n2\n"),
        ("in a round?", "3\n"),
        ("devil's advocate", "no\n"),
    ] {
        terminal.shows(question);
        terminal.types(answer);
    }
    assert!(terminal.exits(0).contains("the evaluator says 4"));
    let text = hall.bench.text("conference.md");
    for line in ["- **Count:** 2", "- **Max rounds:** 2", "- **Evaluator:** `wc -c < a.txt`"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
