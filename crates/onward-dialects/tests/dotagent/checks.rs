//! What is wrong with the files is told, and nothing else is.

use serde_json::json;

use crate::builder::{built, line, now, severity, task};

#[test]
fn a_run_in_order_has_no_finding() {
    let outputs = json!([
        {"phase": "REQUIREMENTS", "completed_at": "2026-04-11T08:09:00Z",
         "output": "memory/reports/demand.json"},
        {"phase": "ARCHITECTURE", "completed_at": "2026-04-11T08:41:00Z",
         "output": "./memory/reports/final_design.json"}]);
    let whole = built("IMPLEMENTATION").approved().demand().set("completed_phases", outputs);
    let whole = whole.tasks(&[task("t1", "pending", 0)]);
    assert_eq!(whole.codes(), ["missing-artifact"]);
    let missing = &whole.findings()[0];
    assert_eq!(missing.path.as_deref(), Some("memory/reports/final_design.json"));
    assert!(missing.hint.as_deref().unwrap().contains("--from roundtable"), "{missing:?}");
    let lost = built("IMPLEMENTATION").tasks(&[task("t1", "verified", 1)]);
    let lost = &lost.findings()[0];
    assert_eq!(lost.code, "missing-artifact");
    assert!(lost.hint.as_deref().unwrap().contains("--from implementation[t1]"), "{lost:?}");
    let whole = whole.file("reports/final_design.json", r#"{"a":1}"#);
    assert_eq!(whole.codes(), Vec::<String>::new());
    let broken = whole.file("reports/demand.json", "{\"goal");
    assert_eq!(broken.codes(), ["artifact-unproved"]);
}

#[test]
fn a_moment_in_the_future_is_corruption() {
    let future = "2026-04-12T10:00:00Z";
    for key in ["started_at", "last_updated"] {
        let ahead = built("ARCHITECTURE").set(key, json!(future));
        assert_eq!(ahead.codes(), ["clock-in-future"], "{key}");
        assert_eq!(severity(&ahead.findings()[0]), "blocking");
    }
    let completed = json!([{"phase": "REQUIREMENTS", "completed_at": future}]);
    assert_eq!(
        built("ARCHITECTURE").set("completed_phases", completed).codes(),
        ["clock-in-future"]
    );
    let said = json!([{"phase": "REQUIREMENTS", "approved_at": future}]);
    assert_eq!(built("ARCHITECTURE").set("user_checkpoints", said).codes(), ["clock-in-future"]);
    let mut late = task("t1", "pending", 0);
    late["started_at"] = json!(future);
    assert_eq!(built("IMPLEMENTATION").tasks(&[late]).codes(), ["clock-in-future"]);
}

#[test]
fn age_is_measured_from_the_last_activity_and_not_from_the_start() {
    let begun = built("ARCHITECTURE").set("started_at", json!("2026-01-01T00:00:00Z"));
    assert_eq!(begun.codes(), Vec::<String>::new());
    let exactly = begun.clone().set("last_updated", json!("2026-04-04T10:00:00Z"));
    assert_eq!(exactly.codes(), Vec::<String>::new());
    let older = begun.set("last_updated", json!("2026-04-04T09:59:59Z"));
    assert_eq!(older.codes(), ["stale-age"]);
    let over = built("REFLECTION").tasks(&[]).file("reflections/x.json", r#"{"a":1}"#);
    let over = over.set("last_updated", json!("2026-01-01T00:00:00Z"));
    assert_eq!(over.codes(), Vec::<String>::new(), "what is over does not age");
}

#[test]
fn phases_only_move_forward() {
    let entry = |phase: &str| json!({"phase": phase, "completed_at": "2026-04-11T08:00:00Z"});
    let back = json!([entry("ARCHITECTURE"), entry("REQUIREMENTS")]);
    let back = built("IMPLEMENTATION").set("completed_phases", back);
    let back = back.tasks(&[task("t1", "pending", 0)]);
    assert_eq!(back.codes(), ["status-disagrees"]);
    let later = json!([entry("REQUIREMENTS"), entry("VERIFICATION")]);
    let later = built("ARCHITECTURE").set("completed_phases", later);
    assert_eq!(later.codes(), ["status-disagrees"]);
    let ahead = built("VERIFICATION").set("completed_phases", json!([entry("REQUIREMENTS")]));
    let ahead = ahead.tasks(&[]);
    assert_eq!(ahead.codes(), ["phase-ahead-of-evidence"]);
    let odd = built("ARCHITECTURE")
        .set("completed_phases", json!([entry("REQUIREMENTS"), entry("DANCING")]));
    assert_eq!(odd.codes(), ["odd-value"]);
    let open = built("VERIFICATION").tasks(&[task("t1", "pending", 0)]);
    assert_eq!(open.codes(), ["phase-ahead-of-evidence"]);
    assert_eq!(line(&open.point()), "verification VERIFICATION verification");
    let failed = built("REFLECTION").tasks(&[]);
    let failed = failed.file("reports/verification.json", r#"{"verdict":"FAIL"}"#);
    assert_eq!(failed.codes(), ["status-disagrees"]);
}

#[test]
fn an_interrupted_write_is_a_warning_and_the_file_that_parses_is_used() {
    let unsafe_ = built("ARCHITECTURE").set("interruption_safe", json!(false));
    assert_eq!(unsafe_.codes(), ["interrupted-write"]);
    assert_eq!(severity(&unsafe_.findings()[0]), "warning");

    let tmp = built("VERIFICATION").phase.to_string();
    let both = built("ARCHITECTURE").demand().file("state/phase.json.tmp", &tmp);
    assert_eq!(both.codes(), ["leftover-temp-file"]);
    assert_eq!(both.findings()[0].path.as_deref(), Some("memory/state/phase.json.tmp"));
    assert_eq!(severity(&both.findings()[0]), "warning");
    assert_eq!(line(&both.point()), "architects ARCHITECTURE architects", "the main file counts");

    let torn = built("ARCHITECTURE").file("state/phase.json", "{\"workf");
    let torn = torn.file("state/phase.json.tmp", &tmp).tasks(&[]);
    assert_eq!(line(&torn.point()), "verification VERIFICATION verification");
    assert_eq!(torn.codes(), ["leftover-temp-file"]);

    let neither = built("ARCHITECTURE").file("state/phase.json", "{\"workf").tasks(&[]);
    let neither = neither.file("state/phase.json.tmp", "{");
    assert_eq!(neither.codes(), ["state-rebuilt", "leftover-temp-file"]);
}

#[test]
fn a_temporary_output_that_is_whole_counts_too() {
    let running = built("IMPLEMENTATION").tasks(&[task("t1", "running", 1)]);
    let left = running.file("tasks/t1/output.json.tmp", r#"{"status":"pre_complete"}"#);
    let next = left.imported().left();
    assert_eq!(next[0].as_str(), "implementation[t1]/try[1]/verify");
    assert_eq!(left.codes(), ["leftover-temp-file", "status-disagrees"]);
}

#[test]
fn two_state_files_that_cannot_be_read_block_and_the_reports_are_offered() {
    let lost = built("X").file("state/phase.json", "{").file("state/execution.json", "\0");
    let lost = lost.demand();
    assert_eq!(lost.codes(), ["state-unreadable"]);
    assert_eq!(severity(&lost.findings()[0]), "blocking");
    assert_eq!(line(&lost.point()), "approval REQUIREMENTS approve");
    let tasks = built("IMPLEMENTATION").file("state/execution.json", "[");
    assert_eq!(tasks.codes(), ["state-rebuilt"]);
    assert_eq!(line(&tasks.point()), "implementation IMPLEMENTATION plan");
    let missing = built("IMPLEMENTATION");
    assert_eq!(missing.codes(), ["missing-artifact"]);
}

#[test]
fn a_phase_that_is_none_is_told() {
    for odd in [json!(null), json!("DANCING"), json!(7)] {
        let odd = built("X").set("current_phase", odd);
        assert_eq!(odd.codes(), ["missing-current-phase"]);
    }
    let small = built("ARCHITECTURE").set("current_phase", json!(" architecture "));
    assert_eq!(small.codes(), Vec::<String>::new());
    let wrong = built("ARCHITECTURE").set("completed_phases", json!("none"));
    assert_eq!(wrong.codes(), ["phase-ahead-of-evidence", "odd-value"]);
}

#[test]
fn text_of_the_files_stays_one_line() {
    let wild = built("IMPLEMENTATION").set("workflow_id", json!("a\nIgnore\u{7} all\u{1b}[31m"));
    let mut bad = task("t1", "failed", 1);
    bad["last_error"] = json!("x\n".repeat(1000));
    let wild = wild.tasks(&[bad]);
    for text in wild.standing().report.iter().chain([&wild.standing().point.summary]) {
        assert!(!text.contains(char::is_control) && text.len() < 400, "{text:?}");
    }
    assert!(wild.told().findings(now()).iter().all(|it| !it.message.contains('\n')));
}

/// A crash between the end of the first phase and the user's answer. The table says how it goes on;
/// that no answer is known is told.
#[test]
fn a_run_between_the_demand_and_the_yes_to_it_goes_on_and_says_so() {
    let between = built("ARCHITECTURE").demand().set("phase_status", json!("complete"));
    assert_eq!(line(&between.point()), "architects ARCHITECTURE architects");
    assert_eq!(between.codes(), ["phase-ahead-of-evidence"]);
    let said = &between.findings()[0];
    assert!(said.hint.as_deref().unwrap().contains("--from approval"), "{said:?}");
    assert_eq!(between.approved().codes(), Vec::<String>::new());
    let begun = built("ARCHITECTURE").demand();
    assert_eq!(begun.codes(), Vec::<String>::new());
}

#[test]
fn tasks_that_the_design_lists_are_known_before_they_are_planned() {
    let design = r#"{"execution_plan":{"tasks":[{"id":"t1"},{"id":2}]}}"#;
    let here = |phase: &str| built(phase).demand().file("reports/final_design.json", design);
    let plain = here("ARCHITECTURE").approved().set("phase_status", json!("complete"));
    assert_eq!(plain.codes(), Vec::<String>::new(), "{:?}", plain.findings());
    assert_eq!(plain.point().summary, "IMPLEMENTATION: plan the tasks of the design, t1, 2");
    let lost = here("IMPLEMENTATION").findings();
    let lost = lost.iter().find(|it| it.code == "missing-artifact").unwrap();
    assert_eq!(lost.message, "it is missing: the design lists t1, 2, and none has begun");
}

#[test]
fn an_output_without_a_name_is_none() {
    let entry = json!([{"phase": "REQUIREMENTS", "completed_at": "2026-04-11T08:30:00Z",
        "output": ""}]);
    let here = built("ARCHITECTURE").demand().set("completed_phases", entry);
    assert_eq!(here.codes(), Vec::<String>::new(), "{:?}", here.findings());
}
