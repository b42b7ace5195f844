//! The runs that `docs/dialects` shows by hand, typed in, and what the program says of them.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
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

/// A newcomer's home, and the shell that is at hand there. Each time of day is another.
struct Desk {
    home: TempDir,
    path: OsString,
}

impl Desk {
    fn new() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap().to_owned();
        let others = env::var_os("PATH").unwrap_or_default();
        let all = [program].into_iter().chain(env::split_paths(&others));
        Self { home: TempDir::new().unwrap(), path: env::join_paths(all).unwrap() }
    }

    fn shell(&self, script: &str, below: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", script]).current_dir(self.home.path().join(below));
        shell.env("PATH", &self.path).env("HOME", self.home.path());
        shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env_remove("CLAUDE_CONFIG_DIR");
        // It is noon where the newcomer is, so that an hour ago was today.
        let hours = wall_clock().as_micros() / 3_600_000_000 % 24;
        shell.env("NO_COLOR", "1").env("TZ", format!("NOON{:+}", hours - 12)).output().unwrap()
    }

    /// What the shell says to this.
    fn typed(&self, script: &str) -> String {
        let output = self.shell(script, "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.is_empty(), "{script}{said}");
        let said = String::from_utf8(output.stdout).unwrap();
        let at_home = fs::canonicalize(self.home.path()).unwrap().display().to_string();
        said.replace(&at_home, "~").split_inclusive([' ', '\n']).map(timeless).collect()
    }

    /// The commands that follow, each typed by itself where the first ones ended. What waits for
    /// the user is no failure.
    fn goes_on(&self, name: &str, script: &str) {
        let dirs = fs::read_dir(self.home.path()).unwrap().map(|it| it.unwrap().file_name());
        let mut dirs =
            dirs.filter_map(|it| it.into_string().ok()).filter(|it| !it.starts_with('.'));
        let project = dirs.next().unwrap();
        let mut code = None;
        for line in script.lines() {
            let output = self.shell(line, &project);
            code = output.status.code();
            assert!(matches!(code, Some(0 | 11)), "{name}: {line}: {output:#?}");
        }
        assert_eq!(code, Some(0), "{name}");
    }
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
        let desk = Desk::new();
        let said = desk.typed(script);
        if env::var_os("ONWARD_PAGES").is_some_and(|it| it == "write") {
            let text = [head, TITLE, words, SCRIPT, script, END, between, SAID, &said, END, tail];
            fs::write(page(name), text.concat()).unwrap();
        } else {
            assert_eq!(shown, said, "{name}");
        }
        // A page that says how it goes on is right about that, too.
        if let Some((_, rest)) = tail.split_once(SCRIPT) {
            desk.goes_on(name, rest.split_once(END).unwrap().0);
        }
    }
}
