//! Runs that are named by a file which speaks of them, and what is said where none is open.

use crate::yard::{STORY, TEXT, Yard};

const LOOP: &str = "qa/2.1/loop-status.json";

/// A story in progress, a loop of another one, a draft and one that is done.
fn several() -> Yard {
    let yard = Yard::new();
    for (id, status) in
        [("4.2", "In Progress"), ("2.1", "Review"), ("5.1", "Draft"), ("5.2", "Done")]
    {
        let text = TEXT.replace("4.2", id).replace("Draft", status);
        yard.write(&format!("docs/stories/{id}.story.md"), &text);
    }
    yard.write(LOOP, "{\"storyId\": \"2.1\", \"currentIteration\": 2, \"history\": []}");
    yard
}

#[test]
fn a_story_a_state_or_an_artifact_means_the_run_that_it_speaks_of() {
    let yard = several();
    let code = |path: &str| {
        let plan = yard.bench.exits(&format!("plan --json {path}"), 0).json();
        let word = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
        (word(&plan["run"]["id"]), word(&plan["recovery_point"]["code"]))
    };
    let says = |id: &str, code: &str| (id.to_owned(), code.to_owned());
    assert_eq!(code(STORY), says("sdc-4.2", "sdc:implement"));
    let absolute = yard.bench.path(STORY).display().to_string();
    assert_eq!(code(&absolute), says("sdc-4.2", "sdc:implement"));
    for path in [LOOP, "docs/stories/2.1.story.md"] {
        assert_eq!(code(path), says("qa-loop-2.1", "qa-loop:review"), "{path}");
    }
    // No run is open on these.
    let draft = "docs/stories/5.1.story.md";
    assert_eq!(code(draft), says(draft, "sdc:validate"));
    let done = "docs/stories/5.2.story.md";
    assert_eq!(code(done), says(done, "complete"));
    // The command that the plan ends with is one that works.
    let words = yard.bench.exits(&format!("plan {draft}"), 0).out;
    assert!(words.contains("Last active: ") && !words.contains("Interrupted"), "{words}");
    let command = words.lines().rev().find(|it| it.starts_with("onward resume ")).unwrap();
    let command = command.trim_start_matches("onward ").to_owned();
    yard.bench.write("agent.sh", "exit 1\n");
    yard.bench.exits(&format!("{command} --yes --no-input"), 10);
    let runs = yard.bench.exits("list --json", 0).json();
    assert!(runs["runs"].to_string().contains("sdc:validate") || yard.run_dir().exists());
}

#[test]
fn a_file_that_speaks_of_no_run_is_said_to_be_unknown() {
    let yard = several();
    for (name, help) in [
        ("agent.sh", "see `onward list`"),
        ("docs/stories/9.9.story.md", "see `onward list`"),
        ("sdc-4.3", "did you mean sdc-4.2?"),
    ] {
        let said = yard.bench.exits(&format!("plan {name}"), 17);
        assert!(said.err.contains(&format!("no run is called `{name}`")), "{said:#?}");
        assert!(said.err.contains(help), "{said:#?}");
    }
}

#[test]
fn where_every_run_is_over_it_is_said_which_and_how_to_see_it() {
    let yard = Yard::new();
    yard.write(STORY, &TEXT.replace("Draft", "Done"));
    for command in ["plan", "status"] {
        let said = yard.bench.exits(command, 17);
        assert!(said.err.contains("no run here is open"), "{said:#?}");
        let named = format!("onward plan {}/sdc-4.2", yard.bench.root.display());
        assert!(said.err.contains(&named), "{said:#?}");
    }
    yard.bench.exits("plan sdc-4.2", 0);
    yard.bench.exits("plan .", 0);
}

/// What the files show counts as done, whether or not a line of them records it.
#[test]
fn an_epic_that_is_over_is_listed_as_wholly_done() {
    let yard = Yard::new();
    yard.with_epic();
    let mut said = yard.bench.onward("run epic --input epic=3 --no-input");
    while said.code == 11 {
        yard.go();
        said = yard.bench.onward("resume --yes --no-input");
    }
    assert_eq!(said.code, 0, "{said:#?}");
    // As if another orchestrator had done it all.
    std::fs::remove_dir_all(yard.bench.path(".onward/runs")).unwrap();
    let list = yard.bench.exits("list --json", 0).json();
    let [run] = list["runs"].as_array().unwrap().as_slice() else { panic!("{list:#}") };
    assert_eq!(run["status"], "completed", "{list:#}");
    assert_eq!(run["counts"]["done"], run["counts"]["total"], "{list:#}");
    assert!(run["counts"]["total"].as_u64().unwrap() > 10, "{list:#}");
}

/// Ids of our runs name their workflow and a day: which story it is about is said beside them.
#[test]
fn a_list_and_a_status_say_which_story_a_run_is_about() {
    let yard = Yard::with(|_| "exit 1\n".to_owned());
    yard.write(STORY, TEXT);
    for (run, about) in [
        ("run qa-loop --input story=4.2 --no-input", "story 4.2"),
        ("run sdc --input story=4.2 --no-input", "story 4.2"),
        ("run spec --input feature=login --no-input", "feature login"),
    ] {
        yard.bench.exits(run, 10);
        let status = yard.bench.exits("status", 0).out;
        assert!(status.contains(&format!("About:          {about}\n")), "{status}");
        let id = status.split_whitespace().nth(1).unwrap();
        let list = yard.bench.exits("list", 0).out;
        let row = list.lines().find(|it| it.starts_with(id)).unwrap();
        assert!(row.contains(about), "{list}");
    }
}
