//! `onward demo pipeline`: one of the middle tier, killed half way, resumed, and delivered.
//!
//! Invariant: it says that the proof holds only when every task file is completed, no agent was
//! started twice for a task that was completed at the kill, and one commit has the named files.

use std::{collections::BTreeMap, fs, process::ExitCode};

use serde_json::{Value, json};

use super::stage::{Stage, Told, say};
use crate::{
    cmd::Context,
    error::{self, Error},
};

const FILES: [(&str, &str); 4] = [
    ("agent.sh", include_str!("pipeline/agent.sh")),
    (".onward/config.toml", include_str!("pipeline/config.toml")),
    (".gitignore", "ledger\n"),
    ("src/water.txt", "cold\n"),
];
/// Inside of what git and the tasks leave alone.
const LIST: &str = ".onward/tasks/demo";
/// Of the fifteen work tasks of the middle tier.
const HALF: usize = 7;
const TASKS: usize = 15;

pub(super) fn run(cx: &mut Context) -> Result<ExitCode, Error> {
    let stage = Stage::set_up(&FILES)?;
    say(cx, &format!("A pipeline in seven phases, in {}\n", stage.dir.display()))?;
    stage.commit(&["agent.sh", ".gitignore", "src/water.txt"])?;
    stage.sign()?;
    let dir = format!("dir={LIST}");
    let started =
        ["run", "pipeline", "--no-input", "--input", &dir, "--input", "request=Make better tea"];
    let half = || Some(completed(&stage)).filter(|it| it.len() >= HALF);
    let (pid, done) = stage.kill_when(cx, &started, "half of the tasks", half)?;
    say(cx, &format!("\nkill -9 {pid}: {} tasks were completed. Resumed:\n", done.len()))?;
    let waits = stage.onward(cx, &["resume", "--no-input", "--yes"])?;
    say(cx, "\nThe gate before the commit is answered:\n")?;
    let approved = stage.onward(cx, &["approve"])?;
    let ended = stage.onward(cx, &["resume", "--no-input", "--yes"])?;
    stage.tell(
        cx,
        &Told {
            proved: &format!("{TASKS} tasks, none done twice, and one commit delivers them."),
            against: &against(&stage, &done, [waits, approved, ended]),
            facts: json!({"tasks_at_kill": done.len(), "tasks": completed(&stage).len()}),
            look: &format!("onward log\n  git show --stat\n  cat {LIST}/1.json"),
        },
    )
}

/// The work tasks that say that they are completed, with their phase.
fn completed(stage: &Stage) -> BTreeMap<String, String> {
    let entries = fs::read_dir(stage.dir.join(LIST)).into_iter().flatten().flatten();
    let task = |path: std::path::PathBuf| {
        let task: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let phase = task["metadata"]["phase"].as_str()?.to_owned();
        (task["status"] == "completed").then(|| (task["id"].to_string(), phase))
    };
    entries.filter_map(|it| task(it.path())).collect()
}

fn against(
    stage: &Stage,
    at_kill: &BTreeMap<String, String>,
    exits: [Option<i32>; 3],
) -> Vec<String> {
    let mut against = Vec::new();
    let wanted = [error::WAITING, error::OK, error::OK].map(|code| Some(i32::from(code)));
    if exits != wanted {
        against.push(format!("resume, approve, resume exited with {exits:?}"));
    }
    let done = completed(stage).len();
    if done != TASKS {
        against.push(format!("{done} tasks are completed"));
    }
    let ledger = fs::read_to_string(stage.dir.join("ledger")).unwrap_or_default();
    for (id, phase) in at_kill {
        let step = format!("{phase}[{}]/work", id.trim_matches('"'));
        let ran = ledger.lines().filter(|line| *line == step).count();
        if ran > 1 {
            against.push(format!("{step} was completed before the kill and ran {ran} times"));
        }
    }
    let permanent = fs::read(stage.dir.join(LIST).join("1.json")).unwrap_or_default();
    let permanent: Value = serde_json::from_slice(&permanent).unwrap_or_default();
    if permanent["metadata"]["commit_status"] != "committed" {
        against.push("the [PERMANENT] task does not say that it is delivered".to_owned());
    }
    against
}
