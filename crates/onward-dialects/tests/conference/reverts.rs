//! What a resume would undo, row by row and tree by tree.

use onward_core::plan::{Plan, Verdict};
use onward_dialects::{Branch, Dialect as _, Git, Worktree, conference::CONFERENCE};

use crate::builder::{Built, ROUND_1, conference, finding, verdict};

fn in_round_2(lines: &str) -> Built {
    conference(&format!("{ROUND_1}round 2: A B\n{lines}"))
}

/// `path: iterations`, for each truncation.
fn truncations(plan: &Plan) -> Vec<String> {
    let rows = plan.reverts.iter().filter(|revert| revert.kind == "truncate-rows");
    let shown = rows.map(|revert| {
        let iterations: Vec<&str> =
            revert.rows.iter().map(|row| row.split('\t').next().unwrap()).collect();
        format!("{}: {}", revert.path, iterations.join(" "))
    });
    shown.collect()
}

#[test]
fn rows_after_the_last_kept_one_are_dropped_into_the_rescue() {
    let built = in_round_2("A2.0 baseline 70\nA2.1 kept 66").row("A", "2 reverted 71");
    let plan = built.plan();
    assert_eq!(truncations(&plan), ["researcher_A_results.tsv: 2"]);
    let revert = &plan.reverts[0];
    assert!(revert.rows[0].starts_with("2\t71\t"), "the row is shown as it stands");
    assert!(revert.rescue.starts_with("rescue/round[2]~research"), "{}", revert.rescue);
}

#[test]
fn a_row_that_a_logged_iteration_proves_stays() {
    let plan = in_round_2("A2.0 baseline 70\nA2.1 reverted 72").plan();
    assert_eq!(plan.reverts, []);
}

#[test]
fn a_kept_row_without_an_event_stays_with_a_warning_and_an_inferred_event() {
    let built = in_round_2("A2.0 baseline 70").row("A", "1 kept 66");
    let plan = built.plan();
    assert_eq!(plan.reverts, []);
    let found = finding(&plan, "rows-exceed-events");
    assert!(found.hint.as_deref().unwrap().contains("inferred"), "{:?}", found.hint);
    assert_eq!(verdict(&plan, "round[2]/research[A]/iterate[1]"), Verdict::Adopt);
    assert_eq!(verdict(&plan, "round[2]/research[A]/iterate[2]"), Verdict::Run);
}

#[test]
fn a_researcher_that_is_done_loses_nothing() {
    let done = "A2.0 baseline 70\nA2.1 kept 66\nA2.2 kept 65\nB2.0 baseline 70";
    let plan = in_round_2(done).row("A", "3 reverted 71").plan();
    assert_eq!(truncations(&plan), Vec::<String>::new());
}

#[test]
fn rows_of_earlier_rounds_are_never_dropped() {
    let plan = in_round_2("A2.0 baseline 70\nB2.0 baseline 70").row("B", "1 reverted 71").plan();
    assert_eq!(truncations(&plan), ["researcher_B_results.tsv: 1"]);
    let shown = &plan.reverts[0].rows;
    assert_eq!(shown.len(), 1, "round 1 ends in a reverted row, too: {shown:?}");
}

#[test]
fn a_kept_row_of_a_round_that_nobody_logged_the_beginning_of_stays_with_an_inferred_event() {
    let built = conference(ROUND_1).row("A", "0 baseline 70").row("A", "1 kept 60");
    let built = built.row("A", "2 reverted 61").row("A", "0 baseline 60").row("A", "1 kept 60");
    let plan = built.plan();
    assert_eq!(plan.recovery_point.code, "round-start");
    assert_eq!(truncations(&plan), ["researcher_A_results.tsv: 2 0 1"], "and no later round");
    assert!(finding(&plan, "rows-exceed-events").hint.as_deref().unwrap().contains("stay"));
    assert_eq!(verdict(&plan, "round[2]/research[A]/iterate[2]"), Verdict::Run);
    for iteration in ["baseline", "iterate[1]"] {
        let step = format!("round[2]/research[A]/{iteration}");
        assert_eq!(verdict(&plan, &step), Verdict::Adopt, "{step}");
    }
    let files = built.files();
    let written = CONFERENCE.resumed(&files, &plan, "2026-05-05T20:00:00Z".parse().unwrap());
    let (_, log) = written.iter().find(|(path, _)| path == "conference_events.jsonl").unwrap();
    let log = String::from_utf8(log.clone()).unwrap();
    let new: Vec<&str> = log[built.log.len()..].lines().collect();
    assert!(new[0].contains("conference.resumed"), "{new:?}");
    assert!(new[1].contains("round.started") && new[1].contains("\"round\":2"), "{new:?}");
    assert!(new[3].contains("\"iteration\":1,\"metric_value\":60.0"), "{new:?}");
    assert_eq!(new.len(), 4, "{new:?}");
}

#[test]
fn a_round_that_a_person_wants_done_again_keeps_no_row() {
    let payload = r#"{"recovery_point":"round-start","round":2,"redo":true}"#;
    let at = "2026-05-04T23:00:00Z";
    let redo =
        format!(r#"{{"event":"conference.resumed","timestamp":"{at}","payload":{payload}}}"#);
    let built = in_round_2("A2.0 baseline 70\nA2.1 kept 60").line(&redo).at(at);
    let plan = built.plan();
    assert_eq!(plan.recovery_point.code, "round-start");
    assert!(truncations(&plan).contains(&"researcher_A_results.tsv: 1".to_owned()), "{plan:?}");
    assert_eq!(verdict(&plan, "round[2]/research[A]"), Verdict::Run);
}

#[test]
fn baselines_alone_are_of_no_round_that_began() {
    let plan = conference(ROUND_1).row("A", "0 baseline 70").row("A", "1 reverted 71").plan();
    assert_eq!(truncations(&plan), ["researcher_A_results.tsv: 1"]);
    assert_eq!(verdict(&plan, "round[2]/research[A]"), Verdict::Run);
}

#[test]
fn a_row_that_was_cut_short_goes_to_the_rescue_and_not_before_the_next_one() {
    let built = in_round_2("A2.0 baseline 70\nA2.1 kept 66");
    let torn = |built: Built, name: &str| {
        let bytes = built.files().bytes(name).unwrap().to_vec();
        built.file(name, &format!("{}2\t7", String::from_utf8(bytes).unwrap()))
    };
    let built = torn(torn(built, "researcher_A_results.tsv"), "conference_results.tsv");
    let plan = built.plan();
    let shown: Vec<(&str, &[String])> =
        plan.reverts.iter().map(|it| (it.path.as_str(), it.rows.as_slice())).collect();
    let rows = ["2\t7".to_owned()];
    let wanted = ["researcher_A_results.tsv", "conference_results.tsv"];
    assert_eq!(shown, wanted.map(|it| (it, rows.as_slice())));
    let undone = CONFERENCE.undone(&built.files());
    assert_eq!(undone.len(), 2);
    for it in undone {
        let after = String::from_utf8(it.after.unwrap()).unwrap();
        assert!(after.ends_with("Z\n") && !after.contains("2\t7\n"), "{after}");
    }
}

#[test]
fn the_shared_results_lose_the_same_rows() {
    let header = "round\tresearcher\titeration\tmetric_value\tdelta\tdelta_pct\tstatus\t\
                  description\tevaluator_source\tpeer_review_verdict\ttimestamp\n";
    let row = |id: &str, iteration: u32, status: &str| {
        format!("2\t{id}\t{iteration}\t71\t-\t-\t{status}\tx\ty\t-\t-\n")
    };
    let results = format!(
        "{header}{}{}{}",
        row("A", 1, "kept"),
        row("A", 2, "reverted"),
        row("B", 2, "reverted")
    );
    let built = in_round_2("A2.0 baseline 70\nA2.1 kept 71").row("A", "2 reverted 71");
    let plan = built.file("conference_results.tsv", &results).plan();
    assert_eq!(plan.reverts.len(), 2);
    let shared = &plan.reverts[1];
    assert_eq!(shared.path, "conference_results.tsv");
    assert_eq!(shared.rows, [row("A", 2, "reverted").trim_end()]);
}

fn trees(changes: &[&str]) -> Git {
    let names = ["best", "researcher-A", "researcher-B"];
    let branch = |name: &&str| (format!("conference/{name}"), Branch { head: "5f1c".into() });
    let tree = |name: &&str| Worktree {
        path: format!("trees/{name}"),
        branch: Some(format!("conference/{name}")),
        changes: changes.iter().map(|it| (*it).to_owned()).collect(),
        ..Worktree::default()
    };
    Git {
        branches: names.iter().map(branch).collect(),
        worktrees: names.iter().map(tree).collect(),
        ..Git::default()
    }
}

#[test]
fn dirty_worktrees_go_back_to_their_branch_wherever_a_round_goes_on_and_best_is_left_alone() {
    let done = "A2.0 baseline 70\nA2.1 kept 66\nA2.2 kept 65\nB2.0 baseline 70";
    let all = format!("{done}\nB2.1 kept 66\nB2.2 kept 65");
    for more in ["", "\nposter 2", "\nposter 2\nreview 2", "\nposter 2\nreview 2\nend 2 65"] {
        let script = if more.is_empty() { done.to_owned() } else { format!("{all}{more}") };
        let plan = in_round_2(&script).git(trees(&[" M src/cache", "?? notes"])).plan();
        let reset = plan.reverts.iter().filter(|it| it.kind == "reset-worktree");
        let reset: Vec<(&str, &[String])> =
            reset.map(|it| (it.path.as_str(), it.rows.as_slice())).collect();
        let rows = [" M src/cache".to_owned(), "?? notes".to_owned()];
        let wanted = ["trees/researcher-A", "trees/researcher-B"].map(|it| (it, rows.as_slice()));
        assert_eq!(reset, wanted, "{}", plan.recovery_point.summary);
    }
    let plan = in_round_2(done).git(trees(&[])).plan();
    assert_eq!(plan.reverts, []);
}

#[test]
fn a_dirty_worktree_is_left_alone_where_no_round_comes() {
    let all = "A2.0 kept 70\nB2.0 kept 66\nposter 2\nreview 2\nend 2 65\nconverged";
    let plan = in_round_2(all).git(trees(&["?? notes"])).plan();
    assert_eq!(plan.recovery_point.code, "synthesis");
    assert_eq!(plan.reverts, []);
    let dirty: Vec<_> = plan.findings.iter().filter(|it| it.code == "dirty-tree").collect();
    assert_eq!(dirty.len(), 2, "{:?}", plan.findings);
    assert!(dirty.iter().all(|it| it.hint.as_deref().unwrap().contains("left as they are")));
}
