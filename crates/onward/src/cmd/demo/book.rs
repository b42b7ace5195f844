//! `onward demo`: a book whose steps keep a ledger of their own.
//!
//! Invariant: it says that the proof holds only when the ledger, which the steps write themselves,
//! and the journal, which the engine writes, agree.

use std::path::{Path, PathBuf};

use onward_core::{event::Event, plan::Status};
use onward_engine::{
    care::harness::{EngineProcess, Ledger, Watch, first_run},
    locate::Project,
};
use serde_json::{Value, json};

use super::stage::{Stage, Told, say};
use crate::{
    cmd::Context,
    error::{self, Error},
    session::open_run,
};

const FILES: [(&str, &str); 5] = [
    ("book.yaml", include_str!("book.yaml")),
    ("agent.sh", include_str!("agent.sh")),
    ("topics.json", "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}\n"),
    ("verdict-schema.json", "{\"type\": \"object\", \"required\": [\"ok\"]}\n"),
    (".onward/config.toml", "[agents.scribe]\ncommand = [\"sh\", \"./agent.sh\", \"{prompt}\"]\n"),
];
const LEDGER: &str = "ledger.txt";
/// Of the fourteen steps that are not a gate.
const HALF: usize = 7;

pub(super) fn run(cx: &mut Context) -> Result<std::process::ExitCode, Error> {
    let stage = Stage::set_up(&FILES)?;
    say(cx, &format!("A book in fifteen steps, one of them a gate, in {}\n", stage.dir.display()))?;
    let (run, killed) = run_and_kill(cx, &stage)?;
    let plan = stage.plan(cx)?;
    say(cx, "\nResumed:\n")?;
    let waits = stage.onward(cx, &["resume", "--no-input"])?;
    say(cx, "\nThe gate is answered, and the rest runs:\n")?;
    let approved = stage.onward(cx, &["approve"])?;
    let ended = stage.onward(cx, &["resume", "--no-input"])?;
    let proof = prove(&stage, &run, &killed, [waits, approved, ended])?;
    tell(cx, &stage, &run, &killed, &plan, &proof)
}

/// What the journal said when the engine was dead.
struct Killed {
    finished: Vec<(String, u32)>,
    in_flight: Vec<(String, u32)>,
}

struct Proof {
    ledger: Ledger,
    finished: usize,
    against: Vec<String>,
}

/// Drives the run in a process of its own and ends that without a warning.
fn run_and_kill(cx: &mut Context, stage: &Stage) -> Result<(PathBuf, Killed), Error> {
    let mut command = stage.command(cx)?;
    let mut engine = EngineProcess::start(command.args(["run", "book.yaml", "--no-input"]))?;
    let project = Project::locate(&stage.dir)
        .map_err(|source| Error::CannotRead { path: stage.dir.clone(), source })?;
    let Some(run) = first_run(&project, &mut engine)? else {
        return Err(Error::Demo("the engine ended before it made a run".into()));
    };
    let mut watch = Watch::new(&run);
    let half = |it: &Watch| it.finished().len() >= HALF && !it.in_flight().is_empty();
    if !watch.until(&mut engine, half)? {
        return Err(Error::Demo("the engine ended before it could be killed".into()));
    }
    engine.kill()?;
    watch.look()?;
    let killed = Killed { finished: watch.finished(), in_flight: watch.in_flight() };
    let (count, pid) = (killed.finished.len(), engine.pid());
    say(cx, &format!("\nkill -9 {pid}: {count} steps were finished. The plan now:\n"))?;
    Ok((run, killed))
}

fn prove(
    stage: &Stage,
    run: &Path,
    killed: &Killed,
    exits: [Option<i32>; 3],
) -> Result<Proof, Error> {
    let mut watch = Watch::new(run);
    watch.look()?;
    let finished = watch.finished();
    let ledger = Ledger::read(&stage.dir.join(LEDGER))?;
    let mut against = ledger.against(&finished);
    let wanted = [error::WAITING, error::OK, error::OK].map(|code| Some(i32::from(code)));
    if exits != wanted {
        against.push(format!("resume, approve, resume exited with {exits:?}"));
    }
    for (step, attempt) in &killed.finished {
        let ran = ledger.0.get(step).map_or(0, Vec::len);
        if ran != usize::try_from(*attempt).unwrap_or(usize::MAX) {
            against.push(format!("{step} was finished before the kill and ran {ran} times"));
        }
    }
    for (step, attempt) in &killed.in_flight {
        let ran = ledger.0.get(step).map_or(0, Vec::len);
        let before = usize::try_from(*attempt).unwrap_or(usize::MAX);
        if ran != before && ran != before + 1 {
            against.push(format!("{step} was interrupted and ran {ran} times"));
        }
    }
    let status = Status::of(&open_run(run)?.state, false);
    if status != Status::Completed {
        against.push(format!("the run is {}", status.as_str()));
    }
    if !watch.records.iter().any(|it| matches!(it.event, Event::RunResumed(_))) {
        against.push("the journal knows of no resume".into());
    }
    Ok(Proof { ledger, finished: finished.len(), against })
}

fn tell(
    cx: &mut Context,
    stage: &Stage,
    run: &Path,
    killed: &Killed,
    plan: &Value,
    proof: &Proof,
) -> Result<std::process::ExitCode, Error> {
    let id = id_of(run);
    let in_flight: Vec<Value> = killed
        .in_flight
        .iter()
        .map(|(step, attempt)| {
            json!({"step": step, "attempt": attempt, "verdict": verdict(plan, step),
                "ran": proof.ledger.0.get(step)})
        })
        .collect();
    let facts = json!({
        "run": {"id": id, "dir": run.display().to_string()},
        "finished_at_kill": killed.finished.len(), "in_flight_at_kill": in_flight,
        "finished": proof.finished, "ran": proof.ledger.0, "plan": plan,
    });
    let (finished, count) = (proof.finished, killed.finished.len());
    say(cx, &format!("\nWhat the steps wrote down themselves ({LEDGER}):"))?;
    say(cx, &format!("  {finished} steps finished, {count} of them before the kill"))?;
    for (step, _) in &killed.in_flight {
        let ran = proof.ledger.0.get(step).map_or(0, Vec::len);
        let (was, times) = (verdict(plan, step), if ran == 1 { "once" } else { "twice" });
        say(cx, &format!("  {step} was under way: {was}, ran {times}"))?;
    }
    let again = proof.ledger.0.values().filter(|ran| ran.len() > 1).count();
    let look = format!("onward log {id}\n  onward status {id}\n  cat {LEDGER} printed.txt");
    stage.tell(
        cx,
        &Told {
            proved: &format!("nothing finished ran twice; {again} steps ran again."),
            against: &proof.against,
            facts,
            look: &look,
        },
    )
}

fn verdict<'p>(plan: &'p Value, step: &str) -> &'p str {
    let steps = plan["steps"].as_array().map_or(&[][..], Vec::as_slice);
    let planned = steps.iter().find(|it| it["step"] == step);
    planned.and_then(|it| it["verdict"].as_str()).unwrap_or("finished meanwhile")
}

fn id_of(run: &Path) -> String {
    run.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
