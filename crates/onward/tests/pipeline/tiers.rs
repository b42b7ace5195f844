//! A pipeline of each tier, from nothing to a commit.

use serde_json::json;

use crate::kitchen::Kitchen;

#[track_caller]
fn is_delivered(kitchen: &Kitchen, phases: &[(&str, usize)]) {
    let permanent = kitchen.permanent();
    assert_eq!(permanent["status"], "completed", "{permanent:#}");
    let metadata = &permanent["metadata"];
    assert_eq!(metadata["commit_status"], "committed", "{permanent:#}");
    assert_eq!(metadata["commit"], json!(kitchen.git(&["rev-parse", "HEAD"])));
    let tasks = kitchen.tasks();
    for (phase, count) in phases {
        let of: Vec<_> = tasks.values().filter(|it| it["metadata"]["phase"] == *phase).collect();
        assert_eq!(of.len(), *count, "{phase}: {tasks:#?}");
        assert!(of.iter().all(|it| it["status"] == "completed"), "{phase}: {of:#?}");
    }
    let count: usize = phases.iter().map(|it| it.1).sum();
    assert_eq!(tasks.len(), count + 1);
    let committed = kitchen.git(&["show", "--name-only", "--format=%s", "HEAD"]);
    assert_eq!(committed, "tea: it is better\n\nsrc/leaves.txt\nsrc/pot.txt\nsrc/water.txt");
    assert_eq!(kitchen.bench.text("src/pot.txt").lines().last().unwrap(), "made for src/pot.txt");
}

#[test]
fn a_small_change_takes_three_phases() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.bench.write("notes.md", "my own\n");
    let said = kitchen.exits("run pipeline --no-input --input request=tea", 11);
    assert!(said.err.contains("approve"), "{said:#?}");
    assert_eq!(kitchen.permanent()["metadata"]["commit_status"], "pending");
    assert_eq!(kitchen.git(&["log", "--format=%s"]), "start", "the gate comes before the commit");
    kitchen.approve();
    is_delivered(&kitchen, &[("P0", 1), ("P6", 3)]);
    assert!(kitchen.git(&["status", "--short"]).contains("notes.md"), "it is not ours to commit");
}

#[test]
fn a_change_of_the_middle_tier_takes_seven() {
    let kitchen = Kitchen::new("STANDARD");
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    kitchen.approve();
    is_delivered(&kitchen, &[("P0", 2), ("P1", 3), ("P2", 2), ("P3", 3), ("P6", 3), ("P7", 2)]);
    let pot = kitchen.bench.text("src/pot.txt");
    assert!(pot.contains("src/water.txt") && pot.contains("src/leaves.txt"), "in order: {pot}");
    let signals = kitchen.permanent()["metadata"]["phase_signals"].clone();
    for phase in ["p0", "p1", "p2", "p3", "p6", "p7"] {
        assert!(signals[phase].as_str().unwrap().starts_with("PASS"), "{signals}");
    }
}

#[test]
fn a_large_change_takes_all_nine_and_the_user_may_say_so() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits("run pipeline --no-input --input request=tea --input tier=COMPLEX", 11);
    assert_eq!(kitchen.permanent()["metadata"]["tier"], "COMPLEX");
    kitchen.approve();
    let middle = [("P0", 2), ("P1", 3), ("P2", 2), ("P3", 3), ("P6", 3), ("P7", 2)];
    is_delivered(&kitchen, &[&middle[..], &[("P4", 1), ("P5", 1)]].concat());
}

#[test]
fn what_a_review_refuses_is_mended_three_times_at_most() {
    let mut kitchen = Kitchen::new("TRIVIAL");
    kitchen.env.push(("FIRST_REVIEW", "false".to_owned()));
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    assert_eq!(kitchen.bench.text("src/pot.txt").lines().last().unwrap(), "mended");
    assert_eq!(kitchen.calls("review[2]/judge"), 1);
    let agent = kitchen.bench.text("agent.sh").replace("passed=true\n", "passed=false\n");
    let mut stubborn = Kitchen::new("TRIVIAL");
    stubborn.bench.write("agent.sh", &agent);
    stubborn.env.push(("FIRST_REVIEW", "false".to_owned()));
    stubborn.exits("run pipeline --no-input --input request=tea", 10);
    assert_eq!(stubborn.calls("review[3]/judge"), 1);
    assert_eq!(stubborn.calls("review[4]/judge"), 0);
}

#[test]
fn a_refusal_at_the_gate_commits_nothing() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    kitchen.exits("reject P8/confirm", 0);
    kitchen.exits("resume --yes --no-input", 10);
    assert_eq!(kitchen.git(&["log", "--format=%s"]), "start");
    assert_eq!(kitchen.permanent()["metadata"]["commit_status"], "pending");
}
