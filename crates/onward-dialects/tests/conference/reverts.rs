//! What a resume would undo, row by row and tree by tree.

use onward_core::{
    plan::Verdict,
    told::{Change, Undo, UndoWhat},
};
use onward_dialects::{Branch, Git, Worktree};

use crate::builder::{Built, ROUND_1, Seen, conference, finding, next, told, verdict};

fn in_round_2(lines: &str) -> Built {
    conference(&format!("{ROUND_1}round 2: A B\n{lines}"))
}

/// The rows that a file loses.
fn rows(undo: &Undo) -> &[String] {
    let UndoWhat::Rows { rows, .. } = &undo.what else { panic!("{undo:?}") };
    rows
}

/// `path: iterations`, for each truncation.
fn truncations(plan: &Seen) -> Vec<String> {
    let truncated = plan.undo.iter().filter(|it| matches!(it.what, UndoWhat::Rows { .. }));
    let shown = truncated.map(|undo| {
        let iterations: Vec<&str> =
            rows(undo).iter().map(|row| row.split('\t').next().unwrap()).collect();
        format!("{}: {}", undo.path, iterations.join(" "))
    });
    shown.collect()
}

#[test]
fn rows_after_the_last_kept_one_are_dropped_into_the_rescue() {
    let built = in_round_2("A2.0 baseline 70\nA2.1 kept 66").row("A", "2 reverted 71");
    let plan = built.plan();
    assert_eq!(truncations(&plan), ["researcher_A_results.tsv: 2"]);
    assert!(rows(&plan.undo[0])[0].starts_with("2\t71\t"), "the row is shown as it stands");
    assert_eq!(plan.undo[0].step.as_str(), "round[2]/research[A]");
}

#[test]
fn a_row_that_a_logged_iteration_proves_stays() {
    let plan = in_round_2("A2.0 baseline 70\nA2.1 reverted 72").plan();
    assert_eq!(plan.reverts(), [] as [&Undo; 0]);
}

#[test]
fn a_kept_row_without_an_event_stays_with_a_warning_and_an_inferred_event() {
    let built = in_round_2("A2.0 baseline 70").row("A", "1 kept 66");
    let plan = built.plan();
    assert_eq!(plan.reverts(), [] as [&Undo; 0]);
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
    let shown = rows(&plan.undo[0]);
    assert_eq!(shown.len(), 1, "round 1 ends in a reverted row, too: {shown:?}");
}

#[test]
fn a_kept_row_of_a_round_whose_beginning_is_not_logged_stays_with_an_inferred_event() {
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
    let changes = plan.resumed();
    let Some(Change::Append { bytes, .. }) = changes.last() else { panic!("{changes:?}") };
    let log = String::from_utf8(bytes.clone()).unwrap();
    let new: Vec<&str> = log.lines().collect();
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
    assert!(truncations(&plan).contains(&"researcher_A_results.tsv: 1".to_owned()));
    assert_eq!(next(&plan), ["round[1]/converge"]);
}

#[test]
fn baselines_alone_are_of_no_round_that_began() {
    let plan = conference(ROUND_1).row("A", "0 baseline 70").row("A", "1 reverted 71").plan();
    assert_eq!(truncations(&plan), ["researcher_A_results.tsv: 1"]);
    assert_eq!(next(&plan), ["round[1]/converge"]);
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
        plan.undo.iter().map(|it| (it.path.as_str(), rows(it))).collect();
    let rows = ["2\t7".to_owned()];
    let wanted = ["researcher_A_results.tsv", "conference_results.tsv"];
    assert_eq!(shown, wanted.map(|it| (it, rows.as_slice())));
    for it in told(&built.files()).undo() {
        let UndoWhat::Rows { after, .. } = it.what else { panic!("{it:?}") };
        let after = String::from_utf8(after).unwrap();
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
    assert_eq!(plan.reverts().len(), 2);
    let shared = plan.reverts()[1];
    assert_eq!(shared.path, "conference_results.tsv");
    assert_eq!(rows(shared), [row("A", 2, "reverted").trim_end()]);
    assert_eq!(shared.step.as_str(), "round[2]");
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
        let reset: Vec<(&str, &UndoWhat)> =
            plan.reverts().into_iter().map(|it| (it.path.as_str(), &it.what)).collect();
        let changes = vec![" M src/cache".to_owned(), "?? notes".to_owned()];
        let what = UndoWhat::Worktree { changes };
        let wanted = ["trees/researcher-A", "trees/researcher-B"].map(|it| (it, &what));
        let step = plan.undo[0].step.as_str();
        assert!(step.ends_with("/research[A]"), "{step}");
        assert_eq!(reset, wanted, "{}", plan.recovery_point.summary);
    }
    let plan = in_round_2(done).git(trees(&[])).plan();
    assert_eq!(plan.reverts(), [] as [&Undo; 0]);
}

#[test]
fn a_dirty_worktree_is_left_alone_where_no_round_comes() {
    let all = "A2.0 kept 70\nB2.0 kept 66\nposter 2\nreview 2\nend 2 65\nconverged";
    let plan = in_round_2(all).git(trees(&["?? notes"])).plan();
    assert_eq!(plan.recovery_point.code, "synthesis");
    assert_eq!(plan.reverts(), [] as [&Undo; 0]);
    let dirty: Vec<_> = plan.findings.iter().filter(|it| it.code == "dirty-tree").collect();
    assert_eq!(dirty.len(), 2, "{:?}", plan.findings);
    assert!(dirty.iter().all(|it| it.hint.as_deref().unwrap().contains("left as they are")));
}
