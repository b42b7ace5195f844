//! `onward watch` through a pseudo-terminal: live and dead runs, folding, filter, gates.

use onward_engine::care::harness::until;

use crate::{
    bench::{Bench, journal, sees, sees_nobody_left, signal},
    support::{glass::Glass, terminal::Terminal},
};

const STEPS: &str = "  - { id: fan, each: '{{ range(30) | list }}', \
    run: 'LOG; echo said {{ item }}' }\n\
    \x20 - { id: g, gate: Shall it go on? }\n\
    \x20 - { id: last, run: LOG }\n";

fn at(bench: &Bench, size: (u16, u16)) -> Terminal {
    let mut terminal = Terminal::start_sized(bench, "watch", size);
    terminal.sees_text("g");
    terminal
}

#[test]
fn d_a_dead_run_is_watched_and_its_gate_answered_at_two_sizes() {
    for size in [(80, 24), (140, 40)] {
        let bench = Bench::new(STEPS);
        bench.exits("run w.yaml", 11);
        let run = bench.project().runs().unwrap().remove(0).dir;
        let mut terminal = at(&bench, size);
        terminal.sees_text("q quit");
        // The fan-out is folded; Enter on its line unfolds it, and a filter finds one item.
        terminal.types("g\r");
        terminal.sees_text("fan[3]");
        terminal.types("/[17]");
        terminal.sees_text("said 17");
        terminal.sees_text("filter: [17]");
        terminal.types("\r\x1b");
        terminal.types("a");
        terminal.sees_text("1 approve, 2 reject");
        terminal.types("1");
        terminal.sees_text("recorded; the run continues");
        terminal.types("?");
        terminal.sees_text("any key goes back");
        terminal.types("x");
        until("the run to end", || {
            Ok(journal(&run).contains("\"kind\":\"run.ended\"").then_some(()))
        })
        .unwrap();
        terminal.sees(|glass| glass.screen()[0].contains("completed"));
        terminal.types("q");
        let shown = terminal.exits(0);
        // The summary stays in the scrollback.
        assert!(shown.contains("completed: "), "{shown}");
        assert!(journal(&run).contains("\"kind\":\"gate.decided\""), "{}", journal(&run));
    }
}

#[test]
fn d_a_live_run_moves_and_quitting_does_not_stop_it() {
    let steps = "  - { id: one, run: 'LOG; echo begun; while ! [ -e go ]; do sleep 0.05; done' }\n\
        \x20 - { id: two, run: LOG }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml --detach", 0);
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    terminal.sees_text("running");
    terminal.sees_text("begun");
    bench.write("go", "");
    terminal.sees_text("completed");
    terminal.types("q");
    terminal.exits(0);
    let said = bench.onward("watch");
    assert!(said.code == 2 && said.err.contains("needs a terminal"), "{said:?}");
}

#[test]
fn d_the_pane_says_why_a_step_waits_and_why_it_runs_again() {
    let steps = "  - { id: one, run: 'LOG; cat in.txt', reads: [in.txt] }\n\
        \x20 - { id: two, \
        run: 'LOG; echo > began; while ! [ -e go ]; do sleep 0.05; done; false' }\n\
        \x20 - { id: three, run: LOG }\n";
    let bench = Bench::new(steps);
    bench.write("in.txt", "x");
    bench.exits("run w.yaml --detach", 0);
    sees(&bench.path("began"));
    let mut terminal = Terminal::start_sized(&bench, "watch", (120, 24));
    terminal.sees(|glass| glass.frames > 0);
    terminal.types("G");
    terminal.sees(|glass| glass.screen().iter().any(|row| row.contains("waits for two")));
    bench.write("in.txt", "y");
    bench.write("go", "");
    terminal.sees(|glass| glass.screen()[0].contains("failed"));
    terminal.types("g");
    let again = "a resume runs it again (in.txt changed)";
    terminal.sees(|glass| glass.screen().iter().any(|row| row.contains(again)));
    terminal.types("q");
    terminal.exits(0);
}

#[test]
fn d_the_pane_shows_what_an_item_is_asked_with_its_own_value() {
    let steps = "  - { id: fan, each: [ann, bob], \
        run: 'echo at {{ item }}; while ! [ -e go ]; do sleep 0.05; done' }\n\
        \x20 - { id: then, each: [cy], run: 'echo then {{ item }} of {{ inputs.town }}' }\n";
    let bench = Bench::new(steps);
    let head = "inputs: { town: { type: string, default: Bern } }\nlimits: { parallel: 1 }\nsteps:";
    bench.workflow("w.yaml", head, steps);
    bench.exits("run w.yaml --detach", 0);
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    let has = |glass: &Glass, text: &str| glass.screen().iter().any(|row| row.contains(text));
    // One that runs, and one that has not begun.
    terminal.sees(|glass| has(glass, "$ echo at ann; while"));
    terminal.types("j");
    terminal.sees(|glass| has(glass, "$ echo at bob; while"));
    // Of a list that is not open yet there is no item.
    terminal.types("G");
    terminal.sees(|glass| has(glass, ">") && !has(glass, "at bob; while"));
    bench.write("go", "");
    terminal.sees(|glass| glass.screen()[0].contains("completed"));
    terminal.types("G");
    terminal.sees(|glass| has(glass, "$ echo then cy of Bern"));
    terminal.types("q");
    terminal.exits(0);
}

#[test]
fn d_a_gate_is_answered_with_its_question_in_sight_and_a_wrong_answer_is_told() {
    let question = "Does this look right to you, or shall it be changed once more before it goes \
        to the customers?";
    let steps = format!(
        "  - {{ id: g, gate: '{question}', options: [approve, revise, reject] }}\n\
         \x20 - {{ id: last, run: LOG }}\n"
    );
    for size in [(80, 24), (140, 40)] {
        let bench = Bench::new(&steps);
        bench.exits("run w.yaml", 11);
        let mut terminal = at(&bench, size);
        terminal.sees_text("q quit");
        terminal.types("a");
        let below = |glass: &Glass| {
            let rows = glass.screen();
            let from = rows.iter().rposition(|row| row.starts_with("g: ")).unwrap_or(rows.len());
            rows[from..].join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
        };
        terminal.sees(|glass| below(glass).contains(question));
        terminal.sees(|glass| below(glass).contains("[1 approve, 2 revise, 3 reject] > _"));
        assert_eq!(terminal.glass.screen().len(), usize::from(size.1));
        terminal.types("maybe\r");
        terminal.sees(|glass| below(glass).contains("`maybe` is not an answer here"));
        terminal.types("re\r");
        terminal.sees(|glass| below(glass).contains("`re` can mean revise or reject"));
        terminal.types("ap\r");
        terminal.sees(|glass| glass.screen()[0].contains("completed"));
        terminal.types("q");
        terminal.exits(0);
    }
}

/// The engine that took the answer is gone before `watch` looks for it.
#[test]
fn d_what_fails_right_after_an_answer_is_not_run_again() {
    let bench = Bench::new("  - { id: g, gate: Go? }\n  - { id: last, run: 'LOG; exit 4' }\n");
    let mut engine = Terminal::start(&bench, "run w.yaml");
    engine.shows("g? [approve/reject] ");
    let mut watch = at(&bench, (80, 24));
    watch.types("a");
    watch.sees_text("1 approve, 2 reject");
    watch.types("1");
    engine.exits(10);
    watch.sees(|glass| glass.screen()[0].contains("failed"));
    watch.types("q");
    watch.exits(0);
    sees_nobody_left(&bench.project().runs().unwrap()[0].dir);
    assert_eq!(bench.ran("last"), [1]);
}

#[test]
fn d_a_pause_is_asked_for_first() {
    let steps = "  - { id: one, run: 'LOG; echo > begun; \
        while ! [ -e go ]; do sleep 0.05; done' }\n\
        \x20 - { id: two, run: LOG }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml --detach", 0);
    sees(&bench.path("begun"));
    let run = bench.project().runs().unwrap().remove(0).dir;
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    terminal.sees_text("q quit");
    terminal.types("p");
    terminal.sees_text("Pause the run? Running steps end first. [y/N]");
    terminal.types("n");
    terminal.sees_text("the run continues");
    assert!(!journal(&run).contains("pausing"), "{}", journal(&run));
    terminal.types("p");
    terminal.sees_text("[y/N]");
    terminal.types("y");
    terminal.sees_text("asked to pause");
    until("the pause to be heard", || Ok(journal(&run).contains("pausing").then_some(()))).unwrap();
    bench.write("go", "");
    sees_nobody_left(&run);
    // Ctrl-C leaves, whatever is being typed.
    terminal.types("/x");
    terminal.sees_text("filter: x_");
    terminal.types("\x03");
    terminal.exits(0);
    assert_eq!(bench.ran("two"), [0; 0]);
}

/// Enter goes into a step, Esc back; scrolled up it stays, at the end it follows.
#[test]
fn d_enter_shows_a_step_on_the_whole_screen_and_esc_goes_back() {
    let words = "a line that is far too long for the pane beside the tree, up to its END";
    let steps = format!(
        "  - {{ id: one, run: 'LOG; echo \"{words}\"; seq 100 | sed s/^/said-/' }}\n\
         \x20 - {{ id: two, run: LOG }}\n"
    );
    for size in [(80, 24), (140, 40)] {
        let bench = Bench::new(&steps);
        bench.exits("run w.yaml", 0);
        let mut terminal = Terminal::start_sized(&bench, "watch", size);
        let has = |glass: &Glass, text: &str| glass.screen().iter().any(|row| row.contains(text));
        terminal.sees(|glass| has(glass, "Enter in") && has(glass, "said-100"));
        terminal.types("\r");
        // The last row of what it printed stands above the foot, the tree is gone.
        terminal
            .sees(|glass| has(glass, "j k scroll") && has(glass, "said-100") && !has(glass, "│"));
        assert!(!has(&terminal.glass, "END"), "{}", terminal.glass.screen().join("\n"));
        terminal.types("g");
        terminal.sees(|glass| has(glass, "END") && !has(glass, "said-100"));
        assert_eq!(terminal.glass.screen()[1], "one", "its name stays on top");
        terminal.types("\x1b");
        terminal.sees(|glass| has(glass, "j k move") && has(glass, "│") && has(glass, "two"));
        terminal.types("q");
        terminal.exits(0);
    }
}

/// Where there are more steps than anyone reads: they are folded, found, and scrolled through.
#[test]
fn d_a_run_of_many_steps_is_watched_while_it_runs() {
    const ITEMS: usize = 5_000;
    let steps = format!(
        "  - id: fan\n    each: '{{{{ range({ITEMS}) | list }}}}'\n    \
        run: 'LOG; echo said {{{{ item }}}}; while ! [ -e go ]; do sleep 0.05; done'\n\
        \x20 - {{ id: last, run: LOG }}\n"
    );
    let bench = Bench::new(&steps);
    bench.workflow("w.yaml", "limits: { parallel: 1 }\nsteps:", &steps);
    bench.exits("run w.yaml --detach", 0);
    sees(&bench.path("ledger.txt"));
    for size in [(80, 24), (140, 40)] {
        let mut terminal = Terminal::start_sized(&bench, "watch", size);
        terminal.sees(|glass| glass.screen().iter().any(|row| row.contains("fan 0/5000")));
        terminal.types("g\r");
        terminal.sees(|glass| glass.screen().iter().any(|row| row.contains("fan[1]")));
        terminal.types("G");
        terminal.sees(|glass| glass.screen().iter().any(|row| row.starts_with(">· last")));
        terminal.types("k");
        terminal.sees(|glass| glass.screen().iter().any(|row| row.starts_with(">  · fan[4999]")));
        terminal.types("/[4321]");
        terminal.sees(|glass| glass.screen()[1].contains("fan[4321]"));
        terminal.types("\x1b");
        terminal.sees(|glass| glass.screen().iter().any(|row| row.starts_with(">  · fan[4321]")));
        terminal.types("gj");
        terminal.sees(|glass| glass.screen().iter().any(|row| row.ends_with("said 0")));
        terminal.resize((60, 12));
        terminal.sees(|glass| glass.screen().get(11).is_some_and(|it| it.starts_with("j k move")));
        terminal.types("q");
        terminal.exits(0);
    }
    bench.exits("cancel", 0);
    // The driver has heard it before its project goes.
    sees_nobody_left(&bench.project().runs().unwrap().remove(0).dir);
}

#[test]
fn d_a_filter_that_is_kept_is_in_sight_and_the_help_fits() {
    let bench = Bench::new("  - { id: first, run: LOG }\n  - { id: two, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let mut terminal = at(&bench, (80, 24));
    terminal.sees_text("q quit");
    terminal.types("/tw\r");
    let foot = |glass: &Glass| glass.screen().last().cloned().unwrap_or_default();
    terminal.sees(|glass| foot(glass).starts_with("filter: tw  Esc clears it"));
    terminal.sees(|glass| !glass.screen().iter().any(|row| row.contains("first")));
    terminal.types("\x1b");
    terminal.sees(|glass| foot(glass).starts_with("j k move"));
    terminal.sees(|glass| glass.screen().iter().any(|row| row.contains("first")));
    terminal.types("?");
    terminal.sees(|glass| foot(glass) == "any key goes back");
    let shown = terminal.glass.screen().join("\n");
    assert!(!shown.contains('…'), "{shown}");
    terminal.types("xq");
    terminal.exits(0);
}

#[test]
fn d_what_ended_an_attempt_is_not_said_of_the_next_one() {
    let steps = "  - { id: one, retry: { max: 1, backoff: 0s, on: [failed] }, \
        run: 'LOG; if [ -e once ]; then echo second; while ! [ -e go ]; do sleep 0.05; done; \
        else touch once; exit 3; fi' }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml --detach", 0);
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    terminal.sees_text("second");
    terminal.sees(|glass| beside(glass, "attempt 2  ") && beside(glass, "before: exit 3"));
    assert!(!beside(&terminal.glass, "exit 3"), "{}", terminal.glass.screen().join("\n"));
    bench.write("go", "");
    terminal.sees(|glass| beside(glass, "done") && !beside(glass, "before: "));
    terminal.types("q");
    terminal.exits(0);
}

/// A row of the pane begins so.
fn beside(glass: &Glass, text: &str) -> bool {
    let rows = glass.screen();
    rows.iter().filter_map(|row| row.split_once("│ ")).any(|(_, row)| row.starts_with(text))
}

/// Ctrl-C ends the pager, and not `watch`.
#[test]
fn d_the_log_of_a_step_that_runs_is_followed_in_the_pager() {
    let steps = "  - { id: one, run: 'LOG; echo begun; while ! [ -e more ]; do sleep 0.05; done; \
        printf \"\\033[31mre\\033[0md\\n\"; while ! [ -e go ]; do sleep 0.05; done' }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml --detach", 0);
    let mut command = bench.command("watch");
    let mut terminal = Terminal::of_sized(command.env("PAGER", "cat"), (80, 24));
    terminal.sees(|glass| beside(glass, "begun"));
    terminal.types("o");
    let has_row = |glass: &Glass, row: &str| glass.screen().iter().any(|it| it == row);
    terminal.sees(|glass| has_row(glass, "begun"));
    bench.write("more", "");
    terminal.sees(|glass| has_row(glass, "red"));
    terminal.types("\x03");
    terminal.sees(|glass| beside(glass, "begun"));
    terminal.types("q");
    terminal.exits(0);
    bench.write("go", "");
    sees_nobody_left(&bench.project().runs().unwrap()[0].dir);
}

#[test]
fn d_a_signal_ends_watch_and_gives_the_terminal_back() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    for name in ["-TERM", "-INT"] {
        let mut terminal = at_all(&bench);
        let pid = terminal.pid();
        assert!(!terminal.shows_keys());
        signal(pid, name);
        let shown = terminal.ends(0);
        assert!(shown.contains("completed: "), "{shown}");
        assert!(terminal.shows_keys(), "{name}");
        assert!(terminal.glass.screen().iter().all(|row| !row.contains("j k move")), "{name}");
    }
}

fn at_all(bench: &Bench) -> Terminal {
    let mut terminal = Terminal::start_sized(bench, "watch", (80, 24));
    terminal.sees_text("q quit");
    terminal
}

/// What a step printed, and what it is called, is drawn where it belongs, at every width, and does
/// not speak to the terminal.
#[test]
fn d_wide_letters_and_controls_stay_in_their_place() {
    let wide = "漢字".repeat(30);
    let steps = format!(
        "  - {{ id: fan, each: ['{wide}', \"a\\u202eb\"], \
            run: 'LOG; printf \"{wide}\\nx\\033[2Jy\\tz\\n\\342\\200\\256end\\n\"' }}\n\
         \x20 - {{ id: empty, run: LOG }}\n"
    );
    let bench = Bench::new(&steps);
    bench.exits("run w.yaml", 0);
    let mut terminal = at_all(&bench);
    for size in [(80, 24), (140, 40), (41, 12), (80, 24)] {
        terminal.resize(size);
        terminal.types("gj");
        terminal.sees(|glass| {
            let rows = glass.screen();
            let [_, body @ .., _] = &rows[..] else { return false };
            let column = |row: &str| row.split('│').next().map(columns);
            rows.len() == usize::from(size.1)
                && beside(glass, "xy z")
                && beside(glass, "\\u{202e}end")
                && body.iter().all(|row| row.contains('│') && column(row) == column(&body[0]))
                && rows.iter().all(|row| columns(row) <= usize::from(size.0))
        });
    }
    terminal.types("G");
    terminal.sees(|glass| beside(glass, "no output"));
    terminal.types("q");
    let shown = terminal.exits(0);
    assert!(!shown.contains('\u{202e}'), "{shown:?}");
}

fn columns(text: &str) -> usize {
    text.chars().map(|c| if ('\u{2e80}'..'\u{a4d0}').contains(&c) { 2 } else { 1 }).sum()
}
