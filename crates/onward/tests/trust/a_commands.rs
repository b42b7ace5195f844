//! What commands say and take: one truth, and every printed command works.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::bench::{Bench, Said, id, kill_all, sees};

const GATE: &str = "  - { id: first, run: LOG }\n  - { id: ok, gate: go on? }\n  \
    - { id: push, run: LOG }\n  - { id: last, run: LOG }\n";

fn only_run(bench: &Bench) -> PathBuf {
    let runs = bench.project().runs().unwrap();
    assert_eq!(runs.len(), 1);
    runs[0].dir.clone()
}

fn row<'p>(plan: &'p Value, step: &str) -> &'p str {
    let rows = plan["steps"].as_array().unwrap();
    let row = rows.iter().find(|row| row["step"] == step);
    row.map_or("no row", |row| row["verdict"].as_str().unwrap())
}

/// Types a command that was printed, as a person would paste it.
pub(crate) fn paste(bench: &Bench, command: &str) -> Said {
    let program = Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(&bench.root).env_clear().stdin(Stdio::null());
    shell.env("PATH", format!("{}:{path}", program.display())).env("USER", "ann");
    Said::of(&shell.output().unwrap())
}

/// Every command of ours in a text: in backticks, on a line of its own, or at the end of one.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 && part.starts_with("onward ") {
            found.push(part.to_owned());
        }
    }
    for line in text.lines().map(str::trim).filter(|it| !it.contains('`')) {
        let at = if line.starts_with("onward ") { Some(0) } else { line.find(": onward ") };
        let command = at.map(|at| line[at..].trim_start_matches(": "));
        // A shell takes what stands behind it for a comment.
        found.extend(command.map(|it| it.split("   #").next().unwrap_or(it).to_owned()));
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn a3_a_bare_answer_with_two_runs_waiting_names_them() {
    let bench = Bench::new(GATE);
    bench.exits("run w.yaml", 11);
    bench.exits("run w.yaml", 11);
    let said = bench.exits("approve", 2);
    for run in bench.project().runs().unwrap() {
        assert!(said.err.contains(run.id.as_str()), "{said:?}");
    }
    bench.exits("reject", 2);
    bench.exits("decide ok approve", 2);
    for run in bench.project().runs().unwrap() {
        assert!(!fs::read_to_string(run.dir.join("journal.jsonl")).unwrap().contains("decided"));
    }
    let printed = commands(&said.err);
    assert_eq!(paste(&bench, &printed[0]).code, 0, "{printed:?}");
    // One is left, and that one is meant.
    bench.exits("approve", 0);
}

#[test]
fn a4_a26_an_answer_that_ends_the_run_leaves_nothing_to_come() {
    let bench = Bench::new(GATE);
    bench.exits("run w.yaml", 11);
    let run = only_run(&bench);
    bench.exits("reject", 0);
    let status = bench.exits("status --json", 0).json();
    assert_eq!(status["next"], serde_json::json!([]), "{status:#}");
    assert!(!bench.exits("status", 0).out.contains("Next step"));
    let plan = bench.plan(&run);
    assert_eq!((row(&plan, "push"), row(&plan, "last")), ("skip", "skip"), "{plan:#}");
    assert_eq!(row(&plan, "ok"), "keep");
    assert_eq!(plan["recovery_point"]["steps"], serde_json::json!([]), "{plan:#}");
    let summary = plan["recovery_point"]["summary"].as_str().unwrap();
    assert!(summary.contains("ends the run"), "{summary}");
    bench.exits("resume --no-input", 10);
    assert_eq!(bench.ran("push"), [0; 0]);
    // It is over now; taken up again, the gate is asked again, and the plan says both.
    let plan = bench.plan(&run);
    assert_eq!(plan["can_resume"], false);
    assert_eq!(row(&plan, "ok"), "ask");
    let needs = plan["needs"].to_string();
    assert!(needs.contains("--force") && needs.contains("ok waits"), "{plan:#}");
}

#[test]
fn a9_a_cancelled_run_is_over_unless_it_is_taken_up_by_force() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: ok, gate: go on? }\n");
    bench.exits("run w.yaml", 11);
    let run = only_run(&bench);
    bench.exits("cancel", 0);
    let before = fs::read(run.join("journal.jsonl")).unwrap();
    for flags in ["", " --no-input", " --yes", " --json"] {
        let said = bench.exits(&format!("resume {}{flags}", id(&run)), 17);
        assert!(format!("{said:?}").contains("--force"), "{said:?}");
    }
    assert_eq!(fs::read(run.join("journal.jsonl")).unwrap(), before);
    let said = bench.exits(&format!("resume {}", id(&run)), 17);
    let printed = commands(&said.err);
    assert_eq!(paste(&bench, &printed[0]).code, 11, "{printed:?}");
}

#[test]
fn a6_what_died_is_not_called_running_and_damage_has_its_name() {
    let bench =
        Bench::new("  - { id: work, each: [a, b], run: 'LOG; touch began; exec sleep 100' }\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    engine.kill().unwrap();
    kill_all(&run);
    let status = bench.exits("status", 0).out;
    assert!(status.contains("interrupted") && !status.contains("running"), "{status}");
    let path = run.join("journal.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 20;
    bytes[second] ^= 1;
    fs::write(&path, bytes).unwrap();
    let listed = bench.exits("list", 0).out;
    assert!(listed.contains("damaged") && !listed.contains("interrupted"), "{listed}");
    let listed = bench.exits("list --json", 0).json();
    assert!(listed["runs"][0]["damage"][0].is_string(), "{listed:#}");
    let status = bench.exits("status", 0).out;
    assert!(status.contains(&format!("onward repair {}", id(&run))), "{status}");
    assert!(!status.contains("onward resume"), "{status}");
}

#[test]
fn a7_an_answer_counts_or_is_refused_at_once() {
    let bench = Bench::new(
        "  - { id: ok, gate: go on?, needs: [] }\n  \
         - { id: slow, needs: [], run: 'touch began; while test -e wait; do sleep 0.02; done' }\n",
    );
    bench.write("wait", "");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    let said = bench.exits("decide ok maybe", 1);
    assert!(said.err.contains("maybe"), "{said:?}");
    bench.exits("decide nosuchgate approve", 1);
    bench.exits("decide ok approve", 0);
    let decided = |of: &Path| {
        fs::read_to_string(of.join("journal.jsonl")).unwrap().matches("gate.decided").count()
    };
    assert_eq!(decided(&run), 1, "it is on record when the command says so");
    let said = bench.exits("decide ok reject", 1);
    assert!(said.err.contains("ann answered") && said.err.contains("approve"), "{said:?}");
    fs::remove_file(bench.path("wait")).unwrap();
    engine.wait().unwrap();
}

#[test]
fn a7_of_two_answers_at_once_one_counts_and_the_other_is_told() {
    for _ in 0..5 {
        let bench = Bench::new(GATE);
        bench.exits("run w.yaml", 11);
        let start = |word: &str| {
            let mut command = bench.command(word);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let both = [start("approve"), start("reject")];
        let said = both.map(|it| Said::of(&it.wait_with_output().unwrap()));
        let mut codes = [said[0].code, said[1].code];
        codes.sort_unstable();
        assert_eq!(codes, [0, 1], "{said:?}");
        let loser = said.iter().find(|it| it.code == 1).unwrap();
        assert!(loser.err.contains("ann answered"), "{loser:?}");
    }
}

#[test]
fn a14_work_that_was_killed_is_no_waiting() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; touch began; test $ONWARD_ATTEMPT = 2 || exec sleep 100' }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    // The supervisor's sign of life comes once a second.
    let heartbeat = run.join("heartbeat");
    let first = fs::metadata(&heartbeat).and_then(|it| it.modified()).ok();
    onward_engine::care::harness::until("three signs of life", || {
        let now = fs::metadata(&heartbeat).and_then(|it| it.modified()).ok();
        let since = now.zip(first).and_then(|(now, first)| now.duration_since(first).ok());
        Ok(since.is_some_and(|it| it.as_secs() >= 3).then_some(()))
    })
    .unwrap();
    engine.kill().unwrap();
    kill_all(&run);
    bench.exits("resume --no-input", 0);
    let bill = bench.exits("status --cost --json", 0).json()["bill"].clone();
    let repeated = bill["repeated"]["seconds"].as_f64().unwrap();
    assert!(repeated > 2.0, "{bill:#}");
    assert!(bill["waiting"]["seconds"].as_f64().unwrap() < repeated, "{bill:#}");
}

#[test]
fn a15_commands_that_answer_a_gate_work_although_what_it_shows_was_edited() {
    let bench = Bench::new(
        "  - { id: make, run: 'LOG; echo 1 > plan.md' }\n  \
         - { id: ok, gate: fine?, shows: [plan.md] }\n  - { id: last, run: LOG }\n",
    );
    bench.exits("run w.yaml", 11);
    bench.write("plan.md", "2\n");
    let said = bench.exits("resume --no-input --mode autopilot", 11);
    let printed = commands(&said.err);
    let yes = printed.iter().find(|it| it.contains("approve")).unwrap();
    let pasted = paste(&bench, yes);
    assert_eq!(pasted.code, 0, "{yes}: {pasted:?}");
    bench.exits("resume --no-input", 0);
}

#[test]
fn a17_what_undo_and_gc_advise_works() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo half > made; touch began; \
         test $ONWARD_ATTEMPT = 2 || exec sleep 100; echo whole > made', writes: [made] }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    engine.kill().unwrap();
    kill_all(&run);
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.text("made"), "whole\n");
    let said = bench.onward(&format!("undo {} 1", id(&run)));
    assert_ne!(said.code, 0);
    let printed = commands(&said.err);
    let pasted = paste(&bench, &printed[0]);
    assert_eq!((pasted.code, bench.text("made").as_str()), (0, "half\n"), "{printed:?} {pasted:?}");
    bench.exits(&format!("archive {}", id(&run)), 0);
    let said = bench.onward("gc --keep 0");
    assert_ne!(said.code, 0);
    let printed = commands(&said.err);
    let pasted = paste(&bench, &printed[0]);
    assert_eq!(pasted.code, 0, "{printed:?} {pasted:?}");
    assert_eq!(fs::read_dir(bench.path(".onward/archive")).unwrap().count(), 0);
}

#[test]
fn a18_of_archives_of_one_second_the_last_moved_ones_stay() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    let mut moved = Vec::new();
    for _ in 0..4 {
        bench.exits("run w.yaml", 0);
    }
    // In the order of their names, backwards: only the time of moving counts.
    let mut runs: Vec<String> =
        bench.project().runs().unwrap().iter().map(|it| it.id.to_string()).collect();
    runs.sort();
    for run in runs.iter().rev() {
        bench.exits(&format!("archive {run}"), 0);
        moved.push(run.clone());
    }
    // All of one second, whatever the machine made of it.
    let archive = bench.path(".onward/archive");
    for entry in fs::read_dir(&archive).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let (run, _) = name.rsplit_once('_').unwrap();
        let to = archive.join(format!("{run}_20260101T000000Z"));
        fs::rename(entry.path(), to).unwrap();
    }
    bench.exits("gc --keep 2 --yes", 0);
    let mut left: Vec<String> = fs::read_dir(&archive)
        .unwrap()
        .flatten()
        .map(|it| it.file_name().into_string().unwrap().rsplit_once('_').unwrap().0.to_owned())
        .collect();
    left.sort();
    let mut expected = moved[2..].to_vec();
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn a19_a_rehearsal_names_what_it_did_not_really_run() {
    let bench = Bench::new("  - { id: appends, run: 'echo 1 >> log.txt' }\n");
    let said = bench.onward("rehearse w.yaml");
    let verdict = said.out.lines().find(|it| it.starts_with("safe")).unwrap_or_default();
    assert!(verdict.contains("appends") && verdict.contains("not really run"), "{said:?}");
    assert!(!said.out.contains("it can be killed anywhere"), "{said:?}");
}

/// Everything that is printed about runs in many conditions, pasted back.
/// Without the entry point that was asked for, the command goes on somewhere else.
#[test]
fn a15_the_command_that_continues_anyway_repeats_what_was_asked_for() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > a.md', writes: [a.md] }\n  \
         - { id: end, run: 'LOG; false' }\n",
    );
    bench.exits("run w.yaml", 10);
    for (asked, ran) in [("--redo a", vec![1, 2]), ("--from a", vec![1, 2, 3])] {
        bench.write("a.md", &format!("mine, then {asked}\n"));
        let said = paste(&bench, &format!("onward resume --no-input {asked}"));
        assert_eq!(said.code, 16, "{said:#?}");
        let command = commands(&said.err).into_iter().find(|it| it.contains("--accept")).unwrap();
        assert!(command.contains(asked), "{command}");
        let said = paste(&bench, &format!("{command} --no-input"));
        assert_eq!(bench.ran("a"), ran, "{said:#?}");
    }
}

#[test]
fn a15_a17_every_printed_command_is_understood() {
    let bench = Bench::new(GATE);
    let mut printed = Vec::new();
    let mut say = |said: Said| printed.extend(commands(&format!("{}\n{}", said.out, said.err)));
    say(bench.onward("list"));
    say(bench.onward("run w.yaml"));
    let run = only_run(&bench);
    for command in ["status", "list", "plan", "resume --no-input", "rescue list", "approve x"] {
        say(bench.onward(command));
    }
    say(bench.onward("reject"));
    for command in ["status", "plan", "resume --no-input", "status", "plan", "resume", "verify"] {
        let with = if command.starts_with("resume") && command.len() == 6 {
            format!("resume {}", id(&run))
        } else {
            command.to_owned()
        };
        say(bench.onward(&with));
    }
    printed.sort();
    printed.dedup();
    assert!(printed.len() >= 4, "{printed:?}");
    for command in &printed {
        // A word in capitals stands for something that the reader fills in.
        let is_pattern = |word: &str| word.len() > 1 && word.chars().all(char::is_uppercase);
        if command.split(' ').any(is_pattern) || command.contains('…') {
            continue;
        }
        let said = paste(&bench, command);
        assert_ne!(said.code, 2, "{command}: {said:?}");
        assert!(!said.err.contains("unexpected argument"), "{command}: {said:?}");
    }
}
