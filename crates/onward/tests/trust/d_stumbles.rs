//! Where a newcomer stumbled who had the README, the docs and the program, and nothing else.

use std::fs;

use onward_engine::care::harness::until;

use crate::{
    a_commands::{commands, paste},
    bench::{Bench, id, kill_all, sees},
    support::terminal::Terminal,
};

/// The id of the run that was active last.
fn newest(bench: &Bench) -> String {
    bench.project().runs().unwrap().remove(0).id.to_string()
}

/// The classes in the line below `run X …`, with the total that stands in it.
#[track_caller]
fn adds_up(said: &str) {
    let at = said.lines().position(|line| line.starts_with("run ") && line.contains(": "));
    let lines: Vec<&str> = said.lines().skip(at.unwrap_or_else(|| panic!("{said}"))).collect();
    let words: Vec<&str> = lines[0].split_once(": ").unwrap().1.split(' ').collect();
    // `3 steps, …` or `1 of 3 steps done, …`.
    let total = if words[1] == "of" { words[2] } else { words[0] };
    let facts = lines[1].trim().split(", ").filter(|it| !it.ends_with(" spent"));
    let numbers = facts.map(|it| it.split(' ').next().unwrap().parse::<u32>());
    let Ok(sum) = numbers.sum::<Result<u32, _>>() else {
        // One class alone has no line.
        return;
    };
    assert_eq!(sum, total.parse::<u32>().unwrap(), "{said}");
}

#[test]
fn d_each_step_is_in_one_class_and_the_classes_add_up() {
    let skipped =
        "  - { id: s, when: '{{ false }}', steps: [{ id: x, run: LOG }, { id: y, run: LOG }] }\n";
    let after = "  - { id: z, run: LOG }\n  - { id: m, each: [p, q], needs: [z], run: LOG }\n";
    for middle in [
        "  - { id: a, run: 'LOG; test -e go' }\n",
        "  - { id: a, gate: Go on? }\n",
        "  - { id: a, each: [u, v, w], run: 'LOG; test {{ item }} != v || test -e go' }\n",
        "  - { id: a, run: 'LOG; false', on_failure: continue }\n",
    ] {
        let first = "  - { id: one, run: LOG }\n";
        let bench = Bench::new(&format!("{first}{skipped}{middle}{after}"));
        let said = bench.onward("run w.yaml --no-input");
        adds_up(&said.err);
        if said.code == 0 {
            continue;
        }
        bench.write("go", "");
        let _ = bench.onward("approve a");
        let said = bench.exits("resume --no-input", 0).err;
        adds_up(&said);
        assert!(said.contains(" kept") && said.contains("2 skipped"), "{said}");
    }
    // A step that a person did by hand is one, too; and of a cancelled run nothing comes.
    let bench = Bench::new("  - { id: a, run: 'LOG; false' }\n  - { id: b, run: LOG }\n");
    adds_up(&bench.exits("run w.yaml", 10).err);
    bench.exits("done a", 0);
    adds_up(&bench.exits("resume --no-input", 0).err);
}

#[test]
fn d_what_finished_meanwhile_is_kept_in_the_plan_and_at_the_end() {
    let bench = Bench::new(
        "  - { id: a, run: LOG }\n\
         \x20 - { id: b, run: 'LOG; touch begun; while ! test -e go; do sleep 0.05; done' }\n\
         \x20 - { id: c, run: LOG }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    bench.write("go", "");
    until("the seal of b", || {
        let plan = bench.plan(&run);
        let row = plan["steps"].as_array().unwrap().iter().find(|it| it["step"] == "b").cloned();
        Ok(row.is_some_and(|it| it["verdict"] == "adopt").then_some(()))
    })
    .unwrap();
    let said = bench.exits("plan", 0).out;
    assert!(said.contains("2 steps kept (1 finished meanwhile), 1 to run"), "{said}");
    let said = bench.exits("resume --no-input", 0).err;
    assert!(said.contains("\n  1 ran, 2 kept\n"), "{said}");
}

#[test]
fn d_the_hint_for_an_own_agent_can_be_pasted() {
    let bench = Bench::new("  - { id: a, agent: helper, prompt: hi, edits: false }\n");
    let text = bench.text("w.yaml").replace("agent: helper", "agent: claude");
    bench.write("w.yaml", &text);
    let mut run = bench.command("run w.yaml");
    let said = run.env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap().replace("\n  ", " ");
    let line = said.split('`').find(|it| it.starts_with("agents.claude.command = "));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    bench.write(".onward/config.toml", &format!("{line}\n[defaults]\ngrace_seconds = 1\n"));
    let said = bench.exits("config", 0).out;
    assert!(said.contains("agents.claude") && said.contains("PROGRAM"), "{said}");
    // The same line in the README.
    let readme = include_str!("../../../../README.md");
    let line = readme.split('`').find(|it| it.starts_with("agents.NAME.command = ")).unwrap();
    bench.write(".onward/config.toml", line);
    bench.exits("config", 0);
}

const GATE: &str = "  - { id: g, gate: Go? }\n";

#[test]
fn d_cancel_without_a_name_means_the_run_that_can_be_cancelled() {
    let bench = Bench::new(GATE);
    bench.exits("run w.yaml --no-input", 11);
    let waits = newest(&bench);
    bench.workflow("other.yaml", "steps:", "  - { id: a, run: LOG }\n");
    bench.exits("run other.yaml", 0);
    bench.exits("run w.yaml --no-input", 11);
    let said = bench.exits("cancel", 2).err;
    assert!(said.contains("several runs can be cancelled:\n  1. "), "{said}");
    assert!(said.contains("`onward cancel "), "{said}");
    bench.exits(&format!("cancel {}", newest(&bench)), 0);
    // The one that was active last is over.
    let said = bench.exits("cancel", 0).err;
    assert!(said.contains(&format!("run {waits}: cancelled")), "{said}");
}

#[test]
fn d_a_beginning_means_the_runs_that_are_here_before_those_in_the_archive() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    for _ in 0..3 {
        bench.exits("run w.yaml", 0);
    }
    bench.exits("archive", 0);
    let said = bench.exits("status story", 1).err;
    assert!(said.contains("`story` can mean 2 runs") && !said.contains("archive"), "{said}");
    bench.exits("archive", 0);
    bench.exits("status story", 0);
    bench.exits("archive", 0);
    assert!(bench.exits("status story", 17).err.contains("is in the archive"));
}

#[test]
fn d_a_damaged_run_is_to_be_repaired_in_every_place() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: b, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let (id, journal) = (id(&run), run.join("journal.jsonl"));
    let whole = fs::read(&journal).unwrap();
    let mut bytes = whole.clone();
    let second = bytes.iter().position(|it| *it == b'\n').unwrap() + 20;
    bytes[second] ^= 1;
    fs::write(&journal, bytes).unwrap();
    let repair = format!("onward repair {id}\n");
    let said = bench.exits("", 0).out;
    assert!(said.ends_with(&format!("\n\n{repair}")), "{said}");
    let said = bench.exits("plan", 0).out;
    assert!(said.contains("  damaged ") && !said.contains("by a kill"), "{said}");
    assert!(said.ends_with(&repair), "{said}");
    // What comes after the repair is what `list` says of it.
    let said = bench.exits("repair --yes", 0).err;
    let is_over = bench.exits("list", 0).out.contains("completed");
    assert_eq!(said.contains("onward resume"), !is_over, "{said}");
    fs::write(&journal, &whole).unwrap();
    fs::remove_file(&journal).unwrap();
    let said = bench.exits("", 0).out;
    assert!(said.ends_with(&format!("\n\n{repair}")), "{said}");
}

#[test]
fn d_a_cancelled_run_names_the_way_on() {
    let bench = Bench::new(GATE);
    bench.exits("run w.yaml --no-input", 11);
    let run = newest(&bench);
    bench.exits("cancel", 0);
    let said = bench.exits("resume", 17).err;
    assert!(said.contains(&format!("run {run} was cancelled")), "{said}");
    assert!(said.contains(&format!("`onward resume {run} --force`")), "{said}");
    bench.exits("resume --force --no-input", 11);
}

#[test]
fn d_a_run_that_is_not_over_is_archived_only_after_a_yes() {
    let bench = Bench::new(GATE);
    bench.exits("run w.yaml --no-input", 11);
    let run = newest(&bench);
    let said = bench.exits(&format!("archive {run}"), 16).err;
    assert!(said.contains(&format!("`onward archive {run} --yes`")), "{said}");
    let mut terminal = Terminal::start_sized(&bench, &format!("archive {run}"), (80, 24));
    terminal.shows("Give it up?");
    terminal.types("n\n");
    terminal.exits(0);
    bench.exits(&format!("status {run}"), 0);
    bench.exits(&format!("archive {run} --yes"), 0);
    bench.exits(&format!("status {run}"), 17);
}

#[test]
fn d_long_names_leave_words_whole_in_a_narrow_terminal() {
    let item = "the chapter about bees and clocks";
    let bench = Bench::new(&format!(
        "  - {{ id: par, each: ['{item}'], run: 'LOG; touch begun; exec sleep 1000' }}\n"
    ));
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    for width in [60, 80] {
        let shown = Terminal::start_sized(&bench, "plan --all", (width, 40)).exits(0);
        let row = shown.lines().position(|it| it.contains("rerun")).unwrap();
        let rows: Vec<&str> = shown.lines().skip(row).take(6).collect();
        // What is said of it is whole words, more than one in a row.
        let next = rows[1].trim();
        assert!(rows[1].starts_with("        ") && next.contains(' '), "{shown}");
        for line in shown.lines().filter(|it| !it.starts_with("onward ")) {
            assert!(line.chars().count() <= usize::from(width), "`{line}` in\n{shown}");
        }
    }
}

#[test]
fn d_rescues_say_what_they_hold_and_a_question_holds_no_run() {
    let bench = crate::support::repo::repo(
        "",
        "  - { id: edit, run: 'echo half > half.txt; test -e ok', edits: true }\n",
    );
    bench.exits("run w.yaml", 10);
    bench.write("ok", "");
    bench.exits("resume --no-input --yes", 0);
    let run = newest(&bench);
    bench.write("half.txt", "mine\n");
    let mut terminal = Terminal::start_sized(&bench, &format!("undo {run} 1"), (80, 24));
    terminal.shows("Restore this?");
    let status = bench.exits("status --json", 0).json();
    assert_eq!(status["run"]["status"], "completed", "the question holds it");
    terminal.types("y\n");
    terminal.shows("Replace it?");
    terminal.types("y\n");
    terminal.exits(0);
    let said = bench.exits("rescue list", 0).out;
    assert!(said.contains("  1  edit, attempt 1, undone "), "{said}");
    assert!(said.contains("what `undo 1` replaced "), "{said}");
}

#[test]
fn d_a_workflow_with_errors_is_told_once() {
    let bench = Bench::new("  - { id: a, run: x, nonsense: 1 }\n  - { id: a, run: y }\n");
    let checked = bench.exits("check w.yaml", 2).err;
    let run = bench.exits("run w.yaml", 2).err;
    let last = |said: &str| said.lines().last().unwrap_or_default().to_owned();
    assert_eq!(last(&checked), last(&run), "{checked}\n{run}");
    assert!(last(&run).contains("cannot be run: 2 errors"), "{run}");
}

#[test]
fn d_hints_name_what_there_is_to_type() {
    let bench = Bench::new(
        "  - { id: fan, each: [a, b], run: 'test {{ item }} = c' }\n  - { id: z, run: LOG }\n",
    );
    let said = bench.exits("run", 2).err;
    assert!(said.contains("`onward run w.yaml`"), "{said}");
    let said = bench.exits("run zzzzzzzz", 1).err;
    assert!(said.contains("w.yaml, ") && said.contains("conference"), "{said}");
    bench.exits("run w.yaml", 10);
    let said = bench.exits("log --step fan -f", 0).err;
    let commands: Vec<&str> = said.lines().filter(|it| it.starts_with("onward log ")).collect();
    assert!(commands.len() == 2 && commands.iter().all(|it| it.ends_with(" -f")), "{said}");
    let run = newest(&bench);
    let said = bench.exits("done z", 0).err;
    assert!(said.contains("it needs steps that are not done yet: fan"), "{said}");
    assert!(said.ends_with(&format!("\nonward resume {run}\n")), "{said}");
    bench.exits("init --from fan-out parts", 0);
    assert!(bench.text("parts.yaml").contains("'onward/{{ run.id }}/*'"));
}

#[test]
fn d_time_without_an_attempt_is_told_as_waiting() {
    let bench =
        Bench::new("  - { id: a, run: 'LOG; touch begun; test -e ok || exec sleep 1000' }\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    bench.write("ok", "");
    bench.exits("resume --no-input", 0);
    let said = bench.exits("status --cost", 0).out;
    let row =
        said.lines().find(|it| it.starts_with("  waited (")).unwrap_or_else(|| panic!("{said}"));
    assert!(row.contains(" - "), "{said}");
}

#[test]
fn d_an_answer_in_the_wrong_directory_says_where_it_was_looked_for_and_how_to_name_the_place() {
    let bench = Bench::new("");
    for typed in ["approve", "reject ok", "decide ok approve", "decide story-x ok go", "done ok"] {
        let said = bench.exits(typed, 17).err;
        assert!(said.contains(bench.root.to_str().unwrap()), "{typed}: {said}");
        assert!(said.contains("`--cwd DIR`") && !said.contains("onward run"), "{typed}: {said}");
    }
}

#[test]
fn d_an_answer_to_a_step_names_the_gates_that_wait_with_their_commands() {
    let bench = Bench::new(
        "  - { id: build, run: LOG }\n  - { id: ok, gate: go on? }\n  \
         - { id: which, needs: [build], gate: what?, options: [red, green] }\n",
    );
    bench.exits("run w.yaml", 11);
    let said = bench.exits("decide build approve", 1).err;
    assert!(said.contains("`build` is a step, not a gate"), "{said}");
    let printed = commands(&said);
    let run = newest(&bench);
    let expected =
        [format!("onward decide {run} ok approve"), format!("onward decide {run} which red")];
    assert_eq!(printed, expected, "{said}");
    let said = bench.exits("approve", 1).err;
    assert_eq!(commands(&said), expected, "{said}");
    for command in &printed {
        assert_eq!(paste(&bench, command).code, 0, "{command}");
    }
}

#[test]
fn d_attach_at_a_gate_prints_the_answer() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > plan.md', writes: [plan.md] }\n  \
         - { id: ok, gate: go on?, shows: [plan.md] }\n",
    );
    bench.exits("run w.yaml", 11);
    for text in ["1\n", "2\n"] {
        bench.write("plan.md", text);
        let said = bench.exits("attach --no-input", 11).err;
        let printed = commands(&said);
        assert!(printed[0].starts_with(&format!("onward approve {} ok", newest(&bench))), "{said}");
    }
    let printed = commands(&bench.exits("attach --no-input", 11).err);
    assert_eq!(paste(&bench, &printed[0]).code, 0, "{printed:?}");
}

#[test]
fn d_a_plan_that_is_blocked_ends_with_the_command_that_goes_on_all_the_same() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > a.md', writes: [a.md] }\n  \
         - { id: b, run: 'test -e go' }\n",
    );
    bench.exits("run w.yaml", 10);
    bench.write("a.md", "mine\n");
    let text = bench.text("w.yaml").replace("echo 1 >", "echo 2 >");
    bench.write("w.yaml", &text);
    bench.write("go", "");
    let plan = bench.exits("plan", 0).out;
    let last = plan.lines().last().unwrap();
    let anyway = format!("onward resume {} --accept artifact-changed", newest(&bench));
    assert!(plan.contains("\nTo continue anyway:\n") && last.starts_with(&anyway), "{plan}");
    // What only names the run would be refused, and is not offered.
    let said = bench.exits("attach --no-input", 10).err;
    assert!(said.contains(&format!("onward plan {}", newest(&bench))), "{said}");
    assert_eq!(paste(&bench, &format!("{last} --no-input")).code, 0, "{plan}");
}

/// The least destructive way out comes first.
#[test]
fn d_ways_out_begin_with_going_on_and_end_with_the_end() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: ok, gate: fine? }\n");
    bench.exits("run w.yaml", 11);
    let run = newest(&bench);
    let path = bench.path(&format!(".onward/runs/{run}/journal.jsonl"));
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 20;
    bytes[second] ^= 1;
    fs::write(&path, bytes).unwrap();
    let said = bench.exits(&format!("resume {run} --no-input --from a"), 15).err;
    let at = |word: &str| said.find(word).unwrap_or_else(|| panic!("no {word}: {said}"));
    let order = ["continue where it stopped", "start over", "clean up and end it"].map(at);
    assert!(order.is_sorted(), "{said}");
}
