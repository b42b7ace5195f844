//! The journal as the engine writes it: check, write, believe.
//!
//! Invariant: a fact is folded when it is recorded and durable when it is committed; between the
//! two nothing happens outside. If a commit fails the engine stops and never appends again.

use onward_core::{
    event::{Event, Record},
    journal::{Reader, Rest, Tail, encode},
    run::Run,
    state::State,
};

use super::checkpoint;
use crate::world::{At, Stop, World};

pub use crate::world::JOURNAL;

/// Records of one batch, until they are committed.
#[derive(Debug)]
pub struct Journal {
    buffer: Vec<u8>,
    epoch: u32,
    batch: u64,
    /// The last record on disk has no newline; the next batch begins with one.
    owes_newline: bool,
    /// Bytes that were committed since the state was last kept, and after how many it is again.
    unkept: usize,
    keep_after: usize,
}

/// Twice as much before each further time: so that keeping costs a part of writing, however long
/// the journal becomes.
const KEEP_AFTER_BYTES: usize = 1 << 20;

impl Journal {
    /// For a journal that ends as `state` says, under a new epoch.
    pub fn after(state: &State, owes_newline: bool) -> Self {
        Self {
            buffer: Vec::new(),
            epoch: state.epoch + 1,
            batch: state.batch + 1,
            owes_newline,
            unkept: 0,
            keep_after: KEEP_AFTER_BYTES,
        }
    }

    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// What is recorded from here on belongs to a later opening.
    pub fn begin_epoch(&mut self) {
        self.epoch += 1;
    }

    /// Checks an event against the run, takes it in, and keeps it for the next commit.
    pub fn record(
        &mut self,
        run: &mut Run,
        at: onward_core::time::Timestamp,
        event: Event,
    ) -> Result<(), Stop> {
        let record =
            Record { seq: run.state.next_seq, at, epoch: self.epoch, batch: self.batch, event };
        let before = self.buffer.len();
        if before == 0 && self.owes_newline {
            self.buffer.push(b'\n');
        }
        encode(&record, &mut self.buffer).map_err(|error| Stop::Unwritable(error.to_string()))?;
        run.after(record).inspect_err(|_| self.buffer.truncate(before))?;
        Ok(())
    }

    /// Makes everything recorded durable: one write, one sync.
    pub fn commit<W: World>(&mut self, world: &mut W) -> Result<(), Stop> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        world.append(At::Run(JOURNAL), &self.buffer)?;
        world.sync(At::Run(JOURNAL))?;
        world.published(&self.buffer);
        self.unkept += self.buffer.len();
        self.buffer.clear();
        self.owes_newline = false;
        self.batch += 1;
        if self.unkept >= self.keep_after {
            checkpoint::keep(world, None);
            (self.unkept, self.keep_after) = (0, self.keep_after.saturating_mul(2));
        }
        Ok(())
    }
}

/// A journal as it was found.
#[derive(Debug)]
pub struct Loaded {
    pub state: State,
    pub tail: Tail,
}

/// Folds the bytes of a journal: every record up to the first that cannot be read.
pub fn load(bytes: &[u8]) -> Result<Loaded, LoadError> {
    let mut reader = Reader::new(bytes);
    let mut state = State::default();
    while let Some(record) = reader.next_record()? {
        state.after(record)?;
    }
    Ok(Loaded { state, tail: reader.tail()? })
}

/// Why a journal cannot be folded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Read(#[from] onward_core::journal::ReadError),
    #[error(transparent)]
    Impossible(#[from] onward_core::state::Violation),
}

/// What was read of a journal: all of it, or what follows a part that was folded before.
#[derive(Debug)]
pub struct End {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// Cuts a torn tail off and keeps it in the rescue.
pub fn mend_tail<W: World>(world: &mut W, read: &End, tail: &Tail) -> Result<(), Stop> {
    let bytes = &read.bytes;
    let end = tail.mark.offset.saturating_sub(read.offset);
    let end = usize::try_from(end).unwrap_or(bytes.len()).min(bytes.len());
    match &tail.rest {
        Rest::Clean => {}
        Rest::Torn(torn) => {
            let name = format!("rescue/torn-tail-{}", torn.offset);
            crate::world::files::write_durably(world, At::Run(&name), &bytes[end..])?;
            world.truncate(At::Run(JOURNAL), tail.mark.offset)?;
            world.sync(At::Run(JOURNAL))?;
        }
        Rest::Damaged(_) => return Err(Stop::Damaged),
    }
    // Free space at the end is cut too: the next append must follow the last record.
    if tail.trailing_nuls > 0 {
        world.truncate(At::Run(JOURNAL), tail.mark.offset)?;
        world.sync(At::Run(JOURNAL))?;
    }
    Ok(())
}
