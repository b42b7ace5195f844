//! Keys that a person presses while the block of a live run moves.

use onward_engine::care::harness::until;

use crate::{
    bench::{Bench, sees, signal},
    support::{glass::Glass, terminal::Terminal},
};

const WAITS: &str = "  - { id: a, run: 'LOG; echo said; echo > began; \
    while ! [ -e go ]; do sleep 0.05; done' }\n\
    \x20 - { id: ok, gate: Go on? }\n\
    \x20 - { id: b, run: LOG }\n";

fn rows(glass: &Glass, begin: &str) -> usize {
    glass.all().iter().filter(|row| row.starts_with(|it| begin.contains(it))).count()
}

/// A run whose block is on the screen.
fn live(bench: &Bench, arguments: &str, size: (u16, u16)) -> Terminal {
    let mut terminal = Terminal::start_sized(bench, arguments, size);
    sees(&bench.path("began"));
    terminal.sees(|glass| rows(glass, "━─") == 1);
    terminal
}

fn keys_are_hidden(terminal: &Terminal) {
    until("keys to be hidden", || Ok((!terminal.shows_keys()).then_some(()))).unwrap();
}

#[test]
fn d_keys_leave_nothing_in_the_block_and_a_question_shows_them() {
    for size in [(80, 24), (140, 40)] {
        let bench = Bench::new(WAITS);
        let mut terminal = live(&bench, "run w.yaml", size);
        terminal.types("abc\n\nxyz\n");
        terminal.sees_frames(3);
        let shown = terminal.glass.all().join("\n");
        assert_eq!(
            (rows(&terminal.glass, "━─"), rows(&terminal.glass, "⠋⠙⠸⠴⠦⠧⠇⠏")),
            (1, 1),
            "{shown}"
        );
        assert!(!shown.contains("abc") && !shown.contains("xyz"), "{shown}");
        bench.write("go", "");
        terminal.shows("? [approve/reject] ");
        let notice = "\x1b]9;onward: ok waits for your answer\x07\x07";
        assert!(terminal.shown.contains(notice), "the terminal notifies its user");
        assert!(terminal.shows_keys());
        terminal.types("approve\n");
        let shown = terminal.ends(0);
        assert!(shown.contains("? [approve/reject] approve\n"), "{shown}");
        assert!(terminal.shows_keys(), "given back");
    }
}

#[test]
fn d_the_terminal_is_given_back_at_a_stop_and_taken_again() {
    let bench = Bench::new(WAITS);
    let mut terminal = live(&bench, "run w.yaml --no-input", (80, 24));
    keys_are_hidden(&terminal);
    terminal.types("\x1a");
    terminal.stands_still();
    assert!(terminal.shows_keys(), "the shell's");
    terminal.sees(|glass| rows(glass, "━─") == 0);
    signal(terminal.pid(), "-CONT");
    keys_are_hidden(&terminal);
    terminal.sees(|glass| rows(glass, "━─") == 1);
    bench.write("go", "");
    terminal.ends(11);
    assert!(terminal.shows_keys());
}

#[test]
fn d_however_a_live_run_is_left_the_terminal_shows_keys_again() {
    for (arguments, left) in [("run w.yaml --grace 0", "\x03"), ("run w.yaml --grace 0", "TERM")] {
        let bench = Bench::new(WAITS);
        let mut terminal = live(&bench, arguments, (80, 24));
        keys_are_hidden(&terminal);
        match left {
            "TERM" => signal(terminal.pid(), "-TERM"),
            typed => terminal.types(typed),
        }
        terminal.ends(130);
        assert!(terminal.shows_keys(), "{left:?}");
    }
    let bench = Bench::new(WAITS);
    bench.exits("run w.yaml --detach", 0);
    let mut terminal = live(&bench, "attach", (80, 24));
    keys_are_hidden(&terminal);
    terminal.types("\x03");
    terminal.ends(130);
    assert!(terminal.shows_keys(), "attach");
    bench.write("go", "");
    let run = bench.project().runs().unwrap().remove(0).dir;
    until("the run to reach its gate", || {
        Ok(crate::bench::journal(&run).contains("\"kind\":\"gate.opened\"").then_some(()))
    })
    .unwrap();
    crate::bench::sees_nobody_left(&run);
}
