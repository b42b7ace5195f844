//! How runs end: approved, waived, aborted, or given up; and what a new one finds then.

use std::fs;

use serde_json::Value;

use crate::{
    terminal::Terminal,
    yard::{STATE, STORY, TEXT, Yard},
};

const LOOP: &str = "qa/4.2/loop-status.json";

/// A story in review, whose QA loop is about to run.
fn in_review() -> Yard {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
    yard.bench.write("app.txt", "hello\n");
    yard
}

fn status(yard: &Yard) -> Value {
    serde_json::from_str(&yard.bench.text(LOOP)).unwrap()
}

#[test]
fn an_approved_loop_leaves_its_story_done_and_nothing_to_resume() {
    let yard = in_review();
    yard.bench.exits("run qa-loop --input story=4.2 --no-input", 0);
    let story = yard.bench.text(STORY);
    assert!(story.contains("**Status:** Done\n"), "{story}");
    assert!(story.contains("| qa | Status: Done |"), "{story}");
    assert_eq!(status(&yard)["closingAt"], Value::Null);
    yard.bench.exits("resume --yes --no-input", 17);
}

#[test]
fn a_loop_that_a_person_waives_leaves_its_story_done_and_one_that_they_abort_is_stopped() {
    for (answer, code, word, line) in [
        ("waive", 0, "completed", "**Status:** Done\n"),
        ("abort", 10, "stopped", "**Status:** Ready for Review\n"),
    ] {
        let yard = Yard::with(|agent| {
            agent.replace(
                "turn*review) ",
                "turn*review) say '{\"verdict\": \"BLOCKED\"}'; exit ;;\n  x) ",
            )
        });
        yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
        yard.bench.exits("run qa-loop --input story=4.2 --no-input", 11);
        yard.bench.exits(&format!("decide escalate {answer}"), 0);
        yard.bench.exits("resume --yes --no-input", code);
        assert_eq!(status(&yard)["status"], word, "{answer}");
        assert!(yard.bench.text(STORY).contains(line), "{answer}: {}", yard.bench.text(STORY));
    }
}

#[test]
fn an_epic_that_is_aborted_at_its_checkpoint_says_so_and_can_be_taken_up_again() {
    let yard = Yard::new();
    yard.with_epic();
    yard.bench.exits("run epic --input epic=3 --no-input", 11);
    yard.bench.exits("decide wave[1]/checkpoint[1]/ask ABORT", 0);
    yard.bench.exits("resume --yes --no-input", 10);
    let state = yard.bench.text(STATE);
    assert!(state.contains("  status: aborted\n"), "{state}");
    let again = yard.bench.exits("resume --yes --no-input --force", 11);
    assert!(again.err.contains("Wave 1 of the epic 3 is merged"), "{again:#?}");
    let state = yard.bench.text(STATE);
    assert!(state.contains("  status: active\n"), "{state}");
}

#[test]
fn a_run_that_is_cancelled_says_so_in_the_state_that_it_goes_on_with() {
    let yard = Yard::with(|agent| agent.replace("implement) sed", "implement) exit 1; sed"));
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    let path = ".nexos/workflow-state/run-state.yaml";
    yard.write(path, "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\n");
    yard.bench.exits("resume --yes --no-input", 10);
    let id = yard.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    yard.bench.exits(&format!("cancel {id}"), 0);
    let state = yard.bench.text(path);
    assert!(state.contains("status: aborted\n") && state.contains("aborted_at"), "{state}");
}

#[test]
fn a_run_that_is_given_up_keeps_its_state_in_an_archive_and_a_new_one_can_begin() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    let state = "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\n";
    yard.write(".nexos/workflow-state/run-state.yaml", state);
    let begun = yard.bench.exits("run sdc --input story=4.2 --no-input", 16);
    assert!(begun.err.contains("begun already"), "{begun:#?}");
    // Nothing is done before a person has seen it.
    let asked = yard.bench.onward("archive sdc-4.2");
    assert_ne!(asked.code, 0, "{asked:#?}");
    assert!(asked.err.contains("story 4.2: InProgress -> Ready"), "{asked:#?}");
    assert!(yard.bench.text(STORY).contains("In Progress"));
    let given_up = yard.bench.exits("archive sdc-4.2 --yes", 0);
    assert!(given_up.err.contains("onward run sdc --input story=4.2"), "{given_up:#?}");
    assert!(!yard.bench.path(".nexos/workflow-state/run-state.yaml").exists());
    let archive = yard.bench.path(".nexos/workflow-state/archive");
    let [kept] = fs::read_dir(archive).unwrap().collect::<Vec<_>>().try_into().unwrap();
    let kept = kept.unwrap().path().join("run-state.yaml");
    assert_eq!(fs::read_to_string(kept).unwrap(), state);
    assert!(yard.bench.text(STORY).contains("**Status:** Ready\n"), "{}", yard.bench.text(STORY));
    let journals = yard.bench.path(".onward/archive");
    let [run] = fs::read_dir(journals).unwrap().collect::<Vec<_>>().try_into().unwrap();
    let journal = fs::read_to_string(run.unwrap().path().join("journal.jsonl")).unwrap();
    assert!(journal.contains("given up: story 4.2: InProgress -> Ready"), "{journal}");
    assert!(journal.contains("\"cancelled\""), "{journal}");
    yard.bench.exits("resume --yes --no-input", 17);
    yard.bench.exits("run sdc --input story=4.2 --no-input", 0);
    assert!(yard.bench.text(STORY).contains("**Status:** Done\n"));
}

#[test]
fn an_epic_that_cannot_go_on_names_its_reasons_and_the_ways_out() {
    let yard = Yard::new();
    yard.write("docs/stories/3.4.story.md", &TEXT.replace("4.2", "3.4").replace("Draft", "Done"));
    let state = "\
epic_state:
  epicId: 3
  status: active
  updated_at: \"2026-02-03T10:00:00Z\"
  current_wave: 1
  waves:
    1:
      status: in_progress
      stories:
        3.4:
          status: in_progress
        3.5:
          status: pending
";
    yard.write(".aiox/epic-3-state.yaml", state);
    let plan = yard.bench.exits("plan", 0);
    assert!(plan.out.contains("Cannot resume: Epic Execution, 3"), "{plan:#?}");
    let stopped = yard.bench.exits("resume --yes --no-input", 16);
    for words in [
        "1. start over",
        "onward archive ",
        "/epic-3 --yes && onward run epic --input epic=3",
        "clean up its state and end it",
    ] {
        assert!(stopped.err.contains(words), "{words}: {}", stopped.err);
    }
    // No word brings the story back.
    assert!(!stopped.err.contains("--accept"), "{}", stopped.err);
    let accepts = "--accept missing-artifact --accept status-disagrees --accept stale-age";
    yard.bench.exits(&format!("resume --yes --no-input {accepts}"), 16);
    yard.write("docs/stories/3.5.story.md", &TEXT.replace("4.2", "3.5").replace("Draft", "Ready"));
    let stopped = yard.bench.exits("resume --yes --no-input", 16);
    assert!(stopped.err.contains("--accept status-disagrees"), "{}", stopped.err);
    assert_eq!(yard.bench.text(".aiox/epic-3-state.yaml"), state);
}

#[test]
fn a_wave_that_its_gate_sends_back_is_mended_in_sections_of_the_developer_alone() {
    let mend = |edit: &str| {
        let script = format!(
            "wave*gate*fix) cd \"$(ls -d .onward/worktrees/*/*3.1* | head -n 1)\" || exit 3\n    \
             {edit}; git add -A; git -c user.name=dev -c user.email=dev@example.com commit \
             --quiet --message=mended; touch \"$ROOT/mended\" ;;\n  \
             wave*gate*judge) [ -e mended ] && say '{{\"verdict\": \"APPROVE\"}}' || say \
             '{{\"verdict\": \"REJECT\"}}' ;;\n  wave*gate*judge|final-gate)"
        );
        Yard::with(|agent| {
            let agent = agent.replace("wave*gate*judge|final-gate)", &script);
            format!("ROOT=$(pwd)\n{agent}")
        })
    };
    let story = "docs/stories/3.1.story.md";
    let kept = mend(&format!("sed -i 's/## Dev Notes/## Dev Notes\\n\\nmended/' {story}"));
    kept.with_epic();
    kept.bench.exits("run epic --input epic=3 --no-input", 11);
    assert!(kept.bench.text(story).contains("mended"), "{}", kept.bench.text(story));
    let went_beyond = mend(&format!("sed -i 's/It greets/Never/' {story}"));
    went_beyond.with_epic();
    let said = went_beyond.bench.exits("run epic --input epic=3 --no-input", 10);
    assert!(said.err.contains("acceptance criteria"), "{said:#?}");
    assert!(went_beyond.bench.text(story).contains("It greets"), "nothing was merged");
}

/// The rows of the plan before the run was ours are names for its steps after it.
#[test]
fn a_row_of_the_others_plan_is_explained_when_the_run_is_ours() {
    let yard = Yard::with(|_| "exit 1\n".to_owned());
    yard.write("docs/stories/2.1.story.md", &TEXT.replace("4.2", "2.1").replace("Draft", "Review"));
    let told = "{\"storyId\": \"2.1\", \"currentIteration\": 1, \"updatedAt\": \
                \"2026-02-17T10:00:00Z\", \"history\": []}";
    yard.write("qa/2.1/loop-status.json", told);
    let plan = yard.bench.exits("plan --json qa-loop-2.1", 0).json();
    let rows = plan["steps"].as_array().unwrap().iter().map(|it| it["step"].as_str().unwrap());
    let row = rows.into_iter().find(|it| it.starts_with("review[")).unwrap().to_owned();
    yard.bench.exits(&format!("why qa-loop-2.1 {row}"), 0);
    yard.bench.exits("resume qa-loop-2.1 --yes --no-input --accept stale-age", 10);
    let said = yard.bench.exits(&format!("why qa-loop-2.1 {row}"), 0);
    assert!(said.out.contains("turn["), "{said:#?}");
}

#[test]
fn two_runs_of_one_directory_are_told_apart_and_named_in_every_command() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    yard.write("docs/stories/2.1.story.md", &TEXT.replace("4.2", "2.1").replace("Draft", "Review"));
    let told = "{\"storyId\": \"2.1\", \"currentIteration\": 2, \"updatedAt\": \
                \"2026-02-17T10:00:00Z\", \"history\": []}";
    yard.write("qa/2.1/loop-status.json", told);
    let listed = yard.bench.exits("list", 0).out;
    for name in ["sdc-4.2", "qa-loop-2.1"] {
        assert!(listed.contains(name), "{listed}");
        let named = format!("{}/{name}", yard.bench.root.display());
        let plan = yard.bench.exits(&format!("plan --json {named}"), 0).json();
        assert_eq!(plan["run"]["id"], name, "{plan:#}");
        let words = yard.bench.exits(&format!("plan {name}"), 0).out;
        assert!(words.contains(&format!("onward resume {named}")), "{words}");
    }
    let several = yard.bench.exits("resume --no-input", 16);
    assert!(several.err.contains("qa-loop-2.1") && several.err.contains("sdc-4.2"), "{several:#?}");
}

#[test]
fn a_person_at_the_terminal_gives_a_run_up_after_seeing_what_that_means() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    yard.write(".nexos/workflow-state/a-state.yaml", "workflow: sdc\ncurrent_story: 4.2\n");
    let mut terminal = Terminal::start(&yard.bench, "resume");
    terminal.shows("What now? [RESUME/point/cancel/restart/clean] ");
    terminal.types("clean\n");
    terminal.shows("story 4.2: InProgress -> Ready");
    terminal.shows("Do that? [NO/yes] ");
    terminal.types("\n");
    terminal.shows("What now? ");
    terminal.types("clean\n");
    terminal.shows("Do that? ");
    terminal.types("yes\n");
    terminal.exits(0);
    assert!(yard.bench.text(STORY).contains("**Status:** Ready\n"));
    assert!(!yard.bench.path(".nexos/workflow-state/a-state.yaml").exists());
}

#[test]
fn a_state_directory_is_no_project_of_its_own() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
    let told = r#"{"storyId": "2.1", "currentIteration": 1, "status": "in_progress"}"#;
    yard.write(".aios/qa/loop-status.json", told);
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(plan["run"]["id"], "sdc-4.2", "{plan:#}");
    let said = yard.bench.onward("");
    let said = said.out + &said.err;
    assert!(said.contains("4.2") && !said.contains(".aios"), "{said}");
}
