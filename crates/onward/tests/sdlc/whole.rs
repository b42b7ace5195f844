//! Each workflow from its beginning to its end.

use serde_json::Value;

use crate::yard::{STATE, STORY, TEXT, Yard};

#[test]
fn a_story_is_created_validated_implemented_judged_and_reworked() {
    let yard = Yard::new();
    yard.bench.exits("run sdc --input story=4.2 --no-input", 0);
    let story = yard.bench.text(STORY);
    assert!(story.contains("**Status:** Done\n"), "{story}");
    assert!(story.contains("- [x] greet"), "{story}");
    let log: Vec<&str> = story.lines().filter(|it| it.contains("| Status: ")).collect();
    let words: Vec<&str> = log.iter().map(|it| it.rsplit(": ").next().unwrap()).collect();
    assert_eq!(words, ["Ready |", "InProgress |", "InReview |", "Done |"], "{story}");
    assert_eq!(yard.bench.text("app.txt"), "hello ada\n");
    assert!(yard.bench.text("docs/qa/gates/4.2-gate.yml").contains("verdict: PASS"));
}

#[test]
fn an_agent_that_edits_what_is_not_its_own_stops_the_run() {
    let yard = Yard::with(|agent| {
        agent.replace("echo hello > app.txt", "sed -i 's/It greets/Never/' \"$story\"")
    });
    let said = yard.bench.exits("run sdc --input story=4.2 --no-input", 10);
    assert!(said.err.contains("acceptance criteria"), "{said:#?}");
    yard.write(STORY, &yard.bench.text(STORY).replace("Never", "It greets"));
    yard.bench.exits("resume --yes --no-input", 0);
    assert!(yard.bench.text(STORY).contains("**Status:** Done"));
}

#[test]
fn a_loop_reviews_and_fixes_until_it_is_approved() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
    yard.bench.write("app.txt", "hello\n");
    yard.bench.exits("run qa-loop --input story=4.2 --no-input", 0);
    let told: Value = serde_json::from_str(&yard.bench.text("qa/4.2/loop-status.json")).unwrap();
    assert_eq!(told["status"], "completed", "{told:#}");
    assert_eq!(told["currentIteration"], 2, "{told:#}");
    assert_eq!(told["history"][0]["verdict"], "REJECT", "{told:#}");
    assert!(told["history"][0]["fixedAt"].is_string(), "{told:#}");
    assert_eq!(told["history"][1]["verdict"], "APPROVE", "{told:#}");
}

#[test]
fn a_spec_is_written_and_revised() {
    let yard = Yard::new();
    yard.bench.exits("run spec --input feature=login --input request=x --no-input", 0);
    assert_eq!(yard.bench.text("docs/specs/login/spec.md"), "# Login\n\nbetter\n");
    assert!(!yard.bench.path("docs/specs/login/research.json").exists(), "it is simple");
}

#[test]
fn a_story_that_another_orchestrator_left_goes_on_to_its_end() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    let state = "# kept\nworkflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\nodd: [1, 2]\n";
    yard.write(".nexos/workflow-state/run-state.yaml", state);
    let before = yard.bench.text(STORY);
    yard.bench.exits("plan --json", 0);
    assert_eq!(yard.bench.text(STORY), before);
    yard.bench.exits("resume --yes --no-input", 0);
    assert!(yard.bench.text(STORY).contains("**Status:** Done"));
    let after = yard.bench.text(".nexos/workflow-state/run-state.yaml");
    let kept = state.replace("current_phase: 3", "current_phase: 4");
    assert!(after.starts_with(&kept) && after.contains("status: completed"), "{after}");
    let again = yard.bench.exits("resume --yes --no-input", 17);
    assert!(again.err.contains("onward") || again.out.is_empty(), "{again:#?}");
}

#[test]
fn a_loop_that_was_left_goes_on_with_the_current_iteration_and_keeps_unknown_keys() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
    yard.bench.write("app.txt", "hello\n");
    let told = "{\n  \"storyId\": \"4.2\",\n  \"currentIteration\": 1,\n  \"maxIterations\": 4,\n  \
                \"team\": \"blue\",\n  \"history\": [{\"iteration\": 1, \"verdict\": \"REJECT\", \
                \"issuesFound\": 3, \"fixedAt\": null}]\n}\n";
    yard.write("qa/4.2/loop-status.json", told);
    yard.bench.exits("resume --yes --no-input", 0);
    let after: Value = serde_json::from_str(&yard.bench.text("qa/4.2/loop-status.json")).unwrap();
    assert_eq!(after["team"], "blue", "{after:#}");
    assert_eq!(after["history"][0]["issuesFound"], 3, "{after:#}");
    assert!(after["history"][0]["fixedAt"].is_string(), "{after:#}");
    assert_eq!(after["history"][1]["verdict"], "APPROVE", "{after:#}");
}

#[test]
fn an_epic_goes_wave_by_wave_and_asks_after_each() {
    let yard = Yard::new();
    yard.with_epic();
    let asked = yard.bench.exits("run epic --input epic=3 --no-input", 11);
    assert!(asked.err.contains("Wave 1 of the epic 3 is merged"), "{asked:#?}");
    let log = yard.git(&["log", "--format=%s", "-2"]);
    let merged: Vec<&str> = log.lines().map(|it| it.split(':').next().unwrap()).collect();
    assert_eq!(merged, ["3.1", "3.2"], "3.2 is merged first, as the plan says");
    assert_eq!(yard.git(&["tag", "--list"]), "epic-3-wave-1");
    assert!(yard.bench.text("docs/stories/3.1.story.md").contains("**Status:** Done"));
    assert!(yard.bench.text("docs/stories/3.1.story.md").contains("- [x] greet"));
    assert!(yard.bench.text("docs/stories/3.3.story.md").contains("**Status:** Ready"));
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "epic:checkpoint", "{plan:#}");
    yard.go();
    yard.bench.exits("resume --yes --no-input", 11);
    yard.go();
    yard.bench.exits("resume --yes --no-input", 0);
    let state = yard.bench.text(STATE);
    assert!(state.contains("  status: completed\n"), "{state}");
    assert_eq!(yard.bench.text("made-3.3.txt"), "3.3\n");
}

#[test]
fn an_epic_that_another_orchestrator_left_goes_on_with_the_stories_that_are_open() {
    let yard = Yard::new();
    yard.with_epic();
    let story = "docs/stories/3.1.story.md";
    yard.write(story, &yard.bench.text(story).replace("Ready", "Done"));
    let state = "\
# kept
epic_state:
  epicId: 3
  mode: yolo
  status: active
  current_wave: 1
  total_waves: 2
  waves:
    1:
      name: ground
      status: in_progress
      stories:
        3.1:
          status: completed
        3.2:
          status: pending
  odd: kept
";
    yard.write(".aiox/epic-3-state.yaml", state);
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["steps"][0], "wave[1]/story[3.2]", "{plan:#}");
    yard.bench.exits("resume --yes --no-input", 11);
    assert!(!yard.bench.path("made-3.1.txt").exists(), "it was completed");
    let journal = std::fs::read_to_string(yard.run_dir().join("journal.jsonl")).unwrap();
    let opened = journal.lines().next().unwrap();
    assert!(opened.contains("\"mode\":\"autopilot\""), "the mode of the original: {opened}");
    assert_eq!(yard.bench.text("made-3.2.txt"), "3.2\n");
    let after = yard.bench.text(".aiox/epic-3-state.yaml");
    assert!(after.starts_with("# kept\nepic_state:\n  epicId: 3\n"), "{after}");
    assert!(after.contains("  odd: kept\n") && after.contains("awaiting_input: true"), "{after}");
}

#[test]
fn a_person_enters_a_story_earlier_and_what_follows_is_done_again() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
    let ahead = yard.bench.exits("resume --yes --no-input --from sdc:nowhere", 1);
    assert!(ahead.err.contains("sdc:nowhere"), "{ahead:#?}");
    yard.bench.exits("resume --yes --no-input --from sdc:implement", 0);
    assert_eq!(yard.bench.text("app.txt"), "hello ada\n", "implemented, then mended");
    let story = yard.bench.text(STORY);
    assert!(story.contains("**Status:** Done") && story.contains("- [x] greet"), "{story}");
    let state = yard.bench.text(".nexos/workflow-state/4.2-state.yaml");
    assert!(state.contains("status: completed") && !state.contains("sdc:implement"), "{state}");
}
