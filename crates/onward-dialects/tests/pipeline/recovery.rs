//! Where a pipeline re-enters: each row of the table, for each tier.

use onward_core::{plan::Status, state::Phase};
use serde_json::json;

use crate::builder::built;

#[test]
fn without_work_tasks_it_starts_at_the_beginning() {
    for tier in ["TRIVIAL", "STANDARD", "COMPLEX"] {
        let new = built(tier, "");
        assert_eq!(new.line(), "start P0 P0", "{tier}");
        assert_eq!(new.standing().status, Status::Interrupted, "a resume takes it up");
        let ahead = new.meta("current_phase", json!("P6"));
        assert_eq!(ahead.line(), "start P0 P0", "{tier}");
        assert_eq!(ahead.codes(), ["phase-ahead-of-evidence"]);
        let signals = ahead.meta("phase_signals", json!({"p0": "PASS|reqs:4"}));
        assert_eq!(signals.line(), "start P0 P0", "no task vouches for it");
    }
}

#[test]
fn trivial_looks_at_the_execution_alone() {
    for (script, expected) in [
        ("P6:2+", "deliver P8 P8"),
        ("P0:2+ P6:3+", "deliver P8 P8"),
        ("P6:2~", "restart-phase P6 P6"),
        ("P6:2!", "restart-phase P6 P6"),
        ("P6:2-", "restart-phase P6 P6"),
        ("P6:2+ P6:3-", "restart-phase P6 P6"),
        ("P0:2+", "restart-phase P6 P6"),
        ("P0:2-", "restart-phase P0 P0"),
    ] {
        assert_eq!(built("TRIVIAL", script).line(), expected, "{script}");
    }
}

#[test]
fn standard_resumes_at_the_first_phase_on_its_path_that_is_not_complete() {
    for (script, expected) in [
        ("P0:2~", "restart-phase P0 P0"),
        ("P0:2+", "restart-phase P1 P1"),
        ("P0:2+ P1:3+ P2:4+", "restart-phase P3 P3"),
        ("P0:2+ P1:3+ P2:4+ P3:5+", "restart-phase P6 P6"),
        ("P0:2+ P1:3! P2:4+ P3:5+ P6:6+", "restart-phase P1 P1"),
        ("P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P6:7~", "restart-phase P6 P6"),
        ("P0:2+ P1:3+ P2:4+ P3:5+ P6:6+", "restart-phase P7 P7"),
        ("P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7+", "deliver P8 P8"),
        ("P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7+ P8:8-", "deliver P8 P8"),
    ] {
        assert_eq!(built("STANDARD", script).line(), expected, "{script}");
    }
}

#[test]
fn a_mixed_phase_of_standard_restarts_whole_and_completed_tasks_are_verified_not_redone() {
    let mixed = built("STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P6:7~ P6:8-");
    assert_eq!(mixed.next(), "P6[6]/verify P6[7]/begin P6[8]/begin");
    assert_eq!(mixed.imported().phase("P6[6]/work"), Phase::Done);
    assert_eq!(mixed.imported().phase("P3[5]/verify"), Phase::Skipped);
    let noted = mixed.clone().task_meta("6", "result", json!("merged"));
    assert_eq!(noted.line(), "restart-phase P6 P6", "whatever is left of it");
    assert_eq!(noted.next(), mixed.next());
    let ordered = mixed.blocked("8", &["7"]).blocked("7", &["6"]);
    assert_eq!(ordered.next(), "P6[6]/verify");
}

#[test]
fn complex_goes_on_task_by_task_where_the_outcome_is_in_files_or_metadata() {
    let all = "P0:2+ P1:3+ P2:4+ P3:5+ P4:6+ P5:7+";
    assert_eq!(built("COMPLEX", "P0:2+ P1:3+ P2:4+ P3:5+").line(), "restart-phase P4 P4");
    assert_eq!(built("COMPLEX", all).line(), "restart-phase P6 P6");
    let mixed = built("COMPLEX", &format!("{all} P6:8+ P6:9~ P6:10-"));
    assert_eq!(mixed.line(), "restart-phase P6 P6", "nothing is left of task 8");
    assert_eq!(mixed.next(), "P6[10]/begin P6[8]/verify P6[9]/begin");
    let noted = mixed.clone().task_meta("8", "result", json!("merged"));
    assert_eq!(noted.line(), "resume-tasks P6 P6[9] P6[10]");
    assert_eq!(noted.next(), "P6[10]/begin P6[9]/begin", "in parallel, as they were");
    let written = mixed.clone().task_meta("8", "files", json!(["src/a.ts"])).file("src/a.ts", 20);
    assert_eq!(written.line(), "resume-tasks P6 P6[9] P6[10]");
    let absent = mixed.clone().task_meta("8", "files", json!(["src/a.ts"]));
    assert_eq!(absent.line(), "restart-phase P6 P6");
    let waiting = noted.blocked("10", &["9"]);
    assert_eq!(waiting.line(), "resume-tasks P6 P6[9]");
    let none = built("COMPLEX", &format!("{all} P6:8~ P6:9-"));
    assert_eq!(none.line(), "restart-phase P6 P6");
}

#[test]
fn an_error_counts_more_than_a_status() {
    let failed = built("TRIVIAL", "P6:2+").task_meta("2", "error", json!("agent_interrupted"));
    assert_eq!(failed.line(), "restart-phase P6 P6");
    assert_eq!(failed.next(), "P6[2]/begin");
    for none in [json!(null), json!(""), json!(false)] {
        let fine = built("TRIVIAL", "P6:2+").task_meta("2", "error", none);
        assert_eq!(fine.line(), "deliver P8 P8");
    }
}

#[test]
fn delivered_is_a_completed_task_or_a_commit() {
    let all = "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7+";
    let mut completed = built("STANDARD", all);
    completed.permanent["status"] = json!("completed");
    assert_eq!(completed.line(), "complete -");
    assert_eq!(completed.standing().status, Status::Completed);
    let committed = built("STANDARD", all).meta("commit_status", json!("committed"));
    assert_eq!(committed.line(), "complete -");
    let early = built("STANDARD", "P6:2~").meta("commit_status", json!("Committed"));
    assert_eq!(early.line(), "complete -");
    assert_eq!(early.codes(), ["status-disagrees"]);
    assert_eq!(built("STANDARD", all).codes(), ["all-done-not-delivered"]);
}

#[test]
fn a_phase_without_tasks_is_complete_by_its_signal_or_because_work_after_it_has_begun() {
    let signals = json!({"p0": "PASS|reqs:4", "p1": "PASS|arch:1", "p2": "PASS", "p3": "PASS|x"});
    let signalled = built("STANDARD", "P6:4~").meta("phase_signals", signals.clone());
    assert_eq!(signalled.line(), "restart-phase P6 P6");
    let done = built("STANDARD", "P6:4+").meta("phase_signals", signals);
    assert_eq!(done.line(), "restart-phase P7 P7");
    assert_eq!(built("STANDARD", "P6:4~").line(), "restart-phase P6 P6");
    assert_eq!(built("STANDARD", "P0:2+ P6:4+ P7:5+").line(), "restart-phase P1 P1");
    let failed = json!({"p0": "FAIL|reqs:0"});
    let failed = built("STANDARD", "P1:4+").meta("phase_signals", failed);
    assert_eq!(failed.line(), "restart-phase P0 P0");
}

#[test]
fn the_skill_of_a_task_says_more_than_its_number() {
    let all = "P0:2+ P1:3+ P2:4+ P3:5+ P7:6~";
    let by_skill = built("STANDARD", all).task_meta("6", "skill", json!("execution-code"));
    assert_eq!(by_skill.line(), "restart-phase P6 P6");
    assert_eq!(by_skill.next(), "P6[6]/begin");
    assert!(by_skill.codes().contains(&"phase-by-skill".to_owned()));
    let by_domain = built("STANDARD", all).task_meta("6", "domain", json!("execution"));
    assert_eq!(by_domain.next(), "P6[6]/begin");
    let real = built("STANDARD", "P6:2~").task_meta("2", "phase", json!(null));
    let real = real.task_meta("2", "phaseId", json!(" phase-6 "));
    assert_eq!(real.line(), "restart-phase P6 P6");
}

#[test]
fn a_task_without_a_phase_is_not_lost() {
    let lost = built("STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ x:6-");
    let lost = lost.meta("current_phase", json!(null));
    assert_eq!(lost.next(), "P6[6]/begin");
    assert!(lost.codes().contains(&"task-without-phase".to_owned()));
    let pointed = lost.meta("current_phase", json!("P2"));
    assert_eq!(pointed.next(), "P2[4]/verify P2[6]/begin", "where the pointer is");
    let done = built("STANDARD", "P0:2+ x:6+");
    assert_eq!(done.line(), "restart-phase P1 P1", "it proves nothing");
    let off = built("TRIVIAL", "P0:2+ P3:3~ P6:4-");
    assert_eq!(off.line(), "restart-phase P3 P3", "not on the path, and done all the same");
    assert!(off.codes().contains(&"phase-off-path".to_owned()));
}

#[test]
fn without_a_tier_the_tasks_say_how_large_it_is() {
    let standard = built("", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6~");
    assert_eq!(standard.line(), "restart-phase P6 P6");
    assert_eq!(standard.codes(), ["missing-tier"]);
    let complex = built("", "P0:2+ P1:3+ P2:4+ P3:5+ P4:6+ P5:7~");
    assert!(complex.standing().report[0].contains("COMPLEX"));
    let mut described = built("", "P6:2+");
    described.permanent["description"] = json!("Tier TRIVIAL. ACs: …");
    assert_eq!(described.line(), "deliver P8 P8");
}

#[test]
fn stale_work_is_verified_before_anything_after_it() {
    let all = built("STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P6:7+ P7:8-");
    let named = all.task_meta("6", "files", json!(["src/a.ts", "../b", "/etc/c"]));
    assert_eq!(named.clone().file("src/a.ts", 30).line(), "restart-phase P7 P7");
    let stale = named.clone().file("src/a.ts", 31);
    assert_eq!(stale.line(), "resume-tasks P6 P6[6]");
    assert_eq!(stale.next(), "P6[6]/verify");
    let finding = stale.findings().into_iter().find(|it| it.code == "artifact-changed").unwrap();
    assert_eq!(finding.path.as_deref(), Some("src/a.ts"));
    assert_eq!(finding.step.as_deref(), Some("P6[6]"));
    // A later task of the pipeline has changed it.
    let mut explained = stale.task_meta("7", "files", json!(["src/a.ts"]));
    explained.modified.insert("7".into(), crate::builder::at(40));
    assert_eq!(explained.line(), "restart-phase P7 P7");
    let mut interrupted = explained;
    interrupted.tasks.get_mut("7").unwrap()["status"] = json!("in_progress");
    assert!(!interrupted.codes().contains(&"artifact-changed".to_owned()));
}

#[test]
fn what_a_file_holds_counts_more_than_its_time() {
    let all = built("STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7-");
    let named = all.task_meta("6", "files", json!(["src/a.ts"]));
    let empty = onward_core::digest::Digest::of(b"").to_string();
    let noted =
        |hash: &str| named.clone().task_meta("6", "onward_hashes", json!({"src/a.ts": hash}));
    let touched = noted(&empty).file("src/a.ts", 31);
    assert_eq!(touched.line(), "restart-phase P7 P7", "it is newer, and holds the same");
    let older = noted("0123456789abcdef").file("src/a.ts", 20);
    assert_eq!(older.line(), "resume-tasks P6 P6[6]", "it is older, and holds something else");
    assert_eq!(older.codes(), ["artifact-changed"]);
}

#[test]
fn a_completed_task_after_an_unfinished_one_is_suspect() {
    let all = built("COMPLEX", "P0:2+ P1:3+ P2:4+ P3:5+ P4:6+ P5:7+ P6:8! P6:9+");
    let broken = all.blocked("9", &["8"]).task_meta("9", "result", json!("ok"));
    assert_eq!(broken.line(), "restart-phase P6 P6");
    assert_eq!(broken.next(), "P6[8]/begin", "task 9 is verified after it");
    let finding = broken.findings().into_iter().find(|it| it.step.is_some()).unwrap();
    assert_eq!(finding.code, "done-with-unfinished-dependency");
    assert_eq!(finding.step.as_deref(), Some("P6[9]"));
    let earlier = built("STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6~").blocked("5", &["6"]);
    assert_eq!(earlier.line(), "resume-tasks P3 P3[5]");
    assert_eq!(earlier.next(), "P3[5]/verify");
}

#[test]
fn a_blocker_that_is_gone_was_completed_when_its_number_was_in_use() {
    let all = built("STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:7+ P7:8-").blocked("7", &["6", "1"]);
    let gone = all.clone().own(".highwatermark", "8\n");
    assert_eq!(gone.line(), "restart-phase P7 P7");
    assert_eq!(gone.codes(), ["blocker-gone"]);
    for mark in ["5", "", "x", "-1", "99999999999999999999999"] {
        let unknown = all.clone().own(".highwatermark", mark);
        assert_eq!(unknown.line(), "resume-tasks P6 P6[7]", "{mark}");
        assert_eq!(unknown.codes(), ["missing-artifact", "done-with-unfinished-dependency"]);
    }
    // A phase of which nothing is left is not done again, the less the more vouches for it.
    let phase = built("STANDARD", "P0:2+ P1:3+ P3:5+").blocked("5", &["4"]);
    assert_eq!(phase.clone().own(".highwatermark", "9").line(), "restart-phase P6 P6");
    assert_eq!(phase.line(), "resume-tasks P3 P3[5]");
}

/// The only task of its phase: what comes after it must not begin.
#[test]
fn a_task_that_cannot_be_read_takes_no_phase_out_of_the_way() {
    let torn = built("STANDARD", "P0:2+ P1:3+ P2:4+").meta("current_phase", json!("P6"));
    let torn = torn.own("5.json", "{\"id\":\"5\",\"subj");
    assert_eq!(torn.line(), "restart-phase P3 P3");
    let findings = torn.findings();
    let unread = findings.iter().find(|it| it.code == "artifact-unproved").unwrap();
    assert!(unread.path.as_deref().unwrap().ends_with("/5.json"), "{unread:?}");
}

#[test]
fn tasks_that_wait_for_each_other_all_run() {
    let circle = built("TRIVIAL", "P6:2- P6:3- P6:4-");
    let circle = circle.blocked("2", &["3"]).blocked("3", &["2", "3"]).blocked("4", &["9"]);
    assert_eq!(circle.next(), "P6[2]/begin P6[3]/begin P6[4]/begin");
}

#[test]
fn the_pointer_counts_less_than_the_tasks() {
    let behind = built("STANDARD", "P0:2+ P1:3+ P2:4~").meta("current_phase", json!("P0"));
    assert_eq!(behind.line(), "restart-phase P2 P2");
    assert_eq!(behind.codes(), Vec::<String>::new());
    let ahead = behind.clone().meta("current_phase", json!("P6"));
    assert_eq!(ahead.line(), "restart-phase P2 P2");
    assert_eq!(ahead.codes(), ["phase-ahead-of-evidence"]);
    for odd in [json!(null), json!("soon"), json!(["P1"])] {
        let missing = behind.clone().meta("current_phase", odd);
        assert_eq!(missing.line(), "restart-phase P2 P2");
        assert!(missing.codes().contains(&"missing-current-phase".to_owned()));
    }
}

#[test]
fn the_report_is_a_matrix_with_the_reason_and_l1_is_the_system_s_own_yaml() {
    let mixed = built("STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P6:7~ P6:8- P6:9!");
    let report = mixed.standing().report;
    assert_eq!(report[0], "[PERMANENT] Rate limiter: tier STANDARD, 5 of 8 work tasks completed");
    let line =
        "P6 execution: not complete; 4 tasks, 1 completed, 1 failed, 1 interrupted, 1 pending";
    assert!(report.iter().any(|it| it == line), "{report:#?}");
    assert!(report.contains(&"Task 9, do 9: failed: agent_interrupted".to_owned()));
    assert_eq!(report.last(), Some(&mixed.standing().point.summary));
    assert_eq!(
        mixed.told().page("l1").unwrap(),
        "domain: cross-cutting\nskill: pipeline-resume\nlast_completed_phase: \"P3\"\n\
         resume_phase: \"P6\"\ntotal_tasks: 8\ncompleted_tasks: 5\nin_progress_tasks: 2\n\
         pending_tasks: 1\n"
    );
    assert_eq!(mixed.told().page("l2"), None);
    let new = built("STANDARD", "").told().page("l1").unwrap();
    assert!(new.contains("last_completed_phase: \"\"\nresume_phase: \"P0\"\ntotal_tasks: 0\n"));
}
