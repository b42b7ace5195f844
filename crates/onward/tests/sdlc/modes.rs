//! The three modes of a resume, as users of the orchestrator know them, and several runs at once.

use std::fs;

use crate::{
    terminal::Terminal,
    yard::{STORY, TEXT, Yard},
};

const STATE: &str = ".nexos/workflow-state/4.2-state.yaml";

fn ago(time: &str) -> String {
    let args = ["-u", "-d", &format!("-{time}"), "+%Y-%m-%dT%H:%M:%SZ"];
    let out = std::process::Command::new("date").args(args).output();
    String::from_utf8(out.unwrap().stdout).unwrap().trim().to_owned()
}

/// A story whose implementation was interrupted so long ago; `more` is added to its state.
fn interrupted(time: &str, more: &str) -> Yard {
    let yard = Yard::new();
    let text = TEXT.replace("Draft", "In Progress");
    yard.write(STORY, &text);
    let at = ago(time);
    let state = format!("workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\nupdated_at: {at}\n");
    yard.write(STATE, &(state + more));
    yard
}

fn journal(yard: &Yard) -> String {
    fs::read_to_string(yard.run_dir().join("journal.jsonl")).unwrap()
}

fn is_done(yard: &Yard) -> bool {
    yard.bench.text(STORY).contains("**Status:** Done\n")
}

#[test]
fn autopilot_goes_on_asks_about_conflicts_and_writes_down_what_it_passed_over() {
    let clean = interrupted("45 minutes", "");
    clean.bench.exits("resume --mode autopilot --no-input", 0);
    assert!(is_done(&clean));
    let warned = interrupted("45 minutes", "artifacts: [docs/gone.md]\n");
    warned.bench.exits("resume --mode autopilot --no-input", 0);
    assert!(
        journal(&warned).contains("continued despite missing-artifact"),
        "{}",
        journal(&warned)
    );
    for (time, more) in [("3 days", "artifacts: [docs/gone.md]\n"), ("9 days", "")] {
        let old = interrupted(time, more);
        old.bench.exits("resume --mode autopilot --no-input", 16);
        assert!(!old.bench.path(".onward/runs").exists(), "{time}");
    }
    let conflict = interrupted("45 minutes", "");
    fs::remove_file(conflict.bench.path(STORY)).unwrap();
    let said = conflict.bench.exits("resume --mode autopilot --no-input", 16);
    assert!(said.err.contains("missing-artifact"), "{said:#?}");
}

/// Where a person is there, a conflict turns it interactive.
#[test]
fn autopilot_asks_the_person_at_the_terminal_about_a_conflict_and_about_nothing_else() {
    let clean = interrupted("45 minutes", "");
    // Nothing is typed, so that a question would never be answered.
    Terminal::start(&clean.bench, "resume --mode autopilot").exits(0);
    assert!(is_done(&clean));
    let conflict = interrupted("45 minutes", "");
    fs::remove_file(conflict.bench.path(STORY)).unwrap();
    let mut terminal = Terminal::start(&conflict.bench, "resume --mode autopilot");
    terminal.shows("What now?");
    terminal.types("cancel\n");
    terminal.exits(0);
    assert!(!conflict.bench.path(".onward/runs").exists());
}

#[test]
fn interactive_shows_the_summary_and_the_plan_and_asks() {
    let yard = interrupted("45 minutes", "");
    let mut terminal = Terminal::start(&yard.bench, "resume");
    for line in [
        "Resume: Story Development Cycle, 4.2",
        "Interrupted: 45 minutes ago",
        "State source: .nexos/workflow-state/4.2-state.yaml",
        "Completed:",
        "2. Validate by @po: done",
        "Resume point: ",
        "phase 3 (Implement) by @dev",
        "What now? [RESUME/",
    ] {
        terminal.shows(line);
    }
    terminal.types("\n");
    terminal.exits(0);
    assert!(is_done(&yard));
}

/// The mode of the original is kept: its run was to be looked at from the ground up.
#[test]
fn preflight_is_kept_and_wants_the_word_proceed() {
    let yard = interrupted("45 minutes", "mode: preflight\n");
    let mut terminal = Terminal::start(&yard.bench, "resume");
    terminal.shows("Mode of the run: preflight");
    terminal.shows("Type \"proceed\" to continue.");
    terminal.shows("What now? [proceed/");
    terminal.types("\n");
    terminal.shows("Type \"proceed\" to continue.");
    terminal.shows("What now? ");
    assert!(!yard.bench.path(".onward/runs").exists(), "nothing began");
    terminal.types("proceed\n");
    terminal.exits(0);
    assert!(is_done(&yard));
    let yolo = interrupted("45 minutes", "mode: yolo\n");
    Terminal::start(&yolo.bench, "resume").exits(0);
    assert!(journal(&yolo).contains("\"autopilot\""), "{}", journal(&yolo));
}

/// The third example of the manual.
#[test]
fn of_several_runs_a_person_chooses_and_autopilot_takes_the_most_recently_updated() {
    let several = || {
        let yard = interrupted("1 hours", "");
        let other = TEXT.replace("4.2", "3.1").replace("Draft", "Ready for Review");
        yard.write("docs/stories/3.1.story.md", &other);
        let told = format!(
            "{{\"storyId\": \"3.1\", \"currentIteration\": 4, \"maxIterations\": 5, \"updatedAt\": \
             \"{}\", \"history\": []}}",
            ago("2 days")
        );
        yard.write("qa/3.1/loop-status.json", &told);
        yard.write("docs/specs/login/requirements.json", "{\"a\": 1}");
        let mut touch = std::process::Command::new("touch");
        let paths = ["docs/specs/login", "docs/specs/login/requirements.json"];
        touch.args(["--date", &ago("5 days")]).args(paths.map(|it| yard.bench.path(it)));
        assert!(touch.status().unwrap().success());
        yard
    };
    let asked = several();
    let said = asked.bench.exits("resume --no-input", 16);
    let place = |name: &str| said.err.find(name).unwrap_or_else(|| panic!("{name}: {said:#?}"));
    assert!(place("1. ") < place("sdc-4.2") && place("sdc-4.2") < place("qa-loop-3.1"));
    assert!(place("qa-loop-3.1") < place("spec-login"));
    for words in ["phase 3, 1 h ago", "phase 4, 2 d ago", "phase 2, 5 d ago"] {
        place(words);
    }
    let mut terminal = Terminal::start(&asked.bench, "resume");
    terminal.shows("1. ");
    terminal.shows("sdc-4.2");
    terminal.shows("] ");
    terminal.types("1\n");
    terminal.shows("Resume: Story Development Cycle, 4.2");
    terminal.shows("What now? ");
    terminal.types("\n");
    terminal.exits(0);
    assert!(is_done(&asked));
    let autopilot = several();
    autopilot.bench.exits("resume --mode autopilot --no-input", 0);
    assert!(is_done(&autopilot), "the one of an hour ago");
}
