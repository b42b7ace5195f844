//! Where else a person may enter, and what the files tell then.

use onward_core::{
    address::Address,
    told::{Change, Deed, Entering, NoEntry, StepTold},
};
use onward_dialects::File;

use crate::builder::{Built, built, now};

fn entering(place: &str) -> Entering<'_> {
    Entering { place, force: false, now: now() }
}

/// The run after a person entered there; nothing but our log may have grown.
fn entered(built: &Built, place: &str) -> Built {
    let changes = built.told().enter(&entering(place)).unwrap();
    written(built, &changes)
}

fn written(built: &Built, changes: &[Change]) -> Built {
    let mut after = built.clone();
    for change in changes {
        let Change::Append { path, bytes } = change else { panic!("{change:?}") };
        assert!(path.starts_with("events/onward/"), "{path}");
        let all = [after.files.bytes(path).unwrap_or_default(), bytes].concat();
        after.files.insert(path.clone(), File { bytes: all, modified: None });
    }
    after
}

/// The same when the resume that enters has begun.
fn resumed(entered: &Built) -> Built {
    let point = entered.standing().point;
    let deed =
        Deed::Resumed { at: now(), point: &point, undone: &[], alive: &[], died: &[], by: "" };
    written(entered, &entered.told().write(&deed))
}

fn over() -> Built {
    let done = built("approved").phase(2).done(&["T001", "T002", "T003"]);
    done.phase(3).file("pr-description.md", "# PR").phase(4)
}

#[test]
fn every_code_of_a_run_that_is_behind_can_be_entered() {
    let complete = over().file("summary.md", "# Done").event("run-complete");
    for run in [over(), complete.clone()] {
        for (place, point) in [
            ("approval", "approval 1 approve"),
            ("approve", "approval 1 approve"),
            ("execute", "execute 2 execute[T001]"),
            ("2", "execute 2 execute[T001]"),
            ("execute[T002]", "execute 2 execute[T002]"),
            ("verify", "verify 2 verify"),
            ("cleanup", "cleanup 3 cleanup"),
        ] {
            assert_eq!(entered(&run, place).point(), point, "{place}");
        }
        for (place, point) in [
            ("intake", "intake 0 intake"),
            ("0", "intake 0 intake"),
            ("planning", "planning 1 plan"),
            ("plan", "planning 1 plan"),
            ("tasks", "planning 1 tasks"),
        ] {
            assert_eq!(resumed(&entered(&run, place)).point(), point, "{place}");
        }
    }
    assert_eq!(entered(&complete, "consolidate").point(), "consolidate 4 consolidate");
    assert_eq!(entered(&over(), "consolidate").files, over().files, "it goes on there anyway");
    let stuck = built("approved").done(&["T001"]).event("task-blocked T002");
    assert_eq!(entered(&stuck, "execute").point(), "execute 2 execute[T002]");
    let waits = built("approved").done(&["T001"]).event("task-implemented T002");
    let waits = waits.event("task-implemented T003");
    assert_eq!(waits.point(), "verify 2 verify");
    assert_eq!(entered(&waits, "execute").point(), "execute 2 execute[T002]");
}

/// The plan counts again once it is another one, or once the user has said yes to it; tasks of the
/// plan before it are no tasks of this one.
#[test]
fn what_is_planned_again_counts_when_it_is_made_and_its_tasks_begin_from_nothing() {
    let run = built("approved").phase(2).done(&["T001", "T002"]);
    let entered = entered(&run, "planning");
    let tell = |built: &Built, step: &str| built.told().step(&Address::from_text(step));
    for step in ["open", "plan", "tasks/break", "constitution", "execute[T001]/implement"] {
        assert_eq!(tell(&entered, step), StepTold::Undone, "{step}");
    }
    assert!(matches!(tell(&entered, "intake"), StepTold::Done(_)));
    let resumed = resumed(&entered);
    for step in ["plan", "tasks/check", "execute[T001]/implement"] {
        assert_eq!(tell(&resumed, step), StepTold::Silent, "{step}");
    }
    let StepTold::Done(open) = tell(&resumed, "open") else { panic!() };
    assert_eq!(open.result, serde_json::json!({"planned": false, "broken_down": false}));
    assert_eq!(resumed.point(), "planning 1 plan", "also after a crash");
    let planned = resumed.clone().file("plan.md", "# Another plan");
    assert_eq!(planned.point(), "planning 1 tasks");
    let graph = String::from_utf8(run.files.bytes("task-graph.json").unwrap().to_vec()).unwrap();
    let broken_down = planned.file("task-graph.json", &format!("{graph}\n"));
    assert_eq!(broken_down.point(), "approval 1 approve");
    let approved = |built: Built| Built { minute: 200, ..built }.phase(2).point();
    assert_eq!(approved(broken_down), "execute 2 execute[T001]");
    // Made again with the same words: the approval counts.
    assert_eq!(approved(resumed), "execute 2 execute[T001]");
}

#[test]
fn what_lies_ahead_is_refused() {
    let here = built("approved").phase(2).done(&["T001"]);
    for place in ["verify", "blocked", "cleanup", "consolidate", "3", "4"] {
        let refused = here.told().enter(&entering(place));
        assert!(matches!(refused, Err(NoEntry::Ahead(_))), "{place}: {refused:?}");
    }
    // It rests on T002, which is next.
    let refused = here.told().enter(&entering("execute[T003]"));
    assert!(matches!(refused, Err(NoEntry::Ahead(_))), "{refused:?}");
    let early = built("graph");
    let refused = early.told().enter(&entering("execute[T001]"));
    assert!(matches!(refused, Err(NoEntry::Ahead(_))), "{refused:?}");
    for place in ["nonsense", "execute[T999]", "", "5"] {
        let unknown = NoEntry::Unknown(place.to_owned());
        assert_eq!(here.told().enter(&entering(place)), Err(unknown), "{place}");
    }
}

/// What our journal says of later steps counts no more, until the resume is written down: from then
/// on it is the journal that knows.
#[test]
fn steps_behind_the_entry_are_undone_in_the_resume_that_enters_and_silent_after_it() {
    let steps = ["verify", "finished", "cleanup", "pr", "prepared", "consolidate", "close"];
    let tell = |built: &Built, step: &str| built.told().step(&Address::from_text(step));
    let entered = entered(&over(), "execute[T001]");
    for step in steps.into_iter().chain(["execute[T001]/implement", "rework[1]/survey"]) {
        assert_eq!(tell(&entered, step), StepTold::Undone, "{step}");
    }
    assert!(matches!(tell(&entered, "execute[T002]/implement"), StepTold::Done(_)));
    let resumed = resumed(&entered);
    for step in steps {
        assert_eq!(tell(&resumed, step), StepTold::Silent, "{step}");
    }
}
