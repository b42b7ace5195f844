//! What an attempt left, brought to the disk before a seal that is.
//!
//! Invariant: `true` only if each declared output that is there, and the result, survive a power
//! cut that comes right after this.

use std::{
    io::{self, ErrorKind},
    path::Path,
};

use onward_core::{launch::Launch, workflow::pattern::is_glob};

use crate::world::open;

pub(super) fn settle(project_dir: &Path, launch: &Launch) -> bool {
    let result = launch.env.get("ONWARD_RESULT");
    let outputs = launch.outputs.iter().map(|output| {
        if is_glob(output) {
            Err(ErrorKind::InvalidInput.into())
        } else {
            sync(&project_dir.join(open::raw(output)))
        }
    });
    let mut all = outputs.chain(result.map(|path| sync(Path::new(path))));
    // A pattern, a directory or a link: the file system as a whole is brought out instead.
    all.all(|synced| synced.is_ok()) || sync_all(project_dir).is_ok()
}

/// One that is not there has nothing to lose.
fn sync(path: &Path) -> io::Result<()> {
    match open::at(path, open::To::Read) {
        Ok(file) => file.sync_all()?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    path.parent().map_or(Ok(()), open::sync_dir)
}

fn sync_all(dir: &Path) -> io::Result<()> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags, rustix::fs::Mode::empty())?;
    Ok(rustix::fs::syncfs(dir)?)
}
