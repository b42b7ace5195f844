//! The folded state of a long journal, kept beside it: what saves folding it at every look.
//!
//! Invariant: it is a cache, and nothing rests on it. What is kept is what the bytes on the disk
//! fold to, never what some process had in mind; it counts only under a seal that this user alone
//! can make, and only in front of a journal that begins with exactly these bytes. Whatever else
//! stands there (torn, of another version, of another journal, made by a stranger) is passed over,
//! and the journal is folded from its beginning. A command that only looks never writes it.

use std::{ffi::OsString, path::Path};

use onward_core::{
    journal::{Mark, Reader},
    state::State,
};

use super::journal::{JOURNAL, LoadError, Loaded, load};
use crate::world::{At, World, files, open, real::shared};

/// Beside the journal.
const CHECKPOINT: &str = "checkpoint";
/// A shorter journal is folded as soon.
const JOURNAL_BYTES_MIN: usize = 256 << 10;
/// So much behind what is kept is folded faster than all of it is kept again.
const REST_BYTES_MAX: usize = 16 << 10;
/// What the seal is for; another purpose has another one.
const PURPOSE: &str = "onward checkpoint";
const VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// Folds a journal for one who only looks.
pub fn load_looking(
    run_dir: &Path,
    env: &[(OsString, OsString)],
    journal: &[u8],
) -> Result<Loaded, LoadError> {
    load_after(journal, || kept_in(run_dir, env))
}

fn kept_in(run_dir: &Path, env: &[(OsString, OsString)]) -> Option<Vec<u8>> {
    let sealed = open::read_own(run_dir, CHECKPOINT, open::LOG_BYTES_MAX).ok()?;
    shared::unsealed(env, PURPOSE, sealed)
}

/// The same for one who drives the run.
pub(crate) fn load_kept<W: World>(world: &mut W, journal: &[u8]) -> Result<Loaded, LoadError> {
    load_after(journal, || kept_by(world))
}

fn kept_by<W: World>(world: &mut W) -> Option<Vec<u8>> {
    let sealed = world.read(At::Run(CHECKPOINT)).ok()??;
    world.unsealed(PURPOSE, sealed)
}

/// Keeps what the journal on the disk folds to. That it cannot be kept costs time at the next look,
/// and no more.
pub(crate) fn keep<W: World>(world: &mut W) {
    let Ok(Some(journal)) = world.read(At::Run(JOURNAL)) else { return };
    if journal.len() < JOURNAL_BYTES_MIN {
        return;
    }
    let kept = kept_by(world);
    let covered = kept.as_deref().and_then(|it| covers(it, &journal)).map_or(0, |(part, _)| part);
    if covered > 0 && journal.len() - covered < REST_BYTES_MAX {
        return;
    }
    let Ok(loaded) = load_from(&journal, kept.as_deref()) else { return };
    drop(kept);
    let part = Part::of(&journal, &loaded);
    // A long one is not held together with what is made of it.
    drop(journal);
    let body = part.and_then(|it| body(&it, &loaded.state));
    if let Some(sealed) = body.and_then(|it| world.sealed(PURPOSE, &it)) {
        let _ = files::write_durably(world, At::Run(CHECKPOINT), &sealed);
    }
}

fn load_after(journal: &[u8], kept: impl FnOnce() -> Option<Vec<u8>>) -> Result<Loaded, LoadError> {
    let kept = if journal.len() < JOURNAL_BYTES_MIN { None } else { kept() };
    load_from(journal, kept.as_deref())
}

/// What is kept of a journal, without the seal. `None` where it could not be read on from there.
pub fn of(journal: &[u8]) -> Option<Vec<u8>> {
    let loaded = load(journal).ok()?;
    body(&Part::of(journal, &loaded)?, &loaded.state)
}

/// Folds what follows the part of a journal that `kept` tells of, or all of it.
pub fn load_from(journal: &[u8], kept: Option<&[u8]>) -> Result<Loaded, LoadError> {
    match kept.and_then(|it| unpack(it, journal)) {
        Some((state, offset)) => load_rest(state, offset, journal),
        None => load(journal),
    }
}

fn load_rest(mut state: State, offset: usize, journal: &[u8]) -> Result<Loaded, LoadError> {
    let State { next_seq, epoch, batch, .. } = state;
    let mark = Mark { offset: offset as u64, next_seq, epoch, batch };
    let mut reader = Reader::resume_at(&journal[offset..], mark);
    while let Some(record) = reader.next_record()? {
        state.after(record)?;
    }
    Ok(Loaded { state, tail: reader.tail()? })
}

/// The beginning of a journal, up to the end of a record.
struct Part {
    length: u64,
    crc: u32,
}

impl Part {
    /// All that was folded; `None` where the rest could not be read on from there.
    fn of(journal: &[u8], loaded: &Loaded) -> Option<Self> {
        let length = loaded.tail.mark.offset;
        let part = journal.get(..usize::try_from(length).ok()?)?;
        // A damaged line that is read later is told by its number: up to here each is a record.
        let lines = memchr::memchr_iter(b'\n', part).count();
        let is_whole = part.ends_with(b"\n") && lines as u64 == loaded.state.next_seq;
        let is_over = is_whole && !loaded.tail.missing_newline;
        is_over.then(|| Self { length, crc: crc32fast::hash(part) })
    }
}

/// The version, the part of the journal that is told of, the state.
fn body(part: &Part, state: &State) -> Option<Vec<u8>> {
    let mut to = vec![u8::try_from(VERSION.len()).ok()?];
    to.extend(VERSION);
    to.extend(part.length.to_le_bytes());
    to.extend(part.crc.to_le_bytes());
    to.extend(state.pack()?);
    Some(to)
}

/// The state at a place in this very journal, and that place.
fn unpack(body: &[u8], journal: &[u8]) -> Option<(State, usize)> {
    let (offset, state) = covers(body, journal)?;
    Some((State::unpack(state)?, offset))
}

/// How much of this very journal is told of, and the state there as it is kept.
fn covers<'b>(mut body: &'b [u8], journal: &[u8]) -> Option<(usize, &'b [u8])> {
    let (length, rest) = body.split_first()?;
    body = rest.get(usize::from(*length)..).filter(|_| rest.starts_with(VERSION))?;
    if usize::from(*length) != VERSION.len() {
        return None;
    }
    let (offset, rest) = body.split_first_chunk()?;
    let (crc, state) = rest.split_first_chunk()?;
    let offset = usize::try_from(u64::from_le_bytes(*offset)).ok()?;
    let part = journal.get(..offset)?;
    if crc32fast::hash(part) != u32::from_le_bytes(*crc) {
        return None;
    }
    Some((offset, state))
}

#[cfg(test)]
mod tests;
