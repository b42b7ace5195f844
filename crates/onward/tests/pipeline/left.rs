//! What agents that were killed left, and what the original did after the user's answer.

use std::{fs, time::Duration};

use serde_json::json;

use crate::{
    adopted::{list, write},
    bench::kill_all,
    kitchen::Kitchen,
};

const RESUME: &str = "resume --yes --no-input";

/// Every process is killed while the agent of this step waits, after it has left files. A task 5
/// beside it comes to its end between the two.
fn killed_at(step: &str, tier: &str, script: &str) -> Kitchen {
    let kitchen = Kitchen::new("-");
    let agent = kitchen.bench.text("agent.sh");
    let beside = script.contains("P2:5-");
    let tells = if beside { "echo > .git/go;" } else { "" };
    let waits = format!(
        "case $ONWARD_STEP in {step}) [ -e .git/calm ] || {{ echo junk > junk.txt; echo warm >> \
         src/water.txt; : > .git/now; {tells} cat .git/wait; }} ;; P2\\[5\\]/work) cat .git/go ;; \
         esac\n"
    );
    let at = agent.find("case $ONWARD_STEP in").unwrap();
    kitchen.bench.write("agent.sh", &format!("{}{waits}{}", &agent[..at], &agent[at..]));
    kitchen.git(&["commit", "--quiet", "--all", "--message=waits"]);
    kitchen.bench.fifo(".git/wait");
    kitchen.bench.fifo(".git/go");
    let list = list(&kitchen, tier, script);
    if step.ends_with("/verify") {
        // Its file was changed after it.
        kitchen.bench.write("src/3.txt", "made\n");
        let task = fs::File::options().write(true).open(list.join("3.json")).unwrap();
        let written = task.metadata().unwrap().modified().unwrap();
        task.set_modified(written - Duration::from_hours(1)).unwrap();
    }
    let mut engine = kitchen.leash(RESUME);
    let is_over = || !beside || kitchen.tasks()[&5]["status"] == "completed";
    let is_there = || kitchen.bench.path(".git/now").exists() && is_over();
    assert!(engine.until(is_there), "{}", engine.last);
    engine.kill();
    kill_all(&kitchen.run_dir());
    kitchen.bench.write(".git/calm", "");
    kitchen
}

/// Agents that are told to change nothing but their page: the undo is not tied to their rights.
#[test]
fn stray_files_of_a_killed_agent_are_undone_although_it_may_edit_nothing() {
    for (step, tier, script) in [
        ("P2\\[4\\]/work", "COMPLEX", "P0:2+ P1:3+ P2:4-"),
        ("P6\\[3\\]/verify", "TRIVIAL", "P0:2+ P6:3+"),
        ("breakdown", "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+"),
        ("review\\[1\\]/judge", "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6-"),
        ("P7\\[7\\]/work", "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7-"),
    ] {
        let kitchen = killed_at(step, tier, script);
        let plan = kitchen.exits("plan --json", 0).json();
        assert!(plan["reverts"].to_string().contains("junk.txt"), "{step}: {plan:#}");
        kitchen.exits(RESUME, 11);
        assert!(!kitchen.bench.path("junk.txt").exists(), "{step}");
        assert!(!kitchen.bench.text("src/water.txt").contains("warm"), "{step}");
        let rescues = kitchen.exits("rescue list --json", 0);
        assert!(rescues.out.contains("junk.txt"), "{step}: {rescues:#?}");
        kitchen.approve();
    }
}

/// Another one of the phase came to its end meanwhile, and no one knows whose the files are: they
/// are asked about, and its page stays.
#[test]
fn stray_files_that_two_agents_may_have_left_are_asked_about() {
    let kitchen = killed_at("P2\\[4\\]/work", "COMPLEX", "P0:2+ P1:3+ P2:4- P2:5-");
    let page = kitchen.bench.text("pipeline/P2/5.md");
    let said = kitchen.exits(RESUME, 16);
    assert!(said.err.contains("dirty-tree"), "{said:#?}");
    kitchen.exits(&format!("{RESUME} --accept dirty-tree"), 11);
    assert_eq!(kitchen.bench.text("pipeline/P2/5.md"), page);
    assert_eq!(kitchen.calls("P2[5]/work"), 1);
    let rescues = kitchen.exits("rescue list --json", 0);
    assert!(rescues.out.contains("src/water.txt"), "{rescues:#?}");
}

/// The answer was about other work than what would be delivered.
#[test]
fn work_that_the_original_completes_after_the_yes_is_asked_about_before_the_delivery() {
    // A file of its own, or more work on what the answer was about.
    for file in ["src/4.txt", "src/3.txt"] {
        let kitchen = Kitchen::new("-");
        let list = list(&kitchen, "TRIVIAL", "P0:2+ P6:3-");
        kitchen.exits(RESUME, 11);
        kitchen.exits("approve P8/confirm", 0);
        kitchen.bench.write(file, "made by the original\n");
        let metadata = json!({"type": "work", "phase": "P6", "parent": "1", "files": [file]});
        write(&list, 4, "do 4", "completed", &metadata);
        let plan = kitchen.exits("plan --json", 0).json();
        assert!(plan["findings"].to_string().contains("approval-outdated"), "{file}: {plan:#}");
        kitchen.exits(RESUME, 11);
        assert_eq!(kitchen.git(&["log", "--format=%s"]), "start", "{file}: nothing is delivered");
        kitchen.approve();
        assert_eq!(kitchen.permanent()["metadata"]["commit_status"], "committed", "{file}");
        let committed = kitchen.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert!(committed.contains(file), "{committed}");
    }
}
