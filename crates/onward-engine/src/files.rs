//! Whole files, made so that a crash leaves the old one or the new one.

use onward_core::digest::Digest;

use crate::world::{At, Stop, World};

/// Writes a file that is whole and durable when this returns, and never half there.
pub fn write_durably<W: World>(world: &mut W, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
    let temporary = temporary_name(at.path());
    let temporary = match at {
        At::Run(_) => At::Run(&temporary),
        At::Project(_) => At::Project(&temporary),
    };
    world.write(temporary, bytes)?;
    world.sync(temporary)?;
    world.rename(temporary, at)?;
    world.sync_dir(at)
}

/// What a file is called until it is whole.
pub fn temporary_name(path: &str) -> String {
    format!("{path}.onward-new")
}

/// Where the content with this digest is kept.
fn saved_name(digest: Digest) -> String {
    format!("saved/{digest}")
}

/// Keeps what the project file holds, so that it can be put back. `None` = there is no such file.
pub fn save<W: World>(world: &mut W, path: &str) -> Result<Option<Digest>, Stop> {
    let Some(bytes) = world.read(At::Project(path))? else { return Ok(None) };
    let digest = Digest::of(&bytes);
    let name = saved_name(digest);
    if world.read(At::Run(&name))?.is_none_or(|kept| Digest::of(&kept) != digest) {
        write_durably(world, At::Run(&name), &bytes)?;
    }
    Ok(Some(digest))
}

/// What was kept under this digest.
pub fn saved<W: World>(world: &mut W, digest: Digest) -> Result<Option<Vec<u8>>, Stop> {
    let bytes = world.read(At::Run(&saved_name(digest)))?;
    Ok(bytes.filter(|bytes| Digest::of(bytes) == digest))
}
