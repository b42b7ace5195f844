//! Outputs of done steps: are they still what the steps made?
//!
//! Invariant: what a power cut made of a file is never taken for a person's change. A file that was
//! not synced is read again after a restart of the machine, whatever its stat says.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    digest::Digest,
    evidence::FileProof,
    policy::Depth,
    run::Run,
    state::StepState,
    survey::{Damage, OutputSeen, Survey, outputs_as_made, outputs_kept, outputs_where},
};

use super::{ours::Ours, witness};
use crate::{
    revert,
    world::{At, Connected, Stop, World},
};

/// More than this is not read only to see whether it is all NUL.
const NULS_BYTES_MAX: u64 = 64 << 20;
const PIECE_BYTES: usize = 64 << 10;

/// `beside` is what the supervisor said, and paths that unfinished attempts changed.
pub(super) fn look<W: World>(
    world: &mut W,
    ours: &Ours<'_>,
    beside: (&Connected, &BTreeSet<String>),
    depth: Depth,
    survey: &mut Survey,
) -> Result<(), Stop> {
    let (connected, unfinished) = beside;
    let restarted = witness::was_restarted(ours.run, connected);
    let state = &ours.run.state;
    let mut all = if depth < Depth::Full && !restarted {
        // Nearly all files of a large run are as they were: these are told apart first, at once.
        let files = outputs_kept(state);
        let unchanged = world.unchanged(&files)?;
        let is_changed = |at: &usize| unchanged.get(*at) != Some(&true);
        let changed = (0..files.len()).filter(is_changed).map(|at| (files[at].0, files[at].1.path));
        let changed: BTreeSet<(usize, &str)> = changed.collect();
        if changed.is_empty() {
            return Ok(());
        }
        outputs_where(state, |place, path| changed.contains(&(place, path)))
    } else {
        outputs_as_made(state)
    };
    all.sort_unstable_by_key(|(_, file)| &file.path);
    for (step, file) in all {
        let Some(entry) = ours.run.state.step(step) else { continue };
        if unfinished.contains(&file.path) || ours.is(&file.path, entry.ended_at) {
            continue;
        }
        let unsynced = restarted && !is_synced(ours.run, step);
        // What is known saves reading a file whose stat has not changed.
        let known = match depth {
            Depth::Glance | Depth::Quick if !unsynced => std::slice::from_ref(file),
            Depth::Glance | Depth::Quick | Depth::Full => &[],
        };
        // A directory in its place has other files, and none of this name.
        let now = world.glob(&file.path, known)?.into_iter().find(|now| now.path == file.path);
        if now.as_ref().is_some_and(|now| now.hash == file.hash) {
            continue;
        }
        let damage = match &now {
            Some(now) if is_emptied(world, file, now)? => Some(Damage::Emptied),
            Some(now) if unsynced && is_untouched(entry, now) => Some(Damage::Torn),
            Some(_) | None => None,
        };
        let seen = OutputSeen { path: file.path.clone(), now, damage };
        survey.outputs.entry(step.clone()).or_default().push(seen);
    }
    Ok(())
}

/// Its outputs were on the disk before it counted as done.
fn is_synced(run: &Run, step: &Address) -> bool {
    let id = run.graph.find(step);
    id.is_some_and(|id| run.defs.brief(run.graph.node(id).def).is_synced())
}

/// Nothing wrote to it after the step that made it.
fn is_untouched(entry: &StepState, now: &FileProof) -> bool {
    now.stat.mtime_ns <= revert::limit_ns(entry.ended_at)
}

/// Whether it is empty, or nothing but NUL bytes, and was not.
fn is_emptied<W: World>(world: &mut W, was: &FileProof, now: &FileProof) -> Result<bool, Stop> {
    let nothing = Digest::of(b"");
    if now.hash == nothing || was.hash == nothing {
        return Ok(now.hash == nothing);
    }
    if now.stat.size > NULS_BYTES_MAX || was.hash == of_nuls(was.stat.size) {
        return Ok(false);
    }
    is_void(world, now)
}

/// Whether it is empty, or nothing but NUL bytes.
pub(super) fn is_void<W: World>(world: &mut W, now: &FileProof) -> Result<bool, Stop> {
    let size = now.stat.size;
    if size == 0 || size > NULS_BYTES_MAX {
        return Ok(now.hash == Digest::of(b""));
    }
    let mut offset = 0;
    while offset < size {
        let piece = world.read_from(At::Project(&now.path), offset, PIECE_BYTES)?;
        if piece.is_empty() || piece.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        offset += piece.len() as u64;
    }
    Ok(size > 0)
}

fn of_nuls(size: u64) -> Digest {
    let size = usize::try_from(size.min(NULS_BYTES_MAX)).unwrap_or(0);
    Digest::of(&vec![0; size])
}
