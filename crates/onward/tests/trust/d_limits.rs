//! A step that met a limit waits, and every screen says until when, in local and short time.

use std::fs;

use crate::{
    bench::Bench,
    support::{glass::Glass, terminal::Terminal},
};

/// That day in nearly every time zone.
const RESETS: &str = "2100-01-15T11:00:00Z";

fn waits(line: &str, head: &str) -> bool {
    let said = line.strip_prefix(head).and_then(|it| it.strip_prefix("waits until 15 Jan 2100 "));
    said.is_some_and(|it| it.ends_with(": usage limit") && it.len() == "08:00: usage limit".len())
}

/// A run whose only agent meets a limit.
fn limited() -> Bench {
    let bench = Bench::new("  - { id: a, agent: scribe, prompt: p }\n");
    fs::create_dir_all(bench.path(".onward")).unwrap();
    let config = "[agents.scribe]\nadapter = \"lines\"\ncommand = [\"sh\", \"agent.sh\"]\n";
    bench.write(".onward/config.toml", config);
    let limit = serde_json::json!({"limit": {"provider": "p", "resets_at": RESETS}});
    bench.write("agent.sh", &format!("echo '{limit}'\nexit 1\n"));
    bench
}

#[test]
fn d_a_step_at_a_limit_says_until_when_it_waits() {
    let bench = limited();
    let said = bench.exits("run w.yaml", 12).err;
    let untimed = said.lines().filter_map(|line| line.split_once(' ').map(|it| it.1));
    assert!({ untimed }.any(|line| waits(line, "park  a  ")), "{said}");
    for command in ["plan", "why a", "log", "status", "list"] {
        let said = bench.exits(command, 0).out;
        assert!(said.contains("until 15 Jan 2100 "), "{command}: {said}");
        assert!(!said.contains("usage_limit") && !said.contains("00Z"), "{command}: {said}");
        assert!(!said.contains("failed"), "{command}: {said}");
    }
    let whole = bench.exits("log -v", 0).out;
    assert!(whole.contains("until 2100-01-15T11:00:00"), "{whole}");
}

#[test]
fn d_the_block_has_a_row_for_a_step_that_waits_for_a_limit() {
    let bench = limited();
    for size in [(80, 24), (140, 40)] {
        let mut terminal = Terminal::start_sized(&bench, "run w.yaml --wait", size);
        let is_row = |row: &String| waits(row, "z a  ");
        terminal.sees(|glass| glass.screen().iter().any(is_row));
        let status = bench.exits("status", 0).out;
        assert!(status.contains(" running, waits until 15 Jan 2100 "), "{status}");
        let mut watch = Terminal::start_sized(&bench, "watch", size);
        let head = |glass: &Glass| glass.screen().first().cloned().unwrap_or_default();
        watch.sees(|glass| head(glass).contains("  limit lifted in "));
        watch.types("q");
        watch.exits(0);
        terminal.types("\x03");
        terminal.ends(130);
        assert!(!terminal.glass.all().iter().any(is_row), "the block is gone at the end");
    }
}
