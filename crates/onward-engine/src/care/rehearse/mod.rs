//! A workflow rehearsed: run in a copy of the project with stand-ins, killed at every boundary of
//! its journal, resumed, and compared with a run that was not killed.
//!
//! At each boundary it is killed twice. Once the engine alone, right after a batch became durable:
//! what it had started goes on. Once the power fails just before: the batch never reached the disk,
//! nor did any seal that was not synced, and everything that ran is dead.
//!
//! Invariant: nothing outside of a temporary directory is touched, unless real commands do it.

mod case;
mod copy;
mod sample;
mod stand_in;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io,
    path::PathBuf,
};

use onward_core::workflow::{
    Loaded,
    model::{Kind, Step, Workflow},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use self::case::{Case, Outcome};
use crate::{
    care::harness::HarnessError,
    engine::{EngineError, Machine},
    locate::Project,
};

pub use crate::world::real::stand_in::StandIn;
pub use case::{Kill, drive_until};
pub use stand_in::{Role, act, probe};

/// What is rehearsed, and with whom.
#[derive(Clone, Debug)]
pub struct Script<'a> {
    pub project: &'a Project,
    pub workflow: &'a Loaded,
    pub inputs: BTreeMap<String, Value>,
    pub machine: &'a Machine,
    /// The command that calls [`drive_until`]; the run's directory, the boundary (0 = none) and
    /// whether commands are played (`all`) or only agents (`agents`) are added to it.
    pub driver: Vec<OsString>,
    pub stand_in: StandIn,
    /// At most so many boundaries, spread over the run.
    pub limit: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum RehearseError {
    #[error("cannot {doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the project cannot be cloned: {said}")]
    Git { said: String },
    #[error("the project has more than {bytes} bytes; that is too much to copy again and again")]
    TooLarge { bytes: u64 },
    #[error("without any kill it ended as {status}: {said}")]
    Reference { status: String, said: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Harness(#[from] HarnessError),
}

impl RehearseError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::TooLarge { .. } => Some("put it under git, with what is built ignored".into()),
            Self::Reference { .. } => Some(
                "stand-ins leave made-up files and results; see which step could not live with \
                 them, or use `--real-commands`"
                    .into(),
            ),
            Self::Io { .. } | Self::Git { .. } | Self::Harness(_) => None,
        }
    }
}

/// `onward rehearse --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rehearsal {
    pub schema: String,
    pub workflow: String,
    /// How the run ends that is not killed.
    pub status: String,
    /// The steps that failed in it, and why: what comes after them was never reached.
    pub ended_by: Vec<String>,
    /// How many there are in that run, and how many were tried.
    pub boundaries: u32,
    pub tried: u32,
    /// Kills, two at each boundary that was tried, and how many made no difference.
    pub kills: u32,
    pub passed: u32,
    pub failures: Vec<Failure>,
    pub unsafe_steps: Vec<UnsafeStep>,
    /// Files that differ from run to run by themselves.
    pub not_compared: Vec<String>,
    /// Steps whose own command was not tried, because a stand-in played it.
    pub not_tried: Vec<String>,
    /// Every kill made no difference, and no step is known to be unsafe.
    pub safe: bool,
}

/// A kill after which the run did not end as it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    pub boundary: u32,
    /// `engine` or `power`.
    pub kill: String,
    /// The last event before it.
    pub after: String,
    pub differences: Vec<String>,
    /// Steps that ran again.
    pub repeated: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnsafeStep {
    pub step: String,
    pub why: String,
}

/// Rehearses; `on_case` hears how many of how many kills are through.
pub fn rehearse(
    script: &Script<'_>,
    on_case: &mut dyn FnMut(u32, u32),
) -> Result<Rehearsal, RehearseError> {
    let place =
        tempfile::Builder::new().prefix("onward-rehearsal-").tempdir().map_err(|source| {
            RehearseError::Io { doing: "make a directory in", path: std::env::temp_dir(), source }
        })?;
    let template = place.path().join("project");
    copy::project(script.project.root(), &template)?;
    let mut number = 0;
    let mut play = |boundary: u32, kill: Kill| -> Result<Outcome, RehearseError> {
        number += 1;
        let dir = place.path().join(format!("case-{number}"));
        copy::all(&template, &dir)?;
        let outcome = Case::new(script, &dir)?.play(boundary, kill)?;
        std::fs::remove_dir_all(&dir).map_err(|source| RehearseError::Io {
            doing: "remove",
            path: dir,
            source,
        })?;
        Ok(outcome)
    };
    let reference = play(0, Kill::Engine)?;
    if reference.stuck {
        let (status, said) = (reference.status.as_str().to_owned(), reference.said);
        return Err(RehearseError::Reference { status, said });
    }
    let restless = restless(&reference, &play(0, Kill::Engine)?);
    let boundaries = chosen(reference.boundaries, script.limit);
    let kills = u32::try_from(boundaries.len() * 2).unwrap_or(u32::MAX);
    let mut trials = Trials::default();
    on_case(0, kills);
    for boundary in &boundaries {
        for kill in [Kill::Engine, Kill::Power] {
            let outcome = play(*boundary, kill)?;
            trials.add(*boundary, kill, &reference, &outcome, &restless);
            on_case(trials.kills, kills);
        }
    }
    let not_compared = restless.into_iter().collect();
    Ok(trials.report(script, &reference, boundaries.len(), not_compared))
}

/// Files that two runs without any kill leave differently.
fn restless(one: &Outcome, other: &Outcome) -> BTreeSet<String> {
    let names = one.files.keys().chain(other.files.keys());
    names.filter(|name| one.files.get(*name) != other.files.get(*name)).cloned().collect()
}

/// All boundaries, or `limit` of them, the first and the last among them.
fn chosen(count: u32, limit: Option<u32>) -> Vec<u32> {
    let limit = limit.unwrap_or(count).min(count);
    match limit {
        0 => Vec::new(),
        1 => vec![count.div_ceil(2)],
        _ => (0..limit).map(|index| 1 + index * (count - 1) / (limit - 1)).collect(),
    }
}

/// What the kills have shown so far.
#[derive(Default)]
struct Trials {
    kills: u32,
    failures: Vec<Failure>,
    /// Steps that ran again and left the same.
    proved: BTreeSet<String>,
}

impl Trials {
    fn add(
        &mut self,
        boundary: u32,
        kill: Kill,
        reference: &Outcome,
        outcome: &Outcome,
        restless: &BTreeSet<String>,
    ) {
        self.kills += 1;
        let repeated: Vec<String> = outcome
            .attempts
            .iter()
            .filter(|(step, count)| **count > reference.attempts.get(*step).copied().unwrap_or(0))
            .map(|(step, _)| step.clone())
            .collect();
        let differences = outcome.differences(reference, restless);
        if differences.is_empty() {
            self.proved.extend(repeated);
            return;
        }
        let (kill, after) = (kill.as_str().to_owned(), outcome.killed_after.clone());
        self.failures.push(Failure { boundary, kill, after, differences, repeated });
    }

    fn report(
        self,
        script: &Script<'_>,
        reference: &Outcome,
        tried: usize,
        not_compared: Vec<String>,
    ) -> Rehearsal {
        let mut unsafe_steps = without_probe(&script.workflow.workflow.steps);
        for failure in &self.failures {
            // Of several that ran again, those are innocent that did so without harm elsewhere.
            let suspects: Vec<&String> =
                failure.repeated.iter().filter(|step| !self.proved.contains(*step)).collect();
            let suspects =
                if suspects.is_empty() { failure.repeated.iter().collect() } else { suspects };
            for step in suspects {
                let known = unsafe_steps.iter().any(|it: &UnsafeStep| it.step == *step);
                if !known {
                    let why = failure.differences.first().cloned().unwrap_or_default();
                    let why = format!("run twice, it does not leave what it leaves once: {why}");
                    unsafe_steps.push(UnsafeStep { step: step.clone(), why });
                }
            }
        }
        let failed = u32::try_from(self.failures.len()).unwrap_or(u32::MAX);
        let not_tried = if script.stand_in.commands {
            commands(&script.workflow.workflow.steps)
        } else {
            Vec::new()
        };
        Rehearsal {
            schema: "onward.rehearse/1".to_owned(),
            workflow: script.workflow.workflow.name.clone(),
            status: reference.status.as_str().to_owned(),
            ended_by: reference.failed.clone(),
            boundaries: reference.boundaries,
            tried: u32::try_from(tried).unwrap_or(u32::MAX),
            kills: self.kills,
            passed: self.kills - failed,
            safe: failed == 0 && unsafe_steps.is_empty(),
            failures: self.failures,
            unsafe_steps,
            not_compared,
            not_tried,
        }
    }
}

/// Effects without a probe: after a crash a person would have to find out.
fn without_probe(steps: &[Step]) -> Vec<UnsafeStep> {
    let mut found = Vec::new();
    each_leaf(steps, &mut |step| {
        if step.effect_outside && step.probe.is_none() {
            let why = "its effect is outside and it has no `probe`: after a crash nothing tells \
                       whether it happened";
            found.push(UnsafeStep { step: step.id.to_string(), why: why.to_owned() });
        }
    });
    found
}

fn commands(steps: &[Step]) -> Vec<String> {
    let mut found = Vec::new();
    each_leaf(steps, &mut |step| {
        if let Kind::Run { .. } = step.kind {
            found.push(step.id.to_string());
        }
    });
    found
}

/// The command of every agent of the workflow, when the stand-in plays them all.
pub fn played(workflow: &Workflow, stand_in: &StandIn) -> BTreeMap<String, Vec<String>> {
    let mut agents = BTreeMap::new();
    each_leaf(&workflow.steps, &mut |step| {
        if let Kind::Agent { agent, .. } = &step.kind {
            agents.insert(agent.clone(), stand_in.argv.clone());
        }
    });
    agents
}

fn each_leaf(steps: &[Step], see: &mut dyn FnMut(&Step)) {
    for step in steps {
        match &step.kind {
            Kind::Group { steps } => each_leaf(steps, see),
            Kind::Sub { workflow, .. } => each_leaf(&workflow.steps, see),
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => see(step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_spreads_over_the_whole_run() {
        assert_eq!(chosen(5, None), [1, 2, 3, 4, 5]);
        assert_eq!(chosen(5, Some(9)), [1, 2, 3, 4, 5]);
        assert_eq!(chosen(9, Some(3)), [1, 5, 9]);
        assert_eq!(chosen(9, Some(1)), [5]);
        assert_eq!(chosen(9, Some(0)), [0_u32; 0]);
        assert_eq!(chosen(0, None), [0_u32; 0]);
    }
}
