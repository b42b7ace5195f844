//! What a person types who knows other tools and not this one: each guess is answered with what to
//! type, and no answer costs them a run.

use std::fs;

use crate::{
    bench::{Bench, id, journal},
    terminal::Terminal,
};

const GATED: &str = "  - { id: one, run: LOG; echo 1 > one, writes: [one] }\n\
     \x20 - { id: ask, gate: Go on?, shows: [one] }\n\
     \x20 - { id: two, run: LOG }\n";

/// What was wrong, and what to do about it, as the program says it.
#[track_caller]
fn told(bench: &Bench, arguments: &str, code: i32) -> String {
    bench.exits(arguments, code).err
}

#[test]
fn a_guessed_command_is_answered_with_the_one_that_does_it() {
    let bench = Bench::new(GATED);
    for (typed, meant) in [
        ("clean", "archive"),
        ("start w.yaml", "run"),
        ("continue", "resume"),
        ("retry", "resume"),
        ("validate w.yaml", "check"),
        ("stop", "pause"),
        ("rm", "archive"),
        ("show", "status"),
    ] {
        let said = told(&bench, typed, 2);
        assert!(said.contains(&format!("help: try `onward {meant}`")), "{typed}: {said}");
    }
    let said = told(&bench, "run --dry-run w.yaml", 2);
    assert!(said.contains("`onward check FILE`"), "{said}");
    let error = bench.exits("clean --json", 2).json();
    assert_eq!(error["hint"], "try `onward archive`");
}

#[test]
fn a_mistyped_workflow_run_or_step_is_named() {
    let bench = Bench::new(GATED);
    let said = told(&bench, "run w", 1);
    assert!(said.contains("help: did you mean `w.yaml`?"), "{said}");
    let said = told(&bench, "run conferenc", 1);
    assert!(said.contains("help: did you mean `conference`?"), "{said}");
    let said = told(&bench, "plan w.yaml", 2);
    assert!(said.contains("`onward check w.yaml` looks at it"), "{said}");
    bench.exits("run w.yaml", 11);
    for typed in ["why on", "log --step onee"] {
        let said = told(&bench, typed, 1);
        assert!(said.contains("help: did you mean one?"), "{typed}: {said}");
    }
    let said = told(&bench, "log two", 2);
    assert!(said.contains("help: see what it printed with `onward log --step two`"), "{said}");
}

#[test]
fn a_bare_onward_names_the_command_that_works() {
    let bench = Bench::new(GATED);
    let said = bench.exits("", 0).out;
    assert_eq!(said.lines().last(), Some("onward run w.yaml"), "{said}");
    bench.exits("run w.yaml", 11);
    fs::write(bench.path("one"), "other words\n").unwrap();
    bench.exits("resume", 11);
    // What the gate shows has changed since it was opened: the command says for what it answers.
    let said = bench.exits("", 0).out;
    let command = said.lines().last().unwrap().strip_prefix("onward ").unwrap();
    assert!(command.contains("--hash"), "{said}");
    bench.exits(command, 0);
    bench.exits("resume", 0);
    assert_eq!(bench.ran("two"), [1]);
    let said = told(&bench, "resume", 17);
    let run = id(&bench.project().runs().unwrap()[0].dir);
    assert!(said.contains(&format!("`onward run --again {run}`")), "{said}");
}

#[test]
fn a_run_that_was_cancelled_waits_for_no_answer() {
    let bench = Bench::new(GATED);
    bench.exits("run w.yaml", 11);
    let first = id(&bench.project().runs().unwrap()[0].dir);
    bench.exits("run w.yaml", 11);
    bench.exits(&format!("cancel {first}"), 0);
    bench.exits("approve", 0);
    bench.exits("resume", 0);
}

#[test]
fn a_run_ends_only_for_a_new_one_that_can_begin() {
    let bench = Bench::new("  - { id: ask, gate: Go on? }\n  - { id: two, agent: x, prompt: p }\n");
    fs::write(bench.path(".onward/config.toml"), "[agents.x]\ncommand = [\"true\"]\n").unwrap();
    bench.exits("run w.yaml", 11);
    let run = bench.project().runs().unwrap().remove(0).dir;
    fs::remove_file(bench.path(".onward/config.toml")).unwrap();
    let before = journal(&run);
    let said = told(&bench, &format!("run --again {}", id(&run)), 2);
    assert!(said.contains("agent `x` has no command"), "{said}");
    assert_eq!(journal(&run), before, "the old run was ended");
}

#[test]
fn a_run_that_is_not_named_is_cancelled_after_a_question() {
    let bench = Bench::new(GATED);
    bench.exits("run w.yaml", 11);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let before = journal(&run);
    let mut terminal = Terminal::start(&bench, "cancel");
    terminal.shows("for good? Its files stay. [NO/yes]");
    terminal.types("\n");
    terminal.exits(0);
    assert_eq!(journal(&run), before);
    let mut terminal = Terminal::start(&bench, "cancel");
    terminal.shows("[NO/yes]");
    terminal.types("yes\n");
    terminal.exits(0);
    assert!(journal(&run).contains("cancelled"));
}

#[test]
fn a_person_who_watches_is_told_how_to_answer_what_another_terminal_asks() {
    let bench = Bench::new(GATED);
    let mut driver = Terminal::start(&bench, "run w.yaml");
    driver.shows("ask? [approve/reject]");
    let run = id(&bench.project().runs().unwrap()[0].dir);
    let said = bench.exits("", 0).out;
    let answer = format!("onward approve {run} ask");
    assert_eq!(said.lines().last(), Some(answer.as_str()), "{said}");
    let mut watcher = Terminal::start(&bench, &format!("attach {run}"));
    watcher.shows("Go on?");
    watcher.shows(&format!("onward decide {run} ask approve"));
    bench.exits(&format!("approve {run} ask"), 0);
    watcher.exits(0);
    driver.exits(0);
}

#[test]
fn an_archive_is_named_as_its_directory_is() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    bench.exits("archive", 0);
    let entry = fs::read_dir(bench.path(".onward/archive")).unwrap().next().unwrap().unwrap();
    let said = told(&bench, "gc --keep 0", 16);
    assert!(said.contains(entry.file_name().to_str().unwrap()), "{said}");
}
