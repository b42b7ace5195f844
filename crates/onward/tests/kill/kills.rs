//! SIGKILL: of the engine, twenty times; of everything at once; of the supervisor alone.

use std::{path::Path, time::Duration};

use onward_core::event::Event;
use onward_engine::care::harness::{Watch, until};

use crate::{
    bench::{Bench, Living, id, kill_all, processes, sees, sees_nobody_left, signal, watched},
    leash::Leash,
};

fn count(watch: &Watch, is_it: impl Fn(&Event) -> bool) -> usize {
    watch.records.iter().filter(|record| is_it(&record.event)).count()
}

/// How many there are of the record that a kill waits for: they take turns.
fn progress(watch: &Watch, kill: usize) -> usize {
    match kill % 3 {
        0 => count(watch, |it| matches!(it, Event::AttemptFinished(_))),
        1 => count(watch, |it| matches!(it, Event::AttemptStarted(_))),
        _ => count(watch, |it| matches!(it, Event::RunResumed(_))),
    }
}

#[test]
fn an_engine_killed_twenty_times_runs_every_step_once() {
    let bench = Bench::new("");
    let names: Vec<String> = (0..30).map(|number| format!("i{number}")).collect();
    bench.workflow(
        "w.yaml",
        "limits: { parallel: 1, resumes: 100 }\nsteps:",
        &format!(
            "  - id: many\n    each: [{}]\n    run: LOG; sleep 0.01; echo 1 > {{{{ item }}}}\n    \
             writes: [\"{{{{ item }}}}\"]\n",
            names.join(", ")
        ),
    );
    let mut engine = Leash::start(&mut bench.command("run w.yaml"));
    let run = engine.first_run(&bench.project());
    let mut watch = Watch::new(&run);
    for kill in 0..20 {
        let before = progress(&watch, kill);
        let goes_on = || {
            watch.look().unwrap();
            progress(&watch, kill) > before
        };
        assert!(engine.until(goes_on), "kill {kill}: {}", engine.last);
        engine.kill();
        engine = Leash::start(&mut bench.command(&format!("resume {}", id(&run))));
    }
    engine.kill();
    bench.exits("resume", 0);
    bench.is_proved(&run);
    assert_eq!(bench.ledger().0.len(), names.len());
    assert!(bench.ledger().0.values().all(|ran| *ran == [1]), "{:?}", bench.ledger());
    sees_nobody_left(&run);
}

#[test]
fn after_everything_was_killed_only_what_was_under_way_runs_again() {
    let bench = Bench::new(
        "  - { id: first, run: LOG }\n\
         \x20 - id: many\n    each: [a, b, c, d, e, f]\n    run: |\n      LOG\n      \
         case $ONWARD_ATTEMPT-{{ item }} in 1-d | 1-e | 1-f) setsid sleep 1000 ;; esac\n\
         \x20 - { id: last, run: LOG }\n",
    );
    let (run, before) =
        bench.run_and_kill(|it| it.finished().len() == 4 && bench.ledger().0.len() == 7);
    assert!(processes(&run).len() > 3, "children and their supervisor outlive the engine");
    kill_all(&run);
    bench.exits("resume", 0);
    bench.is_proved(&run);
    for (step, _) in before.finished() {
        assert_eq!(bench.ran(&step), [1], "{step}");
    }
    let interrupted = before.in_flight();
    assert_eq!(interrupted.len(), 3);
    for (step, _) in interrupted {
        assert_eq!(bench.ran(&step), [1, 2], "{step}");
    }
    sees_nobody_left(&run);
}

#[test]
fn orphans_are_found_and_ended_before_anything_runs_again() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; [ $ONWARD_ATTEMPT = 2 ] || setsid sleep 1000', writes: [] }\n",
    );
    let (run, _) = bench.run_and_kill(|_| !bench.ran("one").is_empty());
    kill_supervisor(&run);
    let plan = bench.plan(&run);
    assert_eq!(crate::bench::codes(&plan), ["orphan-process"], "{plan:#}");
    bench.exits("resume", 0);
    bench.is_proved(&run);
    assert_eq!(bench.ran("one"), [1, 2]);
    sees_nobody_left(&run);
    assert_eq!(count(&watched(&run), |it| matches!(it, Event::AttemptLost { .. })), 1);
}

#[test]
fn what_an_orphan_writes_while_it_is_ended_is_undone_too() {
    let bench = Bench::new(
        "  - id: one\n    writes: [out.txt]\n    run: |\n      LOG\n      \
         echo $ONWARD_ATTEMPT >> out.txt\n      [ $ONWARD_ATTEMPT = 2 ] && exit\n      \
         trap 'echo late >> out.txt; exit' TERM\n      touch began\n      \
         while true; do sleep 0.01; done\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    engine.kill().unwrap();
    kill_supervisor(&run);
    bench.exits("resume --no-input", 0);
    bench.is_proved(&run);
    assert_eq!(bench.text("out.txt"), "2\n");
    sees_nobody_left(&run);
}

/// Its first attempt writes once more when it is older than what may be its own after the last sign
/// of a supervisor: two seconds.
const WRITES_ON: &str = "  - id: one\n    writes: [out.txt]\n    run: |\n      LOG\n      \
    echo $ONWARD_ATTEMPT >> out.txt\n      [ $ONWARD_ATTEMPT = 2 ] && exit\n      \
    touch began\n      while ! test -e go; do sleep 0.01; done\n      \
    sleep 2.5\n      echo late >> out.txt\n      touch wrote\n      \
    while ! test -e stop; do sleep 0.01; done\n";

#[test]
fn what_an_orphan_wrote_long_after_the_last_sign_of_its_supervisor_is_its_own() {
    let bench = Bench::new(WRITES_ON);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    engine.kill().unwrap();
    kill_supervisor(&run);
    bench.write("go", "");
    sees(&bench.path("wrote"));
    let plan = bench.plan(&run);
    assert_eq!(crate::bench::codes(&plan), ["orphan-process"], "{plan:#}");
    assert_eq!(plan["reverts"][0]["path"], "out.txt", "{plan:#}");
    bench.exits("resume --no-input", 0);
    bench.is_proved(&run);
    assert_eq!(bench.text("out.txt"), "2\n");
    sees_nobody_left(&run);
}

#[test]
fn a_sign_from_the_future_makes_no_edit_of_a_person_the_attempts_own() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; echo half > out.txt; touch began; sleep 1000', \
         writes: [out.txt] }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    engine.kill().unwrap();
    kill_all(&run);
    let put_off = |path: &Path, seconds| {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now + Duration::from_secs(seconds)).unwrap();
    };
    // The clock was a day ahead, and then put right; the person comes later than two seconds.
    put_off(&run.join("heartbeat"), 86_400);
    bench.write("out.txt", "by hand\n");
    put_off(&bench.path("out.txt"), 60);
    let said = bench.exits("resume --no-input", 16);
    assert!(said.err.contains("dirty-tree"), "{said:?}");
    assert_eq!((bench.text("out.txt"), bench.ran("one")), ("by hand\n".into(), vec![1]));
}

/// `ends`: its attempt ended by itself before the engine saw that the supervisor was gone.
fn outlives_its_supervisor(ends: bool) {
    let bench = Bench::new(WRITES_ON);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    // A machine so busy that the engine does not come to see the death at once.
    signal(engine.pid(), "-STOP");
    kill_supervisor(&run);
    bench.write("go", "");
    sees(&bench.path("wrote"));
    if ends {
        bench.write("stop", "");
        let left = || processes(&run).into_iter().filter(|pid| *pid != engine.pid()).count();
        until("the orphan to end", || Ok((left() == 0).then_some(()))).unwrap();
    }
    signal(engine.pid(), "-CONT");
    assert_eq!(engine.wait().unwrap().code(), Some(0), "{}", bench.text("said"));
    bench.is_proved(&run);
    assert_eq!(bench.text("out.txt"), "2\n");
    sees_nobody_left(&run);
}

#[test]
fn what_an_attempt_wrote_after_its_supervisor_died_beside_a_living_engine_is_its_own() {
    outlives_its_supervisor(false);
}

#[test]
fn what_an_attempt_wrote_and_ended_after_its_supervisor_died_beside_an_engine_is_its_own() {
    outlives_its_supervisor(true);
}

/// The one that is there now, alone.
pub(crate) fn kill_supervisor(run: &Path) {
    let text = std::fs::read_to_string(run.join("supervisor")).unwrap();
    let here: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pid = u32::try_from(here["pid"].as_u64().unwrap()).unwrap();
    let Some(supervisor) = Living::of(pid) else { return };
    signal(pid, "-9");
    until("the supervisor to die", || Ok((!supervisor.lives()).then_some(()))).unwrap();
}

#[test]
fn a_supervisor_that_was_killed_alone_is_replaced_and_the_run_goes_on() {
    let bench = Bench::new(
        "  - { id: first, run: LOG }\n\
         \x20 - id: many\n    each: [a, b, c, d, e, f]\n    run: |\n      LOG\n      \
         case $ONWARD_ATTEMPT-{{ item }} in 1-d | 1-e | 1-f) setsid sleep 1000 ;; esac\n\
         \x20 - { id: last, run: LOG }\n",
    );
    let (mut engine, run) = bench.start_run();
    let mut watch = Watch::new(&run);
    let reached = watch
        .until(&mut engine, |it| it.finished().len() == 4 && bench.ledger().0.len() == 7)
        .unwrap();
    assert!(reached, "{}", bench.text("said"));
    let (finished, interrupted) = (watch.finished(), watch.in_flight());
    kill_supervisor(&run);
    assert_eq!(engine.wait().unwrap().code(), Some(0), "{}", bench.text("said"));
    bench.is_proved(&run);
    assert_eq!(interrupted.len(), 3);
    for (step, _) in finished {
        assert_eq!(bench.ran(&step), [1], "{step}");
    }
    for (step, _) in interrupted {
        assert_eq!(bench.ran(&step), [1, 2], "{step}");
    }
    sees_nobody_left(&run);
}

#[test]
fn supervisors_killed_again_and_again_cost_no_finished_step() {
    let bench = Bench::new("");
    let names: Vec<String> = (0..30).map(|number| format!("i{number}")).collect();
    bench.workflow(
        "w.yaml",
        "limits: { parallel: 2, resumes: 100 }\nsteps:",
        &format!("  - {{ id: many, each: [{}], run: LOG; sleep 0.02 }}\n", names.join(", ")),
    );
    let mut engine = Leash::start(&mut bench.command("run w.yaml"));
    let run = engine.first_run(&bench.project());
    let mut watch = Watch::new(&run);
    for kill in 1..=8 {
        let goes_on = || {
            watch.look().unwrap();
            watch.finished().len() >= 3 * kill
        };
        assert!(engine.until(goes_on), "kill {kill}: {}", engine.last);
        kill_supervisor(&run);
    }
    assert_eq!(engine.exits(), Some(0), "{}", engine.last);
    bench.is_proved(&run);
    assert_eq!(bench.ledger().0.len(), names.len());
    sees_nobody_left(&run);
}

#[test]
fn an_effect_that_died_with_its_supervisor_is_left_to_a_person() {
    let bench =
        Bench::new("  - { id: send, run: 'LOG; echo > begun; sleep 1000', effect: outside }\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    kill_supervisor(&run);
    assert_eq!(engine.wait().unwrap().code(), Some(16), "{}", bench.text("said"));
    assert!(bench.text("said").contains("effect-unknown"), "{}", bench.text("said"));
    assert_eq!(bench.ran("send"), [1]);
    sees_nobody_left(&run);
}

#[test]
fn an_attempt_that_ended_in_a_turn_which_is_no_more_is_not_waited_for() {
    let bench = Bench::new(
        "  - id: round\n    repeat: { max: 3, until: '{{ round >= 2 }}' }\n    steps:\n      \
         - { id: judge, run: 'LOG; cat input', reads: [input] }\n      \
         - { id: edit, run: 'LOG; [ $ONWARD_ATTEMPT-{{ round }} != 1-2 ] || cat go' }\n",
    );
    std::fs::write(bench.path("input"), "one").unwrap();
    let go = bench.fifo("go");
    let (run, _) = bench.run_and_kill(|_| !bench.ran("round[2]/edit").is_empty());
    std::fs::write(go, "").unwrap();
    onward_engine::care::harness::until("the attempt to be sealed", || {
        let seals = std::fs::read_to_string(run.join("exits.jsonl")).unwrap();
        let is_it = |line: &str| line.contains("exited") && line.contains("round[2]/edit");
        Ok(seals.lines().any(is_it).then_some(()))
    })
    .unwrap();
    // The first turn's judge runs again, and with it the loop turns back.
    std::fs::write(bench.path("input"), "two").unwrap();
    bench.exits("resume --yes", 0);
    assert_eq!(bench.ran("round[1]/judge"), [1, 2]);
    assert_eq!(bench.ran("round[2]/edit"), [1, 2]);
    sees_nobody_left(&run);
}
