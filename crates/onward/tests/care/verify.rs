//! Verify: every done step is proved again, in full.

use std::{fs, time::SystemTime};

use crate::{
    bench::{Bench, journal, sees},
    json,
};

fn answer(bench: &Bench, code: i32) -> Vec<(String, String)> {
    let said = json(bench, "verify", "verify", code);
    assert_eq!(said["proved"], code == 0);
    let steps = said["steps"].as_array().unwrap();
    let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
    steps.iter().map(|it| (text(&it["step"]), text(&it["answer"]))).collect()
}

#[track_caller]
fn check(bench: &Bench, code: i32, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> =
        expected.iter().map(|(step, word)| ((*step).into(), (*word).into())).collect();
    assert_eq!(answer(bench, code), expected);
}

const STEPS: &str = "  - { id: make, run: 'LOG; cp source made', reads: [source], writes: [made] }
  - { id: test, run: LOG, check: test -s made }
  - { id: tell, run: 'LOG; echo 7 > $ONWARD_RESULT', result: { schema: number.json } }
  - { id: plain, run: LOG }
";

fn bench() -> Bench {
    let bench = Bench::new("");
    fs::write(bench.path("source"), "one\n").unwrap();
    fs::write(bench.path("number.json"), "{\"type\": \"number\"}").unwrap();
    bench.workflow("w.yaml", "steps:", STEPS);
    bench.exits("run w.yaml", 0);
    bench
}

#[test]
fn what_is_as_it_was_is_proved_and_the_journal_stays_as_it_is() {
    let bench = bench();
    let run = bench.project().runs().unwrap().remove(0).dir;
    let before = journal(&run);
    let all = [("make", "done"), ("test", "done"), ("tell", "done"), ("plain", "done")];
    check(&bench, 0, &all);
    let said = bench.exits("verify", 0);
    assert!(said.out.contains("made is as it was"), "{said:?}");
    assert!(said.err.contains("all 4 done steps are proved"), "{said:?}");
    assert_eq!(journal(&run), before);
    assert_eq!(bench.ran("make"), [1]);
}

#[test]
fn an_output_of_the_same_size_and_time_is_read_all_the_same() {
    let bench = bench();
    let made = bench.path("made");
    let time: SystemTime = fs::metadata(&made).unwrap().modified().unwrap();
    fs::write(&made, "two\n").unwrap();
    fs::File::options().write(true).open(&made).unwrap().set_modified(time).unwrap();
    let all = [("make", "stale"), ("test", "done"), ("tell", "done"), ("plain", "done")];
    check(&bench, 16, &all);
    fs::remove_file(&made).unwrap();
    let all = [("make", "stale"), ("test", "unproved"), ("tell", "done"), ("plain", "done")];
    check(&bench, 16, &all);
}

#[test]
fn a_changed_source_a_red_check_and_a_bad_result_are_told_apart() {
    let bench = bench();
    let run = bench.project().runs().unwrap().remove(0).dir;
    fs::write(bench.path("source"), "other\n").unwrap();
    fs::write(bench.path("made"), "").unwrap();
    fs::write(run.join("out/tell.1.result"), "\"seven\"").unwrap();
    let all = [("make", "stale"), ("test", "unproved"), ("tell", "unproved"), ("plain", "done")];
    check(&bench, 16, &all);
    // Another number is a number, but not the one it was; none at all is in the journal.
    fs::write(run.join("out/tell.1.result"), "8").unwrap();
    assert_eq!(answer(&bench, 16)[2].1, "stale");
    fs::remove_file(run.join("out/tell.1.result")).unwrap();
    assert_eq!(answer(&bench, 16)[2].1, "done");
}

#[test]
fn nothing_can_be_proved_while_it_is_being_changed_or_cannot_be_read() {
    let bench = Bench::new("  - { id: one, run: 'LOG; echo > begun; sleep 1000' }\n");
    bench.exits("verify", 17);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    bench.exits("verify", 14);
    engine.kill().unwrap();
    crate::bench::kill_all(&run);
    let said = bench.exits("verify", 0);
    assert!(said.err.contains("no step is done yet"), "{said:?}");
    bench.exits("verify nothing", 17);
}
