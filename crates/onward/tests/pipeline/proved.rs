//! Work that an agent says it did, and a delivery that there was none of.

use std::fs;

use serde_json::{Value, json};

use crate::{adopted::list, kitchen::Kitchen};

const RUN: &str = "run pipeline --no-input --input request=tea";

/// A kitchen whose agent does this in the place of its work.
fn idle(work: &str) -> Kitchen {
    let kitchen = Kitchen::new("TRIVIAL");
    let agent = kitchen.bench.text("agent.sh");
    let idle = agent.replace("P6*/work|P6*/redo)\n", &format!("P6*/work|P6*/redo) {work}\n"));
    assert_ne!(idle, agent);
    kitchen.bench.write("agent.sh", &idle);
    kitchen.git(&["commit", "--quiet", "--all", "--message=idle"]);
    kitchen
}

fn task(kitchen: &Kitchen, subject: &str) -> Value {
    let tasks = kitchen.tasks();
    tasks.values().find(|it| it["subject"] == subject).unwrap().clone()
}

#[test]
fn a_task_of_which_no_file_was_written_is_not_done_and_is_done_again() {
    let kitchen = idle("[ -e \"$LEDGER.now\" ] || exit 0");
    let said = kitchen.exits(RUN, 10);
    assert!(said.err.contains("wrote none of its files"), "{said:#?}");
    let leaves = task(&kitchen, "Weigh the leaves");
    assert_ne!(leaves["status"], "completed", "{leaves:#}");
    assert_eq!(leaves["metadata"]["error"], "src/leaves.txt was not written", "{leaves:#}");
    let id = leaves["id"].as_str().unwrap();
    fs::write(kitchen.home.join("ledger.now"), "").unwrap();
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!(kitchen.calls(&format!("P6[{id}]/work")), 2, "its agent was asked again");
    let leaves = task(&kitchen, "Weigh the leaves");
    assert_eq!(
        (&leaves["status"], &leaves["metadata"]["error"]),
        (&json!("completed"), &Value::Null)
    );
    assert_eq!(leaves["metadata"]["result"], "done and proved", "{leaves:#}");
    kitchen.approve();
    assert_eq!(kitchen.permanent()["metadata"]["commit_status"], "committed");
}

/// What the tasks were to make was there, as it is committed.
#[test]
fn a_delivery_without_a_commit_says_so() {
    let kitchen = idle("exit 0");
    for name in ["src/leaves.txt", "src/pot.txt"] {
        kitchen.bench.write(name, "there\n");
    }
    kitchen.git(&["add", "src"]);
    kitchen.git(&["commit", "--quiet", "--message=made"]);
    kitchen.exits(RUN, 11);
    let leaves = task(&kitchen, "Weigh the leaves");
    assert_eq!(leaves["metadata"]["result"], "done; no file was changed for it", "{leaves:#}");
    kitchen.approve();
    let permanent = kitchen.permanent();
    assert_eq!(permanent["status"], "completed", "{permanent:#}");
    assert_eq!(permanent["metadata"]["commit_status"], "nothing to commit", "{permanent:#}");
    assert_eq!(permanent["metadata"]["commit"], Value::Null, "{permanent:#}");
    assert!(kitchen.git(&["log", "--format=%s"]).starts_with("made\n"));
}

/// A verification that fails is a decision of its agent, and no answer of the wrong form.
#[test]
fn a_verification_that_fails_says_what_was_decided_and_is_done_again() {
    let kitchen = Kitchen::new("-");
    let agent = kitchen.bench.text("agent.sh");
    let passed = "P7) echo '{\"passed\": true}'";
    let no = "P7) holds=false; [ ! -e \"$LEDGER.now\" ] || holds=true; \
              echo \"{\\\"passed\\\": $holds, \\\"failures\\\": [\\\"it leaks\\\"]}\"";
    assert!(agent.contains(passed));
    kitchen.bench.write("agent.sh", &agent.replace(passed, no));
    list(&kitchen, "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7-");
    let said = kitchen.exits("resume --yes --no-input", 10);
    let no = "the verifier decided that the work does not hold: it leaks";
    assert!(said.err.contains(no) && !said.err.contains("schema"), "{said:#?}");
    assert_ne!(kitchen.tasks()[&7]["status"], "completed");
    fs::write(kitchen.home.join("ledger.now"), "").unwrap();
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!(kitchen.calls("P7[7]/work"), 2);
}
