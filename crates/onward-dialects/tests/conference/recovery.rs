//! One directory for each row of the recovery table.

use onward_core::{
    address::Address,
    plan::{Status, Verdict},
    told::StepTold,
};

use crate::builder::{ROUND_1, codes, conference, next, point, verdict};

fn after_round_1(lines: &str) -> crate::builder::Built {
    conference(&format!("{ROUND_1}{lines}"))
}

const FINISHED_2: &str = "round 2: A B
A2.0 baseline 70
A2.1 kept 66
A2.2 reverted 69
B2.0 baseline 70
B2.1 kept 65
B2.2 kept 64
";

#[test]
fn a_completed_conference_cannot_be_resumed_and_says_where_its_outputs_are() {
    let plan = after_round_1("converged\ncomplete").outputs().later(1000).plan();
    assert_eq!(point(&plan), "complete -/- []");
    assert!(!plan.can_resume);
    assert_eq!(plan.standing.status, Status::Completed);
    assert!(plan.recovery_point.summary.contains("synthesis.md"));
    assert_eq!(codes(&plan), Vec::<&str>::new(), "its age does not matter");
    assert_eq!(verdict(&plan, "close"), Verdict::Keep);
}

#[test]
fn whole_outputs_after_the_last_round_lack_only_the_closing_event() {
    let plan = after_round_1("converged").outputs().plan();
    assert_eq!(point(&plan), "close 11/- [close]");
    assert_eq!(verdict(&plan, "synthesis"), Verdict::Adopt);
    assert_eq!(verdict(&plan, "close"), Verdict::Run);
    assert!(plan.standing.asks.is_some() && !plan.standing.needs_agents);
    assert!(plan.can_resume);
    assert_eq!(plan.needs.len(), 1);
    assert_eq!(codes(&plan), Vec::<&str>::new());
}

#[test]
fn outputs_that_are_cut_short_do_not_close_a_conference() {
    for half in ["", "# Words\n", "# Words\n\n```\nnever closed\n", "# Words\n\nText\n\n## Next\n"]
    {
        let plan = after_round_1("converged").outputs().file("final_report.md", half).plan();
        assert_eq!(point(&plan), "synthesis 11/- [synthesis]", "{half:?}");
        assert_eq!(verdict(&plan, "synthesis"), Verdict::Verify);
    }
    let plan = after_round_1("converged").file("synthesis.md", "# Words\n\nText\n").plan();
    assert_eq!(point(&plan), "synthesis 11/- [synthesis]", "one of two is not both");
}

#[test]
fn outputs_of_a_later_round_than_the_log_knows_do_not_close_a_conference() {
    let poster = "# Posters\n\nOf round 2.\n";
    let plan =
        after_round_1("converged").outputs().file("poster_session_round_2.md", poster).plan();
    assert_eq!(point(&plan), "synthesis 11/- [synthesis]");
}

#[test]
fn a_logged_convergence_goes_to_the_synthesis() {
    let plan = after_round_1("converged").plan();
    assert_eq!(point(&plan), "synthesis 11/- [synthesis]");
    assert!(plan.recovery_point.summary.contains("metric_plateau"));
    assert_eq!(verdict(&plan, "synthesis"), Verdict::Run);
    assert_eq!(verdict(&plan, "close"), Verdict::Run);
    assert_eq!(next(&plan), ["synthesis/draft"], "no other round");
}

#[test]
fn a_completed_round_is_followed_by_the_next() {
    let plan = after_round_1("").plan();
    assert_eq!(point(&plan), "round-start 1/2 [round[2]/research[A] round[2]/research[B]]");
    assert_eq!(verdict(&plan, "round[1]/research[A]/baseline"), Verdict::Keep);
    assert_eq!(verdict(&plan, "round[1]/research[B]/iterate[2]"), Verdict::Keep);
    assert_eq!(verdict(&plan, "round[1]/transfer"), Verdict::Keep);
    assert_eq!(next(&plan), ["round[1]/converge"], "whether there is another is asked first");
    assert_eq!(plan.standing.status, Status::Interrupted);
}

#[test]
fn a_reviewed_round_wants_its_knowledge_transfer() {
    let script = format!("{FINISHED_2}poster 2\nreview 2");
    let built = after_round_1(&script)
        .file("poster_session_round_2.md", "# P\n\nx\n")
        .file("peer_review_round_2.md", "# R\n\nx\n");
    let plan = built.plan();
    assert_eq!(point(&plan), "knowledge-transfer 4/2 [round[2]/transfer]");
    assert_eq!(verdict(&plan, "round[2]/review"), Verdict::Keep);
    assert_eq!(verdict(&plan, "round[2]/transfer"), Verdict::Run);
    assert_eq!(codes(&plan), Vec::<&str>::new());
}

#[test]
fn a_posted_round_wants_its_review() {
    let script = format!("{FINISHED_2}poster 2");
    let plan = after_round_1(&script).file("poster_session_round_2.md", "# P\n\nx\n").plan();
    assert_eq!(point(&plan), "peer-review 3/2 [round[2]/review]");
    assert_eq!(verdict(&plan, "round[2]/poster"), Verdict::Keep);
    assert_eq!(verdict(&plan, "round[2]/review"), Verdict::Run);
}

#[test]
fn a_round_whose_researchers_are_all_done_wants_its_poster_session() {
    let plan = after_round_1(FINISHED_2).plan();
    assert_eq!(point(&plan), "poster-session 2/2 [round[2]/poster]");
    assert_eq!(verdict(&plan, "round[2]/poster"), Verdict::Run);
    assert_eq!(plan.undo, []);
}

#[test]
fn one_researcher_has_no_poster_session() {
    let script = "start\nround 1: A\nA1.0 baseline 80\nA1.1 kept 75\nA1.2 kept 71";
    let plan = conference(script).says("**Count:** 2", "**Count:** 1").plan();
    assert_eq!(point(&plan), "peer-review 3/1 [round[1]/review]");
    assert_eq!(verdict(&plan, "round[1]/poster"), Verdict::Skip);
    assert_eq!(next(&plan), ["round[1]/roll"]);
}

#[test]
fn a_researcher_is_done_by_a_final_iteration_by_stuck_level_3_or_by_the_target() {
    let b_is_done = "B2.0 baseline 70\nB2.1 kept 65\nB2.2 kept 64\n";
    for a in ["A2.1 final 66", "stuck A2 3", "A2.1 kept 49.9"] {
        let plan = after_round_1(&format!("round 2: A B\nA2.0 baseline 70\n{b_is_done}{a}")).plan();
        assert_eq!(point(&plan), "poster-session 2/2 [round[2]/poster]", "{a}");
        assert_eq!(verdict(&plan, "round[2]/research[A]"), Verdict::Keep);
        assert_eq!(next(&plan), ["round[2]/roll"]);
    }
    for a in ["A2.1 kept 66", "stuck A2 2", "A2.1 reverted 49.9", "stuck A2 \"timeout\""] {
        let plan = after_round_1(&format!("round 2: A B\nA2.0 baseline 70\n{b_is_done}{a}")).plan();
        assert_eq!(point(&plan), "research-continue 1/2 [round[2]/research[A]]", "{a}");
    }
}

#[test]
fn a_baseline_at_the_target_is_no_reason_to_stop() {
    let plan = conference("start\nround 1: A B\nA1.0 baseline 49").plan();
    let expected = "research-continue 1/1 [round[1]/research[A] round[1]/research[B]]";
    assert_eq!(point(&plan), expected);
}

#[test]
fn an_iteration_with_a_high_number_was_not_the_first() {
    let plan = after_round_1("round 2: A B\nA2.3 kept 66").plan();
    assert_eq!(point(&plan), "research-continue 1/2 [round[2]/research[B]]");
}

#[test]
fn a_baseline_counts_as_an_iteration_even_if_only_its_row_is_there() {
    let logged = "start\nround 1: A B\nA1.1 kept 75\nA1.2 kept 71";
    let rows = "0\t80\t-\t-\tbaseline\tx\ty\t-\n1\t75\t-\t-\tkept\tx\ty\t-\n\
                2\t71\t-\t-\tkept\tx\ty\t-\n";
    let built = conference(logged).without_table("A");
    let unmeasured = rows.replace("0\t80", "0\tTBD");
    let with = |rows: &str| built.clone().file("researcher_A_results.tsv", rows).plan();
    assert_eq!(point(&with(rows)), "research-continue 1/1 [round[1]/research[B]]");
    let both = "research-continue 1/1 [round[1]/research[A] round[1]/research[B]]";
    assert_eq!(point(&with(&unmeasured)), both, "what the setup writes is no measurement");
}

#[test]
fn after_the_last_round_comes_no_other() {
    let last = after_round_1("round 4: A B\nA4.0 baseline 70").plan();
    assert_eq!(last.recovery_point.round, Some(4));
    let open = last.told.step(&Address::from_text("open"));
    let StepTold::Done(open) = open else { panic!("{open:?}") };
    assert_eq!(open.result["max_rounds"], 4);
}

#[test]
fn only_unfinished_researchers_go_on() {
    let plan = after_round_1(
        "round 2: A B\nA2.0 baseline 70\nA2.1 kept 66\nA2.2 reverted 69\nB2.0 baseline 70",
    )
    .plan();
    assert_eq!(point(&plan), "research-continue 1/2 [round[2]/research[B]]");
    assert_eq!(verdict(&plan, "round[2]/research[A]/iterate[2]"), Verdict::Keep);
    assert_eq!(verdict(&plan, "round[2]/research[B]/baseline"), Verdict::Keep);
    assert_eq!(verdict(&plan, "round[2]/research[B]/iterate[1]"), Verdict::Run);
    assert_eq!(verdict(&plan, "round[2]/poster"), Verdict::Run);
}

#[test]
fn a_round_that_began_without_an_event_is_known_by_its_iterations() {
    let plan = after_round_1("A2.0 baseline 70").plan();
    let expected = "research-continue 1/2 [round[2]/research[A] round[2]/research[B]]";
    assert_eq!(point(&plan), expected);
}

#[test]
fn a_round_without_a_logged_iteration_starts_again_with_all_researchers() {
    let plan = after_round_1("round 2: A B").plan();
    assert_eq!(point(&plan), "research-restart 1/2 [round[2]/research[A] round[2]/research[B]]");
    assert_eq!(verdict(&plan, "round[2]/research[A]"), Verdict::Run);
}

#[test]
fn a_conference_without_a_round_starts_with_the_first() {
    let plan = conference("start").plan();
    assert_eq!(point(&plan), "round-start 1/1 [round[1]/research[A] round[1]/research[B]]");
    assert_eq!(plan.standing.status, Status::Fresh);
    assert!(plan.can_resume);
}

#[test]
fn a_raised_count_holds_for_new_rounds_only() {
    let raised = |lines: &str| after_round_1(lines).says("**Count:** 2", "**Count:** 3").plan();
    let expected =
        "round-start 1/2 [round[2]/research[A] round[2]/research[B] round[2]/research[C]]";
    assert_eq!(point(&raised("")), expected);
    assert_eq!(point(&raised(FINISHED_2)), "poster-session 2/2 [round[2]/poster]");
}

#[test]
fn events_that_decide_nothing_are_passed_over() {
    let odd = r#"{"event":"coffee.break","timestamp":"2026-05-04T22:00:00Z","payload":{}}"#;
    for last in ["resumed", "stuck A2 2"] {
        let built = after_round_1(&format!("round 2: A B\nA2.0 baseline 70\n{last}"));
        let plan = built.line(odd).at("2026-05-04T22:30:00Z").plan();
        assert_eq!(plan.recovery_point.code, "research-continue");
        assert_eq!(plan.standing.last_event.unwrap().kind, "coffee.break");
    }
}

#[test]
fn a_failed_conference_is_failed_until_it_is_resumed() {
    let plan = after_round_1("round 2: A B\nA2.0 baseline 70\nfailed").plan();
    assert_eq!(plan.standing.status, Status::Failed);
    assert_eq!(plan.recovery_point.code, "research-continue");
    let plan = after_round_1("round 2: A B\nA2.0 baseline 70\nfailed\nresumed").plan();
    assert_eq!((plan.standing.status, plan.standing.resumes), (Status::Interrupted, 1));
}

#[test]
fn the_plan_says_who_when_and_where_in_plain_words() {
    let plan = after_round_1("round 2: A B\nA2.0 baseline 70").plan();
    assert_eq!(
        plan.standing.report,
        [
            "Rounds completed: 1",
            "Last completed event: researcher.iteration at 2026-05-04T21:00:00.000000Z",
            "Researchers in the last round: A, B (round 2)",
            "Convergence reached: no",
            "Interruption point: Round 2, phase 1: continue with A, B, from their last kept state",
        ]
    );
    assert_eq!(plan.standing.started_at, "2026-05-04T20:00:00Z".parse().ok());
}
