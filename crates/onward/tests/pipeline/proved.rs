//! Work that an agent says it did, and a delivery that there was none of.

use std::fs;

use serde_json::{Value, json};

use crate::{adopted::list, bench::kill_all, kitchen::Kitchen};

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

/// A verifier that refuses until the fix was made so many times, and the tasks before it.
fn refusing(fixes: usize) -> Kitchen {
    let kitchen = Kitchen::new("-");
    let agent = kitchen.bench.text("agent.sh");
    let verifies = format!(
        "case $ONWARD_STEP in\n  mend*/fix) echo mended >> src/6.txt; exit 0 ;;\n  \
         P7*/work|mend*/work)\n    n=$(grep -c mended src/6.txt || true); id=$(printf '%s' \
         \"$ONWARD_STEP\" | sed 's/.*\\[\\([0-9]*\\)\\].*/\\1/')\n    mkdir -p pipeline/P7; echo \
         page > pipeline/P7/$id.md\n    if [ \"$n\" -ge {fixes} ]; then p=true; else p=false; \
         fi\n    echo \"{{\\\"passed\\\": $p, \\\"failures\\\": [\\\"it leaks\\\"]}}\" > \
         \"$ONWARD_RESULT\"; exit 0 ;;\nesac\n"
    );
    let at = agent.find("case $ONWARD_STEP in").unwrap();
    kitchen.bench.write("agent.sh", &format!("{}{verifies}{}", &agent[..at], &agent[at..]));
    kitchen.bench.write("src/6.txt", "made\n");
    kitchen.git(&["add", "."]);
    kitchen.git(&["commit", "--quiet", "--message=refuses"]);
    list(&kitchen, "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7- P7:8-");
    kitchen
}

/// What a verification refuses is mended, and verified again, and the task is completed then.
#[test]
fn what_a_verification_refuses_is_mended_and_verified_again() {
    let kitchen = refusing(2);
    kitchen.exits("resume --yes --no-input", 11);
    let calls = |step: &str| kitchen.calls(step);
    assert_eq!((calls("P7[7]/work"), calls("mend[2]/fix"), calls("mend[3]/fix")), (1, 1, 0));
    for id in [7, 8] {
        let task = kitchen.tasks()[&id].clone();
        assert_eq!(task["status"], "completed", "{task:#}");
        assert_eq!(task["metadata"]["error"], Value::Null, "{task:#}");
        assert_eq!(task["metadata"]["onward_refused"], Value::Null, "{task:#}");
    }
    let plan = kitchen.exits("plan --json", 0).json();
    assert!(!plan["findings"].to_string().contains("artifact-changed"), "{plan:#}");
    kitchen.approve();
    assert_eq!(kitchen.git(&["show", "--name-only", "--format=", "HEAD"]), "src/6.txt");
}

/// Three times at most; then a person decides, and plan, status and resume say so.
#[test]
fn what_is_refused_after_three_fixes_is_a_persons_to_decide() {
    let kitchen = refusing(4);
    let said = kitchen.exits("resume --yes --no-input", 10);
    assert!(said.err.contains("`mend` took 3 turns"), "{said:#?}");
    let task = kitchen.tasks()[&7].clone();
    assert_ne!(task["status"], "completed", "{task:#}");
    let no = "the verifier decided that the work does not hold: it leaks";
    assert_eq!(task["metadata"]["error"], no, "{task:#}");
    let plan = kitchen.exits("plan --json", 0).json();
    assert!(plan["needs"].to_string().contains("`mend` took 3 turns"), "{plan:#}");
    assert_eq!(plan["recovery_point"]["phase"], "P7", "{plan:#}");
    let summary = plan["recovery_point"]["summary"].to_string();
    assert!(summary.contains("refused"), "{summary}");
    assert_eq!(kitchen.exits("status --json", 0).json()["run"]["status"], "failed");
    kitchen.exits("resume --yes --no-input", 16);
    assert_eq!(kitchen.calls("mend[4]/fix"), 0);
    kitchen.exits("resume --yes --no-input --accept turns-used-up", 11);
    assert_eq!((kitchen.calls("mend[4]/fix"), kitchen.calls("P7[7]/work")), (1, 1));
}

/// Killed at each step of the fix, it goes on there, and makes no fix twice that was through.
#[test]
fn a_fix_of_the_verification_that_is_killed_goes_on_where_it_was() {
    for at in ["P7\\[8\\]/work", "mend\\[1\\]/fix", "mend\\[1\\]/again\\[8\\]/work"] {
        let kitchen = refusing(1);
        let half = if at.contains("fix") { "echo mended >> src/6.txt; " } else { "" };
        let agent = kitchen.bench.text("agent.sh");
        let waits = format!(
            "case $ONWARD_STEP in {at}) [ -e .git/calm ] || {{ {half}: > .git/now; cat .git/wait; \
             }} ;; esac\n"
        );
        let from = agent.find("case $ONWARD_STEP in").unwrap();
        kitchen.bench.write("agent.sh", &format!("{}{waits}{}", &agent[..from], &agent[from..]));
        kitchen.git(&["commit", "--quiet", "--all", "--message=waits"]);
        kitchen.bench.fifo(".git/wait");
        let mut engine = kitchen.leash("resume --yes --no-input");
        assert!(engine.until(|| kitchen.bench.path(".git/now").exists()), "{}", engine.last);
        engine.kill();
        kill_all(&kitchen.run_dir());
        kitchen.bench.write(".git/calm", "");
        kitchen.exits("resume --yes --no-input", 11);
        let text = kitchen.bench.text("src/6.txt");
        assert_eq!(text, "made\nmended\n", "{at}");
        assert_eq!(kitchen.calls("mend[2]/fix"), 0, "{at}");
        assert_eq!(kitchen.tasks()[&8]["status"], "completed", "{at}");
    }
}
