//! What a person types who knows other tools and not this one: each guess is answered with what to
//! type, and no answer costs them a run.

use std::fs;

use crate::{
    bench::{Bench, Said, id, journal},
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
fn a_command_that_lacks_its_words_is_called_back_in_one_form() {
    let bench = Bench::new(GATED);
    for (typed, call, hint) in [
        ("undo", "undo [RUN] N", "onward rescue list"),
        ("undo a b c", "undo [RUN] N", "onward rescue list"),
        ("rescue show", "rescue show [RUN] N", "onward rescue list"),
        ("rescue diff", "rescue diff [RUN] N", "onward rescue list"),
        ("done", "done [RUN] STEP", "onward plan --all"),
        ("done a b c", "done [RUN] STEP", "onward plan --all"),
        ("why", "why [RUN] STEP", "onward plan --all"),
        ("decide", "decide [RUN] GATE OPTION", "onward status"),
        ("decide ask", "decide [RUN] GATE OPTION", "onward status"),
        ("decide a b c d", "decide [RUN] GATE OPTION", "onward status"),
    ] {
        let said = told(&bench, typed, 2);
        assert!(
            said.starts_with(&format!("error: call it as `onward {call}`\n")),
            "{typed}: {said}"
        );
        assert!(said.contains(hint) && !said.contains("<RUN>"), "{typed}: {said}");
    }
    let error = bench.exits("undo --json", 2).json();
    assert_eq!(error["message"], "call it as `onward undo [RUN] N`");
}

#[test]
fn init_names_every_file_that_it_wrote() {
    let bench = Bench::new(GATED);
    fs::remove_dir_all(bench.path(".onward")).unwrap();
    let said = told(&bench, "init --from review poem", 0);
    let beside = ["config.toml", "workflow.schema.json", ".gitignore"];
    let beside = beside.map(|it| format!("wrote .onward/{it}\n")).concat();
    let all = format!("wrote poem.yaml\nwrote poem.review.json\n{beside}onward check poem.yaml\n");
    assert_eq!(said, all);
    assert_eq!(told(&bench, "init more", 0), "wrote more.yaml\nonward check more.yaml\n");
    let said = bench.exits("init --json other", 0).json();
    assert_eq!(said["wrote"], serde_json::json!(["other.yaml"]));
}

const WITH_INPUTS: &str = "inputs:\n  topic: { type: string }\n  count: { type: integer, \
    description: How many of them }\n  more: { type: string, default: '' }\nsteps:";

#[test]
fn inputs_that_are_missing_are_asked_for_or_named_all_at_once() {
    let bench = Bench::new("");
    let steps = "  - { id: one, run: 'echo {{ inputs.topic }} {{ inputs.count }} > made' }\n";
    bench.workflow("w.yaml", WITH_INPUTS, steps);
    let said = told(&bench, "run w.yaml", 2);
    assert!(said.contains("error: inputs `topic`, `count` are missing\n"), "{said}");
    assert!(said.contains("give them with --input topic=VALUE --input count=VALUE"), "{said}");
    let said = told(&bench, "run w.yaml --input topic=tea", 2);
    assert!(said.contains("error: input `count` is missing\n"), "{said}");
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    terminal.shows("topic (a string): ");
    terminal.types("tea\n");
    terminal.shows("How many of them");
    terminal.shows("count (a whole number): ");
    terminal.types("several\n");
    terminal.shows("It must be a whole number.");
    terminal.shows("count (a whole number): ");
    terminal.types("3\n");
    terminal.exits(0);
    assert_eq!(bench.text("made"), "tea 3\n");
}

/// No one guesses that a list is typed as JSON.
#[test]
fn the_question_for_a_list_shows_how_one_is_typed() {
    let bench = Bench::new("");
    let steps = "  - { id: one, each: '{{ inputs.names }}', run: 'echo {{ item }} >> made' }\n";
    bench.workflow("w.yaml", "inputs:\n  names: { type: list }\nsteps:", steps);
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    terminal.shows("names (a list, such as [\"ann\", \"bob\"]): ");
    terminal.types("a,b\n");
    terminal.shows("It must be a list, such as [\"ann\", \"bob\"].");
    terminal.types("[\"ann\", \"bob\"]\n");
    terminal.exits(0);
    assert_eq!(bench.text("made").lines().count(), 2);
    let said = told(&bench, "run w.yaml --input names=a,b", 2);
    assert!(said.contains("for example --input names='[\"ann\", \"bob\"]'"), "{said}");
}

#[test]
fn every_agent_that_is_missing_is_named_at_once() {
    let bench = Bench::new("");
    let steps = "  - { id: one, agent: claude, prompt: x }\n\
        \x20 - { id: two, agent: codex, prompt: x }\n\
        \x20 - { id: three, agent: claude, prompt: y }\n";
    bench.workflow("w.yaml", "steps:", steps);
    let mut command = bench.command("run w.yaml");
    let said = Said::of(&command.env("PATH", bench.path("nothing")).output().unwrap());
    assert_eq!(said.code, 2, "{said:?}");
    for agent in ["claude", "codex"] {
        let line = format!("agent `{agent}`: the program `{agent}` is not on the PATH");
        assert_eq!(said.err.matches(&line).count(), 1, "{said:?}");
        assert!(said.err.contains(&format!("agents.{agent}.command = ")), "{said:?}");
    }
}

#[test]
fn what_scripts_read_of_a_run_begins_as_its_journal_does() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    let said = bench.exits("run w.yaml --json", 0).out;
    let events = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let events: Vec<_> = events.filter(|it| it["schema"] == "onward.event/1").collect();
    let told: Vec<_> = events.iter().map(|it| (it["seq"].clone(), it["kind"].clone())).collect();
    let run = bench.project().runs().unwrap().remove(0).dir;
    let written = journal(&run);
    let written = written.trim_end_matches('\0').lines();
    let written = written.map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap());
    let written: Vec<_> = written.map(|it| (it["seq"].clone(), it["kind"].clone())).collect();
    assert_eq!(told, written);
    assert_eq!(told[0], (0.into(), "run.opened".into()));
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

#[test]
fn a_command_line_that_is_none_is_told_whole_to_scripts_too() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    for (arguments, words) in [
        ("run", "say which workflow"),
        ("check", "call it as `onward check FILE`"),
        ("log --attempt 2", "--step <STEP>"),
        ("init --from nonsense", "commands, review"),
    ] {
        let said = bench.exits(arguments, 2).err;
        assert!(said.contains(words), "{said}");
        let object = bench.exits(&format!("{arguments} --json"), 2).json();
        assert!(object["message"].as_str().unwrap().contains(words), "{object:#}");
    }
}
