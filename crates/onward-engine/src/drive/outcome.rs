//! How it went: what became of a run that was driven, and what a person can do about it.
//!
//! Invariant: taken from the state that the driver ended with, so a front end need not read
//! the run again.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

use onward_core::{
    address::Address,
    evidence::Cause,
    id::RunId,
    plan::Status,
    run::Run,
    state::{GateState, Phase, RunStatus},
    time::Timestamp,
};
use serde_json::json;

/// How it went.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub status: Status,
    pub run: RunId,
    pub dir: PathBuf,
    /// When a run that is parked can go on.
    pub until: Option<Timestamp>,
    pub failed: Vec<FailedStep>,
    /// Gates that wait for an answer, as they are shown.
    pub gates: Vec<(Address, GateState)>,
    /// Why the notify command failed.
    pub not_notified: Option<String>,
    /// The run as its driver left it; `None` where it was not taken up.
    pub left: Option<Run>,
}

/// A step that is why the run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStep {
    pub step: Address,
    pub attempt: u32,
    pub cause: Cause,
    pub detail: String,
}

impl Outcome {
    pub fn new(status: Status, run: RunId, dir: PathBuf) -> Self {
        let (failed, gates) = (Vec::new(), Vec::new());
        Self { status, run, dir, until: None, failed, gates, not_notified: None, left: None }
    }

    /// With what the run ended with.
    #[must_use]
    pub fn of(mut self, run: &Run) -> Self {
        let state = &run.state;
        self.until = match state.status {
            RunStatus::Paused { until, .. } => until,
            RunStatus::Unopened | RunStatus::UnderWay | RunStatus::Ended { .. } => None,
        };
        for (step, entry) in state.steps.noteworthy() {
            if let Some(failure) = entry.failure.as_deref().filter(|_| entry.phase == Phase::Failed)
            {
                let (step, attempt) = (step.clone(), entry.attempts);
                let (cause, detail) = failure.clone();
                self.failed.push(FailedStep { step, attempt, cause, detail });
            }
        }
        for id in run.graph.open_gates() {
            let step = &run.graph.node(id).address;
            if let Some(gate) = state.step(step).and_then(|it| it.gate.as_deref()) {
                self.gates.push((step.clone(), gate.clone()));
            }
        }
        self
    }

    /// Starts the command of the person who wants to know, and leaves it to itself.
    pub(crate) fn notify(&self, command: &[String]) -> io::Result<()> {
        let Some((program, args)) = command.split_first() else { return Ok(()) };
        match self.status {
            Status::Waiting
            | Status::Parked
            | Status::OverBudget
            | Status::Failed
            | Status::Cancelled
            | Status::Completed => {}
            // The person who stopped it knows.
            Status::Fresh | Status::Running | Status::Interrupted => return Ok(()),
        }
        let message = json!({
            "schema": "onward.notify/1",
            "run": {"id": self.run.as_str(), "dir": self.dir.display().to_string()},
            "status": self.status.as_str(),
            "until": self.until.map(|until| until.to_string()),
        });
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let written = child.stdin.take().map_or(Ok(()), |mut stdin| writeln!(stdin, "{message}"));
        thread::spawn(move || child.wait());
        written
    }
}
