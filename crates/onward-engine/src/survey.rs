//! Looking at the world before a resume: what became of the attempts in flight, and whether what
//! was done still stands. Reads only.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide::{self, Content, gate_content},
    digest::Digest,
    event::AttemptStarted,
    evidence::{Ending, Evidence},
    facts::{Facts, Need},
    finding::{Code, Finding},
    graph::NodeId,
    judge::ResultSeen,
    plan::edited,
    policy::Depth,
    recovery::{self, Probed},
    run::Run,
    state::{Phase, StepState},
    survey::{
        Edited, InFlight, OutputSeen, Proof, ReadSeen, Survey, outputs_to_check,
        was_made_by_the_run,
    },
    workflow::{Loaded, model::Workflow, template::Quoting},
};

use crate::{
    collect, files,
    revert::{self, Footprint},
    world::{At, Connected, Stop, World},
};

/// How long after the last sign of life a change may still be the attempt's own.
const AFTERGLOW_MS: u64 = 2_000;

pub fn survey<W: World>(
    world: &mut W,
    run: &Run,
    connected: &Connected,
    depth: Depth,
) -> Result<Survey, Stop> {
    let mut survey = Survey { now: world.now_for_ages(), ..Survey::default() };
    if connected.orphans_ended > 0 {
        let count = connected.orphans_ended;
        let message = format!("{count} processes of this run had lost their supervisor");
        survey
            .findings
            .push(Finding::new(Code::OrphanProcess, message).with_hint("they were ended"));
    }
    for other in world.others() {
        let finding = Finding::new(Code::OtherSessionLive, format!("{other} is live"));
        survey.findings.push(finding.with_hint("two at work in one tree cannot be told apart"));
    }
    look_for_leftovers(world, run, &mut survey)?;
    // What an unfinished attempt wrote is its own: it says nothing about whoever wrote it before.
    let mut unfinished = BTreeSet::new();
    for (step, entry) in &run.state.steps {
        let Some(started) = entry.started.as_deref() else { continue };
        match entry.phase {
            Phase::Running => {
                let left = revert::footprint(world, started)?;
                unfinished.extend(left.changes.iter().map(|change| change.path.clone()));
                let seen = in_flight(world, run, connected, step, entry, started, &left)?;
                survey.in_flight.insert(step.clone(), seen);
            }
            Phase::Failed => {
                let left = revert::footprint(world, started)?;
                unfinished.extend(left.changes.iter().map(|change| change.path.clone()));
                if !left.changes.is_empty() && !keeps(run, step) {
                    let reverts = left.reverts(step, entry.attempts);
                    survey.left_by_failed.insert(step.clone(), reverts);
                }
            }
            Phase::Pending
            | Phase::Waiting
            | Phase::Done
            | Phase::Skipped
            | Phase::Lost
            | Phase::Stale => {}
        }
    }
    look_at_outputs(world, run, &unfinished, depth, &mut survey)?;
    look_at_reads(world, run, &mut survey)?;
    look_at_approvals(world, run, &mut survey)?;
    survey.disagreements = disagreements(run, connected);
    match depth {
        Depth::Quick => {}
        Depth::Full => run_checks(world, run, &mut survey)?,
    }
    Ok(survey)
}

/// Half a file, left where an undo was cut short; the undo makes it anew.
fn look_for_leftovers<W: World>(world: &mut W, run: &Run, survey: &mut Survey) -> Result<(), Stop> {
    let begun = run.state.steps.values().filter_map(|entry| entry.started.as_deref());
    let reverts = begun.flat_map(|started| &started.reverts).chain(run.state.pending_reverts());
    let names: BTreeSet<String> = reverts.map(|it| files::temporary_name(&it.path)).collect();
    for name in names {
        if world.digest(&name)?.is_some() {
            let finding =
                Finding::new(Code::LeftoverTempFile, format!("{name} was left half made"));
            survey.findings.push(finding.at_path(name).with_hint("nobody reads it; delete it"));
        }
    }
    Ok(())
}

fn keeps(run: &Run, step: &Address) -> bool {
    let id = run.graph.find(step);
    id.is_some_and(|id| run.defs.step(run.graph.node(id).def).keep)
}

/// Known never to have been spawned: the supervisor's log is whole and does not have it. A restart
/// of the machine may have taken the unsynced end of that log with it.
pub fn never_spawned(run: &Run, connected: &Connected, step: &Address) -> bool {
    let Some(entry) = run.state.step(step) else { return true };
    let attempt = entry.attempts;
    let same_boot = connected.boot_id == run.state.boot_id && !entry.outlived_boot;
    let is = |other: &(Address, u32)| other.0 == *step && other.1 == attempt;
    let sealed = connected.seals.iter().any(|seal| seal.step == *step && seal.attempt == attempt);
    connected.spawned_is_complete
        && same_boot
        && !sealed
        && !connected.alive.iter().any(is)
        && !connected.spawned.iter().any(is)
}

fn in_flight<W: World>(
    world: &mut W,
    run: &Run,
    connected: &Connected,
    step: &Address,
    entry: &StepState,
    started: &AttemptStarted,
    left: &Footprint,
) -> Result<InFlight, Stop> {
    let attempt = entry.attempts;
    let last_sign = connected.last_heartbeat.unwrap_or(entry.started_at).max(entry.started_at);
    let limit_ns = last_sign.plus_ms(AFTERGLOW_MS).as_micros().saturating_mul(1000);
    let late = left.changes.iter().filter(|change| change.mtime_ns.is_some_and(|it| it > limit_ns));
    let contested: Vec<String> = late.map(|change| change.path.clone()).collect();
    let proof = match run.graph.find(step) {
        Some(id) => proof(world, run, id, step, entry, started)?,
        None => None,
    };
    let sealed = connected.seals.iter().any(|seal| seal.step == *step && seal.attempt == attempt);
    let alive = connected.alive.iter().any(|it| it.0 == *step && it.1 == attempt);
    Ok(InFlight {
        facts: recovery::Facts {
            announced: true,
            spawned: !never_spawned(run, connected, step),
            sealed,
            alive,
            proof: proof.is_some(),
            session: false,
            dirty: !left.changes.is_empty(),
            contested: !contested.is_empty(),
        },
        reverts: left.reverts(step, attempt),
        contested,
        proof,
        probed: None,
    })
}

/// A result that fits its schema proves itself, unless the step wants more than that: a check that
/// nobody ran, or outputs that are not all there.
fn proof<W: World>(
    world: &mut W,
    run: &Run,
    id: NodeId,
    step: &Address,
    entry: &StepState,
    started: &AttemptStarted,
) -> Result<Option<Proof>, Stop> {
    let declared = run.defs.step(run.graph.node(id).def);
    if declared.result.is_none() || declared.check.is_some() {
        return Ok(None);
    }
    let seen = collect::collect(world, declared, step, entry.attempts, &started.writes, false)?;
    if !seen.missing.is_empty() {
        return Ok(None);
    }
    let result = match seen.result {
        ResultSeen::Valid(result) => result,
        ResultSeen::Absent | ResultSeen::NotJson(_) | ResultSeen::Violates(_) => return Ok(None),
    };
    let digest = Digest::of(result.to_string().as_bytes());
    let evidence =
        Evidence { files: seen.files, result: Some(digest), stdout: None, branch_head: None };
    Ok(Some(Proof { evidence, result }))
}

fn look_at_outputs<W: World>(
    world: &mut W,
    run: &Run,
    unfinished: &BTreeSet<String>,
    depth: Depth,
    survey: &mut Survey,
) -> Result<(), Stop> {
    for (step, file) in outputs_to_check(&run.state) {
        if unfinished.contains(&file.path) {
            continue;
        }
        // What is known saves reading a file whose stat has not changed.
        let known = match depth {
            Depth::Quick => std::slice::from_ref(file),
            Depth::Full => &[],
        };
        let now = world.glob(&file.path, known)?.into_iter().next();
        if now.as_ref().is_none_or(|now| now.hash != file.hash) {
            let seen = OutputSeen { path: file.path.clone(), now };
            survey.outputs.entry(step.clone()).or_default().push(seen);
        }
    }
    Ok(())
}

fn look_at_reads<W: World>(world: &mut W, run: &Run, survey: &mut Survey) -> Result<(), Stop> {
    let mut seen = BTreeMap::new();
    for (step, entry) in &run.state.steps {
        let Some(key) = entry.key.as_ref().filter(|_| entry.phase == Phase::Done) else {
            continue;
        };
        // Most keys name no file at all; those are not looked into.
        if !key.as_str().contains("\"reads\":") {
            continue;
        }
        for (path, was) in &key.get().reads {
            let now = if let Some(now) = seen.get(path) {
                *now
            } else {
                let now = world.digest(path)?;
                seen.insert(path.clone(), now);
                now
            };
            let ours = now.is_some_and(|now| was_made_by_the_run(&run.state, path, now));
            if now != Some(*was) && !ours {
                let read = ReadSeen { path: path.clone(), was: *was, now };
                survey.reads.entry(step.clone()).or_default().push(read);
            }
        }
    }
    Ok(())
}

/// Answers that nobody has acted on yet, whose content has moved since.
fn look_at_approvals<W: World>(world: &mut W, run: &Run, survey: &mut Survey) -> Result<(), Stop> {
    for gate in &run.state.unused_answers {
        let mut facts = Facts::default();
        loop {
            match gate_content(run, &facts, gate) {
                Content::Lacks(needs) => answer(world, &mut facts, gate, needs)?,
                Content::Moved => break survey.outdated_approvals.push(gate.clone()),
                Content::Same => break,
            }
        }
    }
    Ok(())
}

/// Finds out what the decider lacks about a step.
pub(crate) fn answer<W: World>(
    world: &mut W,
    facts: &mut Facts,
    step: &Address,
    needs: BTreeSet<Need>,
) -> Result<(), Stop> {
    for need in needs {
        let of_step = facts.by_step.entry(step.clone()).or_default();
        match need {
            Need::Text(path) => {
                let bytes = world.read(At::Project(&path))?;
                let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                of_step.texts.insert(path, text);
            }
            Need::Glob(pattern) => {
                let files = world.glob(&pattern, &[])?;
                of_step.globs.insert(pattern, files);
            }
        }
    }
    Ok(())
}

/// The supervisor's log has the last word on how an attempt ended: two different endings cannot
/// both be true.
fn disagreements(run: &Run, connected: &Connected) -> BTreeMap<Address, String> {
    let mut all = BTreeMap::new();
    for seal in &connected.seals {
        let Some(entry) = run.state.step(&seal.step) else { continue };
        let counts = entry.phase == Phase::Done && entry.attempts == seal.attempt;
        // Work adopted from elsewhere has no key, and does not rest on how an attempt ended.
        if counts && entry.key.is_some() && !seal.ending.is_success() {
            let how = match &seal.ending {
                Ending::Exited { code } => format!("exited with {code}"),
                Ending::Signalled { signal } => format!("was ended by signal {signal}"),
                Ending::TimedOut { .. } => "ran out of time".to_owned(),
                Ending::Stopped => "was stopped".to_owned(),
                Ending::NotStarted { why } => format!("could not be started: {why}"),
            };
            all.insert(seal.step.clone(), format!("its seal says that it {how}"));
        }
    }
    all
}

/// Runs the `check` of every done step that has one: what it proved then must hold now.
fn run_checks<W: World>(world: &mut W, run: &Run, survey: &mut Survey) -> Result<(), Stop> {
    for (step, entry) in &run.state.steps {
        let Some(id) = run.graph.find(step).filter(|_| entry.phase == Phase::Done) else {
            continue;
        };
        let declared = run.defs.step(run.graph.node(id).def);
        let check = declared.check.as_ref();
        let Some(command) = check.and_then(|it| decide::text(run, id, it, Quoting::Shell)) else {
            continue;
        };
        // No exit code but 0 is an answer here.
        if world.probe(&command, i32::MIN)? != Probed::Happened {
            let says = "its check does not agree any more".to_owned();
            survey.disagreements.insert(step.clone(), says);
        }
    }
    Ok(())
}

/// What became of a workflow file that was edited since it was pinned.
pub fn edits<W: World>(
    world: &mut W,
    run: &Run,
    pinned: &Workflow,
    new: &Loaded,
) -> Result<Edited, Stop> {
    let mut facts = Facts::default();
    loop {
        match edited(pinned, &new.workflow, run, &facts, new.hash) {
            Ok(edited) => return Ok(edited),
            Err(lacking) => {
                for (step, needs) in lacking {
                    answer(world, &mut facts, &step, needs)?;
                }
            }
        }
    }
}
