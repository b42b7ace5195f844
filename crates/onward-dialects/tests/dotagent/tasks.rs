//! How far tasks are: what was running, what it left, and how often it was tried.

use serde_json::json;

use crate::builder::{Built, built, line, severity, task};

fn one(status: &str, attempts: u32) -> Built {
    built("IMPLEMENTATION").tasks(&[task("t1", status, attempts)])
}

/// The step of the task that would start, or nothing when it is settled.
fn next(built: &Built) -> String {
    let left = built.imported().left();
    let own = left.iter().filter_map(|it| it.as_str().strip_prefix("implementation[t1]/"));
    own.collect::<Vec<&str>>().join(" ")
}

#[test]
fn a_task_goes_on_where_its_status_says() {
    for (status, step) in [
        ("pending", "try[1]/brief"),
        ("PENDING", "try[1]/brief"),
        ("failed", "try[1]/brief"),
        ("blocked", "try[1]/resolve"),
        ("Blocked", "try[1]/resolve"),
        ("verified", ""),
        ("nonsense", "try[1]/brief"),
        ("", "try[1]/brief"),
    ] {
        assert_eq!(next(&one(status, 1)), step, "{status}");
    }
    assert_eq!(next(&one("pre_complete", 1).output("t1", "pre_complete")), "try[1]/verify");
    assert_eq!(next(&one("pre-complete", 1).output("t1", "pre_complete")), "try[1]/verify");
    assert_eq!(next(&one("pre_complete", 1)), "try[1]/brief", "its output is gone");
}

#[test]
fn a_running_task_is_what_its_output_says_and_an_orphan_without_one() {
    for (output, step) in [
        ("pre_complete", "try[1]/verify"),
        ("blocked", "try[1]/resolve"),
        ("failed", "try[1]/brief"),
        ("running", "try[1]/brief"),
    ] {
        assert_eq!(next(&one("running", 1).output("t1", output)), step, "{output}");
        assert_eq!(next(&one("in_progress", 1).output("t1", output)), step, "{output}");
    }
    assert_eq!(next(&one("running", 1)), "try[1]/brief");
    for broken in ["", "{\"status\":\"pre_", "[]", r#"{"status":7}"#, "{}", "\0\0"] {
        let broken = one("running", 1).file("tasks/t1/output.json", broken);
        assert_eq!(next(&broken), "try[1]/brief");
        assert!(broken.codes().contains(&"orphan-task".to_owned()));
    }
}

#[test]
fn the_verdict_on_a_task_is_read_and_not_only_seen() {
    let implemented = one("running", 1).output("t1", "pre_complete");
    let good = implemented.clone().file("tasks/t1/verification.json", r#"{"verdict":"PASS"}"#);
    assert_eq!(line(&good.point()), "verification VERIFICATION verification");
    let bad = implemented.clone().file("tasks/t1/verification.json", r#"{"verdict":"FAIL"}"#);
    assert_eq!(next(&bad), "try[2]/brief");
    let broken = implemented.file("tasks/t1/verification.json", "{");
    assert_eq!(next(&broken), "try[1]/verify");
}

#[test]
fn the_cap_is_tested_before_an_attempt_is_added() {
    for attempts in 0..3 {
        let orphan = one("running", attempts);
        assert!(!orphan.codes().contains(&"attempts-used-up".to_owned()), "{attempts}");
        let report = orphan.standing().report.join("\n");
        assert!(report.contains(&format!("attempt {} is next", attempts + 1)), "{report}");
        assert!(one("failed", attempts).codes().is_empty());
    }
    for used_up in [one("running", 3), one("failed", 3), one("failed", u32::MAX)] {
        let asked = used_up.findings();
        let asked = asked.iter().find(|it| it.code == "attempts-used-up").unwrap();
        assert_eq!(severity(asked), "blocking");
        assert_eq!(line(&used_up.point()), "implementation IMPLEMENTATION implementation[t1]");
    }
    let output = one("running", 3).output("t1", "pre_complete");
    assert!(!output.codes().contains(&"attempts-used-up".to_owned()), "it did not fail");
}

#[test]
fn what_the_state_does_not_know_is_told() {
    let codes = |built: Built| built.codes();
    assert_eq!(codes(one("running", 1)), ["orphan-task"]);
    let ahead = one("running", 1).output("t1", "blocked");
    assert_eq!(ahead.codes(), ["status-disagrees"]);
    assert_eq!(ahead.findings()[0].step.as_deref(), Some("implementation[t1]"));
    assert_eq!(codes(one("perhaps", 1)), ["odd-value"]);
    assert_eq!(codes(one("pre_complete", 1)), ["missing-artifact"]);
    assert_eq!(codes(one("verified", 1)), ["missing-artifact"]);
    assert_eq!(codes(one("verified", 1).output("t1", "pre_complete")), Vec::<String>::new());
    let twice = built("IMPLEMENTATION").tasks(&[task("t1", "pending", 0), task("t1", "x", 0)]);
    assert_eq!(twice.codes(), ["status-disagrees"]);
}

#[test]
fn an_output_elsewhere_in_the_project_counts_and_one_outside_does_not() {
    let mut elsewhere = task("t1", "running", 1);
    elsewhere["output"] = json!("memory/out/t1.json");
    let inside = built("IMPLEMENTATION").tasks(&[elsewhere.clone()]);
    let inside = inside.file("out/t1.json", r#"{"status":"pre_complete"}"#);
    assert_eq!(next(&inside), "try[1]/verify");
    for refused in ["/etc/passwd", "../t1.json", "a/../../b"] {
        elsewhere["output"] = json!(refused);
        let outside = built("IMPLEMENTATION").tasks(&[elsewhere.clone()]);
        assert_eq!(next(&outside), "try[1]/brief");
        assert!(outside.codes().contains(&"path-refused".to_owned()));
    }
}

#[test]
fn a_verified_task_lets_the_next_begin_whatever_came_before_it() {
    let mut tasks = [task("t1", "pending", 0), task("t2", "verified", 1), task("t3", "pending", 0)];
    tasks[1]["depends_on"] = json!(["t1"]);
    tasks[2]["depends_on"] = json!(["t2"]);
    let built = built("IMPLEMENTATION").tasks(&tasks).output("t2", "pre_complete");
    assert_eq!(
        line(&built.point()),
        "implementation IMPLEMENTATION implementation[t1] implementation[t3]"
    );
}

#[test]
fn what_a_task_comes_after_is_known_in_every_spelling() {
    for after in [
        json!({"depends_on": ["t1"]}),
        json!({"dependencies": ["t1"]}),
        json!({"dependencies": "t1"}),
    ] {
        let mut second = task("t2", "pending", 0);
        second.as_object_mut().unwrap().extend(after.as_object().unwrap().clone());
        let built = built("IMPLEMENTATION").tasks(&[task("t1", "pending", 0), second]);
        let point = line(&built.point());
        assert_eq!(point, "implementation IMPLEMENTATION implementation[t1]", "{after}");
    }
}

#[test]
fn a_task_without_an_id_is_told_and_the_others_count() {
    let nameless = json!({"status": "running", "attempts": 1});
    let built = built("IMPLEMENTATION").tasks(&[nameless, task("t1", "pending", 0)]);
    assert_eq!(line(&built.point()), "implementation IMPLEMENTATION implementation[t1]");
    assert!(built.codes().contains(&"odd-value".to_owned()), "{:?}", built.codes());
}

#[test]
fn tasks_by_their_ids_are_tasks() {
    let tasks = json!({"t1": {"status": "verified"}, "t2": {"status": "pending"}});
    let text = json!({"workflow_id": "wf-20260411-auth", "tasks": tasks}).to_string();
    let built = built("IMPLEMENTATION").file("state/execution.json", &text);
    assert_eq!(line(&built.point()), "implementation IMPLEMENTATION implementation[t2]");
    assert!(!built.codes().contains(&"odd-value".to_owned()), "{:?}", built.codes());
}

#[test]
fn what_another_task_left_counts_for_that_one_alone() {
    let theirs = r#"{"task_id":"t2","status":"pre_complete"}"#;
    let strange = one("running", 1).file("tasks/t1/output.json", theirs);
    assert_eq!(next(&strange), "try[1]/brief");
    assert_eq!(strange.codes(), ["status-disagrees", "orphan-task"]);
    let said = &strange.findings()[0];
    assert_eq!(said.message, "it names `t2` and counts as no output of t1");
    assert_eq!(said.path.as_deref(), Some("memory/tasks/t1/output.json"));
    let said_done = one("pre_complete", 1).file("tasks/t1/output.json", theirs);
    assert_eq!(next(&said_done), "try[1]/brief");
    let judged = one("running", 1).output("t1", "pre_complete");
    let judged = judged.file("tasks/t1/verification.json", r#"{"task_id":"t2","verdict":"PASS"}"#);
    assert_eq!(next(&judged), "try[1]/verify");
    for own in [r#""t1""#, r#"" t1 ""#, r#""""#, "null", "[]"] {
        let own = format!(r#"{{"task_id":{own},"status":"pre_complete"}}"#);
        let own = one("running", 1).file("tasks/t1/output.json", &own);
        assert_eq!(next(&own), "try[1]/verify", "{own:?}");
    }
}

#[test]
fn a_blocked_task_is_resolved_whatever_blocks_it() {
    for reason in ["boundary_violation", "contract_change", "dependency_issue", "something else"] {
        let output = json!({"task_id": "t1", "status": "blocked", "blocked_reason": reason,
            "blocked_details": {"path": "src/a.rs"}, "files_modified": []});
        let blocked = one("running", 1).file("tasks/t1/output.json", &output.to_string());
        assert_eq!(next(&blocked), "try[1]/resolve", "{reason}");
    }
}

#[test]
fn a_failed_task_is_tried_again_in_each_of_its_ways() {
    for strategy in ["simple_retry", "context_enhancement", "scope_reduction", "escalation"] {
        let mut task = task("t1", "failed", 1);
        task["retry_strategy"] = strategy.into();
        task["last_error"] = "Timeout after 120s".into();
        assert_eq!(next(&built("IMPLEMENTATION").tasks(&[task])), "try[1]/brief", "{strategy}");
    }
}
