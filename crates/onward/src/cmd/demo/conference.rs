//! `onward demo conference`: a small one, killed half way, resumed, and held against its own log.
//!
//! Invariant: it says that the proof holds only when the native log has every iteration once, and
//! every row of the results has its event.

use std::{collections::BTreeMap, process::ExitCode};

use serde_json::{Value, json};

use super::stage::{Stage, Told, say};
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
    let stage = Stage::set_up(&FILES)?;
    say(cx, &format!("Three researchers in two rounds, in {}\n", stage.dir.display()))?;
    stage.commit(&["a.txt", "b.txt", "c.txt", "shared.txt"])?;
    let half = || (lines(&stage).len() >= HALF).then_some(());
    let started = ["run", "conference", "--no-input"];
    let (pid, ()) = stage.kill_when(cx, &started, "half of the conference", half)?;
    let at_kill = lines(&stage).len();
    say(cx, &format!("\nkill -9 {pid}: {at_kill} events were logged. Resumed:\n"))?;
    let waits = stage.onward(cx, &["resume", "--no-input"])?;
    say(cx, "\nThe best is merged, as a person says:\n")?;
    let decided = stage.onward(cx, &["decide", "worktrees", "merge"])?;
    let ended = stage.onward(cx, &["resume", "--no-input"])?;
    stage.tell(
        cx,
        &Told {
            proved: &format!("{ITERATIONS} iterations, each logged once and with its row."),
            against: &against(&stage, [waits, decided, ended]),
            facts: json!({"events_at_kill": at_kill, "events": lines(&stage).len()}),
            look: &format!("onward log\n  git log --oneline\n  cat conference.md {LOG}"),
        },
    )
}

/// Whole lines of the native log, without those that a resume wrote.
fn lines(stage: &Stage) -> Vec<String> {
    let text = std::fs::read_to_string(stage.dir.join(LOG)).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.filter(|line| !line.contains("conference.resumed")).map(str::to_owned).collect()
}

fn against(stage: &Stage, exits: [Option<i32>; 3]) -> Vec<String> {
    let mut against = Vec::new();
    let wanted = [error::WAITING, error::OK, error::OK].map(|code| Some(i32::from(code)));
    if exits != wanted {
        against.push(format!("resume, decide, resume exited with {exits:?}"));
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut last = String::new();
    for line in lines(stage) {
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
    let rows = std::fs::read_to_string(stage.dir.join("conference_results.tsv"));
    let rows = rows.unwrap_or_default().lines().count().saturating_sub(1);
    if rows != ITERATIONS {
        against.push(format!("the results have {rows} rows"));
    }
    if last != "conference.completed" {
        against.push(format!("the last event is {last}"));
    }
    against
}
