//! What stood in the way when the ten tasks were played once more.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{
    bench::{Bench, kill_all, sees},
    support::{glass::Glass, terminal::Terminal},
};

/// The elapsed seconds in the first row of `onward watch`.
fn elapsed(glass: &Glass) -> Option<f64> {
    let head = glass.screen().first().cloned()?;
    let span = head.split_once(" done  ")?.1.trim().strip_suffix(" s")?.parse();
    span.ok()
}

#[test]
fn d_the_elapsed_time_of_a_watched_run_does_not_shrink_when_its_driver_dies() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; touch begun; while ! test -e go; do sleep 0.05; done' }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    terminal.sees(|glass| elapsed(glass).is_some_and(|it| it >= 2.0));
    let before = elapsed(&terminal.glass).unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();
    terminal.sees(|glass| glass.screen()[0].contains("interrupted"));
    let after = elapsed(&terminal.glass).unwrap();
    assert!(after >= before, "{before} s, then {after} s");
    terminal.types("q");
    terminal.exits(0);
    kill_all(&run);
}

#[test]
fn d_a_filter_without_a_hit_says_so() {
    let bench = Bench::new("  - { id: first, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let mut terminal = Terminal::start_sized(&bench, "watch", (80, 24));
    terminal.sees_text("q quit");
    terminal.types("/nope");
    terminal.sees_text("nothing matches");
    terminal.types("\x1b");
    terminal.sees(|glass| !glass.screen().iter().any(|row| row.contains("nothing matches")));
    terminal.types("q");
    terminal.exits(0);
}

#[test]
fn d_an_agent_that_is_not_there_is_said_not_to_be_found() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    fs::create_dir_all(bench.path(".onward")).unwrap();
    bench.write(
        ".onward/config.toml",
        "[agents.gone]\ncommand = [\"no-such-agent\"]\n\n[agents.here]\ncommand = [\"sh\", \"x\"]\n\
         [agents.own]\ncommand = [\"./own.sh\"]\n",
    );
    let said = bench.exits("agents --no-probe", 0).out;
    assert!(said.contains("configured: no-such-agent: not found\n"), "{said}");
    assert!(said.contains("configured: sh x\n"), "{said}");
    assert!(said.contains("configured: ./own.sh: not found\n"), "{said}");
    bench.write("own.sh", "");
    assert!(bench.exits("agents --no-probe", 0).out.contains("configured: ./own.sh\n"));
}

#[test]
fn d_resume_of_all_runs_asks_once_at_a_terminal() {
    let bench = Bench::new("  - { id: a, run: 'LOG; test -e go' }\n");
    bench.exits("run w.yaml", 10);
    bench.exits("run w.yaml", 10);
    bench.write("go", "");
    let ran = bench.ran("a").len();
    let mut terminal = Terminal::start(&bench, "resume --all");
    terminal.shows("Resume 2 runs, one after the other?");
    terminal.types("1\r");
    let shown = terminal.exits(0);
    assert!(shown.contains("nothing was done"), "{shown}");
    assert_eq!(shown.matches("story, failed").count(), 2, "{shown}");
    assert_eq!(bench.ran("a").len(), ran);
    let mut terminal = Terminal::start(&bench, "resume --all");
    terminal.shows("Resume 2 runs, one after the other?");
    terminal.types("2\r");
    terminal.exits(0);
    assert_eq!(bench.ran("a").len(), ran + 2);
}

#[test]
fn d_a_manual_page_is_shown_by_man_at_a_terminal_and_raw_elsewhere() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    fs::create_dir_all(bench.path("bin")).unwrap();
    bench.write("bin/man", "#!/bin/sh\ntest \"$*\" = '-l -' && cat > page && echo SHOWN\n");
    let man = bench.path("bin/man");
    fs::set_permissions(&man, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = bench.command("man resume");
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    command.env("PATH", format!("{}:{path}", man.parent().unwrap().display()));
    let shown = Terminal::of_sized(&command, (80, 24)).exits(0);
    assert!(shown.contains("SHOWN") && !shown.contains(".TH"), "{shown}");
    assert!(bench.text("page").contains(".TH onward"));
    assert!(bench.exits("man resume", 0).out.contains(".TH onward"));
}

#[test]
fn d_the_last_line_of_a_failed_run_is_a_command_that_goes_on() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo one > o.txt', writes: [o.txt] }\n\
         \x20 - { id: b, needs: [a], run: 'LOG; echo two > o.txt; test -e go' }\n\
         \x20 - { id: c, needs: [b], run: 'LOG; echo three > o.txt', writes: [o.txt] }\n",
    );
    let said = bench.exits("run w.yaml --no-input", 10).err;
    let last = said.trim_end().lines().last().unwrap().to_owned();
    let bare = bench.onward("").out;
    assert_eq!(Some(last.as_str()), bare.trim_end().lines().last(), "{said}");
    assert!(last.contains(" --accept "), "{said}");
    bench.write("go", "");
    bench.exits(last.strip_prefix("onward ").unwrap(), 0);
}
