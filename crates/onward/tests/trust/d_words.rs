//! Words at the width of the terminal, the two ways to ask for JSON, and what `init` offers.

use onward_engine::world::schema::Schema;

use crate::{bench::Bench, support::terminal::Terminal};

fn bench() -> Bench {
    Bench::new("  - { id: a, run: 'true' }\n")
}

/// The names of all commands, from the first help page.
fn commands(bench: &Bench) -> Vec<String> {
    let help = bench.exits("--help", 0).out;
    let table = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = table.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|it| !it.is_empty() && *it != "help").map(str::to_owned).collect()
}

#[test]
fn d_no_line_of_help_is_wider_than_the_terminal() {
    let bench = bench();
    let mut pages = commands(&bench);
    assert!(pages.len() > 30, "{pages:?}");
    pages.extend(["rescue show", "config edit", "config show"].map(str::to_owned));
    let mut widest = 0;
    for page in pages.iter().map(String::as_str).chain([""]) {
        for (flag, width) in [("-h", 80), ("--help", 80), ("--help", 60)] {
            let mut command = bench.command(&format!("{page} {flag}"));
            let output = command.env("COLUMNS", width.to_string()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.contains("Usage:"), "{page}: {text}");
            for line in text.lines() {
                let length = line.chars().count();
                // A word or an example that has no blank in it stays whole.
                assert!(length <= width || width < 80, "{page}, {length} columns: {line}");
                widest = widest.max(length);
            }
        }
    }
    assert!(widest <= 80, "{widest}");
    let shown = Terminal::start_sized(&bench, "resume --help", (80, 24)).exits(0);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn d_a_problem_in_a_workflow_is_told_between_words_at_the_width_of_the_terminal() {
    let bench = bench();
    let long = "x".repeat(120);
    bench.write("w.yaml", &format!("onward: 1\nname: w\nsteps:\n  - {{ id: a, rnu: '{long}' }}\n"));
    let shown = Terminal::start_sized(&bench, "run w.yaml", (80, 24)).exits(2);
    assert!(shown.contains("error: "), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn d_settings_with_long_values_keep_their_columns() {
    let bench = bench();
    let command = "[\"my-agent\", \"--print\", \"--with-all-that-it-needs\", \"{prompt}\"]";
    bench
        .write(".onward/config.toml", &format!("keep = 7\n[agents.helper]\ncommand = {command}\n"));
    let shown = Terminal::start_sized(&bench, "config", (80, 24)).exits(0);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let column = |name: &str, value: &str| {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
        // With the blank before it: the name and the path of the file may hold the same letters.
        line.find(&format!(" {value}")).unwrap_or_else(|| panic!("{value} is not in {line}"))
    };
    let values = column("defaults.mode", "interactive ");
    assert_eq!(column("keep", "7 "), values, "{shown}");
    assert_eq!(column("agents.helper.command", "[\"my"), values, "{shown}");
    assert_eq!(column("defaults.mode", "default"), column("limits.wait", "default"), "{shown}");
}

#[test]
fn d_the_path_of_the_settings_is_json_too_even_of_a_broken_file() {
    let bench = bench();
    bench.write(".onward/config.toml", "keep = [\n");
    let said = bench.exits("config path --json", 0).json();
    let schema = Schema::compile(&bench.exits("schema path", 0).json()).unwrap();
    assert_eq!(schema.check(&said), Ok(()), "{said:#}");
    assert_eq!(said["schema"], "onward.path/1");
    assert_eq!(said["path"], bench.path(".onward/config.toml").to_str().unwrap());
}

#[test]
fn d_events_as_json_go_by_two_names() {
    let bench = bench();
    let said = bench.exits("run w.yaml --log-format json", 0);
    let lines: Vec<serde_json::Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["schema"], "onward.event/1", "{said:?}");
    assert_eq!(lines.last().unwrap()["schema"], "onward.outcome/1", "{said:?}");
    assert_eq!(said.err, "");
    let said = bench.exits("run w.yaml --log-format text", 0);
    assert!(said.out.is_empty() && said.err.contains("done  a"), "{said:?}");
}

#[test]
fn d_on_a_terminal_init_offers_its_templates() {
    let bench = bench();
    let mut terminal = Terminal::start(&bench, "init book");
    terminal.shows("fan-out");
    terminal.shows("dotagent");
    terminal.shows("Which one? [commands]");
    terminal.types("poem\n");
    terminal.shows("`poem` is none of these");
    terminal.types("rev\n");
    let shown = terminal.exits(0);
    assert!(shown.contains("\nwrote book.yaml\nwrote book.review.json\n"), "{shown}");
    assert!(shown.ends_with("\nonward check book.yaml\n"), "{shown}");
    assert!(bench.text("book.yaml").contains("id: review"));
    bench.exits("check book.yaml", 0);
    let mut terminal = Terminal::start(&bench, "init plain");
    terminal.shows("Which one?");
    terminal.types("\n");
    terminal.exits(0);
    assert!(bench.text("plain.yaml").contains("tr a-z A-Z"));
    // What is built in needs no file, and says how it is started.
    let said = bench.exits("init --from pipeline", 0);
    assert!(said.err.ends_with("onward run pipeline --input request='WISH'\n"), "{said:?}");
    assert!(bench.path(".onward/config.toml").exists());
    // Off a terminal nothing is asked.
    bench.exits("init quiet", 0);
    assert!(bench.text("quiet.yaml").contains("tr a-z A-Z"));
}
