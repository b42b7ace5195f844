//! One directory for each thing that can be wrong.

use onward_core::{finding::Severity, told::Change};
use onward_dialects::{Branch, Git, Worktree};

use crate::builder::{Built, ROUND_1, changed, codes, conference, finding, verdict};

fn in_round_2(lines: &str) -> Built {
    conference(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70\n{lines}"))
}

const NOTHING: Vec<&str> = Vec::new();

#[test]
fn a_whole_directory_has_nothing_to_say() {
    assert_eq!(codes(&in_round_2("").plan()), NOTHING);
}

#[test]
fn each_field_that_conference_md_lacks_blocks_and_is_named() {
    for (gone, name) in [
        ("Bring the slow requests down.\n", "goal"),
        ("\nmetric\n", "mode"),
        ("- **Count:** 2\n", "researcher count"),
        ("- **Max rounds:** 4\n", "max rounds"),
        ("## Shared Knowledge\n", "Shared Knowledge"),
        ("## Conference Log\n", "Conference Log"),
    ] {
        let plan = in_round_2("").says(gone, "").plan();
        let found = finding(&plan, "conference-md-incomplete");
        assert_eq!(found.severity(), Severity::Blocking);
        assert!(found.message.contains(name), "{}", found.message);
        assert_eq!(found.path.as_deref(), Some("conference.md"));
        assert!(!plan.can_resume);
        assert_eq!(plan.needs.len(), 1);
    }
}

#[test]
fn a_pending_confirmation_blocks() {
    let gate =
        "## Pre-Flight Gate\n- **Final confirmation:** pending, ask first\n\n## Search Space";
    let plan = in_round_2("").says("## Search Space", gate).plan();
    assert_eq!(finding(&plan, "confirmation-pending").severity(), Severity::Blocking);
    assert!(!plan.can_resume);
    let given = gate.replace("pending, ask first", "given by Mira");
    assert_eq!(codes(&in_round_2("").says("## Search Space", &given).plan()), NOTHING);
}

#[test]
fn a_missing_table_is_rebuilt_from_the_log() {
    let built = in_round_2("A2.1 kept 66").without_table("A");
    let plan = built.plan();
    let found = finding(&plan, "rows-missing");
    assert_eq!(found.severity(), Severity::Warning);
    assert!(found.message.contains("researcher_A_results.tsv is missing"), "{}", found.message);
    assert!(found.hint.as_deref().unwrap().contains("5 rows"));
    assert!(plan.can_resume);

    let after = changed(&built.files(), &plan.resumed());
    let rebuilt = after.bytes("researcher_A_results.tsv").unwrap().to_vec();
    let whole = built.file("researcher_A_results.tsv", &String::from_utf8(rebuilt).unwrap());
    assert_eq!(codes(&whole.plan()), NOTHING, "the rebuilt one agrees with the log");
}

#[test]
fn a_table_without_a_logged_iteration_may_be_missing() {
    assert_eq!(codes(&conference("start\nround 1: A B").plan()), NOTHING);
}

#[test]
fn rows_that_no_event_proves_are_counted_by_round() {
    let plan = in_round_2("").row("A", "1 reverted 71").row("B", "0 baseline 70").plan();
    let found = finding(&plan, "rows-exceed-events");
    assert!(found.message.contains("researcher_A_results.tsv"), "{}", found.message);
    assert!(found.message.contains("round 2: 1"), "{}", found.message);
    assert_eq!(found.severity(), Severity::Warning);
    assert!(plan.can_resume);
}

#[test]
fn logged_iterations_without_a_row_are_named() {
    let mut built = in_round_2("A2.1 kept 66");
    let files = built.files();
    let table =
        String::from_utf8(files.bytes("researcher_A_results.tsv").unwrap().to_vec()).unwrap();
    let without_last = table.trim_end().rsplit_once('\n').unwrap().0;
    built = built.without_table("A").file("researcher_A_results.tsv", without_last);
    let plan = built.plan();
    let found = finding(&plan, "rows-missing");
    assert!(found.message.contains("round 2: 1"), "{}", found.message);
}

#[test]
fn a_row_that_says_something_else_than_its_event_is_reported() {
    let mut built = in_round_2("A2.1 kept 66");
    built.log = built.log.replace("\"metric_value\":66", "\"metric_value\":67");
    let plan = built.plan();
    let found = finding(&plan, "status-disagrees");
    assert!(found.message.contains("round 2: 1"), "{}", found.message);
}

#[test]
fn the_first_row_of_a_round_may_be_a_baseline_in_one_file_and_kept_in_the_other() {
    let mut built = in_round_2("");
    let status = |it: &str| format!("\"metric_value\":70,\"delta\":0.5,\"status\":\"{it}\"");
    built.log = built.log.replace(&status("baseline"), &status("kept"));
    assert!(built.log.contains(&status("kept")));
    assert_eq!(codes(&built.plan()), NOTHING);
}

#[test]
fn an_artifact_without_its_event_is_unproved() {
    let page = "# P\n\nx\n";
    let built =
        in_round_2("A2.1 kept 66\nA2.2 kept 65\nB2.0 baseline 70\nB2.1 kept 66\nB2.2 kept 65");
    let plan = built.clone().file("poster_session_round_2.md", page).plan();
    let found = finding(&plan, "artifact-unproved");
    assert_eq!(found.step.as_deref(), Some("round[2]/poster"));
    assert_eq!(plan.recovery_point.code, "poster-session");
    assert_eq!(verdict(&plan, "round[2]/poster"), onward_core::plan::Verdict::Verify);
    let plan = built.clone().file("peer_review_round_2.md", page).plan();
    assert_eq!(finding(&plan, "artifact-unproved").step.as_deref(), Some("round[2]/review"));
    let plan = built.file("synthesis.md", page).plan();
    assert_eq!(finding(&plan, "artifact-unproved").path.as_deref(), Some("synthesis.md"));
}

#[test]
fn a_completed_round_proves_its_poster_and_its_review() {
    let page = "# P\n\nx\n";
    let mut built =
        in_round_2("").file("poster_session_round_1.md", page).file("peer_review_round_1.md", page);
    let lines = built.log.lines().filter(|it| !it.contains("poster_session"));
    built.log = lines
        .filter(|it| !it.contains("peer_review"))
        .fold(String::new(), |log, line| format!("{log}{line}\n"));
    assert_eq!(codes(&built.plan()), NOTHING);
}

#[test]
fn a_review_that_is_logged_but_gone_is_made_again() {
    let plan = in_round_2("poster 2\nreview 2").plan();
    let found = finding(&plan, "missing-artifact");
    assert_eq!(found.step.as_deref(), Some("round[2]/review"));
    assert_eq!(verdict(&plan, "round[2]/review"), onward_core::plan::Verdict::Run);
    let plan = in_round_2("poster 2").plan();
    assert_eq!(finding(&plan, "missing-artifact").step.as_deref(), Some("round[2]/poster"));
}

#[test]
fn a_conference_older_than_a_day_is_stale_and_one_from_the_future_is_refused() {
    assert_eq!(codes(&in_round_2("").later(23).plan()), NOTHING);
    let plan = in_round_2("").later(30).plan();
    let found = finding(&plan, "stale-age");
    assert!(found.message.contains("30 hours"), "{}", found.message);
    assert!(plan.can_resume);
    let plan = in_round_2("").at("2026-05-04T12:00:00Z").plan();
    assert_eq!(finding(&plan, "clock-in-future").severity(), Severity::Blocking);
    assert!(!plan.can_resume);
}

#[test]
fn a_broken_line_is_named_and_the_rest_is_used() {
    let built = in_round_2("").line("{\"event\":\"round.compl");
    let plan = built.plan();
    let found = finding(&plan, "broken-line");
    assert!(found.message.contains("line 14"), "{}", found.message);
    assert_eq!(found.path.as_deref(), Some("conference_events.jsonl"));
    assert_eq!(found.severity(), Severity::Warning);
    assert_eq!(plan.recovery_point.code, "research-continue");
    let many = (0..30).fold(in_round_2(""), |built, _| built.line("?"));
    assert_eq!(codes(&many.plan()).len(), 21);
}

#[test]
fn a_torn_row_is_a_broken_line_too() {
    let built = in_round_2("").without_table("B").file("researcher_B_results.tsv", "0\t80");
    let plan = built.plan();
    assert_eq!(finding(&plan, "broken-line").path.as_deref(), Some("researcher_B_results.tsv"));
}

#[test]
fn a_log_without_its_beginning_or_with_a_lost_ending_disagrees_with_itself() {
    let plan = conference("round 1: A B").plan();
    assert!(finding(&plan, "status-disagrees").message.contains("conference.started"));
    let plan = conference("start\nround 1: A B\nround 2: A B").plan();
    assert!(finding(&plan, "status-disagrees").message.contains("round 1"));
    let plan = conference("").plan();
    assert_eq!(plan.recovery_point.code, "round-start");
    assert_eq!(codes(&plan), ["status-disagrees"]);
}

#[test]
fn a_loop_that_is_still_running_blocks() {
    let built = in_round_2("").file(".autoconference-loop.pid", "4711\n");
    assert_eq!(codes(&built.plan()), NOTHING, "a dead loop needs no ritual");
    let plan = built.alive(4711).plan();
    assert_eq!(finding(&plan, "still-running").severity(), Severity::Blocking);
    assert_eq!(plan.standing.status, onward_core::plan::Status::Running);
}

#[test]
fn three_resumes_are_worth_a_word() {
    assert_eq!(codes(&in_round_2("resumed\nresumed").plan()), NOTHING);
    let plan = in_round_2("resumed\nresumed\nresumed").plan();
    assert!(finding(&plan, "resumed-repeatedly").message.contains('3'));
    assert_eq!(plan.standing.resumes, 3);
}

fn code(built: Built) -> Built {
    built.says("cache sizes, pool sizes", "the code of the cache")
}

fn branches(names: &[&str]) -> Git {
    let branch = |name: &&str| ((*name).to_owned(), Branch { head: "5f1c".into() });
    let tree = |name: &&str| Worktree {
        path: format!("trees/{}", name.rsplit('/').next().unwrap()),
        branch: Some((*name).to_owned()),
        ..Worktree::default()
    };
    let branches = names.iter().map(branch).collect();
    Git { branches, worktrees: names.iter().map(tree).collect(), ..Git::default() }
}

const ALL: [&str; 3] = ["conference/best", "conference/researcher-A", "conference/researcher-B"];

#[test]
fn branches_and_worktrees_are_asked_for_only_where_code_may_change() {
    assert_eq!(codes(&in_round_2("").git(Git::default()).plan()), NOTHING);
    assert_eq!(codes(&code(in_round_2("")).git(branches(&ALL)).plan()), NOTHING);
    assert_eq!(codes(&code(in_round_2("")).plan()), ["worktree-missing"]);
    assert_eq!(codes(&code(in_round_2("")).git(Git::default()).plan()), ["worktree-missing"]);
    let qualitative = code(in_round_2("")).says("\nmetric\n", "\nqualitative\n");
    assert_eq!(codes(&qualitative.plan()), NOTHING);
}

#[test]
fn existing_conference_branches_mean_that_code_changes() {
    let plan = in_round_2("").git(branches(&ALL[..2])).plan();
    let found = finding(&plan, "worktree-missing");
    assert!(found.message.contains("conference/researcher-B"), "{}", found.message);
    let plan = in_round_2("").git(branches(&ALL[1..])).plan();
    assert!(finding(&plan, "worktree-missing").message.contains("conference/best"));
}

#[test]
fn a_worktree_can_be_gone_detached_unfinished_or_dirty() {
    let change = |change: fn(&mut Worktree)| {
        let mut git = branches(&ALL);
        change(&mut git.worktrees[2]);
        let plan = code(in_round_2("")).git(git).plan();
        assert_eq!(plan.findings.len(), 1, "{:?}", plan.findings);
        (plan.findings[0].code.clone(), plan.findings[0].severity())
    };
    let warning = |code: &str| (code.to_owned(), Severity::Warning);
    assert_eq!(change(|tree| tree.missing = true), warning("worktree-missing"));
    assert_eq!(change(|tree| tree.branch = None), warning("worktree-detached"));
    let rebase = |tree: &mut Worktree| tree.unfinished = Some("rebase".into());
    assert_eq!(change(rebase), warning("worktree-mid-rebase"));
    assert_eq!(change(|tree| tree.changes = vec!["a".into()]), warning("dirty-tree"));
}

#[test]
fn a_row_with_the_last_number_there_is_or_twice_is_one_iteration() {
    for number in ["1", "100000"] {
        let row = format!("{number} kept 66");
        let plan = in_round_2("").row("A", &row).row("A", &row).plan();
        let log = plan.resumed().pop().unwrap();
        let Change::Append { bytes, .. } = log else { panic!("{log:?}") };
        let log = String::from_utf8(bytes).unwrap();
        assert_eq!(log.matches(&format!("\"iteration\":{number},")).count(), 1, "{log}");
    }
}
