//! One count of steps in every place: those known so far, and a word where others will follow.

use onward_engine::care::harness::until;
use serde_json::json;

use crate::{
    bench::{Bench, sees},
    support::terminal::Terminal,
};

/// One step that waits, a list of three, a loop of two turns with two steps each, and a last one.
const STORY: &str = "  - { id: a, run: 'LOG; echo > began; \
    while ! [ -e go ]; do sleep 0.05; done' }\n\
    \x20 - { id: m, each: [x, y, z], run: LOG }\n\
    \x20 - id: l\n    repeat: { max: 2 }\n    steps:\n\
    \x20     - { id: c, run: LOG }\n      - { id: d, run: LOG }\n\
    \x20 - { id: e, run: 'LOG; echo > ended; while ! [ -e end ]; do sleep 0.05; done' }\n";

#[test]
fn d_what_lists_and_loops_will_open_is_told_as_more_in_every_place() {
    let bench = Bench::new(STORY);
    let mut terminal = Terminal::start_sized(&bench, "run w.yaml", (80, 24));
    sees(&bench.path("began"));
    terminal.shows("  0/2+  ");
    let counts = json!({ "done": 0, "total": 2 });
    assert_eq!(bench.exits("list --json", 0).json()["runs"][0]["counts"], counts);
    assert_eq!(bench.exits("status --json", 0).json()["counts"], counts);
    let said = bench.exits("status", 0).out;
    assert!(said.contains("0 of 2 done, and more to come\n"), "{said}");
    let said = bench.exits("list", 0).out;
    assert!(said.contains("  0/2+  "), "{said}");
    let mut watch = Terminal::start_sized(&bench, "watch", (80, 24));
    watch.sees(|glass| glass.screen().first().is_some_and(|row| row.contains(" 0/2+ done ")));
    watch.types("q");
    let shown = watch.exits(0);
    assert!(shown.contains("0 of 2 steps done and more to come, "), "{shown}");
    bench.write("go", "");
    sees(&bench.path("ended"));
    terminal.shows("  8/9  ");
    bench.write("end", "");
    let shown = terminal.exits(0);
    assert!(shown.contains("completed: 9 steps, "), "{shown}");
    assert_eq!(bench.exits("status --json", 0).json()["counts"], json!({ "done": 9, "total": 9 }));
}

/// What a dead run counts is what it counted while it lived.
#[test]
fn d_a_kill_changes_no_count() {
    let bench = Bench::new(STORY);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("began"));
    let counts = || bench.exits("status --json", 0).json()["counts"].clone();
    let alive = counts();
    engine.kill().unwrap();
    assert_eq!((&alive, counts()), (&json!({ "done": 0, "total": 2 }), alive.clone()));
    bench.write("go", "");
    until("a seal", || {
        let seals = std::fs::read_to_string(run.join("exits.jsonl")).unwrap_or_default();
        Ok(seals.contains("exited").then_some(()))
    })
    .unwrap();
    bench.write("end", "");
    let said = bench.exits("resume --no-input", 0).err;
    assert!(said.contains("completed: 9 steps"), "{said}");
}
