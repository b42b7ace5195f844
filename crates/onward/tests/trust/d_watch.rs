//! `onward watch` through a pseudo-terminal: live and dead runs, folding, filter, gates.

use onward_engine::care::harness::until;

use crate::{
    bench::{Bench, journal, sees, sees_nobody_left},
    support::{glass::Glass, terminal::Terminal},
};

const STEPS: &str = "  - { id: fan, each: '{{ range(30) | list }}', \
    run: 'LOG; echo said {{ item }}' }\n\
    \x20 - { id: g, gate: Shall it go on? }\n\
    \x20 - { id: last, run: LOG }\n";

fn at(bench: &Bench, size: (u16, u16)) -> Terminal {
    let mut terminal = Terminal::start_sized(bench, "watch", size);
    terminal.shows("g");
    terminal
}

#[test]
fn d_a_dead_run_is_watched_and_its_gate_answered_at_two_sizes() {
    for size in [(80, 24), (140, 40)] {
        let bench = Bench::new(STEPS);
        bench.exits("run w.yaml", 11);
        let run = bench.project().runs().unwrap().remove(0).dir;
        let mut terminal = at(&bench, size);
        terminal.shows("q quit");
        // The fan-out is folded; Enter on its line unfolds it, and a filter finds one item.
        terminal.types("g\r");
        terminal.shows("fan[3]");
        terminal.types("/[17]");
        terminal.shows("said 17");
        terminal.shows("filter: [17]");
        terminal.types("\r\x1b");
        terminal.types("a");
        terminal.shows("1 approve, 2 reject");
        terminal.types("1");
        terminal.shows("recorded; the run continues");
        terminal.types("?");
        terminal.shows("any key goes back");
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
    terminal.shows("running");
    terminal.shows("begun");
    bench.write("go", "");
    terminal.shows("completed");
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
        terminal.shows("q quit");
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
    watch.shows("1 approve, 2 reject");
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
    terminal.shows("q quit");
    terminal.types("p");
    terminal.shows("Pause the run? Running steps end first. [y/N]");
    terminal.types("n");
    terminal.shows("the run continues");
    assert!(!journal(&run).contains("pausing"), "{}", journal(&run));
    terminal.types("p");
    terminal.shows("[y/N]");
    terminal.types("y");
    terminal.shows("asked to pause");
    until("the pause to be heard", || Ok(journal(&run).contains("pausing").then_some(()))).unwrap();
    bench.write("go", "");
    sees_nobody_left(&run);
    // Ctrl-C leaves, whatever is being typed.
    terminal.types("/x");
    terminal.shows("filter: x_");
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
        terminal.sees_frames(2);
        assert_eq!(terminal.glass.screen().len(), 12, "{}", terminal.glass.screen().join("\n"));
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
    terminal.shows("q quit");
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
