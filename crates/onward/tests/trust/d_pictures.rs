//! The pictures of the README are what the program shows today: the same lines, but for ids, times
//! and the order of what ran side by side.

use std::{fs, path::Path};

use crate::{
    bench::{Bench, signal},
    support::terminal::Terminal,
};

const SIZE: (u16, u16) = (90, 22);
/// What the drafts do here, instead of taking their time.
const WAITS: &str = "    run: 'echo paragraph 4 of 8; while ! [ -e go ]; do sleep 0.05; done'";

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// The workflow of the script that makes them, without its pauses.
fn workflow() -> String {
    let script = text("scripts/pictures");
    let (_, rest) = script.split_once("WORKFLOW = \"\"\"\\\n").unwrap();
    let (workflow, _) = rest.split_once("\"\"\"").unwrap();
    let line = |line: &str| {
        if line.trim_start().starts_with("run: for i in") {
            return WAITS.to_owned();
        }
        let pauses = ["sleep 0.4", "sleep 0.5", "sleep 0.6"];
        pauses.iter().fold(line.to_owned(), |line, pause| line.replace(pause, ":"))
    };
    workflow.lines().map(|it| line(it) + "\n").collect()
}

/// The lines of a picture below its title.
fn picture(name: &str) -> Vec<String> {
    let svg = text(&format!("docs/pictures/{name}.svg"));
    let lines = svg.lines().filter(|it| it.starts_with("<text")).skip(1);
    let mut all = Vec::new();
    for line in lines {
        let parts = line.split('<').filter_map(|it| it.split_once('>'));
        let shown: String = parts.map(|(_, text)| text).collect();
        let plain =
            [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&amp;", "&")];
        all.push(plain.iter().fold(shown, |shown, (code, letter)| shown.replace(code, letter)));
    }
    all
}

/// What differs from run to run is masked, and rows that may come in any order are sorted.
fn steady(lines: &[String]) -> Vec<String> {
    let mask = |word: &str| match word {
        _ if word.starts_with("book-2") => "ID".to_owned(),
        _ if word.chars().all(|it| ('⠀'..='⣿').contains(&it)) => "*".to_owned(),
        _ if word.contains(['.', ':']) && word.starts_with(|it: char| it.is_ascii_digit()) => {
            "N".to_owned()
        }
        _ => word.to_owned(),
    };
    let line = |line: &String| line.split_whitespace().map(mask).collect::<Vec<_>>().join(" ");
    let mut all: Vec<String> = lines.iter().map(line).filter(|it| !it.is_empty()).collect();
    all.sort();
    all
}

#[track_caller]
fn shows(name: &str, lines: &[String]) {
    let why = format!("docs/pictures/{name}.svg is out of date: run scripts/pictures");
    assert_eq!(steady(lines), steady(&picture(name)), "{why}");
}

#[test]
fn d_the_pictures_of_the_readme_are_what_the_program_shows() {
    let bench = Bench::new("");
    bench.write("book.yaml", &workflow());
    let mut terminal = Terminal::start_sized(&bench, "run book.yaml", SIZE);
    terminal.sees(|glass| {
        let rows = glass.all();
        rows.iter().filter(|row| row.ends_with("s  paragraph 4 of 8")).count() == 3
    });
    shows("live", &terminal.glass.all());
    signal(terminal.pid(), "-KILL");
    terminal.hang_up().wait().unwrap();
    let mut terminal = Terminal::start_sized(&bench, "plan", SIZE);
    terminal.ends(0);
    shows("plan", &terminal.glass.all());
    let mut terminal = Terminal::start_sized(&bench, "resume --yes", SIZE);
    terminal.shows("continues at draft");
    bench.write("go", "");
    terminal.ends(0);
    shows("resume", &terminal.glass.all());
}
