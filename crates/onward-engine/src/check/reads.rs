//! What done steps read, and whether it is still what they read.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use onward_core::{
    address::Address,
    decide::{self, Rendering, rendering},
    facts::Facts,
    key::Key,
    run::Run,
    state::{Glance, Phase, StepState},
    survey::{ReadSeen, Survey, last_written, was_made_by_the_run},
    time::Timestamp,
    workflow::{
        pattern::{is_glob, matcher},
        template::Quoting,
    },
    worktree::{below, worktree_path},
};

use super::{ours::Ours, survey::seal_of};
use crate::{
    check::{needs::find_out, whens},
    revert,
    world::{Connected, Stop, World},
};

pub(super) fn look<W: World>(
    world: &mut W,
    ours: &Ours<'_>,
    connected: &Connected,
    unfinished: &BTreeSet<String>,
    survey: &mut Survey,
) -> Result<(), Stop> {
    let run = ours.run;
    let alone_since_ns = alone_since_ns(run, connected);
    let mut seen = BTreeMap::new();
    let writes = OnceCell::new();
    let names_reads = memchr::memmem::Finder::new("\"reads\":");
    let may_read = run.defs.ids().any(|id| run.defs.brief(id).has_reads());
    for (step, glance) in run.state.steps.glances() {
        let entry = match glance {
            Glance::Whole(entry) => entry,
            Glance::Plain(plain) if !may_read && !plain.names_reads() => continue,
            Glance::Plain(_) => &run.state.steps[step],
        };
        let Some(key) = key_of(run, step, entry, connected) else { continue };
        // A file that changed while an attempt ran may have been read before that or after it.
        let ended_at = seal_of(connected, step, entry).map(|seal| seal.at);
        let since_ns = ended_at.map_or(alone_since_ns, ns);
        let since_ns = Some(since_ns).filter(|_| entry.phase == Phase::Running);
        let declared = if entry.phase == Phase::Skipped { Vec::new() } else { declared(run, step) };
        let is_pattern = |it: &&String| is_glob(it) && matcher(it, true).is_ok();
        let patterns: Vec<&String> = declared.iter().filter(is_pattern).collect();
        // Most keys name no file at all; those are not looked into.
        if patterns.is_empty() && names_reads.find(key.as_str().as_bytes()).is_none() {
            continue;
        }
        let reads = key.get().reads;
        // What lies there now belongs to the step that wrote it last.
        let is_replaced = |path: &str| {
            let last = writes.get_or_init(|| last_written(&run.state)).get(path);
            last.is_some_and(|last| *last > entry.read_at())
        };
        for pattern in patterns {
            for file in world.glob(pattern, &[])? {
                let is_new = file.stat.mtime_ns > alone_since_ns && !reads.contains_key(&file.path);
                if is_new && !unfinished.contains(&file.path) && !is_replaced(&file.path) {
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
            // Asked only of what changed: each answer looks through all outputs of the run.
            let is_ours = || {
                ours.is(path, entry.started_at)
                    || is_replaced(path)
                    || now.is_some_and(|now| was_made_by_the_run(&run.state, path, now))
            };
            if now == Some(*was) || is_ours() {
                continue;
            }
            // What an unfinished attempt changed is undone with it, or its own.
            let is_half_done = unfinished.contains(path);
            let read = ReadSeen { path: path.clone(), was: Some(*was), now };
            if let Some(since_ns) = since_ns
                && (is_half_done || !is_newer(world, path, since_ns)?)
            {
                continue;
            }
            let is_skipped = entry.phase == Phase::Skipped;
            if !is_skipped && is_read(world, run, (step, &declared), path)? {
                survey.reads.entry(step.clone()).or_default().push(read);
            } else if since_ns.is_none()
                && !is_half_done
                && whens::holds(world, run, step)? == Some(is_skipped)
            {
                survey.whens.insert(step.clone(), read);
            }
        }
    }
    Ok(())
}

/// What a step was decided and made from: one that is done or skipped, or an attempt that ended or
/// was killed while no driver lived.
fn key_of<'e>(
    run: &Run,
    step: &Address,
    entry: &'e StepState,
    connected: &Connected,
) -> Option<&'e Key> {
    match entry.phase {
        // The files of another system go on changing; that system's rules say what counts.
        Phase::Skipped | Phase::Running if run.state.adopted.is_some() => None,
        Phase::Done | Phase::Tolerated | Phase::Skipped => entry.key.as_ref(),
        Phase::Running => {
            let lives = connected.alive.iter().any(|it| it.0 == *step && it.1 == entry.attempts);
            entry.started.as_deref().filter(|_| !lives).map(|it| &it.key)
        }
        Phase::Pending | Phase::Waiting | Phase::Failed | Phase::Lost | Phase::Stale => None,
    }
}

/// Whether a file was written after this moment.
fn is_newer<W: World>(world: &mut W, path: &str, since_ns: i64) -> Result<bool, Stop> {
    Ok(world.glob(path, &[])?.iter().any(|file| file.path == path && file.stat.mtime_ns > since_ns))
}

pub(super) fn ns(moment: Timestamp) -> i64 {
    moment.as_micros().saturating_mul(1000)
}

/// From when on a new file is not the work of one of the run's own steps, declared or not.
pub(super) fn alone_since_ns(run: &Run, connected: &Connected) -> i64 {
    let state = &run.state;
    let driven = state.driven_at;
    let last_sign = match connected.last_heartbeat.filter(|_| state.running > 0) {
        Some(heartbeat) => heartbeat.max(driven).plus_ms(revert::AFTERGLOW_MS),
        None => driven,
    };
    ns(last_sign)
}

/// What a step says that it reads.
fn declared(run: &Run, step: &Address) -> Vec<String> {
    let Some(id) = run.graph.find(step) else { return Vec::new() };
    let def = run.graph.node(id).def;
    if !run.defs.brief(def).has_reads() {
        return Vec::new();
    }
    let declared = run.defs.step(def).reads.iter();
    let rendered = declared.filter_map(|it| decide::text(run, id, it, Quoting::Plain));
    let tree = worktree_path(run, id);
    rendered.map(|it| below(&tree, it)).collect()
}

/// Whether a step would still read a file that it read: one that was taken out of its `reads` since
/// says nothing about it, unless its templates have it.
fn is_read<W: World>(
    world: &mut W,
    run: &Run,
    (step, declared): (&Address, &[String]),
    path: &str,
) -> Result<bool, Stop> {
    let fits = |it: &String| it == path || matcher(it, false).is_ok_and(|glob| glob.is_match(path));
    if declared.iter().any(fits) {
        return Ok(true);
    }
    let Some(id) = run.graph.find(step) else { return Ok(true) };
    let mut facts = Facts::default();
    loop {
        match rendering(run, &facts, id, 0) {
            Rendering::Ready(_) => return Ok(facts.at(step).texts.contains_key(path)),
            Rendering::Lacks(needs) => find_out(world, facts.at(step), needs)?,
            Rendering::Fails(_) => return Ok(true),
        }
    }
}
