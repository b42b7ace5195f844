//! `onward demo conference`: a small one, killed half way, resumed, and held against its own log.
//!
//! Invariant: it says that the proof holds only when the native log has every iteration once, and
//! every row of the results has its event.

use std::{
    collections::BTreeMap,
    process::{Command, ExitCode},
};

use onward_engine::care::harness::{EngineProcess, until};
use serde_json::{Value, json};

use super::{Demo, say};
use crate::{
    cmd::Context,
    error::{self, Error},
};

const FILES: [(&str, &str); 7] = [
    ("conference.md", include_str!("conference/conference.md")),
    ("agent.sh", include_str!("conference/agent.sh")),
    (".onward/config.toml", include_str!("conference/config.toml")),
    ("a.txt", "100\n"),
    ("b.txt", "100\n"),
    ("c.txt", "100\n"),
    ("shared.txt", "nobody\n"),
];
const LOG: &str = "conference_events.jsonl";
/// Of the twenty-eight lines that the log has in the end.
const HALF: usize = 14;
/// Three researchers, two rounds, three rows each.
const ITERATIONS: usize = 18;

pub(super) fn run(cx: &mut Context) -> Result<ExitCode, Error> {
    let demo = Demo::set_up(&FILES)?;
    say(cx, &format!("Three researchers in two rounds, in {}\n", demo.dir.display()))?;
    for args in [
        &["init", "--quiet"][..],
        &["add", "a.txt", "b.txt", "c.txt", "shared.txt"],
        &["-c", "user.name=demo", "-c", "user.email=demo@localhost", "commit", "-qm", "start"],
    ] {
        let done = Command::new("git").args(args).current_dir(&demo.dir).status();
        if !done.is_ok_and(|status| status.success()) {
            return Err(Error::Demo("git does not work here".into()));
        }
    }
    let mut command = demo.command(cx)?;
    let mut engine = EngineProcess::start(command.args(["run", "conference", "--no-input"]))?;
    until("half of the conference", || Ok((lines(&demo).len() >= HALF).then_some(())))?;
    engine.kill()?;
    let (at_kill, pid) = (lines(&demo).len(), engine.pid());
    say(cx, &format!("\nkill -9 {pid}: {at_kill} events were logged. Resumed:\n"))?;
    let waits = demo.onward(cx, &["resume", "--no-input"])?;
    say(cx, "\nThe best is merged, as a person says:\n")?;
    let decided = demo.onward(cx, &["decide", "worktrees", "merge"])?;
    let ended = demo.onward(cx, &["resume", "--no-input"])?;
    let against = against(&demo, [waits, decided, ended]);
    let holds = against.is_empty();
    let code = if holds { error::OK } else { error::FAILED };
    let dir = demo.dir.display();
    if cx.global.json {
        let object = json!({
            "schema": "onward.demo/1", "dir": dir.to_string(), "events_at_kill": at_kill,
            "events": lines(&demo).len(), "proved": holds, "against": against, "exit": code,
        });
        writeln!(cx.out, "{object}")?;
        return Ok(ExitCode::from(code));
    }
    if holds {
        writeln!(cx.out, "\nProved: {ITERATIONS} iterations, each logged once and with its row.")?;
    } else {
        writeln!(cx.out, "\nNOT PROVED:\n  {}", against.join("\n  "))?;
    }
    writeln!(cx.out, "\nLook around:\n  cd {dir}\n  onward log\n  git log --oneline")?;
    writeln!(cx.out, "  cat conference.md {LOG}")?;
    Ok(ExitCode::from(code))
}

/// Whole lines of the native log, without those that say that somebody went on.
fn lines(demo: &Demo) -> Vec<String> {
    let text = std::fs::read_to_string(demo.dir.join(LOG)).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.filter(|line| !line.contains("conference.resumed")).map(str::to_owned).collect()
}

fn against(demo: &Demo, exits: [Option<i32>; 3]) -> Vec<String> {
    let mut against = Vec::new();
    let wanted = [error::WAITING, error::OK, error::OK].map(|code| Some(i32::from(code)));
    if exits != wanted {
        against.push(format!("resume, decide, resume exited with {exits:?}"));
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut last = String::new();
    for line in lines(demo) {
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        let told = &event["payload"];
        event["event"].as_str().unwrap_or_default().clone_into(&mut last);
        if last == "researcher.iteration" {
            let key = format!("{}/{}/{}", told["round"], told["researcher"], told["iteration"]);
            *seen.entry(key).or_default() += 1;
        }
    }
    if seen.len() != ITERATIONS {
        against.push(format!("{} iterations are logged", seen.len()));
    }
    let twice = seen.iter().filter(|(_, count)| **count > 1);
    against
        .extend(twice.map(|(which, count)| format!("iteration {which} is logged {count} times")));
    let rows = std::fs::read_to_string(demo.dir.join("conference_results.tsv"));
    let rows = rows.unwrap_or_default().lines().count().saturating_sub(1);
    if rows != ITERATIONS {
        against.push(format!("the results have {rows} rows"));
    }
    if last != "conference.completed" {
        against.push(format!("the last event is {last}"));
    }
    against
}
