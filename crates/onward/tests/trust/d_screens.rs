//! The screens of a terminal that `docs/screens` has: questions, the menu, and `watch`.

use crate::{
    bench::Bench,
    support::{
        screens::{holds, masked},
        terminal::Terminal,
    },
};

const STEPS: &str = "  - { id: one, run: 'echo 1 > one', writes: [one] }\n\
    \x20 - { id: fan, each: [a, b], run: 'echo {{ item }}' }\n\
    \x20 - { id: ask, gate: Is one as you want it?, shows: [one] }\n\
    \x20 - { id: two, run: test -e allowed }\n";
const HEAD: &str = "limits: { parallel: 1 }\nsteps:";
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

/// The command and what the terminal has on it, also what scrolled away.
#[track_caller]
fn keeps(name: &str, arguments: &str, rows: &[String], (columns, _): (u16, u16)) {
    let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
    let text = format!("$ onward {arguments}\n{}\n", rows.join("\n").trim_end());
    holds(name, &columns.to_string(), &masked(&text));
}

#[test]
fn d_the_screens_of_a_terminal_in_the_docs_are_what_it_shows() {
    for size in SIZES {
        let bench = Bench::new(STEPS);
        bench.workflow("w.yaml", HEAD, STEPS);

        let mut terminal = Terminal::start_sized(&bench, "init hello", size);
        terminal.shows("Which one? [commands] ");
        terminal.types("nonsense\n");
        terminal.shows("Which one? [commands] ");
        terminal.types("\n");
        terminal.ends(0);
        keeps("init-at-a-terminal", "init hello", &terminal.glass.all(), size);

        let mut terminal = Terminal::start_sized(&bench, "run w.yaml", size);
        terminal.shows("? [approve/reject] ");
        terminal.types("maybe\n");
        terminal.shows("? [approve/reject] ");
        terminal.types("a\n");
        terminal.ends(10);
        keeps("run-at-a-terminal", "run w.yaml", &terminal.glass.all(), size);

        bench.workflow("w.yaml", HEAD, &STEPS.replace("echo 1", "echo 2"));
        let mut terminal = Terminal::start_sized(&bench, "resume", size);
        terminal.shows("What now? ");
        terminal.types("lunch\n");
        terminal.shows("What now? ");
        terminal.types("cancel\n");
        terminal.shows("? [");
        terminal.types("\n");
        terminal.ends(0);
        keeps("menu", "resume", &terminal.glass.all(), size);

        let mut terminal = Terminal::start_sized(&bench, "watch", size);
        terminal.shows("q quit");
        terminal.sees(|glass| {
            glass.screen().iter().any(|row| row.contains("a resume runs it again ("))
        });
        keeps("watch", "watch", &terminal.glass.screen(), size);
        terminal.types("?");
        terminal.sees(|glass| glass.screen().iter().any(|row| row == "any key goes back"));
        keeps("watch-help", "watch", &terminal.glass.screen(), size);
        terminal.types("xq");
        terminal.ends(0);
    }
}
