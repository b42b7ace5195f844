//! `onward demo dotagent`: five phases, killed in the middle of the implementation, resumed, and
//! held against the checkpoint that the original would go on from.
//!
//! Invariant: it says that the proof holds only when every task is verified in execution.json, the
//! phase is over in phase.json, and no agent whose work was written down ran again.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::stage::{Stage, Told, say};
use crate::{
    cmd::Context,
    error::{self, Error},
};

const FILES: [(&str, &str); 3] = [
    ("README.md", "A project that greets.\n"),
    (".onward/agent.sh", include_str!("dotagent/agent.sh")),
    (".onward/config.toml", include_str!("dotagent/config.toml")),
];
const PHASE: &str = "memory/state/phase.json";
const EXECUTION: &str = "memory/state/execution.json";
/// The three of the plan, and the one that mends what the verification named.
const TASKS: usize = 4;

pub(super) fn run(cx: &mut Context) -> Result<ExitCode, Error> {
    let stage = Stage::set_up(&FILES)?;
    say(cx, &format!("A wish in five phases, in {}\n", stage.dir.display()))?;
    stage.commit(&["README.md"])?;
    let request = ["run", "dotagent", "--input", "request=greet in three ways", "--no-input"];
    let mut exits = vec![stage.onward(cx, &request)?];
    say(cx, "\nThe user says yes to the demand, and then to the design:\n")?;
    exits.push(stage.onward(cx, &["approve"])?);
    exits.push(stage.onward(cx, &["resume", "--no-input"])?);
    exits.push(stage.onward(cx, &["approve"])?);
    let verified = || (statuses(&stage).iter().any(|it| it == "verified")).then_some(());
    let (pid, ()) = stage.kill_when(cx, &["resume", "--no-input"], "a verified task", verified)?;
    let at_kill = statuses(&stage);
    let before = ledger(&stage);
    say(cx, &format!("\nkill -9 {pid}: the tasks are {}. The plan now:\n", at_kill.join(", ")))?;
    let plan = stage.plan(cx)?;
    say(cx, "\nResumed:\n")?;
    exits.push(stage.onward(cx, &["resume", "--no-input"])?);
    let against = against(&stage, &exits, &before);
    stage.tell(
        cx,
        &Told {
            proved: &format!("{TASKS} tasks are verified, each by its own agents once."),
            against: &against,
            facts: json!({"tasks_at_kill": at_kill, "tasks": statuses(&stage), "plan": plan}),
            look: &format!("onward log\n  git log --oneline\n  cat {PHASE} {EXECUTION}"),
        },
    )
}

fn object(stage: &Stage, path: &str) -> Value {
    let bytes = std::fs::read(stage.dir.join(path)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn statuses(stage: &Stage) -> Vec<String> {
    let execution = object(stage, EXECUTION);
    let tasks = execution["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    tasks.iter().filter_map(|it| it["status"].as_str()).map(str::to_owned).collect()
}

/// The steps for which an agent was started, as the agents wrote them down themselves.
fn ledger(stage: &Stage) -> Vec<String> {
    let text = std::fs::read_to_string(stage.dir.join(".onward/ledger.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn against(stage: &Stage, exits: &[Option<i32>], before: &[String]) -> Vec<String> {
    let mut against = Vec::new();
    let wanted = [error::WAITING, error::OK, error::WAITING, error::OK, error::OK];
    if !exits.iter().copied().eq(wanted.map(|code| Some(i32::from(code)))) {
        against.push(format!("the commands exited with {exits:?}"));
    }
    let tasks = statuses(stage);
    if tasks.len() != TASKS || tasks.iter().any(|it| it != "verified") {
        against.push(format!("the tasks are {}", tasks.join(", ")));
    }
    let phase = object(stage, PHASE);
    if (&phase["current_phase"], &phase["phase_status"])
        != (&"REFLECTION".into(), &"complete".into())
    {
        against.push(format!("the checkpoint is {phase}"));
    }
    let after = ledger(stage);
    for (index, step) in before.iter().enumerate() {
        // Of those that were under way, the last may have been lost.
        let ran = after.iter().filter(|it| *it == step).count();
        let may_run_again = index + 4 >= before.len();
        if ran > 1 + usize::from(may_run_again) {
            against.push(format!("{step} ran {ran} times"));
        }
    }
    against
}
