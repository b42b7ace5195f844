//! `onward demo agent-memory`: a small run, killed half way, resumed, and held against its events.
//!
//! Invariant: it says that the proof holds only when the native log has the whole course once.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::stage::{Stage, Told, say};
use crate::{
    cmd::Context,
    error::{self, Error},
};

const FILES: [(&str, &str); 2] = [
    ("agent.sh", include_str!("agent-memory/agent.sh")),
    (".onward/config.toml", include_str!("agent-memory/config.toml")),
];
const DIR: &str = ".agent-memory/runs/20260302-0930-count-to-three-demo";
/// Of the twenty events of the run.
const HALF: usize = 9;
/// What happens to each task: T002 fails its verification and is mended by Q001, T003 is executed
/// twice.
const COURSE: [(&str, &str, usize); 6] = [
    ("task-claimed", "T001", 1),
    ("task-implemented", "T002", 1),
    ("task-claimed", "T003", 2),
    ("task-implemented", "Q001", 1),
    ("task-failed", "T002", 1),
    ("task-verified", "T002", 1),
];

pub(super) fn run(cx: &mut Context) -> Result<ExitCode, Error> {
    let stage = Stage::set_up(&FILES)?;
    say(cx, &format!("Three tasks and their verification, in {}\n", stage.dir.display()))?;
    stage.commit(&["agent.sh"])?;
    let (dir, request) = (format!("dir={DIR}"), "request=count to three");
    let asks = ["run", "agent-memory", "--input", &dir, "--input", request, "--no-input"];
    let asked = stage.onward(cx, &asks)?;
    say(cx, "\nThe plan is approved, and the tasks begin:\n")?;
    let approved = stage.onward(cx, &["approve"])?;
    let half = || (events(&stage).len() >= HALF).then_some(());
    let resumed = ["resume", "--no-input", "--yes"];
    let (pid, ()) = stage.kill_when(cx, &resumed, "half of the run", half)?;
    let at_kill = events(&stage).len();
    say(cx, &format!("\nkill -9 {pid}: {at_kill} events were logged. What is to be done:\n"))?;
    stage.plan(cx)?;
    say(cx, "\nResumed:\n")?;
    let ended = stage.onward(cx, &resumed)?;
    stage.tell(
        cx,
        &Told {
            proved: "every task was executed and verified as often as it had to be.",
            against: &against(&stage, [asked, approved, ended]),
            facts: json!({"events_at_kill": at_kill, "events": events(&stage).len()}),
            look: &format!("onward log\n  ls -R {DIR}\n  cat {DIR}/events/onward/*"),
        },
    )
}

/// The native events, without those that say that a resume began.
fn events(stage: &Stage) -> Vec<Value> {
    let dir = stage.dir.join(DIR).join("events/onward");
    let logs = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = logs.filter_map(|it| std::fs::read_to_string(it.path()).ok());
    let text = texts.collect::<String>();
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|it| it["event_type"] != "session-resumed").collect()
}

fn against(stage: &Stage, exits: [Option<i32>; 3]) -> Vec<String> {
    let mut against = Vec::new();
    let wanted = [error::WAITING, error::OK, error::OK].map(|code| Some(i32::from(code)));
    if exits != wanted {
        against.push(format!("run, approve, resume exited with {exits:?}"));
    }
    let events = events(stage);
    for (kind, task, wanted) in COURSE {
        let is_it = |it: &&Value| it["event_type"] == kind && it["task_id"] == task;
        let found = events.iter().filter(is_it).count();
        if found != wanted {
            against.push(format!("{kind} of {task} is logged {found} times, not {wanted}"));
        }
    }
    if events.last().is_none_or(|it| it["event_type"] != "run-complete") {
        against.push("the last event is not run-complete".to_owned());
    }
    against
}
