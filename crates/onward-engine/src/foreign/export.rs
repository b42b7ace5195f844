//! What the engine itself writes into another system's files, and how far they are known as ours.
//!
//! Invariant: a file that only ever grows is appended to and synced; any other is replaced whole.

use onward_core::{
    digest::Digest,
    event::Exported,
    told::{Change, Deed},
};
use onward_dialects::{File, Files};

use super::Foreign;
use crate::world::{At, Stop, World, files};

/// Each file with its digest; those that only grow also with their length.
pub(crate) fn exported(foreign: &Foreign, files: &Files) -> Vec<Exported> {
    let of = |(path, file): (&str, &File)| Exported {
        path: path.to_owned(),
        hash: Digest::of(&file.bytes),
        offset: foreign.grows(path).then_some(file.bytes.len() as u64),
    };
    files.iter().map(of).collect()
}

/// Writes the changes in their order; durable when it returns.
pub(crate) fn write<W: World>(
    world: &mut W,
    foreign: &Foreign,
    changes: &[Change],
) -> Result<(), Stop> {
    for change in changes {
        let path = foreign.path(change.path());
        let at = At::Project(&path);
        match change {
            Change::Append { bytes, .. } => {
                world.append(at, bytes)?;
                world.sync(at)?;
                world.sync_dir(at)?;
            }
            Change::Replace { bytes, .. } => files::write_durably(world, at, bytes)?,
        }
    }
    Ok(())
}

/// Tells the other system in its own words that a person ends its run. Its files may be gone: then
/// nothing is left to be told.
pub(crate) fn say_cancelled<W: World>(world: &mut W, foreign: &Foreign) -> Result<(), Stop> {
    let at = world.now();
    let changes = |world: &mut W| match foreign.read(world) {
        Ok(reading) => Ok(reading.told.map(|told| told.write(&Deed::Cancelled { at }))),
        Err(Stop::MissingFile { .. }) => Ok(None),
        Err(stop) => Err(stop),
    };
    if changes(world)?.is_none_or(|it| it.is_empty()) {
        return Ok(());
    }
    let _held = world.hold(&foreign.site, foreign.card())?;
    let changes = changes(world)?.unwrap_or_default();
    write(world, foreign, &changes)
}

/// The files as they are after the changes.
pub(super) fn after(mut files: Files, changes: &[Change]) -> Files {
    for change in changes {
        let before = files.remove(change.path()).unwrap_or_default();
        let bytes = match change {
            Change::Append { bytes, .. } => [before.bytes.as_slice(), bytes].concat(),
            Change::Replace { bytes, .. } => bytes.clone(),
        };
        files.insert(change.path(), File { bytes, modified: None });
    }
    files
}
