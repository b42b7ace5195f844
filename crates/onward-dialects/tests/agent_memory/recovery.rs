//! Each row of the recovery table, as files.

use onward_core::{plan::Status, state::Phase};
use serde_json::json;

use crate::builder::{Built, built};

#[test]
fn what_is_missing_is_made_first() {
    assert_eq!(built("empty").point(), "intake 0 intake");
    assert_eq!(built("empty").standing().status, Status::Fresh);
    assert_eq!(built("prd").file("prd.md", " \n").point(), "intake 0 intake");
    assert_eq!(built("prd").point(), "planning 1 plan");
    assert_eq!(built("plan").point(), "planning 1 tasks");
    for broken in ["", "{", "[]", "{}", "{\"tasks\":[]}", "\0\0"] {
        let broken = built("plan").file("task-graph.json", broken);
        assert_eq!(broken.point(), "planning 1 tasks", "{broken:?}");
    }
    let half = built("graph").file("tasks/T001.md", "a contract");
    assert_eq!(half.point(), "planning 1 tasks");
    let whole = half.file("tasks/T002.md", "x").file("tasks/T003.md", "x");
    assert_eq!(whole.point(), "approval 1 approve");
}

#[test]
fn a_plan_without_a_constitution_waits_for_approval_whatever_a_transition_says() {
    for built in [built("graph"), built("graph").phase(1), built("graph").phase(2)] {
        assert_eq!(built.point(), "approval 1 approve");
        assert_eq!(built.standing().status, Status::Waiting);
        assert!(!built.standing().needs_agents);
        let imported = built.imported();
        for kept in ["intake", "plan", "tasks/break", "tasks/check"] {
            assert_eq!(imported.phase(kept), Phase::Done, "{kept}");
        }
    }
    let ahead = built("graph").phase(2);
    assert!(ahead.codes().contains(&"phase-ahead-of-evidence".to_owned()));
    let back = built("approved").phase(2).phase(1);
    assert_eq!(back.point(), "approval 1 approve");
    assert!(back.codes().contains(&"approval-outdated".to_owned()));
}

#[test]
fn tasks_are_executed_when_what_they_rest_on_is_implemented() {
    let begun = built("approved");
    assert_eq!(begun.point(), "execute 2 execute[T001]");
    assert_eq!(begun.clone().phase(2).point(), "execute 2 execute[T001]");
    let first = begun.clone().events(&["task-claimed T001", "task-implemented T001"]);
    assert_eq!(first.point(), "execute 2 execute[T002]");
    let under_way = first.clone().event("task-claimed T002");
    assert_eq!(under_way.point(), "execute 2 execute[T002]");
    assert!(under_way.codes().contains(&"orphan-task".to_owned()));
    let failed = under_way.event("task-failed T002");
    assert_eq!(failed.point(), "execute 2 execute[T002]");
    let parallel = begun.graph(&[("T001", &[]), ("T002", &[]), ("T003", &["T001", "T002"])]);
    assert_eq!(parallel.point(), "execute 2 execute[T001] execute[T002]");
    assert_eq!(parallel.done(&["T002"]).point(), "execute 2 execute[T001]");
}

/// Found by the junk: T001 implemented although T004, on which it rests, is open.
#[test]
fn what_rests_on_an_implemented_task_is_executed_whatever_came_before_that_task() {
    let graph: [(&str, &[&str]); 3] =
        [("T004", &["T002"]), ("T001", &["T004"]), ("T003", &["T001"])];
    let built = built("approved").graph(&graph).phase(2).event("task-implemented T001");
    assert_eq!(built.point(), "execute 2 execute[T004] execute[T003]");
}

#[test]
fn a_full_batch_is_verified_first_and_a_small_one_when_nothing_else_can_be_done() {
    let wide = built("approved").graph(&[("A", &[]), ("B", &[]), ("C", &[]), ("D", &[])]);
    let two = wide.events(&["task-implemented A", "task-implemented B"]);
    assert_eq!(two.point(), "execute 2 execute[C] execute[D]");
    let three = two.event("task-implemented C");
    assert_eq!(three.point(), "verify 2 verify");
    assert!(three.standing().point.summary.contains("A, B, C"));
    let all = three.event("task-verified A").event("task-verified B").event("task-implemented D");
    assert_eq!(all.point(), "verify 2 verify");
    let rest = all.clone().event("task-verified C").event("task-blocked D");
    assert_eq!(rest.point(), "blocked 2 rework");
}

#[test]
fn blocked_says_which_blocks_which() {
    let stuck = built("approved").done(&["T001"]).event("task-blocked T002");
    assert_eq!(stuck.point(), "blocked 2 rework");
    let summary = stuck.standing().point.summary;
    assert!(summary.contains("T002 is blocked and blocks T003"), "{summary}");
    for word in ["task-unblocked", "task-ready", "task-claimed"] {
        let freed = stuck.clone().event(&format!("{word} T002"));
        assert_eq!(freed.point(), "execute 2 execute[T002]", "{word}");
    }
    let other = stuck.graph(&[("T001", &[]), ("T002", &[]), ("T003", &["T002"]), ("T004", &[])]);
    assert_eq!(other.point(), "execute 2 execute[T004]");
}

#[test]
fn three_attempts_are_the_cap() {
    let tried = |times: usize, end: &str| {
        let words = ["task-claimed T001", "task-started T001", end];
        let all: Vec<&str> = words.repeat(times).into_iter().filter(|it| !it.is_empty()).collect();
        built("approved").events(&all)
    };
    for end in ["task-failed T001", ""] {
        assert_eq!(tried(2, end).point(), "execute 2 execute[T001]", "{end}");
        let used_up = tried(3, end);
        assert_eq!(used_up.point(), "blocked 2 rework", "{end}");
        assert!(used_up.codes().contains(&"attempts-used-up".to_owned()));
        assert!(used_up.standing().point.summary.contains("failed after 3 attempts"));
        let again = used_up.event("task-unblocked T001");
        assert_eq!(again.point(), "execute 2 execute[T001]", "{end}");
    }
}

#[test]
fn a_verdict_is_no_attempt() {
    let words = ["task-claimed T001", "task-implemented T001", "task-verification-failed T001"];
    assert_eq!(built("approved").events(&words.repeat(2)).point(), "execute 2 execute[T001]");
    assert_eq!(built("approved").events(&words.repeat(3)).point(), "blocked 2 rework");
}

#[test]
fn done_on_unfinished_ground_is_verified_again() {
    let odd = built("approved").event("task-implemented T001").event("task-verified T002");
    assert!(odd.codes().contains(&"done-with-unfinished-dependency".to_owned()));
    assert_eq!(odd.point(), "execute 2 execute[T003]");
    let last = odd.event("task-implemented T003");
    assert_eq!(last.point(), "verify 2 verify");
    let settled = last.events(&["task-verified T001", "task-verified T003"]);
    assert_eq!(settled.point(), "cleanup 3 cleanup");
    assert!(!settled.codes().contains(&"done-with-unfinished-dependency".to_owned()));
}

/// Our verdict on the task, at this minute after nine.
fn verified_by_us(built: &Built, id: &str, minute: u32) -> Built {
    let at = format!("2026-03-02T{:02}:{:02}:00Z", 9 + minute / 60, minute % 60);
    let event = json!({"event_type": "task-verified", "task_id": id, "timestamp": at,
        "actor": "onward", "details": {"step": "verify/judge"}});
    let built = built.clone().line("onward/20260302-1100", &event.to_string());
    Built { minute, ..built }
}

/// A verdict leaves the doubt: asked for at each look, it would be asked for for ever.
#[test]
fn what_is_in_doubt_is_verified_once_until_what_the_doubt_comes_from_moves_again() {
    let graph: [(&str, &[&str]); 3] = [("T001", &[]), ("T002", &["T001"]), ("T003", &["T001"])];
    let doubted = built("approved").graph(&graph).phase(2).done(&["T002", "T003"]);
    let doubted = doubted.event("task-blocked T001");
    assert_eq!(doubted.point(), "verify 2 verify");
    let half = verified_by_us(&doubted, "T002", 60);
    assert_eq!(half.point(), "verify 2 verify");
    assert!(half.standing().point.summary.ends_with("verify T003"), "{:?}", half.standing().point);
    let settled = verified_by_us(&half, "T003", 61);
    assert_eq!(settled.point(), "blocked 2 rework");
    assert!(settled.standing().point.summary.contains("T001 is blocked"));
    let code = "done-with-unfinished-dependency".to_owned();
    assert!(doubted.codes().contains(&code) && !settled.codes().contains(&code));
    let moved = settled.clone().event("task-unblocked T001");
    assert_eq!(moved.point(), "execute 2 execute[T001]");
    assert!(moved.codes().contains(&code), "the ground has moved");
    let implemented = moved.event("task-implemented T001");
    assert_eq!(implemented.point(), "verify 2 verify");
    assert!(implemented.standing().point.summary.contains("T001, T002, T003"));
    // Another's verdict settles nothing: nothing says that it knew of the doubt.
    let theirs = doubted.event("task-verified T002").event("task-verified T003");
    assert_eq!(theirs.point(), "verify 2 verify");
}

fn finished() -> Built {
    built("approved").phase(2).done(&["T001", "T002", "T003"])
}

#[test]
fn what_comes_after_the_tasks_is_done_again() {
    // That of the contracts, and none of a pull request that was never described.
    assert_eq!(finished().codes(), ["missing-artifact"]);
    assert_eq!(finished().point(), "cleanup 3 cleanup");
    assert_eq!(finished().imported().phase("finished"), Phase::Pending, "it is still to be logged");
    assert_eq!(finished().phase(3).imported().phase("finished"), Phase::Done);
    assert_eq!(finished().phase(3).point(), "cleanup 3 cleanup");
    let described = finished().phase(3).file("pr-description.md", "# PR");
    assert_eq!(described.point(), "cleanup 3 cleanup");
    let next = described.phase(4);
    assert_eq!(next.point(), "consolidate 4 consolidate");
    let lost = next.clone().without("pr-description.md");
    assert_eq!(lost.point(), "cleanup 3 cleanup");
    assert!(lost.codes().contains(&"missing-artifact".to_owned()));
    let by_files = built("approved").done(&["T001", "T002", "T003"]).file("pr-description.md", "x");
    assert_eq!(by_files.point(), "consolidate 4 consolidate");
    assert_eq!(next.clone().file("summary.md", "outcome: success").point(), "complete -");
    for word in ["run-completed", "run_complete", "run-complete"] {
        let over = next.clone().event(word);
        assert_eq!(over.point(), "complete -", "{word}");
        assert_eq!(over.standing().status, Status::Completed);
    }
}

#[test]
fn a_run_that_failed_is_over_until_a_person_forces_it() {
    for word in ["run-failed", "run_cancelled", "run-canceled"] {
        let over = built("approved").done(&["T001"]).event(word);
        assert_eq!(over.standing().status, Status::Failed, "{word}");
        assert_eq!(over.point(), "execute 2 execute[T002]");
        assert!(over.codes().contains(&"run-over".to_owned()));
        let again = over.event("session-resumed");
        assert_eq!(again.standing().status, Status::Interrupted);
        assert_eq!(again.standing().resumes, 1);
        assert!(!again.codes().contains(&"run-over".to_owned()));
    }
}

#[test]
fn a_missing_artifact_is_made_again_by_its_producer_alone() {
    for (path, point) in [
        ("prd.md", "intake 0 intake"),
        ("plan.md", "planning 1 plan"),
        ("task-graph.json", "planning 1 tasks"),
        ("constitution.md", "approval 1 approve"),
    ] {
        let lost = finished().without(path);
        assert_eq!(lost.point(), point);
        let missing = lost.findings();
        let missing = missing.iter().find(|it| it.code == "missing-artifact").unwrap();
        assert!(missing.path.as_ref().unwrap().ends_with(path), "{missing:?}");
    }
    let lost = finished().without("prd.md").imported();
    let open = lost.run.state.step(&onward_core::address::Address::from_text("open")).unwrap();
    assert!(format!("{open:?}").contains("broken_down"), "what is there is not made again");
}

#[test]
fn the_report_has_what_the_users_of_the_system_know() {
    let report = built("approved").phase(2).done(&["T001"]).standing();
    assert_eq!(
        report.report,
        [
            "Run: 20260302-0930-rate-limiter-k3x9",
            "Phase: 2",
            "Tasks: 1/3 complete",
            "Last activity: 2026-03-02T09:04:00.000000Z",
            "Last completed: T001 - Do T001",
            "Next: execute T002",
        ]
    );
    assert_eq!(report.last_event.unwrap().kind, "task-verified");
    assert_eq!(report.started_at, Some("2026-03-02T09:01:00Z".parse().unwrap()));
}
