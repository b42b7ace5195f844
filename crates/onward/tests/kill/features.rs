//! The workflow language, feature by feature, through the real program.

use std::{fs, os::unix::fs::PermissionsExt as _};

use onward_core::event::Event;
use onward_engine::care::harness::until;

use crate::bench::{Bench, Said, id, journal, sees, sees_nobody_left, watched};

/// The order in which things really began.
fn order(bench: &Bench) -> Vec<String> {
    bench.text("ledger.txt").lines().map(|it| it.trim_end_matches(" 1").to_owned()).collect()
}

fn is_before(order: &[String], one: &str, other: &str) -> bool {
    let at = |step: &str| order.iter().position(|it| it == step);
    at(one).expect("it ran") < at(other).expect("it ran")
}

fn run_of(bench: &Bench) -> std::path::PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

#[test]
fn steps_run_in_their_order_unless_their_needs_say_otherwise() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; cat go' }\n\
         \x20 - { id: two, run: LOG }\n\
         \x20 - { id: free, needs: [], run: 'LOG; echo > go' }\n\
         \x20 - { id: last, needs: [two, free], run: LOG }\n",
    );
    // `one` ends only when `free`, which stands below it, has run: both are under way at once.
    bench.fifo("go");
    bench.exits("run w.yaml", 0);
    let order = order(&bench);
    assert!(is_before(&order, "one", "two") && is_before(&order, "free", "last"), "{order:?}");
    assert_eq!(order.last().unwrap(), "last");
}

#[test]
fn no_more_attempts_run_at_once_than_are_allowed() {
    let bench = Bench::new("");
    // Each leaves a mark while it runs, and says how many there are; the first stay until two of
    // them have met.
    bench.workflow(
        "w.yaml",
        "limits: { parallel: 2 }\nsteps:",
        "  - id: many\n    each: [a, b, c, d, e, f]\n    run: |\n      LOG\n      \
         touch mark-{{ item }}; ls mark-* | wc -l >> marks\n      \
         until [ -e met ]; do [ $(ls mark-* | wc -l) -lt 2 ] || touch met; sleep 0.02; done\n      \
         rm mark-{{ item }}\n",
    );
    bench.exits("run w.yaml", 0);
    let marks = bench.text("marks");
    let most = marks.lines().map(|it| it.trim().parse::<u32>().unwrap()).max();
    assert_eq!((marks.lines().count(), most), (6, Some(2)), "{marks}");
}

#[test]
fn a_task_graph_made_by_a_step_runs_in_its_order() {
    let bench = Bench::new(
        "  - id: planner\n    run: |\n      LOG\n      \
         echo '[{\"id\":\"c\",\"deps\":[\"b\"]},{\"id\":\"b\",\"deps\":[\"a\"]},{\"id\":\"a\"}]' \
         > $ONWARD_RESULT\n\
         \x20 - id: build\n    each: '{{ steps.planner.result }}'\n    key: id\n    \
         after: deps\n    run: LOG; echo {{ item.id }} >> built\n",
    );
    bench.exits("run w.yaml", 0);
    assert_eq!(order(&bench), ["planner", "build[a]", "build[b]", "build[c]"]);
    assert_eq!(bench.text("built"), "a\nb\nc\n");
}

#[test]
fn a_loop_turns_until_its_condition_holds_or_its_turns_are_used_up() {
    let bench = Bench::new(
        "  - id: round\n    repeat: { max: 5, until: '{{ steps.score.result.n >= 3 }}' }\n    \
         steps:\n      - id: score\n        run: |\n          LOG\n          \
         printf '{\"n\":%s}' {{ round }} > $ONWARD_RESULT\n      \
         - { id: odd, when: '{{ steps.score.result.n == 1 }}', run: LOG }\n\
         \x20 - { id: after, run: 'LOG; echo {{ steps.round.turns | length }} > turns' }\n\
         \x20 - id: counted\n    repeat: { max: 2 }\n    run: LOG\n\
         \x20 - id: endless\n    repeat: { max: 2, until: '{{ false }}' }\n    run: LOG\n",
    );
    bench.exits("run w.yaml", 10);
    let ran: Vec<String> = bench.ledger().0.into_keys().collect();
    let wanted = "after counted[1] counted[2] endless[1] endless[2] round[1]/odd round[1]/score \
         round[2]/score round[3]/score";
    assert_eq!(ran.join(" "), wanted);
    assert_eq!(bench.text("turns"), "3\n");
    let mut skipped = Vec::new();
    for record in watched(&run_of(&bench)).records {
        if let Event::StepSkipped { step, .. } = record.event {
            skipped.push(step.to_string());
        }
    }
    assert_eq!(skipped, ["round[2]/odd", "round[3]/odd"]);
}

#[test]
fn groups_fan_outs_loops_and_other_files_stand_inside_one_another() {
    let bench = Bench::new("");
    fs::create_dir(bench.path("parts")).unwrap();
    bench.workflow(
        "parts/part.yaml",
        "inputs: { word: { type: string }, times: { type: integer } }\nsteps:",
        "  - { id: say, run: 'LOG; echo {{ inputs.word }} {{ inputs.times + 1 }} >> said.txt' }\n",
    );
    bench.workflow(
        "w.yaml",
        "inputs: { words: { type: list, default: [x, y] } }\nlimits: { parallel: 1 }\nsteps:",
        "  - id: phase\n    steps:\n      - id: fan\n        each: '{{ inputs.words }}'\n        \
         as: word\n        steps:\n          - id: round\n            \
         repeat: { max: 2 }\n            steps:\n              - id: part\n                \
         workflow: parts/part.yaml\n                \
         with: { word: '{{ word }}', times: '{{ round }}' }\n\
         \x20 - { id: end, run: LOG }\n",
    );
    let mut command = bench.command("run w.yaml --input");
    let output = command.arg("words=[\"p\", \"it's\"]").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = bench.text("said.txt");
    let mut said: Vec<&str> = text.lines().collect();
    said.sort_unstable();
    assert_eq!(said, ["it's 2", "it's 3", "p 2", "p 3"]);
    assert_eq!(bench.ran("phase/fan[p]/round[2]/part/say"), [1]);
    let plan = bench.plan(&run_of(&bench));
    assert_eq!(plan["counts"]["keep"], 5, "{plan:#}");
}

#[test]
fn a_value_that_is_not_there_fails_its_step_before_anything_is_started() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; echo ''{\"a\":1}'' > $ONWARD_RESULT' }\n\
         \x20 - { id: two, run: 'LOG; echo {{ steps.one.result.b }}' }\n",
    );
    let said = bench.exits("run w.yaml", 10);
    assert!(said.err.contains("two: undefined value"), "{said:?}");
    assert_eq!([bench.ran("one"), bench.ran("two")], [vec![1], vec![]]);
    let steps = "  - { id: one, run: 'echo {{ steps.nobody.stdout }}' }\n";
    bench.workflow("bad.yaml", "steps:", steps);
    let said = bench.exits("run bad.yaml", 2);
    assert!(said.err.contains("bad.yaml:4:"), "{said:?}");
}

#[test]
fn values_are_data_and_never_commands() {
    let bench = Bench::new("");
    bench.workflow(
        "w.yaml",
        "inputs: { title: { type: string } }\nsteps:",
        "  - { id: one, run: 'LOG; echo {{ inputs.title }} > title', writes: [title] }\n",
    );
    let title = "$(touch owned); `touch owned` \"'; touch owned #";
    let mut command = bench.command("run w.yaml --input");
    let output = command.arg(format!("title={title}")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(bench.text("title"), format!("{title}\n"));
    assert!(!bench.path("owned").exists());
}

#[test]
fn a_result_that_fits_its_schema_is_seen_by_those_who_come_after() {
    let bench = Bench::new("");
    let schema = "{\"type\": \"object\", \"required\": [\"ok\"]}";
    fs::write(bench.path("verdict.json"), schema).unwrap();
    bench.workflow(
        "w.yaml",
        "steps:",
        "  - id: judge\n    run: |\n      LOG\n      \
         [ $ONWARD_ATTEMPT = 1 ] && answer='{}' || answer='{\"ok\":true}'\n      \
         echo \"$answer\" > $ONWARD_RESULT\n    result: { schema: verdict.json }\n    \
         retry: { max: 1, backoff: 10ms, on: [schema_violation] }\n\
         \x20 - { id: yes, when: '{{ steps.judge.result.ok }}', run: LOG }\n",
    );
    bench.exits("run w.yaml", 0);
    assert_eq!([bench.ran("judge"), bench.ran("yes")], [vec![1, 2], vec![1]]);
}

#[test]
fn a_second_try_waits_twice_as_long_as_the_first() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; [ $ONWARD_ATTEMPT = 3 ]', \
             retry: { max: 2, backoff: 50ms, on: [failed] } }\n",
    );
    bench.exits("run w.yaml", 0);
    let mut waits = Vec::new();
    let mut ended = None;
    for record in watched(&run_of(&bench)).records {
        if let Event::AttemptFinished(_) = record.event {
            ended = Some(record.at);
        } else if let Event::AttemptStarted(_) = record.event {
            waits.extend(ended.map(|it| record.at.ms_since(it)));
        }
    }
    // By the journal's own times, and only from below: a busy machine may take longer.
    assert!(waits[0] >= 50 && waits[1] >= 100, "{waits:?}");
}

#[test]
fn an_answer_can_be_any_of_the_options_and_only_a_stopping_one_ends_the_run() {
    let bench = Bench::new(
        "  - { id: ask, gate: 'Which?', options: [left, right, cancel] }\n\
         \x20 - { id: left, when: \"{{ steps.ask.result.option == 'left' }}\", run: LOG }\n\
         \x20 - { id: right, when: \"{{ steps.ask.result.option == 'right' }}\", run: LOG }\n",
    );
    bench.exits("run w.yaml", 11);
    bench.exits("decide ask right --comment because", 0);
    bench.exits("resume", 0);
    assert_eq!([bench.ran("left"), bench.ran("right")], [vec![], vec![1]]);
    assert!(journal(&run_of(&bench)).contains("\"comment\":\"because\""));
    bench.exits("run w.yaml", 11);
    bench.exits("decide ask cancel", 0);
    bench.exits("resume", 10);
    assert_eq!([bench.ran("left"), bench.ran("right")], [vec![], vec![1]]);
    // A user who resumes a cancelled run is asked again: a cancelled gate lets no run past.
    let run = id(&run_of(&bench));
    assert_eq!(bench.plan(&run_of(&bench))["steps"][0]["verdict"], "ask");
    bench.exits(&format!("resume {run}"), 17);
    bench.exits(&format!("resume {run} --force"), 11);
    bench.exits(&format!("decide {run} ask left"), 0);
    bench.exits(&format!("resume {run}"), 0);
    assert_eq!([bench.ran("left"), bench.ran("right")], [vec![1], vec![1]]);
}

#[test]
fn whoever_should_know_is_notified() {
    let bench = Bench::new("  - { id: ask, gate: Go on? }\n");
    let script = bench.path("tell.sh");
    let text =
        format!("#!/bin/sh\ncd '{}'\ncat > told.new; mv told.new told\n", bench.root.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!("[notify]\ncommand = [\"{}\"]\n", script.display());
    fs::write(bench.path(".onward/config.toml"), config).unwrap();
    bench.exits("run w.yaml", 11);
    sees(&bench.path("told"));
    let told: serde_json::Value = serde_json::from_str(&bench.text("told")).unwrap();
    assert_eq!((&told["schema"], &told["status"]), (&"onward.notify/1".into(), &"waiting".into()));
}

#[test]
fn a_run_that_was_left_alone_is_watched_from_elsewhere() {
    let bench = Bench::new("  - { id: one, run: 'LOG; echo > begun; cat go' }\n");
    let go = bench.fifo("go");
    let said = bench.exits("run w.yaml --detach --json", 0);
    assert_eq!(said.json()["status"], "running");
    assert_eq!(said.json()["needs"], serde_json::json!([]), "as `onward schema outcome` wants it");
    sees(&bench.path("begun"));
    assert_eq!(bench.exits("status --json", 0).json()["run"]["status"], "running");
    let mut watching = bench.start("attach");
    fs::write(go, "").unwrap();
    assert_eq!(watching.wait().unwrap().code(), Some(0), "{}", bench.text("said"));
    assert!(bench.text("said").contains("done  one"), "{}", bench.text("said"));
    bench.is_proved(&run_of(&bench));
}

#[test]
fn a_run_that_cannot_be_left_alone_says_why() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    let long = bench.path(&"x".repeat(120));
    fs::create_dir(&long).unwrap();
    let mut command = bench.command("run w.yaml --detach");
    let said = Said::of(&command.env("XDG_RUNTIME_DIR", &long).output().unwrap());
    assert_eq!(said.code, 1, "{said:#?}");
    assert!(said.err.contains("is longer than"), "{said:#?}");
    assert!(!said.err.contains("continues in the background"), "{said:#?}");
    assert!(bench.ran("one").is_empty());
}

#[test]
fn a_pause_and_a_cancel_reach_the_driver() {
    for (ask, code) in [("pause", 130), ("cancel", 10)] {
        let bench = Bench::new(
            "  - { id: one, run: 'LOG; echo > begun; cat go' }\n  - { id: two, run: LOG }\n",
        );
        let go = bench.fifo("go");
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("begun"));
        bench.exits(ask, 0);
        if ask == "pause" {
            // Taken when it is gone from the inbox: then the step may end, and nothing begins.
            until("the request to be taken", || {
                let left = fs::read_dir(run.join("inbox")).unwrap().count();
                Ok((left == 0).then_some(()))
            })
            .unwrap();
            fs::write(go, "").unwrap();
        }
        assert_eq!(engine.wait().unwrap().code(), Some(code), "{ask}: {}", bench.text("said"));
        assert_eq!([bench.ran("one"), bench.ran("two")], [vec![1], vec![]], "{ask}");
        sees_nobody_left(&run);
    }
}

#[test]
fn a_step_finished_by_hand_counts_when_its_outputs_are_there() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; false', writes: ['out file'], check: grep -q good out* }\n\
         \x20 - { id: two, run: LOG }\n",
    );
    bench.exits("run w.yaml", 10);
    let said = bench.exits("done one", 1);
    assert!(said.err.contains("is not there"), "{said:?}");
    fs::write(bench.path("out file"), "bad").unwrap();
    let said = bench.exits("done one", 1);
    assert!(said.err.contains("check does not agree"), "{said:?}");
    fs::write(bench.path("out file"), "good").unwrap();
    bench.exits("done one", 0);
    bench.exits("resume", 0);
    assert_eq!([bench.ran("one"), bench.ran("two")], [[1], [1]]);
}
