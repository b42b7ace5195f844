//! Whether a file system shows every change after a look.
//!
//! Invariant: yes is said only of what was tried out on that very file system.

use std::{
    fs::Metadata,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::Path,
};

use super::look::nanos;
use crate::world::open;

/// So many changes within microseconds all have times of their own, or none is believed to.
const TRIES: u8 = 12;

/// The device of `dir`, if the file system there shows every change after a look: that is tried out
/// on a file without a name. One that only counts ticks of the clock would have to tick between
/// each two of these changes.
pub(crate) fn device(dir: &Path) -> Option<u64> {
    let tried = open::unnamed(dir).and_then(|file| {
        let mut last = None;
        for round in 0..TRIES {
            file.write_all_at(&[round], 0)?;
            let now = mtime_ns(&file.metadata()?);
            if last.is_some_and(|last| last >= now) {
                return Ok(None);
            }
            last = Some(now);
        }
        Ok(Some(file.metadata()?.dev()))
    });
    tried.ok().flatten()
}

fn mtime_ns(found: &Metadata) -> i64 {
    nanos(found.mtime(), found.mtime_nsec())
}
