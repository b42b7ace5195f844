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
    let said = clean.bench.exits("resume --mode autopilot --no-input", 0);
    assert!(said.err.contains("interrupted 45 min ago, validation clean"), "{}", said.err);
    assert!(said.err.contains("phase 3 (Implement) by @dev"), "{}", said.err);
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
fn when_it_stopped_is_told_only_where_the_files_say_so() {
    let says = |yard: &Yard, words: &str| {
        let said = yard.bench.exits("plan", 0).out;
        assert!(said.contains(&format!("\nInterrupted: {words}\n")), "{words}: {said}");
    };
    says(&interrupted("10 seconds", ""), "less than a minute ago");
    says(&interrupted("1 minute", ""), "1 minute ago");
    // Written by a clock in another zone.
    says(&interrupted("2 hours ago", ""), "time unknown; the files give one in the future");
    let yard = interrupted("1 minute", "");
    fs::remove_file(yard.bench.path(STATE)).unwrap();
    says(&yard, "time unknown; the files were last written less than a minute ago");
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
    terminal.shows("Execution plan");
    terminal.shows("4. QA Gate by @qa");
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

/// As the manual has it: file by file, story by story, the chain, the whole plan, and a word.
#[test]
fn preflight_off_a_terminal_tells_all_that_it_compared_and_wants_yes() {
    let yard = Yard::new();
    let chain = "## Dependencies\n\n- Story 4.1\n\n## Tasks";
    let text = TEXT.replace("Draft", "In Progress").replace("## Tasks", chain);
    yard.write(STORY, &text);
    yard.write("docs/stories/4.1.story.md", &TEXT.replace("4.2", "4.1").replace("Draft", "Done"));
    yard.write("docs/prd.md", "one\n");
    yard.write("docs/same.md", "same\n");
    yard.git(&["add", "."]);
    let date = format!("--date={}", ago("3 hours"));
    yard.git(&["commit", "--quiet", "--message=before", &date]);
    // Git compares by the day of the committer.
    let now = ago("0 minutes");
    yard.write("docs/prd.md", "two two\n");
    let files = "artifacts: [docs/prd.md, docs/same.md, docs/gone.md]\ntemplate: t/story.md\n";
    let state = format!(
        "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\nmode: preflight\nupdated_at: \
         {now}\n{files}"
    );
    yard.write(STATE, &state);
    // Written long after the state was.
    let mut touch = std::process::Command::new("touch");
    touch.args(["--date", "+2 hours"]).arg(yard.bench.path("docs/prd.md"));
    assert!(touch.status().unwrap().success());
    let said = yard.bench.exits("resume --no-input", 16);
    for line in [
        "changed   docs/prd.md (artifact): then 4 bytes ",
        "now 8 bytes ",
        "missing   docs/gone.md (artifact): not there; the run can continue without it",
        "missing   t/story.md (template or configuration): not there",
        "same      docs/same.md (artifact): 5 bytes ",
        "4.2: the state says InProgress, the story says InProgress: consistent",
        "story 4.2 after story 4.1: done",
        "3. Implement by @dev",
        "4. QA Gate by @qa",
        "5. Checkpoint by @master",
        "sdc-4.2 --yes`",
    ] {
        assert!(said.err.contains(line), "{line}: {}", said.err);
    }
    // The command to paste has all that was asked for.
    let said = yard.bench.exits("resume --no-input --from sdc:validate --accept stale-age", 16);
    let hint = said.err.lines().last().unwrap_or_default();
    assert!(hint.contains("sdc-4.2 --accept stale-age --from "), "{}", said.err);
    assert!(hint.contains("sdc:validate") && hint.ends_with(" --yes`"), "{hint}");
    assert!(!yard.bench.path(".onward/runs").exists(), "nothing began");
    assert_eq!(yard.bench.text(STATE), state);
    let plan = yard.bench.exits("plan --json", 0).json();
    let told = &plan["preflight"]["files"];
    let prd = told.as_array().unwrap().iter().find(|it| it["path"] == "docs/prd.md").unwrap();
    assert_eq!((&prd["verdict"], &prd["was"]["bytes"]), (&"changed".into(), &4.into()), "{told:#}");
    assert_ne!(prd["was"]["hash"], prd["is"]["hash"]);
    yard.bench.exits("resume --no-input --yes", 0);
    assert!(is_done(&yard));
}

/// A run of ours that goes on with it keeps the mode, and what the mode asks for.
#[test]
fn preflight_wants_the_word_at_each_resume() {
    let yard = interrupted("45 minutes", "mode: preflight\n");
    let agent = yard.bench.text("agent.sh");
    yard.bench.write("agent.sh", "exit 1\n");
    yard.bench.exits("resume --no-input --yes", 10);
    yard.bench.write("agent.sh", &agent);
    let said = yard.bench.exits("resume --no-input", 16);
    assert!(said.err.contains("Execution plan") && said.err.contains("--yes`"), "{}", said.err);
    let json = yard.bench.exits("resume --no-input --json", 16);
    assert!(json.out.contains("not_confirmed"), "{json:#?}");
    yard.bench.exits("resume --all --no-input", 16);
    // A word that was given once is given to the driver in the background, too.
    yard.bench.exits("resume --no-input --yes", 0);
    assert!(is_done(&yard));
}

/// The driver in the background is told that its user said so.
#[test]
fn preflight_in_the_background_takes_the_word_along() {
    let yard = interrupted("45 minutes", "mode: preflight\n");
    let agent = yard.bench.text("agent.sh");
    yard.bench.write("agent.sh", "exit 1\n");
    yard.bench.exits("resume --no-input --yes", 10);
    yard.bench.write("agent.sh", &agent);
    yard.bench.exits("resume --no-input --detach", 16);
    yard.bench.exits("resume --no-input --detach --yes", 0);
    let id = yard.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    yard.bench.exits(&format!("attach {id} --no-input"), 0);
    assert!(is_done(&yard));
}

/// A state of which one field is something else is as good as one that cannot be read.
#[test]
fn a_state_that_names_no_story_is_asked_about_and_its_run_comes_to_its_end() {
    let yard = interrupted("45 minutes", "");
    let state = yard.bench.text(STATE).replace("current_story: 4.2", "current_story: [4.2]");
    yard.write(STATE, &state);
    let said = yard.bench.exits("resume --no-input", 16);
    assert!(said.err.contains("artifact-unproved"), "{}", said.err);
    let plan = yard.bench.exits("plan", 0);
    assert!(plan.out.contains("`current_story` is a list"), "{}", plan.out);
    assert_eq!(yard.bench.text(STATE), state, "looking changes nothing");
    yard.bench.exits("resume --no-input --yes --accept artifact-unproved", 0);
    assert!(is_done(&yard));
    yard.bench.exits("resume --no-input", 17);
}

/// What is offered as the way on does go on.
#[test]
fn the_way_on_names_everything_that_stands_in_it() {
    let old = interrupted("9 days", "");
    let text = old.bench.text(STORY).replace("In Progress", "Blocked");
    old.write(STORY, &text);
    assert!(text.contains("Blocked"), "{text}");
    let said = old.bench.exits("resume --no-input", 16);
    let flags = "--accept stale-age --accept story-blocked";
    let way = said.err.split("continue as it is:").nth(1).unwrap();
    assert!(way.lines().nth(1).unwrap().contains(flags), "{}", said.err);
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

/// What the state says of its story follows the story, so that what other work does is told apart.
#[test]
fn a_state_that_is_gone_on_with_says_how_far_its_story_is() {
    let yard = Yard::with(|agent| agent.replace("qa-gate) say", "qa-gate) exit 1; say"));
    yard.write(STORY, &TEXT.replace("Draft", "InProgress"));
    let path = ".nexos/workflow-state/run-state.yaml";
    let state =
        "workflow: sdc\ncurrent_story: \"4.2\"\nstory_status: InProgress\ncurrent_phase: 3\n";
    yard.write(path, state);
    yard.bench.exits("resume --yes --no-input", 10);
    let text = yard.bench.text(path);
    assert!(text.contains("story_status: InReview\n"), "{text}");
    let plan = yard.bench.exits("plan --json", 0).json();
    assert!(!plan["findings"].to_string().contains("status-disagrees"), "{plan:#}");
    let review = yard.bench.text(STORY);
    let done = review.replace("**Status:** Ready for Review", "**Status:** Done");
    assert_ne!(done, review);
    yard.write(STORY, &done);
    let plan = yard.bench.exits("plan --json", 0).json();
    let found = plan["findings"].as_array().unwrap();
    let found = found.iter().find(|it| it["code"] == "status-disagrees");
    assert_eq!(found.unwrap()["severity"], "blocking", "{plan:#}");
    yard.write(STORY, &review);
    yard.write("agent.sh", &yard.bench.text("agent.sh").replace("exit 1; say", "say"));
    yard.bench.exits("resume --yes --no-input", 0);
    let text = yard.bench.text(path);
    assert!(text.contains("story_status: Done\n") && text.contains("status: completed"), "{text}");
}
