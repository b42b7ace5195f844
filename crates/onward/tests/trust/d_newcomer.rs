//! Where people stumbled who had read the README and nothing else.

use std::fs;

use onward_engine::{care::harness::until, world::schema::Schema};
use serde_json::Value;

use crate::{
    bench::{Bench, id, journal, sees, signal},
    support::terminal::Terminal,
};

/// The first step ends when it is allowed to.
const WAITS: &str = "  - { id: one, run: 'LOG; echo > begun; while ! [ -e go ]; do sleep 0.05; \
    done' }\n  - { id: two, run: LOG }\n";

fn run_of(bench: &Bench) -> std::path::PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

/// Waits until the driver has said this.
fn hears(bench: &Bench, words: &'static str) {
    let run = run_of(bench);
    until(words, || Ok(journal(&run).contains(words).then_some(()))).unwrap();
}

#[track_caller]
fn fits(bench: &Bench, kind: &str, object: &Value) {
    let schema = bench.exits(&format!("schema {kind}"), 0).json_lines();
    let schema = Schema::compile(&schema).unwrap();
    assert_eq!(schema.check(object), Ok(()), "{kind}: {object:#}");
}

#[test]
fn d_a_step_that_the_user_stopped_did_not_fail() {
    let bench = Bench::new(WAITS);
    let mut engine = bench.start("run w.yaml --grace 0");
    sees(&bench.path("begun"));
    signal(engine.pid(), "-INT");
    assert_eq!(engine.wait().unwrap().code(), Some(130), "{}", bench.text("said"));
    let said = bench.text("said");
    assert!(said.contains("stop  one  after ") && said.contains("1 stopped"), "{said}");
    assert!(!said.contains("fail"), "{said}");
    let said = bench.exits("status", 0).out;
    assert!(said.contains("\n  stopped  one\n") && !said.contains("failed"), "{said}");
}

#[test]
fn d_a_large_fan_out_that_the_user_stopped_is_one_line() {
    let items = (0..21).map(|it| format!("i{it}")).collect::<Vec<_>>().join(", ");
    let step = "while ! [ -e go ]; do sleep 0.05; done";
    let bench = Bench::new("");
    let steps = format!("  - {{ id: fan, each: [{items}], run: 'LOG; echo > begun; {step}' }}\n");
    bench.workflow("w.yaml", "limits: { parallel: 2 }\nsteps:", &steps);
    let mut engine = bench.start("run w.yaml --grace 0");
    until("two items to run", || {
        let count = bench.project().runs().unwrap_or_default().first().map(|it| journal(&it.dir));
        let count = count.unwrap_or_default().matches("\"kind\":\"attempt.started\"").count();
        Ok((count == 2).then_some(()))
    })
    .unwrap();
    signal(engine.pid(), "-INT");
    assert_eq!(engine.wait().unwrap().code(), Some(130), "{}", bench.text("said"));
    let said = bench.text("said");
    assert!(said.contains("fan  0 of 21 done, 2 stopped, "), "{said}");
    assert!(!said.contains("fan[i0]") && !said.contains("failed"), "{said}");
}

/// An edit that touches every item of a fan-out is one thing to read, not one for each item.
#[test]
fn d_a_change_of_a_large_fan_out_is_told_once() {
    let items = (0..21).map(|it| format!("i{it}")).collect::<Vec<_>>().join(", ");
    let bench = Bench::new(&format!(
        "  - {{ id: fan, each: [{items}], run: 'LOG; true one {{{{ item }}}}' }}\n\
         \x20 - {{ id: last, run: 'false' }}\n"
    ));
    bench.exits("run w.yaml", 10);
    bench.write("w.yaml", &bench.text("w.yaml").replace("true one", "true two"));
    let said = bench.exits("plan", 0).out;
    assert!(said.contains("  rerun     fan   21 of 21: its command changed\n"), "{said}");
    assert!(said.contains("; the same of 20 more steps in fan\n"), "{said}");
    assert!(said.contains("`--keep 'fan[i0]'`") && !said.contains("fan[i1]"), "{said}");
    let all = bench.exits("plan --all", 0).out;
    assert!(all.contains("`--keep 'fan[i20]'`"), "{all}");
    let said = bench.exits("resume", 10).err;
    assert!(said.contains("stale fan  21 steps: changed: its command\n"), "{said}");
    assert!(said.matches("continued despite").count() <= 1 && !said.contains("fan[i1]"), "{said}");
}

#[test]
fn d_a_pause_is_told_and_the_first_ctrl_c_after_it_gives_what_runs_its_time() {
    let bench = Bench::new(WAITS);
    let mut engine = bench.start("run w.yaml --grace 100");
    sees(&bench.path("begun"));
    bench.exits("pause", 0);
    hears(&bench, "pausing: what runs finishes first");
    signal(engine.pid(), "-INT");
    hears(&bench, "what runs gets 100 s to finish");
    bench.write("go", "");
    assert_eq!(engine.wait().unwrap().code(), Some(130), "{}", bench.text("said"));
    let said = bench.text("said");
    assert!(said.contains("done  one") && !said.contains("stop  one"), "{said}");
    assert!(said.contains("note  pausing"), "{said}");
    bench.exits("resume", 0);
    assert_eq!([bench.ran("one"), bench.ran("two")], [[1], [1]]);
}

#[test]
fn d_why_answers_for_a_group_what_the_plan_says_of_it() {
    let bench = Bench::new(
        "  - { id: fan, each: [a, b], run: 'test {{ item }} = a' }\n\
         \x20 - { id: part, needs: [], steps: [{ id: in, run: 'true' }] }\n",
    );
    bench.exits("run w.yaml", 10);
    let said = bench.exits("why fan", 0).out;
    assert!(said.starts_with("fan: 2 steps\n  keep      fan[a]  done "), "{said}");
    assert!(said.contains("\n  rerun     fan[b]  failed: exit 1\n"), "{said}");
    assert!(bench.exits("why part", 0).out.contains("part/in"), "the steps of a group");
    let said = bench.exits("why --json fan", 0).json();
    fits(&bench, "why", &said);
    assert_eq!((&said["verdict"], &said["steps"][1]["step"]), (&"rerun".into(), &"fan[b]".into()));
    let said = bench.exits("why f", 1);
    assert!(said.err.contains("there is no step `f`"), "{said:?}");
    let said = bench.exits("why", 2);
    assert!(said.err.contains("call it as `onward why [RUN] STEP`"), "{said:?}");
}

#[test]
fn d_what_people_say_to_a_run_is_answered_as_its_schema_says() {
    let bench = Bench::new("  - { id: a, run: 'false' }\n  - { id: g, gate: Go?, needs: [] }\n");
    bench.exits("run w.yaml", 11);
    fits(&bench, "asked", &bench.exits("pause --json", 0).json());
    fits(&bench, "decided", &bench.exits("approve --json", 0).json());
    fits(&bench, "done", &bench.exits("done a --json", 0).json());
}

#[test]
fn d_a_driven_run_that_is_to_be_detached_is_refused_as_json_too() {
    let bench = Bench::new(WAITS);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let said = bench.exits("resume --detach --json", 14);
    fits(&bench, "error", &said.json());
    assert_eq!(said.json()["code"], "held", "{said:?}");
    assert!(said.json()["message"].to_string().contains("is driven by process"), "{said:?}");
    assert_eq!(said.err, "");
    bench.write("go", "");
    engine.wait().unwrap();
    bench.is_proved(&run);
}

#[test]
fn d_a_damaged_run_is_called_so_and_the_plan_ends_with_its_repair() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: b, run: 'false' }\n");
    bench.exits("run w.yaml", 10);
    let run = run_of(&bench);
    let text = journal(&run);
    fs::write(run.join("journal.jsonl"), text.replacen("\"attempt.finished\"", "\"x\"", 1))
        .unwrap();
    for command in ["list", "status"] {
        let said = bench.exits(command, 0).out;
        assert!(said.contains("damaged"), "{said}");
    }
    let said = bench.exits("plan", 0).out;
    assert!(said.ends_with(&format!("\nonward repair {}\n", id(&run))), "{said}");
}

#[test]
fn d_a_completed_run_says_how_it_is_run_again() {
    let bench = Bench::new("  - { id: a, run: 'LOG; echo x > out', writes: [out] }\n");
    bench.exits("run w.yaml", 0);
    let run = id(&run_of(&bench));
    let again = format!("onward run --again {run}");
    let said = bench.exits(&format!("resume {run} --redo a"), 17);
    assert!(said.err.contains(&again), "{said:?}");
    assert!(bench.exits("status", 0).out.contains(&again));
    // What is gone is told by its name, and not by a hash.
    fs::remove_file(bench.path("out")).unwrap();
    let said = bench.exits("plan", 0).out;
    assert!(said.contains("out, its output, is gone") && !said.contains("was "), "{said}");
    let said = bench.exits("why a", 0).out;
    assert!(said.contains("\n  out is gone\n") && !said.contains("writes."), "{said}");
    bench.exits(&again["onward ".len()..], 0);
    assert_eq!(bench.ran("a"), [1, 1]);
}

#[test]
fn d_a_cancelled_run_is_continued_by_force_without_its_name() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: g, gate: Go? }\n");
    bench.exits("run w.yaml", 11);
    bench.exits("cancel", 0);
    bench.exits("resume", 17);
    bench.exits("resume --force", 11);
    assert_eq!(bench.ran("a"), [1], "it was finished");
    // A completed one is not meant.
    bench.exits("approve", 0);
    bench.exits("resume", 0);
    bench.exits("resume --force", 17);
}

#[test]
fn d_an_edit_is_told_in_the_words_of_the_workflow() {
    let bench = Bench::new("  - { id: a, run: 'LOG' }\n  - { id: b, run: 'false' }\n");
    bench.exits("run w.yaml", 10);
    let edited = bench.text("w.yaml").replace("echo", "echo  ");
    bench.write("w.yaml", &edited);
    let said = bench.exits("plan", 0).out;
    assert!(said.contains("a is done, and its command changed"), "{said}");
    assert!(!said.contains("definition."), "{said}");
    let shown = Terminal::start(&bench, "plan").exits(0);
    assert!(shown.ends_with(&format!("onward resume {}\n", id(&run_of(&bench)))), "{shown}");
}

#[test]
fn d_what_is_shown_at_a_gate_and_at_the_end_wraps_between_words() {
    let bench = Bench::new(
        "  - { id: g, gate: 'Go?', shows: [w.yaml] }\n\
         \x20 - { id: a_step_with_a_name_of_some_length_that_will_not_fit, run: \"echo 'error: \
         there is much to be said about this, and it does not fit into one line' >&2; false\" }\n",
    );
    let mut terminal = Terminal::start_sized(&bench, "run w.yaml", (80, 24));
    terminal.shows("Ctrl-D leaves it");
    terminal.shows("g? [approve/reject] ");
    terminal.types("a\n");
    let shown = terminal.exits(10);
    for words in ["c TEXT adds a comment", "there is much to be said"] {
        let line = shown.lines().find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("{words}: {shown}"));
        assert!(line.chars().count() <= 80, "{line}");
    }
}
