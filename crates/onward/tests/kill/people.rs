//! A user is at the terminal, or none is.

use crate::{
    bench::{Bench, id, sees, watched},
    terminal::Terminal,
};

const GATE: &str = "  - { id: one, run: LOG; echo 1 > one, writes: [one] }\n\
    \x20 - { id: ask, gate: Is it good?, shows: [one] }\n\
    \x20 - { id: two, run: LOG }\n";

fn run_of(bench: &Bench) -> std::path::PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

#[test]
fn one_of_several_runs_is_chosen_and_its_plan_confirmed() {
    let bench = Bench::new("  - { id: one, run: 'LOG; test -e allowed' }\n");
    bench.exits("run w.yaml", 10);
    bench.exits("run w.yaml", 10);
    let newest = bench.project().runs().unwrap().remove(0);
    std::fs::write(bench.path("allowed"), "").unwrap();
    let mut terminal = Terminal::start(&bench, "resume");
    terminal.shows("Several runs can be resumed:");
    terminal.shows(&format!("1. {}  story, failed at one, 0/1 done, ", newest.id));
    terminal.shows("Which one? [1-2] ");
    terminal.types("7\n");
    terminal.shows("Which one? [1-2] ");
    terminal.types("1\n");
    terminal.shows("rerun     one");
    terminal.shows("What now? [RESUME/point/restart/cancel] ");
    terminal.types("r\n");
    terminal.shows("What now? ");
    terminal.types("resume\n");
    let shown = terminal.exits(0);
    assert!(shown.contains(&format!("run {} completed: 1 step", newest.id)), "{shown}");
    assert_eq!(bench.ran("one"), [1, 1, 2]);
}

#[test]
fn a_gate_is_answered_where_the_run_is_watched() {
    let bench = Bench::new(GATE);
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    terminal.shows("ask: Is it good?");
    terminal.shows("look at one (2 bytes)");
    terminal.shows("2. reject");
    terminal.shows("ask? [approve/reject] ");
    terminal.types("what\n");
    terminal.shows("`what` is not an answer here");
    terminal.shows("ask? [approve/reject] ");
    terminal.types("approve\n");
    let shown = terminal.exits(0);
    assert!(shown.contains("gate  ask  \"approve\" by ann"), "{shown}");
    assert_eq!(bench.ran("two"), [1]);
    assert!(!crate::bench::journal(&run_of(&bench)).contains("run.paused"), "it went on at once");
}

#[test]
fn an_answer_typed_before_its_question_was_shown_is_none() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; echo > begun; cat go' }\n\
         \x20 - { id: ask, gate: Is it good? }\n",
    );
    let go = bench.fifo("go");
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    sees(&bench.path("begun"));
    terminal.types_ahead("approve\n");
    std::fs::write(go, "").unwrap();
    terminal.shows("ask? [approve/reject] ");
    terminal.types("reject\n");
    terminal.exits(10);
    assert!(crate::bench::journal(&run_of(&bench)).contains("\"option\":\"reject\""));
}

#[test]
fn what_moved_while_it_was_looked_at_is_shown_again() {
    let bench = Bench::new(GATE);
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    terminal.shows("ask? [approve/reject] ");
    std::fs::write(bench.path("one"), "somebody's own words\n").unwrap();
    terminal.types("approve\n");
    terminal.shows("look at one (21 bytes)");
    terminal.shows("ask? [approve/reject] ");
    assert_eq!(bench.ran("two"), [0_u32; 0]);
    terminal.types("1\n");
    terminal.exits(0);
    assert_eq!([bench.ran("one"), bench.ran("two")], [[1], [1]]);
}

#[test]
fn a_gate_that_was_open_is_asked_again_when_the_run_is_taken_up() {
    let bench = Bench::new(GATE);
    bench.exits("run w.yaml", 11);
    let mut terminal = Terminal::start(&bench, "resume --yes");
    terminal.shows("ask? [approve/reject] ");
    terminal.types("a\n");
    terminal.exits(0);
    assert_eq!([bench.ran("one"), bench.ran("two")], [[1], [1]]);
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_away() {
    let bench = Bench::new(GATE);
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    terminal.shows("ask? [approve/reject] ");
    let said = bench.exits("approve", 0);
    assert!(said.err.contains("the running engine took"), "{said:?}");
    terminal.exits(0);
    assert_eq!(bench.ran("two"), [1]);
}

#[test]
fn whoever_leaves_the_terminal_leaves_the_gate_open() {
    for (typed, code, last) in
        [("\x04", 11, "onward decide ID ask reject --hash "), ("\x03", 130, "onward resume ID\n")]
    {
        let bench = Bench::new(GATE);
        let mut terminal = Terminal::start(&bench, "run w.yaml");
        terminal.shows("ask? [approve/reject] ");
        terminal.types(typed);
        let shown = terminal.exits(code);
        let run = run_of(&bench);
        let last_line = shown.trim_end().lines().last().unwrap_or_default().to_owned() + "\n";
        assert!(last_line.starts_with(&last.replace("ID", &id(&run))), "{shown}");
        bench.exits("approve", 0);
        bench.exits("resume", 0);
        assert_eq!([bench.ran("one"), bench.ran("two")], [[1], [1]]);
    }
}

#[test]
fn nobody_is_asked_who_cannot_answer() {
    let onward = env!("CARGO_BIN_EXE_onward");
    let in_background = format!("{onward} run w.yaml & wait $!");
    for words in [
        vec![onward, "run", "w.yaml", "--no-input"],
        vec!["env", "CI=true", onward, "run", "w.yaml"],
        vec!["sh", "-c", "exec \"$0\" run w.yaml < /dev/null", onward],
        vec!["sh", "-c", "exec \"$0\" run w.yaml 2> said", onward],
        vec!["sh", "-mc", &in_background],
    ] {
        let bench = Bench::new(GATE);
        let shown = Terminal::command(&bench, &words).exits(11);
        let said = format!("{shown}{}", bench.text("said"));
        let command = format!("onward decide {} ask approve --hash ", id(&run_of(&bench)));
        assert!(said.contains(&command), "{words:?}: {said}");
        let asked = watched(&run_of(&bench)).records.iter().any(|it| it.event.kind() == "note");
        assert!(!asked && !said.contains("ask? ["), "{words:?}: {said}");
    }
}

#[test]
fn a_terminal_sees_what_runs_and_a_file_sees_lines() {
    let bench = Bench::new("  - { id: one, run: 'LOG; echo > begun; cat go' }\n");
    let go = bench.fifo("go");
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    terminal.shows(" one  ");
    terminal.shows("  0/1  ");
    std::fs::write(go, "").unwrap();
    let shown = terminal.exits(0);
    assert!(shown.contains("done  one"), "{shown}");
    assert!(!shown.contains("start one"), "the block says so: {shown}");
}

#[test]
fn the_counter_on_the_terminal_is_that_of_list() {
    let bench = Bench::new(
        "
  - { id: a, run: LOG }
  - { id: s, run: LOG, when: '{{ false }}' }
  - { id: fan, each: [x, y], run: LOG }
  - { id: b, run: 'LOG; head -c1 go' }
  - { id: c, run: LOG }
",
    );
    let go = bench.fifo("go");
    let mut terminal = Terminal::start(&bench, "run w.yaml");
    terminal.shows(" b  ");
    terminal.shows("  4/6  ");
    let listed = bench.exits("list", 0).out;
    assert!(listed.contains(" 4/6 "), "{listed}");
    std::fs::write(go, "x").unwrap();
    terminal.exits(0);
    let listed = bench.exits("list", 0).out;
    assert!(listed.contains(" 6/6 "), "{listed}");
}
