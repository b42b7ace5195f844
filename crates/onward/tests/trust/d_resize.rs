//! A window that is made larger and smaller while a run is shown on it.

use crate::{
    bench::{Bench, sees},
    support::{glass::Glass, terminal::Terminal},
};

/// Three steps that say more than any row holds, in letters of one column and of two.
const STEPS: &str = "  - { id: first, run: 'LOG' }\n\
    \x20 - { id: a, needs: [first], run: 'LOG; SAY=a-; SPEAK' }\n\
    \x20 - { id: b, needs: [first], run: 'LOG; SAY=漢; SPEAK' }\n\
    \x20 - { id: a_step_with_a_name_that_is_longer_than_its_row_when_that_is_low, \
    needs: [first], run: 'LOG; SAY=字; SPEAK' }\n";

fn bench() -> Bench {
    let speak = "for i in 1 2 3 4 5 6 7; do SAY=$SAY$SAY; done; echo \"said $SAY\"; \
        while ! [ -e go ]; do sleep 0.05; done";
    Bench::new(&STEPS.replace("SPEAK", speak))
}

fn spinners(glass: &Glass) -> usize {
    let all = glass.all();
    all.iter().filter(|row| row.starts_with(|it| "⠋⠙⠸⠴⠦⠧⠇⠏".contains(it))).count()
}

/// Rows of the bar, and rows that some other row was broken into.
fn others(glass: &Glass) -> (usize, Vec<String>) {
    let (bars, rest): (Vec<String>, Vec<String>) =
        glass.all().into_iter().partition(|row| row.starts_with(['━', '─']));
    let is_known = |row: &String| {
        row.is_empty()
            || row.starts_with(|it| "⠋⠙⠸⠴⠦⠧⠇⠏".contains(it))
            || ["run story-", "done  first", "  and "].iter().any(|it| row.starts_with(it))
    };
    (bars.len(), rest.into_iter().filter(|row| !is_known(row)).collect())
}

#[test]
fn d_a_window_that_is_resized_shows_the_block_once_and_nothing_of_the_one_before() {
    let bench = bench();
    let mut terminal = Terminal::start_sized(&bench, "run w.yaml", (80, 24));
    terminal.sees(|glass| glass.all().iter().filter(|row| row.contains("said ")).count() == 2);
    for size in [(60, 24), (140, 40), (80, 24), (71, 10), (40, 24), (140, 40)] {
        terminal.resize(size);
        terminal.sees_frames(3);
        let glass = &terminal.glass;
        let shown = glass.all().join("\n");
        assert_eq!(spinners(glass), 3, "{size:?}:\n{shown}");
        assert_eq!(others(glass), (1, Vec::new()), "{size:?}:\n{shown}");
    }
    bench.write("go", "");
    terminal.sees(|glass| glass.all().iter().any(|row| row.contains("completed: 4 steps")));
    assert_eq!((spinners(&terminal.glass), others(&terminal.glass).0), (0, 0));
    let done = |row: &&String| row.starts_with("done  ");
    assert_eq!(terminal.glass.all().iter().filter(done).count(), 4, "a line was cleared away");
    terminal.exits(0);
}

/// A terminal keeps what is cleared from its first row on, so that is not how the block is cleared.
#[test]
fn d_a_block_that_fills_the_window_leaves_no_copy_in_the_scrollback() {
    let bench = bench();
    let mut terminal = Terminal::start_sized(&bench, "run w.yaml", (60, 10));
    terminal.sees(|glass| spinners(glass) == 3 && others(glass).0 == 1);
    terminal.resize((40, 7));
    terminal.sees_frames(3);
    let shown = terminal.glass.all().join("\n");
    assert_eq!(spinners(&terminal.glass), 1, "one fits, and two are more:\n{shown}");
    assert_eq!(others(&terminal.glass), (1, Vec::new()), "{shown}");
    bench.write("go", "");
    terminal.exits(0);
}

/// Every row is there, each once, and what stands beside the tree stands where it should.
fn is_whole(glass: &Glass, (columns, rows): (u16, u16)) -> bool {
    let shown = glass.screen();
    let Some((head, [body @ .., foot])) = shown.split_first() else { return false };
    let bar = |row: &String| row.chars().position(|it| it == '│').filter(|at| *at > 0);
    shown.len() == usize::from(rows)
        && head.starts_with("story-")
        && foot.starts_with("j k move")
        && foot.ends_with('…') == (columns < 80)
        && body.iter().all(|row| bar(row).is_some() && bar(row) == bar(&body[0]))
        && (columns < 60 || body.iter().any(|row| row.contains("said 漢漢")))
}

#[test]
fn d_watch_is_drawn_anew_when_the_window_is_resized() {
    let bench = bench();
    bench.exits("run w.yaml --detach", 0);
    sees(&bench.path("ledger.txt"));
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    // On the step whose words are of two columns each; what is typed before the screen is lost.
    terminal.sees(|glass| glass.frames > 0);
    terminal.types("gjj");
    terminal.sees(|glass| glass.screen().iter().any(|row| row.contains("said 漢")));
    for size in [(140, 40), (60, 15), (80, 24), (24, 6), (140, 40)] {
        terminal.resize(size);
        // A screen on which nothing changes is not drawn again: there is one frame for a size.
        terminal.sees(|glass| !glass.in_frame && is_whole(glass, size));
    }
    bench.write("go", "");
    terminal.sees(|glass| glass.screen()[0].contains("completed"));
    terminal.types("q");
    terminal.exits(0);
}

#[test]
fn d_watch_lives_through_windows_that_have_no_room_for_it() {
    let bench = bench();
    bench.exits("run w.yaml --detach", 0);
    sees(&bench.path("ledger.txt"));
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    terminal.sees_text("q quit");
    // The tree, none of it, a step from the inside, and the help.
    for keys in ["g", "/none", "\x1bG\r", "\x1b?"] {
        terminal.types(keys);
        for size in [(1, 1), (80, 1), (1, 2), (5, 2), (21, 3)] {
            terminal.resize(size);
            terminal.sees_frames(1);
        }
    }
    terminal.types("x\x1bgjj");
    terminal.resize((80, 24));
    terminal.sees(|glass| !glass.in_frame && is_whole(glass, (80, 24)));
    bench.write("go", "");
    terminal.sees(|glass| glass.screen()[0].contains("completed"));
    terminal.types("q");
    terminal.exits(0);
}
