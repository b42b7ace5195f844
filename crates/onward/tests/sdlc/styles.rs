//! States of every style, what they name, and what the original writes while a run of ours is dead.

use std::fs;

use crate::{
    bench::{codes, kill_all},
    support::leash::Leash,
    terminal::Terminal,
    yard::{STATE, STORY, TEXT, Yard},
};

const RUN: &str = "resume --yes --no-input";
const FLOW: &str = ".nexos/workflow-state/4.2-state.yaml";

/// An epic of one story, whose state is written so.
fn epic(state: &str) -> Yard {
    let yard = Yard::new();
    yard.write("docs/stories/3.1.story.md", &TEXT.replace("4.2", "3.1").replace("Draft", "Ready"));
    yard.write(STATE, state);
    yard.git(&["add", "."]);
    yard.git(&["commit", "--quiet", "--message=plan"]);
    yard
}

#[test]
fn an_epic_between_brackets_is_gone_on_with_to_its_end() {
    let text = "epic_state: {epicId: '3', mine: [kept, 1], waves: {1: {stories: {'3.1': {status: \
                pending}}}}} # mine\n";
    let yard = epic(text);
    yard.bench.exits(RUN, 11);
    yard.go();
    yard.bench.exits(RUN, 0);
    let after = yard.bench.text(STATE);
    assert!(after.starts_with("epic_state: {epicId: '3', mine: [kept, 1], waves: {1: "), "{after}");
    assert!(after.ends_with(" # mine\n") && after.lines().count() == 1, "{after}");
    assert!(after.contains("final_gate: {status: approved}"), "{after}");
    let story = yard.bench.text("docs/stories/3.1.story.md");
    assert!(story.contains("**Status:** Done\n"), "{story}");
}

#[test]
fn a_state_that_shares_its_parts_is_refused_before_anything_runs() {
    let text = "epic_state:\n  epicId: '3'\n  waves:\n    1: &a {stories: {'3.1': {}}}\n  x: *a\n";
    let yard = epic(text);
    let said = yard.bench.exits(RUN, 16);
    assert!(said.err.contains("state-unreadable"), "{said:#?}");
    assert_eq!(yard.bench.text(STATE), text);
    assert!(!yard.bench.path(".onward/runs").exists());
}

/// A story in review, by its state as well.
fn in_review(more: &str) -> Yard {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
    yard.write(FLOW, &format!("workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 4\n{more}"));
    yard
}

#[test]
fn artifacts_that_a_state_names_are_there_after_the_adoption_too() {
    let yard = in_review("artifacts: [notes/prd.md]\n");
    yard.write("notes/prd.md", "# x\n");
    yard.git(&["add", "."]);
    yard.git(&["commit", "--quiet", "--message=state"]);
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(codes(&plan), [""; 0]);
    yard.bench.write("agent.sh", "exit 1\n");
    yard.bench.exits(RUN, 10);
    let plan = yard.bench.exits("plan --json", 0).json();
    assert!(!codes(&plan).contains(&"missing-artifact"), "{plan:#}");
    fs::remove_file(yard.bench.path("notes/prd.md")).unwrap();
    let plan = yard.bench.exits("plan --json", 0).json();
    assert!(codes(&plan).contains(&"missing-artifact"), "{plan:#}");
}

#[test]
fn the_execution_plan_of_a_preflight_begins_where_the_user_enters() {
    let yard = in_review("");
    let resume = "resume --from sdc:implement --mode preflight --no-input";
    let said = yard.bench.exits(resume, 16);
    let plan = said.err.split("Execution plan\n").nth(1).unwrap_or_else(|| panic!("{said:#?}"));
    assert!(plan.starts_with("  3. Implement by @dev\n"), "{plan}");
    let without = yard.bench.exits("resume --mode preflight --no-input", 16);
    assert!(without.err.contains("Execution plan\n  4. QA Gate by @qa\n"), "{without:#?}");
}

#[test]
fn the_words_of_the_original_are_answers() {
    let yard = in_review("");
    yard.write(
        "docs/stories/5.1.story.md",
        &TEXT.replace("4.2", "5.1").replace("Draft", "In Progress"),
    );
    let mut terminal = Terminal::start(&yard.bench, "resume");
    terminal.shows("Which one? [1-2] ");
    terminal.types("none\n");
    terminal.shows("nothing was done");
    terminal.exits(0);
    assert!(!yard.bench.path(".onward/runs").exists());
    fs::remove_file(yard.bench.path("docs/stories/5.1.story.md")).unwrap();
    let mut terminal = Terminal::start(&yard.bench, "resume");
    terminal.shows("What now?");
    terminal.types("yes\n");
    terminal.exits(0);
    assert!(yard.bench.text(STORY).contains("**Status:** Done\n"));
}

/// A resume whose agent of this step leaves something and waits: everything is killed then.
fn cut_off(step: &str, leaves: &str, prepare: impl FnOnce(&Yard)) -> Yard {
    let waits = format!(
        "  {step}) {leaves}; echo begun > .onward/at\n    while [ -e .onward/waits ]; do sleep \
         0.05; done ;;\n  create)"
    );
    let yard = Yard::with(|agent| agent.replacen("  create)", &waits, 1));
    prepare(&yard);
    yard.git(&["add", "."]);
    yard.git(&["commit", "--quiet", "--message=state"]);
    yard.bench.write(".onward/waits", "");
    let mut engine = Leash::start(&mut yard.bench.command(RUN));
    assert!(engine.until(|| yard.bench.path(".onward/at").exists()), "{}", engine.last);
    engine.kill();
    kill_all(&yard.run_dir());
    fs::remove_file(yard.bench.path(".onward/waits")).unwrap();
    yard
}

#[test]
fn a_verdict_that_the_original_gave_after_our_reviewer_died_counts() {
    let status = |history: &str| {
        format!(
            "{{\"storyId\": \"4.2\", \"currentIteration\": 1, \"maxIterations\": 5, \
             \"status\": \"in_progress\", \"history\": [{history}]}}\n"
        )
    };
    let yard = cut_off("turn*review", "true", |yard| {
        yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
        yard.write("qa/loop-status.json", &status(""));
    });
    let given = status("{\"iteration\": 1, \"verdict\": \"APPROVE\", \"by\": \"theirs\"}");
    yard.write("qa/loop-status.json", &given);
    yard.bench.write("agent.sh", "exit 1\n");
    yard.bench.exits(RUN, 0);
    let after = yard.bench.text("qa/loop-status.json");
    assert!(after.contains("\"by\": \"theirs\""), "{after}");
}

#[test]
fn an_implementation_that_the_original_finished_after_our_developer_died_counts() {
    let yard = cut_off("implement", "echo half > app.txt", |yard| {
        yard.write(STORY, &TEXT.replace("Draft", "In Progress"));
        yard.write(FLOW, "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\n");
    });
    let page = TEXT.replace("Draft", "Ready for Review").replace("- [ ]", "- [x]");
    yard.write(STORY, &page);
    yard.write(FLOW, "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 4\nby: theirs\n");
    yard.write("app.txt", "theirs\n");
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "sdc:qa-gate", "{plan:#}");
    assert_eq!(plan["reverts"].as_array().map(Vec::len), Some(0), "{plan:#}");
    let verdict = "printf '{\"verdict\": \"PASS\"}' > \"$ONWARD_RESULT\"\n";
    yard.bench.write("agent.sh", &format!("test \"$ONWARD_STEP\" = qa-gate || exit 1\n{verdict}"));
    yard.bench.exits(RUN, 0);
    assert_eq!(yard.bench.text("app.txt"), "theirs\n");
    assert!(yard.bench.text(FLOW).contains("by: theirs\n"), "{}", yard.bench.text(FLOW));
    assert!(yard.bench.text(STORY).contains("**Status:** Done\n"));
}
