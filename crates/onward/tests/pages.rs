//! The runs that `docs/dialects` shows by hand, typed in, and what the program says of them.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use onward_engine::world::real::wall_clock;
use tempfile::TempDir;

/// Every system that has a page.
const PAGES: [&str; 5] = ["agent-memory", "conference", "dotagent", "pipeline", "sdlc"];
const TITLE: &str = "## A run to try it on\n";
const SCRIPT: &str = "```sh\n";
const SAID: &str = "\n```text\n";
const END: &str = "```\n";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/dialects/{name}.md"))
}

/// What a shell says that a newcomer typed this into, at home. Each time of day is another.
fn typed(script: &str) -> String {
    let home = TempDir::new().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap().to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([program].into_iter().chain(env::split_paths(&others))).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-eu", "-c", script]).current_dir(home.path()).env("PATH", path);
    shell.env("HOME", home.path()).env_remove("CLAUDE_CONFIG_DIR").env("NO_COLOR", "1");
    // It is noon where the newcomer is, so that an hour ago was today.
    let hours = wall_clock().as_micros() / 3_600_000_000 % 24;
    let output = shell.env("TZ", format!("NOON{:+}", hours - 12)).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.is_empty(), "{script}{said}");
    let said = String::from_utf8(output.stdout).unwrap();
    let at_home = fs::canonicalize(home.path()).unwrap().display().to_string();
    said.replace(&at_home, "~").split_inclusive([' ', '\n']).map(timeless).collect()
}

/// `15:57` as `hh:mm`.
fn timeless(word: &str) -> &str {
    let is_time = |it: &str| {
        let mut parts = it.split(':');
        let (hours, minutes) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_number = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
        is_number(hours) && is_number(minutes) && parts.next().is_none()
    };
    match word.trim_end() {
        time if is_time(time) && word.ends_with('\n') => "hh:mm\n",
        time if is_time(time) => "hh:mm ",
        _ => word,
    }
}

/// Write them again with `ONWARD_PAGES=write`.
#[test]
fn a_run_that_is_typed_in_by_hand_is_planned_as_its_page_says() {
    for name in PAGES {
        let text = fs::read_to_string(page(name)).unwrap();
        let (head, example) = text.split_once(TITLE).unwrap_or_else(|| panic!("{name}: {TITLE}"));
        let (words, rest) = example.split_once(SCRIPT).unwrap();
        let (script, rest) = rest.split_once(END).unwrap();
        let (between, rest) = rest.split_once(SAID).unwrap();
        let (shown, tail) = rest.split_once(END).unwrap();
        let said = typed(script);
        if env::var_os("ONWARD_PAGES").is_some_and(|it| it == "write") {
            let text = [head, TITLE, words, SCRIPT, script, END, between, SAID, &said, END, tail];
            fs::write(page(name), text.concat()).unwrap();
        } else {
            assert_eq!(shown, said, "{name}");
        }
    }
}
