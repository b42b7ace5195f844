//! At 80 columns: every line that is not a command fits, and words stay whole.

use crate::{
    bench::{Bench, id, journal},
    support::terminal::Terminal,
};

const STEPS: &str = "  - id: a_first_step_with_quite_a_long_name\n\
    \x20   run: 'LOG; echo 1 > one_file_of_the_first_step.txt; echo 2 > another_file_of_it.txt'\n\
    \x20   writes: [one_file_of_the_first_step.txt, another_file_of_it.txt]\n\
    \x20 - id: a_second_one_whose_name_is_long_too\n\
    \x20   run: 'LOG; exit 3'\n\
    \x20 - { id: last, run: LOG }\n";

fn bench() -> Bench {
    let bench = Bench::new("");
    bench.workflow("w.yaml", "steps:", STEPS);
    let text = bench.text("w.yaml");
    bench.write(
        "w.yaml",
        &text.replace("name: story", "name: a-workflow-whose-name-is-long-as-well"),
    );
    bench.exits("run w.yaml", 10);
    bench
}

/// What is shown, when no line is longer than the terminal is wide. A command is copied as a whole.
#[track_caller]
fn fits(bench: &Bench, arguments: &str, code: i32) -> String {
    let mut terminal = Terminal::start_sized(bench, arguments, (80, 24));
    let shown = terminal.ends(code);
    for line in shown.lines().filter(|it| !it.contains(" onward ") && !it.starts_with("onward ")) {
        assert!(line.chars().count() <= 80, "{arguments}: `{line}` in\n{shown}");
    }
    shown
}

#[test]
fn d_lists_and_logs_fit_into_eighty_columns() {
    let bench = bench();
    let run = id(&bench.project().runs().unwrap().remove(0).dir);
    let shown = fits(&bench, "list", 0);
    assert!(shown.contains(&run) && shown.contains("failed"), "{shown}");
    let shown = fits(&bench, "log", 0);
    assert!(shown.contains("attempt.finished"), "{shown}");
    let shown = fits(&bench, "log -v", 0);
    assert!(shown.contains("\n               "), "{shown}");
    let shown = fits(&bench, "verify", 0);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("another_file_of_it.txt is as it was"), "{shown}");
    assert!(words.ends_with("the one done step is proved"), "{shown}");
    fits(&bench, "doctor", 0);
    let shown = fits(&bench, "why a_second_one_whose_name_is_long_too", 0);
    let command = format!("onward log {run} --step a_second_one_whose_name_is_long_too");
    assert!(shown.contains(&format!("\n    {command}\n")), "{shown}");
    fits(&bench, "status", 0);
    fits(&bench, "plan --all", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    assert!(journal(&run).contains("run.ended"));
}

#[test]
fn d_a_run_with_a_long_name_leaves_the_list_in_its_columns() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let long = "a-workflow-with-a-very-long-name-that-a-person-types-rarely";
    bench
        .write("long.yaml", &bench.text("w.yaml").replace("name: story", &format!("name: {long}")));
    bench.exits("run long.yaml", 0);
    for columns in [80, 140] {
        let mut terminal = Terminal::start_sized(&bench, "list", (columns, 24));
        let shown = terminal.ends(0);
        let head = shown.lines().find_map(|it| it.find("STATUS"));
        let status: Vec<_> = shown.lines().filter_map(|it| it.find("completed")).collect();
        assert!(status.len() == 2 && status.iter().all(|it| Some(*it) == head), "{shown}");
        assert!(shown.lines().all(|it| it.chars().count() <= columns.into()), "{shown}");
        // Beside its status where there is room for both.
        let is_whole = |it: &str| it.starts_with(long) && it.contains("completed");
        assert_eq!(shown.lines().any(is_whole), columns == 140, "{shown}");
    }
}
