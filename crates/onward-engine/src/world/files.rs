//! Whole files, made so that a crash leaves the old one or the new one.

use onward_core::{
    digest::Digest,
    event::FileKind,
    evidence::{FileProof, Stat},
};

use crate::world::{At, Content, Stop, World};

/// Writes a file that is whole and durable when this returns, and never half there.
pub fn write_durably<W: World>(world: &mut W, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
    put_durably(world, at, bytes, FileKind::Plain)
}

/// The same for every kind of file.
pub fn put_durably<W: World>(
    world: &mut W,
    at: At<'_>,
    bytes: &[u8],
    kind: FileKind,
) -> Result<(), Stop> {
    let temporary = temporary_name(at.path());
    let temporary = match at {
        At::Run(_) => At::Run(&temporary),
        At::Project(_) => At::Project(&temporary),
    };
    world.make(temporary, bytes, kind)?;
    world.sync(temporary)?;
    world.rename(temporary, at)?;
    world.sync_dir(at)
}

/// Added to the name of a file until it is whole.
pub(crate) const NEW_SUFFIX: &str = ".onward-new";

/// What a file is called until it is whole.
pub fn temporary_name(path: &str) -> String {
    format!("{path}{NEW_SUFFIX}")
}

/// What a kill left of a file that was being made: nothing reads it, and the next write of the file
/// takes its place.
pub fn is_temporary(path: &str) -> bool {
    path.ends_with(NEW_SUFFIX)
}

/// What lies outside of the project is not ours to put back; a link to it is.
pub fn can_be_put_back<W: World>(world: &mut W, file: &FileProof) -> Result<bool, Stop> {
    if file.stat != Stat::OUTSIDE {
        return Ok(true);
    }
    Ok(world.look(&file.path)?.is_some_and(|it| it.kind == FileKind::Link))
}

/// Where a link leads, for a step that writes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To no file, or there is no link.
    Nowhere,
    /// To this file of the project: what it holds is kept before a step writes.
    To(String),
    /// To a file that is not kept, as it lies outside of the project or is too large.
    Away,
}

/// Where the content with this digest is kept.
fn saved_name(digest: Digest) -> String {
    format!("saved/{digest}")
}

/// Keeps what the project file holds, so that it can be put back. `None` = there is no such file.
pub fn save<W: World>(world: &mut W, path: &str) -> Result<Option<Content>, Stop> {
    let Some((bytes, kind)) = world.content(path)? else { return Ok(None) };
    let digest = Digest::of(&bytes);
    if saved(world, digest)?.is_none() {
        keep(world, digest, &bytes)?;
    } else {
        settle(world, digest)?;
    }
    Ok(Some((digest, kind)))
}

/// Keeps content under its digest.
pub fn keep<W: World>(world: &mut W, digest: Digest, bytes: &[u8]) -> Result<(), Stop> {
    write_durably(world, At::Run(&saved_name(digest)), bytes)
}

/// Makes the name of kept content durable: the process that kept it may have died before it was.
pub fn settle<W: World>(world: &mut W, digest: Digest) -> Result<(), Stop> {
    world.sync_dir(At::Run(&saved_name(digest)))
}

/// What was kept under this digest.
pub fn saved<W: World>(world: &mut W, digest: Digest) -> Result<Option<Vec<u8>>, Stop> {
    let bytes = world.read(At::Run(&saved_name(digest)))?;
    Ok(bytes.filter(|bytes| Digest::of(bytes) == digest))
}
