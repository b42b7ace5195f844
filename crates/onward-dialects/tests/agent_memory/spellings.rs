//! Every spelling and shape of an event and of the task graph.

use crate::builder::{Built, built};

fn with(line: &str) -> Built {
    built("approved").line("executor/20260302-0952", line)
}

#[test]
fn the_name_of_an_event_is_known_in_every_spelling() {
    for (name, point) in [
        ("task-created", "execute 2 execute[T001]"),
        ("task_ready", "execute 2 execute[T001]"),
        ("task-claimed", "execute 2 execute[T001]"),
        ("task_started", "execute 2 execute[T001]"),
        ("task-implemented", "execute 2 execute[T002]"),
        ("task_implemented", "execute 2 execute[T002]"),
        ("task-verified", "execute 2 execute[T002]"),
        ("task_completed", "execute 2 execute[T002]"),
        ("Task-Completed", "execute 2 execute[T002]"),
        ("task_failed", "execute 2 execute[T001]"),
        ("task-verification-failed", "execute 2 execute[T001]"),
        ("task_blocked", "blocked 2 rework"),
        ("execution-error", "execute 2 execute[T001]"),
    ] {
        for key in ["event_type", "type"] {
            let at = "2026-03-02T10:00:00Z";
            let line = format!(r#"{{"{key}":"{name}","task_id":"T001","timestamp":"{at}"}}"#);
            assert_eq!(with(&line).point(), point, "{key} {name}");
        }
    }
}

#[test]
fn events_of_all_actors_are_merged_by_time() {
    let implemented =
        r#"{"event_type":"task-implemented","task_id":"T001","timestamp":"2026-03-02T10:00:00Z"}"#;
    let failed =
        r#"{"type":"task-failed","task_id":"T001","timestamp":"2026-03-02T09:30:00+00:00"}"#;
    let built = with(implemented).line("verifier/20260302-1100", failed);
    assert_eq!(built.point(), "execute 2 execute[T002]", "the failure is older");
    let deep = built.line(
        "verifier/again/20260302-1100",
        r#"{"event_type":"task-blocked","task_id":"T001","timestamp":"2026-03-02 10:30:00"}"#,
    );
    assert_eq!(deep.point(), "blocked 2 rework");
}

#[test]
fn an_event_without_a_time_has_that_of_its_file_or_counts_by_what_it_means() {
    let implemented =
        r#"{"event_type":"task-implemented","task_id":"T001","timestamp":"2026-03-02T10:07:00Z"}"#;
    let failed = r#"{"type":"task-failed","task_id":"T001","result":"FAILED","issues_count":1}"#;
    let verified = r#"{"type":"task-verified","task_id":"T001","result":"PASSED"}"#;
    let same = with(implemented).line("executor/20260302-0952", failed);
    assert_eq!(same.point(), "execute 2 execute[T001]", "the same file, the line after");
    let later = with(implemented).line("verifier/20260302-1012-T001", failed);
    assert_eq!(later.point(), "execute 2 execute[T001]");
    let older = with(implemented).line("verifier/20260302-0940-T001", failed);
    assert_eq!(older.point(), "execute 2 execute[T002]");
    let timeless = with(implemented).line("verifier/log", failed);
    assert_eq!(timeless.point(), "execute 2 execute[T001]", "a failure outweighs");
    let passed = with(implemented).line("verifier/log", verified);
    assert_eq!(passed.standing().report[2], "Tasks: 1/3 complete");
    let no = with(&verified.replace("PASSED", "FAILED"));
    assert_eq!(no.point(), "execute 2 execute[T001]", "the verdict outweighs the name");
}

#[test]
fn equal_times_are_settled_by_what_the_events_mean() {
    let at = |kind: &str| {
        format!(r#"{{"event_type":"{kind}","task_id":"T001","timestamp":"2026-03-02T10:00:00Z"}}"#)
    };
    for (one, other, point) in [
        ("task-implemented", "task-claimed", "execute 2 execute[T002]"),
        ("task-verified", "task-failed", "execute 2 execute[T001]"),
        ("task-failed", "task-blocked", "blocked 2 rework"),
    ] {
        for (one, other) in [(one, other), (other, one)] {
            let both = with(&at(one)).line("verifier/20260302-0952", &at(other));
            assert_eq!(both.point(), point, "{one} {other}");
        }
    }
}

#[test]
fn phases_are_read_in_three_numberings_and_by_name() {
    let to = |phase: &str| {
        let line = format!(r#"{{"type":"phase-transition","to_phase":{phase}}}"#);
        built("approved").line("orchestrator/20260302-0952", &line)
    };
    for passed in ["2", "\"2\"", "\"execution\"", "\"EXECUTION\"", "\"phase_4_execution\"", "3"] {
        assert_eq!(to(passed).point(), "execute 2 execute[T001]", "{passed}");
    }
    for before in ["0", "1", "\"planning\"", "\"approval\""] {
        assert_eq!(to(before).point(), "approval 1 approve", "{before}");
    }
    // In the second version 3 is the approval and 4 the execution.
    let second = |phase: &str| to(phase).file("workflow-state.json", "{}");
    assert_eq!(second("3").point(), "approval 1 approve");
    assert_eq!(second("4").point(), "execute 2 execute[T001]");
    for odd in ["\"B2\"", "99", "null", "[]"] {
        assert_eq!(to(odd).point(), "execute 2 execute[T001]", "{odd}");
        assert!(to(odd).codes().contains(&"missing-current-phase".to_owned()), "{odd}");
    }
}

#[test]
fn the_task_graph_is_read_in_both_shapes() {
    let graph = |text: &str| built("approved").file("task-graph.json", text);
    let listed = r#"{"tasks":[{"id":"TASK-003","name":"x","depends_on":["T1"]},{"task_id":"T1"}]}"#;
    assert_eq!(graph(listed).point(), "execute 2 execute[T1]");
    let mapped = r#"{"metadata":{},"tasks":{"T1":{"title":"x"},"T2":{"dependencies":["T1"]}}}"#;
    assert_eq!(graph(mapped).point(), "execute 2 execute[T1]");
    let circle = r#"{"tasks":[{"id":"A","dependencies":["B"]},{"id":"B","dependencies":["A"]}]}"#;
    assert_eq!(graph(circle).point(), "execute 2 execute[A] execute[B]");
    assert!(graph(circle).codes().contains(&"odd-value".to_owned()));
    let wild = r#"{"tasks":[{"id":"../x","dependencies":["gone","../x"]},{"id":"../x"},{"id":7}]}"#;
    assert_eq!(graph(wild).point(), "execute 2 execute[..%2Fx] execute[7]");
    assert!(graph(wild).codes().contains(&"status-disagrees".to_owned()));
}

#[test]
fn tasks_go_by_their_phase_and_then_by_the_order_of_the_graph() {
    let graph = r#"{"tasks":[{"id":"B","phase":2},{"id":"C"},{"id":"A","phase":1}],
        "phases":[{"number":3,"tasks":["C"]}]}"#;
    let built = built("approved").file("task-graph.json", graph);
    assert_eq!(built.standing().report[5], "Next: execute A, B, C");
}

#[test]
fn what_a_task_comes_after_may_be_one_text() {
    for after in [r#"["T001"]"#, r#""T001""#, r#""T001, ""#] {
        for key in ["dependencies", "depends_on"] {
            let graph = format!(r#"{{"tasks":[{{"id":"T001"}},{{"id":"T002","{key}":{after}}}]}}"#);
            let built = built("approved").file("task-graph.json", &graph);
            assert_eq!(built.point(), "execute 2 execute[T001]", "{graph}");
        }
    }
}

#[test]
fn an_event_that_says_nothing_of_a_task_changes_nothing_and_is_no_finding() {
    let before = built("approved");
    for name in [
        "run-started",
        "phase-started",
        "phase-complete",
        "phase-completed",
        "phase-gate-passed",
        "escalation",
        "escalation-resolved",
        "artifact-created",
        "artifact-approved",
        "cleanup-started",
        "pr-prep-completed",
        "ready-for-human-review",
        "consolidation-started",
        "stm-archived",
        "checkpoint-created",
        "session-resumed",
        "prd_created",
        "plan_created",
        "task_graph_created",
        "bootstrap_plan_created",
    ] {
        let at = "2026-03-02T10:00:00Z";
        let line = format!(r#"{{"event_id":"e1","event_type":"{name}","timestamp":"{at}"}}"#);
        let built = with(&line);
        assert_eq!(built.point(), "execute 2 execute[T001]", "{name}");
        assert_eq!(built.codes(), before.codes(), "{name}");
    }
}

#[test]
fn the_id_of_a_task_is_known_in_every_shape() {
    for id in ["T001", "T003-TEST-UNIT", "Q001", "H001", "B001", "D001", "TASK-003"] {
        let graph = format!(r#"{{"tasks":[{{"id":"{id}","dependencies":[]}}]}}"#);
        let built = built("approved").file("task-graph.json", &graph);
        assert_eq!(built.point(), format!("execute 2 execute[{id}]"));
        let done = built.done(&[id]);
        assert_eq!(done.standing().report[2], "Tasks: 1/1 complete", "{id}");
    }
}

#[test]
fn the_graph_of_the_catalog_is_read() {
    let graph = r#"{"metadata":{"run_id":"x"},
        "tasks":[{"id":"T001","dependents":["T002"],"files":{"allowed":["a"],"forbidden":[]},
            "estimates":{"effort":"S"},"verification":{"required":true}},
            {"id":"T002","dependencies":["T001"]}],
        "execution_order":[["T001"],["T002"]]}"#;
    let built = built("approved").file("task-graph.json", graph);
    assert_eq!(built.point(), "execute 2 execute[T001]");
    assert_eq!(built.done(&["T001"]).point(), "execute 2 execute[T002]");
}
