//! The other system's files as they will be when half-done work of ours is undone.
//!
//! Invariant: a file that only a killed agent of ours wrote proves nothing. It is read as it will
//! be after the undo, so that a plan, and a resume that is cut short before the undo, adopt nothing
//! from it.

use onward_core::{digest::Digest, event::Revert, run::Run};
use onward_dialects::{File, Files};

use super::{Foreign, Reentry, reentry::is_of_attempt};
use crate::world::{Stop, World, files};

/// The files when these are put back.
pub(crate) fn as_undone<W: World>(
    world: &mut W,
    foreign: &Foreign,
    mut read: Files,
    undone: &[Revert],
) -> Result<Files, Stop> {
    for revert in undone {
        let Some(name) = foreign.name_of(&revert.path) else { continue };
        let Some(base) = revert.base else {
            read.remove(name);
            continue;
        };
        let saved = files::saved(world, base)?;
        let bytes = if saved.is_some() { saved } else { world.base_content(base)? };
        if let Some(bytes) = bytes
            && let Some(File { modified, .. }) = read.remove(name)
        {
            read.insert(name, File { bytes, modified });
        }
    }
    Ok(read)
}

impl Reentry {
    /// Undos of ours, in files that the other system reads and that nothing else vouches for.
    pub(crate) fn misled_by<'r>(
        &self,
        run: &Run,
        reverts: impl Iterator<Item = &'r Revert>,
    ) -> Vec<Revert> {
        let misleads = |it: &&Revert| {
            let step = it.step.as_ref().filter(|step| is_of_attempt(run, it, step));
            let name = self.foreign.name_of(&it.path);
            let left = name.and_then(|name| self.files.bytes(name)).map(Digest::of);
            let is_left = left.is_some() && left == it.left && !it.keeps_in_place();
            is_left && step.is_some_and(|step| !self.told.vouches(step))
        };
        let mut all: Vec<Revert> = reverts.filter(misleads).cloned().collect();
        all.dedup();
        all
    }
}
