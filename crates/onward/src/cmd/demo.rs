//! `onward demo`: a real run, a real SIGKILL, and the proof that nothing finished ran twice.
//! `onward demo conference` does the same to a conference.
//!
//! Invariant: it says that the proof holds only when the ledger, which the steps write themselves,
//! and the journal, which the engine writes, agree.

mod conference;

use std::{
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use onward_core::{event::Event, plan::Status};
use onward_engine::{
    care::harness::{EngineProcess, Ledger, Watch, first_run},
    locate::Project,
};
use serde_json::{Value, json};

use crate::{
    cmd::Context,
    error::{self, Error},
    session::open_run,
};

/// Watch a run being killed and resumed, in a temporary directory
///
/// Scripted agents write a small book. The engine is killed with SIGKILL half way, the plan is
/// shown, the run is resumed, and what the steps wrote down proves that no finished one ran again.
/// Needs no key and no network.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// What is killed and resumed
    #[arg(value_enum, default_value = "book")]
    what: What,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum What {
    /// A workflow of fourteen steps
    Book,
    /// Three researchers in two rounds, each in a git worktree
    Conference,
}

const FILES: [(&str, &str); 5] = [
    ("book.yaml", include_str!("demo/book.yaml")),
    ("agent.sh", include_str!("demo/agent.sh")),
    ("topics.json", "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}\n"),
    ("verdict-schema.json", "{\"type\": \"object\", \"required\": [\"ok\"]}\n"),
    (".onward/config.toml", "[agents.scribe]\ncommand = [\"sh\", \"./agent.sh\", \"{prompt}\"]\n"),
];
const LEDGER: &str = "ledger.txt";
/// Of the fourteen steps that are not a gate.
const HALF: usize = 7;

pub(crate) fn run(cx: &mut Context, args: &DemoArgs) -> Result<ExitCode, Error> {
    match args.what {
        What::Book => book(cx),
        What::Conference => conference::run(cx),
    }
}

fn book(cx: &mut Context) -> Result<ExitCode, Error> {
    let mut demo = Demo::set_up(&FILES)?;
    say(cx, &format!("A book in fourteen steps, in {}\n", demo.dir.display()))?;
    let killed = demo.run_and_kill(cx)?;
    let plan = demo.plan(cx)?;
    say(cx, "\nResumed:\n")?;
    let waits = demo.onward(cx, &["resume", "--no-input"])?;
    say(cx, "\nThe gate is answered, and the rest runs:\n")?;
    let approved = demo.onward(cx, &["approve"])?;
    let ended = demo.onward(cx, &["resume", "--no-input"])?;
    let proof = demo.prove(&killed, [waits, approved, ended])?;
    demo.tell(cx, &killed, &plan, &proof)
}

/// Words of ours, where there is no object to print instead.
fn say(cx: &mut Context, text: &str) -> Result<(), Error> {
    if !cx.global.json {
        writeln!(cx.out, "{text}")?;
        cx.out.flush()?;
    }
    Ok(())
}

struct Demo {
    this: PathBuf,
    dir: PathBuf,
    run: PathBuf,
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

impl Demo {
    fn set_up(files: &[(&str, &str)]) -> Result<Self, Error> {
        let this = std::env::current_exe()
            .map_err(|source| Error::CannotRead { path: "onward".into(), source })?;
        let made = tempfile::Builder::new().prefix("onward-demo-").tempdir();
        let path = std::env::temp_dir();
        let dir = made.map_err(|source| Error::CannotMake { path, source })?.keep();
        for (name, text) in files {
            let path = dir.join(name);
            let parent = path.parent().unwrap_or(&dir);
            let written =
                std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
            written.map_err(|source| Error::CannotMake { path, source })?;
        }
        Ok(Self { this, dir, run: PathBuf::new() })
    }

    /// This very program, at work in the demo's directory; its words join ours.
    fn command(&self, cx: &Context) -> Result<Command, Error> {
        let mut command = Command::new(&self.this);
        command.current_dir(&self.dir).stdin(Stdio::null());
        command.env_remove("ONWARD_NOW").env_remove("ONWARD_MODE");
        if cx.global.json {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        } else {
            command.stderr(Stdio::from(std::io::stdout().as_fd().try_clone_to_owned()?));
        }
        Ok(command)
    }

    fn onward(&self, cx: &Context, args: &[&str]) -> Result<Option<i32>, Error> {
        Ok(self.command(cx)?.args(args).status()?.code())
    }

    /// Drives the run in a process of its own and ends that without a warning.
    fn run_and_kill(&mut self, cx: &mut Context) -> Result<Killed, Error> {
        let mut command = self.command(cx)?;
        let mut engine = EngineProcess::start(command.args(["run", "book.yaml", "--no-input"]))?;
        let project = Project::locate(&self.dir)
            .map_err(|source| Error::CannotRead { path: self.dir.clone(), source })?;
        let Some(run) = first_run(&project, &mut engine)? else {
            return Err(Error::Demo("the engine ended before it made a run".into()));
        };
        self.run = run;
        let mut watch = Watch::new(&self.run);
        let half = |it: &Watch| it.finished().len() >= HALF && !it.in_flight().is_empty();
        if !watch.until(&mut engine, half)? {
            return Err(Error::Demo("the engine ended before it could be killed".into()));
        }
        engine.kill()?;
        watch.look()?;
        let killed = Killed { finished: watch.finished(), in_flight: watch.in_flight() };
        let (count, pid) = (killed.finished.len(), engine.pid());
        say(cx, &format!("\nkill -9 {pid}: {count} steps were finished. The plan now:\n"))?;
        Ok(killed)
    }

    /// The plan as a user sees it, and its data.
    fn plan(&self, cx: &Context) -> Result<Value, Error> {
        if !cx.global.json {
            self.onward(cx, &["plan"])?;
        }
        let output = self.command(cx)?.args(["plan", "--json"]).stdout(Stdio::piped()).output()?;
        Ok(serde_json::from_slice(&output.stdout).map_err(std::io::Error::other)?)
    }

    fn prove(&self, killed: &Killed, exits: [Option<i32>; 3]) -> Result<Proof, Error> {
        let mut watch = Watch::new(&self.run);
        watch.look()?;
        let finished = watch.finished();
        let ledger = Ledger::read(&self.dir.join(LEDGER))?;
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
        let status = Status::of(&open_run(&self.run)?.state, false);
        if status != Status::Completed {
            against.push(format!("the run is {}", status.as_str()));
        }
        if !watch.records.iter().any(|it| matches!(it.event, Event::RunResumed(_))) {
            against.push("the journal knows of no resume".into());
        }
        Ok(Proof { ledger, finished: finished.len(), against })
    }

    fn tell(
        &self,
        cx: &mut Context,
        killed: &Killed,
        plan: &Value,
        proof: &Proof,
    ) -> Result<ExitCode, Error> {
        let holds = proof.against.is_empty();
        let code = if holds { error::OK } else { error::FAILED };
        let (dir, run) = (self.dir.display(), id_of(&self.run));
        if cx.global.json {
            let in_flight: Vec<Value> = killed
                .in_flight
                .iter()
                .map(|(step, attempt)| {
                    json!({"step": step, "attempt": attempt, "verdict": verdict(plan, step),
                        "ran": proof.ledger.0.get(step)})
                })
                .collect();
            let object = json!({
                "schema": "onward.demo/1", "dir": dir.to_string(),
                "run": {"id": run, "dir": self.run.display().to_string()},
                "finished_at_kill": killed.finished.len(), "in_flight_at_kill": in_flight,
                "finished": proof.finished, "ran": proof.ledger.0, "plan": plan,
                "proved": holds, "against": proof.against, "exit": code,
            });
            writeln!(cx.out, "{object}")?;
            return Ok(ExitCode::from(code));
        }
        writeln!(cx.out, "\nWhat the steps wrote down themselves ({LEDGER}):")?;
        let (finished, count) = (proof.finished, killed.finished.len());
        let again = proof.ledger.0.values().filter(|ran| ran.len() > 1).count();
        writeln!(cx.out, "  {finished} steps finished, {count} of them before the kill")?;
        for (step, _) in &killed.in_flight {
            let ran = proof.ledger.0.get(step).map_or(0, Vec::len);
            let (was, times) = (verdict(plan, step), if ran == 1 { "once" } else { "twice" });
            writeln!(cx.out, "  {step} was under way: {was}, ran {times}")?;
        }
        if holds {
            writeln!(cx.out, "Proved: nothing finished ran twice; {again} steps ran again.")?;
        } else {
            writeln!(cx.out, "NOT PROVED:\n  {}", proof.against.join("\n  "))?;
        }
        writeln!(cx.out, "\nLook around:\n  cd {dir}\n  onward log {run}")?;
        writeln!(cx.out, "  onward status {run}\n  cat {LEDGER} printed.txt")?;
        Ok(ExitCode::from(code))
    }
}

fn verdict<'p>(plan: &'p Value, step: &str) -> &'p str {
    let steps = plan["steps"].as_array().map_or(&[][..], Vec::as_slice);
    let planned = steps.iter().find(|it| it["step"] == step);
    planned.and_then(|it| it["verdict"].as_str()).unwrap_or("finished meanwhile")
}

fn id_of(run: &Path) -> String {
    run.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
