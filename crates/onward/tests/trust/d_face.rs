//! The face: what a person is told of a run that stands still, at a gate, and about a step.

use crate::{
    bench::{Bench, id, sees},
    support::{program::git, terminal::Terminal},
};

fn run_of(bench: &Bench) -> std::path::PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

#[test]
fn d_an_answered_gate_is_no_crash_and_counts_are_the_plans() {
    let steps =
        "  - { id: a, run: 'true' }\n  - { id: ok, gate: Go? }\n  - { id: b, run: 'true' }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml", 11);
    bench.exits("approve", 0);
    let plan = bench.exits("plan", 0).out;
    assert!(plan.contains("at a gate, which is answered now") && !plan.contains("crash"), "{plan}");
    assert!(plan.contains("2 steps kept"), "{plan}");
    let said = bench.exits("resume", 0).err;
    assert!(said.contains("2 steps kept; continues at b"), "{said}");
    assert!(said.contains("3 steps, ") && said.contains("since the resume"), "{said}");
    assert!(said.contains("1 ran, 2 kept"), "{said}");
}

#[test]
fn d_a_step_that_was_renamed_is_not_counted_as_kept() {
    let bench = Bench::new("  - { id: a, run: 'true' }\n  - { id: b, run: 'false' }\n");
    bench.exits("run w.yaml", 10);
    let text = bench.text("w.yaml").replace("id: a", "id: c").replace("'false'", "'true'");
    bench.write("w.yaml", &text);
    let said = bench.exits("resume --yes", 0).err;
    assert!(said.contains("0 steps kept") && said.contains("2 ran"), "{said}");
    assert!(!said.contains(" 1 kept"), "{said}");
}

const TURNS: &str = r#"  - id: round
    repeat: { max: 3, until: "{{ steps.ok.result.option == 'approve' }}" }
    steps:
      - id: write
        run: LOG; echo same > notes.md; echo text {{ round }} >> notes.md
        writes: [notes.md]
      - id: ok
        gate: "Publish?\nReally?"
        shows: [notes.md]
        options: [approve, revise]
"#;

#[test]
fn d_a_gate_shows_its_file_and_what_changed_since_the_last_answer() {
    let bench = Bench::new(TURNS);
    let mut command = bench.command("run w.yaml");
    let mut terminal = Terminal::of(command.env("PAGER", "cat"));
    // What is typed before the question can be read is no answer to it.
    let question = "? [approve/revise] ";
    terminal.shows("Publish?");
    terminal.shows("Really?");
    terminal.shows(question);
    terminal.types("d\n");
    terminal.shows("notes.md: it is new; v views it");
    terminal.shows(question);
    terminal.types("v\n");
    // The last line stays: what comes next begins below it.
    terminal.shows("text 1\r\n");
    terminal.shows(question);
    terminal.types("revise\n");
    terminal.shows("Publish?");
    terminal.shows(question);
    terminal.types("d\n");
    terminal.shows("notes.md, since the last answer:");
    terminal.shows("- text 1");
    terminal.shows("+ text 2");
    terminal.shows(question);
    terminal.types("approve\n");
    let shown = terminal.exits(0);
    assert!(!shown.contains("\\u{a}") && !shown.contains("fatal"), "{shown}");
}

#[test]
fn d_why_shows_what_changed_in_a_file_and_no_hash() {
    let steps =
        "  - { id: a, run: 'cat src.txt', reads: [src.txt] }\n  - { id: b, run: 'false' }\n";
    let bench = Bench::new(steps);
    bench.write("src.txt", "one\ntwo\nthree\n");
    git(&bench.root, &["init", "-q"]);
    git(&bench.root, &["add", "src.txt"]);
    git(&bench.root, &["commit", "-q", "-m", "x"]);
    bench.exits("run w.yaml", 10);
    bench.write("src.txt", "one\n2\nthree\n");
    let why = bench.exits("why a", 0).out;
    assert!(why.contains("src.txt changed") && why.contains("- two"), "{why}");
    assert!(why.contains("+ 2"), "{why}");
    let plan = bench.exits("plan", 0).out;
    assert!(plan.contains("rerun     a  src.txt changed\n"), "{plan}");
}

#[test]
fn d_a_log_says_why_there_is_no_output() {
    let bench = Bench::new("  - { id: ok, gate: Go? }\n  - { id: later, run: 'true' }\n");
    bench.exits("run w.yaml", 11);
    for (step, why) in [("ok", "is a gate, and prints nothing"), ("later", "has not started")] {
        let said = bench.exits(&format!("log --step {step}"), 0);
        assert!(said.err.contains(&format!("{step} {why}")), "{said:?}");
    }
    let said = bench.exits("log --step none", 1);
    assert!(said.err.contains("steps: ok, later"), "{said:?}");
}

#[test]
fn d_a_driven_run_is_refused_before_anything_is_asked() {
    let steps = "  - { id: ok, gate: 'Shall we?' }\n\
        \x20 - { id: slow, needs: [], \
        run: 'LOG; echo > began; while ! [ -e go ]; do sleep 0.05; done' }\n";
    let bench = Bench::new(steps);
    let (mut engine, _) = bench.start_run();
    sees(&bench.path("began"));
    let shown = Terminal::start(&bench, "resume").exits(14);
    assert!(!shown.contains("Shall we?"), "{shown}");
    assert!(shown.contains("is driven by process") && !shown.contains("000Z"), "{shown}");
    bench.write("go", "");
    engine.wait().unwrap();
}

#[test]
fn d_colours_of_a_step_are_left_out_of_its_log() {
    let bench = Bench::new("  - { id: a, run: \"printf '\\\\033[31mred\\\\033[0m\\\\n'\" }\n");
    bench.exits("run w.yaml", 0);
    let shown = Terminal::start(&bench, "log --step a").exits(0);
    assert_eq!(shown, "red\n");
    assert_eq!(bench.exits("log --step a", 0).out, "\u{1b}[31mred\u{1b}[0m\n");
}

#[test]
fn d_attach_ends_as_the_run_would_and_asks_once() {
    let steps = "  - { id: a, run: 'true' }\n  - { id: ok, gate: 'Shall we?' }\n\
        \x20 - { id: b, \
        run: 'LOG; echo b speaks; echo > began; while ! [ -e go ]; do sleep 0.05; done' }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml", 11);
    let run = id(&run_of(&bench));
    let mut terminal = Terminal::start(&bench, "attach");
    terminal.shows("Shall we?");
    terminal.shows("ok? [approve/reject] ");
    terminal.types("a\n");
    terminal.shows("continues at b");
    sees(&bench.path("began"));
    // What runs is shown after the answer as before it: the last words of `b`, and the bar.
    terminal.sees(|glass| {
        let all = glass.screen();
        let runs = |row: &String| row.contains(" b  ") && row.ends_with("b speaks");
        all.iter().any(runs) && all.iter().any(|row| row.contains("2/3"))
    });
    terminal.types("\x03");
    let shown = terminal.exits(130);
    assert_eq!(shown.matches("Shall we?").count(), 1, "{shown}");
    let end = format!("the run continues\nonward attach {run}\n");
    assert!(shown.ends_with(&end) && !shown.contains("in the background"), "{shown}");
    let mut terminal = Terminal::start(&bench, "attach");
    terminal.shows("b  ");
    bench.write("go", "");
    terminal.shows("]9;onward: run");
    let shown = terminal.exits(0);
    assert!(shown.contains("completed: 3 steps"), "{shown}");
}
