//! Each row of the recovery table, as files.

use onward_core::{plan::Status, state::Phase};
use onward_dialects::File;
use serde_json::json;

use crate::builder::{Built, PHASES, built, line, task};

const DESIGN: &str = r#"{"contracts":[]}"#;

fn at(built: &Built) -> String {
    line(&built.point())
}

fn verdict(text: &str) -> Built {
    built("VERIFICATION").file("reports/verification.json", text)
}

#[test]
fn requirements_want_a_demand_and_then_a_yes() {
    let new = built("REQUIREMENTS");
    assert_eq!(at(&new), "requirements REQUIREMENTS requirements");
    for broken in ["", "{", "[]", "{}", "null", "\0\0\0"] {
        let broken = new.clone().file("reports/demand.json", broken);
        assert_eq!(at(&broken), "requirements REQUIREMENTS requirements");
    }
    let written = new.demand();
    assert_eq!(at(&written), "approval REQUIREMENTS approve");
    assert_eq!(written.standing().status, Status::Waiting);
    assert!(!written.standing().needs_agents);
    assert_eq!(at(&written.approved()), "architects ARCHITECTURE architects");
}

#[test]
fn a_checkpoint_of_another_phase_is_no_yes_to_the_demand() {
    let other = json!([{"phase": "ARCHITECTURE", "approved_at": "2026-04-11T08:10:00Z"}]);
    let written = built("REQUIREMENTS").demand().set("user_checkpoints", other);
    assert_eq!(at(&written), "approval REQUIREMENTS approve");
}

#[test]
fn architecture_runs_no_architect_twice() {
    let none = built("ARCHITECTURE").demand().approved();
    assert_eq!(at(&none), "architects ARCHITECTURE architects");
    let broken = none.clone().file("reports/designs/fast.json", "{\"parts\":");
    assert_eq!(at(&broken), "architects ARCHITECTURE architects");
    let designs = none.file("reports/designs/fast.json", DESIGN);
    assert_eq!(at(&designs), "roundtable ARCHITECTURE roundtable");
    assert_eq!(designs.imported().phase("architects[simple]/record"), Phase::Done);
    let unfinished = designs.clone().file("reports/final_design.json", "{\"contr");
    assert_eq!(at(&unfinished), "roundtable ARCHITECTURE roundtable");
    let merged = designs.file("reports/final_design.json", DESIGN);
    assert_eq!(at(&merged), "implementation IMPLEMENTATION plan");
    let planned = merged.tasks(&[task("task-001", "pending", 0)]);
    assert_eq!(at(&planned), "implementation IMPLEMENTATION implementation[task-001]");
}

/// The pointer was not moved on; the reports are younger than the yes that they rest on.
#[test]
fn designs_that_came_after_the_yes_to_the_demand_count_whatever_the_pointer_says() {
    let at = |built: &Built, path: &str, hour: u32| {
        let mut built = built.clone().file(path, DESIGN);
        let modified = format!("2026-04-11T{hour:02}:00:00Z").parse().ok();
        let path = format!("memory/{path}");
        let bytes = built.files.bytes(&path).unwrap().to_vec();
        built.files.insert(path, File { bytes, modified });
        built
    };
    let asked = built("REQUIREMENTS").demand().approved();
    let older = at(&asked, "reports/designs/fast.json", 8);
    assert_eq!(line(&older.point()), "architects ARCHITECTURE architects", "of a run before");
    let designed = at(&asked, "reports/designs/fast.json", 9);
    assert_eq!(line(&designed.point()), "roundtable ARCHITECTURE roundtable");
    let merged = at(&designed, "reports/final_design.json", 9);
    assert_eq!(line(&merged.point()), "implementation IMPLEMENTATION plan");
}

/// The state of the phases is lost, and that of the tasks is not.
#[test]
fn tasks_tell_that_they_were_planned_where_no_phase_is_named() {
    let tasks = [task("task-001", "verified", 1), task("task-002", "running", 1)];
    for phase in [json!(null), json!("NONE")] {
        let lost = built("IMPLEMENTATION").set("current_phase", phase).tasks(&tasks);
        assert_eq!(at(&lost), "implementation IMPLEMENTATION implementation[task-002]");
    }
}

/// Without tasks and without the design that names them, what makes the design runs again.
#[test]
fn a_design_that_is_gone_is_made_again_where_nothing_else_names_the_tasks() {
    let lost = built("IMPLEMENTATION").demand().approved();
    assert_eq!(at(&lost), "architects ARCHITECTURE architects");
    let lost = lost.file("reports/designs/fast.json", DESIGN);
    assert_eq!(at(&lost), "roundtable ARCHITECTURE roundtable");
    let named = json!([{"phase": "REQUIREMENTS"},
        {"phase": "ARCHITECTURE", "output": "memory/reports/final_design.json"}]);
    let findings = lost.clone().set("completed_phases", named).findings();
    let missing = findings.iter().find(|it| it.code == "missing-artifact").unwrap();
    assert_eq!(missing.hint.as_deref(), Some("the step that makes it runs again"));
    let tasks = lost.clone().tasks(&[task("task-001", "pending", 0)]);
    assert_eq!(at(&tasks), "implementation IMPLEMENTATION implementation[task-001]");
    let bare = built("IMPLEMENTATION");
    assert_eq!(at(&bare), "implementation IMPLEMENTATION plan", "nothing to make it of");
}

#[test]
fn implementation_names_the_tasks_that_can_run() {
    let none = built("IMPLEMENTATION");
    assert_eq!(at(&none), "implementation IMPLEMENTATION plan");
    let mut waits = task("task-003", "pending", 0);
    waits["depends_on"] = json!(["task-002", "task-001", "gone", "task-003"]);
    let some = none.tasks(&[
        task("task-001", "verified", 1),
        task("task-002", "pending", 0),
        waits,
        task("task 4/../x", "pending", 0),
    ]);
    let steps = "implementation[task-002] implementation[task%204%2F..%2Fx]";
    assert_eq!(at(&some), format!("implementation IMPLEMENTATION {steps}"));
}

#[test]
fn tasks_that_wait_for_each_other_all_run() {
    let (mut a, mut b) = (task("a", "pending", 0), task("b", "pending", 0));
    a["depends_on"] = json!(["b"]);
    b["depends_on"] = json!(["a"]);
    let circle = built("IMPLEMENTATION").tasks(&[a, b]);
    assert_eq!(at(&circle), "implementation IMPLEMENTATION implementation[a] implementation[b]");
}

/// The circle is named; what lies outside of it still waits.
#[test]
fn of_a_circle_only_its_own_dependencies_are_dropped() {
    let after = |id: &str, others: &[&str]| {
        let mut task = task(id, "pending", 0);
        task["dependencies"] = json!(others);
        task
    };
    let tasks = [after("a", &["b"]), after("b", &["a"]), after("c", &["b"]), after("d", &["c"])];
    let circle = built("IMPLEMENTATION").tasks(&tasks);
    assert_eq!(at(&circle), "implementation IMPLEMENTATION implementation[a] implementation[b]");
    let said = circle.findings().iter().map(|it| it.message.clone()).collect::<String>();
    assert!(said.contains("in a circle: a, b;"), "{said}");
}

const PLANNED: &str = r#"{"contracts":[],"execution_plan":{"tasks":[
    {"id":"a","summary":"one"},{"id":"b","summary":"two","dependencies":["a"]},
    {"id":"c","summary":"three","depends_on":["b"]}]}}"#;

fn verdict_of(built: Built, id: &str, word: &str) -> Built {
    let text = json!({"task_id": id, "verdict": word}).to_string();
    built.file(&format!("tasks/{id}/verification.json"), &text)
}

/// execution.json is gone or cut off: the design names the tasks, and what they left says how far
/// they are.
#[test]
fn a_list_of_tasks_that_is_lost_is_made_again_from_what_they_left() {
    let left =
        built("IMPLEMENTATION").demand().approved().file("reports/final_design.json", PLANNED);
    assert_eq!(at(&left), "implementation IMPLEMENTATION plan", "nothing was left");
    let left = verdict_of(left.output("a", "pre_complete"), "a", "PASS");
    for (broken, why) in [(None, "it is missing"), (Some("{\"tasks\":[{\"id"), "cannot be read")] {
        let lost = match broken {
            Some(text) => left.clone().file("state/execution.json", text),
            None => left.clone(),
        };
        assert_eq!(at(&lost), "implementation IMPLEMENTATION implementation[b]");
        let findings = lost.findings();
        let told = findings.iter().find(|it| it.code == "state-rebuilt").unwrap();
        assert!(told.message.contains(why) && told.message.contains("verified: a"), "{told:?}");
        assert_eq!(lost.imported().phase("implementation[a]/verified"), Phase::Done);
        // What came after it, and a task that no plan has.
        let more = lost.clone().output("b", "blocked").output("x", "pre_complete");
        let next = "implementation[b] implementation[x]";
        assert_eq!(at(&more), format!("implementation IMPLEMENTATION {next}"));
        let all = ["b", "c"]
            .iter()
            .fold(lost, |lost, id| verdict_of(lost.output(id, "pre_complete"), id, "PASS"));
        assert_eq!(at(&all), "verification VERIFICATION verification");
    }
    // A verdict alone is one, too; one that says no, or is another task's, is none.
    let said = |id: &str, of: &str, word: &str| {
        let lost = built("IMPLEMENTATION").file("reports/final_design.json", PLANNED);
        let text = json!({"task_id": of, "verdict": word}).to_string();
        at(&lost.output("c", "failed").file(&format!("tasks/{id}/verification.json"), &text))
    };
    assert_eq!(said("a", "a", "PASS"), "implementation IMPLEMENTATION implementation[b]");
    for (of, word) in [("a", "FAIL"), ("b", "PASS")] {
        assert_eq!(said("a", of, word), "implementation IMPLEMENTATION implementation[a]");
    }
}

#[test]
fn what_a_run_before_this_one_left_rebuilds_nothing() {
    let left =
        built("IMPLEMENTATION").demand().approved().file("reports/final_design.json", PLANNED);
    let mut left = verdict_of(left.output("a", "pre_complete"), "a", "PASS");
    for name in ["output.json", "verification.json"] {
        let path = format!("memory/tasks/a/{name}");
        let bytes = left.files.bytes(&path).unwrap().to_vec();
        let modified = "2026-04-11T05:29:59Z".parse().ok();
        left.files.insert(path, File { bytes, modified });
    }
    assert_eq!(at(&left), "implementation IMPLEMENTATION plan");
}

/// The run was past its tasks: what is known of them is that they are verified.
#[test]
fn past_the_implementation_a_lost_list_holds_verified_tasks_alone() {
    let past = built("VERIFICATION").demand().approved().file("reports/final_design.json", PLANNED);
    let past = past.output("a", "pre_complete").output("repair-1", "pre_complete");
    assert_eq!(at(&past), "verification VERIFICATION verification");
    assert!(!past.codes().contains(&"phase-ahead-of-evidence".to_owned()), "{:?}", past.findings());
}

#[test]
fn when_all_tasks_are_verified_the_verification_is_next_and_an_older_verdict_does_not_count() {
    let all = built("IMPLEMENTATION").tasks(&[task("task-001", "verified", 1)]);
    assert_eq!(at(&all), "verification VERIFICATION verification");
    let older = all.file("reports/verification.json", r#"{"verdict":"FAIL"}"#);
    assert_eq!(at(&older), "verification VERIFICATION verification");
}

#[test]
fn verification_wants_a_verdict_that_parses() {
    assert_eq!(at(&built("VERIFICATION")), "verification VERIFICATION verification");
    assert_eq!(at(&verdict("{\"verdict\":\"PA")), "verification VERIFICATION verification");
    assert_eq!(at(&verdict("\"PASS\"")), "verification VERIFICATION verification");
}

#[test]
fn a_verdict_is_good_in_these_spellings_and_bad_in_all_others() {
    for good in [
        r#"{"verdict":"PASS"}"#,
        r#"{"verdict":"passed"}"#,
        r#"{"verdict":"APPROVED"}"#,
        r#"{"verdict":"ok"}"#,
        r#"{"verdict":true}"#,
        r#"{"status":"Passed"}"#,
        r#"{"result":"OK"}"#,
        r#"{"verdict":"PASS","status":"FAIL","result":false}"#,
        r#"{"status":"pass","result":"FAIL"}"#,
    ] {
        assert_eq!(at(&verdict(good)), "reflection REFLECTION reflection", "{good}");
    }
    for bad in [
        r#"{"verdict":"FAIL"}"#,
        r#"{"verdict":"FAILED","status":"PASS"}"#,
        r#"{"verdict":false}"#,
        r#"{"verdict":null,"status":"PASS"}"#,
        r#"{"status":"complete"}"#,
        r#"{"result":1}"#,
        r#"{"issues":[]}"#,
        "{}",
    ] {
        assert_eq!(at(&verdict(bad)), "implementation IMPLEMENTATION repair", "{bad}");
    }
}

#[test]
fn a_failed_verification_goes_back_to_the_tasks_that_are_open_or_else_to_a_repair() {
    let failed = verdict(r#"{"verdict":"FAIL"}"#);
    let verified = failed.clone().tasks(&[task("task-001", "verified", 1)]);
    assert_eq!(at(&verified), "implementation IMPLEMENTATION repair");
    assert_eq!(verified.imported().phase("implementation[task-001]/try[1]/verify"), Phase::Done);
    let open = failed.tasks(&[task("task-001", "verified", 1), task("task-002", "pending", 0)]);
    assert_eq!(at(&open), "implementation IMPLEMENTATION implementation[task-002]");
}

#[test]
fn reflection_is_over_when_it_is_written_whatever_the_status_says() {
    for status in ["pending", "in_progress", "complete", "failed"] {
        let end = built("REFLECTION").set("phase_status", json!(status));
        assert_eq!(at(&end), "reflection REFLECTION reflection", "{status}");
        let written = end.clone().file("reflections/wf.json", r#"{"what_worked":[]}"#);
        assert_eq!(at(&written), "complete -", "{status}");
        assert_eq!(written.standing().status, Status::Completed);
        for none in ["reflections/_aggregate.json", "evolution/x.json"] {
            let other = end.clone().file(none, r#"{"what_worked":[]}"#);
            assert_eq!(at(&other), "reflection REFLECTION reflection", "{none}");
        }
    }
}

#[test]
fn a_reflection_on_another_run_does_not_count() {
    let end = built("REFLECTION");
    let theirs = end.clone().file("reflections/x.json", r#"{"workflow_id":"wf-old"}"#);
    assert_eq!(at(&theirs), "reflection REFLECTION reflection");
    let ours = end.clone().file("reflections/x.json", r#"{"workflow_id":"wf-20260411-auth"}"#);
    assert_eq!(at(&ours), "complete -");
    let mut old = end.file("reflections/x.json", r#"{"note":1}"#);
    let mut file = old.files.remove("memory/reflections/x.json").unwrap();
    file.modified = Some("2026-04-10T00:00:00Z".parse().unwrap());
    old.files.insert("memory/reflections/x.json", file);
    assert_eq!(at(&old), "reflection REFLECTION reflection", "written before the run began");
}

#[test]
fn a_crash_between_two_phases_is_no_fresh_start() {
    for phase in PHASES {
        for status in ["pending", "complete", "failed", "COMPLETED", "", "odd"] {
            let here = built(phase).set("phase_status", json!(status));
            assert_eq!(at(&here), at(&built(phase)), "{phase} {status}");
        }
    }
    let failed = built("ARCHITECTURE").set("phase_status", json!("failed"));
    assert_eq!(failed.standing().status, Status::Failed);
    let fresh = built("REQUIREMENTS").set("phase_status", json!("pending"));
    assert_eq!(fresh.standing().status, Status::Fresh);
    let later = built("ARCHITECTURE").set("phase_status", json!("pending"));
    assert_eq!(later.standing().status, Status::Interrupted);
}

#[test]
fn without_a_phase_the_reports_say_how_far_the_run_is() {
    let lost = |built: Built| built.set("current_phase", json!(null));
    assert_eq!(at(&lost(built("X"))), "requirements REQUIREMENTS requirements");
    assert_eq!(at(&lost(built("X").demand())), "approval REQUIREMENTS approve");
    let designed = lost(built("X").demand()).file("reports/final_design.json", DESIGN);
    assert_eq!(at(&designed), "implementation IMPLEMENTATION plan");
    let verified = designed.tasks(&[task("t", "verified", 1)]);
    assert_eq!(at(&verified), "verification VERIFICATION verification");
    let passed = verified.file("reports/verification.json", r#"{"verdict":"PASS"}"#);
    assert_eq!(at(&passed), "reflection REFLECTION reflection");
    let broken = passed.file("state/phase.json", "{\"current_ph");
    assert_eq!(at(&broken), "reflection REFLECTION reflection");
}

#[test]
fn the_report_says_what_is_resumed_since_when_and_what_is_behind() {
    let report = built("IMPLEMENTATION").tasks(&[task("task-001", "running", 1)]).standing();
    assert_eq!(
        report.report,
        [
            "Detected an interrupted workflow: wf-20260411-auth",
            "Resuming workflow wf-20260411-auth from the IMPLEMENTATION phase",
            "Last activity: 2026-04-11T09:12:40.000000Z",
            "Completed: REQUIREMENTS, ARCHITECTURE",
            "task-001: was running and left nothing, attempt 2 is next",
        ]
    );
    assert_eq!(report.started_at, Some("2026-04-11T04:00:00Z".parse().unwrap()));
    let first = |built: Built| built.standing().report[0].clone();
    let fresh = built("REQUIREMENTS").set("phase_status", json!("pending"));
    assert_eq!(first(fresh), "Workflow wf-20260411-auth has not begun");
    let over = built("REFLECTION").file("reflections/x.json", r#"{"a":1}"#);
    assert_eq!(first(over), "Workflow wf-20260411-auth is complete");
    let asked = built("REQUIREMENTS").demand().standing().report;
    assert_eq!(
        asked.last().unwrap(),
        "The user was asked to approve the demand, and is asked again"
    );
    assert_eq!(report.last_event.unwrap().at, "2026-04-11T09:12:40Z".parse().unwrap());
}
