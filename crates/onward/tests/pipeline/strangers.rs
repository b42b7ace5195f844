//! Tasks of a list that are not of the pipeline at hand.

use std::fs;

use serde_json::json;

use crate::kitchen::{Kitchen, tasks};

#[test]
fn a_pipeline_begun_in_a_list_with_tasks_of_others_leaves_them_alone() {
    let kitchen = Kitchen::new("TRIVIAL");
    let list = kitchen.home.join("tasks/session-1");
    fs::create_dir_all(&list).unwrap();
    let theirs = ["1.json", "2.json"].map(|name| list.join(name));
    fs::write(&theirs[0], "{\"id\": \"1\", \"subject\": \"Send\", \"status\": \"pending\"}")
        .unwrap();
    fs::write(
        &theirs[1],
        "{\"id\": \"2\", \"subject\": \"Sum\", \"status\": \"pending\", \"metadata\": {\"phase\": \"P0\"}}",
    )
    .unwrap();
    let content = || theirs.each_ref().map(|it| fs::read(it).unwrap());
    let before = content();
    let said = kitchen.exits("plan --dialect pipeline", 17);
    assert!(said.err.contains("`onward run pipeline`"), "{said:#?}");
    kitchen.exits(
        &format!("run pipeline --no-input --input request=tea --input dir={}", list.display()),
        11,
    );
    assert_eq!(content(), before);
    assert_eq!(kitchen.calls("P0[1]/work") + kitchen.calls("P0[2]/work"), 0);
    let mut own = tasks(&list).into_values().filter(|it| it["metadata"]["parent"] == json!("3"));
    assert!(own.any(|it| it["metadata"]["phase"] == "P0"), "P0 has a task of its own");
    kitchen.approve();
    assert_eq!(content(), before);
}

#[test]
fn the_list_of_the_session_is_named_where_the_environment_says_it() {
    let mut kitchen = Kitchen::new("-");
    kitchen.env.push(("CLAUDE_CODE_TASK_LIST_ID", "mine".to_owned()));
    fs::create_dir_all(kitchen.home.join("tasks/another")).unwrap();
    let said = kitchen.exits("plan --dialect pipeline", 17);
    let own = kitchen.home.join("tasks/mine").display().to_string();
    assert!(said.err.contains(&format!("onward run pipeline --input dir={own}")), "{said:#?}");
}

#[test]
fn a_tier_that_is_none_is_refused_before_anything_starts() {
    let kitchen = Kitchen::new("TRIVIAL");
    let said = kitchen.exits("run pipeline --no-input --input request=x --input tier=COMPLX", 2);
    assert!(said.err.contains("TRIVIAL, STANDARD, COMPLEX"), "{said:#?}");
    assert!(kitchen.lists().is_empty() && !kitchen.bench.path(".onward/runs").exists());
    kitchen.exits("run pipeline --no-input --input request=x --input tier=trivial", 11);
}

/// One of them is not on the path of the tier.
#[test]
fn only_phases_on_the_path_are_named_as_places_to_enter() {
    let kitchen = Kitchen::new("-");
    let list = kitchen.home.join("tasks/session-1");
    fs::create_dir_all(&list).unwrap();
    let permanent = json!({"id": "1", "subject": "[PERMANENT] Tea", "status": "in_progress",
        "metadata": {"tier": "STANDARD", "current_phase": "P0"}});
    fs::write(list.join("1.json"), permanent.to_string()).unwrap();
    let task = json!({"id": "2", "subject": "do it", "status": "in_progress",
        "metadata": {"phase": "P0", "files": ["src/water.txt"]}});
    fs::write(list.join("2.json"), task.to_string()).unwrap();
    let said = kitchen.onward("resume --yes --no-input --from P4");
    assert_ne!(said.code, 0);
    assert!(said.err.contains("P0, P1, P2, P3, P6, P7, P8"), "{said:#?}");
}

#[test]
fn of_lists_written_within_a_second_the_plan_means_the_one_on_top_of_the_list() {
    let kitchen = Kitchen::new("-");
    for number in [1_u32, 3, 2] {
        let list = kitchen.home.join(format!("tasks/session-{number}"));
        fs::create_dir_all(&list).unwrap();
        let permanent = json!({"id": "1", "subject": "[PERMANENT] Tea", "status": "in_progress",
            "metadata": {"tier": "TRIVIAL", "current_phase": "P6"}});
        let task = json!({"id": "2", "subject": "do it", "status": "in_progress",
            "metadata": {"phase": "P6", "files": ["src/water.txt"]}});
        // Within one second, long ago.
        let at = std::time::UNIX_EPOCH
            + std::time::Duration::from_millis(1_700_000_000_000 + u64::from(number) * 300);
        for (name, value) in [("1.json", permanent), ("2.json", task)] {
            fs::write(list.join(name), value.to_string()).unwrap();
            let file = fs::File::options().write(true).open(list.join(name)).unwrap();
            file.set_modified(at).unwrap();
        }
    }
    let top = kitchen.exits("list --json", 0).json()["runs"][0]["id"].clone();
    assert_eq!(top, "session-3");
    assert_eq!(kitchen.exits("plan --json", 0).json()["run"]["id"], top);
}
