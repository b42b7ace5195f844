//! Proving every done step again, in full: outputs by their bytes, results by their schema, checks
//! by running them, branches by asking git.
//!
//! Invariant: nothing is written, to the journal or anywhere else of ours. A check is the
//! workflow's own command and may do what it likes.

use std::{collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use onward_core::{
    address::Address,
    decide,
    digest::Digest,
    evidence::FileProof,
    graph::NodeId,
    judge::{Objection, ResultSeen},
    recovery::Probed,
    run::Run,
    state::{Phase, State, StepState},
    survey::{last_written, outputs_to_check, was_made_by_the_run},
    time::Timestamp,
    workflow::model::{Kind, Span, Step},
    worktree::worktree_path,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    care::{CareError, Opened, RunRef},
    check::collect,
    engine::{EngineError, Machine, RunPlace},
    locate::{LockError, holder},
    world::{
        At, Stop, World as _,
        git::Repo,
        out_name,
        real::{RealWorld, disk::io_stop, probe::probe},
    },
};

/// `onward verify --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verified {
    pub schema: String,
    pub run: RunRef,
    pub steps: Vec<StepProof>,
    pub counts: BTreeMap<String, u32>,
    /// Every done step is proved.
    pub proved: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepProof {
    pub step: String,
    pub answer: Answer,
    /// What was looked at, and what was found.
    pub why: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// All that it declared is as it was.
    Done,
    /// It cannot be shown any more that it was done.
    Unproved,
    /// What it made, or was made from, is not what it was.
    Stale,
}

impl Answer {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unproved => "unproved",
            Self::Stale => "stale",
        }
    }
}

/// A check that has no time-out of its own gets this much.
const CHECK_WITHIN: Duration = Duration::from_mins(30);

/// Proves every done step of a run that has no driver.
pub fn verify_run(run_dir: &Path, machine: &Machine) -> Result<Verified, CareError> {
    let at = RunPlace::of(run_dir, machine)?;
    if let Some(holder) = holder(run_dir) {
        // What is being changed at this moment cannot be proved.
        let (run, holder) = (at.place.run.clone(), Some(Box::new(holder)));
        return Err(EngineError::from(LockError::RunHeld { run, holder }).into());
    }
    let Opened { world, run, .. } = Opened::read(&at, RealWorld::new(at.setup(machine), None))?;
    let mut last_writer: BTreeMap<&Address, Vec<&FileProof>> = BTreeMap::new();
    let writers = writers(&run.state);
    for (step, file) in outputs_to_check(&run.state) {
        if writers.get(&file.path) == Some(step) {
            last_writer.entry(step).or_default().push(file);
        }
    }
    let (reads, written) = (BTreeMap::new(), last_written(&run.state));
    let mut notary = Prover { at: &at, world, env: &machine.env, reads, writers, written };
    let mut steps = Vec::new();
    for id in run.graph.in_order() {
        let step = &run.graph.node(id).address;
        let Some(entry) = run.state.step(step).filter(|entry| entry.phase == Phase::Done) else {
            continue;
        };
        let outputs = last_writer.get(step).map_or(&[][..], Vec::as_slice);
        steps.push(notary.prove(&run, id, entry, outputs)?);
    }
    let mut counts = BTreeMap::new();
    for step in &steps {
        *counts.entry(step.answer.as_str().to_owned()).or_insert(0) += 1;
    }
    let proved = steps.iter().all(|step| step.answer == Answer::Done);
    let (schema, run) = ("onward.verify/1".to_owned(), RunRef::of(run_dir));
    Ok(Verified { schema, run, steps, counts, proved })
}

/// The done step that wrote each path last, declared or not.
fn writers(state: &State) -> BTreeMap<String, Address> {
    let declared = outputs_to_check(state).into_iter().map(|(step, file)| (step, &file.path));
    let changed =
        state.footprints.iter().flat_map(|(step, it)| it.iter().map(move |it| (step, it)));
    let mut last: BTreeMap<String, (Timestamp, Address)> = BTreeMap::new();
    for (step, path) in declared.chain(changed) {
        let Some(entry) = state.step(step).filter(|it| it.phase == Phase::Done) else { continue };
        let is_later = last.get(path).is_none_or(|known| known.0 <= entry.ended_at);
        if is_later {
            last.insert(path.clone(), (entry.ended_at, step.clone()));
        }
    }
    last.into_iter().map(|(path, (_, step))| (path, step)).collect()
}

struct Prover<'a> {
    at: &'a RunPlace,
    world: RealWorld,
    env: &'a [(OsString, OsString)],
    /// Files that steps read, hashed once.
    reads: BTreeMap<String, Option<Digest>>,
    /// The step that wrote each path last, declared or not.
    writers: BTreeMap<String, Address>,
    /// When each path was last written by a step.
    written: BTreeMap<String, Timestamp>,
}

/// What is found out about one step, bit by bit.
struct Findings {
    answer: Answer,
    why: Vec<String>,
}

impl Findings {
    fn good(&mut self, why: impl Into<String>) {
        self.why.push(why.into());
    }

    /// The worst answer counts.
    fn bad(&mut self, answer: Answer, why: impl Into<String>) {
        if self.answer == Answer::Done {
            self.why.clear();
        }
        self.answer = self.answer.max(answer);
        self.why.push(why.into());
    }
}

impl Prover<'_> {
    fn prove(
        &mut self,
        run: &Run,
        id: NodeId,
        entry: &StepState,
        outputs: &[&FileProof],
    ) -> Result<StepProof, CareError> {
        let node = run.graph.node(id);
        let step = &node.address;
        let declared = run.defs.step(node.def);
        let mut found = Findings { answer: Answer::Done, why: Vec::new() };
        self.outputs(outputs, &mut found)?;
        self.replaced(run, id, entry, &mut found);
        self.inputs(run, entry, &mut found)?;
        if let Kind::Gate(_) = declared.kind {
            found.good("a person decided it");
        }
        self.result(declared, step, entry, &mut found)?;
        self.check(run, id, declared, entry, &mut found)?;
        if let Some(head) = &entry.evidence.branch_head {
            if self.is_reachable(head) {
                let short = head.get(..12).unwrap_or(head);
                found.good(format!("commit {short} is on a branch"));
            } else {
                found.bad(Answer::Unproved, format!("commit {head} is on no branch"));
            }
        }
        if !node.is_settled() {
            let why = if node.is_reachable() {
                "what it needs is not what it was made from"
            } else {
                "what it needs runs again first"
            };
            found.bad(Answer::Stale, why);
        }
        if found.why.is_empty() {
            found.good("it declares no output and no check; the journal says that it ended");
        }
        Ok(StepProof { step: step.to_string(), answer: found.answer, why: found.why })
    }

    fn is_reachable(&self, commit: &str) -> bool {
        let repo = Repo::find(&self.at.place.project_dir, &self.env.to_vec());
        let repo = repo.ok().flatten();
        repo.is_some_and(|repo| repo.is_reachable(commit).unwrap_or(false))
    }

    /// Read in full: nothing is believed by size and time.
    fn outputs(&mut self, outputs: &[&FileProof], found: &mut Findings) -> Result<(), Stop> {
        for file in outputs {
            match self.world.digest(&file.path)? {
                None => found.bad(Answer::Stale, format!("{} is gone", file.path)),
                Some(now) if now != file.hash => {
                    found.bad(Answer::Stale, format!("{} was changed", file.path));
                }
                Some(_) => found.good(format!("{} is as it was", file.path)),
            }
        }
        Ok(())
    }

    /// Files that another step wrote last: a later one, or one before it, that ran again.
    fn replaced(&self, run: &Run, id: NodeId, entry: &StepState, found: &mut Findings) {
        let step = &run.graph.node(id).address;
        let declared = entry.evidence.files.iter().map(|file| &file.path);
        let footprint = run.state.footprints.get(step).into_iter().flatten();
        for path in declared.chain(footprint) {
            let Some(by) = self.writers.get(path).filter(|by| *by != step) else { continue };
            let writer = run.graph.find(by);
            if writer.is_some_and(|writer| run.graph.comes_after(id, writer)) {
                let why = format!("{path} was written again by {by}, which comes before it");
                found.bad(Answer::Stale, why);
            } else {
                found.good(format!("{path} is the work of {by} since"));
            }
        }
    }

    fn inputs(&mut self, run: &Run, entry: &StepState, found: &mut Findings) -> Result<(), Stop> {
        let Some(key) = &entry.key else { return Ok(()) };
        for (path, was) in key.get().reads {
            let now = if let Some(now) = self.reads.get(&path) {
                *now
            } else {
                let now = self.world.digest(&path)?;
                self.reads.insert(path.clone(), now);
                now
            };
            let ours = now.is_some_and(|now| was_made_by_the_run(&run.state, &path, now));
            let is_replaced = self.written.get(&path).is_some_and(|last| *last > entry.read_at());
            if now != Some(was) && !ours && !is_replaced {
                found.bad(Answer::Stale, format!("{path}, which it read, was changed"));
            }
        }
        Ok(())
    }

    /// The file if it is there, held against what was recorded; else the journal's own copy.
    fn result(
        &mut self,
        declared: &Step,
        step: &Address,
        entry: &StepState,
        found: &mut Findings,
    ) -> Result<(), Stop> {
        let Some(recorded) = entry.evidence.result.filter(|_| entry.gate.is_none()) else {
            return Ok(());
        };
        match collect::result(&mut self.world, declared, step, entry.attempts)? {
            ResultSeen::Valid(now) if Digest::of(now.to_string().as_bytes()) == recorded => {
                found.good("its result is as it was");
            }
            ResultSeen::Valid(_) => found.bad(Answer::Stale, "its result was changed"),
            ResultSeen::NotJson(why) | ResultSeen::Violates(why) | ResultSeen::Refuses(why) => {
                found.bad(Answer::Unproved, format!("its result is not valid: {why}"));
            }
            // What stands for it follows from those files, and was never made by an agent.
            ResultSeen::Absent if entry.elsewhere => {
                found.good("the other system's files proved it when they were taken over");
            }
            ResultSeen::Absent => {
                let valid = match (&declared.result, &entry.result) {
                    (_, None) => Err("it is kept nowhere".to_owned()),
                    (None, Some(_)) => Ok(()),
                    (Some(schema), Some(value)) => {
                        self.world.validate(&schema.text, value).map_err(Objection::into_words)
                    }
                };
                match valid {
                    Ok(()) => found.good("the journal has its result"),
                    Err(why) => {
                        found.bad(Answer::Unproved, format!("its result is not valid: {why}"));
                    }
                }
            }
        }
        Ok(())
    }

    fn check(
        &self,
        run: &Run,
        id: NodeId,
        declared: &Step,
        entry: &StepState,
        found: &mut Findings,
    ) -> Result<(), Stop> {
        let Some(check) = &declared.check else { return Ok(()) };
        let Some(command) = decide::command(run, id, check) else {
            found.bad(Answer::Unproved, "its check cannot be rendered any more");
            return Ok(());
        };
        let step = &run.graph.node(id).address;
        let result = out_name(step, entry.attempts, "result");
        let result = self.world.absolute(At::Run(&result));
        let mut env = self.env.to_vec();
        let ours = [
            ("ONWARD_STEP", step.to_string()),
            ("ONWARD_ATTEMPT", entry.attempts.to_string()),
            ("ONWARD_RESULT", result),
        ];
        env.extend(ours.map(|(name, value)| (name.into(), value.into())));
        let within = match &declared.timeout {
            Some(Span::Fixed(ms)) => Duration::from_millis(*ms),
            Some(Span::Expression(_)) | None => CHECK_WITHIN,
        };
        let dir = &self.at.place.project_dir.join(worktree_path(run, id));
        if !dir.is_dir() {
            found.bad(Answer::Unproved, "its worktree is gone, so its check cannot be run");
            return Ok(());
        }
        let answer = probe(&command, i32::MIN, dir, &env, within);
        match answer.map_err(io_stop("run a check in", dir))? {
            Probed::Happened => found.good("its check agrees"),
            Probed::Absent | Probed::Unknown => {
                found.bad(Answer::Unproved, format!("its check does not agree: {command}"));
            }
        }
        Ok(())
    }
}
