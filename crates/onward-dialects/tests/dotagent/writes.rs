//! What a resume writes into the checkpoint, and the laws of writing it.

use onward_core::told::{Change, Deed, Died, Entering, NoEntry};
use onward_dialects::{
    File, Files,
    dotagent::{DOTAGENT, Phase, write::Checkpoint},
    seam::Dialect,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    builder::{built, line, now, site, task},
    rows,
    walk::changed,
};

const PHASE: &str = "memory/state/phase.json";
const EXECUTION: &str = "memory/state/execution.json";

fn changes(files: &Files) -> Vec<Change> {
    let told = DOTAGENT.read(&site(), files.clone()).unwrap();
    let point = told.standing(now()).point;
    told.write(&Deed::Resumed {
        at: now(),
        point: &point,
        undone: &[],
        alive: &[],
        died: &[],
        by: "",
    })
}

pub(crate) fn resumed(files: &Files) -> Files {
    changed(files.clone(), &changes(files))
}

fn object(files: &Files, path: &str) -> Value {
    serde_json::from_slice(files.bytes(path).unwrap()).unwrap()
}

#[test]
fn a_resume_says_where_and_when_and_leaves_the_tasks_alone_where_nothing_happened_to_them() {
    let here = built("IMPLEMENTATION").tasks(&[task("t1", "pending", 0)]).files();
    let after = resumed(&here);
    assert_eq!(after.bytes(EXECUTION), here.bytes(EXECUTION), "byte for byte");
    let phase = object(&after, PHASE);
    assert_eq!(phase["last_updated"], "2026-04-11T10:00:00Z");
    assert_eq!(phase["phase_status"], "in_progress");
}

#[test]
fn a_run_between_two_phases_is_in_the_later_one_and_in_progress() {
    let here = built("ARCHITECTURE").set("phase_status", json!("complete"));
    let here = here.file("reports/final_design.json", r#"{"contracts":[]}"#).files();
    let phase = object(&resumed(&here), PHASE);
    assert_eq!(
        (&phase["current_phase"], &phase["phase_status"]),
        (&"IMPLEMENTATION".into(), &"in_progress".into())
    );
    let last = phase["completed_phases"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["phase"], &last["output"]),
        (&"ARCHITECTURE".into(), &"memory/reports/final_design.json".into())
    );
}

/// Found by the junk: the verdict of an earlier run would count as soon as the phase is reached.
#[test]
fn reports_of_an_earlier_run_are_put_away_when_their_phase_is_reached() {
    let verified = built("IMPLEMENTATION").tasks(&[task("t1", "verified", 1)]);
    let verified = verified.output("t1", "pre_complete");
    let asked = built("REQUIREMENTS").demand().approved();
    for (here, path, point) in [
        (verified, "reports/verification.json", "verification VERIFICATION verification"),
        (asked.clone(), "reports/designs/a.json", "architects ARCHITECTURE architects"),
        (asked, "reports/final_design.json", "architects ARCHITECTURE architects"),
    ] {
        let here = here.file(path, r#"{"verdict":"FAIL"}"#);
        assert_eq!(line(&here.point()), point, "{path}");
        let after = resumed(&here.files());
        let told = DOTAGENT.read(&site(), after.clone()).unwrap();
        assert_eq!(line(&told.standing(now()).point), point, "{path}");
        let mut kept = after.iter().filter(|(name, _)| name.contains("/.archive/"));
        assert!(kept.any(|(name, _)| name.ends_with(path)), "{path}");
    }
}

#[test]
fn an_orphan_is_counted_and_an_output_is_believed() {
    let tasks = [task("t1", "running", 1), task("t2", "running", 2), task("t3", "running", 1)];
    let here = built("IMPLEMENTATION").tasks(&tasks);
    let here = here.output("t2", "blocked").output("t3", "pre_complete").files();
    let after = object(&resumed(&here), EXECUTION);
    let of = |index: usize| {
        (after["tasks"][index]["status"].clone(), after["tasks"][index]["attempts"].clone())
    };
    assert_eq!(of(0), ("pending".into(), 2.into()));
    assert_eq!(of(1), ("blocked".into(), 2.into()));
    assert_eq!(of(2), ("pre_complete".into(), 1.into()));
}

#[test]
fn an_orphan_whose_work_is_ours_and_lives_is_not_counted() {
    for (id, attempts, step) in [
        ("t1", 1, "implementation[t1]/try[1]/implement"),
        ("t1", 3, "implementation[t1]/try[3]/brief"),
        // What mends the verification is no item of the plan.
        ("repair-1", 1, "repair[1]/fix"),
        ("repair-1", 3, "repair[1]/merge"),
    ] {
        let here = built("IMPLEMENTATION").tasks(&[task(id, "running", attempts)]).files();
        let told = DOTAGENT.read(&site(), here.clone()).unwrap();
        let point = told.standing(now()).point;
        let alive = [onward_core::address::Address::from_text(step)];
        let deed = Deed::Resumed {
            at: now(),
            point: &point,
            undone: &[],
            alive: &alive,
            died: &[],
            by: "",
        };
        let after = changed(here.clone(), &told.write(&deed));
        assert_eq!(after.bytes(EXECUTION), here.bytes(EXECUTION), "{step}");
    }
}

/// What died is running again, and named: the next resume does not count it once more.
#[test]
fn an_attempt_of_ours_that_was_cut_off_is_counted_once() {
    for (id, step) in [("t1", "implementation[t1]/try[2]/implement"), ("repair-1", "repair[1]/fix")]
    {
        let here = built("IMPLEMENTATION").tasks(&[task(id, "running", 1)]).files();
        let step = onward_core::address::Address::from_text(step);
        let lost = [Died { step, attempt: 4 }];
        let told = DOTAGENT.read(&site(), here.clone()).unwrap();
        assert!(!told.counts(&lost[0]));
        let point = told.standing(now()).point;
        let deed = Deed::Resumed {
            at: now(),
            point: &point,
            undone: &[],
            alive: &[],
            died: &lost,
            by: "",
        };
        let after = changed(here, &told.write(&deed));
        let task = object(&after, EXECUTION)["tasks"][0].clone();
        assert_eq!((&task["status"], &task["attempts"]), (&"running".into(), &2.into()), "{task}");
        let told = DOTAGENT.read(&site(), after).unwrap();
        assert!(told.counts(&lost[0]));
        assert!(!told.counts(&Died { attempt: 5, ..lost[0].clone() }));
    }
}

#[test]
fn files_that_cannot_be_read_are_kept_before_they_are_rebuilt() {
    let here = built("IMPLEMENTATION")
        .demand()
        .file("state/phase.json", "{\"cur")
        .file("state/execution.json", "[");
    let here = here.file("reports/final_design.json", r#"{"contracts":[]}"#);
    let point = line(&here.point());
    let after = resumed(&here.files());
    let kept = |name: &str| {
        let mut files = after.iter();
        let (_, file) = files
            .find(|(path, _)| path.contains("/.archive/unreadable_") && path.ends_with(name))
            .unwrap();
        String::from_utf8(file.bytes.clone()).unwrap()
    };
    assert_eq!((kept("phase.json"), kept("execution.json")), ("{\"cur".into(), "[".into()));
    assert_eq!(object(&after, PHASE)["current_phase"], "IMPLEMENTATION");
    let again = DOTAGENT.read(&site(), after).unwrap();
    assert_eq!(line(&again.standing(now()).point), point);
}

#[test]
fn a_refused_verification_is_repaired_although_the_checkpoint_cannot_be_read() {
    let here = built("VERIFICATION")
        .demand()
        .tasks(&[task("t1", "verified", 1)])
        .file("reports/verification.json", r#"{"verdict":"FAIL"}"#)
        .file("state/phase.json", "");
    let point = line(&here.point());
    assert_eq!(point, "implementation IMPLEMENTATION repair");
    let after = DOTAGENT.read(&site(), resumed(&here.files())).unwrap();
    assert_eq!(line(&after.standing(now()).point), point);
}

#[test]
fn a_file_with_something_else_in_the_place_of_a_list_is_kept_before_it_gets_one() {
    let text = r#"{"workflow_id":"wf-20260411-auth","tasks":"none"}"#;
    let here = built("IMPLEMENTATION").file("state/execution.json", text).files();
    let kept = changes(&here).into_iter().find(|it| it.path().contains("/.archive/unreadable_"));
    let Some(Change::Replace { path, bytes }) = kept else { panic!("{kept:?}") };
    assert!(path.ends_with("/execution.json"), "{path}");
    assert_eq!(bytes, text.as_bytes());
    let sound = built("IMPLEMENTATION").tasks(&[task("t1", "pending", 0)]).files();
    assert!(!changes(&sound).iter().any(|it| it.path().contains("/.archive/")));
}

#[test]
fn a_run_is_retired_whole_and_the_next_one_begins_afresh() {
    let over = built("REFLECTION").set("phase_status", json!("complete"));
    let over = over
        .file("reflections/wf.json", r#"{"what_worked":[]}"#)
        .tasks(&[task("t", "verified", 1)]);
    let retired = over.told().retire(now()).unwrap();
    let after = changed(over.files(), &retired);
    let name = "memory/state/.archive/wf-20260411-auth_20260411T091240Z";
    assert_eq!(after.bytes(&format!("{name}/phase.json")), over.files().bytes(PHASE));
    assert_eq!(after.bytes(&format!("{name}/execution.json")), over.files().bytes(EXECUTION));
    let told = DOTAGENT.read(&site(), after).unwrap();
    assert_eq!(told.standing(now()).status, onward_core::plan::Status::Fresh);
}

#[test]
fn a_person_enters_earlier_and_what_was_done_from_there_on_is_kept_and_counts_no_more() {
    let over = built("REFLECTION").set("phase_status", json!("complete")).approved().demand();
    let over = over.file("reports/designs/a.json", r#"{"a":1}"#);
    let over = over.file("reports/final_design.json", r#"{"a":1}"#);
    let over = over.file("reports/verification.json", r#"{"verdict":"PASS"}"#);
    let over = over.tasks(&[task("t1", "verified", 1)]).output("t1", "pre_complete");
    let entering = |place| Entering { place, force: false, now: now() };
    for (place, point) in [
        ("requirements", "requirements REQUIREMENTS requirements"),
        ("approval", "approval REQUIREMENTS approve"),
        ("ARCHITECTURE", "architects ARCHITECTURE architects"),
        ("roundtable", "roundtable ARCHITECTURE roundtable"),
        ("implementation", "implementation IMPLEMENTATION implementation[t1]"),
        ("verification", "verification VERIFICATION verification"),
    ] {
        let changes = over.told().enter(&entering(place)).unwrap();
        let mut files = over.files();
        for change in &changes {
            let Change::Replace { path, bytes } = change else { panic!("{change:?}") };
            files.insert(path.clone(), File { bytes: bytes.clone(), modified: None });
        }
        let told = DOTAGENT.read(&site(), files.clone()).unwrap();
        rows::check_agreement(&site(), &*told);
        assert_eq!(line(&told.standing(now()).point), point, "{place}");
        if place == "roundtable" {
            let mut kept = files.iter().filter(|(path, _)| path.contains("/.archive/"));
            assert!(kept.any(|(path, _)| path.ends_with("reports/final_design.json")));
        }
    }
    assert_eq!(over.told().enter(&entering("reflection")), Ok(Vec::new()));
    let unknown = over.told().enter(&entering("nowhere"));
    assert_eq!(unknown, Err(NoEntry::Unknown("nowhere".to_owned())));
    let early = built("ARCHITECTURE").told();
    assert!(matches!(early.enter(&entering("verification")), Err(NoEntry::Ahead(_))));
}

fn extra() -> impl Strategy<Value = serde_json::Map<String, Value>> {
    let value = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        Just(json!([1, {"a": null}]))
    ];
    prop::collection::btree_map("x_[a-z]{1,6}", value, 0..4).prop_map(|it| it.into_iter().collect())
}

#[derive(Clone, Debug)]
enum Move {
    Enter(usize),
    Complete(usize),
    Approve(usize),
    Task(u8, &'static str),
    Stamp,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let status = prop::sample::select(vec!["pending", "running", "blocked", "failed", "verified"]);
    let one = prop_oneof![
        (0_usize..5).prop_map(Move::Enter),
        (0_usize..5).prop_map(Move::Complete),
        (0_usize..5).prop_map(Move::Approve),
        (0_u8..4, status).prop_map(|(id, status)| Move::Task(id, status)),
        Just(Move::Stamp),
    ];
    prop::collection::vec(one, 0..12)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_and_unknown_keys_are_kept(
        head in extra(), side in extra(), of_task in extra(), moves in moves(),
    ) {
        let mut first = built("IMPLEMENTATION").tasks(&[task("t0", "pending", 0)]);
        first.phase.as_object_mut().unwrap().extend(head.clone());
        let execution = first.execution.as_mut().unwrap();
        execution.as_object_mut().unwrap().extend(side.clone());
        execution["tasks"][0].as_object_mut().unwrap().extend(of_task.clone());
        let mut files = first.files();
        let mut checkpoint = Checkpoint::of(&files);
        for one in moves {
            match one {
                Move::Enter(phase) => checkpoint.enter(Phase::ALL[phase], now()),
                Move::Complete(phase) => checkpoint.complete(Phase::ALL[phase], now()),
                Move::Approve(phase) => checkpoint.approve(Phase::ALL[phase], now()),
                Move::Task(id, status) => {
                    checkpoint.set_task(&format!("t{id}"), json!({ "status": status }));
                }
                Move::Stamp => checkpoint.stamp(now()),
            }
            files = changed(files.clone(), &checkpoint.changes(&files));
            // import(export(s)) = s, and once it is written there is nothing to write.
            prop_assert_eq!(&Checkpoint::of(&files), &checkpoint);
            prop_assert!(checkpoint.changes(&files).is_empty());
        }
        for (map, kept) in [(&checkpoint.phase, &head), (&checkpoint.execution, &side)] {
            for (key, value) in kept {
                prop_assert_eq!(map.get(key), Some(value));
            }
        }
        let task = checkpoint.task("t0").unwrap();
        prop_assert!(of_task.iter().all(|(key, value)| task.get(key) == Some(value)));
    }
}

/// The verdict of the last task was written, and its state was not.
#[test]
fn a_task_that_turns_out_to_be_verified_says_so_also_when_it_was_the_last_one() {
    let here = built("IMPLEMENTATION").tasks(&[task("t1", "pre_complete", 1)]);
    let here = here.output("t1", "pre_complete").file("tasks/t1/verification.json", VERDICT);
    let after = resumed(&here.files());
    let state = object(&after, EXECUTION);
    assert_eq!(state["tasks"][0]["status"], "verified", "{state:#}");
    assert_eq!(state["tasks"][0]["completed_at"], "2026-04-11T10:00:00Z", "{state:#}");
    assert_eq!(object(&after, PHASE)["current_phase"], "VERIFICATION");
}

const VERDICT: &str = r#"{"verdict":"PASS"}"#;

#[test]
fn a_task_that_waits_for_others_lies_ahead() {
    let mut later = task("t2", "pending", 0);
    later["depends_on"] = json!(["t1"]);
    let files = built("IMPLEMENTATION").tasks(&[task("t1", "pending", 0), later]).files();
    let told = DOTAGENT.read(&site(), files).unwrap();
    let enter = |place| told.enter(&Entering { place, force: false, now: now() });
    assert_eq!(enter("implementation[t1]"), Ok(Vec::new()));
    assert!(matches!(enter("implementation[t2]"), Err(NoEntry::Ahead(_))));
}
