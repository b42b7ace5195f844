//! Who may drive, and which run is meant.

use crate::bench::{Bench, id, kill_all, sees, sees_nobody_left};

const SLOW: &str = "  - { id: one, run: 'LOG; echo > begun; cat go', edits: EDITS }\n";

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

#[test]
fn case_11_a_second_driver_is_refused_and_told_who_drives_and_a_dead_one_needs_nothing() {
    let bench = Bench::new(&SLOW.replace("EDITS", "false"));
    let go = bench.fifo("go");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let said = bench.exits("resume --no-input", 14);
    let pid = format!("process {} on {} since ", engine.pid(), host());
    assert!(said.err.contains(&pid), "{said:?}");
    let said = bench.exits(&format!("resume --json {}", id(&run)), 14);
    assert_eq!(said.json()["code"], "held");
    engine.kill().unwrap();
    let writer = std::thread::spawn(move || std::fs::write(go, ""));
    bench.exits("resume", 0);
    writer.join().unwrap().unwrap();
    bench.is_proved(&run);
    assert_eq!(bench.ran("one"), [1], "it went on without its engine");
    sees_nobody_left(&run);
}

#[test]
fn a_second_run_that_edits_the_same_tree_is_refused() {
    let bench = Bench::new(&SLOW.replace("EDITS", "true"));
    bench.fifo("go");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let said = bench.exits("run w.yaml", 14);
    let holder = format!("process {} on {} since ", engine.pid(), host());
    assert!(said.err.contains(&holder) && said.err.contains(&id(&run)), "{said:?}");
    assert_eq!(bench.project().runs().unwrap().len(), 1, "a run that was refused is none");
    engine.kill().unwrap();
    kill_all(&run);
    sees_nobody_left(&run);
}

#[test]
fn case_20_run_never_resumes_and_resume_never_starts() {
    let bench = Bench::new("  - { id: one, run: 'LOG; test -e allowed' }\n");
    let said = bench.exits("resume", 17);
    assert!(said.err.contains("onward run FILE"), "{said:?}");
    bench.exits("run w.yaml", 10);
    bench.exits("run w.yaml", 10);
    assert_eq!(bench.ran("one"), [1, 1], "two runs, each with its own first attempt");
    let runs = bench.project().runs().unwrap();
    assert_eq!(runs.len(), 2);
    let said = bench.exits("resume --no-input", 16);
    for run in &runs {
        let line = format!("{}  story, failed at one, 0/1 done, ", run.id);
        assert!(said.err.contains(&line), "{said:?}");
    }
    std::fs::write(bench.path("allowed"), "").unwrap();
    bench.exits("resume --all", 0);
    assert_eq!(bench.ran("one"), [1, 1, 2, 2]);
    bench.exits("resume", 17);
    bench.exits(&format!("resume {}", runs[0].id), 17);
    assert_eq!(bench.ran("one"), [1, 1, 2, 2]);
}
