//! Where a reader stumbled who did ten tasks with the README and nothing else.

use std::fs;

use crate::{
    bench::{Bench, id, sees, signal},
    support::repo::{git, repo},
    support::terminal::Terminal,
};

/// The first part of a workflow with an agent that a script plays.
fn scripted(bench: &Bench, script: &str) {
    fs::create_dir_all(bench.path(".onward")).unwrap();
    bench.write("agent.sh", script);
    bench.write(
        ".onward/config.toml",
        "[agents.claude]\ncommand = [\"sh\", \"agent.sh\", \"{prompt}\"]\n",
    );
}

#[test]
fn d_a_step_that_failed_says_that_it_is_tried_again_and_the_end_how_often() {
    let script = "echo >> n; test $(wc -l < n) -ge 3";
    let steps = format!(
        "  - {{ id: flaky, run: '{script}', retry: {{ max: 4, backoff: 10ms, on: [failed] }} }}\n\
         \x20 - {{ id: other, run: 'false', retry: {{ max: 2 }} }}\n"
    );
    let bench = Bench::new(&steps);
    let said = bench.exits("run w.yaml", 10).err;
    for words in [
        "fail  flaky  exit 1; tries again in 1 s (retry 1 of 4)\n",
        "fail  flaky  exit 1; tries again in 1 s (retry 2 of 4)\n",
        "fail  other  exit 1; not tried again: its `retry.on` lacks `failed`\n",
        "  needed more than one try: flaky (3 tries)\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The next drive tells of its own steps.
    let said = bench.exits("resume", 10).err;
    assert!(!said.contains("more than one try"), "{said}");
}

#[test]
fn d_a_resume_with_force_does_not_tell_to_use_force() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: b, run: 'false' }\n");
    bench.exits("run w.yaml", 10);
    bench.exits("cancel --yes", 0);
    assert!(bench.exits("plan", 0).out.contains("with `--force` it continues at b"));
    let said = bench.exits("resume --force", 10).err;
    assert!(said.contains("resume 1 step kept; continues at b\n"), "{said}");
    assert!(!said.contains("--force"), "{said}");
}

#[test]
fn d_check_counts_what_is_written_out_and_says_where_more_may_come() {
    let bench = Bench::new(
        "  - { id: one, run: LOG }\n\
         \x20 - { id: fan, each: [a, b, c], steps: [{ id: x, run: LOG }, { id: y, run: LOG }] }\n",
    );
    assert!(bench.exits("check w.yaml", 0).out.starts_with("story: 7 steps\n"));
    let said = bench.exits("check w.yaml --json", 0).json();
    assert_eq!((&said["steps"], &said["more"]), (&7.into(), &false.into()));
    // What a run of it has at its end.
    bench.exits("run w.yaml", 0);
    assert_eq!(bench.exits("status --json", 0).json()["counts"]["total"], 7);
    bench.workflow(
        "w.yaml",
        "steps:",
        "  - { id: one, run: LOG }\n\
         \x20 - { id: again, repeat: { max: 3, until: '{{ true }}' }, run: LOG }\n\
         \x20 - { id: none, each: [], run: LOG }\n\
         \x20 - { id: fan, each: '{{ range(3) | list }}', run: LOG }\n",
    );
    let said = bench.exits("check w.yaml", 0).out;
    assert!(said.starts_with("story: 2+ steps, more from again and fan\n"), "{said}");
    let said = bench.exits("check w.yaml --json", 0).json();
    assert_eq!((&said["steps"], &said["more"]), (&2.into(), &true.into()));
}

fn newest(bench: &Bench) -> String {
    id(&bench.project().runs().unwrap().remove(0).dir)
}

/// The first block of the README in this language that comes after these words.
fn block<'a>(readme: &'a str, language: &str, words: &str) -> &'a str {
    let (_, after) = readme.split_once(words).unwrap();
    let (_, after) = after.split_once(&format!("```{language}\n")).unwrap();
    after.split_once("```").unwrap().0
}

/// A line without what is another one at each run: how long it took, and who answered.
fn steady(line: &str) -> &str {
    let line = line.split_once(" by ").map_or(line, |it| it.0);
    match line.split_once(' ') {
        Some(("done", _)) => line.rsplit_once("  ").map_or(line, |it| it.0),
        Some(("run", _)) => line.split_once(", ").map_or(line, |it| it.0),
        Some(_) | None => line,
    }
}

#[test]
fn d_the_first_workflow_of_the_readme_prints_what_the_readme_shows() {
    let readme = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let section = "## The first workflow";
    let bench = Bench::new("");
    fs::remove_file(bench.path("w.yaml")).unwrap();
    bench.write("hello.yaml", block(&readme, "yaml", section));
    let mut terminal = Terminal::start_sized(&bench, "run hello.yaml", (80, 24));
    terminal.shows("approve? [approve/reject] ");
    terminal.types("a\n");
    terminal.ends(0);
    let shown = terminal.glass.all().join("\n").replace(&newest(&bench), "hello-20261118-xu4b");
    let expected = block(&readme, "console", section).strip_prefix("$ onward run hello.yaml\n");
    let expected: Vec<&str> = expected.unwrap().trim_end().lines().map(steady).collect();
    assert_eq!(shown.trim_end().lines().map(steady).collect::<Vec<_>>(), expected, "{shown}");
}

#[test]
fn d_where_nothing_is_three_commands_are_named_and_no_screen_of_help() {
    let bench = Bench::new("");
    fs::remove_file(bench.path("w.yaml")).unwrap();
    let said = bench.exits("--cwd .", 0).out;
    for command in ["onward demo ", "onward init hello ", "onward --help "] {
        assert!(said.contains(&format!("\n  {command}")), "{said}");
    }
    assert!(said.lines().count() < 10, "{said}");
}

#[test]
fn d_a_command_in_a_hint_is_in_one_line() {
    let bench = Bench::new("  - { id: a, run: 'true' }\n");
    bench.exits("run w.yaml", 0);
    let again = format!("`onward run --again {}`", newest(&bench));
    let shown = Terminal::start_sized(&bench, "resume", (60, 24)).exits(17);
    assert!(shown.lines().any(|line| line.contains(&again)), "{shown}");
}

#[test]
fn d_every_help_ends_with_an_example_that_names_its_command() {
    let bench = Bench::new("");
    let all = bench.exits("--help", 0).out;
    let commands = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .filter(|it| *it != "help")
        .collect();
    assert!(commands.len() > 25, "{commands:?}");
    let below = ["rescue list", "rescue show", "rescue diff", "config show", "config path"];
    for command in commands.into_iter().chain(below) {
        let help = bench.exits(&format!("{command} --help"), 0).out;
        let (_, examples) = help.split_once("\nExample").unwrap_or_else(|| panic!("{help}"));
        assert!(examples.contains(&format!("onward {command}")), "{help}");
    }
    assert!(all.contains("\nExamples:\n  onward demo\n"), "{all}");
    for (page, example) in [("plan", "onward plan"), ("reject", "onward reject")] {
        let page = bench.exits(&format!("man {page}"), 0).out;
        assert!(page.contains(&format!("\n.SH EXAMPLES\n  {example}")), "{page}");
    }
}

#[test]
fn d_the_numbers_at_the_end_add_up() {
    let wait = "while ! [ -e go ]; do sleep 0.05; done";
    let bench = Bench::new(&format!(
        "  - {{ id: one, run: LOG }}\n  - {{ id: two, run: 'LOG; echo > begun; {wait}' }}\n"
    ));
    let mut engine = bench.start("run w.yaml --grace 0");
    sees(&bench.path("begun"));
    signal(engine.pid(), "-INT");
    assert_eq!(engine.wait().unwrap().code(), Some(130));
    let said = bench.text("said");
    assert!(said.contains("\n  1 ran, 1 stopped\n"), "{said}");
    bench.write("go", "");
    let said = bench.exits("resume", 0).err;
    assert!(said.contains("\n  1 ran again, 1 kept\n"), "{said}");
}

#[test]
fn d_a_skipped_step_says_why_and_counts_once() {
    let bench = Bench::new(
        "  - { id: one, run: LOG }\n  - { id: two, when: \"{{ 1 == 2 }}\", run: LOG }\n",
    );
    let said = bench.exits("run w.yaml", 0).err;
    assert!(said.contains("skip  two  `when` does not hold: {{ 1 == 2 }}"), "{said}");
    assert!(said.contains("\n  1 ran, 1 skipped\n"), "{said}");
}

#[test]
fn d_the_review_template_goes_on_after_a_stop_without_a_question() {
    let bench = Bench::new("");
    bench.exits("init --from review poem", 0);
    // No git: what a step changes is known by its `writes` alone.
    scripted(
        &bench,
        "case \"$1\" in *strict*) [ -e seen ] && ok=true || ok=false; echo > seen\n\
         echo \"{\\\"ok\\\": $ok, \\\"notes\\\": \\\"shorter\\\"}\" > \"$ONWARD_RESULT\";;\n\
         *Change*) echo short > draft.md;;\n*) echo long > draft.md;; esac\n",
    );
    bench.exits("run poem.yaml", 11);
    let said = bench.exits("plan", 0).out;
    assert!(!said.contains("changed") && said.contains("approve waits for your answer"), "{said}");
    bench.exits("approve", 0);
    bench.exits("resume", 0);
    assert_eq!(bench.text("draft.md"), "short\n");
}

#[test]
fn d_an_agent_of_the_configuration_is_listed_with_its_command() {
    let bench = Bench::new("");
    scripted(&bench, "");
    let said = bench.exits("agents --no-probe", 0).out;
    assert!(said.contains("claude    configured: sh agent.sh '{prompt}'\n"), "{said}");
}

#[test]
fn d_the_output_of_a_group_is_asked_for_step_by_step() {
    let bench = Bench::new("  - { id: fan, each: [a, b], run: 'echo of {{ item }}' }\n");
    bench.exits("run w.yaml", 0);
    let said = bench.exits("log --step fan", 0).err;
    let commands: Vec<&str> = said.lines().filter(|it| it.starts_with("onward log ")).collect();
    assert_eq!(commands.len(), 2, "{said}");
    let words = commands[1].strip_prefix("onward ").unwrap().replace('\'', "");
    assert_eq!(bench.exits(&words, 0).out, "of b\n");
}

#[test]
fn d_an_archived_run_is_found_by_its_name_and_can_be_had_back() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let run = newest(&bench);
    let said = bench.exits("archive", 0).err;
    assert!(said.contains(": .onward/archive/"), "relative to the project: {said}");
    for command in ["status", "archive"] {
        let said = bench.exits(&format!("{command} {run}"), 17).err;
        assert!(said.contains(&format!("error: run {run} is in the archive\n")), "{said}");
    }
    let said = bench.exits(&format!("status {run}"), 17).err;
    let (_, command) = said.split_once("`mv ").unwrap();
    let (from, to) = command.trim_end().trim_end_matches('`').split_once(' ').unwrap();
    fs::rename(bench.path(from), bench.path(to)).unwrap();
    assert!(bench.exits(&format!("status {run}"), 0).out.contains("completed"));
}

#[test]
fn d_a_bare_rescue_lists_and_names_an_undo_only_where_something_can_come_back() {
    let bench = repo("", "  - { id: a, run: 'echo half > half.txt; false', edits: true }\n");
    bench.exits("run w.yaml", 10);
    bench.exits("resume", 10);
    let run = newest(&bench);
    let undo = format!("onward undo {run} 1\n");
    let said = bench.exits("rescue", 0);
    // The second attempt left the same file: what is saved is there.
    assert!(said.out.contains("same     half.txt") && !said.err.contains("undo"), "{said:?}");
    fs::remove_file(bench.path("half.txt")).unwrap();
    for command in ["rescue", "rescue show 1"] {
        let said = bench.exits(command, 0);
        assert!(said.err.ends_with(&undo), "{said:?}");
    }
}

#[test]
fn d_a_run_with_worktrees_names_what_is_not_committed() {
    let bench = repo("", "  - { id: a, worktree: true, run: 'echo made > made.txt' }\n");
    let said = bench.exits("run w.yaml", 0).err;
    assert!(said.contains("note  not committed: ") && said.contains("untracked.txt"), "{said}");
    let branch = format!("onward/{}/a", newest(&bench));
    assert!(said.contains(&format!("\n  branches: {branch}\n")), "{said}");
    assert!(git(&bench, &format!("log -1 --format=%s {branch}")).contains('a'));
    git(&bench, "add -A");
    git(&bench, "commit -q -m all");
    let said = bench.exits("run w.yaml", 0).err;
    assert!(!said.contains("not committed"), "{said}");
}

#[test]
fn d_why_is_answered_on_the_screen_of_watch_where_it_fits() {
    let bench = Bench::new("  - { id: a, run: 'false' }\n");
    bench.exits("run w.yaml", 10);
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    terminal.sees(|glass| glass.screen().iter().any(|line| line.contains("exit 1")));
    terminal.types("d");
    let has = |glass: &crate::support::glass::Glass, text: &str| {
        glass.screen().iter().any(|line| line.contains(text))
    };
    terminal.sees(|glass| has(glass, "a: rerun") && has(glass, "any key goes back"));
    terminal.types("\x1b");
    terminal.sees(|glass| has(glass, "j k move") && !has(glass, "a: rerun"));
    terminal.types("q");
    terminal.exits(0);
}

#[test]
fn d_colours_come_and_go_as_the_flag_says() {
    let bench = Bench::new("  - { id: a, run: 'true' }\n");
    bench.exits("run w.yaml", 0);
    assert!(!bench.exits("list", 0).out.contains('\x1b'), "no terminal");
    assert!(bench.exits("list --color always", 0).out.contains('\x1b'));
    for (arguments, variable, is_coloured) in [
        ("list", "TERM", true),
        ("list --color never", "CLICOLOR_FORCE", false),
        ("list", "NO_COLOR", false),
        ("list --color always", "NO_COLOR", true),
    ] {
        let mut terminal = Terminal::of(bench.command(arguments).env(variable, "xterm"));
        terminal.ends(0);
        assert_eq!(terminal.shown.contains("\x1b["), is_coloured, "{arguments}, {variable}");
    }
}

#[test]
fn d_a_step_that_met_a_limit_is_parked_and_did_not_fail() {
    let bench = Bench::new("  - { id: a, agent: scribe, prompt: p }\n");
    fs::create_dir_all(bench.path(".onward")).unwrap();
    let config = "[agents.scribe]\nadapter = \"lines\"\ncommand = [\"sh\", \"agent.sh\"]\n";
    bench.write(".onward/config.toml", config);
    let limit = "{\"limit\":{\"provider\":\"p\",\"resets_at\":\"2100-01-15T08:00:00Z\"}}";
    bench.write("agent.sh", &format!("echo '{limit}'\nexit 1\n"));
    let said = bench.exits("run w.yaml", 12).err;
    assert!(said.contains("park  a  ") && !said.contains("fail"), "{said}");
    assert!(said.contains("1 parked"), "{said}");
}

#[test]
fn d_the_next_command_is_in_one_line_however_narrow_the_terminal() {
    let bench = Bench::new("  - { id: a, run: 'true' }\n");
    bench.exits("run w.yaml", 0);
    let again = format!("  onward run --again {}", newest(&bench));
    let shown = Terminal::start_sized(&bench, "status", (40, 24)).exits(0);
    assert!(shown.lines().any(|line| line == again), "{shown}");
}
