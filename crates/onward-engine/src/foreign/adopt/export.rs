//! What the engine itself writes into another system's files, and how far they are known as ours.
//!
//! Invariant: a file that only ever grows is appended to and synced; any other is replaced whole.

use onward_core::{
    address::Address,
    digest::Digest,
    event::{Event, Exported},
};
use onward_dialects::Files;

use super::{Native, Reentry};
use crate::{
    drive::Driver,
    world::{At, Stop, World, files},
};

impl<W: World> Driver<'_, W> {
    /// Says in the other system's own words that somebody goes on: the first thing written there.
    pub(crate) fn say_resumed(&mut self, reentry: &Reentry) -> Result<(), Stop> {
        let native = &reentry.native;
        let _held = native.hold()?;
        let mut before = native.files()?;
        if native.is_unbegun(&before) {
            return Ok(());
        }
        let mut at = self.world.now();
        if let Some((entering, entry)) =
            reentry.entering.as_ref().and_then(|it| Some((it, it.entry.as_ref()?)))
        {
            put(self.world, native, &before, &entry.path, &entry.bytes)?;
            before = native.files()?;
            at = entering.at;
        }
        for (name, bytes) in native.dialect.resumed(&before, &reentry.plan, at) {
            put(self.world, native, &before, &name, &bytes)?;
        }
        self.note_export()
    }

    /// A step that writes the files has ended: what they are now is known.
    pub(crate) fn note_export_of(&mut self, step: &Address) -> Result<(), Stop> {
        let writes = self.how.native.as_ref().is_some_and(|it| it.dialect.witnesses(step));
        if writes { self.note_export() } else { Ok(()) }
    }

    /// Notes what the files are, if they are not what was noted last.
    pub(crate) fn note_export(&mut self) -> Result<(), Stop> {
        let Some(native) = self.how.native.clone() else { return Ok(()) };
        let files = exported(&native, &native.files()?);
        if self.run.state.exported == files {
            return Ok(());
        }
        self.record(Event::NativeExported { files })
    }
}

/// Each file with its digest; those that only grow also with their length.
pub(super) fn exported(native: &Native, files: &Files) -> Vec<Exported> {
    let of = |(path, file): (&str, &onward_dialects::File)| Exported {
        path: path.to_owned(),
        hash: Digest::of(&file.bytes),
        offset: native.dialect.grows(path).then_some(file.bytes.len() as u64),
    };
    files.iter().map(of).collect()
}

fn put<W: World>(
    world: &mut W,
    native: &Native,
    before: &Files,
    name: &str,
    bytes: &[u8],
) -> Result<(), Stop> {
    let path = native.path(name);
    let at = At::Project(&path);
    let grown = before.bytes(name).filter(|_| native.dialect.grows(name));
    match grown.and_then(|old| bytes.strip_prefix(old)) {
        Some([]) => Ok(()),
        Some(more) => {
            world.append(at, more)?;
            world.sync(at)
        }
        None => files::write_durably(world, at, bytes),
    }
}
