//! A conference with worktrees that another system left in the middle of an iteration.

use std::fs;

use crate::hall::Hall;

#[test]
fn half_done_changes_in_a_worktree_are_rescued_and_the_tree_goes_to_its_branch() {
    let hall = Hall::new(|text| text.replace("Max rounds:** 3", "Max rounds:** 2"));
    hall.bench.exits("run conference --no-input", 11);
    // As the other system would leave it: no run of ours, two iterations of round 2 logged.
    fs::remove_dir_all(hall.bench.path(".onward/runs")).unwrap();
    let events = hall.events();
    let second = |line: &String| line.contains("round.started") && line.contains("\"round\":2");
    let cut = events.iter().position(second).unwrap() + 3;
    hall.bench.write("conference_events.jsonl", &(events[..cut].join("\n") + "\n"));
    let tree = hall.bench.path(".worktrees/researcher-A");
    let head = hall.git(&["rev-parse", "conference/researcher-A"]);
    fs::write(tree.join("a.txt"), "half done\n").unwrap();
    fs::write(tree.join("new.txt"), "of nobody\n").unwrap();
    let plan = hall.bench.onward("plan --json").json();
    let kinds = plan["reverts"].as_array().unwrap().iter().map(|it| it["kind"].clone());
    assert!(kinds.collect::<Vec<_>>().contains(&"reset-worktree".into()), "{plan:#}");

    hall.bench.exits("resume --yes --no-input", 11);
    let run = hall.run_dir();
    let rescues = fs::read_dir(run.join("rescue")).unwrap().map(|it| it.unwrap().path());
    let of_tree = rescues.map(|it| it.join("files/.worktrees/researcher-A"));
    let kept = of_tree.filter(|it| it.is_dir()).last().expect("the tree was rescued");
    assert_eq!(fs::read_to_string(kept.join("a.txt")).unwrap(), "half done\n");
    assert_eq!(fs::read_to_string(kept.join("new.txt")).unwrap(), "of nobody\n");
    let refs = hall.git(&["for-each-ref", "--format=%(refname)", "refs/onward"]);
    assert!(refs.contains("-rescue/"), "{refs}");
    assert!(!tree.join("new.txt").exists());
    assert!(hall.git(&["log", "--format=%H", "conference/researcher-A"]).contains(&head));
    hall.close("keep");
    assert_eq!(hall.names().iter().filter(|it| *it == "conference.completed").count(), 1);
}
