//! What the plan finds of a task counts when the run comes to it, however much later that is.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};

use crate::{
    adopted::{content, list},
    bench::kill_all,
    kitchen::Kitchen,
};

/// The task as it is, with these changes, an hour old.
fn alter(list: &Path, id: u32, change: impl FnOnce(&mut Value)) {
    let path = list.join(format!("{id}.json"));
    let mut task: Value = serde_json::from_slice(&content(list, id)).unwrap();
    change(&mut task);
    fs::write(&path, format!("{task:#}")).unwrap();
    age(&path, 1);
}

fn age(path: &Path, hours: u64) {
    let file = fs::File::open(path).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now - Duration::from_hours(hours)).unwrap();
}

#[track_caller]
fn planned(kitchen: &Kitchen, code: &str) {
    let plan = kitchen.exits("plan --json", 0).json();
    let mut codes = plan["findings"].as_array().unwrap().iter().map(|it| it["code"].as_str());
    assert!(codes.any(|it| it == Some(code)), "{plan:#}");
}

/// Up to a phase before the one whose task is in doubt.
const SCRIPT: &str = "P0:2+ P1:3+ P2:4+ P3:5! P6:6+";

/// A task that came too early, or whose file was changed since.
fn doubted(kitchen: &Kitchen, code: &str) {
    let list = list(kitchen, "STANDARD", SCRIPT);
    kitchen.bench.write("src/6.txt", "made elsewhere\n");
    let is_early = code == "done-with-unfinished-dependency";
    if is_early {
        age(&kitchen.bench.path("src/6.txt"), 2);
        alter(&list, 5, |it| it["blocks"] = json!(["6"]));
    }
    alter(&list, 6, |it| {
        it["metadata"]["result"] = json!("by another program");
        if is_early {
            it["blockedBy"] = json!(["5"]);
        }
    });
}

const DOUBTS: [&str; 2] = ["done-with-unfinished-dependency", "artifact-changed"];

#[test]
fn a_doubted_task_of_a_later_phase_is_verified_before_anything_after_it() {
    for code in DOUBTS {
        for holds in [true, false] {
            let mut kitchen = Kitchen::new("-");
            kitchen.env.push(("HOLDS", holds.to_string()));
            doubted(&kitchen, code);
            planned(&kitchen, code);
            kitchen.exits("resume --yes --no-input", 11);
            assert_eq!((kitchen.calls("P3[5]/work"), kitchen.calls("P6[6]/work")), (1, 0));
            assert_eq!(kitchen.calls("P6[6]/verify"), 1, "{code}");
            assert_eq!(kitchen.calls("P6[6]/redo"), usize::from(!holds), "{code}");
            let ledger = fs::read_to_string(kitchen.home.join("ledger")).unwrap();
            let at = |step: &str| ledger.lines().position(|it| it == step).unwrap();
            assert!(at("P6[6]/verify") < at("review[1]/judge"), "{ledger}");
            let metadata = &kitchen.tasks()[&6]["metadata"];
            assert_eq!(metadata["result"], "by another program");
            assert_eq!(metadata["checked_by"], "onward", "{metadata:#}");
            assert_eq!(metadata["onward_doubt"], Value::Null, "{metadata:#}");
            kitchen.approve();
        }
    }
}

/// What spoke against it is over, or hidden by what we wrote; the doubt is not.
#[test]
fn a_doubt_outlives_a_kill_before_its_phase() {
    for code in DOUBTS {
        let kitchen = Kitchen::new("-");
        doubted(&kitchen, code);
        let mut engine = kitchen.leash("resume --yes --no-input");
        let is_settled = |it: &Kitchen| it.tasks()[&5]["status"] == "completed";
        assert!(engine.until(|| is_settled(&kitchen)), "{}", engine.last);
        engine.kill();
        kill_all(&kitchen.run_dir());
        assert_eq!(kitchen.calls("P6[6]/verify"), 0);
        planned(&kitchen, code);
        kitchen.exits("resume --yes --no-input", 11);
        assert_eq!((kitchen.calls("P3[5]/work"), kitchen.calls("P6[6]/verify")), (1, 1));
    }
}

#[test]
fn a_completed_task_of_a_later_phase_that_nothing_speaks_against_stays_as_it_is() {
    let kitchen = Kitchen::new("-");
    let list = list(&kitchen, "STANDARD", SCRIPT);
    kitchen.bench.write("src/6.txt", "made elsewhere\n");
    age(&kitchen.bench.path("src/6.txt"), 2);
    alter(&list, 6, |it| it["metadata"]["result"] = json!("by another program"));
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!((kitchen.calls("P6[6]/work"), kitchen.calls("P6[6]/verify")), (0, 0));
    let metadata = &kitchen.tasks()[&6]["metadata"];
    assert_eq!(metadata["result"], "by another program");
    assert_eq!(metadata["checked_by"], Value::Null, "nothing has proved it: {metadata:#}");
    kitchen.approve();
    assert_eq!(kitchen.git(&["show", "--name-only", "--format=", "HEAD"]), "src/6.txt");
}

/// In the phase that is gone on with, and in a later one.
fn lost(kitchen: &Kitchen) {
    let list = list(kitchen, "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7~");
    let gone = "deadbeef".repeat(5);
    alter(&list, 5, |it| it["metadata"]["commit"] = json!(gone));
    alter(&list, 6, |it| it["metadata"]["commits"] = json!([gone]));
    alter(&list, 7, |it| it["metadata"]["commit"] = json!(gone));
}

#[test]
fn tasks_whose_commits_are_gone_are_done_again_and_once() {
    let kitchen = Kitchen::new("-");
    lost(&kitchen);
    planned(&kitchen, "missing-commits");
    kitchen.exits("resume --yes --no-input", 11);
    let works = |kitchen: &Kitchen| {
        ["P3[5]/work", "P6[6]/work", "P7[7]/work"].map(|step| kitchen.calls(step))
    };
    assert_eq!(works(&kitchen), [1, 1, 1]);
    let tasks = kitchen.tasks();
    assert_eq!(tasks[&5]["metadata"]["commit"], "deadbeef".repeat(5), "what it said stays");
    assert_eq!(
        (&tasks[&5]["status"], &tasks[&6]["status"]),
        (&json!("completed"), &json!("completed"))
    );
    kitchen.approve();
    assert_eq!(works(&kitchen), [1, 1, 1], "what was lost is there again");
    assert_eq!(kitchen.git(&["show", "--name-only", "--format=", "HEAD"]), "src/6.txt");
}

#[test]
fn a_person_who_insists_passes_over_tasks_whose_commits_are_gone() {
    let kitchen = Kitchen::new("-");
    lost(&kitchen);
    kitchen.exits("resume --yes --no-input --from P7 --force", 11);
    assert_eq!((kitchen.calls("P3[5]/work"), kitchen.calls("P6[6]/work")), (0, 0));
    assert_eq!(kitchen.calls("P7[7]/work"), 1);
}
