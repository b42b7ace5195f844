//! How far tasks are: what was running, what it left, and how often it was tried.

use serde_json::json;

use crate::builder::{Built, built, line, task};

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
        ("pending", "try[1]/implement"),
        ("PENDING", "try[1]/implement"),
        ("failed", "try[1]/implement"),
        ("blocked", "try[1]/resolve"),
        ("Blocked", "try[1]/resolve"),
        ("verified", ""),
        ("nonsense", "try[1]/implement"),
        ("", "try[1]/implement"),
    ] {
        assert_eq!(next(&one(status, 1)), step, "{status}");
    }
    assert_eq!(next(&one("pre_complete", 1).output("t1", "pre_complete")), "try[1]/verify");
    assert_eq!(next(&one("pre-complete", 1).output("t1", "pre_complete")), "try[1]/verify");
    assert_eq!(next(&one("pre_complete", 1)), "try[1]/implement", "its output is gone");
}

#[test]
fn a_running_task_is_what_its_output_says_and_an_orphan_without_one() {
    for (output, step) in [
        ("pre_complete", "try[1]/verify"),
        ("blocked", "try[1]/resolve"),
        ("failed", "try[1]/implement"),
        ("running", "try[1]/implement"),
    ] {
        assert_eq!(next(&one("running", 1).output("t1", output)), step, "{output}");
        assert_eq!(next(&one("in_progress", 1).output("t1", output)), step, "{output}");
    }
    assert_eq!(next(&one("running", 1)), "try[1]/implement");
    for broken in ["", "{\"status\":\"pre_", "[]", r#"{"status":7}"#, "{}", "\0\0"] {
        let broken = one("running", 1).file("tasks/t1/output.json", broken);
        assert_eq!(next(&broken), "try[1]/implement");
        assert!(broken.codes().contains(&"orphan-task".to_owned()));
    }
}

#[test]
fn the_verdict_on_a_task_is_read_and_not_only_seen() {
    let implemented = one("running", 1).output("t1", "pre_complete");
    let good = implemented.clone().file("tasks/t1/verification.json", r#"{"verdict":"PASS"}"#);
    assert_eq!(line(&good.point()), "verification VERIFICATION verification");
    let bad = implemented.clone().file("tasks/t1/verification.json", r#"{"verdict":"FAIL"}"#);
    assert_eq!(next(&bad), "try[2]/implement");
    let broken = implemented.file("tasks/t1/verification.json", "{");
    assert_eq!(next(&broken), "try[1]/verify");
}

#[test]
fn the_cap_is_tested_before_an_attempt_is_added() {
    for attempts in 0..3 {
        let orphan = one("running", attempts);
        assert_eq!(orphan.standing().asks, None, "{attempts}");
        let report = orphan.standing().report.join("\n");
        assert!(report.contains(&format!("attempt {} is next", attempts + 1)), "{report}");
        assert_eq!(one("failed", attempts).standing().asks, None);
    }
    for used_up in [one("running", 3), one("failed", 3), one("failed", u32::MAX)] {
        assert!(used_up.standing().asks.unwrap().starts_with("t1: "));
        assert!(used_up.codes().contains(&"attempts-used-up".to_owned()));
        assert_eq!(line(&used_up.point()), "implementation IMPLEMENTATION implementation[t1]");
    }
    let output = one("running", 3).output("t1", "pre_complete");
    assert_eq!(output.standing().asks, None, "it did not fail");
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
        assert_eq!(next(&outside), "try[1]/implement");
        assert!(outside.codes().contains(&"path-refused".to_owned()));
    }
}
