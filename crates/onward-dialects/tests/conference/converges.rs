//! The rules that end a conference, in their order.

use onward_core::finding::Severity;

use crate::builder::{Built, ROUND_1, conference, finding, point};

const SYNTHESIS: &str = "synthesis 11/- [synthesis]";

fn after_round_1(lines: &str) -> Built {
    conference(&format!("{ROUND_1}{lines}"))
}

fn why(built: &Built) -> String {
    let plan = built.plan();
    assert_eq!(point(&plan), SYNTHESIS);
    plan.recovery_point.summary
}

#[test]
fn a_reached_target_ends_it_at_the_end_of_the_round() {
    let script = "round 2: A B\nA2.0 baseline 70\nA2.1 kept 49\nend 2 49";
    assert!(why(&after_round_1(script)).contains("target was reached in round 2"));
    let script = "round 2: A B\nA2.0 baseline 70\nA2.1 reverted 49\nend 2 70";
    assert_eq!(after_round_1(script).plan().recovery_point.code, "round-start");
}

#[test]
fn the_target_is_the_first_rule_and_the_budget_the_second() {
    let script = "round 2: A B\nA2.1 kept 49\nend 2 49";
    let both = after_round_1(script).says("**Max rounds:** 4", "**Max rounds:** 2");
    assert!(why(&both).contains("target"));
    let budget = after_round_1("round 2: A B\nstuck A2 2\nstuck B2 2\nend 2 70")
        .says("**Max rounds:** 4", "**Max rounds:** 2");
    assert!(why(&budget).contains("2 of 2 rounds"));
}

#[test]
fn each_budget_ends_it() {
    let rounds = after_round_1("").says("**Max rounds:** 4", "**Max rounds:** 1");
    assert!(why(&rounds).contains("1 of 1 rounds"));
    let iterations = after_round_1("").says("iterations:** 24", "iterations:** 6");
    assert!(why(&iterations).contains("6 of 6 iterations"));
    let time = after_round_1("").says("budget:** 8h", "budget:** 50m");
    assert!(why(&time).contains("time budget is over"), "10 events at 5 minutes are 50 minutes");
    let time = after_round_1("").says("budget:** 8h", "budget:** 51m");
    assert_eq!(time.plan().recovery_point.code, "round-start");
}

#[test]
fn the_time_budget_ends_a_round_in_the_middle() {
    let built =
        after_round_1("round 2: A B\nA2.0 baseline 70").says("budget:** 8h", "budget:** 1h");
    let plan = built.plan();
    assert_eq!(point(&plan), SYNTHESIS);
    assert_eq!(finding(&plan, "budget-elapsed").severity(), Severity::Warning);
    assert_eq!(plan.undo, [], "nothing is researched any more, so nothing is undone");
}

#[test]
fn a_night_counts_from_the_moment_of_the_resume() {
    let built = after_round_1("round 2: A B\nA2.0 baseline 70");
    let told = |built: &Built| {
        let plan = built.plan();
        let line = plan.standing.report.iter().find(|line| line.starts_with("Time budget: "));
        (plan.recovery_point.code, line.cloned())
    };
    assert_eq!(told(&built.clone().later(6)), ("research-continue".to_owned(), None));
    let (code, line) = told(&built.clone().later(12));
    assert_eq!(code, "research-continue", "the last event came in time");
    assert!(line.as_deref().is_some_and(|it| it.contains("over with this resume")), "{line:?}");
    let next_day = r#"{"event":"conference.resumed","timestamp":"2026-05-05T09:00:00Z"}"#;
    let resumed = built.line(next_day).at("2026-05-05T09:01:00Z");
    assert!(why(&resumed).contains("13 h 0 min of 8 h 0 min"));
    let raised = resumed.says("budget:** 8h", "budget:** 24h");
    assert_eq!(told(&raised), ("research-continue".to_owned(), None));
}

#[test]
fn the_last_iteration_of_the_budget_still_gets_its_poster_and_review() {
    let round_2 = "round 2: A B\nA2.0 baseline 70\nA2.1 kept 66\nA2.2 kept 65\n\
                   B2.0 baseline 70\nB2.1 kept 66\nB2.2 kept 65\n";
    let exact =
        |lines: &str| after_round_1(lines).says("iterations:** 24", "iterations:** 12").plan();
    assert_eq!(exact(round_2).recovery_point.code, "poster-session");
    assert_eq!(exact(&format!("{round_2}poster 2")).recovery_point.code, "peer-review");
    let script = "round 2: A B\nA2.0 baseline 70\nA2.1 kept 66";
    let early = after_round_1(script).says("iterations:** 24", "iterations:** 8").plan();
    assert_eq!(point(&early), "research-continue 1/2 [round[2]/research[B]]", "one for each");
    let none = after_round_1("round 2: A B").says("iterations:** 24", "iterations:** 6").plan();
    assert_eq!(none.recovery_point.code, "research-restart", "a round that began is finished");
    let done = format!("{round_2}poster 2\nreview 2\nend 2 65");
    let done = after_round_1(&done).says("iterations:** 24", "iterations:** 12");
    assert!(why(&done).contains("12 of 12 iterations"));
}

#[test]
fn everybody_has_the_same_share_of_the_last_iterations() {
    let script = "round 2: A B\nA2.0 baseline 70\nA2.1 kept 66\nB2.0 baseline 70";
    let built = after_round_1(script).says("iterations:** 24", "iterations:** 10");
    let plan = built.plan();
    assert_eq!(point(&plan), "research-continue 1/2 [round[2]/research[B]]", "two for each");
    let uneven = after_round_1(script).says("iterations:** 24", "iterations:** 11").plan();
    assert_eq!(uneven.recovery_point.steps.len(), 2, "three for each: the last one is begun");
}

#[test]
fn all_researchers_stuck_end_it_when_the_round_is_over() {
    assert!(why(&after_round_1("stalled")).contains("logged as stalled"));
    let code = |lines: &str| {
        after_round_1(&format!("round 2: A B\nA2.0 baseline 70\n{lines}"))
            .plan()
            .recovery_point
            .code
    };
    assert_eq!(code("stuck A2 2\nstuck B2 3"), "research-continue", "A has not finished");
    assert_eq!(code("stuck A2 2\nstuck B2 2\nstalled"), "research-continue");
    assert_eq!(code("stuck A2 3\nstuck B2 3"), "poster-session");
    assert_eq!(code("stuck A2 3\nstuck B2 3\nposter 2"), "peer-review");
    assert_eq!(code("stuck A2 3\nstuck B2 3\nposter 2\nreview 2"), "knowledge-transfer");
    let over = after_round_1("round 2: A B\nA2.0 baseline 70\nstuck A2 2\nstuck B2 3\nend 2 70");
    assert!(why(&over).contains("every researcher is stuck in round 2"));
    assert_eq!(code("stuck A2 2"), "research-continue");
    assert_eq!(code("stuck A2 2\nstuck B2 \"timeout\""), "research-continue");
    assert_eq!(code("stuck A2 2\nend 2 70"), "round-start", "one of two is not all");
}

#[test]
fn two_flat_rounds_end_it_and_one_does_not() {
    let flat = |second: &str, third: &str| {
        after_round_1(&format!("round 2: A B\nend 2 {second}\nround 3: A B\nend 3 {third}"))
    };
    assert!(why(&flat("70", "70")).contains("rounds 2 and 3"));
    assert!(why(&flat("71", "71")).contains("did not improve"), "worse is not better");
    assert_eq!(flat("70", "69").plan().recovery_point.code, "round-start");
    assert_eq!(flat("69", "69").plan().recovery_point.code, "round-start");
    let one = after_round_1("round 2: A B\nend 2 70");
    assert_eq!(one.plan().recovery_point.code, "round-start", "one flat round is not two");
}

#[test]
fn what_counts_as_better_depends_on_the_kind_of_number() {
    // Fractions: a thousandth of the baseline of 80.5 is 0.0805.
    let fractions = |second: &str, third: &str| {
        let script = format!(
            "start\nround 1: A B\nA1.0 baseline 80.5\nend 1 80.5\nround 2: A B\nend 2 {second}\n\
             round 3: A B\nend 3 {third}"
        );
        conference(&script)
    };
    why(&fractions("80.45", "80.40"));
    assert_eq!(fractions("80.41", "80.40").plan().recovery_point.code, "round-start");
    // Percent: a tenth.
    let percent = |built: Built| built.says("< 50", "< 50%");
    why(&percent(fractions("80.4", "80.3")));
    assert_eq!(percent(fractions("80.3", "80.3")).plan().recovery_point.code, "round-start");
}

#[test]
fn more_is_better_when_the_file_says_so() {
    let script = "round 2: A B\nend 2 71\nround 3: A B\nend 3 72";
    let built = after_round_1(script).says("minimize", "maximize").says("< 50", "> 90");
    assert_eq!(built.plan().recovery_point.code, "round-start");
    assert!(why(&after_round_1(script)).contains("did not improve"));
}

#[test]
fn a_plateau_says_nothing_about_a_round_under_way() {
    let script = "round 2: A B\nend 2 70\nround 3: A B\nend 3 70\nround 4: A B\nA4.0 baseline 70";
    assert_eq!(after_round_1(script).plan().recovery_point.code, "research-continue");
}

#[test]
fn high_scores_for_all_in_two_rounds_end_a_qualitative_conference() {
    let review = |a: &str, b: &str| {
        format!(
            "# Review\n\n## Qualitative Scores\n| Researcher | Self | Reviewer Score |\n\
             |---|---|---|\n| A | 10 | {a} |\n| B | 10 | {b} |\n"
        )
    };
    let built = |first: &str, second: &str| {
        after_round_1("round 2: A B\nend 2 8")
            .says("\nmetric\n", "\nqualitative\n")
            .says("- **Target:** < 50\n", "")
            .file("peer_review_round_1.md", &review("8/10", first))
            .file("peer_review_round_2.md", &review("9", second))
    };
    assert!(why(&built("8", "8/10")).contains("at least 8 of 10"));
    assert_eq!(built("7", "8").plan().recovery_point.code, "round-start");
    assert_eq!(built("8", "7.5").plan().recovery_point.code, "round-start");
    let unscored = built("8", "8").file("peer_review_round_1.md", "# Review\n\nGood.\n");
    assert_eq!(unscored.plan().recovery_point.code, "round-start");
}

#[test]
fn a_round_that_is_logged_as_converged_is_believed() {
    let mut built = after_round_1("");
    built.log = built.log.replace(r#""converged":false"#, r#""converged":true"#);
    assert!(why(&built).contains("round 1 is logged as converged"));
}
