//! Two programs that write one list at a time lose nothing of each other.

use std::{
    fs,
    process::{Command, Stdio},
};

use onward_engine::care::harness::until;
use serde_json::json;

use crate::{
    adopted::list,
    bench::{Said, signal},
    kitchen::{Kitchen, tasks},
};

/// What another program does with the list while ours looks at it and works: it takes the lock,
/// reads a task, adds to it, and puts it back, over and over.
const OTHER: &str = r#"
cd "$1"
turns=0
while [ ! -e stop ]; do
  turns=$((turns + 1))
  flock .lock sh -c '
    file=$(ls [0-9]*.json | sort -n | tail -1)
    sed "s/^{/{\"other'$turns'\": 1,/" "$file" > "$file.tmp" && mv "$file.tmp" "$file"
    echo "$file other'$turns'" >> written'
done
"#;

#[test]
fn a_program_that_writes_the_same_list_under_the_lock_loses_nothing() {
    let kitchen = Kitchen::new("TRIVIAL");
    let list = kitchen.home.join("tasks/shared");
    fs::create_dir_all(&list).unwrap();
    let first = json!({"id": "1", "subject": "[PERMANENT] Tea", "status": "in_progress",
        "blocks": [], "blockedBy": [], "metadata": {"tier": "TRIVIAL"}});
    fs::write(list.join("1.json"), first.to_string()).unwrap();
    let mut other = Command::new("sh");
    other.args(["-c", OTHER, "other"]).arg(&list).stderr(Stdio::null());
    let mut other = other.spawn().unwrap();
    let written = || fs::read_to_string(list.join("written")).unwrap_or_default();
    let has_begun = || (!written().is_empty()).then_some(());
    let begun = until("the other program to write", || Ok(has_begun()));
    let said = kitchen.onward("resume --yes --no-input");
    let is_enough = || (said.code != 11 || written().lines().count() > 10).then_some(());
    let enough = until("the other program to have written ten times", || Ok(is_enough()));
    fs::write(list.join("stop"), "").unwrap();
    other.wait().unwrap();
    begun.unwrap();
    assert_eq!(said.code, 11, "{said:#?}");
    enough.unwrap();
    let written = written();
    let tasks = tasks(&list);
    for line in written.lines() {
        let (file, key) = line.split_once(' ').unwrap();
        let id: u32 = file.trim_end_matches(".json").parse().unwrap();
        assert!(!tasks[&id][key].is_null(), "{key} of {file} is lost: {:#}", tasks[&id]);
    }
    assert!(tasks.values().skip(1).all(|it| it["status"] == "completed"), "{tasks:#?}");
}

/// A process of ours each, all at the same moment.
#[test]
fn calls_at_the_same_moment_lose_nothing_of_each_other() {
    let kitchen = Kitchen::new("TRIVIAL");
    let list = kitchen.home.join("tasks/shared");
    fs::create_dir_all(&list).unwrap();
    let task = |id: u32, subject: &str, metadata: serde_json::Value| {
        let value = json!({"id": id.to_string(), "subject": subject, "status": "pending",
            "blocks": [], "blockedBy": [], "metadata": metadata});
        fs::write(list.join(format!("{id}.json")), format!("{value:#}")).unwrap();
    };
    task(1, "[PERMANENT] Tea", json!({"tier": "TRIVIAL"}));
    for id in 2..10 {
        task(id, "steep", json!({"phase": "P6"}));
    }
    let mut calls = Vec::new();
    for id in 2..10 {
        let with = kitchen.home.join(format!("with-{id}"));
        fs::write(&with, json!({"dir": list, "id": id.to_string()}).to_string()).unwrap();
        let mut command = kitchen.command("call pipeline.settle");
        command.env("ONWARD_WITH", with).env("ONWARD_RUN", "r-1");
        calls.push(command.stdout(Stdio::null()).spawn().unwrap());
    }
    for mut call in calls {
        assert!(call.wait().unwrap().success());
    }
    let tasks = tasks(&list);
    assert!(tasks.values().skip(1).all(|it| it["status"] == "completed"), "{tasks:#?}");
    assert_eq!(tasks[&1]["metadata"]["review"], "pending", "the last one of them says so");
}

/// Another program holds the lock: the user is told so, may leave, and nothing was written.
#[test]
fn a_held_lock_is_named_with_its_holder_and_may_be_left() {
    let kitchen = Kitchen::new("-");
    let list = list(&kitchen, "TRIVIAL", "P0:2+ P6:3~");
    let before = tasks(&list);
    let lock = fs::File::open(list.join(".lock")).unwrap();
    lock.lock().unwrap();
    let said = kitchen.home.join("said");
    let mut resume = kitchen.command("resume --yes --no-input");
    resume.stdout(Stdio::null()).stderr(fs::File::create(&said).unwrap());
    let mut resume = resume.spawn().unwrap();
    let holder = format!("(pid {}) holds", std::process::id());
    let has_said = || {
        let text = fs::read_to_string(&said).unwrap();
        text.contains("/.lock, which ") && text.contains(&holder)
    };
    until("the words about the lock", || Ok(has_said().then_some(()))).unwrap();
    signal(resume.id(), "-INT");
    let code = resume.wait().unwrap().code();
    let text = fs::read_to_string(&said).unwrap();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("onward resume"), "{text}");
    assert_eq!(tasks(&list), before, "nothing was written");
    drop(lock);
    kitchen.exits("resume --yes --no-input", 11);
}

/// While this file is not there, work of the execution lasts.
const SLOW: &str = r#"  P6*/work|P6*/redo)
    while [ ! -e "${LEDGER%/*}/go" ]; do sleep 0.02; done
"#;

#[test]
fn a_list_that_a_run_of_another_working_tree_drives_is_not_driven_twice() {
    let kitchen = Kitchen::new("TRIVIAL");
    let agent = kitchen.bench.text("agent.sh").replacen("  P6*/work|P6*/redo)\n", SLOW, 1);
    kitchen.bench.write("agent.sh", &agent);
    kitchen.git(&["commit", "--quiet", "--all", "--message=slow"]);
    let mut driver = kitchen.command("run pipeline --no-input --input request=tea");
    let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("work", || Ok((kitchen.calls("P6[3]/work") == 1).then_some(()))).unwrap();
    let other = kitchen.home.join("other");
    kitchen.git(&["worktree", "add", "--quiet", "-b", "other", other.to_str().unwrap()]);
    fs::create_dir(other.join(".onward")).unwrap();
    fs::copy(kitchen.bench.path(".onward/config.toml"), other.join(".onward/config.toml")).unwrap();
    let there = |arguments: &str| {
        Said::of(&kitchen.command(arguments).current_dir(&other).output().unwrap())
    };
    let plan = there("plan --json").json();
    let findings = plan["findings"].as_array().unwrap();
    let running = findings.iter().find(|it| it["code"] == "still-running").unwrap();
    assert_eq!(running["severity"], "blocking", "{running:#}");
    let said = there("resume --no-input --yes --accept branch-mismatch");
    assert_eq!(said.code, 16, "{said:#?}");
    assert_eq!(kitchen.calls("P6[3]/work"), 1);
    fs::write(kitchen.home.join("go"), "").unwrap();
    assert_eq!(driver.wait().unwrap().code(), Some(11));
    // When it waits for an answer no process drives it.
    let plan = there("plan --json").json();
    let findings = plan["findings"].as_array().unwrap();
    assert!(findings.iter().all(|it| it["code"] != "still-running"), "{findings:#?}");
    kitchen.approve();
    assert!(kitchen.permanent()["metadata"].get("onward_driver").is_none());
}
