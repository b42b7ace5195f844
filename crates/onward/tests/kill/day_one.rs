//! Cases from other people's bug reports, by their number in the list that this project began with.
//! Those about half-done edits are in `edits.rs`, worktrees in `broken_worktrees.rs`, locks in
//! `locks.rs`, proof in `proof.rs` and torn journals in `journal.rs`, each under its number; 13,
//! about an agent's usage limit, is in `tests/agents/ends.rs`.

use std::fs;

use onward_core::event::Event;

use crate::bench::{Bench, codes, id, kill_all, sees, sees_nobody_left, watched};

/// Steps that ran, in order, one word each.
fn ran(bench: &Bench) -> Vec<String> {
    let ledger = bench.text("ledger.txt");
    ledger.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

#[test]
fn case_1_of_102_items_one_fails_and_the_resume_starts_exactly_that_one() {
    let items: Vec<String> = (1..=102).map(|number| format!("i{number}")).collect();
    let bench = Bench::new("");
    let steps = format!(
        "  - id: many\n    each: [{}]\n    run: LOG; test {{{{ item }}}} != i4 || test -e ok\n",
        items.join(", ")
    );
    bench.workflow("w.yaml", "limits: { parallel: 8 }\nsteps:", &steps);
    bench.exits("run w.yaml", 10);
    assert_eq!(ran(&bench).len(), 102);
    bench.write("ok", "");
    let run = bench.project().runs().unwrap().remove(0).dir;
    let plan = bench.plan(&run);
    assert_eq!((&plan["counts"]["keep"], &plan["counts"]["rerun"]), (&101.into(), &1.into()));
    bench.exits("resume", 0);
    assert_eq!(ran(&bench)[102..], ["many[i4]"]);
}

#[test]
fn case_2_a_retry_that_succeeded_is_found_by_the_next_resume() {
    let bench = Bench::new(
        "
  - { id: a, run: 'LOG; [ $ONWARD_ATTEMPT = 2 ]', retry: { max: 1, backoff: 1ms, on: [failed] } }
  - { id: b, run: 'LOG; test -e ok' }
",
    );
    bench.exits("run w.yaml", 10);
    bench.write("ok", "");
    bench.exits("resume", 0);
    assert_eq!(ran(&bench), ["a", "a", "b", "b"]);
}

#[test]
fn case_3_five_resumes_in_a_row_never_grow_the_set_of_executed_steps() {
    let bench = Bench::new(
        "
  - { id: a, run: 'LOG; echo > a', writes: [a] }
  - { id: fan, each: [x, y], run: 'LOG; echo {{ item }}' }
  - { id: b, run: 'LOG; echo > begun; head -c1 go' }
",
    );
    let (begun, _go) = (bench.path("begun"), bench.fifo("go"));
    let (mut engine, run) = bench.start_run();
    for _ in 0..5 {
        sees(&begun);
        engine.kill().unwrap();
        kill_all(&run);
        fs::remove_file(&begun).unwrap();
        engine = bench.start(&format!("resume {}", id(&run)));
    }
    sees(&begun);
    engine.kill().unwrap();
    kill_all(&run);
    let mut rest = ran(&bench);
    rest.retain(|step| step != "b");
    rest.sort_unstable();
    assert_eq!(rest, ["a", "fan[x]", "fan[y]"]);
}

#[test]
fn case_4_what_fast_siblings_finished_is_on_disk_while_a_slow_one_runs() {
    let bench = Bench::new(
        "
  - { id: slow, run: 'LOG; echo > begun; head -c1 go', needs: [] }
  - { id: fast, each: [a, b, c], run: 'LOG; echo {{ item }}', needs: [] }
",
    );
    let _go = bench.fifo("go");
    let (run, _) = bench.run_and_kill(|it| it.finished().len() == 3);
    kill_all(&run);
    let done = watched(&run).finished();
    assert_eq!(done.len(), 3, "{done:?}");
    assert!(done.iter().all(|(step, _)| step.as_str().starts_with("fast")), "{done:?}");
}

#[test]
fn case_5_a_consumer_is_stale_when_upstream_came_out_differently_and_kept_when_it_did_not() {
    let cases = [("same", "a b c a c"), ("other", "a b c a b c")];
    // Whether or not it says what it reads.
    let reads = ["", ", reads: [out]"];
    for ((again, expected), reads) in cases.into_iter().flat_map(|it| reads.map(|of| (it, of))) {
        let bench = Bench::new(&format!(
            "
  - {{ id: a, run: 'LOG; cp source out', writes: [out] }}
  - {{ id: b, run: 'LOG; cat out'{reads} }}
  - {{ id: c, run: 'LOG; test -e ok' }}
"
        ));
        bench.write("source", "same");
        bench.exits("run w.yaml", 10);
        fs::remove_file(bench.path("out")).unwrap();
        bench.write("source", again);
        bench.write("ok", "");
        bench.exits("resume", 0);
        assert_eq!(ran(&bench).join(" "), expected, "{again}{reads}");
    }
}

#[test]
fn case_6_another_model_runs_the_step_again_and_another_label_does_not() {
    let bench = Bench::new("");
    let config =
        "[agents.writer]\ncommand = [\"sh\", \"-c\", \"echo $ONWARD_STEP >> ledger.txt\"]\n";
    bench.write(".onward/config.toml", config);
    let head = "agents: { w: { use: writer, model: small } }\nsteps:";
    let steps = "  - { id: a, agent: w, prompt: write }\n  - { id: b, run: 'LOG; test -e ok' }\n";
    bench.workflow("w.yaml", head, steps);
    bench.exits("run w.yaml", 10);
    bench.workflow("w.yaml", head, &steps.replace("id: a,", "id: a, description: words,"));
    bench.exits("resume", 10);
    assert_eq!(ran(&bench), ["a", "b", "b"]);
    bench.workflow("w.yaml", &head.replace("small", "large"), steps);
    bench.write("ok", "");
    let why = bench.exits("why a --json", 0).json();
    assert_eq!(why["causes"][0]["part"], "agent.model", "{why}");
    bench.exits("resume", 0);
    assert_eq!(ran(&bench), ["a", "b", "b", "a", "b"]);
}

#[test]
fn case_16_a_gate_is_asked_again_after_a_crash_and_an_answer_is_never_lost() {
    let bench = Bench::new(
        "
  - id: turns
    repeat: { max: 3 }
    steps:
      - { id: work, run: LOG }
      - { id: ask, gate: 'Turn {{ turns }}?' }
  - { id: last, run: 'LOG; test -e ok' }
",
    );
    // Before and during the question: killed while it is open, it is asked again.
    let (run, _) = bench.run_and_kill(|it| {
        it.records.iter().any(|record| matches!(record.event, Event::GateOpened { .. }))
    });
    bench.exits("resume", 11);
    for turn in 1..=3 {
        let gate = bench.exits("status --json", 0).json()["gates"][0]["step"].clone();
        assert_eq!(gate, format!("turns[{turn}]/ask"));
        bench.exits("approve", 0);
        // The answer is on disk before anybody acts on it.
        assert!(bench.exits("log --json", 0).out.contains("gate.decided"));
        bench.exits("resume", if turn == 3 { 10 } else { 11 });
    }
    // Answered, and the next step failed: nothing is asked twice.
    bench.write("ok", "");
    bench.exits("resume", 0);
    let expected = ["turns[1]/work", "turns[2]/work", "turns[3]/work", "last", "last"];
    assert_eq!(ran(&bench), expected);
    sees_nobody_left(&run);
}

#[test]
fn case_17_with_nothing_but_the_run_id_nothing_known_is_asked_again() {
    let bench = Bench::new("");
    let head = "inputs: { topic: { type: string } }\nsteps:";
    let steps = "  - { id: a, run: 'LOG; echo {{ inputs.topic }} > a; test -e ok' }\n";
    bench.workflow("w.yaml", head, steps);
    bench.exits("run w.yaml --input topic=winter", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    fs::remove_file(bench.path("w.yaml")).unwrap();
    bench.write("ok", "");
    bench.exits(&format!("resume {}", id(&run)), 0);
    assert_eq!(bench.text("a"), "winter\n");
}

#[test]
fn case_18_a_run_goes_on_from_another_directory_and_after_its_project_moved() {
    let bench = Bench::new("\n  - { id: a, run: LOG }\n  - { id: b, run: 'LOG; test -e ok' }\n");
    bench.exits("run w.yaml", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    fs::create_dir_all(bench.path("deep/down")).unwrap();
    bench.exits("resume --cwd deep/down", 10);
    let name = id(&run);
    let moved = tempfile::TempDir::new().unwrap();
    let root = moved.path().join("elsewhere");
    fs::rename(&bench.root, &root).unwrap();
    let there = Bench::at_existing(root.clone());
    there.write("ok", "");
    there.exits(&format!("resume {name}"), 0);
    assert_eq!(ran(&there), ["a", "b", "b", "b"]);
    fs::rename(&root, &bench.root).unwrap();
}

#[test]
fn case_19_a_resume_that_fails_at_its_start_three_times_stops_and_says_why() {
    let bench = Bench::new("\n  - { id: a, run: no-such-program-anywhere }\n");
    bench.exits("run w.yaml", 10);
    for _ in 0..3 {
        bench.exits("resume", 10);
    }
    let said = bench.exits("resume", 16);
    assert!(said.err.contains("3 resumes in a row"), "{said:?}");
    let run = bench.project().runs().unwrap().remove(0).dir;
    assert_eq!(codes(&bench.plan(&run)), ["resumed-repeatedly"]);
}

#[test]
fn each_of_the_twenty_cases_has_its_test_but_the_one_that_waits_for_agents() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kill");
    let files =
        fs::read_dir(dir).unwrap().map(|it| fs::read_to_string(it.unwrap().path()).unwrap());
    let all: String = files.collect();
    let lacking = |number: &u32| !all.contains(&format!("\nfn case_{number}_"));
    assert_eq!((1..=20).filter(lacking).collect::<Vec<_>>(), [13]);
}
