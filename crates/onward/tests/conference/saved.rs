//! What is left in a researcher's tree or directory is kept before a round takes it over.

use std::fs;

use crate::hall::Hall;

/// One round of three is over, as the other system would leave it: no run of ours, no ref of ours.
fn after_round_1() -> Hall {
    let hall = Hall::new(|text| text.replace("Max rounds:** 3", "Max rounds:** 1"));
    hall.bench.exits("run conference --no-input", 11);
    let document = hall.bench.text("conference.md").replace("Max rounds:** 1", "Max rounds:** 2");
    hall.bench.write("conference.md", &document);
    for file in ["synthesis.md", "final_report.md"] {
        fs::remove_file(hall.bench.path(file)).unwrap();
    }
    fs::remove_dir_all(hall.bench.path(".onward/runs")).unwrap();
    let refs = hall.git(&["for-each-ref", "--format=%(refname)", "refs/onward"]);
    for name in refs.lines() {
        hall.git(&["update-ref", "-d", name]);
    }
    hall
}

fn round_2_started(hall: &Hall) {
    let at = last_time(hall);
    let line = format!(
        "{{\"event\":\"round.started\",\"timestamp\":\"{at}\",\"payload\":{{\"round\":2,\
         \"researcher_states\":[\"A:ready\",\"B:ready\",\"C:ready\"]}}}}\n"
    );
    let log = hall.bench.text("conference_events.jsonl");
    hall.bench.write("conference_events.jsonl", &(log + &line));
}

fn last_time(hall: &Hall) -> String {
    let last: serde_json::Value = serde_json::from_str(hall.events().last().unwrap()).unwrap();
    last["timestamp"].as_str().unwrap().to_owned()
}

fn rescues(hall: &Hall) -> Vec<String> {
    let args = ["for-each-ref", "--format=%(refname)", "refs/onward/conference/rescue"];
    hall.git(&args).lines().map(str::to_owned).collect()
}

/// The metric that a researcher began round 2 with.
fn baseline(hall: &Hall, researcher: &str) -> String {
    let of = |line: &String| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let it = &event["payload"];
        let is_it = it["researcher"] == researcher && it["round"] == 2 && it["iteration"] == 0;
        is_it.then(|| it["metric_value"].to_string())
    };
    hall.events().iter().find_map(of).unwrap()
}

#[test]
fn a_round_takes_nothing_from_a_tree_that_it_does_not_keep_first() {
    let hall = after_round_1();
    let of =
        |who: &str, file: &str| hall.bench.path(&format!(".worktrees/researcher-{who}/{file}"));
    fs::write(of("A", "a.txt"), "precious\n").unwrap();
    fs::write(of("A", "notes.txt"), "new and precious\n").unwrap();
    fs::write(of("C", "c.txt"), "50\n").unwrap();
    let tree = of("C", "").display().to_string();
    hall.git(&["-C", &tree, "commit", "--quiet", "--all", "--message=seen by nobody"]);
    let commit = hall.git(&["rev-parse", "conference/researcher-C"]);
    hall.bench.exits("resume --yes --no-input", 11);

    // What was not committed, the resume has kept: `onward undo` brings it back.
    let kept = hall.bench.exits("rescue list --json", 0).json();
    let dir = kept["rescues"][0]["dir"].as_str().unwrap();
    let kept = |file: &str| {
        fs::read_to_string(format!("{dir}/files/.worktrees/researcher-A/{file}")).unwrap()
    };
    assert_eq!([kept("a.txt"), kept("notes.txt")], ["precious\n", "new and precious\n"]);
    let refs = rescues(&hall);
    let reaching = hall.git(&["for-each-ref", "--contains", &commit, "refs/onward/conference"]);
    assert!(reaching.contains("rescue/2/C/begin/"), "{refs:?}");
    let said = hall.bench.exits("log --step round[2]/begin", 0);
    assert!((said.out + &said.err).contains("rescue/2/C/begin/"));
    assert!(
        !refs.iter().any(|it| it.contains("/2/B/")),
        "all of B is on conference/best: {refs:?}"
    );
}

#[test]
fn a_round_that_was_only_started_begins_with_the_best_there_is() {
    let hall = after_round_1();
    let tree = hall.bench.path(".worktrees/researcher-A");
    fs::write(tree.join("a.txt"), "7\n").unwrap();
    let path = tree.display().to_string();
    hall.git(&["-C", &path, "commit", "--quiet", "--all", "--message=half of an iteration"]);
    let commit = hall.git(&["rev-parse", "conference/researcher-A"]);
    round_2_started(&hall);
    let plan = hall.bench.onward("plan --json").json();
    assert_eq!(plan["recovery_point"]["code"], "research-restart", "{plan:#}");
    hall.bench.exits("resume --yes --no-input", 11);
    assert_eq!([baseline(&hall, "A"), baseline(&hall, "B")], ["290.0", "290.0"]);
    let reaching = hall.git(&["for-each-ref", "--contains", &commit, "refs/onward/conference"]);
    assert!(reaching.contains("rescue/2/A/begin/"), "{reaching}");
}

#[test]
fn trees_that_are_gone_are_made_again_and_begin_with_the_best_there_is() {
    let hall = after_round_1();
    fs::remove_dir_all(hall.bench.path(".worktrees")).unwrap();
    round_2_started(&hall);
    hall.bench.exits("resume --yes --no-input", 11);
    assert_eq!(["A", "B", "C"].map(|who| baseline(&hall, who)), ["290.0", "290.0", "290.0"]);
}

#[test]
fn without_a_best_branch_the_round_makes_one_that_can_be_merged() {
    let hall = after_round_1();
    fs::remove_dir_all(hall.bench.path(".worktrees")).unwrap();
    hall.git(&["worktree", "prune"]);
    for branch in ["best", "researcher-A", "researcher-B", "researcher-C"] {
        hall.git(&["branch", "--quiet", "-D", &format!("conference/{branch}")]);
    }
    hall.bench.exits("resume --yes --no-input", 11);
    let best = hall.git(&["log", "--format=%s", "conference/best"]);
    assert_eq!(best.lines().count(), 3, "the start, and what A and B had validated: {best}");
    hall.close("merge");
    assert_eq!(hall.bench.text("a.txt"), "94\n");
}

#[test]
fn a_worktree_that_another_system_made_elsewhere_is_the_researchers_own() {
    let hall = after_round_1();
    hall.git(&["worktree", "remove", "--force", ".worktrees/researcher-A"]);
    hall.git(&["worktree", "add", "--quiet", "worktrees/A", "conference/researcher-A"]);
    hall.bench.exits("resume --yes --no-input", 11);
    assert!(!hall.bench.path(".worktrees/researcher-A").exists());
    let elsewhere = hall.bench.path("worktrees/A").display().to_string();
    assert_eq!(hall.git(&["-C", &elsewhere, "status", "--short"]), "");
    let last = hall.git(&["-C", &elsewhere, "log", "-1", "--format=%s"]);
    assert!(last.contains("round 2, researcher A, iteration 1"), "{last}");
}

#[test]
fn half_done_work_in_a_directory_is_kept_when_its_attempt_fails() {
    let hall = Hall::with(
        |text| {
            let text = text.replace("\nmetric\n", "\nqualitative\n");
            let text = text.replace("Max rounds:** 3", "Max rounds:** 1");
            text.replace("## Success Metric", "## Success Criteria\nIt is small.\n\n## Ideas")
        },
        |agent| {
            let half = "    if [ \"$who$turn$ONWARD_ATTEMPT\" = A21 ]; then\n      \
                        echo precious > half.txt; exit 1\n    fi\n    touch \"$file\"\n";
            let agent = agent.replace("    value=$(cat", &format!("{half}    value=$(cat"));
            agent.replace("{\"description\"", "{\"score\": $turn, \"description\"")
        },
    );
    hall.bench.exits("run conference --no-input", 0);
    // The engine undoes what a failed attempt left, before the next one.
    let kept = hall.bench.exits("rescue list --json", 0).json();
    let kept = kept["rescues"].as_array().unwrap();
    assert_eq!(kept.len(), 1, "nothing else is kept: {kept:#?}");
    let dir = kept[0]["dir"].as_str().unwrap();
    let path = format!("{dir}/files/workspace/researcher-A/half.txt");
    assert_eq!(fs::read_to_string(path).unwrap(), "precious\n");
    assert!(!hall.bench.path("workspace/researcher-A/half.txt").exists());
    assert!(!hall.bench.path("workspace/.rescue").exists(), "the brief found nothing in the way");
}
