//! Looking at the world before a resume: what became of the attempts in flight, and whether what
//! was done still stands. Reads only.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide,
    digest::Digest,
    event::AttemptStarted,
    evidence::Evidence,
    finding::{Code, Finding},
    graph::NodeId,
    judge::ResultSeen,
    recovery::Facts,
    run::Run,
    state::{Phase, StepState},
    survey::{
        InFlight, OutputSeen, Proof, ReadSeen, Survey, outputs_to_check, was_made_by_the_run,
    },
    workflow::template::Quoting,
};

use crate::{
    collect,
    drive::is_glob,
    revert::{self, Footprint},
    world::{Connected, Stop, World},
};

/// How long after the last sign of life a change may still be the attempt's own.
const AFTERGLOW_MS: u64 = 2_000;

pub fn survey<W: World>(world: &mut W, run: &Run, connected: &Connected) -> Result<Survey, Stop> {
    let mut survey = Survey { now: world.now_for_ages(), ..Survey::default() };
    if connected.orphans_ended > 0 {
        let count = connected.orphans_ended;
        let message = format!("{count} processes of this run had lost their supervisor");
        survey
            .findings
            .push(Finding::new(Code::OrphanProcess, message).with_hint("they were ended"));
    }
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
    look_at_outputs(world, run, &unfinished, &mut survey)?;
    look_at_reads(world, run, connected, &unfinished, &mut survey)?;
    Ok(survey)
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
        facts: Facts {
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
    survey: &mut Survey,
) -> Result<(), Stop> {
    for (step, file) in outputs_to_check(&run.state) {
        if unfinished.contains(&file.path) {
            continue;
        }
        let now = world.glob(&file.path, std::slice::from_ref(file))?.into_iter().next();
        if now.as_ref().is_none_or(|now| now.hash != file.hash) {
            let seen = OutputSeen { path: file.path.clone(), now };
            survey.outputs.entry(step.clone()).or_default().push(seen);
        }
    }
    Ok(())
}

fn look_at_reads<W: World>(
    world: &mut W,
    run: &Run,
    connected: &Connected,
    unfinished: &BTreeSet<String>,
    survey: &mut Survey,
) -> Result<(), Stop> {
    let alone_since_ns = alone_since_ns(run, connected);
    let mut seen = BTreeMap::new();
    for (step, entry) in &run.state.steps {
        let Some(key) = entry.key.as_ref().filter(|_| entry.phase == Phase::Done) else {
            continue;
        };
        let patterns = read_patterns(run, step);
        // Most keys name no file at all; those are not looked into.
        if !key.as_str().contains("\"reads\":") && patterns.is_empty() {
            continue;
        }
        let reads = key.get().reads;
        for pattern in patterns {
            for file in world.glob(&pattern, &[])? {
                let is_new = file.stat.mtime_ns > alone_since_ns && !reads.contains_key(&file.path);
                if is_new && !unfinished.contains(&file.path) {
                    let read = ReadSeen { path: file.path, was: None, now: Some(file.hash) };
                    survey.reads.entry(step.clone()).or_default().push(read);
                }
            }
        }
        for (path, was) in &reads {
            let now = if let Some(now) = seen.get(path) {
                *now
            } else {
                let now = world.digest(path)?;
                seen.insert(path.clone(), now);
                now
            };
            let ours = now.is_some_and(|now| was_made_by_the_run(&run.state, path, now));
            if now != Some(*was) && !ours {
                let read = ReadSeen { path: path.clone(), was: Some(*was), now };
                survey.reads.entry(step.clone()).or_default().push(read);
            }
        }
    }
    Ok(())
}

/// From when on a new file is not the work of one of the run's own steps, declared or not.
fn alone_since_ns(run: &Run, connected: &Connected) -> i64 {
    let state = &run.state;
    let last_sign = match connected.last_heartbeat.filter(|_| state.running > 0) {
        Some(heartbeat) => heartbeat.max(state.last_at).plus_ms(AFTERGLOW_MS),
        None => state.last_at,
    };
    last_sign.as_micros().saturating_mul(1000)
}

/// What a step reads by pattern, so that a file may have come to it; names of files are in its key.
fn read_patterns(run: &Run, step: &Address) -> Vec<String> {
    let Some(id) = run.graph.find(step) else { return Vec::new() };
    let declared = run.defs.step(run.graph.node(id).def).reads.iter();
    let rendered = declared.filter_map(|it| decide::text(run, id, it, Quoting::Plain));
    rendered.filter(|pattern| is_glob(pattern)).collect()
}
