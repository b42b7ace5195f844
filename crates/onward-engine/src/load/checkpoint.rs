//! The folded state of a long journal, kept beside it: what saves folding it at every look.
//!
//! Invariant: it is a cache, and nothing rests on it. What is kept is what the bytes on the disk
//! fold to, never what some process had in mind; it counts only under a seal that this user alone
//! can make, and only in front of a journal that begins with exactly these bytes. Whatever else
//! stands there (torn, of another version, of another journal, made by a stranger) is passed over,
//! and the journal is folded from its beginning. A command that only looks never writes it.

use std::{
    ffi::OsString,
    fs::{File, Metadata},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::Path,
    sync::Arc,
    thread,
    time::SystemTime,
};

use onward_core::{
    graph::Defs,
    journal::{Mark, Reader, Rest},
    state::State,
};

use super::journal::{End, JOURNAL, LoadError, Loaded, load};
use crate::world::{
    At, Stop, World, files,
    open::{self, PIECE_BYTES, To},
    real::shared,
};

/// Beside the journal.
const CHECKPOINT: &str = "checkpoint";
/// A shorter journal is folded as soon.
const JOURNAL_BYTES_MIN: usize = 256 << 10;
/// So much behind what is kept is folded faster than all of it is kept again.
const REST_BYTES_MAX: usize = 16 << 10;
/// What stands in front of a sealed body, and what the part takes at most.
const SEAL_BYTES: usize = 32;
const HEAD_BYTES_MAX: usize = 1 + 32 + 8 + 4 + 1;
/// What stands in front of a state: whether its graph was kept with it. Earlier ones begin with 1.
const ALONE: u8 = 2;
const WITH_GRAPH: u8 = 3;
/// What the seal is for; another purpose has another one.
const PURPOSE: &str = "onward checkpoint";
const VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// A journal that was folded for one who only looks.
#[derive(Debug)]
pub struct Looked {
    pub loaded: Loaded,
    /// What was folded, where it could be read on from there.
    part: Option<Part>,
    which: Option<Which>,
}

impl Looked {
    /// As it is for one who looks again, or drives the run next.
    pub fn folded(&self) -> Option<Folded> {
        Some(Folded { part: self.part?, which: self.which, state: self.loaded.state.clone() })
    }
}

/// Folds the journal of a run for one who only looks, and may have folded it before. What is kept
/// of it is summed piece by piece and not held in memory; what follows is.
pub fn load_looking(
    run_dir: &Path,
    env: &[(OsString, OsString)],
    folded: Option<Arc<Folded>>,
) -> io::Result<Result<Looked, LoadError>> {
    let mut file = open::own(run_dir, JOURNAL, To::Read, 0)?;
    let found = file.metadata()?;
    let (length, which) = (found.len(), Which::of(&found));
    let is_long = length >= JOURNAL_BYTES_MIN as u64 && length <= open::LOG_BYTES_MAX;
    let read_on = |file: File, part: Part, state: State| {
        let mut rest = Vec::new();
        file.take(open::LOG_BYTES_MAX).read_to_end(&mut rest)?;
        let seq = state.next_seq;
        Ok(load_rest(state, part.length, &rest).map(|loaded| {
            let part = part.and(&rest, seq, &loaded);
            Looked { loaded, part, which }
        }))
    };
    let is_this = |it: &Arc<Folded>| which.is_some() && it.which == which;
    if let Some(folded) = folded.filter(|it| is_this(it) && it.part.length <= length) {
        let Folded { part, state, .. } = Arc::unwrap_or_clone(folded);
        file.seek(SeekFrom::Start(part.length))?;
        return read_on(file, part, state);
    }
    if is_long
        && let Some(sealed) = sealed_in(run_dir)
        && let Some((part, state)) = kept_and_summed(sealed, &file, env)?
    {
        return read_on(file, part, state);
    }
    file.rewind()?;
    let journal = open::all_of(file, open::LOG_BYTES_MAX)?;
    Ok(load(&journal).map(|loaded| {
        let part = Part::of(&journal, &loaded);
        Looked { loaded, part, which }
    }))
}

/// Which file a journal is. One that took its place is another one, also where the file system
/// gave it the number of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Which {
    device: u64,
    inode: u64,
    made: SystemTime,
}

impl Which {
    /// `None` where the file system does not say when a file was made.
    fn of(found: &Metadata) -> Option<Self> {
        Some(Self { device: found.dev(), inode: found.ino(), made: found.created().ok()? })
    }
}

/// Whether a run is so long that its journal was kept.
pub(crate) fn is_kept(run_dir: &Path) -> bool {
    run_dir.join(CHECKPOINT).exists()
}

fn sealed_in(run_dir: &Path) -> Option<File> {
    open::own(run_dir, CHECKPOINT, To::Read, 0).ok()
}

/// What is kept for this very journal, which is read up to the end of that part. The journal is
/// summed while what is kept is read and looked through.
fn kept_and_summed(
    sealed: File,
    journal: &File,
    env: &[(OsString, OsString)],
) -> io::Result<Option<(Part, State)>> {
    // What it says of itself is believed when its seal was seen.
    let mut head = [0; SEAL_BYTES + HEAD_BYTES_MAX];
    let length = sealed.read_at(&mut head, 0).unwrap_or(0);
    let said = head[..length].get(SEAL_BYTES..).and_then(Part::unpack);
    let Some((said, _)) = said else { return Ok(None) };
    thread::scope(|scope| {
        let summed = scope.spawn(|| said.is_summed(journal));
        let kept = open::all_of(sealed, open::LOG_BYTES_MAX).ok().and_then(|it| kept_of(it, env));
        let is_summed = summed.join().unwrap_or(Ok(false))?;
        Ok(kept.filter(|(part, _)| is_summed && *part == said))
    })
}

fn kept_of(sealed: Vec<u8>, env: &[(OsString, OsString)]) -> Option<(Part, State)> {
    let (part, state) = Part::unpack(shared::under_seal(env, PURPOSE, &sealed)?)?;
    let at = sealed.len() - state.len() + 1;
    Some((part, State::unpack_at(sealed, at)?))
}

/// Folds the journal for one who drives the run, and may have folded it before. `None` = there is
/// no journal.
pub(crate) fn load_kept<W, E>(
    world: &mut W,
    folded: Option<Arc<Folded>>,
) -> Result<Option<(Loaded, End)>, E>
where
    W: World,
    E: From<Stop> + From<LoadError>,
{
    if let Some(folded) = folded
        && folded.begins(|offset| world.read_from(At::Run(JOURNAL), offset, PIECE_BYTES))?
    {
        let offset = folded.part.length;
        let bytes_max = usize::try_from(open::LOG_BYTES_MAX).unwrap_or(usize::MAX);
        let bytes = world.read_from(At::Run(JOURNAL), offset, bytes_max)?;
        let loaded = load_rest(Arc::unwrap_or_clone(folded).state, offset, &bytes)?;
        return Ok(Some((loaded, End { offset, bytes })));
    }
    let Some(bytes) = world.read(At::Run(JOURNAL))? else { return Ok(None) };
    let loaded = load_after(&bytes, || kept_by(world))?;
    Ok(Some((loaded, End { offset: 0, bytes })))
}

/// What this process folded before: as good as what is kept, for exactly these bytes. A look goes
/// on from there if the journal is the same file; one who drives the run has it summed once more.
#[derive(Clone, Debug)]
pub struct Folded {
    part: Part,
    which: Option<Which>,
    pub state: State,
}

impl Folded {
    /// Whether it is of this very journal, of which `piece` gives what stands at an offset.
    fn begins<E>(&self, piece: impl FnMut(u64) -> Result<Vec<u8>, E>) -> Result<bool, E> {
        self.part.is_begun_by(piece)
    }
}

fn kept_by<W: World>(world: &mut W) -> Option<Vec<u8>> {
    let sealed = world.read(At::Run(CHECKPOINT)).ok()??;
    world.unsealed(PURPOSE, sealed)
}

/// Keeps what the journal on the disk folds to, and with the steps of its workflow also the graph
/// of that. That it cannot be kept costs time at the next look, and no more.
pub(crate) fn keep<W: World>(world: &mut W, defs: Option<&Defs>) {
    let defs = defs.filter(|it| it.origin().is_some());
    let has_graph = |state: &[u8]| match state.first() {
        Some(&WITH_GRAPH) => true,
        Some(&ALONE) => defs.is_none(),
        Some(_) | None => false,
    };
    if lacks_little(world, has_graph).is_some() {
        return;
    }
    if is_free(world, JOURNAL_BYTES_MIN as u64 - 1) {
        return;
    }
    let kept = kept_by(world).and_then(|it| Before::of(world, it, has_graph));
    let covered = kept.as_ref().filter(|it| it.has_graph).map(|it| it.part.length);
    if covered.is_some_and(|it| is_free(world, it + REST_BYTES_MAX as u64 - 1)) {
        return;
    }
    let piece = |offset, bytes_max| {
        let piece = world.read_from(At::Run(JOURNAL), offset, bytes_max);
        piece.map_err(io::Error::other)
    };
    let Some((part, state)) = folded_from(piece, kept) else { return };
    let body = body(&part, &state, defs);
    if let Some(sealed) = body.and_then(|it| world.sealed(PURPOSE, it)) {
        let _ = files::write_durably(world, At::Run(CHECKPOINT), &sealed);
    }
    world.keep_looked(&state);
}

/// Whether no record of the journal stands at this place: it ended before, up to free space.
fn is_free<W: World>(world: &mut W, offset: u64) -> bool {
    let byte = world.read_from(At::Run(JOURNAL), offset, 1);
    byte.is_ok_and(|it| it.first().is_none_or(|byte| *byte == 0))
}

/// What was kept of this very journal before.
struct Before {
    part: Part,
    state: State,
    has_graph: bool,
}

impl Before {
    fn of<W: World>(
        world: &mut W,
        body: Vec<u8>,
        has_graph: impl Fn(&[u8]) -> bool,
    ) -> Option<Self> {
        let (part, state) = Part::unpack(&body)?;
        let (has_graph, at) = (has_graph(state), body.len() - state.len() + 1);
        let piece = |offset| world.read_from(At::Run(JOURNAL), offset, PIECE_BYTES);
        part.is_begun_by(piece).is_ok_and(|it| it).then_some(())?;
        Some(Self { part, state: State::unpack_at(body, at)?, has_graph })
    }
}

/// So many records later the steps that are done are held in less memory.
const SETTLE_AFTER: u64 = 16 << 10;

/// What the journal on the disk folds to, up to its free space; `None` also where a line of it is
/// not whole. It is read once and never held: what is folded and what is summed are the same bytes.
/// `piece` gives at most so many bytes of it that stand at an offset.
fn folded_from(
    piece: impl FnMut(u64, usize) -> io::Result<Vec<u8>>,
    before: Option<Before>,
) -> Option<(Part, State)> {
    let (part, mut state) = before.map_or((Part::NONE, State::default()), |it| (it.part, it.state));
    let State { next_seq, epoch, batch, .. } = state;
    let sum = crc32fast::Hasher::new_with_initial(part.crc);
    let mut written = Written { piece, offset: part.length, sum, lines: 0, is_over: false };
    let mark = Mark { offset: part.length, next_seq, epoch, batch };
    let mut reader = Reader::resume_at(&mut written, mark);
    let mut settle_at = next_seq + SETTLE_AFTER;
    while let Some(record) = reader.next_record().ok()? {
        state.after(record).ok()?;
        if state.next_seq >= settle_at {
            settle_at = state.next_seq + SETTLE_AFTER;
            state.settle();
        }
    }
    let tail = reader.tail().ok()?;
    // A damaged line that is read later is told by its number: up to here each is a record.
    let is_counted = next_seq + written.lines == state.next_seq;
    let is_whole = tail.rest == Rest::Clean && !tail.missing_newline && is_counted;
    let part = Part { length: written.offset, crc: written.sum.finalize() };
    (is_whole && tail.mark.offset == part.length).then_some((part, state))
}

/// The journal up to its free space, from a place on; summed as it is read.
struct Written<F> {
    piece: F,
    offset: u64,
    sum: crc32fast::Hasher,
    lines: u64,
    is_over: bool,
}

impl<F: FnMut(u64, usize) -> io::Result<Vec<u8>>> io::Read for Written<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        let piece = (self.piece)(self.offset, into.len())?;
        // No record has such a byte.
        let length = memchr::memchr(0, &piece).unwrap_or(piece.len());
        self.is_over = length < piece.len() || piece.is_empty();
        let piece = &piece[..length];
        into[..length].copy_from_slice(piece);
        self.sum.update(piece);
        self.lines += memchr::memchr_iter(b'\n', piece).count() as u64;
        self.offset += length as u64;
        Ok(length)
    }
}

/// Whether what is kept says that hardly anything follows it. It may say so wrongly: then it is
/// passed over by all who read it, and kept again when more has followed.
fn lacks_little<W: World>(world: &mut W, has_graph: impl Fn(&[u8]) -> bool) -> Option<()> {
    let head = world.read_from(At::Run(CHECKPOINT), 0, SEAL_BYTES + HEAD_BYTES_MAX).ok()?;
    let (part, state) = Part::unpack(head.get(SEAL_BYTES..)?)?;
    has_graph(state).then_some(())?;
    let before = part.length.checked_sub(1)?;
    let rest = world.read_from(At::Run(JOURNAL), before, 1 + REST_BYTES_MAX).ok()?;
    let rest = rest.strip_prefix(b"\n")?;
    let length = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    (length < REST_BYTES_MAX).then_some(())
}

fn load_after(journal: &[u8], kept: impl FnOnce() -> Option<Vec<u8>>) -> Result<Loaded, LoadError> {
    let kept = if journal.len() < JOURNAL_BYTES_MIN { None } else { kept() };
    load_from(journal, kept.as_deref())
}

/// What is kept of a journal, without the seal. `None` where it could not be read on from there.
pub fn of(journal: &[u8]) -> Option<Vec<u8>> {
    let loaded = load(journal).ok()?;
    body(&Part::of(journal, &loaded)?, &loaded.state, None)
}

/// Folds what follows the part of a journal that `kept` tells of, or all of it.
pub fn load_from(journal: &[u8], kept: Option<&[u8]>) -> Result<Loaded, LoadError> {
    match kept.and_then(|it| unpack(it, journal)) {
        Some((state, offset)) => load_rest(state, offset as u64, &journal[offset..]),
        None => load(journal),
    }
}

/// `rest` is what follows the first `offset` bytes of a journal.
fn load_rest(mut state: State, offset: u64, rest: &[u8]) -> Result<Loaded, LoadError> {
    let State { next_seq, epoch, batch, .. } = state;
    let mark = Mark { offset, next_seq, epoch, batch };
    let mut reader = Reader::resume_at(rest, mark);
    while let Some(record) = reader.next_record()? {
        state.after(record)?;
    }
    Ok(Loaded { state, tail: reader.tail()? })
}

/// The beginning of a journal, up to the end of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    length: u64,
    crc: u32,
}

impl Part {
    const NONE: Self = Self { length: 0, crc: 0 };

    /// Whether the journal begins with it of which `piece` gives what stands at an offset.
    fn is_begun_by<E>(self, mut piece: impl FnMut(u64) -> Result<Vec<u8>, E>) -> Result<bool, E> {
        let Self { length, crc } = self;
        let (mut sum, mut offset) = (crc32fast::Hasher::new(), 0);
        while offset < length {
            let mut piece = piece(offset)?;
            piece.truncate(usize::try_from(length - offset).unwrap_or(usize::MAX));
            if piece.is_empty() {
                return Ok(false);
            }
            sum.update(&piece);
            offset += piece.len() as u64;
        }
        Ok(sum.finalize() == crc)
    }

    /// All that was folded; `None` where the rest could not be read on from there.
    fn of(journal: &[u8], loaded: &Loaded) -> Option<Self> {
        Self::NONE.and(journal, 0, loaded).filter(|it| it.length > 0)
    }

    /// The same of what follows `self`, which ends in front of the record `seq`.
    fn and(self, rest: &[u8], seq: u64, loaded: &Loaded) -> Option<Self> {
        let length = loaded.tail.mark.offset;
        let part = rest.get(..usize::try_from(length.checked_sub(self.length)?).ok()?)?;
        // A damaged line that is read later is told by its number: up to here each is a record.
        let lines = memchr::memchr_iter(b'\n', part).count();
        let is_whole = part.last().is_none_or(|last| *last == b'\n');
        let is_counted = seq + lines as u64 == loaded.state.next_seq;
        let is_over = is_whole && is_counted && !loaded.tail.missing_newline;
        let mut sum = crc32fast::Hasher::new_with_initial(self.crc);
        sum.update(part);
        is_over.then(|| Self { length, crc: sum.finalize() })
    }

    /// Whether a journal begins with it; read piece by piece, up to its end.
    fn is_summed(self, mut journal: &File) -> io::Result<bool> {
        let (mut sum, mut left) = (crc32fast::Hasher::new(), self.length);
        let mut piece = vec![0; PIECE_BYTES];
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let read = journal.read(&mut piece[..wanted])?;
            if read == 0 {
                return Ok(false);
            }
            sum.update(&piece[..read]);
            left -= read as u64;
        }
        Ok(sum.finalize() == self.crc)
    }

    /// Where it ends, if this journal begins with it.
    fn begins(self, journal: &[u8]) -> Option<usize> {
        let offset = usize::try_from(self.length).ok()?;
        let part = journal.get(..offset)?;
        (crc32fast::hash(part) == self.crc).then_some(offset)
    }

    /// Takes it from what [`body`] made; the state follows it.
    fn unpack(body: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = body.split_first()?;
        if usize::from(*length) != VERSION.len() {
            return None;
        }
        let (of, rest) = rest.strip_prefix(VERSION)?.split_first_chunk()?;
        let (crc, state) = rest.split_first_chunk()?;
        let part = Self { length: u64::from_le_bytes(*of), crc: u32::from_le_bytes(*crc) };
        Some((part, state))
    }
}

/// The version, the part of the journal that is told of, the state.
fn body(part: &Part, state: &State, defs: Option<&Defs>) -> Option<Vec<u8>> {
    let mut to = vec![u8::try_from(VERSION.len()).ok()?];
    to.extend(VERSION);
    to.extend(part.length.to_le_bytes());
    to.extend(part.crc.to_le_bytes());
    to.push(if defs.is_some() { WITH_GRAPH } else { ALONE });
    state.pack_to(defs, &mut to)?;
    Some(to)
}

/// The state at a place in this very journal, and that place.
fn unpack(body: &[u8], journal: &[u8]) -> Option<(State, usize)> {
    let (offset, state) = covers(body, journal)?;
    Some((state_of(state)?, offset))
}

fn state_of(kept: &[u8]) -> Option<State> {
    State::unpack(kept.get(1..)?)
}

/// How much of this very journal is told of, and the state there as it is kept.
fn covers<'b>(body: &'b [u8], journal: &[u8]) -> Option<(usize, &'b [u8])> {
    let (part, state) = Part::unpack(body)?;
    Some((part.begins(journal)?, state))
}

#[cfg(test)]
mod tests;
