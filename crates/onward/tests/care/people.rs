//! The questions of looking after runs, asked at a terminal: only a clear yes is one.

use std::fs;

use crate::{
    bench::{Bench, journal},
    rescue::rescued,
    terminal::Terminal,
};

#[test]
fn a_repair_is_shown_and_adopted_by_a_clear_yes_only() {
    let bench = Bench::new("  - { id: one, run: LOG }\n  - { id: two, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let damaged = journal(&run).replacen("attempt.started", "attempt.startex", 1);
    fs::write(run.join("journal.jsonl"), &damaged).unwrap();
    for answer in ["no\n", "\n"] {
        let mut terminal = Terminal::start(&bench, "repair");
        terminal.shows("its checksum should be");
        terminal.shows("Adopt this? [NO/yes]");
        terminal.types(answer);
        terminal.exits(0);
        assert_eq!(journal(&run), damaged, "{answer:?}");
    }
    let mut terminal = Terminal::start(&bench, "repair");
    terminal.shows("Adopt this? [NO/yes]");
    terminal.types("yes\n");
    let shown = terminal.exits(0);
    assert!(shown.contains("is kept as journal.damaged-1.jsonl"), "{shown}");
    assert_ne!(journal(&run), damaged);
}

#[test]
fn archives_are_listed_before_anybody_is_asked_to_delete_them() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    bench.exits("archive", 0);
    let count = || fs::read_dir(bench.path(".onward/archive")).unwrap().count();
    for (answer, left) in [("no\n", 1), ("yes\n", 0)] {
        let mut terminal = Terminal::start(&bench, "gc --keep 0");
        terminal.shows("delete .onward/archive/story-");
        terminal.shows("Delete 1 archive for good? [NO/yes]");
        terminal.types(answer);
        terminal.exits(0);
        assert_eq!(count(), left);
    }
}

#[test]
fn a_path_that_somebody_changed_is_asked_about_by_its_name() {
    let (bench, _run) = rescued();
    fs::write(bench.path("made"), "mine").unwrap();
    for (answer, code, text) in [("no\n", 16, "mine"), ("yes\n", 0, "half")] {
        let mut terminal = Terminal::start(&bench, "undo 1");
        terminal.shows("changed  made");
        terminal.shows("Restore this? [NO/yes]");
        terminal.types("yes\n");
        terminal.shows("made was edited since. Replace it?");
        terminal.types(answer);
        terminal.exits(code);
        assert_eq!(bench.text("made"), text);
    }
}
