//! A directory for one look, among the temporary ones.
//!
//! Invariant: it is gone with its owner. A process that is killed cannot clear up after itself, so
//! the next one that needs such a directory removes those that no living process holds locked.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::Once,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{FlockOperation, flock},
    process::geteuid,
};
use tempfile::TempDir;

use super::open;

const PREFIX: &str = "onward-aside-";

/// A younger one may not be locked yet.
const YOUNG: Duration = Duration::from_mins(1);

/// See the module.
#[derive(Debug)]
pub struct Aside {
    dir: TempDir,
    /// Held as long as it lives.
    _lock: File,
}

impl Aside {
    pub fn new() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let place = std::env::temp_dir();
        let made = Self::among(&place)?;
        SWEPT.call_once(|| sweep(&place, made.made_at().unwrap_or(SystemTime::UNIX_EPOCH)));
        Ok(made)
    }

    fn among(place: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        let lock = open::dir(dir.path())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { dir, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn made_at(&self) -> io::Result<SystemTime> {
        fs::symlink_metadata(self.path())?.modified()
    }
}

/// Removes what killed processes of this user left. What cannot be removed stays.
fn sweep(place: &Path, now: SystemTime) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let ours = entries.filter(|it| it.file_name().to_string_lossy().starts_with(PREFIX));
    for path in ours.map(|it| it.path()) {
        if is_left(&path, now) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn is_left(path: &Path, now: SystemTime) -> bool {
    let Ok(seen) = fs::symlink_metadata(path) else { return false };
    let age = seen.modified().ok().and_then(|it| now.duration_since(it).ok());
    let is_old = age.is_some_and(|age| age > YOUNG);
    let is_ours = seen.is_dir() && seen.uid() == geteuid().as_raw();
    let lock = || {
        flock(open::dir(path)?, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from)
    };
    is_ours && is_old && lock().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let held = Aside::among(place.path()).unwrap();
        let left = place.path().join(format!("{PREFIX}left"));
        let other = place.path().join("onward-other");
        let link = place.path().join(format!("{PREFIX}link"));
        fs::create_dir_all(left.join("objects")).unwrap();
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let now = held.made_at().unwrap();
        sweep(place.path(), now);
        assert!(left.exists(), "it may be about to be locked");
        sweep(place.path(), now + 2 * YOUNG);
        assert!(!left.exists());
        assert!(held.path().exists() && other.exists() && link.is_symlink());
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists());
    }
}
