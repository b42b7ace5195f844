//! What is found to be wrong.

use crate::builder::{Built, RUN, built};

#[test]
fn a_broken_line_costs_itself_and_is_named() {
    let torn = built("approved").done(&["T001"]).line("executor/20260302-0900", "{\"event_ty");
    assert_eq!(torn.point(), "execute 2 execute[T002]");
    let findings = torn.findings();
    let broken = findings.iter().find(|it| it.code == "broken-line").unwrap();
    assert_eq!(
        broken.path.as_deref().unwrap(),
        format!("{RUN}/events/executor/20260302-0900.jsonl")
    );
    assert!(broken.message.contains("line 4"), "{broken:?}");
    let junk = (0..20).fold(torn, |built, _| built.line("executor/20260302-0900", "junk"));
    assert_eq!(junk.codes().iter().filter(|it| *it == "broken-line").count(), 6, "not endless");
    let nameless = built("approved").line("a/b", "{\"task_id\":\"T001\"}");
    assert!(nameless.codes().contains(&"broken-line".to_owned()));
}

#[test]
fn a_sound_run_has_no_finding_but_missing_contracts() {
    let whole = ["T001", "T002", "T003"]
        .iter()
        .fold(built("approved"), |built, id| built.file(&format!("tasks/{id}.md"), "a contract"));
    assert_eq!(whole.phase(2).done(&["T001"]).codes(), Vec::<String>::new());
    assert_eq!(built("approved").codes(), ["missing-artifact"]);
}

#[test]
fn old_and_future_runs_are_told() {
    let old =
        r#"{"event_type":"task-claimed","task_id":"T001","timestamp":"2026-02-01T10:00:00Z"}"#;
    let old = built("approved").line("executor/20260201-1000", old);
    assert!(old.codes().contains(&"stale-age".to_owned()));
    let future = built("approved").line(
        "x/y",
        r#"{"event_type":"task-claimed","task_id":"T001","timestamp":"2027-02-01T10:00:00Z"}"#,
    );
    assert!(future.codes().contains(&"clock-in-future".to_owned()));
}

/// The second version counts to 6: 3 is the approval, 4 the execution.
#[test]
fn a_transition_of_the_second_version_is_not_ahead_of_what_the_files_prove() {
    let ahead = "phase-ahead-of-evidence".to_owned();
    let to = |from: u32, to: u32, trigger: &str| {
        let kind = format!(r#""type":"phase_transition","from_phase":{from},"to_phase":{to}"#);
        format!(r#"{{{kind},"timestamp":"2026-03-02T11:00:00Z","trigger":"{trigger}"}}"#)
    };
    let running = built("approved").done(&["T001"]);
    let approved = running.clone().line("x/20260302-1100", &to(3, 4, "user_approval"));
    assert_eq!(approved.point(), "execute 2 execute[T002]");
    assert!(!approved.codes().contains(&ahead), "{:?}", approved.codes());
    let waits = built("graph").line("x/20260302-1100", &to(2, 3, "planning_complete"));
    assert_eq!(waits.point(), "approval 1 approve");
    assert!(!waits.codes().contains(&ahead), "{:?}", waits.codes());
    // In the first version 4 comes after the pull request.
    let first = running.line("x/20260302-1100", &to(3, 4, "phase_complete"));
    assert_eq!(first.point(), "execute 2 execute[T002]");
    assert!(first.codes().contains(&ahead), "{:?}", first.codes());
}

#[test]
fn events_about_tasks_that_are_none_are_told() {
    let odd = built("approved").event("task-implemented T999");
    assert!(odd.findings().iter().any(|it| it.message.contains("T999")));
}

#[test]
fn a_task_without_an_id_is_told_and_the_others_count() {
    let graph = r#"{"tasks":[{"title":"no id"},{"id":" "},{"id":"T001","title":"one"}]}"#;
    let built = built("approved").file("task-graph.json", graph);
    assert_eq!(built.point(), "execute 2 execute[T001]");
    let odd = built.findings().into_iter().find(|it| it.code == "odd-value").unwrap();
    assert_eq!(odd.path.unwrap(), format!("{RUN}/task-graph.json"));
    assert!(odd.message.contains("no id"), "{}", odd.message);
}

/// A count of none and a last one would contradict each other.
#[test]
fn the_last_task_that_was_completed_is_one_that_still_is() {
    let last = |built: Built| {
        let report = built.standing().report;
        report.iter().find(|it| it.starts_with("Last completed")).unwrap().clone()
    };
    let done = built("approved").done(&["T001", "T002"]);
    assert!(last(done.clone()).starts_with("Last completed: T002 - "), "{}", last(done));
    let failed = built("approved").done(&["T001", "T002"]).event("task-failed T002");
    assert!(last(failed.clone()).starts_with("Last completed: T001 - "), "{}", last(failed));
}

#[test]
fn a_task_that_comes_after_itself_is_told_and_can_run() {
    let graph = r#"{"tasks":[{"id":"T001","dependencies":["T001"]},{"id":"T002"}]}"#;
    let built = built("approved").file("task-graph.json", graph);
    assert_eq!(built.point(), "execute 2 execute[T001] execute[T002]");
    let odd: Vec<String> = built.findings().into_iter().map(|it| it.message).collect();
    let told = "T001 comes after itself; that counts as nothing";
    assert!(odd.iter().any(|it| it == told), "{odd:?}");
}

/// The plan is as it was approved: its task alone needs the contract.
#[test]
fn a_contract_that_is_missing_after_the_approval_costs_no_other_approval() {
    let said = |built: &Built| {
        let findings = built.findings().into_iter();
        let about = |it: &onward_core::finding::Finding| it.message.starts_with("the contract of");
        findings.filter(about).map(|it| it.message).collect::<Vec<_>>()
    };
    let waits = built("graph").file("tasks/T001.md", "x").file("tasks/T002.md", "x");
    assert_eq!(waits.point(), "planning 1 tasks");
    assert!(said(&waits)[0].ends_with("the breakdown into tasks is made again"));
    let approved = built("approved").phase(2).file("tasks/T002.md", "x").file("tasks/T003.md", "x");
    assert_eq!(approved.point(), "execute 2 execute[T001]");
    assert!(said(&approved)[0].contains("before the task begins, without another approval"));
    let done = approved.done(&["T001"]);
    assert_eq!(done.point(), "execute 2 execute[T002]");
    assert!(said(&done)[0].ends_with("its entry in the task graph stands for it"));
}
